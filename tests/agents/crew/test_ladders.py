"""What a task's failures lead to: the count, the steps, specialists, people (LAD-1 to LAD-4)."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.crew import attempts, specialists
from agents.crew.choosing import Crew, Roster
from agents.loop import run_ends
from agents.loop.orchestrator import tick
from agents.models import Agent, Run
from disputes.models import Conflict
from disputes.protocol.rulings.options import Option
from disputes.rulings import decide
from tasks.events import SYSTEM
from tasks.models import Comment, Event, Project, Submission, Task
from tests.asking import fresh
from tests.cases import for_each
from tests.factories import (
    create_agent,
    create_finding,
    create_review,
    create_run,
    create_submission,
    create_task,
    sha,
)

pytestmark = pytest.mark.django_db

LADDER = {"0-1": "small", "2-3": "mid", "4-5": "top", "6+": "escalate"}
SENIOR = {"0": "top", "1+": "escalate"}


@pytest.fixture
def project(ledger: Project) -> Project:
    """One cheap, one middling and one dear developer, on a ladder."""
    ledger.settings = {"model_ladder": {"dev-agent": LADDER, "senior-dev-agent": SENIOR}}
    ledger.save()
    for tier in ("small", "mid", "top"):
        create_agent("coder", name=tier, kind="dev-agent", tier=tier, model=f"{tier}-1")
    return ledger


def count(task: Task) -> int:
    return attempts.failures_of([fresh(task)])[task.pk]


def ended(task: Task, outcome: str = "nothing", **kwargs: Any) -> Run:
    """A run of a coder that was under way ends like this."""
    run = create_run(task, stage=task.stage, **kwargs)
    run_ends.end(run, outcome, reason="It gave up.")
    return run


def handed_in(task: Task, state: str, **kwargs: Any) -> Submission:
    """A run of a coder handed this in."""
    made = create_submission(task, state=state, **kwargs)
    over = {"status": "ended", "outcome": "handed_in", "ended_at": timezone.now()}
    create_run(task, stage=task.stage, submission=made, agent_label=made.by_agent, **over)
    return made


def rejected(task: Task) -> None:
    """A round that a reviewer sent back."""
    made = handed_in(task, "verified")
    create_finding(create_review(made), title="No pause between tries")
    task.submit(actor=SYSTEM)
    task.reject(actor=SYSTEM)


def next_run(task: Task) -> Run | None:
    """What the loop starts for the task, once it has rested."""
    Task.objects.update(not_before=None)
    tick()
    return Run.objects.live().filter(task=task).first()


# --- What counts ------------------------------------------------------------------------------------------


@pytest.fixture
def task(project: Project) -> Task:
    return create_task(project, status="in_progress", round=1, title="Retry failed calls")


@for_each("outcome", ["nothing", "not_taken", "silent", "wall", "bytes", "crash"])
def test_a_run_that_came_to_nothing_counts(task: Task, outcome: str) -> None:
    ended(task, outcome)
    assert count(task) == 1


@for_each("outcome", ["handed_in", "stopped", "lost", "provider", "cost", "refused"])
def test_trouble_that_is_not_the_models_does_not(task: Task, outcome: str) -> None:
    ended(task, outcome)
    assert count(task) == 0


@pytest.mark.parametrize(("state", "failures"), [("red", 1), ("lost", 1), ("received", 0), ("verified", 0)])
def test_a_submission_that_came_back_counts(task: Task, state: str, failures: int) -> None:
    handed_in(task, state)
    assert count(task) == failures


def test_a_rejection_counts_once_however_many_reviews_it_had(task: Task) -> None:
    rejected(task)
    create_review(task.submissions.get(), by_agent="reviewer-2")
    assert count(task) == 1


def test_a_review_alone_is_no_rejection(task: Task) -> None:
    """A dispute, or other reviewers who are still at it."""
    create_review(handed_in(task, "verified"))
    assert count(task) == 0


def test_reviewers_and_opinions_do_not_climb_the_coders_ladder(task: Task) -> None:
    for role in ("reviewer", "judge", "verifier"):
        ended(task, role=role, seat=role)
    assert count(task) == 0


def test_the_count_begins_anew_where_a_human_starts_the_task_again(task: Task) -> None:
    ended(task)
    rejected(task)
    Task.objects.filter(pk=task.pk).update(counts_since=timezone.now())
    assert count(task) == 0
    ended(fresh(task), queued_at=timezone.now() + timedelta(seconds=1))
    assert count(task) == 1


def test_each_stage_counts_its_own(task: Task) -> None:
    ended(task)
    ended(task)
    Task.objects.filter(pk=task.pk).update(stage="needs-senior-dev")
    assert count(task) == 0
    ended(fresh(task))
    assert count(task) == 1
    Task.objects.filter(pk=task.pk).update(stage="dev")
    assert count(task) == 0


def test_the_attempts_say_who_tried_what_and_why_it_failed(task: Task) -> None:
    ended(task, agent_label="small", model="small-1", step="0-1: small")
    handed_in(task, "red", problem="test ended with 1", by_agent="small")
    rejected(task)
    one, two, three = map(str, attempts.attempts_of(fresh(task)))
    assert one.endswith("small (small-1), step 0-1: small: Nothing handed in. It gave up.")
    assert two.endswith("small: build or tests red: test ended with 1")
    assert three.endswith("rejected by reviewer-1: ISSUE-R1-001 No pause between tries")
    assert [line[:2] for line in (one, two, three)] == ["1.", "2.", "3."]


def test_what_an_agent_wrote_stays_one_bounded_line(task: Task) -> None:
    handed_in(task, "red", problem="# Approved\n" + "x" * 480)
    (attempt,) = attempts.attempts_of(fresh(task))
    assert "\n" not in attempt.why
    assert len(attempt.why) == attempts.WHY_MAX


def test_very_many_attempts_are_cut_in_the_middle(task: Task) -> None:
    for _ in range(attempts.LISTED_MAX + 5):
        ended(task)
    lines = attempts.listed(attempts.attempts_of(fresh(task)))
    assert len(lines) == attempts.LISTED_MAX + 1
    assert lines[attempts.LISTED_MAX // 2] == "(5 more)"
    assert lines[-1].startswith(f"{attempts.LISTED_MAX + 5}.")


# --- Instead of the limit of empty runs ---------------------------------------------------------------------


def test_with_a_ladder_its_end_decides_and_not_the_number_of_empty_runs(task: Task) -> None:
    task.project.settings = {"model_ladder": {"dev-agent": {"0-8": "small", "9+": "escalate"}}}
    task.project.save()
    for _ in range(settings.EMPTY_RUNS_MAX + 2):
        ended(fresh(task))
        assert fresh(task).not_before is not None
    assert fresh(task).status == "in_progress"


def test_red_work_climbs_the_ladder_too(task: Task) -> None:
    for _ in range(settings.EMPTY_RUNS_MAX + 1):
        handed_in(fresh(task), "red")
        fresh(task).submit(actor=SYSTEM)
        run_ends.send_back(fresh(task), "test ended with 1")
    assert (fresh(task).status, count(task)) == ("in_progress", settings.EMPTY_RUNS_MAX + 1)


def test_starts_that_are_refused_still_ask_a_human(task: Task) -> None:
    """A missing program is the operator's to mend; no other model would do better."""
    for _ in range(settings.EMPTY_RUNS_MAX):
        ended(fresh(task), "refused")
    assert fresh(task).status == "disputed"
    assert Conflict.objects.get().origin == Conflict.Origin.EMPTY_RUNS


# --- The walk ---------------------------------------------------------------------------------------------


def test_a_task_climbs_from_small_to_a_specialist_and_then_to_people(
    project: Project, task: Task, lea: User
) -> None:
    """0-1 small, 2-3 mid, 4-5 top, 6+: the senior's column, and when she fails too, a human."""
    create_agent("coder", name="senior", kind="senior-dev-agent", tier="top", model="top-1")
    who = []
    for _ in range(6):
        run = next_run(task)
        assert run is not None
        who.append((run.agent_label, run.step))
        run_ends.end(run, Run.Outcome.NOTHING)
    assert who == [
        ("small", "0-1: small"), ("small", "0-1: small"), ("mid", "2-3: mid"), ("mid", "2-3: mid"),
        ("top", "4-5: top"), ("top", "4-5: top"),
    ]  # fmt: skip

    assert next_run(task) is None  # this turn of the loop moves it
    moved = fresh(task)
    assert (moved.status, moved.stage, moved.home_stage, moved.escalation) == (
        "in_progress", "needs-senior-dev", "dev", "unknown",
    )  # fmt: skip
    said = Comment.objects.get(task=task).body
    assert said.startswith("Escalated from dev to needs-senior-dev (unknown).")
    assert said.count("\n- ") == 6
    assert "step 4-5: top" in said

    run = next_run(task)
    assert run is not None
    assert (run.agent_label, run.stage, run.step) == ("senior", "needs-senior-dev", "0: top")
    run_ends.end(run, Run.Outcome.NOTHING)
    assert next_run(task) is None
    card = Conflict.objects.get()
    assert (card.kind, card.origin, card.effect) == ("help", "ladder", "hold")
    assert card.question == "Needs a senior developer: the specialists failed too: Retry failed calls"
    assert len(card.evidence) == 7
    assert fresh(task).status == "disputed"
    assert next_run(task) is None

    decide(card, Option.RETRY, user=lea)
    Task.objects.update(not_before=None)
    assert count(task) == 0
    run = next_run(task)
    assert run is not None
    assert (run.agent_label, run.step) == ("senior", "0: top")


def test_what_the_specialist_solved_goes_on_from_its_home(project: Project, task: Task) -> None:
    project.settings |= {"stages": ["tests", "dev", "qa"]}
    project.save()
    create_agent("coder", kind="senior-dev-agent", name="senior")
    specialists.escalate(fresh(task))
    submission = create_submission(fresh(task))
    fresh(task).submit(actor=SYSTEM)
    fresh(task).approve(submission, actor=SYSTEM)
    after = fresh(task)
    assert (after.stage, after.home_stage, after.escalation) == ("qa", "", "")
    assert after.status == "in_progress"


def test_where_nobody_watches_the_column_a_human_is_asked_at_once(task: Task) -> None:
    for _ in range(6):
        ended(fresh(task))
    next_run(task)
    card = Conflict.objects.get()
    assert (card.origin, card.question) == ("ladder", "Nobody watches needs-senior-dev: Retry failed calls")
    assert (fresh(task).status, fresh(task).stage) == ("disputed", "dev")
    assert len(card.evidence) == 6


@for_each(
    ("reason", "column"),
    [
        ("concurrency", "needs-concurrency-expert"), ("security", "needs-security-review"),
        ("performance", "needs-perf-tuning"), ("architecture", "needs-arch-clarification"),
        ("unknown", "needs-senior-dev"),
    ],
)  # fmt: skip
def test_each_reason_has_its_column(task: Task, reason: str, column: str) -> None:
    create_agent("coder", watches=[column])
    assert specialists.escalate(fresh(task), reason, notes="I cannot see where.") is None
    assert (fresh(task).stage, fresh(task).escalation) == (column, reason)
    assert "I cannot see where." in Comment.objects.get().body
    event = Event.objects.get(kind="escalate")
    assert event.data["reason"] == reason


def test_every_column_of_the_ladder_is_out_of_the_loop_while_somebody_else_is_busy(
    project: Project, task: Task
) -> None:
    """A task at its end goes to the specialist, though no developer is free."""
    create_agent("coder", kind="senior-dev-agent", name="senior")
    for _ in range(6):
        ended(fresh(task))
    for agent in Agent.objects.filter(kind="dev-agent"):
        for _ in range(agent.slots):
            create_run(create_task(status="in_progress"), agent=agent)
    next_run(task)
    assert fresh(task).stage == "needs-senior-dev"


def test_the_line_of_a_task_says_that_its_ladder_is_at_its_end(task: Task) -> None:
    for _ in range(6):
        ended(fresh(task))
    turn = Roster(Crew(), [fresh(task)]).turn_of(fresh(task))
    assert turn.why == "the ladder of models has come to its end; it goes to a specialist"


def test_an_escalation_ends_no_argument(task: Task) -> None:
    """ITM-4: "I cannot" opens no disagreement and counts no rejection."""
    create_agent("coder", watches=["needs-senior-dev"])
    specialists.escalate(fresh(task))
    assert not Conflict.objects.exists()
    assert (fresh(task).rejections, fresh(task).round) == (0, 1)
    assert sha(1) not in Comment.objects.get().body


# --- On the task's page -----------------------------------------------------------------------------------


def test_the_page_lists_the_attempts_and_where_on_the_ladder_the_task_stands(
    client: Client, task: Task, tom: User
) -> None:
    client.force_login(tom)
    page = client.get(f"/tasks/{task.ref}/").content.decode()
    assert "on the ladder: step 1 of 3, 0-1: small" in page
    ended(task, agent_label="small", model="<b>small</b>", step="0-1: small")
    rejected(fresh(task))
    page = client.get(f"/tasks/{task.ref}/").content.decode()
    assert "on the ladder: step 2 of 3, 2-3: mid" in page
    assert "rejected by reviewer-1: ISSUE-R1-001 No pause between tries" in page
    assert "<b>small</b>" not in page


def test_a_task_without_a_ladder_shows_no_attempts(client: Client, ledger: Project, tom: User) -> None:
    task = create_task(ledger, status="in_progress", round=1)
    ended(task)
    client.force_login(tom)
    assert b"Attempts that failed" not in client.get(f"/tasks/{task.ref}/").content


def test_many_attempts_cost_the_page_no_more_than_a_few(task: Task, django_assert_num_queries: Any) -> None:
    for _ in range(3):
        rejected(fresh(task))
        ended(fresh(task))
    with django_assert_num_queries(3):
        assert len(attempts.attempts_of(task)) == 6
