"""A hand-in becomes rows: a review its findings, a response its answers, both their conflicts."""

import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from disputes import intake, opening, rulings
from disputes.closed_findings import settled_findings
from disputes.models import Conflict
from disputes.protocol.responses.response import read_response
from disputes.protocol.reviews.review import read_review
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Answer, Event, Finding, Project, Review, Submission, Task
from tests.asking import fresh, kinds
from tests.cases import for_each
from tests.factories import create_finding, create_project, create_review, create_submission, create_task

pytestmark = pytest.mark.django_db

CODER, REVIEWER = Actor("run", "coder-1", model="some-model"), Actor("run", "reviewer-1")
ALL = {"mandatory": ["critical", "high", "medium", "low"]}
HIGH = {"title": "Failed calls are retried at once", "severity": "high", "suggestion": "Wait between tries."}
OTHER = {"title": "The tests wait for seconds", "severity": "high"}
LOW = {"title": "A name is vague", "severity": "low"}


@pytest.fixture
def task(ledger: Project) -> Task:
    return create_task(ledger, status="in_progress", round=1)


def addressed(*codes: str) -> dict[str, Any]:
    return {"answers": [{"finding": code, "kind": "addressed", "text": "Done."} for code in codes]}


def declined(*codes: str) -> dict[str, Any]:
    return {
        "answers": [
            {"finding": code, "kind": "declined", "text": "No.", "rationale": "It is documented."}
            for code in codes
        ]
    }


def hand_in(task: Task, response: str | dict[str, Any] = "", *, state: str = "verified") -> Submission:
    """A coder hands in, as the API does it."""
    task.refresh_from_db()
    read = read_response(response)
    known = intake.check_response(task, read)
    submission = create_submission(task, state=state, by_model=CODER.model)
    task.submit(actor=CODER)
    intake.take_answers(submission, read, known, actor=CODER)
    if any(conflict.effect == "hold" for conflict in opening.open_conflicts(task)):
        task.hold(actor=CODER, note="held")
    return submission


def review(
    submission: Submission, *findings: dict[str, Any], approves: bool = False, **kwargs: Any
) -> intake.Taken:
    document = {"findings": list(findings)} | kwargs.pop("document", {})
    actor = kwargs.pop("actor", REVIEWER)
    return intake.take_review(submission, read_review(document), approves=approves, actor=actor, **kwargs)


def rule(task: Task, option: str, user: User) -> None:
    conflict = Conflict.objects.get(dispute__task=task, status="open")
    rulings.decide(conflict, option, user=user, undo_seconds=0)
    task.refresh_from_db()


def due(task: Task) -> list[str]:
    """The codes that the next submission must answer."""
    return [finding.code for finding in intake.findings_to_answer(Task.objects.get(pk=task.pk))]


def answers(submission: Submission) -> dict[str, str]:
    return dict(submission.answers.values_list("finding__code", "kind"))


# --- What the next submission must answer -----------------------------------------------------------------


def test_a_first_submission_has_nothing_to_answer(task: Task) -> None:
    assert due(task) == []


def test_all_findings_of_a_rejection_are_to_be_answered(task: Task) -> None:
    review(hand_in(task), HIGH, LOW)
    assert due(task) == ["ISSUE-R1-001", "ISSUE-R1-002"]


def test_only_the_last_review_counts(task: Task) -> None:
    review(hand_in(task), HIGH)
    review(hand_in(task, addressed("ISSUE-R1-001")), OTHER)
    assert due(task) == ["ISSUE-R2-001"]


def test_what_was_answered_in_the_round_is_not_asked_again(task: Task) -> None:
    review(hand_in(task), HIGH, LOW)
    hand_in(task, addressed("ISSUE-R1-001"))
    assert due(task) == []


@for_each("state", ["red", "lost"])
def test_what_could_not_be_taken_has_answered_nothing(task: Task, state: str) -> None:
    review(hand_in(task), HIGH, LOW)
    first = hand_in(task, addressed("ISSUE-R1-001"))
    Submission.objects.filter(pk=first.pk).update(state=state)
    fresh(task).send_back(note="Red.")
    assert due(task) == ["ISSUE-R1-001", "ISSUE-R1-002"]


def test_a_point_in_dispute_is_not_to_be_answered(task: Task) -> None:
    review(hand_in(task), HIGH, OTHER)
    hand_in(task, {"answers": [*declined("ISSUE-R1-001")["answers"], *addressed("ISSUE-R1-002")["answers"]]})
    assert due(task) == []


@for_each("option", ["uphold_reviewer", "uphold_coder"])
def test_nor_is_one_that_a_human_ruled_on(task: Task, tom: User, option: str) -> None:
    review(hand_in(task), HIGH)
    hand_in(task, declined("ISSUE-R1-001"))
    rule(task, option, tom)
    assert due(task) == []


def test_a_held_submission_has_answered_the_rest(task: Task, tom: User) -> None:
    review(hand_in(task), HIGH, OTHER)
    both = {"answers": [*declined("ISSUE-R1-001")["answers"], *addressed("ISSUE-R1-002")["answers"]]}
    hand_in(task, both)
    rule(task, "uphold_reviewer", tom)
    assert (task.status, task.round, due(task)) == ("in_progress", 3, [])


def test_a_point_whose_conflict_is_moot_is_to_be_answered(task: Task) -> None:
    review(hand_in(task), HIGH)
    conflict = opening.open_conflict(
        fresh(task), kind="disagreement", origin="cli", opened_as="human", question="Really?",
        finding=Finding.objects.get(), reviewer_position="Yes.", coder_position="No.",
    )  # fmt: skip
    assert due(task) == []
    opening.close(conflict.dispute, "moot")
    assert due(task) == ["ISSUE-R1-001"]


def test_an_approved_submission_that_clashed_leaves_its_notes_to_answer(task: Task) -> None:
    submission = hand_in(task)
    review(submission, LOW, approves=True)
    fresh(task).clash(note="It no longer applies.")
    assert due(task) == ["ISSUE-R1-001"]
    hand_in(task)
    assert due(task) == []


def test_findings_of_other_tasks_are_theirs(task: Task) -> None:
    create_finding(create_review(create_submission(create_task(task.project))))
    assert due(task) == []


# --- What a response may not do ---------------------------------------------------------------------------


def refuse(task: Task, code: str, response: str | dict[str, Any]) -> Refused:
    with pytest.raises(Refused) as refusal:
        intake.check_response(fresh(task), read_response(response))
    assert (refusal.value.code, refusal.value.status) == (code, 422)
    return refusal.value


def test_it_may_not_name_findings_that_do_not_exist(task: Task) -> None:
    review(hand_in(task), HIGH)
    refusal = refuse(task, "unknown_finding", "- ISSUE-R1-001: fixed\n- ISSUE-R7-001: fixed\n")
    assert refusal.details == [{"line": 2, "reason": f"ISSUE-R7-001 is not a finding of {task.ref}"}]
    assert "ISSUE-R1-001" in refusal.hint


def test_nor_those_of_another_task(task: Task) -> None:
    other = create_finding(create_review(create_submission(create_task(task.project))), code="ISSUE-R1-777")
    assert "none is open" in refuse(task, "unknown_finding", addressed(other.code)).hint


def test_it_may_not_pass_over_a_mandatory_finding(task: Task) -> None:
    review(hand_in(task), HIGH, OTHER, LOW)
    refusal = refuse(task, "unanswered_findings", addressed("ISSUE-R1-002"))
    assert refusal.details == [{"line": 0, "reason": "ISSUE-R1-001 (high): Failed calls are retried at once"}]


def test_an_answer_to_a_mandatory_finding_that_says_of_nothing_done_is_unclear(task: Task) -> None:
    """ANS-7: it may be a refusal in other words; what is optional may be passed over anyhow."""
    review(hand_in(task), HIGH, OTHER, LOW)
    argues = "- ISSUE-R1-00{}: the queue retries already\n"
    answers = f"- ISSUE-R1-002: a pause was added\n{argues.format(1)}{argues.format(3)}"
    unclear = intake.check_response(fresh(task), read_response(answers)).unclear
    assert {code: problem.line for code, problem in unclear.items()} == {"ISSUE-R1-001": 2}


def test_a_mandatory_finding_that_is_only_discarded_counts_as_declined(task: Task) -> None:
    """DIS-1: the coder is asked for its reasons; without them people hear of it all the same."""
    review(hand_in(task), HIGH, OTHER, LOW)
    waves = (
        "| ISSUE-R1-001 | won't fix | The queue retries |\n| ISSUE-R1-002 | by design | |\n"
        "| ISSUE-R1-003 | discarded | |\n"
    )
    unclear = intake.check_response(fresh(task), read_response(waves)).unclear
    assert [code[-1] for code in unclear] == ["1", "2"], "what is optional may be discarded"
    hand_in(task, waves)
    conflicts = Conflict.objects.order_by("pk")
    assert [conflict.coder_position for conflict in conflicts] == ["won't fix The queue retries", "by design"]
    assert fresh(task).status == "disputed"


@for_each("option", ["uphold_reviewer", "uphold_coder"])
def test_it_may_not_argue_again_what_a_human_decided(task: Task, tom: User, option: str) -> None:
    """DEC-3"""
    review(hand_in(task), HIGH)
    submission = hand_in(task, declined("ISSUE-R1-001"))
    rule(task, option, tom)
    if option == "uphold_coder":
        review(submission, OTHER)
    refusal = refuse(task, "RE_ARGUED_CONFLICT", declined("ISSUE-R1-001"))
    assert refusal.details == [{"line": 1, "reason": "ISSUE-R1-001 is decided"}]


def test_nor_under_another_of_its_codes(task: Task, tom: User) -> None:
    review(hand_in(task), HIGH)
    hand_in(task, declined("ISSUE-R1-001"))
    rule(task, "uphold_reviewer", tom)
    review(hand_in(task), HIGH | {"code": "ISSUE-R1-001"})
    assert Finding.objects.get(code="ISSUE-R3-001").origin.code == "ISSUE-R1-001"
    refuse(task, "RE_ARGUED_CONFLICT", declined("ISSUE-R3-001"))


WAIT = "The limiter already bounds every endpoint to fifty requests per second, so nothing can pile up."


@for_each(("said", "noted"), [(WAIT, True), ("Done: it waits now.", False), (f"> {WAIT}", False)])
def test_a_position_that_was_ruled_out_and_comes_back_is_noted(
    task: Task, tom: User, said: str, noted: bool
) -> None:
    """DEC-4: a warning, and only for what the response says itself."""
    review(hand_in(task), HIGH)
    answer = {"finding": "ISSUE-R1-001", "kind": "declined", "text": WAIT, "rationale": "It is documented."}
    hand_in(task, {"answers": [answer]})
    rule(task, "uphold_reviewer", tom)
    read = read_response(said)
    known = intake.check_response(task, read)
    submission = create_submission(task, response=said)
    intake.take_answers(submission, read, known, actor=CODER)
    notes = Event.objects.filter(task=task, kind="position_repeated").values_list("note", flat=True)
    assert list(notes) == (["line 1 may propose again what was ruled out on ISSUE-R1-001"] if noted else [])


def test_what_was_undone_may_be_argued(task: Task, tom: User) -> None:
    review(hand_in(task), HIGH)
    hand_in(task, declined("ISSUE-R1-001"))
    rule(task, "uphold_reviewer", tom)
    rulings.undo(Conflict.objects.get().decisions.get(), user=tom)
    intake.check_response(fresh(task), read_response(declined("ISSUE-R1-001")))


def test_it_may_say_that_a_ruling_was_carried_out(task: Task, tom: User) -> None:
    review(hand_in(task), HIGH)
    hand_in(task, declined("ISSUE-R1-001"))
    rule(task, "uphold_reviewer", tom)
    submission = hand_in(task, addressed("ISSUE-R1-001"))
    assert answers(submission) == {"ISSUE-R1-001": "addressed"}


@for_each("response", ["", "I did my best.", {"answers": []}])
def test_without_findings_it_may_say_anything(task: Task, response: Any) -> None:
    assert intake.check_response(task, read_response(response)).known == {}


def test_a_point_may_be_answered_under_the_code_that_it_had_first(task: Task) -> None:
    """ID-5: it is one point, whatever it is called."""
    review(hand_in(task), HIGH)
    review(hand_in(task, addressed("ISSUE-R1-001")), HIGH | {"code": "ISSUE-R1-001"})
    assert due(task) == ["ISSUE-R2-001"]
    submission = hand_in(task, addressed("ISSUE-R1-001"))
    assert answers(submission) == {"ISSUE-R1-001": "addressed"}


# --- Answers ----------------------------------------------------------------------------------------------


def test_each_answer_is_a_row(task: Task) -> None:
    review(hand_in(task), HIGH, OTHER, LOW)
    lines = [
        "- ISSUE-R1-001: fixed, with a pause",
        "| ISSUE-R1-002 | later | in the next task |",
        "- ISSUE-R1-003: partly",
    ]
    submission = hand_in(task, "\n".join(lines))
    assert answers(submission) == {
        "ISSUE-R1-001": "addressed", "ISSUE-R1-002": "deferred", "ISSUE-R1-003": "partly",
    }  # fmt: skip
    assert Answer.objects.get(finding__code="ISSUE-R1-002").line == 2


def test_an_optional_finding_that_is_passed_over_gets_a_silent_answer(task: Task) -> None:
    review(hand_in(task), HIGH, LOW)
    submission = hand_in(task, addressed("ISSUE-R1-001"))
    assert answers(submission) == {"ISSUE-R1-001": "addressed", "ISSUE-R1-002": "silent"}


def test_silence_in_a_red_attempt_is_no_silence(task: Task) -> None:
    review(hand_in(task), HIGH, LOW)
    first = hand_in(task, addressed("ISSUE-R1-001"))
    Submission.objects.filter(pk=first.pk).update(state="red")
    fresh(task).send_back(note="Red.")
    second = hand_in(task, addressed("ISSUE-R1-001", "ISSUE-R1-002"))
    assert answers(second) == {"ISSUE-R1-001": "addressed", "ISSUE-R1-002": "addressed"}


def test_answers_hang_on_the_finding_as_it_was_raised_first(task: Task) -> None:
    review(hand_in(task), HIGH)
    review(hand_in(task, addressed("ISSUE-R1-001")), HIGH | {"code": "ISSUE-R1-001"})
    submission = hand_in(task, addressed("ISSUE-R2-001"))
    assert answers(submission) == {"ISSUE-R1-001": "addressed"}


def test_two_answers_to_one_point_are_one_row(task: Task) -> None:
    review(hand_in(task), HIGH)
    review(hand_in(task, addressed("ISSUE-R1-001")), HIGH | {"code": "ISSUE-R1-001"})
    submission = hand_in(task, addressed("ISSUE-R1-001", "ISSUE-R2-001"))
    assert submission.answers.count() == 1


def test_a_structured_answer_is_kept_with_its_words(task: Task) -> None:
    review(hand_in(task), HIGH)
    submission = hand_in(task, addressed("ISSUE-R1-001"))
    assert submission.answers.get().text == "Done."


# --- Declining --------------------------------------------------------------------------------------------


def test_a_declined_mandatory_finding_is_a_conflict_at_once(task: Task) -> None:
    """DIS-1"""
    review(hand_in(task), HIGH)
    submission = hand_in(task, declined("ISSUE-R1-001"))
    conflict = Conflict.objects.get()
    assert (conflict.kind, conflict.origin, conflict.opened_as) == ("disagreement", "disagree", "coder")
    assert (conflict.finding, conflict.submission) == (Finding.objects.get(), submission)
    assert (conflict.severity, conflict.effect, conflict.status) == ("high", "hold", "open")
    assert (conflict.reviewer_position, conflict.coder_position) == ("Wait between tries.", "No.")
    assert (conflict.reviewer_label, conflict.coder_label) == ("reviewer-1", "coder-1")
    assert answers(submission) == {"ISSUE-R1-001": "declined"}
    assert fresh(task).status == "disputed"


def test_a_declined_optional_one_is_an_answer(task: Task) -> None:
    review(hand_in(task), LOW)
    submission = hand_in(task, declined("ISSUE-R1-001"))
    assert answers(submission) == {"ISSUE-R1-001": "declined"}
    assert not Conflict.objects.exists()


def test_a_declined_optional_one_that_is_raised_again_as_mandatory_is_a_conflict(task: Task) -> None:
    """DIS-1"""
    review(hand_in(task), LOW)
    submission = hand_in(task, declined("ISSUE-R1-001"))
    taken = review(submission, HIGH | {"code": "ISSUE-R1-001"})
    conflict = Conflict.objects.get()
    assert (conflict.origin, conflict.effect, conflict.severity) == ("repeated", "hold", "high")
    assert conflict.finding == Finding.objects.get(code="ISSUE-R1-001")
    assert (conflict.reviewer_position, conflict.coder_position) == ("Wait between tries.", "No.")
    assert (taken.outcome, fresh(task).status) == ("hold", "disputed")


@for_each("severity", ["low", "medium"])
def test_raised_again_as_optional_it_is_none(task: Task, severity: str) -> None:
    review(hand_in(task), LOW)
    submission = hand_in(task, declined("ISSUE-R1-001"))
    review(submission, LOW | {"code": "ISSUE-R1-001", "severity": severity})
    assert not Conflict.objects.exists()


def test_one_that_was_addressed_since_is_none(task: Task) -> None:
    """The coder agrees now; it only has not done enough."""
    review(hand_in(task), LOW)
    review(hand_in(task, declined("ISSUE-R1-001")), LOW | {"code": "ISSUE-R1-001"})
    submission = hand_in(task, addressed("ISSUE-R2-001"))
    review(submission, HIGH | {"code": "ISSUE-R1-001"})
    assert not Conflict.objects.filter(origin="repeated").exists()
    assert fresh(task).status == "in_progress"


def test_one_that_was_only_passed_over_is_none(task: Task) -> None:
    review(hand_in(task), LOW)
    review(hand_in(task), HIGH | {"code": "ISSUE-R1-001"})
    assert not Conflict.objects.exists()
    assert fresh(task).status == "in_progress"


def test_a_point_is_in_dispute_once(task: Task) -> None:
    Project.objects.update(settings=ALL)
    review(hand_in(task), LOW | {"severity": "medium"})
    review(hand_in(task, declined("ISSUE-R1-001")), OTHER)
    response = {"answers": [*declined("ISSUE-R1-001")["answers"], *addressed("ISSUE-R2-001")["answers"]]}
    hand_in(task, response)
    assert Conflict.objects.count() == 1


# --- Findings: identity, codes, severity ------------------------------------------------------------------


def codes(taken: intake.Taken) -> list[str]:
    return [finding.code for finding in taken.findings]


def test_a_finding_keeps_what_the_reviewer_wrote(task: Task) -> None:
    taken = review(
        hand_in(task),
        HIGH | {"severity": "major", "location": "src/calls.py:12", "impact": "A dead server is hammered."},
    )
    finding = Finding.objects.get()
    assert (finding.task, finding.review, finding.ordinal, finding.round) == (task, taken.review, 1, 1)
    assert (finding.severity, finding.raw_severity, finding.mandatory) == ("high", "major", True)
    assert (finding.path, finding.line) == ("src/calls.py", 12)
    assert (finding.impact, finding.suggestion) == ("A dead server is hammered.", "Wait between tries.")


def test_what_a_review_takes_back_is_withdrawn_and_nobody_answers_it(task: Task) -> None:
    """FND-4: it used to be raised once more, under another code."""
    review(hand_in(task), HIGH, OTHER)
    task.refresh_from_db()
    first, other = Finding.objects.order_by("pk")
    again = hand_in(task, addressed(first.code, other.code))
    said = (
        f"# Review\n\n{first.code}: withdrawn, I misread the loop.\n\n"
        f"### {other.code}: The tests wait for seconds\n\n**Severity:** HIGH\n\nIt is no false alarm.\n\n"
        "### ISSUE-R2-007: Withdrawn amounts are booked twice\n\n**Severity:** HIGH\n\n"
        "- ~~**ISSUE-R2-008** (HIGH): The name is vague~~\n\n## Verdict: NEEDS_REVISION\n"
    )
    intake.take_review(again, read_review(said), approves=False, actor=REVIEWER)
    due = intake.findings_to_answer(fresh(task))
    assert [each.title for each in due] == [
        "The tests wait for seconds",
        "Withdrawn amounts are booked twice",
    ]
    first.refresh_from_db()
    assert first.is_withdrawn


def test_a_tag_makes_a_finding_mandatory_where_the_project_says_so(ledger: Project) -> None:
    words = read_review("[MUST] src/a.py:3 rounds wrongly\n\n[SHOULD] src/b.py:4 has a poor name\n")
    for tags, found in ((["must"], [True, False]), (["must", "should"], [True, True]), ([], [False, False])):
        Project.objects.update(settings={"mandatory": ["critical"], "mandatory_opinions": tags})
        task = create_task(Project.objects.get(), status="in_progress", round=1)
        intake.take_review(hand_in(task), words, approves=False, actor=REVIEWER)
        raised = task.findings.order_by("pk")
        assert list(raised.values_list("mandatory", flat=True)) == found, tags


@for_each(
    ("mandatory", "found"),
    [(["critical", "high"], [True, True, False, False]), (["critical"], [True, False, False, False])],
)
def test_the_project_says_what_is_mandatory(ledger: Project, mandatory: list[str], found: list[bool]) -> None:
    Project.objects.update(settings={"mandatory": mandatory})
    task = create_task(Project.objects.get(), status="in_progress", round=1)
    review(hand_in(task), *(LOW | {"severity": word} for word in ("critical", "high", "medium", "low")))
    assert list(Finding.objects.order_by("pk").values_list("mandatory", flat=True)) == found


def test_codes_are_the_reviewers_where_they_fit(task: Task) -> None:
    """ID-5"""
    printed = [HIGH | {"code": "ISSUE-R1-007"}, OTHER, LOW | {"code": "issue-r1-003"}]
    assert codes(review(hand_in(task), *printed)) == ["ISSUE-R1-007", "ISSUE-R1-008", "ISSUE-R1-003"]
    last = [HIGH | {"code": "ISSUE-R2-999"}, OTHER, LOW]
    again = hand_in(task, addressed("ISSUE-R1-007", "ISSUE-R1-008"))
    assert codes(review(again, *last)) == ["ISSUE-R2-999", "ISSUE-R2-001", "ISSUE-R2-002"]


@for_each(
    "printed",
    ["ISSUE-R9-001", "R1-1", "ISSUE-R1-0001", "F-12", "ISSUE-R1-1", "", "ISSUE-R1-000", "ISSUE-R1-٠٠٧"],
)
def test_else_the_next_one_is_allotted_and_the_printed_one_kept(task: Task, printed: str) -> None:
    taken = review(hand_in(task), OTHER, HIGH | {"code": printed})
    assert codes(taken) == ["ISSUE-R1-001", "ISSUE-R1-002"]
    assert taken.findings[1].raw_code == printed


def test_each_round_counts_anew(task: Task) -> None:
    review(hand_in(task), HIGH, OTHER)
    taken = review(hand_in(task, addressed("ISSUE-R1-001", "ISSUE-R1-002")), HIGH, OTHER)
    assert codes(taken) == ["ISSUE-R2-001", "ISSUE-R2-002"]
    assert [finding.first for finding in taken.findings] == [None, None]


def test_a_repeated_code_ties_the_point_over_the_rounds(task: Task) -> None:
    review(hand_in(task), HIGH)
    second = review(hand_in(task, addressed("ISSUE-R1-001")), HIGH | {"code": "ISSUE-R1-001"})
    third = review(hand_in(task, addressed("ISSUE-R2-001")), HIGH | {"code": "ISSUE-R2-001"})
    first = Finding.objects.get(code="ISSUE-R1-001")
    assert [taken.findings[0].first for taken in (second, third)] == [first, first]
    assert codes(second) + codes(third) == ["ISSUE-R2-001", "ISSUE-R3-001"]
    assert list(first.repeats.order_by("pk")) == second.findings + third.findings


def two_reviews(task: Task) -> tuple[Finding, Finding]:
    """Two reviewers of one submission, who do not know of each other, print the same code."""
    task.round = 2
    Task.objects.filter(pk=task.pk).update(round=2)
    submission = hand_in(task)
    first = create_finding(create_review(submission), code="ISSUE-R2-001", raw_code="ISSUE-R2-001")
    printed = OTHER | {"code": "ISSUE-R2-001"}
    taken = review(submission, printed, actor=Actor("run", "reviewer-2"))
    return first, taken.findings[0]


def test_two_reviewers_who_print_the_same_code_get_two(task: Task) -> None:
    """ID-5"""
    first, second = two_reviews(task)
    assert (first.code, second.code) == ("ISSUE-R2-001", "ISSUE-R2-002")
    assert (first.raw_code, second.raw_code) == ("ISSUE-R2-001", "ISSUE-R2-001")


def test_and_theirs_are_two_points(task: Task) -> None:
    """A code ties a point over the rounds (PROTOCOL 24); within a round it is a coincidence."""
    first, second = two_reviews(task)
    assert (second.first, second.title) == (None, OTHER["title"])
    assert not first.repeats.exists()


def test_a_review_again_by_the_same_reviewer_is_its_next_version(task: Task) -> None:
    submission = hand_in(task)
    create_review(submission, by_agent="reviewer-1")
    taken = review(submission, approves=True)
    other = create_review(submission, by_agent="reviewer-2")
    assert (taken.review.version, other.version) == (2, 1)


# --- Where the task goes ----------------------------------------------------------------------------------


def test_an_approval_completes_the_task(task: Task) -> None:
    submission = hand_in(task)
    taken = review(submission, approves=True)
    stored = fresh(task)
    assert (stored.status, stored.accepted) == ("completed", submission)
    assert kinds(task)[-1] == "approve"
    assert (taken.outcome, taken.review.verdict) == ("pass", "APPROVED")


def test_an_approval_with_an_optional_finding_has_a_condition(task: Task) -> None:
    taken = review(hand_in(task), LOW, approves=True)
    assert (taken.review.verdict, fresh(task).status) == ("APPROVED_WITH_CONDITIONS", "completed")


def test_an_approval_with_a_mandatory_finding_is_none(task: Task) -> None:
    """ARB-3"""
    taken = review(hand_in(task), HIGH, approves=True)
    assert (taken.outcome, taken.review.verdict) == ("revise", "NEEDS_REVISION")
    assert (fresh(task).status, fresh(task).rejections) == ("in_progress", 1)


def test_a_document_that_says_worse_than_the_verb_wins(task: Task) -> None:
    taken = review(hand_in(task), LOW, approves=True, document={"verdict": "NEEDS_REVISION"})
    assert (taken.review.verdict, taken.review.raw_verdict) == ("NEEDS_REVISION", "NEEDS_REVISION")
    assert fresh(task).status == "in_progress"


@for_each("findings", [(HIGH,), (LOW,), (HIGH, LOW)], ids=["must", "may", "both"])
def test_a_rejection_begins_a_round(task: Task, findings: tuple[dict[str, Any], ...]) -> None:
    taken = review(hand_in(task), *findings)
    stored = fresh(task)
    assert (stored.status, stored.round, stored.rejections) == ("in_progress", 2, 1)
    assert kinds(task)[-1] == "reject"
    assert taken.review.verdict == "NEEDS_REVISION"


def test_a_person_reviews_under_the_own_name(task: Task, lea: User) -> None:
    taken = review(hand_in(task), HIGH, actor=Actor.person(lea), user_id=lea.pk)
    assert (taken.review.by_agent, taken.review.by_user) == ("Lea Lindt", lea)


def test_the_last_rejection_fails_the_task_and_asks_for_help(task: Task) -> None:
    Project.objects.update(settings={"rejections_max": 2})
    Task.objects.update(rejections=1)
    review(hand_in(task), HIGH)
    stored = fresh(task)
    assert (stored.status, stored.rejections, stored.section.is_stopped) == ("failed", 2, True)
    assert kinds(task)[-2:] == ["exhaust", "conflict_opened"]
    card = Conflict.objects.get()
    assert (card.kind, card.origin, card.severity, card.effect) == ("help", "rejections", "high", "hold")
    assert card.submission == stored.last_submission()


def test_a_conflict_that_ships_leaves_the_rest_to_the_review(task: Task) -> None:
    Project.objects.update(settings=ALL)
    review(hand_in(task), LOW | {"severity": "medium"})
    submission = hand_in(task, declined("ISSUE-R1-001"))
    assert fresh(task).status == "review"
    taken = review(submission, approves=True)
    stored = fresh(task)
    assert (taken.outcome, stored.status, stored.accepted) == ("ship", "disputed", submission)


@for_each("approves", [True, False])
def test_a_point_in_dispute_that_ships_is_no_reason_to_send_the_task_back(task: Task, approves: bool) -> None:
    """DIS-3: the reviewer insists, and the policy says that a human rules while the commit lands."""
    Project.objects.update(settings=ALL)
    review(hand_in(task), LOW | {"severity": "medium"})
    submission = hand_in(task, declined("ISSUE-R1-001"))
    review(submission, LOW | {"severity": "medium", "code": "ISSUE-R1-001"}, approves=approves)
    stored = fresh(task)
    assert (stored.status, stored.accepted) == ("disputed", submission)


def test_a_rejection_never_leaves_the_coder_with_nothing_to_do(task: Task) -> None:
    """The point in dispute is not to be answered; so it can't be why the coder gets the task back."""
    Project.objects.update(settings=ALL)
    review(hand_in(task), LOW | {"severity": "medium"})
    submission = hand_in(task, declined("ISSUE-R1-001"))
    review(submission, LOW | {"severity": "medium", "code": "ISSUE-R1-001"})
    assert fresh(task).status != "in_progress" or due(task)


def test_a_shipped_conflict_is_no_way_round_another_finding(task: Task) -> None:
    """DIS-3"""
    Project.objects.update(settings=ALL)
    review(hand_in(task), LOW | {"severity": "medium"})
    submission = hand_in(task, declined("ISSUE-R1-001"))
    taken = review(submission, OTHER, approves=True)
    assert (taken.outcome, fresh(task).status, fresh(task).accepted) == ("revise", "in_progress", None)


# --- Settled findings -------------------------------------------------------------------------------------


@pytest.fixture
def settled(task: Task, tom: User) -> Submission:
    """A human ruled for the coder; the submission waits for its review. The finding is ISSUE-R1-001."""
    review(hand_in(task), HIGH)
    submission = hand_in(task, declined("ISSUE-R1-001"))
    rule(task, "uphold_coder", tom)
    assert task.status == "review"
    return submission


def test_what_a_human_settled_is_dropped(task: Task, settled: Submission) -> None:
    taken = review(settled, HIGH | {"code": "ISSUE-R1-001"}, OTHER)
    assert Finding.objects.filter(round=2).get().title == OTHER["title"]
    assert taken.dropped == ["ISSUE-R1-001"]
    assert Event.objects.get(kind="findings_dropped").note == "ISSUE-R1-001"
    assert fresh(task).status == "in_progress"


def test_under_any_of_its_codes(task: Task, tom: User) -> None:
    review(hand_in(task), LOW)
    review(hand_in(task, declined("ISSUE-R1-001")), HIGH | {"code": "ISSUE-R1-001"})
    rule(task, "uphold_coder", tom)
    submission = task.last_submission()
    assert submission is not None
    assert (task.status, Finding.objects.count()) == ("completed", 2)
    Task.objects.update(status="review", accepted=None)
    taken = review(submission, HIGH | {"code": "ISSUE-R2-001"}, approves=True)
    assert (taken.dropped, taken.findings) == (["ISSUE-R2-001"], [])


def test_what_is_only_recorded_is_settled_too(task: Task) -> None:
    """DESIGN 6: the coder's version stands."""
    Project.objects.update(settings=ALL)
    review(hand_in(task), LOW)
    submission = hand_in(task, declined("ISSUE-R1-001"))
    assert Conflict.objects.get().status == "logged"
    taken = review(submission, LOW | {"code": "ISSUE-R1-001"}, approves=True)
    assert (taken.dropped, fresh(task).status) == (["ISSUE-R1-001"], "completed")


def test_a_ruling_that_asks_for_a_change_settles_nothing(task: Task, tom: User) -> None:
    review(hand_in(task), HIGH)
    hand_in(task, declined("ISSUE-R1-001"))
    rule(task, "uphold_reviewer", tom)
    assert settled_findings(task) == {}


def test_the_newest_ruling_says_what_is_settled(task: Task, tom: User, settled: Submission) -> None:
    decision = Conflict.objects.get().decisions.get()
    assert list(settled_findings(task)) == [Finding.objects.get().pk]
    rulings.mark_used([decision], 7)
    rulings.reopen(decision, user=tom, reason="Wrong.")
    rule(task, "uphold_reviewer", tom)
    assert settled_findings(task) == {}


def test_an_undone_ruling_settles_nothing(task: Task, tom: User, settled: Submission) -> None:
    rulings.undo(Conflict.objects.get().decisions.get(), user=tom)
    assert settled_findings(task) == {}


def test_an_approval_that_mentions_settled_points_is_one(task: Task, settled: Submission) -> None:
    taken = review(settled, HIGH | {"code": "ISSUE-R1-001"}, approves=True)
    assert (taken.review.verdict, fresh(task).status) == ("APPROVED", "completed")


def test_a_rejection_of_settled_points_only_goes_back_to_the_reviewer(
    task: Task, settled: Submission
) -> None:
    before = fresh(task)
    review(settled, HIGH | {"code": "ISSUE-R1-001"})
    stored = fresh(task)
    assert (stored.status, stored.round, stored.rejections) == ("review", before.round, before.rejections)
    assert kinds(task)[-1] == "review_void"


def test_the_second_time_a_human_is_asked(task: Task, settled: Submission) -> None:
    for _ in range(2):
        review(settled, HIGH | {"code": "ISSUE-R1-001"})
    assert fresh(task).status == "disputed"
    card = Conflict.objects.get(status="open")
    assert (card.kind, card.origin) == ("help", "review")


def test_two_reviews_of_settled_points_of_two_submissions_are_not_the_second_time(
    task: Task, settled: Submission
) -> None:
    review(settled, HIGH | {"code": "ISSUE-R1-001"})
    review(settled, OTHER)
    newest = hand_in(task, addressed("ISSUE-R2-001"))
    review(newest, HIGH | {"code": "ISSUE-R1-001"})
    assert fresh(task).status == "review"


def test_the_last_review_is_the_newest_of_the_task(task: Task) -> None:
    assert intake.last_reviews(task) == []
    review(hand_in(task), HIGH)
    newest = review(hand_in(task, addressed("ISSUE-R1-001")), OTHER).review
    create_review(create_submission(create_task(create_project())))
    assert intake.last_reviews(task) == [newest] == [Review.objects.get(submission__round=2)]


# --- What a large review costs ------------------------------------------------------------------------------

SUBJECTS = ("cache", "lock", "retry", "header", "token", "parser", "buffer", "socket", "queue", "index")


def point(number: int) -> dict[str, Any]:
    """One of many findings that differ as people's do: by their place and by their words."""
    words = [SUBJECTS[(number * 5 + step * (number % 7 + 1)) % len(SUBJECTS)] for step in range(24)]
    return {
        "title": f"{' '.join(words[:5])} {number}", "location": f"{words[0]}_{number}.py:{number % 300 + 1}",
        "severity": ("high", "medium", "low")[number % 3], "impact": " ".join(words[5:14]),
        "suggestion": " ".join(words[14:]),
    }  # fmt: skip


def cost_of_review(project: Project, *, earlier: int, new: int) -> tuple[int, float, intake.Taken]:
    """Queries and seconds of a review of so many findings, half of which were raised and answered before."""
    task = create_task(project, status="review", round=4)
    rows = []
    for round_ in (1, 2, 3):
        raised = create_review(create_submission(task, round=round_))
        for number in range(round_, earlier, 3):
            told = point(number)
            path, _, line = told.pop("location").partition(":")
            told |= {"path": path, "line": int(line), "mandatory": told["severity"] == "high"}
            code = f"ISSUE-R{round_}-{number + 1:03d}"
            rows.append(
                Finding(review=raised, task=task, round=round_, ordinal=number + 1, code=code, **told)
            )
    Finding.objects.bulk_create(rows)
    last = create_submission(task, round=4, since_last_round="diff --git a/x.py b/x.py\n")
    Answer.objects.bulk_create(Answer(submission=last, finding=one, kind="addressed") for one in rows)
    points = [point(earlier - new // 2 + number) for number in range(new)]
    with CaptureQueriesContext(connection) as queries:
        began = time.monotonic()
        taken = review(last, *points)
        seconds = time.monotonic() - began
    return len(queries), seconds, taken


def test_a_large_review_costs_few_queries_however_much_was_raised_before(ledger: Project) -> None:
    """All writers of SQLite wait for it."""
    few, _, _ = cost_of_review(ledger, earlier=30, new=6)
    many, _, taken = cost_of_review(ledger, earlier=300, new=60)
    most, seconds, _ = cost_of_review(ledger, earlier=2000, new=200)
    again = [finding for finding in taken.findings if finding.first_id]
    assert len(again) in range(20, 41), "about half of them were raised before"
    assert [finding.pk for finding in taken.findings] == sorted(finding.pk for finding in taken.findings)
    assert len({finding.code for finding in taken.findings}) == 60
    assert few <= many <= 40
    assert most <= 60
    assert seconds < 15  # on a loaded machine; it was half a minute
