"""tick(): what is started, for whom, in which order; and what a run without result leads to."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import Schedule

from agents.crew import choosing, pauses
from agents.hosts.reconciler import Reconciler
from agents.loop import candidates, orchestrator, run_ends
from agents.models import Agent, ProviderPause, Run
from agents.providers.reports import ErrorClass
from agents.verification import unreachable
from disputes import opening, rulings
from disputes.models import Conflict
from disputes.notifications import notices
from disputes.sessions import turns
from tasks.configuration.changing import configure
from tasks.database.prepared import Prepared
from tasks.dependencies import recount
from tasks.events import SYSTEM, Actor
from tasks.models import Event, Landing, Project, Submission, Task
from tests.agents.world import at_once
from tests.cases import for_each
from tests.factories import (
    create_agent,
    create_host,
    create_project,
    create_run,
    create_section,
    create_submission,
    create_task,
    create_user,
    sha,
)

pytestmark = pytest.mark.django_db

SOON = timedelta(minutes=5)


@pytest.fixture
def project(db: None) -> Project:
    """Ten seats, one coder and one reviewer with as many slots."""
    create_agent("coder", name="coder", slots=10)
    create_agent("reviewer", name="reviewer", slots=10)
    return create_project(max_parallel=10, settings={"test_command": "make test"})


def in_review(project: Project, state: str = Submission.State.VERIFIED, **kwargs: Any) -> Task:
    task = create_task(project, status="review", round=1, **kwargs)
    create_submission(task, state=state)
    return task


def queued() -> list[tuple[int, str]]:
    """Task and role of the runs there are, in the order they were made."""
    return list(Run.objects.order_by("pk").values_list("task", "role"))


@contextmanager
def set_back() -> Iterator[None]:
    """What happens meanwhile leaves no rows."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def tick() -> list[tuple[int, str]]:
    orchestrator.tick()
    return queued()


def end_all(outcome: str = Run.Outcome.STOPPED) -> None:
    for run in Run.objects.live():
        run_ends.end(run, outcome)


# --- What comes first -------------------------------------------------------------------------------------


def test_reviews_come_first_then_work_under_way_then_new_work(project: Project) -> None:
    new = create_task(project, rank=1)
    going = create_task(project, rank=2, status="in_progress", round=1)
    review = in_review(project, rank=3)
    assert tick() == [(review.pk, "reviewer"), (going.pk, "coder"), (new.pk, "coder")]


def test_a_project_whose_stored_settings_are_not_valid_is_paused_and_the_others_go_on(
    project: Project, lea: User
) -> None:
    """As an upgrade or an edit past the forms may leave it; no default may stand in where work is judged."""
    broken = create_project(max_parallel=10, members={lea: "maintainer"})
    waiting, new = in_review(broken), create_task(project)
    Project.objects.filter(pk=broken.pk).update(settings={"colour": "red", "test_command": 7})
    broken.refresh_from_db()

    assert not create_host().may_run(broken)
    assert tick() == [(new.pk, "coder")]
    broken.refresh_from_db()
    assert broken.status == Project.Status.PAUSED
    event = Event.objects.get(project=broken, kind="settings_invalid")
    assert event.note == "unknown setting: colour. test_command is 7; a text is needed."
    assert notices.is_told(event.kind)

    Project.objects.filter(pk=broken.pk).update(status=Project.Status.ACTIVE)
    orchestrator.tick_project(broken.pk, orchestrator.Ticked())  # nobody cleared up in between
    assert queued() == [(new.pk, "coder")]
    configure(broken, {"test_command": "make test"}, actor=Actor.person(lea))
    assert Event.objects.filter(kind="project_configured").get().note == (
        "test_command: empty \u2192 make test; dropped: unknown setting: colour; "
        "dropped: test_command is 7; a text is needed"
    )
    Project.objects.filter(pk=broken.pk).update(status=Project.Status.ACTIVE)
    assert (waiting.pk, "reviewer") in tick()


def test_where_nothing_is_to_be_run_nobody_runs_it_however_late_the_work_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_agent("reviewer", name="reviewer", slots=10)
    project = create_project(max_parallel=10)
    early, late = in_review(project, Submission.State.KEPT), in_review(project, Submission.State.RECEIVED)
    advance = turns.advance

    def keep_meanwhile(project: Project) -> None:
        """What the host's own process may do in the middle of a tick."""
        received = Submission.objects.filter(task=late, state=Submission.State.RECEIVED)
        received.update(state=Submission.State.KEPT)
        advance(project)

    monkeypatch.setattr(turns, "advance", keep_meanwhile)
    assert tick() == [(early.pk, "reviewer")]
    assert tick() == [(early.pk, "reviewer"), (late.pk, "reviewer")]
    passed = Event.objects.filter(kind="verified_green").order_by("pk").values_list("task", flat=True)
    assert list(passed) == [early.pk, late.pk]


def test_regular_calls_go_on_where_the_clock_was_set_back(db: None) -> None:
    """Each of them had been planned by the clock of before: no message was sent for an hour."""
    now = timezone.now()
    Schedule.objects.all().delete()
    for name, minutes, ahead in (("tell", 1, 61), ("statistics", 60, 59), ("prune", 1440, 1500)):
        Schedule.objects.create(
            name=name, func="agents.jobs.tick", schedule_type=Schedule.MINUTES, minutes=minutes,
            next_run=now + timedelta(minutes=ahead),
        )  # fmt: skip
    orchestrator.tick()
    soon = Schedule.objects.filter(next_run__lte=timezone.now()).order_by("name")
    assert list(soon.values_list("name", flat=True)) == ["prune", "tell"]


def test_within_a_status_the_list_is_worked_from_top_to_bottom(project: Project) -> None:
    third, first, second = (create_task(project, rank=rank) for rank in (30, 10, 20))
    assert [task for task, _ in tick()] == [first.pk, second.pk, third.pk]


def test_new_work_is_started_by_being_queued(project: Project) -> None:
    task = create_task(project)
    tick()
    task.refresh_from_db()
    run = Run.objects.get()
    assert (task.status, task.round) == ("in_progress", 1)
    assert (run.round, run.task_version, run.status, run.seat) == (1, task.version, "queued", "coder")
    assert (run.agent_label, run.host) == ("coder", None)
    assert list(Event.objects.order_by("pk").values_list("kind", flat=True)) == ["start", "run_queued"]


def test_it_tells_what_it_did(project: Project) -> None:
    create_task(project)
    assert orchestrator.tick() == orchestrator.Ticked(reaped=0, started=1, landings=0)
    assert orchestrator.tick() == orchestrator.Ticked(reaped=0, started=0, landings=0)


@pytest.mark.parametrize("status", ["completed", "disputed", "failed", "deferred", "cancelled"])
def test_nothing_is_started_for_other_statuses(project: Project, status: str) -> None:
    create_task(project, status=status, finished_by="hand" if status == "completed" else "")
    assert tick() == []


def test_new_work_waits_for_what_it_depends_on(project: Project) -> None:
    first = create_task(project, status="deferred")
    second = create_task(project)
    second.dependencies.create(on=first)
    recount([second])
    assert tick() == []
    first.cancel(actor=SYSTEM)
    assert tick() == [(second.pk, "coder")]


def test_work_under_way_and_reviews_do_not_wait_for_dependencies(project: Project) -> None:
    going = create_task(project, status="in_progress", round=1, waits_for=1)
    review = in_review(project, waits_for=1)
    assert tick() == [(review.pk, "reviewer"), (going.pk, "coder")]


def test_a_task_that_rests_is_left_alone_until_its_time(project: Project) -> None:
    resting = create_task(project, status="in_progress", round=1, not_before=timezone.now() + SOON)
    rested = create_task(project, status="in_progress", round=1, not_before=timezone.now() - SOON)
    assert tick() == [(rested.pk, "coder")]
    assert resting not in Task.objects.startable()


def test_a_rest_is_as_long_whatever_the_clock_of_the_host_that_began_it_says(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = create_task(project, status="in_progress", round=1)
    now = timezone.now()
    for hours in (1, -1):
        monkeypatch.setattr(timezone, "now", lambda hours=hours: datetime.now(UTC) + timedelta(hours=hours))
        run_ends.rest(task, 300)
        assert rests(task, now) == pytest.approx(300, abs=60)
        assert tick() == []
        Task.objects.update(not_before=now - SOON)
        unreachable.trouble(project, "The remote is away.")
        project.refresh_from_db()
        assert -60 < (project.trouble_until - now).total_seconds() < 1800
        Project.objects.update(trouble_until=now + SOON)
        assert tick() == []
        Project.objects.update(trouble="", trouble_until=None, trouble_count=0)
        pause = pauses.pause("acme", ErrorClass.RATE, "Too many requests.")
        assert 0 < (pause.until - now).total_seconds() < 1800
        ProviderPause.objects.update(until=now + SOON)
        assert list(pauses.paused()) == ["acme"]
        ProviderPause.objects.all().delete()
        with set_back():
            assert tick() == [(task.pk, "coder")]


def test_nothing_is_started_in_a_stopped_section(project: Project) -> None:
    stopped = create_section(project, is_stopped=True)
    create_task(project, section=stopped)
    in_review(project, section=stopped)
    other = create_task(project, section=create_section(project))
    assert tick() == [(other.pk, "coder")]


def conflict_on(task: Task, opened_as: str) -> Conflict:
    return opening.open_conflict(
        task, kind=Conflict.Kind.DISAGREEMENT, origin=Conflict.Origin.CLI, opened_as=opened_as,
        question="Who is right?", severity="medium", coder_position="We are.", reviewer_position="They are.",
    )  # fmt: skip


def test_a_task_that_waits_for_a_ruling_is_left_alone(project: Project) -> None:
    held = create_task(project, status="in_progress", round=1)
    conflict = conflict_on(held, "reviewer")
    assert conflict.effect == "hold"
    assert tick() == []
    Conflict.objects.update(status=Conflict.Status.MOOT)
    assert tick() == [(held.pk, "coder")]


def test_a_conflict_that_does_not_hold_stops_nothing(project: Project) -> None:
    task = create_task(project, status="in_progress", round=1)
    assert conflict_on(task, "coder").effect == "ship"
    assert tick() == [(task.pk, "coder")]


@pytest.mark.parametrize("status", [Project.Status.PAUSED, Project.Status.FINISHED])
def test_nothing_is_started_in_a_project_that_is_not_active(project: Project, status: str) -> None:
    create_task(project)
    Project.objects.update(status=status)
    assert tick() == []


def test_nothing_is_started_while_the_repository_is_in_trouble(project: Project) -> None:
    task = create_task(project)
    Project.objects.update(trouble="away", trouble_until=timezone.now() + SOON)
    assert tick() == []
    Project.objects.update(trouble_until=timezone.now() - SOON)
    assert tick() == [(task.pk, "coder")]


def test_runs_that_meet_the_same_trouble_together_count_once(project: Project) -> None:
    """Else each of them made the project rest for longer, up to twice as long as the remote was away."""
    for _ in range(3):
        unreachable.trouble(project, "away")
    project.refresh_from_db()
    assert project.trouble_count == 1
    assert Event.objects.filter(kind="trouble").count() == 1
    Project.objects.update(trouble_until=timezone.now() - SOON)
    unreachable.trouble(project, "away")
    project.refresh_from_db()
    assert project.trouble_count == 2


def test_trouble_in_one_project_is_not_the_others(project: Project) -> None:
    """F10."""
    create_task(create_project(trouble="away", trouble_until=timezone.now() + SOON))
    task = create_task(project)
    assert tick() == [(task.pk, "coder")]


def test_one_project_alone_may_be_asked_for(project: Project) -> None:
    create_task(project)
    other = create_task(create_project())
    orchestrator.tick(other.project_id)
    assert queued() == [(other.pk, "coder")]


# --- Seats ------------------------------------------------------------------------------------------------


def test_a_project_has_only_so_many_runs_at_a_time(project: Project) -> None:
    Project.objects.update(max_parallel=2)
    tasks = [create_task(project) for _ in range(4)]
    assert [task for task, _ in tick()] == [task.pk for task in tasks[:2]]
    assert len(tick()) == 2
    assert Task.objects.filter(status="pending").count() == 2


@pytest.mark.parametrize("status", ["queued", "starting", "running"])
def test_a_run_takes_a_seat_until_it_hands_in(project: Project, status: str) -> None:
    Project.objects.update(max_parallel=1)
    run = create_run(create_task(project, status="in_progress", round=1), status=status)
    waiting = create_task(project)
    assert tick() == [(run.task_id, "coder")]
    Run.objects.update(status=Run.Status.CLOSING)
    run.task.submit(actor=SYSTEM)
    assert (waiting.pk, "coder") in tick()


def test_a_task_has_one_run_at_a_time(project: Project) -> None:
    task = create_task(project)
    for _ in range(3):
        tick()
    assert queued() == [(task.pk, "coder")]


@pytest.mark.parametrize("status", ["queued", "starting", "running"])
def test_the_database_refuses_a_second_run_in_a_seat(project: Project, status: str) -> None:
    task = create_task(project)
    create_run(task, status=status)
    with pytest.raises(IntegrityError), transaction.atomic():
        create_run(task)
    create_run(task, "reviewer", seat="reviewer:one")
    create_run(task, "reviewer", seat="reviewer:two")


def test_a_run_that_handed_in_leaves_its_seat_at_once(project: Project) -> None:
    """The process may still be ending while the next one begins."""
    task = in_review(project, Submission.State.KEPT)
    create_run(task, status=Run.Status.CLOSING)
    assert tick()[1:] == [(task.pk, "verifier")]


def test_the_busiest_project_goes_last(project: Project) -> None:
    Agent.objects.update(slots=2)
    create_run(create_task(project, status="in_progress", round=1), agent=Agent.objects.get(name="coder"))
    create_task(project)
    other = create_task(create_project())
    assert tick()[1:] == [(other.pk, "coder")]


def test_the_project_that_waited_longest_goes_first(project: Project) -> None:
    Agent.objects.update(slots=1)
    create_task(project)
    other = create_task(create_project())
    Project.objects.filter(pk=project.pk).update(last_started_at=timezone.now())
    Project.objects.filter(pk=other.project_id).update(last_started_at=timezone.now() - SOON)
    assert tick() == [(other.pk, "coder")]


def test_reviews_that_nobody_can_take_do_not_hold_new_work_back(project: Project) -> None:
    Project.objects.update(max_parallel=2)
    Agent.objects.filter(role="reviewer").update(is_active=False)
    for _ in range(8):
        in_review(project)
    new = create_task(project)
    assert tick() == [(new.pk, "coder")]


def test_a_crowd_that_nobody_can_take_costs_as_much_as_a_few(project: Project) -> None:
    """The loop turns each second."""
    Agent.objects.update(is_active=False)
    costs = []
    for more in (5, 45):
        for _ in range(more):
            in_review(project)
        with CaptureQueriesContext(connection) as asked:
            orchestrator.tick()
        costs.append(len(asked))
    assert costs[1] <= costs[0] + 5


def test_only_the_first_tasks_of_a_long_list_are_read_unless_seats_are_left(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    Project.objects.update(max_parallel=2)
    tasks = [create_task(project) for _ in range(40)]
    read: list[Any] = []
    found = Prepared.found

    def noting(question: Prepared, *values: Any) -> list[Any]:
        rows = found(question, *values)
        read.extend(row for row in rows if isinstance(row, Task))
        return rows

    monkeypatch.setattr(Prepared, "found", noting)
    for looked_at, most in ((orchestrator.LOOKED_AT, 4), ((1, 500), 1 + 39)):
        read.clear()
        monkeypatch.setattr(orchestrator, "LOOKED_AT", looked_at)
        with set_back():
            orchestrator.start_due()
            assert queued() == [(task.pk, "coder") for task in tasks[:2]]
        assert len(read) == most


# --- Verification, then review ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "role"),
    [("received", None), ("kept", "verifier"), ("verified", "reviewer"), ("red", None), ("lost", None)],
)
def test_a_submission_is_kept_then_built_then_reviewed(
    project: Project, state: str, role: str | None
) -> None:
    task = in_review(project, state)
    assert tick() == ([(task.pk, role)] if role else [])


def test_what_is_built_or_reviewed_is_named_by_its_commit(project: Project) -> None:
    task = in_review(project, Submission.State.KEPT)
    tick()
    submission = task.submissions.get()
    verifier = Run.objects.get()
    assert (verifier.sha, verifier.seat, verifier.agent) == (submission.sha, "verifier", None)
    end_all(Run.Outcome.HANDED_IN)
    task.submissions.update(state=Submission.State.VERIFIED)
    tick()
    reviewer = Run.objects.get(role=Run.Role.REVIEWER)
    assert (reviewer.sha, reviewer.seat, reviewer.agent_label) == (
        submission.sha, "reviewer:reviewer", "reviewer",
    )  # fmt: skip


def test_the_newest_submission_counts(project: Project) -> None:
    task = in_review(project, Submission.State.RED)
    newest = create_submission(task, state=Submission.State.KEPT)
    tick()
    assert Run.objects.get().sha == newest.sha


def test_no_coder_is_started_beside_a_review(project: Project) -> None:
    task = in_review(project)
    tick()
    tick()
    assert queued() == [(task.pk, "reviewer")]


def rebased(project: Project) -> Landing:
    """An accepted submission that was rebased and is to be built."""
    task = in_review(project)
    submission = task.submissions.get()
    task.approve(submission, actor=SYSTEM)
    return Landing.objects.create(
        project=project, task=task, submission=submission, sha=sha("e"), target="main",
        rebased_from=submission.sha, status=Landing.Status.CHECKING,
    )  # fmt: skip


def test_a_rebased_commit_is_built_before_anything_new_is_begun(project: Project) -> None:
    Project.objects.update(max_parallel=1)
    create_task(project)
    landing = rebased(project)
    assert tick() == [(landing.task_id, "verifier")]
    assert Run.objects.get().sha == landing.sha
    assert tick() == [(landing.task_id, "verifier")]


def test_new_work_waits_for_a_push_after_which_the_branch_rests(project: Project, settings: Any) -> None:
    """Where the branch moves on anyway, waiting only kept agents idle, all of them at the same time."""
    settings.DURATIONS = settings.DURATIONS | {"fresh": SOON.total_seconds() / 2}  # on however slow a machine
    in_review(project).approve(Submission.objects.get(), actor=SYSTEM)
    create_task(project)
    assert orchestrator.tick().landings == 1
    assert tick() == []
    with set_back():
        create_task(project, status="in_progress", round=1, not_before=timezone.now() + SOON)
        assert [role for _, role in tick()] == ["coder"]
    with set_back():
        rebased(project)
        assert "coder" in {role for _, role in tick()}
    Landing.objects.update(at=timezone.now() - SOON)
    assert [role for _, role in tick()] == ["coder"]


def test_it_is_not_built_twice(project: Project) -> None:
    landing = rebased(project)
    project.verifications.create(sha=landing.sha, commands_hash="x", green=True)
    assert tick() == []


def test_an_approval_is_landed_once_its_time_has_come(project: Project) -> None:
    """The seconds in which a ruling may be undone."""
    task = in_review(project)
    task.approve(task.submissions.get(), actor=SYSTEM)
    Task.objects.update(not_before=timezone.now() + SOON)
    assert orchestrator.tick().landings == 0
    Task.objects.update(not_before=timezone.now() - SOON)
    assert orchestrator.tick().landings == 1
    assert Landing.objects.get().sha == task.submissions.get().sha


def test_what_was_shipped_is_not_landed_while_a_later_conflict_holds_it(project: Project) -> None:
    task = in_review(project)
    task.ship(task.submissions.get(), actor=SYSTEM, note="One point is open.")
    conflict = opening.open_conflict(
        task, kind="silence", origin="flagged", opened_as="system", question="Was it answered?",
        effect="hold", submission=task.submissions.get(),
    )  # fmt: skip
    assert orchestrator.tick().landings == 0
    conflict.drop("It was answered.")
    assert orchestrator.tick().landings == 1


def test_a_task_may_land_again_after_a_landing_that_failed(project: Project) -> None:
    landing = rebased(project)
    Landing.objects.update(status=Landing.Status.SUPERSEDED)
    assert orchestrator.tick().landings == 1
    assert Landing.objects.exclude(pk=landing.pk).get().status == Landing.Status.QUEUED


# --- Which agent ------------------------------------------------------------------------------------------


def chosen(task: Task, role: str = "coder") -> str:
    if role == "reviewer":
        Task.objects.filter(pk=task.pk).update(status="review", round=1)
        task.refresh_from_db()
        create_submission(task)
    turn = choosing.Roster(choosing.Crew(), [task]).turn_of(task)
    return turn.choices[0].agent.name if turn.choices else ""


def test_nobody_is_chosen_where_there_is_nobody() -> None:
    assert chosen(create_task()) == ""


def test_the_role_decides() -> None:
    create_agent("reviewer", name="judge", priority=9)
    create_agent("coder", name="maker")
    assert (chosen(create_task()), chosen(create_task(), "reviewer")) == ("maker", "judge")


def test_the_higher_priority_is_chosen_then_the_older_agent() -> None:
    for name, priority in (("low", 0), ("high", 5), ("high-too", 5)):
        create_agent("coder", name=name, priority=priority)
    assert chosen(create_task()) == "high"


def test_the_domain_comes_before_the_priority() -> None:
    create_agent("coder", name="frontend", domains=["frontend"], priority=9)
    create_agent("coder", name="anything", priority=5)
    create_agent("coder", name="backend", domains=["backend", "api"])
    assert chosen(create_task(tags=["slow", "api"])) == "backend"
    assert chosen(create_task(tags=["docs"])) == "anything"
    assert chosen(create_task()) == "anything"


def test_where_no_domain_fits_the_first_one_takes_it() -> None:
    create_agent("coder", name="frontend", domains=["frontend"])
    create_agent("coder", name="backend", domains=["backend"], priority=1)
    assert chosen(create_task(tags=["docs"])) == "backend"


def test_the_next_one_is_chosen_while_the_first_is_busy() -> None:
    first = create_agent("coder", name="first", slots=2, priority=1)
    create_agent("coder", name="second", slots=1)
    for _ in range(2):
        assert chosen(create_task()) == "first"
        create_run(create_task(), agent=first)
    assert chosen(create_task()) == "second"
    create_run(create_task(), agent=Agent.objects.get(name="second"))
    assert chosen(create_task()) == ""


@for_each("status", ["closing", "ended"])
def test_a_slot_is_free_again_after_the_hand_in(status: str) -> None:
    agent = create_agent("coder", name="only", slots=1)
    ended = timezone.now() if status == "ended" else None
    create_run(create_task(), agent=agent, status=status, ended_at=ended)
    assert chosen(create_task()) == "only"


def test_an_agent_works_in_its_projects_only() -> None:
    here, there = create_project(), create_project()
    agent = create_agent("coder", name="settled", priority=9)
    agent.projects.add(here, create_project())
    create_agent("coder", name="everywhere")
    assert (chosen(create_task(here)), chosen(create_task(there))) == ("settled", "everywhere")


def test_an_agent_of_several_projects_counts_each_run_once() -> None:
    here = create_project()
    agent = create_agent("coder", name="settled", slots=2)
    agent.projects.add(here, create_project(), create_project())
    create_run(create_task(here), agent=agent)
    assert chosen(create_task(here)) == "settled"


def test_an_agent_that_was_switched_off_is_not_chosen() -> None:
    create_agent("coder", name="off", is_active=False)
    assert chosen(create_task()) == ""


# --- Ending what is over ----------------------------------------------------------------------------------


def run_out(run: Run) -> None:
    """Its lease is over by now."""
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_step_of_the_databases_clock_loses_no_run(project: Project, settings: Any, tmp_path: Path) -> None:
    """All leases were over at once, and the next tick ended what every host was at."""
    settings.HOME = tmp_path
    with Reconciler() as host:
        run = create_run(create_task(project), host=host.row, lease_until=timezone.now() + SOON)
        for _ in range(2):
            run_out(run)  # as if the clock had been set
            assert orchestrator.reap() == 0
            host._beat()
        run.refresh_from_db()
        assert (run.status, run.is_overdue) == ("running", False)
        for _ in range(2):
            run_out(run)  # and nobody beats
            reaped = orchestrator.reap()
        assert reaped == 1


def test_a_run_whose_host_is_gone_is_lost_and_starts_anew(project: Project) -> None:
    task = create_task(project, status="in_progress", round=1)
    lost = create_run(
        task, host=create_host(), lease_until=timezone.now() - timedelta(seconds=1), token_hash="x"
    )
    assert orchestrator.tick().reaped == 0  # it may be the database's clock
    run_out(lost)
    assert orchestrator.tick().reaped == 1
    lost.refresh_from_db()
    assert (lost.status, lost.outcome, lost.is_counted) == ("ended", "lost", False)
    assert (lost.token_hash, lost.lease_until) == (None, None)
    assert "test-host did not renew" in lost.reason
    assert Run.objects.live().get().task == task


@pytest.mark.parametrize("status", ["starting", "running", "closing"])
def test_a_run_whose_lease_holds_is_left_alone(project: Project, status: str) -> None:
    create_run(create_task(project), status=status, lease_until=timezone.now() + SOON)
    assert orchestrator.reap() == 0


def test_a_queued_run_of_an_old_turn_is_stopped(project: Project) -> None:
    task = create_task(project)
    tick()
    old = Run.objects.get()
    task.refresh_from_db()
    task.defer(actor=SYSTEM)
    tick()
    old.refresh_from_db()
    assert (old.status, old.outcome, old.is_counted) == ("ended", "stopped", False)
    assert Run.objects.live().count() == 0


def test_a_run_under_way_is_not_stopped_by_the_tick(project: Project) -> None:
    """Its host does that, so that its work can be saved."""
    task = create_task(project, status="in_progress", round=1)
    run = create_run(task, lease_until=timezone.now() + SOON)
    task.defer(actor=SYSTEM)
    tick()
    run.refresh_from_db()
    assert run.status == Run.Status.RUNNING


def test_lost_runs_are_ended_in_paused_projects_too(project: Project) -> None:
    create_run(create_task(project), lease_until=timezone.now() - SOON, is_overdue=True)
    Project.objects.update(status=Project.Status.PAUSED)
    assert orchestrator.tick().reaped == 1


# --- Two ticks at once ------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_ticks_at_once_start_nothing_twice_and_not_too_much(project: Project) -> None:
    Project.objects.update(max_parallel=3)
    tasks = [create_task(project) for _ in range(5)]
    rebased(project)
    review = in_review(project)
    at_once(*[orchestrator.tick] * 4)
    assert Run.objects.count() == 3
    assert Run.objects.filter(task=review, role="reviewer").count() == 1
    assert Run.objects.filter(role="verifier").count() == 1
    assert Task.objects.filter(status="in_progress").get() == tasks[0]
    assert Event.objects.filter(kind="start").count() == 1


@pytest.mark.django_db(transaction=True)
def test_ticks_at_once_end_a_lost_run_once(project: Project) -> None:
    task = create_task(project, status="in_progress", round=1)
    create_run(task, lease_until=timezone.now() - SOON, host=create_host(), is_overdue=True)
    at_once(*[orchestrator.tick] * 4)
    assert Event.objects.filter(kind="run_ended").count() == 1
    assert Run.objects.live().count() == 1


@pytest.mark.django_db(transaction=True)
def test_ticks_at_once_make_one_landing(project: Project) -> None:
    task = in_review(project)
    task.approve(task.submissions.get(), actor=SYSTEM)
    at_once(*[orchestrator.tick] * 4)
    assert Landing.objects.count() == 1


# --- Runs without result ----------------------------------------------------------------------------------


def fail(task: Task, times: int = 1, outcome: str = Run.Outcome.NOTHING, **kwargs: Any) -> Run:
    """So many runs in a row that handed nothing in."""
    for _ in range(times):
        task.refresh_from_db()
        run = create_run(task, **kwargs)
        run_ends.end(run, outcome, reason="It said goodbye.")
    task.refresh_from_db()
    return run


@pytest.fixture
def task(db: None) -> Task:
    return create_task(status="in_progress", round=1)


def rests(task: Task, since: Any) -> float:
    task.refresh_from_db()
    return (task.not_before - since).total_seconds() if task.not_before else 0.0


def test_a_run_without_result_rests_its_task_for_longer_and_longer(settings: Any, task: Task) -> None:
    settings.DURATIONS = settings.DURATIONS | {"backoff_first": 100.0, "backoff_max": 500.0}
    for expected in (100, 200, 400, 500, 500):
        now = timezone.now()
        fail(task)
        assert rests(task, now) == pytest.approx(expected, abs=5)
    assert task.status == "in_progress"


def test_the_sixth_run_without_result_asks_a_human(task: Task) -> None:
    fail(task, 5, agent_label="coder-2")
    assert task.status == "in_progress"
    fail(task, agent_label="coder-1 (fast)")
    conflict = Conflict.objects.get()
    assert (task.status, task.accepted) == ("disputed", None)
    assert (conflict.kind, conflict.origin, conflict.effect) == ("help", "empty_runs", "hold")
    assert "6 runs of coder-2 and coder-1 (fast) ended without a hand-in" in conflict.question
    assert "Nothing handed in. It said goodbye." in conflict.coder_position


def test_a_reviewer_that_never_answers_asks_a_human_too(db: None) -> None:
    task = create_task(status="review", round=1)
    create_submission(task)
    fail(task, 6, role="reviewer")
    assert task.status == "disputed"


@pytest.mark.parametrize("outcome", ["nothing", "silent", "wall", "bytes", "refused", "crash"])
def test_what_an_agent_did_not_do_counts(task: Task, outcome: str) -> None:
    assert fail(task, outcome=outcome).is_counted
    assert len(run_ends.failed_in_a_row(task, "coder")) == 1


@pytest.mark.parametrize("outcome", ["stopped", "handed_in"])
def test_what_is_not_the_agents_fault_does_not_count(task: Task, outcome: str) -> None:
    fail(task, 10, outcome=outcome)
    assert (task.status, task.not_before) == ("in_progress", None)


def test_a_run_that_was_lost_once_is_begun_again_at_once(task: Task) -> None:
    assert not fail(task, outcome=Run.Outcome.LOST).is_counted
    assert (task.status, task.not_before) == ("in_progress", None)


def test_a_run_that_is_lost_each_time_rests_and_then_asks_a_human(task: Task) -> None:
    fail(task, 5, outcome=Run.Outcome.LOST, agent_label="coder-2")
    assert task.status == "in_progress"
    assert task.not_before is not None
    fail(task, outcome=Run.Outcome.LOST, agent_label="coder-1")
    assert task.status == "disputed"
    assert "6 runs of coder-2 and coder-1 were" in Conflict.objects.get().question
    assert run_ends.failed_in_a_row(task, "coder") == []


def test_a_loss_long_ago_makes_no_row_of_losses(task: Task) -> None:
    fail(task, 3, outcome=Run.Outcome.LOST)
    fail(task, outcome=Run.Outcome.STOPPED)
    Task.objects.update(not_before=None)
    fail(task, outcome=Run.Outcome.LOST)
    assert task.not_before is None


def test_a_verification_does_not_count(task: Task) -> None:
    fail(task, 10, outcome=Run.Outcome.CRASH, role="verifier")
    assert task.status == "in_progress"


def test_a_hand_in_begins_the_count_anew(task: Task) -> None:
    fail(task, 5)
    fail(task, outcome=Run.Outcome.HANDED_IN)
    fail(task, 5)
    assert task.status == "in_progress"
    assert len(run_ends.failed_in_a_row(task, "coder")) == 5


def test_a_human_who_sends_it_on_begins_the_count_anew(task: Task) -> None:
    fail(task, 6)
    user = create_user(is_superuser=True)
    rulings.decide(Conflict.objects.get(), "retry", user=user, text="Try.", undo_seconds=0)
    fail(task, 5)
    assert task.status in {"pending", "in_progress"}


def test_a_run_of_an_old_turn_leaves_the_new_one_alone(task: Task) -> None:
    run = create_run(task)
    Task.objects.filter(pk=task.pk).update(version=task.version + 1)
    run_ends.end(run, Run.Outcome.CRASH)
    task.refresh_from_db()
    assert task.not_before is None


def test_a_run_ends_once(task: Task) -> None:
    run = create_run(task)
    assert run_ends.end(run, Run.Outcome.NOTHING)
    assert not run_ends.end(run, Run.Outcome.CRASH)
    run.refresh_from_db()
    assert run.outcome == "nothing"
    assert Event.objects.filter(kind="run_ended").count() == 1


def test_a_host_that_lost_a_run_cannot_end_it(task: Task) -> None:
    """I3: the fence went up when somebody else claimed it."""
    run = create_run(task, fence=1)
    Run.objects.update(fence=2)
    assert not run_ends.end(run, Run.Outcome.CRASH)
    assert Run.objects.get().status == Run.Status.RUNNING


def test_an_ended_run_has_no_token(task: Task) -> None:
    run = create_run(task, token_hash="x")
    run_ends.end(run, Run.Outcome.HANDED_IN)
    assert (run.token_hash, run.ended_at is not None) == (None, True)


# --- Red submissions --------------------------------------------------------------------------------------


def send_back(task: Task, times: int) -> None:
    for _ in range(times):
        Task.objects.filter(pk=task.pk).update(status="review")
        task.refresh_from_db()
        create_submission(task, state=Submission.State.RED)
        run_ends.send_back(task, "tests ended with 1")
    task.refresh_from_db()


def test_red_work_comes_back_at_once_and_later_after_a_rest(settings: Any, task: Task) -> None:
    settings.DURATIONS = settings.DURATIONS | {"backoff_first": 100.0, "backoff_max": 500.0}
    send_back(task, 1)
    assert (task.status, task.round, task.not_before) == ("in_progress", 1, None)
    now = timezone.now()
    send_back(task, 1)
    assert rests(task, now) == pytest.approx(200, abs=5)


def test_work_that_stays_red_asks_a_human(task: Task) -> None:
    send_back(task, 5)
    assert task.status == "in_progress"
    send_back(task, 1)
    assert task.status == "disputed"
    assert "stayed red in 6 attempts" in Conflict.objects.get().question


def test_red_work_of_an_earlier_round_is_forgotten(task: Task) -> None:
    send_back(task, 5)
    Task.objects.update(round=2)
    task.refresh_from_db()
    send_back(task, 1)
    assert task.status == "in_progress"


def test_a_task_that_moved_on_is_not_sent_back(task: Task) -> None:
    run_ends.send_back(task, "too late")
    task.refresh_from_db()
    assert task.version == 0


# --- What is still to do ----------------------------------------------------------------------------------


def test_it_knows_what_could_be_started_soon(project: Project) -> None:
    now = timezone.now()
    soon = create_task(project, not_before=now + timedelta(seconds=30))
    create_task(project, not_before=now + timedelta(hours=1))
    create_task(project, waits_for=1)
    create_task(project, status="disputed")
    create_task(create_project(status=Project.Status.PAUSED))
    create_task(create_project(trouble_until=now + timedelta(hours=1)))
    assert candidates.waiting_tasks(now + timedelta(minutes=1)) == [soon]


def test_nothing_waits_for_a_role_that_nobody_has(project: Project) -> None:
    in_review(project)
    assert len(candidates.waiting_tasks(timezone.now())) == 1
    Agent.objects.filter(role="reviewer").update(is_active=False)
    assert candidates.waiting_tasks(timezone.now()) == []
