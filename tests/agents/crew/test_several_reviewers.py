"""Several reviewers of one submission: at the same time, and the strictest verdict stands (ARB-8, ARB-9)."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from agents.loop import run_ends
from agents.loop.orchestrator import tick
from agents.models import Agent, ProviderPause, Run, new_token, token_hash
from agents.web import standing
from disputes import intake
from disputes.models import Conflict
from disputes.protocol.responses.response import Disagreement
from tasks.events import SYSTEM
from tasks.models import Event, Finding, Project, Review, Task
from tests.agents.world import at_once
from tests.asking import fresh, kinds
from tests.factories import create_agent, create_submission, create_task

pytestmark = pytest.mark.django_db

HIGH = """\
## Verdict
NEEDS_REVISION

## High

### ISSUE-R1-001: Failed calls are retried at once

- **Location:** src/calls.py:12
- **Impact:** A dead server is hammered.
- **Suggestion:** Wait between tries.
"""
SAME = HIGH.replace("Failed calls are retried at once", "Calls that failed are retried at once")
OTHER = """\
## Verdict
NEEDS_REVISION

## High

### ISSUE-R1-001: The log holds the password

- **Location:** src/log.py:40
- **Impact:** Whoever reads the log can sign in.
- **Suggestion:** Mask it.
"""


@pytest.fixture
def project(ledger: Project, settings: Any) -> Project:
    """Three reviewers, who all review at the same time."""
    settings.DURATIONS = settings.DURATIONS | {"away": 3600.0}
    ledger.settings = {"reviewers": "all"}
    ledger.max_parallel = 10
    ledger.save()
    for name in ("ann", "ben", "cleo"):
        create_agent("reviewer", name=name, provider="command")
    return ledger


@pytest.fixture
def task(project: Project) -> Task:
    """A green submission waits for its reviews."""
    made = create_task(project, status="review", round=1, title="Retry failed calls")
    create_submission(made)
    return made


def seats() -> list[str]:
    return sorted(Run.objects.filter(status__in=Run.SEATED).values_list("seat", flat=True))


def begin(*names: str) -> dict[str, str]:
    """The loop turns, and the host starts what it queued. The tokens by reviewer."""
    tick()
    tokens = {}
    for run in Run.objects.filter(status=Run.Status.QUEUED):
        secret = new_token()
        Run.objects.filter(pk=run.pk).update(
            status=Run.Status.RUNNING, token_hash=token_hash(secret), spent_hash=token_hash(secret)
        )
        tokens[run.agent_label] = secret
    return tokens


def says(secret: str, task: Task, review: str = "") -> dict[str, Any]:
    """The reviewer hands in: a review that rejects, or else an approval."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    verb = "reject" if review else "approve"
    reply = client.post(f"/api/v1/tasks/{task.ref}/{verb}/", {"review": review}, format="json")
    assert reply.status_code == 201, reply.json()
    body: dict[str, Any] = reply.json()
    return body


# --- At the same time ---------------------------------------------------------------------------------------


def test_each_reviewer_has_a_seat_of_its_own(task: Task) -> None:
    begin()
    assert seats() == ["reviewer:ann", "reviewer:ben", "reviewer:cleo"]
    begin()
    assert Run.objects.count() == 3


def test_who_finds_no_seat_joins_once_one_is_free(project: Project, task: Task) -> None:
    Project.objects.update(max_parallel=2)
    tokens = begin()
    assert seats() == ["reviewer:ann", "reviewer:ben"]
    says(tokens["ann"], task)
    begin()
    assert seats() == ["reviewer:ben", "reviewer:cleo"]


def test_the_task_moves_with_the_last_review(task: Task) -> None:
    tokens = begin()
    reply = says(tokens["ben"], task)
    assert reply["message"] == f"{task.ref}: Approved; other reviewers are still at it."
    says(tokens["ann"], task)
    assert fresh(task).status == "review"
    assert "approve" not in kinds(task)
    says(tokens["cleo"], task)
    assert fresh(task).status == "completed"
    assert kinds(task)[-1:] == ["approve"]
    assert kinds(task).count("review_in") == 2
    assert "reviews_differ" not in kinds(task)


def test_the_line_names_whose_review_is_missing(task: Task) -> None:
    tokens = begin()
    says(tokens["ann"], task)
    for run in Run.objects.filter(agent__name__in=["ben", "cleo"]):
        run_ends.end(run, Run.Outcome.STOPPED)
    pause("command:ben")
    pause("command:cleo")
    line = standing.line_of(fresh(task))
    assert line.startswith("The reviewer's turn; waits for ben, cleo; ben, cleo are paused until ")


def pause(account: str, until: timedelta = timedelta(minutes=30), since: timedelta = timedelta(0)) -> None:
    now = timezone.now()
    ProviderPause.objects.create(
        name=account, kind="quota", reason="The quota is used up.", since=now - since, until=now + until
    )


# --- They differ --------------------------------------------------------------------------------------------


def test_the_stricter_verdict_stands_and_the_difference_is_recorded(task: Task) -> None:
    tokens = begin()
    says(tokens["ann"], task)
    says(tokens["ben"], task, HIGH)
    says(tokens["cleo"], task)
    assert (fresh(task).status, fresh(task).round, fresh(task).rejections) == ("in_progress", 2, 1)
    differ = Event.objects.get(kind="reviews_differ")
    assert differ.note == "ann: Approved, ben: Needs Revision, cleo: Approved. The strictest stands."


def test_no_verdict_is_rewritten(task: Task) -> None:
    tokens = begin()
    says(tokens["ann"], task)
    says(tokens["ben"], task, HIGH)
    says(tokens["cleo"], task)
    assert dict(Review.objects.values_list("by_agent", "verdict")) == {
        "ann": "APPROVED", "ben": "NEEDS_REVISION", "cleo": "APPROVED",
    }  # fmt: skip


def test_the_coder_answers_what_any_of_them_raised(task: Task) -> None:
    tokens = begin()
    says(tokens["ben"], task, HIGH)
    says(tokens["ann"], task, OTHER)
    says(tokens["cleo"], task)
    codes = [(finding.code, finding.title) for finding in intake.findings_to_answer(fresh(task))]
    assert codes == [
        ("ISSUE-R1-001", "Failed calls are retried at once"),
        ("ISSUE-R1-002", "The log holds the password"),
    ]


def test_a_point_that_two_raise_is_answered_once_and_names_both(task: Task) -> None:
    tokens = begin()
    says(tokens["ben"], task, HIGH)
    says(tokens["ann"], task, SAME)
    says(tokens["cleo"], task)
    (finding,) = intake.findings_to_answer(fresh(task))
    assert intake.raised_by(finding) == ["ben", "ann"]
    assert Finding.objects.filter(first__isnull=False).get().review.by_agent == "ann"
    assert intake.not_raised_by(finding) == ["cleo reviewed the same commit and did not raise it: Approved."]


def test_of_two_severities_for_one_point_the_graver_is_asked(task: Task) -> None:
    tokens = begin()
    says(tokens["ben"], task, HIGH.replace("## High", "## Medium"))
    says(tokens["ann"], task, SAME)
    says(tokens["cleo"], task)
    (finding,) = intake.findings_to_answer(fresh(task))
    assert (finding.severity, finding.mandatory) == ("high", True)


def test_a_dispute_shows_what_the_others_said(task: Task) -> None:
    tokens = begin()
    says(tokens["ben"], task, HIGH)
    says(tokens["ann"], task, SAME)
    says(tokens["cleo"], task)
    (finding,) = intake.findings_to_answer(fresh(task))
    submission = create_submission(fresh(task))

    conflict = intake.disagree(
        submission,
        finding,
        Disagreement(finding.code, finding.title, "They are not.", "The server asks for it.", "", 1),
        actor=SYSTEM,
    )  # fmt: skip
    assert conflict.reviewer_label == "ben, ann"
    assert conflict.evidence == ["cleo reviewed the same commit and did not raise it: Approved."]


# --- Somebody does not come ---------------------------------------------------------------------------------


def test_a_reviewer_whose_run_failed_is_started_again(task: Task) -> None:
    tokens = begin()
    says(tokens["ann"], task)
    says(tokens["ben"], task)
    run_ends.end(Run.objects.get(agent__name="cleo"), Run.Outcome.NOTHING)
    assert fresh(task).not_before is not None
    Task.objects.update(not_before=None)
    tokens = begin()
    assert list(tokens) == ["cleo"]
    says(tokens["cleo"], task)
    assert fresh(task).status == "completed"


def test_one_that_was_switched_off_is_not_waited_for(task: Task) -> None:
    tokens = begin()
    says(tokens["ann"], task)
    says(tokens["ben"], task, HIGH)
    run_ends.end(Run.objects.get(agent__name="cleo"), Run.Outcome.STOPPED)
    Agent.objects.filter(name="cleo").update(is_active=False)
    tick()
    assert fresh(task).status == "in_progress"
    assert Event.objects.get(kind="reject").note == "ann: Approved; ben: Needs Revision"


@pytest.mark.parametrize(
    ("until", "since", "waits"),
    [
        (timedelta(minutes=40), timedelta(0), True),
        (timedelta(hours=5), timedelta(0), False),
        (timedelta(minutes=5), timedelta(hours=3), False),
    ],
)
def test_one_whose_account_is_in_trouble_for_long_is_not_waited_for(
    task: Task, until: timedelta, since: timedelta, waits: bool
) -> None:
    pause("command:cleo", until, since)
    tokens = begin()
    assert sorted(tokens) == ["ann", "ben"]
    says(tokens["ann"], task)
    says(tokens["ben"], task)
    assert (fresh(task).status == "review") is waits
    if not waits:
        assert Event.objects.get(kind="reviewed_without").note == "Nobody waited for cleo."


def test_a_review_of_settled_points_is_given_again(task: Task) -> None:
    """A rejection that raises nothing that may block says nothing: that reviewer looks once more."""
    tokens = begin()
    says(tokens["ann"], task)
    Task.objects.filter(pk=task.pk).update(version=fresh(task).version)
    says(tokens["ben"], task)
    review = Review.objects.get(by_agent="ben")
    Review.objects.filter(pk=review.pk).update(verdict=Review.Verdict.NEEDS_REVISION)  # without a finding
    says(tokens["cleo"], task)
    assert fresh(task).status == "review"
    assert list(begin()) == ["ben"]


def test_a_reviewer_that_opens_a_dispute_ends_the_turn_of_all(task: Task) -> None:
    tokens = begin()
    says(tokens["ann"], task)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {tokens['ben']}")
    body = {"reason": "security_concern", "position": "This must not land."}
    assert client.post(f"/api/v1/tasks/{task.ref}/dispute/", body, format="json").status_code == 201
    assert (fresh(task).status, Conflict.objects.get().effect) == ("disputed", "hold")
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {tokens['cleo']}")
    late = client.post(f"/api/v1/tasks/{task.ref}/approve/", {}, format="json")
    assert (late.status_code, late.json()["code"]) == (409, "wrong_status")
    assert begin() == {}


# --- Races --------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_of_the_last_two_reviews_at_once_exactly_one_moves_the_task(task: Task) -> None:
    tokens = begin()
    says(tokens["ann"], task)
    at_once(lambda: says(tokens["ben"], task, HIGH), lambda: says(tokens["cleo"], task))
    assert (fresh(task).status, fresh(task).round) == ("in_progress", 2)
    assert kinds(task).count("reject") == 1
    assert Review.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_two_ticks_at_once_seat_each_reviewer_once(task: Task) -> None:
    at_once(tick, tick)
    assert seats() == ["reviewer:ann", "reviewer:ben", "reviewer:cleo"]
    assert Run.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_tick_beside_the_last_review_moves_the_task_once(task: Task) -> None:
    tokens = begin()
    says(tokens["ann"], task)
    says(tokens["ben"], task)
    at_once(lambda: says(tokens["cleo"], task), tick, tick)
    assert fresh(task).status == "completed"
    assert kinds(task).count("approve") == 1


# --- On the task's page -----------------------------------------------------------------------------------


def test_the_page_says_who_is_missing_and_that_they_differ(client: Client, task: Task, tom: User) -> None:
    client.force_login(tom)
    tokens = begin()
    says(tokens["ann"], task)
    page = client.get(f"/tasks/{task.ref}/").content.decode()
    assert "Still to come: ben, cleo" in page
    says(tokens["ben"], task, HIGH)
    says(tokens["cleo"], task)
    page = client.get(f"/tasks/{task.ref}/").content.decode()
    assert "They differ; the strictest verdict stands." in page
    assert "Still to come" not in page
