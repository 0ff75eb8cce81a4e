"""What a task waits for: a counter that is the facts, written down."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from tasks.dependencies import blocked_by, recount, recount_dependants
from tasks.events import Actor
from tasks.models import Dependency, Project, Section, Task
from tasks.states import Status
from tests.asking import queries
from tests.cases import for_each
from tests.factories import create_project, create_section, create_submission, create_task, sha

pytestmark = pytest.mark.django_db

ACTOR = Actor("agent", "coder-1")


@pytest.fixture
def project() -> Project:
    return create_project()


def wait(task: Task, *on: Task) -> Task:
    for other in on:
        Dependency.objects.create(task=task, on=other)
    recount([task])
    return task


def count(task: Task) -> int:
    return Task.objects.get(pk=task.pk).waits_for


def completed(project: Project, **kwargs: Any) -> Task:
    """Approved, and not on the target branch yet."""
    task = create_task(project, status="review", round=1, **kwargs)
    Task.objects.filter(pk=task.pk).update(status="completed", accepted=create_submission(task))
    task.refresh_from_db()
    return task


def landed(project: Project, **kwargs: Any) -> Task:
    task = completed(project, **kwargs)
    Task.objects.filter(pk=task.pk).update(landed_sha=sha("c"), landed_at=timezone.now())
    task.refresh_from_db()
    return task


def fresh(tasks: list[Task]) -> list[Task]:
    """The rows as the verbs load them."""
    return list(Task.objects.filter(pk__in=[task.pk for task in tasks]).select_related("section__parent"))


# --- Counting ---------------------------------------------------------------------------------------------


@for_each("status", sorted(set(Status) - {Status.CANCELLED, Status.COMPLETED}))
def test_an_unfinished_task_is_waited_for(project: Project, status: str) -> None:
    assert count(wait(create_task(project), create_task(project, status=status))) == 1


@pytest.mark.parametrize("by", ["hand", "import"])
def test_a_task_finished_elsewhere_is_not(project: Project, by: str) -> None:
    on = create_task(project, status="completed", finished_by=by)
    assert count(wait(create_task(project), on)) == 0


def test_a_cancelled_task_is_not(project: Project) -> None:
    assert count(wait(create_task(project), create_task(project, status="cancelled"))) == 0


def test_an_approved_task_is_waited_for_until_it_has_landed(project: Project) -> None:
    on = completed(project)
    task = wait(create_task(project), on)
    assert count(task) == 1
    on.landed(sha("c"))
    assert count(task) == 0


def test_a_disputed_task_that_was_shipped_is_waited_for_until_it_has_landed(project: Project) -> None:
    on = completed(project)
    Task.objects.filter(pk=on.pk).update(status="disputed")
    task = wait(create_task(project), on)
    on.refresh_from_db()
    on.landed(sha("c"))
    assert count(task) == 0


def test_each_task_counts_as_one(project: Project) -> None:
    on = [create_task(project), create_task(project), landed(project), create_task(project)]
    assert count(wait(create_task(project), *on)) == 3


def test_counting_mends_what_was_wrong_and_the_copies_in_hand(project: Project) -> None:
    task = create_task(project, waits_for=7)
    recount([task])
    assert (count(task), task.waits_for) == (0, 0)


def test_counting_writes_only_what_differs(project: Project) -> None:
    task = wait(create_task(project), create_task(project))
    right, wrong = queries(lambda: recount(fresh([task]))), 0
    Task.objects.filter(pk=task.pk).update(waits_for=9)
    wrong = queries(lambda: recount(fresh([task])))
    assert wrong == right + 1


def test_counting_nothing_is_nothing() -> None:
    recount([])


# --- Sections ---------------------------------------------------------------------------------------------


def test_a_section_that_is_waited_for_counts_as_one(project: Project) -> None:
    walls, doors = create_section(project), create_section(project)
    doors.depends_on.add(walls)
    for _ in range(3):
        create_task(section=walls)
    assert count(wait(create_task(section=doors))) == 1


def test_a_section_without_open_tasks_is_not_waited_for(project: Project) -> None:
    walls, empty, doors = (create_section(project) for _ in range(3))
    doors.depends_on.add(walls, empty)
    landed(project, section=walls)
    create_task(section=walls, status="cancelled")
    assert count(wait(create_task(section=doors))) == 0


def test_sections_and_tasks_add_up(project: Project) -> None:
    walls, roof, doors = (create_section(project) for _ in range(3))
    doors.depends_on.add(walls, roof)
    own = create_task(section=walls)
    create_task(section=roof)
    assert count(wait(create_task(section=doors), own)) == 3


def test_what_lies_below_a_section_belongs_to_it(project: Project) -> None:
    walls, doors = create_section(project), create_section(project)
    inner = create_section(project, parent=create_section(project, parent=walls))
    doors.depends_on.add(walls)
    task, deep = create_task(section=doors), create_task(section=inner)
    recount([task])
    assert count(task) == 1
    deep.cancel(actor=ACTOR)
    assert count(task) == 0


def test_a_section_waits_for_what_its_parents_wait_for(project: Project) -> None:
    walls, house = create_section(project), create_section(project)
    doors = create_section(project, parent=create_section(project, parent=house))
    house.depends_on.add(walls)
    needed, task = create_task(section=walls), create_task(section=doors)
    recount([task])
    assert count(task) == 1
    needed.cancel(actor=ACTOR)
    assert count(task) == 0


def test_two_sections_deep_wait_for_two_sections(project: Project) -> None:
    walls, roof, house = (create_section(project) for _ in range(3))
    doors = create_section(project, parent=house)
    house.depends_on.add(walls)
    doors.depends_on.add(roof)
    create_task(section=walls)
    create_task(section=roof)
    assert count(wait(create_task(section=doors))) == 2


def test_tasks_of_other_sections_do_not_wait(project: Project) -> None:
    walls, doors = create_section(project), create_section(project)
    doors.depends_on.add(walls)
    create_task(section=walls)
    for section in (walls, create_section(project), create_section()):
        assert count(wait(create_task(section=section))) == 0


# --- The verbs keep it ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "status"), [("cancel", "pending"), ("cancel", "disputed"), ("finish", "in_progress")]
)
def test_who_waits_goes_on_when_the_task_ends(project: Project, verb: str, status: str) -> None:
    on = create_task(project, status=status)
    task = wait(create_task(project), on)
    getattr(on, verb)(actor=ACTOR)
    assert count(task) == 0


@pytest.mark.parametrize("end", ["cancel", "finish"])
def test_who_has_not_started_waits_again_when_it_comes_back(project: Project, end: str) -> None:
    on = create_task(project)
    task = wait(create_task(project), on)
    getattr(on, end)(actor=ACTOR)
    on.reopen(actor=ACTOR, note="Wanted after all.")
    assert count(task) == 1


def test_who_waits_for_the_section_is_told_too(project: Project) -> None:
    walls, doors = create_section(project), create_section(project)
    doors.depends_on.add(walls)
    first, second = create_task(section=walls), create_task(section=walls)
    task = wait(create_task(section=create_section(project, parent=doors)))
    first.cancel(actor=ACTOR)
    assert count(task) == 1
    second.cancel(actor=ACTOR)
    assert count(task) == 0
    second.reopen(actor=ACTOR, note="Wanted after all.")
    assert count(task) == 1


def test_a_ruling_against_landed_code_holds_back_who_has_not_started(project: Project) -> None:
    """The landing is taken back, and with it what rests on it."""
    on = landed(project)
    task = wait(create_task(project), on)
    assert count(task) == 0
    Task.objects.filter(pk=on.pk).update(status="disputed")
    on.refresh_from_db()
    on.rule_revise(actor=ACTOR, note="C-1: A", not_before=None)
    recount_dependants(on)
    assert count(task) == 1


def test_and_the_verb_does_it_itself(project: Project) -> None:
    on = landed(project)
    task = wait(create_task(project), on)
    Task.objects.filter(pk=on.pk).update(status="disputed")
    on.refresh_from_db()
    on.rule_revise(actor=ACTOR, note="C-1: A", not_before=None)
    assert count(task) == 1


def resume(task: Task) -> None:
    task.resume(actor=ACTOR)


def reopen(task: Task) -> None:
    task.reopen(actor=ACTOR, note="Wanted after all.")


def retry(task: Task) -> None:
    task.retry(Status.PENDING, actor=ACTOR, note="Again", not_before=None)


@pytest.mark.parametrize(
    ("status", "come_back"), [("deferred", resume), ("cancelled", reopen), ("disputed", retry)]
)
def test_a_task_that_was_away_finds_the_right_count(
    project: Project, status: str, come_back: Callable[[Task], None]
) -> None:
    """Else it silently never starts."""
    on = completed(project)
    task = wait(create_task(project), on)
    Task.objects.filter(pk=task.pk).update(status=status)
    on.landed(sha("c"))
    task.refresh_from_db()
    come_back(task)
    assert (task.status, count(task)) == ("pending", 0)


def test_recounting_leaves_other_projects_alone(project: Project) -> None:
    other = create_task(create_project(), waits_for=5)
    on = create_task(project)
    wait(create_task(project), on)
    recount_dependants(on)
    assert count(other) == 5


# --- Whom a task blocks -----------------------------------------------------------------------------------


def chain(project: Project, length: int) -> list[Task]:
    """Each waits for the one before it."""
    tasks = [create_task(project) for _ in range(length)]
    for on, task in zip(tasks, tasks[1:], strict=False):
        wait(task, on)
    return tasks


def test_a_task_blocks_those_that_wait_through_others(project: Project) -> None:
    first, second, third, fourth = chain(project, 4)
    assert [blocked_by(task) for task in (first, second, third, fourth)] == [3, 2, 1, 0]


def test_a_task_on_two_ways_counts_once(project: Project) -> None:
    first, left, right, last = (create_task(project) for _ in range(4))
    wait(left, first)
    wait(right, first)
    wait(last, left, right)
    assert blocked_by(first) == 3


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_finished_tasks_are_not_blocked(project: Project, status: str) -> None:
    first, second, _ = chain(project, 3)
    Task.objects.filter(pk=second.pk).update(status=status, finished_by="hand")
    assert blocked_by(first) == 0


def test_a_circle_ends(project: Project) -> None:
    first, second = chain(project, 2)
    wait(first, second)
    assert blocked_by(first) <= 2


# --- What it costs ----------------------------------------------------------------------------------------


def test_a_thousand_tasks_cost_as_many_queries_as_ten(project: Project) -> None:
    walls, house = create_section(project), create_section(project)
    doors = create_section(project, parent=house)
    house.depends_on.add(walls)
    on = create_task(section=walls)
    costs = []
    for number in (10, 90):
        tasks = [create_task(section=doors, waits_for=2) for _ in range(number)]
        Dependency.objects.bulk_create(Dependency(task=task, on=on) for task in tasks)
        costs.append(queries(lambda tasks=tasks: recount(fresh(tasks))))  # type: ignore[misc]
    assert costs[0] == costs[1]


def test_landing_costs_as_many_queries_for_one_dependant_as_for_fifty(project: Project) -> None:
    costs = []
    for number in (2, 50):
        on = completed(project)
        for _ in range(number):
            Dependency.objects.create(task=create_task(project, waits_for=0), on=on)
        Task.objects.filter(dependencies__on=on).update(waits_for=0)
        Task.objects.filter(pk=on.pk).update(landed_sha=sha("c"), landed_at=timezone.now())
        costs.append(queries(lambda on=on: recount_dependants(on)))  # type: ignore[misc]
    assert costs[0] == costs[1]


def test_a_long_chain_costs_a_query_for_each_link_and_a_wide_one_does_not(project: Project) -> None:
    first = create_task(project)
    costs = []
    for number in (3, 30):
        for _ in range(number):
            Dependency.objects.create(task=create_task(project), on=first)
        costs.append(queries(lambda: blocked_by(first)))
    assert costs[0] == costs[1]


def test_sections_are_asked_once_and_not_for_each_task() -> None:
    project = create_project()
    sections = [create_section(project) for _ in range(5)]
    for section in sections[1:]:
        section.depends_on.add(sections[0])
    create_task(section=sections[0])
    costs = []
    for number in (1, 20):
        tasks = [create_task(section=section, waits_for=1) for section in sections[1:] for _ in range(number)]
        costs.append(queries(lambda tasks=tasks: recount(fresh(tasks))))  # type: ignore[misc]
    assert costs[0] == costs[1]
    assert not Section.objects.filter(tasks__waits_for=0).exclude(pk=sections[0].pk).exists()
