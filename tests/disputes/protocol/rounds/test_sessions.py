"""A session walked through: what is due when, what is answered, and what nobody answered (SIL-6, SIL-7)."""

from collections.abc import Iterable

from disputes.protocol.rounds.sessions import ResponseTurn, ReviewTurn, Session, Turn, walk_session
from disputes.protocol.silence.suspicion import Watched
from tasks.states import Severity
from tests.cases import for_each

A, B = "GAP-FLOW-001", "GAP-FLOW-002"
HIGH, LOW, CRITICAL = Severity.HIGH, Severity.LOW, Severity.CRITICAL


def finding(number: int, gap: str = A, severity: Severity | None = HIGH, round_: int = 1) -> Watched:
    return Watched(
        f"ISSUE-R{round_}-{number:03d}", number, severity, title=f"Concern number {number}", gap=gap
    )


def review(*findings: Watched, round_: int = 1, **facts: tuple[str, ...]) -> ReviewTurn:
    return ReviewTurn(round_, findings, name=f"review {round_}", **facts)


def document(gap: str, body: str = "", round_: int = 2) -> ResponseTurn:
    return ResponseTurn(round_, f"## Gap Resolution: {gap}\n\n{body}", name=f"document {round_}")


def walk(*turns: Turn) -> Session:
    return walk_session(turns)


def codes_of(session: Session, indexes: Iterable[int]) -> tuple[str, ...]:
    """The names of these findings: their codes, or #n for one without."""
    return tuple(session.findings[at].code or f"#{session.findings[at].ordinal}" for at in sorted(indexes))


def told(session: Session, step: int) -> dict[str, tuple[str, ...]]:
    """What one step did, by codes."""
    found = session.steps[step]
    flags = found.judgement.flags if found.judgement else ()
    return {
        "due": codes_of(session, found.due),
        "pending": codes_of(session, found.pending),
        "answered": codes_of(session, found.answered),
        "flags": tuple(flag.code for flag in flags),
    }


ONE = ("ISSUE-R1-001",)


def test_a_finding_waits_while_the_documents_are_about_other_gaps() -> None:
    """SIL-6"""
    session = walk(review(finding(1)), document(B))

    assert told(session, 1) == {"due": (), "pending": ONE, "answered": (), "flags": ()}


def test_it_is_due_and_answered_in_the_round_that_proposes_its_gap() -> None:
    session = walk(review(finding(1)), document(B), document(A, "| ISSUE-R1-001 | a table |", 3))

    assert told(session, 2) == {"due": (), "pending": (), "answered": ONE, "flags": ()}
    assert session.never_answered == ()


def test_it_is_flagged_in_the_round_that_proposes_its_gap_without_a_word_on_it() -> None:
    session = walk(review(finding(1)), document(A))

    assert told(session, 1) == {"due": ONE, "pending": (), "answered": (), "flags": ONE}


def test_a_gap_that_was_assigned_is_due_even_if_the_document_leaves_it_out() -> None:
    session = walk(review(finding(1)), ResponseTurn(2, f"## Gap Resolution: {B}", assigned=(A,)))

    assert told(session, 1)["flags"] == ONE


def test_a_finding_is_due_when_its_gap_is_about_to_be_accepted() -> None:
    """SIL-7."""
    session = walk(review(finding(1)), document(B), review(round_=2, closed=(A,)))

    assert told(session, 2)["due"] == ONE
    assert told(session, 2)["flags"] == ONE


def test_the_review_that_accepts_a_gap_makes_its_own_findings_not_due() -> None:
    session = walk(review(finding(1), closed=(A,)))

    assert told(session, 0) == {"due": (), "pending": (), "answered": (), "flags": ()}


def test_at_the_end_the_sweep_lists_what_nobody_answered_the_gravest_first() -> None:
    """SIL-7: at termination."""
    session = walk(
        review(finding(1, severity=LOW), finding(2, B), finding(3), finding(4, B, None), finding(5, B)),
        document(A, "- ISSUE-R1-003: fixed"),
        review(finding(1, B, CRITICAL, round_=2), round_=2),
    )

    assert [(left.finding.code, left.was_due, left.review) for left in session.never_answered] == [
        ("ISSUE-R2-001", (), "review 2"),
        ("ISSUE-R1-002", (), "review 1"),
        ("ISSUE-R1-005", (), "review 1"),
        ("ISSUE-R1-004", (), "review 1"),
        ("ISSUE-R1-001", (2,), "review 1"),
    ]


@for_each("how", ["confirmed", "settled"])
def test_what_is_confirmed_or_settled_waits_for_no_answer(how: str) -> None:
    session = walk(review(finding(1)), review(round_=2, **{how: ONE}), document(A, round_=3))

    assert told(session, 2)["flags"] == ()
    assert session.never_answered == ()


def test_a_withdrawn_finding_waits_for_no_answer() -> None:
    withdrawn = Watched("ISSUE-R1-001", 1, HIGH, gap=A, is_settled=True)

    assert walk(review(withdrawn), document(A)).never_answered == ()


def test_an_id_that_comes_again_means_the_newest_finding() -> None:
    """ID-2."""
    session = walk(
        review(finding(1)), document(B), review(finding(1), round_=2), document(A, "- ISSUE-R1-001: fixed", 3)
    )

    assert session.steps[3].answered == (1,)
    assert [left.round for left in session.never_answered] == [1]


def test_a_concern_that_is_passed_over_in_three_rounds_is_systematic() -> None:
    """The same id in rounds 3, 4 and 5, of any severity."""
    session = walk(
        review(finding(1, severity=LOW), round_=2),
        document(A, round_=3), document(A, "More.", 4), document(A, "Most.", 5),
    )  # fmt: skip
    levels = [[flag.level for flag in step.judgement.flags] for step in session.steps[1:] if step.judgement]

    assert levels == [[], [], ["systematic"]]


def test_a_concern_under_a_new_id_goes_on_where_the_old_one_was() -> None:
    session = walk(
        review(Watched("ISSUE-R1-001", 1, LOW, title="Upload limits undefined", gap=A)),
        document(A, round_=2), document(A, "More.", 3),
        review(Watched("ISSUE-R3-007", 7, LOW, title="Undefined limits of uploads", gap=A), round_=3),
        document(A, "Most.", 4),
    )  # fmt: skip
    last = session.steps[-1].judgement

    assert last is not None
    assert [(flag.code, flag.level) for flag in last.flags] == [
        ("ISSUE-R1-001", "systematic"), ("ISSUE-R3-007", "systematic"),
    ]  # fmt: skip


def test_a_round_counts_once_for_a_pattern() -> None:
    session = walk(review(finding(1)), document(A), review(round_=2, closed=(A,)))

    assert session.never_answered[0].was_due == (2,)


def test_a_finding_of_unknown_gap_is_due_where_the_document_covers_all_that_were_reviewed() -> None:
    """FND-5."""
    unknown = finding(1, gap="")
    both = ResponseTurn(2, f"## Gap Resolution: {A}\n\n## Gap Resolution: {B}")

    assert told(walk(review(unknown, proposed=(A, B)), document(A)), 1)["pending"] == ONE
    assert told(walk(review(unknown, proposed=(A, B)), both), 1)["due"] == ONE


def test_without_any_gap_a_finding_is_due_where_its_review_is_answered() -> None:
    two = [finding(1, gap=""), finding(2, gap="")]

    assert told(walk(review(*two), document(A)), 1)["due"] == ()
    assert told(walk(review(*two), document(A, "- ISSUE-R1-002: fixed")), 1)["due"] == ONE
    assert told(walk(review(*two), ResponseTurn(2, "Some words.")), 1)["due"] == (*ONE, "ISSUE-R1-002")


def test_a_document_that_names_no_gap_goes_on_with_the_last_review() -> None:
    session = walk(
        review(finding(1)), review(finding(1, B, round_=2), round_=2), ResponseTurn(3, "Some words.")
    )

    assert told(session, 2) == {
        "due": ("ISSUE-R2-001",), "pending": ONE, "answered": (), "flags": ("ISSUE-R2-001",),
    }  # fmt: skip


def test_a_change_is_held_against_the_document_that_was_reviewed() -> None:
    """H4: not against the one in between, which was about another gap."""
    placed = Watched("ISSUE-R1-001", 1, HIGH, location="Limits", impact="Uploads exhaust memory", gap=A)
    body = "### Limits\n\nThere are limits."
    session = walk(
        document(A, body, 1), review(placed), document(B, "### Limits\n\nOthers.", 2),
        document(A, f"{body}\n\n### Answers\n\n- ISSUE-R1-001: fixed", 3),
    )  # fmt: skip
    last = session.steps[-1].judgement

    assert last is not None
    assert [flag.heuristics for flag in last.flags] == [("H4",)]


def test_a_gap_declared_resolved_over_an_open_finding_is_a_downgrade() -> None:
    """H3."""
    session = walk(review(finding(1)), document(A, "**Status:** RESOLVED"))
    last = session.steps[-1].judgement

    assert last is not None
    assert [flag.heuristics for flag in last.flags] == [("H1", "H3")]


def test_a_finding_without_an_id_is_named_by_its_place_in_its_review() -> None:
    session = walk(review(Watched("", 3, LOW, gap=A)), document(A))

    assert told(session, 1)["due"] == ("#3",)


def test_an_empty_session_leaves_nothing() -> None:
    assert walk() == Session((), (), ())
