"""A person changes a severity: below HIGH this card closes by itself; the last word stands."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from disputes import intake, opening, rulings, severity_changes
from disputes.completion import rates
from disputes.models import Conflict, Decision, Flag
from disputes.protocol.reviews.review import Found, ReadReview
from disputes.protocol.reviews.verdict_words import Verdict
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Answer, Event, Finding, Project, Task
from tasks.states import Severity
from tests.asking import page
from tests.cases import for_each
from tests.factories import create_finding, create_review, create_submission, create_task

pytestmark = pytest.mark.django_db

CODER, REVIEWER = Actor("run", "coder-1"), Actor("run", "reviewer-1")


def declined_in(task: Task, severity: str = "high", **kwargs: Any) -> Conflict:
    """A finding of round 1 that the coder declined in round 2."""
    review = task.submissions.filter(round=1).get().reviews.get()
    finding = create_finding(review, severity=severity, title=f"Point {task.findings.count() + 1}")
    submission = task.last_submission()
    assert submission is not None
    Answer.objects.create(submission=submission, finding=finding, kind="declined", text="No.")
    given = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder", "question": finding.title,
        "finding": finding, "submission": submission, "reviewer_position": "Wait.", "coder_position": "No.",
    } | kwargs  # fmt: skip
    return opening.open_conflict(task, **given)


@pytest.fixture
def task(ledger: Project) -> Task:
    """In its second round, held by what is declined."""
    task = create_task(ledger, status="disputed", round=2)
    create_review(create_submission(task, round=1))
    create_submission(task, round=2)
    return task


@pytest.fixture
def conflict(task: Task) -> Conflict:
    return declined_in(task)


def lower(conflict: Conflict, user: User, severity: str = "low", reason: str = "It is taste.") -> Finding:
    assert conflict.finding is not None
    return severity_changes.change_severity(conflict.finding, severity, user=user, reason=reason)


def refusal(*args: Any, **kwargs: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        lower(*args, **kwargs)
    return caught.value


# --- What it does -----------------------------------------------------------------------------------------


def test_a_lowered_finding_is_no_conflict_and_the_work_goes_on(conflict: Conflict, tom: User) -> None:
    """Lowering a finding below mandatory closes its conflict as "not a conflict"."""
    finding = lower(conflict, tom)
    assert (finding.severity, finding.mandatory, finding.first_severity) == ("low", False, "high")
    assert (finding.lowered_by, finding.lowered_reason) == (tom, "It is taste.")
    conflict.refresh_from_db()
    assert (conflict.status, conflict.dispute.status, conflict.dispute.closed_reason) == (
        "moot", "closed", "moot"
    )  # fmt: skip
    conflict.task.refresh_from_db()
    assert conflict.task.status == "review"
    assert not Decision.objects.exists()


def test_who_when_and_why_are_kept(conflict: Conflict, tom: User) -> None:
    """SEV-7"""
    lower(conflict, tom)
    event = Event.objects.get(kind="severity_changed")
    assert (event.user, event.note, event.task) == (tom, "It is taste.", conflict.task)
    assert event.data == {"finding": "ISSUE-R1-001", "from": "high", "to": "low"}


def test_the_first_severity_is_that_of_the_reviewer_however_often_it_changes(
    conflict: Conflict, tom: User, lea: User
) -> None:
    lower(conflict, tom, "medium")
    finding = lower(conflict, lea, "low")
    assert (finding.first_severity, finding.severity, finding.lowered_by) == ("high", "low", lea)


def test_other_conflicts_go_on_holding_the_task(conflict: Conflict, tom: User) -> None:
    other = declined_in(conflict.task)
    lower(conflict, tom)
    conflict.task.refresh_from_db()
    assert conflict.task.status == "disputed"
    conflict.dispute.refresh_from_db()
    assert (conflict.dispute.status, conflict.dispute.question) == ("open", other.question)


def test_still_mandatory_it_stays_a_conflict_of_that_severity(conflict: Conflict, tom: User) -> None:
    lower(conflict, tom, "critical")
    conflict.refresh_from_db()
    assert (conflict.status, conflict.severity, conflict.dispute.severity) == ("open", "critical", "critical")
    lower(conflict, tom, "high")
    conflict.refresh_from_db()
    assert (conflict.severity, conflict.dispute.severity, conflict.task.status) == (
        "high",
        "high",
        "disputed",
    )


def test_a_severity_that_ships_lets_the_task_go_on(ledger: Project, task: Task, tom: User) -> None:
    Project.objects.update(settings={"policy": {"high": "ship"}})
    task.project.refresh_from_db()
    conflict = declined_in(task, "critical")
    assert conflict.effect == "hold"
    lower(conflict, tom, "high")
    conflict.refresh_from_db()
    task.refresh_from_db()
    assert (conflict.status, conflict.effect, task.status) == ("open", "ship", "review")


def test_a_severity_that_holds_stops_it(ledger: Project, task: Task, tom: User) -> None:
    Project.objects.update(settings={"policy": {"high": "ship"}})
    task.project.refresh_from_db()
    Task.objects.filter(pk=task.pk).update(status="review")
    conflict = declined_in(task, "high")
    assert conflict.effect == "ship"
    lower(conflict, tom, "critical")
    conflict.refresh_from_db()
    task.refresh_from_db()
    assert (conflict.effect, task.status) == ("hold", "disputed")


def test_what_was_never_mandatory_stays_in_dispute(task: Task, tom: User) -> None:
    """A person put a medium finding in dispute: another severity answers nothing, least of all a higher."""
    conflict = declined_in(task, "medium", origin="cli", opened_as="human")
    Finding.objects.update(mandatory=False)
    lower(conflict, tom, "low")
    conflict.refresh_from_db()
    assert (conflict.status, conflict.severity) == ("open", "low")
    lower(conflict, tom, "high")
    conflict.refresh_from_db()
    assert (conflict.status, conflict.severity) == ("open", "high")


def test_the_point_has_one_severity_over_all_rounds(conflict: Conflict, tom: User) -> None:
    finding = conflict.finding
    again = create_finding(create_review(create_submission(conflict.task, round=2)), first=finding)
    lower(conflict, tom)
    again.refresh_from_db()
    assert (again.severity, again.mandatory, again.first_severity) == ("low", False, "high")


def test_named_as_it_was_raised_last_it_is_the_same_point(conflict: Conflict, tom: User) -> None:
    again = create_finding(create_review(create_submission(conflict.task, round=2)), first=conflict.finding)
    severity_changes.change_severity(again, "low", user=tom, reason="It is taste.")
    conflict.refresh_from_db()
    assert conflict.status == "moot"


# --- The last word ----------------------------------------------------------------------------------------


def raise_again(task: Task, severity: Severity) -> Finding:
    """The reviewer names the finding once more."""
    submission = task.last_submission()
    assert submission is not None
    found = Found("Point 1", severity, code="ISSUE-R1-001", text="Point 1")
    taken = intake.take_review(
        submission, ReadReview(Verdict.NEEDS_REVISION, "NEEDS_REVISION", (found,), "Point 1"),
        approves=False, actor=REVIEWER,
    )  # fmt: skip
    return taken.findings[0]


@for_each("severity", [Severity.HIGH, Severity.CRITICAL])
def test_a_reviewer_does_not_raise_again_what_a_person_lowered(
    conflict: Conflict, tom: User, severity: Severity
) -> None:
    """SEV-7: a user's override is final."""
    lower(conflict, tom)
    conflict.task.refresh_from_db()
    again = raise_again(conflict.task, severity)
    assert again.origin == conflict.finding
    assert (again.severity, again.raw_severity, again.mandatory) == ("low", "", False)


def test_nor_once_the_person_is_gone(conflict: Conflict, tom: User) -> None:
    lower(conflict, tom)
    conflict.task.refresh_from_db()
    Finding.objects.update(lowered_by=None)
    assert raise_again(conflict.task, Severity.HIGH).severity == "low"


def test_what_nobody_lowered_a_reviewer_may_raise(task: Task) -> None:
    """SEV-3"""
    create_finding(
        task.submissions.get(round=1).reviews.get(), title="Point 1", severity="low", mandatory=False
    )
    Task.objects.filter(pk=task.pk).update(status="review")
    task.refresh_from_db()
    assert raise_again(task, Severity.HIGH).mandatory


def test_the_reviewer_is_told(conflict: Conflict, tom: User) -> None:
    lower(conflict, tom)
    told = [line for line in rulings.settled_lines(conflict.task) if "ISSUE-R1-001" in line]
    assert told == ["- ISSUE-R1-001: Point 1 (a human made it LOW: It is taste.)"]


# --- Flags at silence -------------------------------------------------------------------------------------


def flagged(task: Task, status: str = "open") -> Conflict:
    """A card about a finding that was passed over."""
    review = task.submissions.filter(round=1).get().reviews.get()
    finding = create_finding(review)
    submission = task.last_submission()
    card = opening.open_conflict(
        task, kind="silence", origin="flagged", opened_as="system", question=finding.title, finding=finding,
        submission=submission, effect="hold", reviewer_position="Wait.",
    )  # fmt: skip
    Flag.objects.create(finding=finding, submission=submission, level="block", conflict=card, status=status)
    return card


def test_a_card_of_silence_about_what_is_lowered_is_moot_with_its_flags(task: Task, tom: User) -> None:
    card = flagged(task)
    lower(card, tom)
    card.refresh_from_db()
    assert (card.status, Flag.objects.get().status) == ("moot", "moot")


def test_a_converted_flag_may_still_be_lowered(task: Task, tom: User) -> None:
    """Converting asks for a ruling; it is none."""
    card = flagged(task)
    rulings.decide(card, "convert", user=tom)
    made = Conflict.objects.get(origin="converted")
    lower(made, tom)
    made.refresh_from_db()
    assert made.status == "moot"


def test_a_false_alarm_is_no_ruling_on_the_matter(task: Task, tom: User) -> None:
    card = flagged(task)
    rulings.decide(card, "false_positive", user=tom, text="It is in the next file.")
    assert lower(card, tom).severity == "low"


def test_a_waiver_is_one(task: Task, tom: User) -> None:
    card = flagged(task)
    rulings.decide(card, "waive", user=tom, text="Not in this version.")
    assert refusal(card, tom).code == "decided"


# --- The rate ---------------------------------------------------------------------------------------------


def warned(task: Task, number: int) -> Conflict:
    """So many HIGH findings, all declined, and the alert about it."""
    for _ in range(number):
        declined_in(task)
    submission = task.last_submission()
    assert submission is not None
    alert = rates.check(submission, actor=CODER)
    assert alert is not None
    return alert


def test_lowering_takes_the_rate_anew(task: Task, tom: User) -> None:
    alert = warned(task, 4)
    assert "4 of 4" in alert.question
    declined = list(Conflict.objects.filter(origin="disagree").order_by("pk"))
    lower(declined[0], tom)
    alert.refresh_from_db()
    assert (alert.status, "3 of 3" in alert.question) == ("open", True)
    assert "ISSUE-R1-001" not in "\n".join(alert.evidence)


def test_below_the_limit_the_alert_is_closed(task: Task, tom: User) -> None:
    alert = warned(task, 2)
    first, second = Conflict.objects.filter(origin="disagree").order_by("pk")
    lower(first, tom)
    alert.refresh_from_db()
    assert alert.status == "moot"  # one of one: below the smallest number that is rated
    second.refresh_from_db()
    assert second.status == "open"


def test_the_last_one_lowered_leaves_nothing_to_rule_on(task: Task, tom: User) -> None:
    warned(task, 2)
    for conflict in Conflict.objects.filter(origin="disagree"):
        lower(conflict, tom)
    task.refresh_from_db()
    assert task.status == "review"
    assert not opening.live_dispute(task)


# --- Refusals ---------------------------------------------------------------------------------------------


def test_a_ruled_finding_is_reopened_not_lowered(conflict: Conflict, tom: User) -> None:
    rulings.decide(conflict, "uphold_coder", user=tom)
    assert refusal(conflict, tom).code == "decided"


def test_taken_back_the_ruling_is_none(conflict: Conflict, tom: User) -> None:
    rulings.undo(rulings.decide(conflict, "uphold_coder", user=tom), user=tom)
    assert lower(conflict, tom).severity == "low"


def test_reopened_it_may_be_lowered(conflict: Conflict, tom: User) -> None:
    again = rulings.reopen(rulings.decide(conflict, "uphold_coder", user=tom), user=tom, reason="Wrong.")
    lower(again, tom)
    again.refresh_from_db()
    assert again.status == "moot"


def test_so_may_what_was_not_honoured(conflict: Conflict, tom: User) -> None:
    """The newer card asks again, so the old ruling is not the last word."""
    rulings.decide(conflict, "uphold_reviewer", user=tom)
    Conflict.objects.filter(pk=conflict.pk).update(followed="not_honoured")
    newer = opening.open_conflict(
        conflict.task, kind="disagreement", origin="not_honoured", opened_as="system", question="Again?",
        finding=conflict.finding, reviewer_position="Wait.", coder_position="No.", previous=conflict,
    )  # fmt: skip
    lower(newer, tom)
    newer.refresh_from_db()
    assert newer.status == "moot"


@for_each(
    ("severity", "reason", "code", "status"),
    [
        ("major", "Because.", "unknown_severity", 422),
        ("", "Because.", "unknown_severity", 422),
        ("low", " \n", "text_missing", 422),
        ("high", "Because.", "unchanged", 409),
    ],
)
def test_what_cannot_be_taken_changes_nothing(
    conflict: Conflict, tom: User, severity: str, reason: str, code: str, status: int
) -> None:
    found = refusal(conflict, tom, severity, reason)
    assert (found.code, found.status) == (code, status)
    conflict.refresh_from_db()
    assert (conflict.status, conflict.finding.first_severity) == ("open", "")
    assert not Event.objects.filter(kind="severity_changed").exists()


@for_each("who", ["vera", "otto"])
def test_who_may_not_rule_changes_no_severity(conflict: Conflict, who: str, otto: User) -> None:
    found = refusal(conflict, User.objects.get(username=who))
    assert (found.code, found.status) == ("no_right", 403)


# --- The page ---------------------------------------------------------------------------------------------


def sent(client: Client, conflict: Conflict, user: User, **body: str) -> Any:
    client.force_login(user)
    given = {"conflict": conflict.ref, "finding": "ISSUE-R1-001", "severity": "low", "reason": "It is taste."}
    return client.post(page(conflict, "severity/"), given | body)


def test_the_form_lowers_it(client: Client, conflict: Conflict, tom: User) -> None:
    reply = sent(client, conflict, tom)
    assert (reply.status_code, reply.url) == (302, f"{page(conflict)}?conflict={conflict.ref}")
    html = client.get(reply.url).content.decode()
    assert "ISSUE-R1-001 is low now." in html
    assert page(conflict, "severity/") not in html


def test_a_refusal_keeps_what_was_typed_in_its_row(client: Client, task: Task, tom: User) -> None:
    alert = warned(task, 3)
    reply = sent(client, alert, tom, finding="ISSUE-R1-002", severity="high", reason="<b>Because</b>")
    html = reply.content.decode()
    assert reply.status_code == 409
    assert "is high already" in html
    assert html.count("&lt;b&gt;Because&lt;/b&gt;") == 1


def test_a_missing_reason_keeps_the_severity(client: Client, conflict: Conflict, tom: User) -> None:
    reply = sent(client, conflict, tom, severity="medium", reason=" ")
    html = reply.content.decode()
    assert reply.status_code == 422
    assert '<option value="medium" selected>' in html


def test_an_alert_lists_all_that_was_declined(client: Client, task: Task, tom: User) -> None:
    alert = warned(task, 3)
    client.force_login(tom)
    html = client.get(page(alert), {"conflict": alert.ref}).content.decode()
    assert html.count(f'action="{page(alert, "severity/")}"') == 3


def test_who_checks_the_review_goes_on_with_the_severities(client: Client, task: Task, tom: User) -> None:
    """RL-5, the third option: the findings are below the card that was ruled."""
    alert = warned(task, 3)
    client.force_login(tom)
    form = {"conflict": alert.ref, "option": "check_review", "shown": rulings.shown_hash(alert)}
    reply = client.post(page(alert, "decide/"), form, follow=True)
    assert reply.context["conflict"] == alert
    html = reply.content.decode()
    assert html.count(f'action="{page(alert, "severity/")}"') == 3
    sent(client, alert, tom)
    assert Finding.objects.get(code="ISSUE-R1-001").severity == "low"


def test_a_finding_of_another_task_is_not_found(client: Client, conflict: Conflict, tom: User) -> None:
    other = create_task(conflict.dispute.project)
    create_finding(create_review(create_submission(other)), code="ISSUE-R9-001")
    assert sent(client, conflict, tom, finding="ISSUE-R9-001").status_code == 404
    assert sent(client, conflict, tom, finding="").status_code == 404


def test_a_ruled_finding_is_refused_on_the_page(client: Client, conflict: Conflict, tom: User) -> None:
    rulings.decide(conflict, "uphold_coder", user=tom)
    reply = sent(client, conflict, tom)
    assert reply.status_code == 409
    assert "Reopen that ruling instead." in reply.content.decode()
