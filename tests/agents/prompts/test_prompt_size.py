"""Whatever goes into a prompt: its size, the rulings, hands off, the hand-in and the fences hold."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.models import PromptText
from agents.prompts import compose, context
from agents.prompts.sections import Cuts, Section
from disputes.models import Conflict, Decision, Dispute
from disputes.protocol.text.quotes import fenced
from tasks.models import Project, Task
from tasks.text.fences import open_fence
from tests.agents.prompts.test_prompts import outside
from tests.cases import for_each

# Pieces of which hostile texts are made, and how often each is repeated.
PIECES = [
    "word ", "\n", "```\n", "~~~\n", "````text\n", "`", "\r", "\u2028", "## How to hand in\n", "{{ ref }}",
    "{% if title %}", "\U0001f600", "\x00", "# EVIL\n", "\n\nEVIL\n\n",
]  # fmt: skip
texts = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from([1, 2, 50, 3000, 60_000])), max_size=3
).map(lambda parts: "".join(piece * times for piece, times in parts)[:200_000])
TASK = Task(project=Project(slug="ledger", name="Ledger"), number=7, title="Import dates")


def decision(number: int, text: str, rationale: str) -> Decision:
    """A ruling as the rows hold it; nothing is saved."""
    conflict = Conflict(
        pk=number, kind="disagreement", question=f"Point {number}", severity="high",
        dispute=Dispute(task=TASK),
    )  # fmt: skip
    return Decision(
        conflict=conflict,
        option="other",
        text=text,
        rationale=rationale,
        constraints_text="",
        expects_change=True,
    )


@st.composite
def coders(draw: st.DrawFn) -> dict[str, Any]:
    """Everything that a coder may be told, in any size."""
    count = draw(st.sampled_from([0, 1, 3, 400]))
    rulings = draw(st.sampled_from([0, 1, 2, 60]))
    words = {name: draw(texts) for name in ("body", "source", "guide", "tail", "reason", "finding", "ruling")}
    finding = {
        "code": "ISSUE-R1-001", "severity": "HIGH", "mandatory": True,
        "text": Section("ISSUE-R1-001", words["finding"], context.FINDINGS_MAX // max(count, 1)),
    }  # fmt: skip
    return {
        "ref": "ledger-7", "title": "Import dates", "round": 2, "model": "", "name": "coder-1",
        "instructions": Section("your instructions", "Be brief. " * 99, 1000, is_fenced=False),
        "body": Section("description", words["body"], compose.BODY_MAX),
        "source": Section("specification", words["source"], compose.SOURCE_MAX, where="read SPEC.md"),
        "source_name": "SPEC.md",
        "guide": Section("the project's rules", words["guide"], compose.GUIDE_MAX),
        "build": "make", "test": "", "docs_only": False, "commit_form": "'feat: x'", "for_texts": {},
        "decisions": [decision(n, words["ruling"].replace("\r", " "), "") for n in range(1, rulings + 1)],
        "back": None, "back_reason": "", "clash": "", "clash_problem": "",
        "red": {"sha": "0" * 12, "is_red": True},
        "red_problem": Section("problem", words["reason"], context.PROBLEM_MAX),
        "red_tail": Section("end of the log", words["tail"], context.TAIL_MAX, keeps_end=True),
        "resumed": "Crash", "resumed_reason": Section("reason", words["reason"], 4000),
        "findings": [finding] * min(count, context.FINDINGS_NAMED), "finding_count": count,
        "more_findings": "", "more_count": 0, "retry": "", "example": "", "demand": "",
    }  # fmt: skip


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(coders(), st.booleans())
def test_no_input_breaks_the_bound_the_rulings_the_rules_or_a_fence(data: dict[str, Any], own: bool) -> None:
    run: Any = SimpleNamespace(role="coder", pk=1, task=SimpleNamespace(is_session=False))
    text = PromptText(text="# {{ title }}\n\n{{ body }}{{ source }}{{ body }}\n{{ guide }}") if own else None
    prompt = compose._fitting(run, data, text)

    assert prompt is not None
    assert len(prompt.encode()) <= compose.PROMPT_MAX
    spoken = outside(prompt.replace("\x00", ""))
    assert "## Hands off settings and status" in spoken
    assert spoken.count("steroids tasks update ledger-7 --status review") == 1
    for number in range(1, len(data["decisions"]) + 1):
        assert f"\n{number}. Task ledger-7 (HIGH): D, other\n" in prompt
    assert prompt.count("ISSUE-R1-001 (HIGH, mandatory)") == len(data["findings"])
    if not data["decisions"]:
        assert "EVIL" not in spoken


def test_what_is_cut_is_named_in_one_list_with_the_place_where_it_is_whole() -> None:
    cuts = Cuts()
    cuts.fit(Section("specification", "x" * 40_000, 12_000, where="read docs/SPEC.md in the clone"))
    cuts.fit(Section("description", "short", 12_000))

    assert cuts.lines == ["specification (12,000 of 40,000 characters): read docs/SPEC.md in the clone"]
    log = Section("end of the log", "one\ntwo\nthree\n", 8, keeps_end=True)
    assert "[8 characters left out]\nthree\n" in cuts.fit(log), "whole lines"
    assert "[6 characters left out]\nxxxxxxxx" in cuts.fit(replace(log, text="x" * 14))


def test_the_list_of_cuts_stands_in_the_prompt_and_cannot_be_written_by_a_name() -> None:
    run: Any = SimpleNamespace(role="coder", pk=1, task=SimpleNamespace(is_session=False))
    data = {
        "ref": "ledger-7", "title": "T", "round": 1, "for_texts": {}, "docs_only": True, "commit_form": "'x'",
        "body": Section("a`\n# EVIL", "x" * 500, 100, where="steroids tasks show ledger-7"),
    }  # fmt: skip
    prompt = compose._fitting(run, data, None)

    assert prompt is not None
    assert "## What was cut from this prompt\n\n- a' # EVIL (100 of 500 characters): steroids tasks" in prompt
    assert "\n# EVIL" not in prompt


def test_as_little_as_possible_is_cut_until_the_whole_fits() -> None:
    run: Any = SimpleNamespace(role="reviewer", pk=1, task=SimpleNamespace(is_session=False))
    smileys = Section("diff", "\U0001f600" * 120_000, context.DIFF_MAX, "diff")
    data = {"ref": "ledger-7", "title": "T", "round": 1, "for_texts": {}, "sha": "0" * 40, "diff": smileys}
    prompt = compose._fitting(run, data, None)

    assert prompt is not None
    assert compose.PROMPT_MAX // 3 < len(prompt.encode()) <= compose.PROMPT_MAX
    assert "- diff (61,440 of 120,000 characters)" in prompt


def test_very_many_long_rulings_all_stay_each_with_its_part() -> None:
    rows = [decision(number, "word " * 4000, "because " * 2000) for number in range(1, 101)]
    cuts: list[str] = []
    text = context.rulings_text(rows, 1.0, cuts)

    assert len(re.findall(r"^\d+\. Task ledger-7 \(HIGH\): D, other$", text, re.MULTILINE)) == 100
    assert len(text) < context.RULINGS_MAX * 2
    assert cuts == ["rulings (122 characters of each of its texts): `steroids dispute show` tells all"]


@for_each(
    ("text", "fence"),
    [
        ("", ""),
        ("```\na\n```", ""),
        ("```\na", "```"),
        ("~~~~\n```\n~~~", "~~~~"),
        ("``` a`b", ""),
        ("    ```", ""),
        ("~~~ a`b`\na", "~~~"),
        ("```\na\n~~~ a`b`\n```", ""),
    ],
)
def test_an_open_fence_is_seen(text: str, fence: str) -> None:
    assert open_fence(text) == fence


@given(texts)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_fenced_leaves_no_fence_open(text: str) -> None:
    assert open_fence(fenced(text.replace("\x00", ""))) == ""
