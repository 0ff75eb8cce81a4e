"""The main path: recorded agents on a real repository, a human rules, the ruling is carried out."""

import re
from collections.abc import Callable

import pytest

from tests.end_to_end.installation import Installation, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.django_db]  # the demo begins with a copy of the empty database

STRAIGHT = {
    "Accept weeks",
    "Add up a time sheet",
    "Read negative spans",
    "Read clock times",
    "Shorten long spans",
}
ROUNDING, NAMES, REPORT = "Round to the nearest minute", "Name your own units", "Print a report"


def landed(demo: Installation, *awaited: str) -> set[str]:
    """The tasks that have landed, once the awaited ones have."""

    def found() -> set[str]:
        return {title for (title,) in demo.rows("SELECT title FROM tasks_task WHERE landed_sha <> ''")}

    wait_for(lambda: found() >= {*awaited}, f"the landing of {' and '.join(awaited)}")
    return found()


def dispute_on(demo: Installation, title: str) -> str:
    pk = demo.value(
        "SELECT d.id FROM disputes_dispute d JOIN tasks_task t ON t.id = d.task_id "
        "WHERE t.title = ? AND d.status = 'open'", title,
    )  # fmt: skip
    return f"D-{pk}"


def test_it_prints_every_task_and_the_open_disputes(finished_demo: tuple[Installation, str]) -> None:
    demo, printed = finished_demo
    assert re.search(r"demo-\d  completed  1 +[0-9a-f]{12}  Accept weeks", printed)
    assert re.search(rf"demo-\d  disputed   2 +- +{ROUNDING}", printed)
    assert len(re.findall(r"^  D-\d+  demo-\d  HIGH  ", printed, re.MULTILINE)) == 2
    assert landed(demo) == STRAIGHT


def test_the_remote_holds_exactly_the_landed_commits(finished_demo: tuple[Installation, str]) -> None:
    demo, _ = finished_demo
    first = demo.git("rev-list", "--max-parents=0", "main")
    on_main = demo.git("rev-list", f"{first}..main").split()
    landed = [sha for (sha,) in demo.rows("SELECT landed_sha FROM tasks_task WHERE landed_sha <> ''")]
    assert set(landed) <= set(on_main)
    assert demo.git("branch", "--list", "--format=%(refname)").split() == ["refs/heads/main"]
    # Each landed task is one contiguous piece of the history: nothing is on the branch that nobody approved.
    heads = sorted(landed, key=on_main.index)
    bases = [*heads[1:], first]
    counted = sum(
        int(demo.git("rev-list", "--count", f"{base}..{head}"))
        for head, base in zip(heads, bases, strict=True)
    )
    assert counted == len(on_main)
    assert heads[0] == on_main[0]


def test_the_demo_shows_every_story(finished_demo: tuple[Installation, str]) -> None:
    demo, _ = finished_demo
    rounds = dict(demo.rows("SELECT title, round FROM tasks_task"))
    assert rounds["Accept weeks"] == 1
    assert rounds["Read negative spans"] == 2
    red = demo.value(
        "SELECT count(*) FROM tasks_submission s JOIN tasks_task t ON t.id = s.task_id "
        "WHERE t.title = 'Read clock times' AND s.state = 'red'"
    )
    assert red == 1
    conflicts = demo.rows(
        "SELECT opened_as, status FROM disputes_conflict WHERE kind != 'alert' ORDER BY opened_as, status"
    )
    assert conflicts == [("coder", "logged"), ("coder", "open"), ("reviewer", "open")]


def test_no_token_is_in_any_row_or_log(finished_demo: tuple[Installation, str]) -> None:
    demo, _ = finished_demo
    tables = [name for (name,) in demo.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    dump = "\n".join(repr(demo.rows(f'SELECT * FROM "{name}"')) for name in tables)
    assert "demo-coder" in dump
    assert not re.search(r"stx_[A-Za-z0-9_-]{20}", dump)
    files = [
        path for path in demo.home.rglob("*") if path.is_file() and path.suffix in {".log", ".md", ".json"}
    ]
    assert files
    assert not [path for path in files if "stx_" in path.read_text(errors="replace")]


def test_nothing_lives_on_after_the_end(finished_demo: tuple[Installation, str]) -> None:
    demo, _ = finished_demo
    assert demo.value("SELECT count(*) FROM agents_run WHERE status <> 'ended'") == 0
    wait_for(lambda: not demo.processes(), "the end of every process")


RULINGS = {
    "A": ("reviewer", "People round half up."),
    "B": ("coder", "Reports must not drift."),
    "D": ("custom", "Let the caller choose how halves are rounded."),
}


def prompted_with(demo: Installation) -> tuple[str, str]:
    """The role and the text of the first prompt that tells of the ruling."""
    prompts = demo.rows(
        "SELECT r.role, p.text FROM agents_prompt p JOIN agents_run r ON r.id = p.run_id "
        "JOIN tasks_task t ON t.id = r.task_id WHERE t.title = ? ORDER BY r.id", ROUNDING,
    )  # fmt: skip
    return next((role, text) for role, text in prompts if "uphold_" in text or "D, other" in text)


def test_rulings_are_carried_out_and_land_as_three_ways_to_round(
    copy_of_demo: Callable[[], Installation],
) -> None:
    """And beside the first of them, a reviewer's dispute is ruled and lands."""
    ways = set()
    for letter, (decision, notes) in RULINGS.items():
        demo, beside = copy_of_demo(), letter == "A"
        with demo.running() as url:
            card = dispute_on(demo, ROUNDING)
            words = ("--decision", decision, "--notes", notes)
            ruled = demo.steroids(url, "dispute", "resolve", card, *words)
            if beside:
                rule_twice_on_names(demo, url)
            assert ruled.returncode == 0, ruled.stderr
            assert f": {letter} (" in ruled.stdout
            wanted = {ROUNDING} | ({REPORT, NAMES} if beside else set())  # REPORT waited for ROUNDING
            assert landed(demo, *wanted) >= STRAIGHT | wanted
        role, text = prompted_with(demo)
        if letter == "B":
            assert role == "reviewer"
            assert text.startswith("## Settled. Do not raise again.")
        else:
            assert role == "coder"
            assert text.startswith(
                "## Decided since your last run. Honour it.\n\n1. ISSUE-R1-001 (HIGH): " + letter
            )
            assert notes in text
        followed = demo.value("SELECT followed FROM disputes_conflict WHERE opened_as = 'reviewer'")
        assert not beside or followed in {"applied", "cannot_tell"}
        ways.add(demo.git("rev-parse", "main:src/timespan/rounding.py"))
    assert len(ways) == 3


def rule_twice_on_names(demo: Installation, url: str) -> None:
    ref = demo.value("SELECT number FROM tasks_task WHERE title = ?", NAMES)
    first = demo.steroids(
        url, "dispute", "resolve", f"demo-{ref}", "--decision", "reviewer", "--notes", "Keep no state."
    )
    second = demo.steroids(url, "dispute", "resolve", f"demo-{ref}", "--decision", "coder", "--notes", "No.")
    listed = demo.steroids(url, "dispute", "list", "--status", "open")
    assert first.returncode == 0, first.stderr
    assert second.returncode == 1
    assert "admin ruled A on C-1" in second.stderr
    assert NAMES not in listed.stdout
