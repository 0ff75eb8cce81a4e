"""Checkpoints of a project, whether it converges, and what people answer (CONV-6)."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.loop import orchestrator
from disputes import alerts, rulings
from disputes.completion import checkpoints
from disputes.models import Conflict, Dispute
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Checkpoint, Event, Project, Task
from tests.cases import for_each
from tests.factories import create_agent, create_submission, create_task

CODER, REVIEWER = Actor("run", "coder-1"), Actor("run", "reviewer-1")


def begin(project: Project, *severities: str) -> list[Task]:
    """Tasks of these severities; the first one is started, and the project has its checkpoint 0."""
    tasks = [create_task(project, severity=severity) for severity in severities]
    tasks[0].start()
    checkpoints.take_checkpoint(project.pk)
    return tasks


def complete(task: Task) -> None:
    task.refresh_from_db()
    if task.status == "pending":
        task.start()
    submission = create_submission(task)
    task.submit(actor=CODER)
    task.approve(submission, actor=REVIEWER)


def another_round(task: Task) -> None:
    """Handed in and rejected."""
    task.refresh_from_db()
    create_submission(task)
    task.submit(actor=CODER)
    task.reject(actor=REVIEWER)


def taken(project: Project) -> Checkpoint:
    made = checkpoints.take_checkpoint(project.pk)
    assert made is not None
    return made


# --- When one closes --------------------------------------------------------------------------------------


def test_nothing_is_counted_before_the_first_task_is_begun(ledger: Project) -> None:
    create_task(ledger)
    assert checkpoints.take_checkpoint(ledger.pk) is None
    assert not Checkpoint.objects.exists()


def test_the_first_one_says_what_there_was_to_do(ledger: Project) -> None:
    create_task(ledger, status="completed", finished_by="hand")
    begin(ledger, "critical", "low", "medium")
    first = Checkpoint.objects.get()
    assert (first.number, first.opened, first.opened_weight, first.resolved) == (0, 3, 19, 0)
    assert first.state == "CONVERGING"


def test_one_closes_when_each_task_under_way_has_finished_a_round_or_left(ledger: Project) -> None:
    first, second = begin(ledger, "medium", "medium")
    second.start()
    Checkpoint.objects.update(under_way={str(first.pk): 1, str(second.pk): 1})
    another_round(first)
    assert checkpoints.take_checkpoint(ledger.pk) is None
    complete(second)
    made = taken(ledger)
    assert (made.number, made.resolved, made.under_way) == (1, 1, {str(first.pk): 2})


def test_a_hand_in_is_no_round_yet(ledger: Project) -> None:
    (task,) = begin(ledger, "medium")
    create_submission(task)
    task.submit(actor=CODER)
    task.send_back(note="Red.")
    assert checkpoints.take_checkpoint(ledger.pk) is None


def test_asking_again_takes_no_second_one(ledger: Project) -> None:
    first, _ = begin(ledger, "medium", "medium")
    complete(first)
    taken(ledger)
    assert checkpoints.take_checkpoint(ledger.pk) is None
    assert Checkpoint.objects.count() == 2


def test_where_nothing_was_under_way_the_next_tasks_are_waited_for(ledger: Project) -> None:
    first, second = begin(ledger, "medium", "medium")
    complete(first)
    assert taken(ledger).under_way == {}
    second.start()
    assert checkpoints.take_checkpoint(ledger.pk) is None
    assert checkpoints.last_checkpoint(ledger).under_way == {str(second.pk): 1}  # type: ignore[union-attr]
    complete(second)
    assert taken(ledger).number == 2


def test_looking_costs_two_queries(ledger: Project, django_assert_num_queries: Any) -> None:
    begin(ledger, *["medium"] * 10)
    with django_assert_num_queries(2):
        checkpoints.take_checkpoint(ledger.pk)


def test_closing_costs_the_same_for_few_and_for_many_tasks(ledger: Project) -> None:
    costs = []
    tasks = begin(ledger, *["medium"] * 12)
    for number in (1, 6):
        for _ in range(number):
            complete(tasks.pop(0))
        with CaptureQueriesContext(
            connection,
        ) as asked:
            taken(ledger)
        costs.append(len(asked))
        tasks[0].start()
        checkpoints.take_checkpoint(ledger.pk)
    assert costs[0] == costs[1]


def test_the_loop_takes_them(ledger: Project) -> None:
    create_agent("coder")
    task = create_task(ledger)
    orchestrator.tick()
    assert Checkpoint.objects.get().under_way == {str(task.pk): 1}


# --- What is counted (CNT-1, CNT-2) -----------------------------------------------------------------------


def test_what_was_resolved_and_what_came_up(ledger: Project) -> None:
    first, *_ = begin(ledger, "high", "medium", "medium")
    create_task(ledger, severity="low")
    complete(first)
    made = taken(ledger)
    assert (made.resolved, made.resolved_weight, made.opened, made.opened_weight) == (1, 4, 1, 1)
    assert (made.net, made.weighted_net, made.state) == (0, 3, "CONVERGING")


def test_a_task_that_came_up_and_was_cancelled_counts_in_both_sums(ledger: Project) -> None:
    first, _ = begin(ledger, "medium", "medium")
    extra = create_task(ledger, severity="low")
    extra.cancel(actor=CODER)
    complete(first)
    made = taken(ledger)
    assert (made.resolved, made.opened) == (2, 1)


def test_a_task_that_is_completed_twice_counts_once(ledger: Project) -> None:
    first, second, _ = begin(ledger, "medium", "medium", "medium")
    complete(first)
    assert taken(ledger).resolved == 1
    first.reopen(actor=CODER, note="It broke.")
    checkpoints.take_checkpoint(ledger.pk)
    complete(first)
    complete(second)
    assert taken(ledger).resolved == 1


def test_a_deferred_task_is_not_resolved(ledger: Project) -> None:
    first, _ = begin(ledger, "medium", "medium")
    first.defer(actor=CODER)
    assert taken(ledger).resolved == 0


@for_each(("tasks", "stall", "divergence"), [(9, 2, 8), (10, 3, 12), (30, 3, 12), (31, 4, 16)])
def test_the_thresholds_are_those_for_its_size(
    ledger: Project, tasks: int, stall: int, divergence: int
) -> None:
    begin(ledger, *["low"] * tasks)
    limits = checkpoints.limits_of(ledger)
    assert (limits.stall_threshold, limits.divergence_threshold) == (stall, divergence)


def test_thresholds_of_its_own_win(ledger: Project) -> None:
    begin(ledger, *["low"] * 31)
    ledger.settings = {"stall_threshold": 2, "severity_weights": {"low": 0}}
    limits = checkpoints.limits_of(ledger)
    assert (limits.stall_threshold, limits.divergence_threshold) == (2, 16)
    assert limits.severity_weights["low"] == 0


# --- Warnings (CONV-1 to CONV-4) --------------------------------------------------------------------------


def flat(project: Project, task: Task) -> Checkpoint:
    """A round without progress."""
    another_round(task)
    return taken(project)


def card(project: Project) -> Conflict:
    return Conflict.objects.get(dispute__project=project, dispute__task__isnull=True, status="open")


def test_a_new_critical_task_is_a_warning(ledger: Project) -> None:
    first, *_ = begin(ledger, "high", "medium")
    new = create_task(ledger, severity="critical", title="Everything is lost")
    complete(first)
    assert taken(ledger).state == "DIVERGENCE_WARNING"
    assert card(ledger).origin == "divergence"
    assert any(new.ref in line for line in card(ledger).evidence)


def test_more_weight_than_the_threshold_is_a_warning(ledger: Project) -> None:
    task, _ = begin(ledger, "low", "low")
    for severity in ("high", "high"):
        create_task(ledger, severity=severity)
    assert flat(ledger, task).state == "FLAT"
    for severity in ("high", "high", "low"):
        create_task(ledger, severity=severity)
    assert flat(ledger, task).state == "DIVERGENCE_WARNING"


def test_the_second_round_of_vain_rework_is_a_stall(ledger: Project) -> None:
    task, *_ = begin(ledger, *["medium"] * 4)
    made = [flat(ledger, task) for _ in range(3)]
    assert [(one.state, one.flat) for one in made] == [("FLAT", 0), ("FLAT", 1), ("DIVERGENCE_WARNING", 2)]
    said = ledger.events.filter(kind="checkpoint").order_by("pk").values_list("note", flat=True)
    assert said[0] == "Nothing is settled yet: weighted net +0."
    assert checkpoints.last_checkpoint(ledger).state == "DIVERGENCE_WARNING"  # type: ignore[union-attr]
    assert card(ledger).origin == "stall"
    assert checkpoints.is_diverging(ledger)


def test_first_rejections_and_tasks_that_wait_for_people_are_no_stall(ledger: Project) -> None:
    """As a demo begins: some tasks are sent back once, others become disputes, and nothing has landed yet."""
    begin(ledger, *["medium"] * 8)
    for number, task in enumerate(ledger.tasks.order_by("pk")):
        task.refresh_from_db()
        if task.status == "pending":
            task.start()
        checkpoints.take_checkpoint(ledger.pk)
        if number % 2:
            another_round(task)
        else:
            task.stop_for_help(actor=CODER, note="Two opinions.")
        checkpoints.take_checkpoint(ledger.pk)
    assert [one.flat for one in ledger.checkpoints.order_by("number")] == [0, 0, 0]
    assert not Dispute.objects.filter(task__isnull=True).exists()


def test_of_few_tasks_each_tells_for_itself_unless_the_project_wants_it(ledger: Project) -> None:
    task, *_ = begin(ledger, *["medium"] * 3)
    for _ in range(6):
        assert flat(ledger, task).state == "FLAT"
    assert not Dispute.objects.exists()
    ledger.settings = {"stall_threshold": 2}
    ledger.save()
    assert [flat(ledger, task).state for _ in range(2)] == ["FLAT", "DIVERGENCE_WARNING"]
    assert card(ledger).origin == "stall"


@pytest.fixture
def stalled(ledger: Project) -> Project:
    """With one task under way in round 4, three pending, and a card that asks."""
    task, *_ = begin(ledger, *["medium"] * 4)
    for _ in range(3):
        flat(ledger, task)
    return ledger


def the_task(project: Project) -> Task:
    return project.tasks.get(status="in_progress")


def test_one_card_is_enough(stalled: Project) -> None:
    before = card(stalled)
    create_task(stalled, severity="critical")
    flat(stalled, the_task(stalled))
    after = card(stalled)
    assert (after.pk, after.origin) == (before.pk, "divergence")
    assert after.question != before.question
    assert after.dispute.question == after.question


def test_the_card_stands_in_the_queue_without_a_task(stalled: Project) -> None:
    dispute = Dispute.objects.open().get()
    assert (dispute.task, dispute.project, dispute.severity) == (None, stalled, "high")


def test_progress_closes_the_card(stalled: Project) -> None:
    complete(the_task(stalled))
    assert taken(stalled).state == "CONVERGING"
    assert not Dispute.objects.live().exists()


# --- Answers ----------------------------------------------------------------------------------------------


def test_accepting_begins_the_count_anew_and_keeps_the_history(stalled: Project, tom: User) -> None:
    rulings.decide(card(stalled), "accept", user=tom, undo_seconds=0)
    assert not checkpoints.is_diverging(stalled)
    assert flat(stalled, the_task(stalled)).flat == 1
    assert [made.flat for made in stalled.checkpoints.order_by("number")] == [0, 0, 1, 2, 1]


def test_an_unanswered_stall_goes_on_counting(stalled: Project) -> None:
    assert flat(stalled, the_task(stalled)).flat == 3


def test_narrowing_defers_the_tasks_with_the_reason(stalled: Project, tom: User) -> None:
    pending = stalled.tasks.filter(status="pending").earliest("pk")
    rulings.decide(
        card(stalled), "narrow", user=tom, text=f"- {pending.ref}\n", rationale="Later.", undo_seconds=0
    )
    pending.refresh_from_db()
    assert pending.status == "deferred"
    assert Event.objects.get(task=pending, kind="defer").note == "Later."
    assert flat(stalled, the_task(stalled)).flat == 1


@for_each("text", ["nothing-1", "ledger-999999", "the first one", "other-1\nledger-x"])
def test_narrowing_refuses_what_is_no_task_and_changes_nothing(
    stalled: Project, tom: User, text: str
) -> None:
    with pytest.raises(Refused) as refused:
        rulings.decide(card(stalled), "narrow", user=tom, text=text, undo_seconds=0)
    assert refused.value.code == "unknown_task"
    assert card(stalled).status == "open"


def test_narrowing_refuses_a_finished_task(stalled: Project, tom: User) -> None:
    done = create_task(stalled, status="completed", finished_by="hand")
    with pytest.raises(Refused, match=done.ref):
        alerts.narrow(stalled, [done], "Later.", actor=Actor.person(tom))


def test_pausing_stops_the_loop(stalled: Project, tom: User) -> None:
    create_agent("coder")
    rulings.decide(card(stalled), "pause", user=tom, undo_seconds=0)
    stalled.refresh_from_db()
    assert stalled.status == "paused"
    assert orchestrator.tick().started == 0


@for_each("option", ["narrow", "accept", "prioritise", "pause"])
def test_who_only_looks_answers_nothing(stalled: Project, vera: User, option: str) -> None:
    with pytest.raises(Refused) as refused:
        rulings.decide(card(stalled), option, user=vera, text="ledger-1", undo_seconds=0)
    assert refused.value.status == 403


# --- Critical tasks first ---------------------------------------------------------------------------------


def started(project: Project) -> list[str]:
    """The severities of the tasks that the loop begins."""
    before = set(project.tasks.exclude(status="pending").values_list("pk", flat=True))
    orchestrator.tick()
    return [task.severity for task in project.tasks.exclude(status="pending") if task.pk not in before]


def test_in_focus_only_critical_tasks_are_begun(ledger: Project, tom: User) -> None:
    create_agent("coder", slots=9)
    Project.objects.update(max_parallel=9)
    for severity in ("high", "critical", "low", "critical"):
        create_task(ledger, severity=severity)
    alerts.prioritise(ledger, "The rest can wait.", actor=Actor.person(tom))
    assert started(ledger) == ["critical", "critical"]
    assert started(ledger) == []


def test_work_under_way_goes_on_in_focus(ledger: Project, tom: User) -> None:
    create_agent("coder", slots=9)
    create_task(ledger, severity="critical")
    task = create_task(ledger, severity="low", status="in_progress", round=1)
    alerts.prioritise(ledger, "The rest can wait.", actor=Actor.person(tom))
    orchestrator.tick()
    assert task.runs.exists()


@pytest.mark.parametrize("end", ["complete", "cancel", "defer"])
def test_the_focus_ends_with_the_last_critical_task(
    ledger: Project, tom: User, end: str, settings: Any
) -> None:
    settings.DURATIONS = settings.DURATIONS | {"fresh": 0.0}  # nothing waits for what is about to land
    create_agent("coder")
    critical, other = create_task(ledger, severity="critical"), create_task(ledger)
    alerts.prioritise(ledger, "The rest can wait.", actor=Actor.person(tom))
    if end == "complete":
        complete(critical)
    else:
        getattr(critical, end)(actor=CODER)
    orchestrator.tick()
    ledger.refresh_from_db()
    other.refresh_from_db()
    assert (ledger.focus, other.status) == ("", "in_progress")
    assert Event.objects.filter(project=ledger, kind="focus_ended").count() == 1


def test_the_loop_does_not_wait_for_a_critical_task_that_waits_for_a_human(
    ledger: Project, tom: User
) -> None:
    create_agent("coder")
    create_task(ledger, severity="critical", status="disputed")
    create_task(ledger, severity="low")
    alerts.prioritise(ledger, "The rest can wait.", actor=Actor.person(tom))
    assert started(ledger) == ["low"]
    ledger.refresh_from_db()
    assert ledger.focus == "critical"


def test_without_a_critical_task_there_is_nothing_to_put_first(ledger: Project, tom: User) -> None:
    create_task(ledger)
    with pytest.raises(Refused) as refused:
        alerts.prioritise(ledger, "First.", actor=Actor.person(tom))
    assert refused.value.code == "no_critical"


def test_the_limit_of_rounds_leaves_an_event_and_stops_nothing(ledger: Project) -> None:
    ledger.settings = {"max_rounds": 2}
    ledger.save()
    create_agent("coder")
    task, _ = begin(ledger, "medium", "medium")
    for _ in range(3):
        flat(ledger, task)
    assert Event.objects.filter(project=ledger, kind="round_limit").count() == 1
    assert orchestrator.tick().started == 2
