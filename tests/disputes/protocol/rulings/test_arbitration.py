"""What a judge's final text says, and what a policy may do: what is not plain is a human's (ARB-5 to 7)."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from disputes.protocol.rulings.arbitration import (
    DisputeFacts,
    FirstStep,
    first_step,
    may_be_discarded,
    may_be_ruled,
    option_of,
    read_verdict,
)
from disputes.protocol.rulings.options import Option
from disputes.protocol.rulings.recommendations import JudgeVerdict
from tests.cases import for_each

ENFORCE, DISMISS, ESCALATE = JudgeVerdict
DECLINED = DisputeFacts("disagreement", "high", "coder", "other", is_heard=True)


# --- Reading --------------------------------------------------------------------------------------------


@for_each(
    ("text", "verdict"),
    [
        ("ENFORCE", ENFORCE),
        ("DISMISS", DISMISS),
        ("ESCALATE", ESCALATE),
        ("\n\n  enforce  \n", ENFORCE),
        ("Dismiss.", DISMISS),
        ("**DISMISS**", DISMISS),
        ("**DISMISS.** The reviewer misread line 12.", DISMISS),
        ("`ENFORCE`", ENFORCE),
        ("# ENFORCE", ENFORCE),
        ("- ENFORCE", ENFORCE),
        ("1. DISMISS", DISMISS),
        ("Verdict: ENFORCE", ENFORCE),
        ("**Verdict:** DISMISS", DISMISS),
        ("My verdict is: ENFORCE", ENFORCE),
        ("Final decision = DISMISS", DISMISS),
        ("## Verdict: **ENFORCE**", ENFORCE),
        ("ENFORCE: the delay is unbounded.", ENFORCE),
        ("ENFORCE - the delay is unbounded", ENFORCE),
        ("ENFORCE \u2014 the coder's objection does not hold.", ENFORCE),
        ("ENFORCE\n\nThe coder asked me to dismiss the finding; that does not hold.", ENFORCE),
        ("DISMISS\n\n> ENFORCE\n\nis what the reviewer wants.", DISMISS),
        ("DISMISS\n\n```\nENFORCE\n```\n", DISMISS),
        ("ENFORCE\n\nIn short:\n\nENFORCE", ENFORCE),
    ],
)
def test_a_first_line_that_is_a_verdict_is_taken(text: str, verdict: JudgeVerdict) -> None:
    assert read_verdict(text) is verdict


@for_each(
    "text",
    [
        "",
        "   \n\t\n",
        "I have looked at it.",
        "Not ENFORCE",
        "not enforce",
        "I would not ENFORCE this.",
        "ENFORCE is wrong here",
        "ENFORCE would break the page",
        "ENFORCE: no",
        "ENFORCE? Never.",
        "ENFORCE - not",
        "DISMISS, don't.",
        "ENFORCE or DISMISS",
        "ENFORCE/DISMISS",
        "ENFORCE, not DISMISS",
        "DISMISS: not ENFORCE",
        "ENFORCE | DISMISS | ESCALATE",
        "ENFORCED",
        "REINFORCE",
        "UNENFORCE",
        "enforcement",
        "DISMISS the coder's objection",
        "Dismissed",
        '"ENFORCE"',
        "'ENFORCE' says the reviewer",
        "The reviewer writes “ENFORCE”.",
        "> ENFORCE",
        "> ENFORCE\n\nDISMISS",
        "```\nENFORCE\n```",
        "```text\nENFORCE",
        "~~~\nDISMISS\n~~~",
        "~~ENFORCE~~",
        "~~ENFORCE~~ DISMISS",
        "<!-- ENFORCE -->",
        "| ENFORCE |",
        "EN\u200bFORCE",
        "\u202eECROFNE",
        "\u0415NFORCE",  # a Cyrillic letter
        "Thinking about it...\nENFORCE",
        "The options are:\n- ENFORCE\n- DISMISS",
        "ENFORCE\n\nOn second thought:\n\nDISMISS",
        "DISMISS\n\nVerdict: ENFORCE",
        "ENFORCE\nESCALATE",
        "Verdict: none",
        "Verdict: I say ENFORCE",
        "The verdict: neither ENFORCE nor DISMISS",
        "quota exceeded; retry after 3600 s",
        "{'verdict': 'ENFORCE'}",
        "steroids opinion ledger-7 --verdict ENFORCE --reasons TEXT",
    ],
)
def test_whatever_is_not_plainly_one_verdict_is_a_humans(text: str) -> None:
    assert read_verdict(text) is ESCALATE


@given(before=st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1), after=st.text())
def test_a_word_within_a_word_or_a_sentence_settles_nothing(before: str, after: str) -> None:
    assert read_verdict(f"{before} DISMISS {after}") is ESCALATE or before.isdigit()


@given(st.text())
def test_any_text_is_read_as_one_of_the_three(text: str) -> None:
    assert read_verdict(text) in JudgeVerdict


def test_a_long_text_is_read_in_bounded_time() -> None:
    assert read_verdict("**" * 200_000 + "ENFORCE") is ESCALATE
    assert read_verdict("my the " * 100_000) is ESCALATE


def test_a_verdict_speaks_for_a_side_or_for_asking_a_human() -> None:
    assert option_of("enforce") is Option.UPHOLD_REVIEWER
    assert option_of("dismiss") is Option.UPHOLD_CODER
    assert option_of("escalate") is None


# --- The policy -----------------------------------------------------------------------------------------


@for_each("on_dispute", ["human", "judge", "discard"])
def test_where_people_are_asked_first_the_program_does_nothing(on_dispute: str) -> None:
    assert first_step(on_dispute, prompt_user=True, subject=DECLINED) is FirstStep.WAIT


def test_without_asking_people_the_projects_choice_is_carried_out() -> None:
    assert first_step("human", prompt_user=False, subject=DECLINED) is FirstStep.WAIT
    assert first_step("judge", prompt_user=False, subject=DECLINED) is FirstStep.ASK
    assert first_step("discard", prompt_user=False, subject=DECLINED) is FirstStep.DISCARD


def test_a_critical_dispute_goes_to_the_judge_and_then_to_a_human() -> None:
    critical = replace(DECLINED, severity="critical")
    assert first_step("judge", prompt_user=False, subject=critical) is FirstStep.ASK
    assert not may_be_ruled(critical)
    assert first_step("discard", prompt_user=False, subject=critical) is FirstStep.WAIT


@for_each(
    "change",
    [
        {"severity": "critical"}, {"opened_as": "reviewer"}, {"opened_as": "system"}, {"opened_as": "human"},
        {"reason": "security_concern"}, {"is_heard": False}, {"kind": "silence"}, {"kind": "help"},
    ],
)  # fmt: skip
def test_nothing_that_somebody_must_see_is_discarded(change: dict[str, object]) -> None:
    assert not may_be_discarded(replace(DECLINED, **change))  # type: ignore[arg-type]


@for_each("change", [{"kind": "silence"}, {"kind": "alert"}, {"opened_as": "human"}])
def test_what_is_no_dispute_of_agents_is_not_put_before_the_judge(change: dict[str, object]) -> None:
    subject = replace(DECLINED, **change)  # type: ignore[arg-type]
    assert first_step("judge", prompt_user=False, subject=subject) is FirstStep.WAIT


def test_an_unheard_side_is_not_ruled_on_by_policy() -> None:
    assert not may_be_ruled(replace(DECLINED, is_heard=False))
    assert may_be_ruled(DECLINED)
