"""A finding that reads like an earlier one: a person says whether it is the same point."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from disputes import finding_identity, intake, opening, rulings, severity_changes
from disputes.models import Conflict, Flag
from tasks.errors import Refused
from tasks.models import Answer, Event, Finding, Project, Task
from tests.asking import page
from tests.cases import for_each
from tests.factories import create_finding, create_review, create_submission, create_task

pytestmark = pytest.mark.django_db


@pytest.fixture
def task(ledger: Project) -> Task:
    """Reviewed in two rounds, and back with the coder."""
    task = create_task(ledger, status="in_progress", round=3)
    for number in (1, 2):
        create_review(create_submission(task, round=number))
    return task


def raised(task: Task, number: int, **kwargs: Any) -> Finding:
    return create_finding(task.submissions.get(round=number).reviews.get(), **kwargs)


@pytest.fixture
def earlier(task: Task) -> Finding:
    return raised(task, 1, title="Failed calls are retried at once")


@pytest.fixture
def later(task: Task, earlier: Finding) -> Finding:
    """Raised in round 2, and possibly the same."""
    return raised(task, 2, title="Calls that fail hammer the server", possibly=earlier)


def dispute(finding: Finding, **kwargs: Any) -> Conflict:
    given = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder", "question": finding.title,
        "finding": finding, "submission": finding.review.submission, "reviewer_position": "Wait.",
        "coder_position": "No.",
    } | kwargs  # fmt: skip
    conflict = opening.open_conflict(finding.task, **given)
    Task.objects.filter(pk=finding.task_id).update(status="disputed")
    return conflict


def say(finding: Finding, user: User, same: bool = True) -> Finding:
    said = finding_identity.confirm_same(finding, user=user, same=same)
    said.refresh_from_db()
    return said


def refusal(*args: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        say(*args)
    return caught.value


def fresh(conflict: Conflict) -> Conflict:
    return Conflict.objects.select_related("dispute__task").get(pk=conflict.pk)


# --- What it does -----------------------------------------------------------------------------------------


def test_the_same_point_is_one_point(earlier: Finding, later: Finding, tom: User) -> None:
    said = say(later, tom)
    assert (said.first, said.possibly, said.origin) == (earlier, None, earlier)
    event = Event.objects.get(kind="findings_compared")
    assert (event.user, event.note) == (tom, "ISSUE-R2-002 is the same as ISSUE-R1-001.")


def test_another_point_stays_one_of_its_own(earlier: Finding, later: Finding, tom: User) -> None:
    said = say(later, tom, False)
    assert (said.first, said.possibly) == (None, None)
    assert Event.objects.get(kind="findings_compared").note == "ISSUE-R2-002 is another than ISSUE-R1-001."


def test_what_repeats_it_is_the_same_point_too(
    task: Task, earlier: Finding, later: Finding, tom: User
) -> None:
    create_review(create_submission(task, round=3))
    third = raised(task, 3, first=later)
    say(later, tom)
    third.refresh_from_db()
    assert third.origin == earlier


def test_the_point_is_the_one_that_was_raised_first(task: Task, earlier: Finding, tom: User) -> None:
    repeated = raised(task, 2, first=earlier)
    create_review(create_submission(task, round=3))
    third = raised(task, 3, possibly=repeated)
    assert say(third, tom).first == earlier


def test_answers_and_flags_go_over(task: Task, earlier: Finding, later: Finding, tom: User) -> None:
    third = create_submission(task, round=3)
    Answer.objects.create(submission=third, finding=later, kind="addressed", text="Done.")
    Flag.objects.create(submission=third, finding=later, level="log")
    say(later, tom)
    assert (Answer.objects.get().finding, Flag.objects.get().finding) == (earlier, earlier)
    assert intake.findings_to_answer(task) == []


def test_where_both_were_answered_each_keeps_its_own(
    task: Task, earlier: Finding, later: Finding, tom: User
) -> None:
    third = create_submission(task, round=3)
    Answer.objects.create(submission=third, finding=earlier, kind="addressed", text="Done.")
    Answer.objects.create(submission=third, finding=later, kind="declined", text="No.")
    say(later, tom)
    assert Answer.objects.get(finding=earlier).text == "Done."


# --- What is in dispute -----------------------------------------------------------------------------------


def test_a_dispute_about_it_is_one_about_the_point(earlier: Finding, later: Finding, tom: User) -> None:
    """The dispute's page is where people are asked, so there is always one."""
    conflict = dispute(later)
    say(later, tom)
    conflict = fresh(conflict)
    assert (conflict.finding, conflict.status, conflict.task.status) == (earlier, "open", "disputed")


def test_it_names_the_ruling_before_it(earlier: Finding, later: Finding, tom: User) -> None:
    old = dispute(earlier)
    rulings.decide(old, "uphold_reviewer", user=tom)
    conflict = dispute(later)
    say(later, tom)
    conflict = fresh(conflict)
    assert (conflict.previous, conflict.status) == (old, "open")


@for_each("settled", ["uphold_coder", "waive"])
def test_a_point_that_is_settled_is_not_ruled_on_again(
    earlier: Finding, later: Finding, tom: User, settled: str
) -> None:
    """DEC-13: raised again, it is dropped."""
    old = dispute(earlier, **({"kind": "silence", "effect": "hold"} if settled == "waive" else {}))
    rulings.decide(old, settled, user=tom, text="So be it.")
    conflict = dispute(later)
    say(later, tom)
    conflict = fresh(conflict)
    assert (conflict.status, conflict.dispute.status == "open") == ("moot", False)
    assert conflict.task.status != "disputed"


def test_so_is_one_that_a_person_lowered(task: Task, earlier: Finding, later: Finding, tom: User) -> None:
    """SEV-7"""
    severity_changes.change_severity(earlier, "low", user=tom, reason="It is taste.")
    conflict = dispute(later)
    said = say(later, tom)
    assert (said.severity, said.mandatory, said.first_severity) == ("low", False, "high")
    assert fresh(conflict).status == "moot"


def test_a_flag_about_it_is_settled_too(task: Task, earlier: Finding, later: Finding, tom: User) -> None:
    rulings.decide(dispute(earlier), "uphold_coder", user=tom)
    card = dispute(later, kind="silence", effect="hold")
    Flag.objects.create(submission=create_submission(task), finding=later, level="warn", conflict=card)
    say(later, tom)
    assert (fresh(card).status, Flag.objects.get().status) == ("moot", "moot")


def test_two_disputes_about_one_point_are_ruled_on_one_by_one(
    earlier: Finding, later: Finding, tom: User
) -> None:
    dispute(earlier)
    dispute(later)
    assert refusal(later, tom).code == "already_open"
    later.refresh_from_db()
    assert (later.first, later.possibly) == (None, earlier)
    assert not Event.objects.filter(kind="findings_compared").exists()


def test_that_it_was_declined_before_makes_it_a_dispute(
    task: Task, earlier: Finding, later: Finding, tom: User
) -> None:
    """An optional one that is raised again as mandatory after it was declined."""
    Finding.objects.filter(pk=earlier.pk).update(mandatory=False, severity="low")
    second = task.submissions.get(round=2)
    Answer.objects.create(submission=second, finding=earlier, kind="declined", text="It is bounded.")
    say(later, tom)
    conflict = Conflict.objects.get()
    assert (conflict.finding, conflict.coder_position) == (earlier, "It is bounded.")
    task.refresh_from_db()
    assert task.status == "disputed"


# --- Refusals ---------------------------------------------------------------------------------------------


def test_nobody_is_asked_twice(later: Finding, tom: User) -> None:
    say(later, tom, False)
    assert refusal(later, tom).code == "unchanged"


@for_each("who", ["vera", "otto"])
def test_who_may_not_rule_says_nothing(later: Finding, who: str, otto: User) -> None:
    found = refusal(later, User.objects.get(username=who))
    assert (found.code, found.status) == ("no_right", 403)


# --- The page ---------------------------------------------------------------------------------------------


def sent(client: Client, conflict: Conflict, user: User, **body: str) -> Any:
    client.force_login(user)
    given = {"conflict": conflict.ref, "finding": "ISSUE-R2-002", "same": "yes"}
    return client.post(page(conflict, "same/"), given | body)


def test_the_page_asks_and_takes_the_answer(
    client: Client, earlier: Finding, later: Finding, tom: User
) -> None:
    conflict = dispute(later)
    client.force_login(tom)
    html = client.get(page(conflict)).content.decode()
    assert "Is ISSUE-R2-002 possibly the same as ISSUE-R1-001?" in html
    reply = sent(client, conflict, tom)
    assert (reply.status_code, reply.url) == (302, f"{page(conflict)}?conflict={conflict.ref}")
    html = client.get(reply.url).content.decode()
    assert "ISSUE-R2-002 is that point, raised again." in html
    assert "possibly the same" not in html


def test_also_about_a_finding_that_is_not_in_dispute(
    client: Client, task: Task, later: Finding, tom: User
) -> None:
    conflict = dispute(raised(task, 2))
    client.force_login(tom)
    assert "Is ISSUE-R2-002 possibly the same as" in client.get(page(conflict)).content.decode()
    assert sent(client, conflict, tom, same="no").status_code == 302
    later.refresh_from_db()
    assert later.possibly is None


@for_each("said", ["", "perhaps"])
def test_neither_yes_nor_no_says_nothing(client: Client, later: Finding, tom: User, said: str) -> None:
    conflict = dispute(later)
    assert sent(client, conflict, tom, same=said).status_code == 422
    later.refresh_from_db()
    assert later.possibly is not None


def test_a_second_press_is_told(client: Client, later: Finding, tom: User) -> None:
    conflict = dispute(later)
    sent(client, conflict, tom, same="no")
    reply = sent(client, conflict, tom, same="yes")
    assert reply.status_code == 409
    assert "is compared with no other" in reply.content.decode()


def test_a_viewer_is_not_asked(client: Client, later: Finding, vera: User) -> None:
    conflict = dispute(later)
    client.force_login(vera)
    assert "possibly the same" not in client.get(page(conflict)).content.decode()


def test_a_finding_of_another_task_is_not_found(
    client: Client, ledger: Project, later: Finding, tom: User
) -> None:
    other = create_task(ledger)
    create_finding(create_review(create_submission(other)), code="ISSUE-R9-001")
    assert sent(client, dispute(later), tom, finding="ISSUE-R9-001").status_code == 404
