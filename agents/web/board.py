"""A project's board: its tasks in columns, and where each card may be moved."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import django_filters
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Value
from django.db.models.expressions import RawSQL
from django.forms import SearchInput

from agents.crew import coverage
from agents.crew.choosing import Crew, watches
from agents.models import Agent
from agents.web import moves
from agents.web.standing import Facts, Standing, standing_of
from tasks.configuration import stages
from tasks.configuration.policy import ProjectSettings
from tasks.configuration.stages import Stage
from tasks.filtering import SeverityFilter
from tasks.models import Comment, Project, Task
from tasks.remarks.objections import BACK, tag_of
from tasks.states import MEANINGS, MOVES, STARTABLE, UNFINISHED, Status
from tasks.text.counting import some_of

CARDS = 15  # shown in one column; each costs half a millisecond
WATCHERS = 2  # named for one column
DONE = (Status.COMPLETED, Status.CANCELLED)
DONE_MAX = 500  # tasks counted of each of the two


@dataclass(frozen=True, slots=True)
class Offer:
    """A verb the person may use on the cards of one stage and status, and the columns it leads to."""

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
    stage: str = ""  # the stage's label, if its column does not show it
    sent_back_by: str = ""

    @property
    def is_loud(self) -> bool:
        return self.task.severity in {"critical", "high"}


@dataclass(slots=True)
class Column:
    """One column: which tasks belong in it, the first of them, and how many there are.

    `stages` are the stages whose tasks it holds, None for all; `is_back` says whether it holds what was sent
    back, None for both.
    """

    key: str
    title: str
    hint: str
    statuses: tuple[str, ...]
    stages: frozenset[str] | None = None
    is_back: bool | None = None
    icon: str = ""
    is_unwatched: bool = False
    count: int = 0
    is_capped: bool = False  # there may be more than were counted
    cards: list[Card] = field(default_factory=list)

    def holds(self, stage: str, status: str, is_back: bool = False) -> bool:
        here = self.stages is None or stage in self.stages
        return status in self.statuses and here and self.is_back in {None, is_back}

    def parts(self, tasks: QuerySet[Task], stages: list[str]) -> list[QuerySet[Task]]:
        """Return the queries for its first tasks: in the loop's order, or the newest first if they are done.

        They are written so that an index answers. The index begins with the stages, so these are named even
        if all count; and it has the times of one status in order but not those of two.
        """
        if self.key == "done":
            return [tasks.filter(status=each).order_by("-status_at")[:CARDS] for each in self.statuses]
        own = tasks.filter(status__in=self.statuses, stage__in=sorted(self.stages or stages))
        if self.is_back is not None:
            own = own.filter(SENT_BACK) if self.is_back else own.exclude(SENT_BACK)
        return [own.order_by("rank")[:CARDS]]

    @property
    def more(self) -> int:
        return self.count - len(self.cards)


WORKING = {
    Status.PENDING: "Not begun",
    Status.IN_PROGRESS: "With the {coder}",
    Status.REVIEW: "{checks}, review",
}
BEGUN = (Status.IN_PROGRESS, Status.REVIEW)  # only such tasks are sent back
SENT_BACK = ~Q(home_stage="") & Q(escalation="")


def columns_for(config: ProjectSettings, held: set[str], crew: list[Agent], project: Project) -> list[Column]:
    """Return the stages of the pipeline, or the steps of a round if there is only one; then the rest (COL-2).

    `held` are the stages that unfinished tasks are in; `crew` are the coders who might watch a column.
    """
    pipeline, special = stages.stages_of(config), stages.escalations_of(config)
    names = {stage.name for stage in (*pipeline, *special)}
    lost = [Stage(name) for name in sorted(held - names)]  # removed from the settings but still in use
    if len(pipeline) + len(lost) > 1:
        working = [_of_stage(stage, crew, is_back=False) for stage in (*pipeline, *lost)]
    else:
        only = frozenset(stage.name for stage in (*pipeline, *lost))
        working = [
            Column(
                at,
                MEANINGS[at].label,
                hint.format(coder=project.coder_word, checks=project.checks_word),
                (at,),
                only,
            )
            for at, hint in WORKING.items()
        ]
    escalated = [_of_stage(stage, crew, icon="trending_up") for stage in special if stage.name in held]
    back = Column("backflow", "Backflow", "Sent back by a later stage", BEGUN, None, True, icon="undo")
    return [
        *working,
        *escalated,
        *([back] if len(pipeline) > 1 else []),
        Column("failed", "Failed", "Rejected too often", (Status.FAILED,), icon="error"),
        Column("human", "Needs a person", "A card in the queue asks", (Status.DISPUTED,), icon="front_hand"),
        Column("deferred", "Deferred", "Put off until somebody resumes it", (Status.DEFERRED,),
               icon="schedule"),
        Column("done", "Done", "Newest first", DONE, icon="check_circle"),
    ]  # fmt: skip


def _of_stage(stage: Stage, crew: list[Agent], *, is_back: bool | None = None, icon: str = "") -> Column:
    """Return the column of the unfinished tasks of one stage."""
    return Column(
        f"stage-{stage.name}", stage.label, _watched(stage, crew), tuple(STARTABLE), frozenset({stage.name}),
        is_back, icon, is_unwatched=not _watchers(stage, crew),
    )  # fmt: skip


def _watchers(stage: Stage, crew: list[Agent]) -> list[str]:
    return [agent.name for agent in crew if watches(agent, stage)]


def _watched(stage: Stage, crew: list[Agent]) -> str:
    """Return who takes work from the column, in words."""
    names = _watchers(stage, crew)
    if not names:
        return f"Nobody watches it: no active coder {coverage.fitting_types(stage)} works here"
    return f"Watched by {some_of(names, WATCHERS)}"


class BoardFilter(django_filters.FilterSet):
    """The filters that the URL of the page may set."""

    q = django_filters.CharFilter(
        method="search", label="Search", max_length=200,
        widget=SearchInput(attrs={"placeholder": "Search tasks"}),
    )  # fmt: skip
    section = django_filters.ChoiceFilter(label="Section", empty_label="Section")
    severity = SeverityFilter(label="Severity", empty_label="Severity")

    dispute = django_filters.ChoiceFilter(label="Dispute", empty_label="Dispute", method="between")

    class Meta:
        model = Task
        fields = ["q", "section", "severity", "dispute"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take the choices from the request, which carries the project's sections so they are read once."""
        super().__init__(*args, **kwargs)
        self.filters["section"].extra["choices"] = [(pk, title) for pk, title in self.request.board_sections]
        self.filters["dispute"].extra["choices"] = self.request.board_disputes

    def between(self, tasks: QuerySet[Task], name: str, tag: str) -> QuerySet[Task]:
        """Return the tasks over which two stages disagree, given a tag such as dispute-tests-vs-dev."""
        objecting = tag.rpartition("-vs-")[2]
        return tasks.filter(Exists(open_objections().filter(task=OuterRef("pk"), stage=objecting)))

    def search(self, tasks: QuerySet[Task], name: str, words: str) -> QuerySet[Task]:
        """Search in titles, and by the name of a task, such as ledger-214."""
        asked = Q(title__icontains=words)
        number = words.strip().rpartition("-")[2]
        if number.isdecimal() and len(number) <= 9:
            asked |= Q(number=number)
        return tasks.filter(asked).read_once()


def open_objections() -> QuerySet[Comment]:
    """Return the objections that sent work back to an earlier stage and are not settled."""
    return Comment.objects.filter(parent=None, sends=BACK, status=Comment.Status.OPEN)


def disputes_in(project: Project) -> list[tuple[str, str]]:
    """Return the tags of the project's open disputes between stages, as choices."""
    pipeline = [stage.name for stage in stages.stages_of(project.config)]
    if len(pipeline) == 1:
        return []
    of_project = open_objections().filter(project=project, task__isnull=False)
    objecting = {*of_project.order_by().values_list("stage", flat=True).distinct()}
    tags = [tag_of(before, after) for before, after in pairwise(pipeline) if after in objecting]
    return [(tag, tag) for tag in tags]


@dataclass(slots=True)
class Board:
    columns: list[Column]
    working: int
    moves: list["Offer"]  # where cards may go, once for all that have the same stage and status


def board_of(project: Project, tasks: QuerySet[Task], role: str) -> Board:
    """Return the columns with their first cards; the number of queries does not grow with the tasks."""
    tasks, config = tasks.filter(project=project), project.config
    counts = _counts(tasks, config)
    held = {stage for (stage, status, _), n in counts.items() if n and status in STARTABLE}
    crew = Crew()
    columns = columns_for(config, held, _coders(project, config, held, crew), project)
    for column in columns:
        column.count = sum(n for at, n in counts.items() if column.holds(*at))
        column.is_capped = column.key == "done" and column.count >= DONE_MAX
    known = sorted({stage for stage, *_ in counts})
    parts = [part for column in columns if column.count for part in column.parts(tasks, known)]
    found = _tasks_of(parts)
    for task in found:
        task.project = project
    facts, offers = Facts(found, crew=crew), dict[str, list[Offer]]()
    for column in columns:
        for task in _shown(column, found):
            at = _at(*_place(task))
            if at not in offers:
                offers[at] = _offers(task, role, columns)
            card = _card(task, config, standing_of(task, facts), at, column)
            card.may_move = bool(offers[at])
            column.cards.append(card)
    every = [offer for found_there in offers.values() for offer in found_there]
    return Board(columns, facts.seated[project.pk] if found else 0, every)


def _counts(tasks: QuerySet[Task], config: ProjectSettings) -> Counter[tuple[str, str, bool]]:
    """Count the tasks of each stage and status, those sent back separately, in one query.

    Finished tasks are not counted beyond DONE_MAX: their number only grows, and nobody waits for them.
    """
    parts = [_per_place(tasks.filter(status__in=UNFINISHED), is_back=False)]
    if len(stages.stages_of(config)) > 1:
        parts.append(_per_place(tasks.filter(SENT_BACK, status__in=BEGUN), is_back=True))
    for status in DONE:
        each = tasks.filter(status=status).order_by().annotate(is_back=Value(False), n=Value(1))
        parts.append(each.values_list("stage", "status", "is_back", "n")[:DONE_MAX])
    with connection.cursor() as cursor:
        cursor.execute(*_united(parts))
        rows = cursor.fetchall()
    counts = Counter[tuple[str, str, bool]]()
    for stage, status, is_back, n in rows:
        counts[stage, status, bool(is_back)] += n
        if is_back:
            counts[stage, status, False] -= n
    return counts


def _per_place(tasks: QuerySet[Task], *, is_back: bool) -> QuerySet[Any, Any]:
    placed = tasks.order_by().annotate(is_back=Value(is_back))
    return placed.values_list("stage", "status", "is_back").annotate(n=Count("*"))


def _shown(column: Column, tasks: list[Task]) -> list[Task]:
    """Return the column's first cards by rank, or the latest first if they are done."""
    own = sorted((task for task in tasks if column.holds(*_place(task))), key=lambda task: task.rank)
    if column.key == "done":
        own.sort(key=lambda task: task.status_at, reverse=True)
    return own[:CARDS]


def _coders(project: Project, config: ProjectSettings, held: set[str], crew: Crew) -> list[Agent]:
    """Return the coders who may watch columns; none if the columns are only the steps of a round."""
    if len(stages.stages_of(config)) == 1 and not held - {stage.name for stage in stages.stages_of(config)}:
        return []
    return sorted(crew.of(project.pk, Agent.Role.CODER), key=lambda agent: agent.name)


def _card(task: Task, config: ProjectSettings, standing: Standing, at: str, column: Column) -> Card:
    one = len(stages.stages_of(config)) == 1
    named = stages.stage_named(config, task.stage)
    elsewhere = not one and named is not None and column.stages is None and column.key != "done"
    back = task.home_stage if task.home_stage and not task.escalation else ""
    return Card(task, standing, at, False, named.label if elsewhere and named else "", back)


def _place(task: Task) -> tuple[str, str, bool]:
    return task.stage, task.status, bool(task.home_stage and not task.escalation)


def _at(stage: str, status: str, is_back: bool) -> str:
    return f"{stage}/{status}" + ("/back" if is_back else "")


def _offers(task: Task, role: str, columns: list[Column]) -> list[Offer]:
    """Return the verbs that lead from the task's column to another; cancelling is left to the task's page."""
    stage, status, back = _place(task)
    here = next((column.key for column in columns if column.holds(stage, status, back)), "")
    found = []
    for each in moves.offered(task, role):
        targets = MOVES[each.verb].targets - {Status.DISPUTED, Status(status)}
        to = [column.key for column in columns if any(column.holds(stage, goal, back) for goal in targets)]
        others = tuple(key for key in to if key != here)
        if others and each.verb != "cancel":
            found.append(Offer(_at(stage, status, back), each, others))
    return found


def _tasks_of(parts: list[QuerySet[Task]]) -> list[Task]:
    """Return the tasks of all parts, with their sections."""
    if not parts:
        return []
    keys = RawSQL(*_united([part.values("pk") for part in parts]))  # noqa: S611 - Django wrote it
    return list(Task.objects.filter(pk__in=keys).order_by().select_related("section"))


def _united(parts: list[QuerySet[Any, Any]]) -> tuple[str, list[Any]]:
    """Return one SQL query with the rows of all parts, each part read by its own index.

    If they were alternatives in one condition, PostgreSQL would read the whole table. A part of which Django
    knows that it has no rows, such as one of a search that finds nothing, has no SQL.
    """
    asked = []
    for part in parts:
        with suppress(EmptyResultSet):
            asked.append(part.query.sql_with_params())
    selects = [f"SELECT * FROM ({sql}) AS part_{n}" for n, (sql, _) in enumerate(asked)]  # noqa: S608
    selects = selects or ["SELECT 0 WHERE 1 = 0"]
    return " UNION ALL ".join(selects), [value for _, values in asked for value in values]
