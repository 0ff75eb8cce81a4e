"""A coder that declines too much: asked once to justify it, then a card for a human."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from disputes import intake, opening, rulings, severity_changes
from disputes.completion import rates, rollbacks
from disputes.models import Conflict, Decision
from disputes.protocol.responses.rates import RateTally, tally
from disputes.protocol.responses.response import read_response
from disputes.protocol.reviews.review import read_review
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Answer, Finding, Project, Submission, Task
from tests.asking import fresh
from tests.cases import for_each, rows_put_back
from tests.disputes.prompt_lines import told
from tests.factories import create_submission, create_task

pytestmark = pytest.mark.django_db

CODER, REVIEWER = Actor("run", "coder-1"), Actor("run", "reviewer-1")
JUSTIFIED = "\n## Justification\n\nThe specification says otherwise, see docs/SPEC.md.\n"


# --- Scenes -----------------------------------------------------------------------------------------------


@pytest.fixture
def task(ledger: Project) -> Task:
    return create_task(ledger, status="in_progress", round=1)


def settings(**values: Any) -> None:
    Project.objects.update(settings=values)


def points(number: int, severity: str = "high", name: str = "Point") -> list[dict[str, Any]]:
    """So many findings in places of their own, in words of their own."""
    words = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet"]
    folder = name.lower().replace(" ", "-")
    return [
        {"title": f"{name} {word}", "severity": severity, "location": f"src/{folder}/{word}.py:1"}
        for word in words[:number]
    ]


def review(submission: Submission, findings: list[dict[str, Any]], *, approves: bool = False) -> intake.Taken:
    read = read_review({"findings": findings})
    submission.refresh_from_db()
    return intake.take_review(submission, read, approves=approves, actor=REVIEWER)


def rejected(task: Task, number: int, severity: str = "high") -> Task:
    """Round 1 was handed in and rejected for so many findings."""
    review(hand_in(task), points(number, severity))
    return fresh(task)


def declined(*codes: str) -> str:
    return "".join(
        f"## DISAGREE: {code}\n\n**Reviewer Concern:** It is wrong.\n\n**Rationale:** It is documented.\n\n"
        for code in codes
    )


def addressed(*codes: str) -> str:
    return "".join(f"- {code}: addressed\n" for code in codes)


def codes(task: Task) -> list[str]:
    return [finding.code for finding in intake.findings_to_answer(fresh(task))]


def hand_in(task: Task, response: str = "", **kwargs: Any) -> Submission:
    """A coder reads its prompt and hands in, as over the API."""
    task = fresh(task)
    rulings.mark_used(rulings.rulings_for_prompt(task), 7)
    read = read_response(response, strict=True)
    known = intake.check_response(task, read)
    submission = create_submission(task, response=response, **kwargs)
    task.submit(actor=CODER)
    intake.take_answers(submission, read, known, actor=CODER)
    if any(c.effect == "hold" for c in opening.open_conflicts(task)):
        task.hold(actor=CODER, note="held")
    return submission


def some(task: Task, number: int) -> str:
    """A response that declines the first so many findings, and says of the others that they are done."""
    due = codes(task)
    return addressed(*due[number:]) + declined(*due[:number])


def alert() -> Conflict:
    return Conflict.objects.get(kind="alert", status="open")


def has_alert() -> bool:
    return Conflict.objects.filter(kind="alert").exists()


def rule(conflict: Conflict, option: str, user: User, **kwargs: Any) -> Decision:
    values = {"undo_seconds": 0} | kwargs
    return rulings.decide(Conflict.objects.get(pk=conflict.pk), option, user=user, **values)


def state(conflict: Conflict) -> tuple[str, str, str]:
    stored = Conflict.objects.select_related("dispute").get(pk=conflict.pk)
    return stored.status, stored.followed, stored.dispute.status


def disagreements(status: str = "open") -> list[str]:
    found = Conflict.objects.filter(kind="disagreement", status=status).order_by("pk")
    return list(found.values_list("finding__code", flat=True))


def tallies(task: Task) -> list[RateTally]:
    """Each round of the task that answered a review, in numbers, oldest first."""
    return [tally(number, rated) for number, rated in sorted(rates.rated_rounds(fresh(task)).items())]


# --- RL-1: asked once to justify it -------------------------------------------------------------------------


def refusal(task: Task, response: str) -> Refused:
    with pytest.raises(Refused) as refused:
        hand_in(task, response)
    return refused.value


def test_six_disagreements_are_refused_with_their_lines(task: Task) -> None:
    rejected(task, 6)
    refused = refusal(task, declined(*codes(task)))
    assert (refused.code, refused.status) == ("too_many_disagreements", 422)
    assert "6 findings in one round (limit: 5)" in str(refused)
    assert "## Justification" in refused.hint
    assert [detail["line"] for detail in refused.details] == [1, 7, 13, 19, 25, 31]
    assert refused.details[0]["reason"] == "ISSUE-R1-001: withdraw the disagreement, or justify it"
    assert not Answer.objects.exists()
    assert fresh(task).status == "in_progress"


def test_five_are_not(task: Task) -> None:
    rejected(task, 6)
    hand_in(task, some(task, 5))
    assert disagreements() == codes_of(5)


def codes_of(number: int, round_: int = 1) -> list[str]:
    return [f"ISSUE-R{round_}-{n:03d}" for n in range(1, number + 1)]


@for_each("heading", ["## Justification", "### Justification of the disagreements", "# JUSTIFICATION"])
def test_with_a_justification_they_are_taken_and_a_human_is_asked(task: Task, heading: str) -> None:
    rejected(task, 6)
    hand_in(task, declined(*codes(task)) + JUSTIFIED.replace("## Justification", heading))
    assert disagreements() == codes_of(6)
    card = alert()
    assert (card.origin, card.opened_as, card.effect, card.severity) == ("rate", "system", "hold", "high")
    assert card.question == "The coder declined 6 findings in one round (limit: 5)."
    assert "Declined findings:" in card.evidence
    assert fresh(task).status == "disputed"


@for_each("words", ["\n```\n## Justification\n```\n", "\n> ## Justification\n", "\nJustification: none.\n"])
def test_only_a_heading_of_the_response_justifies(task: Task, words: str) -> None:
    """ID-3: what is fenced or quoted is an example."""
    rejected(task, 6)
    assert refusal(task, declined(*codes(task)) + words).code == "too_many_disagreements"


def test_optional_findings_count_as_well(task: Task) -> None:
    """Six LOW ones block the round, and concern no share of graver ones."""
    rejected(task, 6, "low")
    assert refusal(task, declined(*codes(task))).code == "too_many_disagreements"
    hand_in(task, declined(*codes(task)) + JUSTIFIED)
    assert [hit for hit in alert().evidence if "HIGH/CRITICAL" in hit] == []
    assert (alert().effect, disagreements()) == ("hold", [])


def test_one_point_under_two_codes_counts_once(task: Task) -> None:
    rejected(task, 1)
    again = points(1)[0] | {"code": "ISSUE-R1-001"}
    review(hand_in(task, addressed("ISSUE-R1-001"), since_last_round=""), [again, *points(6, name="New")[1:]])
    due = codes(task)
    assert len(due) == 6
    assert refusal(task, declined("ISSUE-R1-001", *due[1:])).code == "too_many_disagreements"


@for_each(("limit", "number"), [(0, 1), (2, 3), (8, 9)])
def test_the_project_says_how_many(task: Task, limit: int, number: int) -> None:
    settings(disagree_absolute=limit)
    rejected(task, 9)
    assert refusal(task, some(task, number)).code == "too_many_disagreements"
    hand_in(task, some(task, number - 1))


def test_what_a_person_lowered_is_no_conflict_and_does_not_count(task: Task, tom: User) -> None:
    rejected(task, 6)
    for finding in Finding.objects.order_by("pk")[:3]:
        severity_changes.change_severity(finding, "low", user=tom, reason="Taste.")
    hand_in(task, declined(*codes(task)))
    assert disagreements() == codes_of(6)[3:]


# --- RL-2 and RL-3: a human is told, nothing is held by it --------------------------------------------------


@for_each(
    ("findings", "number", "warns"),
    [(4, 2, False), (4, 3, True), (2, 1, False), (2, 2, True), (1, 1, False)],
)
def test_more_than_half_of_a_round_is_a_warning(task: Task, findings: int, number: int, warns: bool) -> None:
    """Vectors 16 and 17; one single disagreement never warns"""
    rejected(task, findings)
    hand_in(task, some(task, number))
    assert has_alert() == warns


def test_a_warning_holds_nothing(task: Task, tom: User) -> None:
    rejected(task, 2)
    hand_in(task, some(task, 2))
    assert alert().effect == "log"
    for conflict in Conflict.objects.filter(kind="disagreement"):
        rule(conflict, "uphold_coder", tom)
    assert fresh(task).status == "review"
    assert state(alert()) == ("open", "", "open")


@for_each(
    ("values", "findings", "number", "warns"),
    [
        ({"disagree_round_share": 0.8}, 4, 3, False),
        ({"disagree_round_share": 0.2}, 4, 1, True),
        ({"disagree_min_denominator": 1}, 1, 1, True),
        ({"disagree_min_denominator": 5}, 4, 4, False),
    ],
)
def test_the_project_says_which_share(
    task: Task, values: dict[str, Any], findings: int, number: int, warns: bool
) -> None:
    settings(**values)
    rejected(task, findings)
    hand_in(task, some(task, number))
    assert has_alert() == warns


def test_a_share_is_taken_of_grave_findings(task: Task) -> None:
    rejected(task, 4, "medium")
    hand_in(task, declined(*codes(task)))
    assert not has_alert()


def test_optional_silence_belongs_to_the_share(task: Task) -> None:
    """They had to be answered too: 2 of 4, not 2 of 2."""
    settings(mandatory=["critical"])
    rejected(task, 4)
    hand_in(task, declined(*codes(task)[:2]))
    assert not has_alert()
    assert tallies(task)[0].answered == 4


def test_three_rounds_together_alert_as_the_project_says_over_how_many(task: Task, tom: User) -> None:
    """2/5, 2/5, 3/5 are 46.7 %; people rule for the coder meanwhile"""
    submission = hand_in(task)
    for number in (2, 3, 4):
        review(submission, points(5, name=f"Round {number}"))
        if number < 4:
            submission = hand_in(task, some(task, 2))
            for conflict in Conflict.objects.filter(kind="disagreement", status="open"):
                rule(conflict, "uphold_coder", tom)

    for values, alerts in (
        ({"disagree_round_share": 0.9}, True),
        ({"disagree_round_share": 0.9, "disagree_session_share": 0.5}, False),
        ({"disagree_round_share": 0.9, "session_window": 4}, False),
    ):
        with rows_put_back():
            settings(**values)
            assert not has_alert(), values
            hand_in(task, some(task, 3))
            assert has_alert() == alerts, values

    hand_in(task, some(task, 3))
    card = alert()
    assert card.effect == "log"
    assert any(
        "7 of 15 critical and high findings of the last 3 rounds (46.7%)" in line for line in card.evidence
    )
    assert [(each.disputed, each.answered) for each in tallies(task)] == [(2, 5), (2, 5), (3, 5)]


# --- How rounds are counted ---------------------------------------------------------------------------------


def test_the_last_attempt_of_a_round_counts(task: Task) -> None:
    rejected(task, 4)
    first = hand_in(task, addressed(*codes(task)), state="red")
    fresh(task).send_back(note="Red.")
    hand_in(task, some(task, 3))
    [only] = tallies(task)
    assert (only.round, only.disputed, only.answered) == (2, 3, 4)
    assert first.answers.count() == 4


def test_what_could_not_be_fetched_does_not(task: Task) -> None:
    settings(policy={"high": "ship"}, disagree_absolute=9)
    rejected(task, 4)
    lost = hand_in(task, declined(*codes(task)))
    Conflict.objects.all().delete()
    Submission.objects.filter(pk=lost.pk).update(state="lost")
    fresh(task).send_back(note="Lost.")
    hand_in(task, addressed(*codes(task)))
    assert [each.disputed for each in tallies(task)] == [0]


def test_nor_do_rounds_that_were_taken_back(task: Task, lea: User) -> None:
    rejected(task, 4)
    hand_in(task, some(task, 3))
    card = alert()
    rollbacks.roll_back(fresh(task), 1, user=lea, reason="Again.")
    assert tallies(task) == []
    assert state(card) == ("moot", "", "closed")
    hand_in(task, some(task, 2))
    assert [each.disputed for each in tallies(task)] == [2]
    assert not Conflict.objects.filter(kind="alert", status="open").exists()


def test_a_point_counts_with_the_severity_that_it_was_raised_with_last(task: Task) -> None:
    """SEV-5"""
    review(hand_in(task), points(2, "medium"))
    raised = zip(codes_of(2), points(2), strict=True)
    again = [point | {"code": code, "severity": "high"} for code, point in raised]
    review(hand_in(task, addressed(*codes(task))), again)
    hand_in(task, declined(*codes(task)))
    assert [(each.disputed, each.answered) for each in tallies(task)] == [(0, 0), (2, 2)]


def test_a_converted_flag_counts_in_the_round_that_was_silent(task: Task) -> None:
    rejected(task, 2)
    submission = hand_in(task, addressed(*codes(task)))
    finding = Finding.objects.get(code="ISSUE-R1-001")
    opening.open_conflict(
        fresh(task), kind="disagreement", origin="converted", opened_as="system", question="Silent?",
        finding=finding, submission=submission, reviewer_position="Do it.", coder_position="not stated",
    )  # fmt: skip
    later = create_submission(fresh(task), round=3)
    Answer.objects.create(submission=later, finding=finding, kind="addressed")
    counted = [(each.round, each.disputed, each.explicit) for each in tallies(task)]
    assert counted == [(2, 1, 0), (3, 0, 0)]


def test_one_card_waits_and_says_the_newest(task: Task, tom: User) -> None:
    """A warning nobody has looked at becomes a card that holds when the limit of a round is passed."""
    review(hand_in(task), points(2))
    second = hand_in(task, declined(*codes(task)))
    old = alert()
    for conflict in Conflict.objects.filter(kind="disagreement"):
        rule(conflict, "uphold_coder", tom)
    review(second, points(7, "low", name="Later") + points(1, "high", name="Worse"))
    due = codes(task)
    hand_in(task, addressed(due[-1]) + declined(*due[:-1]) + JUSTIFIED)
    card = alert()
    assert (card.pk, card.effect) == (old.pk, "hold")
    assert card.question.startswith("The coder declined 7 findings")
    assert fresh(task).status == "disputed"


# --- What a human answers -----------------------------------------------------------------------------------


@pytest.fixture
def blocked(task: Task) -> Task:
    """Six findings are declined, with a justification: six conflicts and an alert that holds."""
    rejected(task, 6)
    hand_in(task, declined(*codes(task)) + JUSTIFIED)
    return fresh(task)


@for_each("option", ["accept", "check_review"])
def test_to_accept_closes_the_card_and_leaves_the_conflicts(blocked: Task, tom: User, option: str) -> None:
    card = alert()
    rule(card, option, tom)
    assert state(card) == ("decided", "applied", "open")
    assert disagreements() == codes_of(6)
    assert fresh(blocked).status == "disputed"


@for_each("option", ["accept", "check_review"])
def test_where_nothing_else_is_asked_the_task_goes_to_its_review(task: Task, tom: User, option: str) -> None:
    rejected(task, 6, "low")
    hand_in(task, declined(*codes(task)) + JUSTIFIED)
    rule(alert(), option, tom)
    assert fresh(task).status == "review"


def test_to_reduce_sends_all_of_it_back_and_the_coder_may_disagree_again(blocked: Task, tom: User) -> None:
    card = alert()
    rule(card, "reduce", tom)
    stored = fresh(blocked)
    assert (stored.status, stored.round) == ("in_progress", 3)
    assert disagreements("moot") == codes_of(6)
    assert codes(blocked) == codes_of(6)
    assert state(card) == ("decided", "waiting", "ruled")
    assert "Answer each finding again" in told(blocked)

    # What was declined must be answered anew.
    refused = refusal(blocked, addressed(*codes_of(5)))
    assert refused.code == "unanswered_findings"
    assert [detail["reason"][:12] for detail in refused.details] == ["ISSUE-R1-006"]

    hand_in(blocked, some(blocked, 2))
    assert disagreements() == codes_of(2)
    assert codes(blocked) == []
    for conflict in Conflict.objects.filter(kind="disagreement", status="open"):
        rule(conflict, "uphold_coder", tom)
    review(fresh(blocked).last_submission(), [], approves=True)
    assert fresh(blocked).status == "completed"
    assert state(card) == ("decided", "applied", "closed")


def test_what_was_answered_anew_is_asked_a_third_time_only_if_it_could_not_be_taken(
    blocked: Task, tom: User
) -> None:
    """The next hand-in is held for another disagreement before anybody reviews it."""
    rule(alert(), "reduce", tom)
    with rows_put_back():
        hand_in(blocked, some(blocked, 1))
        rule(Conflict.objects.get(kind="disagreement", status="open"), "uphold_reviewer", tom)
        assert (fresh(blocked).status, codes(blocked)) == ("in_progress", [])

    submission = hand_in(blocked, addressed(*codes(blocked)))
    for lost in ("red", "lost"):
        with rows_put_back():
            Submission.objects.filter(pk=submission.pk).update(state=lost)
            fresh(blocked).send_back(note="Red.")
            assert codes(blocked) == codes_of(6), lost


def test_what_was_ruled_on_before_stays_ruled(blocked: Task, tom: User) -> None:
    rule(Conflict.objects.get(finding__code="ISSUE-R1-001"), "uphold_coder", tom)
    rule(alert(), "reduce", tom)
    assert codes(blocked) == codes_of(6)[1:]


def test_conflicts_of_other_rounds_are_no_part_of_it(task: Task, tom: User) -> None:
    """The card lists what its round declined; what was shipped before stays before a human."""
    settings(mandatory=["critical", "high", "medium"])
    review(hand_in(task), points(1, "medium"))
    second = hand_in(task, declined(*codes(task)))
    review(second, points(2, name="Later"))
    hand_in(task, declined(*codes(task)))
    rule(alert(), "reduce", tom)
    assert disagreements() == ["ISSUE-R1-001"]
    assert codes(task) == codes_of(2, 2)


def test_what_has_landed_is_not_called_back(task: Task, tom: User) -> None:
    settings(mandatory=["critical", "high", "medium"], disagree_absolute=1)
    review(hand_in(task), points(2, "medium"))
    submission = hand_in(task, declined(*codes(task)) + JUSTIFIED)
    rule(alert(), "accept", tom)
    review(submission, [], approves=True)
    stored = fresh(task)
    assert (stored.status, stored.accepted) == ("disputed", submission)
    stored.landed(submission.sha)
    decision = Conflict.objects.get(kind="alert").decisions.get()
    card = rulings.reopen(decision, user=tom, reason="Too much.")
    with pytest.raises(Refused) as refused:
        rule(card, "reduce", tom)
    assert refused.value.code == "landed"
    assert disagreements() == codes_of(2)
    assert fresh(task).status == "disputed"


def test_clear_words_stand_in_the_next_prompt_though_other_cards_hold(blocked: Task, tom: User) -> None:
    """Both sides read them first, whenever that is."""
    card = alert()
    rule(card, "clarify", tom, text="Only the retry is in scope.")
    assert (fresh(blocked).status, disagreements()) == ("disputed", codes_of(6))
    for conflict in Conflict.objects.filter(kind="disagreement", status="open"):
        rule(conflict, "uphold_coder", tom)
    assert (fresh(blocked).status, fresh(blocked).round) == ("in_progress", 3)
    assert "Only the retry is in scope." in told(blocked)
    assert state(card)[:2] == ("decided", "waiting")
    submission = hand_in(blocked, "It is only the retry now.")
    assert "Only the retry is in scope." in told(blocked)
    review(submission, [], approves=True)
    assert state(card) == ("decided", "applied", "closed")


def test_to_clarify_takes_words(blocked: Task, tom: User) -> None:
    with pytest.raises(Refused) as refused:
        rule(alert(), "clarify", tom)
    assert refused.value.code == "text_missing"


@for_each("option", ["accept", "reduce", "check_review", "clarify"])
def test_undo_puts_everything_back(blocked: Task, tom: User, option: str) -> None:
    card = alert()
    decision = rule(card, option, tom, text="Only the retry.")
    rulings.undo(decision, user=tom)
    assert (fresh(blocked).status, fresh(blocked).round) == ("disputed", 2)
    assert disagreements() == codes_of(6)
    assert state(card) == ("open", "", "open")
    assert codes(blocked) == []


def test_undo_opens_only_what_that_ruling_withdrew(blocked: Task, tom: User) -> None:
    """The first ruling has withdrawn the conflicts; for the second, on the reopened card, none was left."""
    newer = rulings.reopen(rule(alert(), "reduce", tom), user=tom, reason="Not all of it.")
    rulings.undo(rule(newer, "reduce", tom), user=tom)
    assert disagreements() == []
    assert disagreements("moot") == codes_of(6)


def test_undo_holds_a_task_whose_conflicts_are_open_again(task: Task, tom: User) -> None:
    """The alert itself holds nothing; what it withdrew does."""
    rejected(task, 2)
    hand_in(task, declined(*codes(task)))
    submission = fresh(task).last_submission()
    other = opening.open_conflict(
        fresh(task), kind="disagreement", origin="cli", opened_as="human", question="Ours?", severity="high",
        submission=submission, reviewer_position="Yes.", coder_position="No.",
    )  # fmt: skip
    decision = rule(alert(), "reduce", tom)
    assert fresh(task).status == "disputed"
    rule(other, "uphold_coder", tom)
    assert fresh(task).status == "in_progress"
    rulings.undo(decision, user=tom)
    assert fresh(task).status == "disputed"
    assert disagreements() == codes_of(2)


def test_what_the_coder_has_answered_since_is_not_taken_back(task: Task, tom: User) -> None:
    settings(mandatory=["critical", "high", "medium"], disagree_absolute=1)
    review(hand_in(task), points(2, "medium"))
    submission = hand_in(task, declined(*codes(task)) + JUSTIFIED)
    decision = rule(alert(), "reduce", tom)
    create_submission(fresh(task))
    with pytest.raises(Refused) as refused:
        rulings.undo(decision, user=tom)
    assert refused.value.code == "moved_on"
    assert submission.answers.count() == 2


def test_nor_is_what_no_prompt_ever_uses(task: Task, tom: User) -> None:
    """Else a slip of the hand could be mended rounds later, and hold a task over work that is gone."""
    rejected(task, 6, "low")
    submission = hand_in(task, declined(*codes(task)) + JUSTIFIED)
    decision = rule(alert(), "accept", tom)
    review(submission, points(1, name="Later"))
    hand_in(task, addressed(*codes(task)))
    with pytest.raises(Refused) as refused:
        rulings.undo(decision, user=tom)
    assert refused.value.code == "moved_on"
    assert fresh(task).status == "review"


def test_an_alert_that_is_reopened_asks_again(blocked: Task, tom: User) -> None:
    card = alert()
    decision = rule(card, "accept", tom)
    newer = rulings.reopen(decision, user=tom, reason="It goes on.")
    assert (newer.kind, newer.origin, newer.effect, newer.evidence) == (
        "alert", "reopened", "hold", card.evidence,
    )  # fmt: skip
    rule(newer, "reduce", tom)
    assert codes(blocked) == codes_of(6)
