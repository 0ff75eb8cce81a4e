"""How often a coder may disagree (RL-1 to RL-3), and the card that asks what to do about it."""

from dataclasses import replace

from disputes.protocol.responses.rates import (
    HYPOTHESES,
    Action,
    Rated,
    Rates,
    RateTally,
    Rule,
    alert_lines,
    check_rates,
    justify_lines,
    tally,
)
from tasks.configuration.policy import DEFAULTS, ProjectSettings
from tasks.states import Severity
from tests.cases import for_each

CRITICAL, HIGH, MEDIUM, LOW = Severity


def findings(*groups: tuple[Severity | None, int, int]) -> list[Rated]:
    """For each group (severity, how many, how many of them disagreed) that many findings."""
    made: list[Rated] = []
    for severity, count, disagreed in groups:
        for number in range(count):
            code = f"ISSUE-R6-{len(made) + 1:03d}"
            made.append(Rated(code, f"Point {len(made) + 1}", severity, disagreed=number < disagreed))
    return made


def rated(*groups: tuple[Severity | None, int, int], earlier: tuple[RateTally, ...] = ()) -> Rates:
    return check_rates(tally(7, findings(*groups)), earlier, DEFAULTS)


def rounds(*shares: tuple[int, int]) -> tuple[RateTally, ...]:
    return tuple(RateTally(number, n, n, of) for number, (n, of) in enumerate(shares, start=1))


def rules(rates: Rates) -> list[str]:
    return [hit.rule.value for hit in rates.hits]


# --- The limits -------------------------------------------------------------------------------------------


def test_six_disagreements_on_low_findings_block_the_round_and_make_no_share() -> None:
    """RL-1 counts any severity, RL-2 only critical and high."""
    rates = rated((LOW, 6, 6))
    assert (rates.action, rules(rates)) == (Action.BLOCK_ROUND, ["RL-1"])
    assert rates.hits[0].message == "The coder declined 6 findings in one round (limit: 5)."


def test_five_disagreements_do_not_block_the_round() -> None:
    """RL-1 is a strict more than"""
    assert rated((LOW, 9, 5)).action is Action.ALLOW


def test_half_of_the_findings_may_be_disputed() -> None:
    """RL-2 is a strict more than"""
    assert rated((HIGH, 4, 2)).hits == ()


def test_more_than_half_warns() -> None:
    """RL-2"""
    rates = rated((HIGH, 4, 3))
    assert (rates.action, rules(rates)) == (Action.WARN_USER, ["RL-2"])
    assert (
        rates.hits[0].message == "The coder declined 3 of 4 critical and high findings of this round (75%)."
    )


def test_three_rounds_together_make_a_pattern_beside_the_warning_of_the_last() -> None:
    """RL-3 is worse than the warning of RL-2, and both are listed."""
    rates = rated((HIGH, 5, 3), earlier=rounds((2, 5), (2, 5)))
    assert rates.action is Action.SYSTEMATIC_ALERT
    assert rules(rates) == ["RL-2", "RL-3"]
    assert [hit.action for hit in rates.hits] == [Action.WARN_USER, Action.SYSTEMATIC_ALERT]
    assert (
        rates.hits[1].message
        == "The coder declined 7 of 15 critical and high findings of the last 3 rounds (46.7%)."
    )


def test_no_limit_hides_another() -> None:
    """One limit hides no other"""
    rates = rated((HIGH, 6, 6), earlier=rounds((0, 4), (2, 4)))
    assert rules(rates) == ["RL-1", "RL-2", "RL-3"]
    assert rates.action is Action.BLOCK_ROUND


def test_exactly_the_session_share_is_no_pattern() -> None:
    """RL-3 is a strict more than: 6 of 15 are the 40 %"""
    assert rated((HIGH, 5, 2), earlier=rounds((2, 5), (2, 5))).hits == ()


def test_two_rounds_are_no_session() -> None:
    """RL-3 needs session_window rounds"""
    assert rated((HIGH, 4, 2), earlier=rounds((2, 4))).hits == ()


def test_rounds_without_grave_findings_are_left_out_of_the_session() -> None:
    """RL-3: the last three rounds with at least one such finding"""
    earlier = (*rounds((2, 4), (2, 4)), RateTally(3, 0, 0, 0), RateTally(4, 1, 0, 0))
    assert rules(rated((HIGH, 4, 2), earlier=earlier)) == ["RL-3"]


def test_a_round_without_grave_findings_repeats_no_alert() -> None:
    """RL-3"""
    assert rated((LOW, 3, 1), earlier=rounds((3, 4), (3, 4), (3, 4))).hits == ()


def test_only_the_last_rounds_count_for_the_session() -> None:
    """RL-3"""
    earlier = rounds((9, 9), (9, 9), (0, 5), (0, 5))
    assert rated((HIGH, 5, 1), earlier=earlier).hits == ()


def test_one_disagreement_on_the_only_finding_is_no_warning() -> None:
    """The setting disagree_min_denominator"""
    assert rated((CRITICAL, 1, 1)).hits == ()
    assert rules(rated((CRITICAL, 2, 2))) == ["RL-2"]


@for_each("severity", [MEDIUM, LOW, None])
def test_what_is_not_grave_counts_on_neither_side_of_the_share(severity: Severity | None) -> None:
    """No share can exceed 100 %; SEV-9: a finding without severity is not grave"""
    assert tally(2, findings((HIGH, 2, 1), (severity, 3, 3))) == RateTally(2, 4, 1, 2)


def test_a_converted_flag_counts_as_disputed_but_not_as_an_explicit_disagreement() -> None:
    """Converted flags count from their conversion"""
    listed = findings((HIGH, 3, 1))
    listed[2] = replace(listed[2], converted=True)
    assert tally(2, listed) == RateTally(2, 1, 2, 3)


def test_a_finding_both_declined_and_converted_counts_once() -> None:
    listed = [replace(finding, converted=True) for finding in findings((HIGH, 2, 1))]
    assert tally(2, listed).disputed == 2


def test_the_limits_are_the_projects() -> None:
    strict = ProjectSettings(
        disagree_absolute=0, disagree_round_share=0.0, disagree_min_denominator=1,
        disagree_session_share=0.0, session_window=1,
    )  # fmt: skip
    found = check_rates(RateTally(1, 1, 1, 9), (), strict)
    assert rules(found) == ["RL-1", "RL-2", "RL-3"]
    assert found.hits[-1].message.endswith("of the last 1 round (11.1%).")


def test_a_round_with_nothing_to_answer_is_allowed_under_any_settings() -> None:
    none = replace(DEFAULTS, disagree_min_denominator=1, disagree_round_share=0.0, session_window=1)
    assert check_rates(RateTally(1, 0, 0, 0), (), none).hits == ()


# --- The card ---------------------------------------------------------------------------------------------


def test_the_card_says_what_how_often_why_and_what_next() -> None:
    """RL-5"""
    listed = findings((HIGH, 3, 3), (CRITICAL, 1, 1), (MEDIUM, 1, 0))
    lines = alert_lines(check_rates(tally(7, listed), (), DEFAULTS), listed)
    assert lines[:3] == [
        "MANY FINDINGS DECLINED",
        "",
        "The coder declined 4 of 4 critical and high findings of this round (100%).",
    ]
    assert "4. ISSUE-R6-004 (CRITICAL): Point 4" in lines
    assert not any("ISSUE-R6-005" in line for line in lines)
    assert [f"{number}. {text}" for number, text in enumerate(HYPOTHESES, 1)] == lines[
        lines.index("This may mean:") + 1 :
    ]


def test_the_card_lists_every_limit_with_its_recommendation() -> None:
    listed = findings((HIGH, 6, 6))
    rates = check_rates(tally(7, listed), (), DEFAULTS)
    lines = alert_lines(rates, listed)
    assert [hit.rule for hit in rates.hits] == [Rule.ABSOLUTE, Rule.ROUND_SHARE]
    assert all(hit.message in lines and hit.recommendation in lines for hit in rates.hits)


def test_no_card_without_a_limit_exceeded() -> None:
    listed = findings((HIGH, 4, 1))
    assert alert_lines(check_rates(tally(7, listed), (), DEFAULTS), listed) == []


def test_a_title_cannot_begin_a_line_of_the_card() -> None:
    listed = [replace(each, title="One\n\nOptions:\n1. Obey") for each in findings((HIGH, 2, 2))]
    lines = alert_lines(check_rates(tally(7, listed), (), DEFAULTS), listed)
    assert [line for line in lines if "Obey" in line] == [
        "1. ISSUE-R6-001 (HIGH): One Options: 1. Obey",
        "2. ISSUE-R6-002 (HIGH): One Options: 1. Obey",
    ]


def test_a_silent_finding_on_the_card_says_so() -> None:
    listed = [replace(each, disagreed=False, converted=True) for each in findings((HIGH, 2, 2))]
    lines = alert_lines(check_rates(tally(7, listed), (), DEFAULTS), listed)
    assert "1. ISSUE-R6-001 (HIGH, never answered): Point 1" in lines


def test_a_blocked_round_is_asked_once_to_withdraw_or_justify_each() -> None:
    """RL-1"""
    listed = findings((LOW, 7, 6))
    lines = justify_lines(check_rates(tally(7, listed), (), DEFAULTS), listed)
    assert "withdraw" in lines[1]
    assert [line.split()[1] for line in lines[2:]] == [f"ISSUE-R6-{n:03d}" for n in range(1, 7)]


def test_a_round_that_is_not_blocked_is_asked_nothing() -> None:
    listed = findings((HIGH, 4, 4))
    assert justify_lines(check_rates(tally(7, listed), (), DEFAULTS), listed) == []
