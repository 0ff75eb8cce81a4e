"""A project's board: its tasks in columns, and where each card may be moved."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import django_filters
from django.db import connection
from django.db.models import Count, Q, QuerySet
from django.forms import SearchInput

from agents.pages import moves
from agents.pages.standing import Facts, Standing, standing_of
from tasks.models import SEVERITY_CHOICES, Project, Task
from tasks.states import MEANINGS, MOVES, STARTABLE, Status

CARDS = 15  # of one column; each costs half a millisecond
DONE = (Status.COMPLETED, Status.CANCELLED)


@dataclass(frozen=True, slots=True)
class Offer:
    """A verb that the person may use on the cards of one stage and status, and the columns it leads to."""

    at: str
    by_hand: moves.ByHand
    columns: tuple[str, ...]


@dataclass(slots=True)
class Card:
    """A task on the board."""

    task: Task
    standing: Standing
    at: str  # its stage and status, by which its moves are found
    may_move: bool

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

    def parts(self, tasks: QuerySet[Task], stages: list[str]) -> list[QuerySet[Task]]:
        """The first of its tasks: the loop's order, the newest first where they are done.

        Said so that an index answers: it begins with the stages, named even where all count, and has the
        times of one status in order, not of two.
        """
        if self.key == "done":
            return [tasks.filter(status=each).order_by("-status_at")[:CARDS] for each in self.statuses]
        own = tasks.filter(status__in=self.statuses, stage__in=[self.stage] if self.stage else stages)
        return [own.order_by("rank")[:CARDS]]

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
    moves: list["Offer"]  # where cards may go, said once for all that stand at one place


def board_of(project: Project, tasks: QuerySet[Task], role: str) -> Board:
    """The columns with their first cards. The number of queries does not grow with the tasks."""
    tasks = tasks.filter(project=project)
    counted = tasks.order_by().values_list("stage", "status").annotate(n=Count("*"))
    counts = Counter({(stage, status): n for stage, status, n in counted})
    columns = columns_for(sorted({stage for stage, status in counts if status in STARTABLE}))
    for column in columns:
        column.count = sum(n for at, n in counts.items() if column.holds(*at))
    stages = sorted({stage for stage, _ in counts})
    parts = [part for column in columns if column.count for part in column.parts(tasks, stages)]
    found = list(Task.objects.filter(pk__in=_keys(parts)).order_by().select_related("section"))
    for task in found:
        task.project = project
    facts, offers = Facts(found), dict[str, list[Offer]]()
    for column in columns:
        own = [task for task in found if column.holds(task.stage, task.status)]
        own.sort(key=lambda task: task.rank)
        if column.key == "done":
            own.sort(key=lambda task: task.status_at, reverse=True)
        for task in own[:CARDS]:
            at = _at(task.stage, task.status)
            if at not in offers:
                offers[at] = _offers(task, role, columns)
            column.cards.append(Card(task, standing_of(task, facts), at, bool(offers[at])))
    every = [offer for found_there in offers.values() for offer in found_there]
    return Board(columns, facts.seated[project.pk] if found else 0, every)


def _at(stage: str, status: str) -> str:
    return f"{stage}/{status}"


def _offers(task: Task, role: str, columns: list[Column]) -> list[Offer]:
    """The verbs that lead from the task's column to another. Cancelling stands on the task's page."""
    here = next(column.key for column in columns if column.holds(task.stage, task.status))
    found = []
    for each in moves.offered(task, role):
        targets = MOVES[each.verb].targets - {Status.DISPUTED, Status(task.status)}
        to = [column.key for column in columns if any(column.holds(task.stage, status) for status in targets)]
        others = tuple(key for key in to if key != here)
        if others and each.verb != "cancel":
            found.append(Offer(_at(task.stage, task.status), each, others))
    return found


def _keys(parts: list[QuerySet[Task]]) -> list[int]:
    """The keys of all parts in one query, each part by its own index.

    Asked for as alternatives in one condition, PostgreSQL would read the whole table.
    """
    if not parts:
        return []
    asked = [part.values("pk").query.sql_with_params() for part in parts]
    selects = [f"SELECT * FROM ({sql}) AS part_{n}" for n, (sql, _) in enumerate(asked)]  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(selects), [value for _, values in asked for value in values])
        return [key for (key,) in cursor.fetchall()]
