"""Suspected silent disagreement: which heuristic fires, how strongly, and with what evidence."""

from dataclasses import replace
from typing import Any

from disputes.protocol.responses.response import read_response
from disputes.protocol.silence.heuristics import judge_silence
from disputes.protocol.silence.suspicion import Judgement, Suspicion, Watched, round_level
from tasks.configuration.policy import DEFAULTS
from tasks.states import Severity
from tests.cases import for_each
from tests.disputes.protocol.text.test_documents import QUADRATIC, growth

HIGH, CRITICAL, MEDIUM = Severity.HIGH, Severity.CRITICAL, Severity.MEDIUM
LIMITS = "Limits of uploads are undefined"
IMPACT = "Large uploads exhaust memory and the server crashes"


def watched(number: int = 1, severity: Severity | None = HIGH, **facts: Any) -> Watched:
    facts.setdefault("title", LIMITS)
    return Watched(f"ISSUE-R1-{number:03d}", number, severity, **facts)


def judge(document: str, *findings: Watched, previous: str = "", **settings: Any) -> Judgement:
    found = findings or (watched(),)
    response = read_response(document, [finding.code for finding in found])
    return judge_silence(found, response, document, previous, settings=replace(DEFAULTS, **settings))


def flag(document: str, *findings: Watched, previous: str = "", **settings: Any) -> Suspicion:
    """The one flag that this raises."""
    (only,) = judge(document, *findings, previous=previous, **settings).flags
    return only


def fired(document: str, *findings: Watched, previous: str = "", **settings: Any) -> list[tuple[str, ...]]:
    return [each.heuristics for each in judge(document, *findings, previous=previous, **settings).flags]


# --- H1: no reference -------------------------------------------------------------------------------------


def test_a_finding_whose_turn_has_not_come_is_pending_and_not_flagged() -> None:
    """SIL-6"""
    judgement = judge("Something else.", watched(is_due=False))

    assert judgement.flags == ()


def test_a_due_finding_that_nothing_names_is_flagged() -> None:
    judgement = judge("Something else.")

    assert [(each.code, each.heuristics, each.confidence) for each in judgement.flags] == [
        ("ISSUE-R1-001", ("H1",), "high")
    ]


def test_an_id_in_the_first_cell_of_a_table_answers() -> None:
    """ANS-1"""
    judgement = judge("| Issue | Resolution |\n|---|---|\n| ISSUE-R1-001 | a table |")

    assert judgement.flags == ()


def test_an_id_in_code_only_is_flagged_with_that_as_evidence() -> None:
    """ID-3"""
    found = flag("Text.\n\n```\n# ISSUE-R1-001 fix\n```")

    assert found.heuristics == ("H1",)
    assert "mentioned in code, line 4; nowhere else" in found.evidence


def test_a_bare_mention_lowers_the_level_by_a_step_and_is_shown() -> None:
    """ANS-2."""
    silent = flag("Something else.", watched(severity=CRITICAL))
    mentioned = flag("\n\nThere is more to say about ISSUE-R1-001.", watched(severity=CRITICAL))

    assert (silent.level, mentioned.level) == ("warn", "log")
    assert "mentioned in line 3, but not answered" in mentioned.evidence


def test_a_finding_that_is_settled_needs_no_answer() -> None:
    assert judge("Something else.", watched(is_settled=True)) == Judgement((), ())


@for_each("severity", [MEDIUM, Severity.LOW, None])
def test_only_grave_findings_are_watched(severity: Severity | None) -> None:
    assert judge("Something else.", watched(severity=severity)) == Judgement((), ())


def test_a_finding_without_an_id_cannot_be_named() -> None:
    found = flag("Something else.", Watched("", 4, HIGH, "Limits"))

    assert (found.code, found.ordinal) == ("", 4)
    assert "it has no id that an answer could name" in found.evidence


# --- SIL-8: the soft match --------------------------------------------------------------------------------


def test_words_of_the_finding_make_a_flag_a_possible_match_to_confirm() -> None:
    found = flag("The limits of uploads are now a table.")

    assert found.confidence == "medium"
    assert any("possible match" in line for line in found.evidence)


def test_what_stood_there_before_the_finding_matches_nothing() -> None:
    text = "The limits of uploads are a table."

    assert not any("possible match" in line for line in flag(text, previous=text).evidence)


def test_a_possible_match_keeps_its_level() -> None:
    """SIL-14: nothing of this kind disables a block."""
    criticals = [watched(number, CRITICAL) for number in (1, 2)]

    assert [each.level for each in judge("The limits of uploads.", *criticals).flags] == ["block", "block"]


# --- H2 and H3 --------------------------------------------------------------------------------------------


@for_each(
    ("rollbacks", "expected"),
    [
        (("ABSTRACT_OUTPUT", "SCOPE_DRIFT"), ("H1", "H2")),
        (("ABSTRACT_OUTPUT", "ABSTRACT_OUTPUT"), ("H1",)),  # the same failure twice
        (("ABSTRACT_OUTPUT",), ("H1",)),
        (("A", "A", "B"), ("H1", "H2")),
    ],
)
def test_rollbacks_for_different_reasons_are_suspicious_while_the_finding_waits(
    rollbacks: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    found = flag("Something else.", watched(rollbacks=rollbacks))

    assert found.heuristics == expected


def test_an_answered_finding_is_not_suspicious_for_its_rollbacks() -> None:
    assert fired("- ISSUE-R1-001: fixed", watched(rollbacks=("A", "B"))) == []


def test_a_gap_declared_resolved_over_an_unanswered_finding_is_a_downgrade() -> None:
    found = flag("Something else.", watched(is_claimed_resolved=True, gap="GAP-FLOW-001"))

    assert found.heuristics == ("H1", "H3")
    assert "the document declares GAP-FLOW-001 resolved" in found.evidence


@for_each(
    ("solution", "check", "expected"),
    [
        ("The button is blue now.", True, [("H3",)]),  # it leaves the concern out
        ("The button is blue now.", False, []),  # enable_semantic_check
        ("Large uploads are refused before they exhaust the memory of the server.", True, []),
        ("", True, []),
    ],
)
def test_a_solution_that_leaves_out_the_concern_is_a_downgrade(
    solution: str, check: bool, expected: list[tuple[str, ...]]
) -> None:
    finding = watched(is_claimed_resolved=True, impact=IMPACT, solution=solution)

    assert fired("- ISSUE-R1-001: fixed", finding, enable_semantic_check=check) == expected


# --- H4: no substantive change ----------------------------------------------------------------------------

OLD = "# Spec\n\n## Limits\n\nThere are limits.\n\n## Retries\n\nThree."
PLACED = watched(location="Limits", impact=IMPACT)


def test_an_unchanged_section_confirms_the_silence() -> None:
    found = flag(OLD + "\n\nMore.", PLACED, previous=OLD)

    assert found.heuristics == ("H1", "H4")
    assert found.confidence == "high"
    assert 'section "Limits" is unchanged' in found.evidence


def test_a_claim_of_work_on_an_unchanged_section_is_flagged() -> None:
    found = flag(OLD + "\n\n- ISSUE-R1-001: fixed", PLACED, previous=OLD)

    assert (found.heuristics, found.confidence, found.level) == (("H4",), "medium", "log")


@for_each("answer", ["deferred", "user decision", "accepted as is", "obsolete"])
def test_an_answer_that_claims_no_work_needs_no_change(answer: str) -> None:
    assert fired(f"{OLD}\n\n- ISSUE-R1-001: {answer}", PLACED, previous=OLD) == []


@for_each(
    ("line", "check", "expected"),
    [
        ("There are colours.", True, [("H4",)]),
        ("There are colours.", False, []),  # enable_semantic_check
        ("Large uploads exhaust no memory; the server refuses them.", True, []),
    ],
)
def test_a_change_in_other_words_than_the_impact_is_partial(
    line: str, check: bool, expected: list[tuple[str, ...]]
) -> None:
    text = OLD.replace("There are limits.", line) + "\n\n- ISSUE-R1-001: fixed"

    assert fired(text, PLACED, previous=OLD, enable_semantic_check=check) == expected


def test_a_section_that_is_gone_is_for_a_person_to_look_at() -> None:
    judgement = judge("# Spec\n\n- ISSUE-R1-001: fixed", PLACED, previous=OLD)

    assert judgement.flags == ()
    assert [(alert.level, alert.codes) for alert in judgement.alerts] == [("review", ("ISSUE-R1-001",))]


@for_each(("touched", "expected"), [(False, [("H4",)]), (True, []), (None, [])])
def test_whether_a_place_changed_may_be_known_without_documents(
    touched: bool | None, expected: list[tuple[str, ...]]
) -> None:
    finding = watched(location="app.py:7", impact=IMPACT, touched=touched)

    assert fired("- ISSUE-R1-001: fixed", finding) == expected


# --- H5: deflection ---------------------------------------------------------------------------------------

DEFLECTS = "### Response to ISSUE-R1-001\n\nThis is not a real issue."


def test_a_deflecting_phrase_on_an_unchanged_section_is_flagged_for_review() -> None:
    found = flag(f"{OLD}\n\n{DEFLECTS}", PLACED, previous=OLD)

    assert found.heuristics == ("H4", "H5")
    assert (found.level, found.confidence) == ("review", "high")
    assert 'phrase: "not a real issue"' in found.evidence


def test_an_alternative_makes_a_phrase_a_critique() -> None:
    text = (
        "### Response to ISSUE-R1-001\n\nReviewer misunderstands the limits.\n\nAlternative: a table of them."
    )

    assert fired(text) == []


def test_a_phrase_beside_a_substantive_change_is_no_deflection() -> None:
    text = OLD.replace("There are limits.", "Large uploads exhaust no memory; the server refuses them.")

    assert fired(f"{text}\n\n{DEFLECTS}", PLACED, previous=OLD) == []


def test_an_explicit_disagreement_is_no_silent_one() -> None:
    text = (
        "## DISAGREE: ISSUE-R1-001\n**Reviewer Concern:** a\n**Engineer Position:** b\n"
        "**Rationale:** The reviewer misreads it; not a real issue."
    )

    assert fired(text) == []


def test_a_phrase_about_another_finding_is_none_about_this_one() -> None:
    text = "### ISSUE-R1-001\n\nA table.\n\n### ISSUE-R1-002\n\nNot a real problem."

    assert fired(text, watched(1), watched(2)) == [("H5",)]


# --- Levels -----------------------------------------------------------------------------------------------

LEVELS = [
    (HIGH, 1, 0, "log"),
    (HIGH, 2, 0, "warn"),  # unaddressed_high_threshold
    (HIGH, 1, 2, "log"),
    (CRITICAL, 0, 1, "warn"),
    (CRITICAL, 0, 2, "block"),
    (CRITICAL, 5, 1, "warn"),
    (MEDIUM, 5, 5, "log"),
]


@for_each(("severity", "highs", "criticals", "expected"), LEVELS)
def test_the_level_goes_by_how_many_are_unanswered(
    severity: Severity, highs: int, criticals: int, expected: str
) -> None:
    assert round_level(severity, highs, criticals) == expected


def test_the_thresholds_are_settings() -> None:
    settings = replace(
        DEFAULTS, unaddressed_high_threshold=1, unaddressed_critical_threshold=2, critical_block=3
    )

    assert round_level(HIGH, 1, 0, settings) == "warn"
    assert [round_level(CRITICAL, 0, count, settings) for count in (1, 2, 3)] == ["log", "warn", "block"]


def test_one_critical_warns_and_two_block() -> None:
    one, two = watched(1, CRITICAL), watched(2, CRITICAL)

    assert [each.level for each in judge("x", one).flags] == ["warn"]
    assert [each.level for each in judge("x", one, two).flags] == ["block", "block"]
    assert [each.level for each in judge("- ISSUE-R1-002: fixed", one, two).flags] == ["warn"]


def test_a_concern_unanswered_in_three_rounds_is_systematic() -> None:
    """Rounds 3 and 4 before this one, of any severity."""
    found = flag("x", watched(severity=MEDIUM, silent_rounds=(3, 4)))

    assert (found.level, found.heuristics) == ("systematic", ("H1",))
    assert "the same concern found no answer in rounds: 3, 4" in found.evidence


@for_each("rounds", [(4,), (4, 4)])
def test_two_rounds_are_no_pattern_yet(rounds: tuple[int, ...]) -> None:
    assert judge("x", watched(severity=MEDIUM, silent_rounds=rounds)).flags == ()
    assert flag("x", watched(silent_rounds=rounds)).level == "log"


def test_an_answer_ends_a_pattern() -> None:
    assert judge("- ISSUE-R1-001: fixed", watched(severity=MEDIUM, silent_rounds=(3, 4))).flags == ()


def test_several_heuristics_are_one_flag_with_all_the_evidence() -> None:
    finding = replace(PLACED, rollbacks=("A", "B"), is_claimed_resolved=True, gap="GAP-FLOW-001")
    found = flag(OLD, finding, previous=OLD)

    assert found.heuristics == ("H1", "H2", "H3", "H4")
    assert found.confidence == "high"
    assert found.overlap == 0.0


def test_the_alerts_say_what_a_round_amounts_to_the_strongest_first() -> None:
    findings = [
        watched(1, CRITICAL), watched(2, CRITICAL), watched(3), watched(4),
        watched(5, MEDIUM, silent_rounds=(1, 2)),
    ]  # fmt: skip

    assert [(alert.level, [code[-3:] for code in alert.codes]) for alert in judge("x", *findings).alerts] == [
        ("systematic", ["005"]), ("block", ["001", "002"]), ("warn", ["003", "004"]),
    ]  # fmt: skip


# --- The card ---------------------------------------------------------------------------------------------


def test_the_card_shows_the_facts() -> None:
    """SIL-11."""
    found = flag(
        f"{OLD}\n\n- ISSUE-R1-002: fixed",
        replace(PLACED, gap="GAP-FLOW-001", silent_rounds=(2,)),
        watched(2, location=""),
        watched(3, MEDIUM),
        previous=OLD,
    )

    assert found.evidence == (
        f'ISSUE-R1-001 (high): "{LIMITS}"',
        "no table row, heading, bold lead-in, check box or DISAGREE block names it",
        "1 of 2 other findings are answered",
        "GAP-FLOW-001 is worked on",
        'section "Limits" is unchanged',
        "the same concern found no answer in rounds: 2",
    )


def test_a_long_quote_is_cut() -> None:
    assert len(flag("x", watched(title="word " * 200)).evidence[0]) < 350


LONG = "A sentence of a document of normal length. " * 60


@for_each(
    ("document", "facts", "expected"),
    [
        ("- ISSUE-R1-002: fixed", {}, {"forgot? other findings are answered", "forgot? the output is short",
         "forgot? it was never passed over before", "avoided? its neighbours are answered"}),
        ("x", {}, {"forgot? the output is short", "forgot? it was never passed over before"}),
        (LONG, {"silent_rounds": (1,)}, {"avoided? the output has its normal length",
         "avoided? it was passed over before"}),
    ],
    ids=["neighbours", "short", "history"],
)  # fmt: skip
def test_signs_of_forgetting_and_of_avoiding_are_beside_the_evidence(
    document: str, facts: dict[str, Any], expected: set[str]
) -> None:
    judgement = judge(document, watched(1, **facts), watched(2, MEDIUM))

    assert set(judgement.flags[0].signs) == expected


# --- Work -------------------------------------------------------------------------------------------------


@for_each(
    "make",
    [
        lambda n: "## Limits\n\nwords of it\n" * n,
        lambda n: "# a\n## b\n### c\n" * n,
        lambda n: "word " * n,
        lambda n: '"' + "quote " * n + '"',
    ],
    ids=["sections", "nested", "one line", "quotes"],
)
def test_the_work_grows_with_the_length(make: Any) -> None:
    findings = [watched(number, location="Limits, words", impact=IMPACT) for number in range(1, 20)]

    assert growth(lambda text: judge(text, *findings, previous=text + "\nx"), make, 300) < QUADRATIC / 2


def test_the_work_grows_with_the_findings() -> None:
    def read(text: str) -> Judgement:
        count = len(text)
        findings = [watched(number, location="Limits", impact=IMPACT) for number in range(1, count + 1)]
        return judge("The limits of uploads.", *findings, previous=OLD)

    assert growth(read, lambda n: "x" * n, 100) < QUADRATIC / 2
