"""Option C by rule (OPT-2), what is recommended and what it costs."""

from disputes.protocol.rulings.options import Option
from disputes.protocol.rulings.recommendations import (
    Judged,
    JudgeVerdict,
    recommend,
    settles_itself,
    trade_off,
)
from disputes.protocol.rulings.synthesis import Source, Synthesis, Views, handed_in, synthesise
from tasks.states import Severity
from tests.cases import for_each
from tests.own_time import linear_time

A, B, C, D = Option.UPHOLD_REVIEWER, Option.UPHOLD_CODER, Option.COMPROMISE, Option.OTHER
CRITICAL, HIGH, MEDIUM, LOW = Severity
BOTH = Synthesis("Do both.", "Each pays.", covers_both=True)
HALF = Synthesis("Do half.", "One pays.", covers_both=False)


def rule(title: str = "Retry the call", position: str = "", rationale: str = "") -> str:
    found = synthesise(Views(title, "Wait 1s, 2s, 4s.", position, rationale))
    return found.rule if found else ""


# --- The rules --------------------------------------------------------------------------------------------


def test_complexity_in_the_rationale_makes_it_optional() -> None:
    """OPT-2"""
    found = synthesise(Views("Retry", "Add strict mode.", "No.", "That is complexity we do not need."))
    assert found is not None
    assert (found.rule, found.covers_both, found.source) == ("complexity", True, Source.RULE)
    assert found.proposal == (
        "Implement this as optional or configurable, with a simple default: Add strict mode."
    )


def test_a_threshold_in_the_title_becomes_a_setting_with_the_reviewers_value() -> None:
    """OPT-2"""
    found = synthesise(Views("Validation timeout threshold", "Use 30 s.", "Five are enough.", "Fast disks."))
    assert found is not None
    assert (found.rule, found.covers_both) == ("limits", True)
    assert found.proposal.endswith("the default is the reviewer's: Use 30 s.")


def test_out_of_scope_is_deferred_and_does_not_cover_both() -> None:
    """OPT-2"""
    found = synthesise(Views("Rename", "Rename all.", "Later.", "This is out of scope here."))
    assert found is not None
    assert (found.rule, found.covers_both) == ("scope", False)
    assert "next version" in found.proposal


def test_the_first_rule_that_fits_wins() -> None:
    """Complexity and out of scope in one rationale."""
    assert rule(rationale="Out of scope, and the complexity is not worth it.") == "complexity"
    assert rule("The rate limit", rationale="Out of scope.") == "limits"


@for_each(("words", "expected"), [("It adds complexity.", "complexity"), ("It is out of scope.", "scope")])
def test_the_position_counts_as_the_rationale_does(words: str, expected: str) -> None:
    """Complexity and scope look at position and rationale"""
    assert rule(position=words) == expected


@for_each(
    "words",
    ["Complexity!", "complexities", "**complexity**", "far too complex", "overly complex", "(complexity)"],
)
def test_complexity_has_many_forms(words: str) -> None:
    """OPT-2"""
    assert rule(rationale=words) == "complexity"


@for_each(
    "words", ["complex numbers", "hypercomplexity", "complexity_limit is set", "a complex type", "duplex"]
)
def test_complexity_inside_another_word_is_none(words: str) -> None:
    """OPT-2"""
    assert rule(rationale=words) == ""


@for_each("title", ["Limits of retries", "The LIMIT", "Retries are not limited", "Thresholds"])
def test_a_limit_has_many_forms(title: str) -> None:
    """OPT-2"""
    assert rule(title) == "limits"


@for_each("title", ["Unlimited retries", "Known limitations", "rate_limit is wrong", "Delimiter"])
def test_a_limit_inside_another_word_is_none(title: str) -> None:
    """OPT-2"""
    assert rule(title) == ""


def test_a_limit_counts_only_in_the_title() -> None:
    """OPT-2"""
    assert rule(position="The limit bounds it.", rationale="A threshold is there.") == ""


@for_each("words", ["out-of-scope", "Out of the scope", "out of this scope"])
def test_out_of_scope_has_many_forms(words: str) -> None:
    """OPT-2"""
    assert rule(rationale=words) == "scope"


@for_each("words", ["without scope", "a scope of its own", "ran out of memory; the scope is fine"])
def test_a_scope_alone_defers_nothing(words: str) -> None:
    """OPT-2"""
    assert rule(rationale=words) == ""


def test_no_rule_finds_a_middle_where_there_is_none() -> None:
    assert synthesise(Views("Retry", "Back off.", "No.", "Files fail fast.")) is None


def test_without_a_suggestion_the_title_is_what_is_wanted() -> None:
    found = synthesise(Views("Retry with a limit"))
    assert found is not None
    assert found.proposal.endswith("the default is the reviewer's: Retry with a limit.")


def test_a_suggestion_of_many_lines_becomes_one() -> None:
    found = synthesise(Views("Limit", "Use\n\n## 30 s\n", "", ""))
    assert found is not None
    assert "\n" not in found.proposal


def test_every_rule_says_what_each_side_gives_up() -> None:
    """C what each gives up"""
    for views in (Views("x", "", "complexity"), Views("limit"), Views("x", "", "out of scope")):
        found = synthesise(views)
        assert found is not None
        assert "Reviewer: " in found.trade_off
        assert "Coder: " in found.trade_off


def test_long_positions_are_read_in_linear_time() -> None:
    for piece in ("out of ", "too complex_", "limit_", "out of the ", "a" * 50):
        text = piece * (256 * 1024 // len(piece))
        with linear_time():
            synthesise(Views(text, text, text, text))


# --- Handed in --------------------------------------------------------------------------------------------


@for_each("source", [Source.JUDGE, Source.MEDIATOR, Source.HUMAN])
def test_a_synthesis_may_be_handed_in_and_is_marked_by_whom(source: Source) -> None:
    found = handed_in("  Instant for files, slower for the network. ", source=source, covers_both=True)
    assert found is not None
    assert (found.proposal, found.source, found.rule) == (
        "Instant for files, slower for the network.", source, "",
    )  # fmt: skip
    assert found.trade_off


def test_nothing_handed_in_is_no_synthesis() -> None:
    assert handed_in(" \n", source=Source.HUMAN) is None


# --- What is recommended ----------------------------------------------------------------------------------


def option(*args: object) -> Option | None:
    found = recommend(*args)  # type: ignore[arg-type]
    return found.option if found else None


@for_each("synthesis", [None, BOTH, HALF])
def test_for_a_critical_finding_the_reviewer_is_recommended(synthesis: Synthesis | None) -> None:
    """No synthesis of a rule takes that away"""
    assert option(CRITICAL, synthesis) is A


@for_each("severity", [HIGH, MEDIUM, LOW])
def test_for_other_findings_nothing_is_recommended(severity: Severity) -> None:
    assert recommend(severity) is None


@for_each("severity", [HIGH, MEDIUM, LOW])
def test_a_synthesis_is_recommended_only_if_it_covers_both(severity: Severity) -> None:
    assert option(severity, BOTH) is C
    assert option(severity, HALF) is None


def test_no_compromise_of_a_rule_recommends_itself_on_a_matter_of_security() -> None:
    humans = Synthesis("Both.", "Each pays.", covers_both=True, source=Source.HUMAN)
    assert recommend(HIGH, BOTH, is_security=True) is None
    found = recommend(HIGH, humans, is_security=True)
    assert found
    assert found.option is C


def test_only_the_judges_reasons_take_the_recommendation_of_a_critical_finding() -> None:
    assert option(CRITICAL, None, Judged(JudgeVerdict.DISMISS, "The lock is held: no race.")) is B
    assert option(CRITICAL, None, Judged(JudgeVerdict.DISMISS, " ")) is A
    assert option(CRITICAL, None, Judged(JudgeVerdict.ESCALATE, "Cannot say.")) is A


def test_a_judges_synthesis_is_recommended_for_a_critical_finding_if_it_covers_both() -> None:
    judges = Synthesis("Both.", "Each pays.", covers_both=True, source=Source.JUDGE)
    humans = Synthesis("Both.", "Each pays.", covers_both=True, source=Source.HUMAN)
    assert option(CRITICAL, judges) is C
    assert option(CRITICAL, humans) is A


def test_the_judges_reasons_are_told() -> None:
    found = recommend(HIGH, BOTH, Judged(JudgeVerdict.ENFORCE, "It loses\ndata."))
    assert found is not None
    assert (found.option, found.why) == (A, "The judge: It loses data.")


# --- What it costs ----------------------------------------------------------------------------------------

VIEWS = Views("Retry", "Back off.", "No need.", "Files fail fast.")


@for_each(
    ("chosen", "said"),
    [
        (A, "The cost that the coder names: Files fail fast."),
        (B, "May leave unaddressed: A dead server is hammered."),
        (C, "Each pays."),
        (D, "Requires additional user input."),
    ],
)
def test_each_option_has_its_price(chosen: Option, said: str) -> None:
    assert trade_off(chosen, VIEWS, "A dead server is hammered.", BOTH) == said


def test_without_a_rationale_the_position_is_the_cost() -> None:
    assert trade_off(A, Views("Retry", "Back off.", "No need.")).endswith("No need.")


def test_a_side_that_said_nothing_names_no_cost() -> None:
    assert trade_off(A, Views("Retry")) == "The coder named no cost."


def test_without_an_impact_the_finding_itself_stays_open() -> None:
    assert trade_off(B, VIEWS) == "May leave unaddressed: Retry"


def test_what_takes_no_side_has_no_price() -> None:
    assert trade_off(Option.RETRY, VIEWS) == ""


# --- Low conflicts ----------------------------------------------------------------------------------------


@for_each(
    ("severity", "precedents", "settled"),
    [
        (LOW, [B, B, B], True),
        (LOW, [A, B, B, B], True),
        (LOW, [B, B], False),
        (LOW, [B, B, B, A], False),
        (LOW, [B, C, B], False),
        (MEDIUM, [B, B, B], False),
        (CRITICAL, [B, B, B], False),
    ],
)
def test_only_low_conflicts_with_a_pattern_of_rulings_settle_themselves(
    severity: Severity, precedents: list[Option], settled: bool
) -> None:
    """The setting low_auto_resolve"""
    assert settles_itself(severity, precedents) is settled
