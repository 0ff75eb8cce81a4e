"""A project's board: its tasks in columns, and where each card may be moved."""

from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import django_filters
from django.db.models import Count, Q, QuerySet
from django.forms import SearchInput

from agents.pages import moves
from agents.pages.standing import Facts, Standing, standing_of
from tasks.models import SEVERITY_CHOICES, Project, Task
from tasks.states import MEANINGS, MOVES, STARTABLE, Status

CARDS = 15  # of one column; each costs half a millisecond
DONE = (Status.COMPLETED, Status.CANCELLED)


@dataclass(slots=True)
class Card:
    """A task on the board."""

    task: Task
    standing: Standing
    moves: list[tuple[moves.ByHand, list[str]]]  # the verb, and the columns that it leads to

    @property
    def is_loud(self) -> bool:
        return self.task.severity in {"critical", "high"}


@dataclass(slots=True)
class Column:
    """One column: which tasks stand in it, the first of them, and how many there are."""

    key: str
    title: str
    hint: str
    statuses: tuple[str, ...]
    stage: str = ""
    icon: str = ""
    count: int = 0
    cards: list[Card] = field(default_factory=list)

    def holds(self, stage: str, status: str) -> bool:
        return status in self.statuses and self.stage in {"", stage}

    def tasks(self, tasks: QuerySet[Task], stages: list[str]) -> QuerySet[Task]:
        """The first of its tasks: the loop's order, the newest first where they are done.

        The stages are named even where all count, for the index begins with them.
        """
        own = tasks.filter(status__in=self.statuses)
        if self.key != "done":
            own = own.filter(stage__in=[self.stage] if self.stage else stages)
        return own.order_by("-status_at" if self.key == "done" else "rank")[:CARDS]

    @property
    def more(self) -> int:
        return self.count - len(self.cards)


WORKING = {
    Status.PENDING: "Not begun",
    Status.IN_PROGRESS: "With the coder",
    Status.REVIEW: "Build, tests, review",
}


def columns_for(stages: list[str]) -> list[Column]:
    """The stages of the pipeline, or, where there is only one, the steps of a round; then the others."""
    if len(stages) > 1:
        working = [
            Column(f"stage-{stage}", stage.replace("_", " ").capitalize(), "", tuple(STARTABLE), stage)
            for stage in stages
        ]
    else:
        working = [Column(at, MEANINGS[at].label, hint, (at,)) for at, hint in WORKING.items()]
    return [
        *working,
        Column("escalated", "Escalated", "Failed after too many rejections", (Status.FAILED,),
               icon="trending_up"),
        Column("human", "Needs a human", "A card in the queue asks", (Status.DISPUTED,), icon="front_hand"),
        Column("deferred", "Deferred", "Put off until somebody resumes it", (Status.DEFERRED,),
               icon="schedule"),
        Column("done", "Done", "Newest first", DONE, icon="check_circle"),
    ]  # fmt: skip


class BoardFilter(django_filters.FilterSet):
    """What the address of the page may narrow down."""

    q = django_filters.CharFilter(
        method="search", label="Search", max_length=200,
        widget=SearchInput(attrs={"placeholder": "Search tasks"}),
    )  # fmt: skip
    section = django_filters.ChoiceFilter(label="Section", empty_label="Section")
    severity = django_filters.ChoiceFilter(label="Severity", choices=SEVERITY_CHOICES, empty_label="Severity")

    class Meta:
        model = Task
        fields = ["q", "section", "severity"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The request carries the sections of the project, so that they are read once."""
        super().__init__(*args, **kwargs)
        self.filters["section"].extra["choices"] = [(pk, title) for pk, title in self.request.board_sections]

    def search(self, tasks: QuerySet[Task], name: str, words: str) -> QuerySet[Task]:
        """In titles; or a name: ledger-214."""
        asked = Q(title__icontains=words)
        number = words.strip().rpartition("-")[2]
        if number.isdecimal() and len(number) <= 9:
            asked |= Q(number=number)
        return tasks.filter(asked)


@dataclass(slots=True)
class Board:
    columns: list[Column]
    working: int


def board_of(project: Project, tasks: QuerySet[Task], role: str) -> Board:
    """The columns with their first cards. The number of queries does not grow with the tasks."""
    tasks = tasks.filter(project=project)
    counted = tasks.order_by().values_list("stage", "status").annotate(n=Count("pk"))
    counts = Counter({(stage, status): n for stage, status, n in counted})
    columns = columns_for(sorted({stage for stage, status in counts if status in STARTABLE}))
    for column in columns:
        column.count = sum(n for at, n in counts.items() if column.holds(*at))
    stages = sorted({stage for stage, _ in counts})
    filled = [Q(pk__in=column.tasks(tasks, stages).values("pk")) for column in columns if column.count]
    shown = Task.objects.filter(reduce(or_, filled)) if filled else Task.objects.none()
    found = list(shown.order_by().select_related("section"))
    for task in found:
        task.project = project
    facts = Facts(found)
    for column in columns:
        own = [task for task in found if column.holds(task.stage, task.status)]
        own.sort(key=lambda task: task.rank)
        if column.key == "done":
            own.sort(key=lambda task: task.status_at, reverse=True)
        column.cards = [
            Card(task, standing_of(task, facts), _moves(task, role, columns)) for task in own[:CARDS]
        ]
    return Board(columns, facts.seated[project.pk] if found else 0)


def _moves(task: Task, role: str, columns: list[Column]) -> list[tuple[moves.ByHand, list[str]]]:
    """The verbs that lead from the task's column to another. Cancelling stands on the task's page."""
    found = []
    for each in moves.offered(task, role):
        if each.verb == "cancel":
            continue
        targets = MOVES[each.verb].targets - {Status.DISPUTED, Status(task.status)}
        to = [column.key for column in columns if any(column.holds(task.stage, status) for status in targets)]
        here = next(column.key for column in columns if column.holds(task.stage, task.status))
        if others := [key for key in to if key != here]:
            found.append((each, others))
    return found
