"""Caps on money and tokens: which one is reached, what follows, and the card that asks a person.

They are checked while runs stream and before one is started. A run that crosses a cap is stopped and its
work saved. A cap of a run or task asks on a card of the task; one of the day or project closes the project
until the day is over or somebody raises it. None of this is stored: it follows from the settings, the rows
of the runs and the decisions on the cards whenever it is asked for.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from agents.models import Run
from agents.money import spending
from agents.money.spending import Spent
from disputes import opening
from disputes.models import Conflict, Decision
from disputes.protocol.completion import budget
from disputes.protocol.completion.budget import Answer, Cap
from disputes.protocol.rulings.options import Option
from tasks.configuration.policy import ProjectSettings
from tasks.models import Event, Project, StaleTask, Task
from tasks.models.event import record
from tasks.states import IllegalMove
from tasks.text.counting import counted

NAMED = 8  # agents and models that a card lists
EVENT = "cap_reached"
WORDS = {"run": "a run", "task": "the task", "day": "the day", "project": "the project"}


@dataclass(frozen=True, slots=True)
class Reached:
    """A cap that is reached, how much was spent and what the limit is."""

    cap: Cap
    spent: Decimal
    limit: Decimal

    @property
    def line(self) -> str:
        """The cap in a sentence: The cap of the task is reached: $10.03 of $10.00 is spent."""
        spent, limit = budget.amount(self.cap, self.spent), budget.amount(self.cap, self.limit)
        verb = "is spent" if self.cap.is_money else "are used"
        return f"The cap of {WORDS[self.cap.whose]} is reached: {spent} of {limit} {verb}."


def _capped(config: ProjectSettings) -> dict[Cap, Decimal]:
    """Return the limits of the caps that the project has."""
    every = {
        Cap.RUN_COST: config.run_cost_max,
        Cap.RUN_TOKENS: config.run_tokens_max,
        Cap.TASK_COST: config.task_cost_max,
        Cap.TASK_TOKENS: config.task_tokens_max,
        Cap.DAY_COST: config.day_cost_max,
        Cap.DAY_TOKENS: config.day_tokens_max,
        Cap.PROJECT_COST: config.project_cost_max,
    }
    return {cap: Decimal(str(limit)) for cap, limit in every.items() if limit is not None}


def _first(caps: dict[Cap, Decimal], whose: str, spent: Spent) -> Reached | None:
    """Return the first of these caps that the sum reaches, or None."""
    for cap, limit in caps.items():
        used = spent.cost if cap.is_money else Decimal(spent.tokens)
        if cap.whose == whose and used >= limit:
            return Reached(cap, used, limit)
    return None


# --- Which is reached -------------------------------------------------------------------------------------


def by_run(run: Run) -> Reached | None:
    """Return the cap that the run has reached, alone or with the others of its task or project, or None."""
    caps = _capped(run.project.config)
    if not caps:
        return None
    alone = Spent(cost=run.cost or spending.NOTHING, tokens_in=run.tokens_in, tokens_out=run.tokens_out)
    if _first(caps, "run", alone) and (found := _first(_with_answers(run.task, caps), "run", alone)):
        return found
    return _by_task(run.task, caps) or _by_project(run.project)


def by_task(task: Task) -> Reached | None:
    """Return the cap that the runs of the task have reached together, or None."""
    return _by_task(task, _capped(task.project.config))


def _by_task(task: Task, caps: dict[Cap, Decimal]) -> Reached | None:
    if not any(cap.whose == "task" for cap in caps):
        return None
    spent = spending.total(Run.objects.filter(task=task))
    if not _first(caps, "task", spent):
        return None
    return _first(_with_answers(task, caps), "task", spent)


def _with_answers(task: Task, caps: dict[Cap, Decimal]) -> dict[Cap, Decimal]:
    """Return the caps with what people added to them on the task's cards; undone answers do not count."""
    rows = Decision.objects.standing().filter(
        conflict__dispute__task=task, conflict__origin=Conflict.Origin.BUDGET,
        option__in=[Option.RAISE, Option.RETRY],
    )  # fmt: skip
    answers = [
        Answer(cap, option, text)
        for evidence, option, text in rows.values_list("conflict__evidence", "option", "text")
        if (cap := budget.cap_of(evidence))
    ]
    return {cap: budget.allowed(cap, base, answers) for cap, base in caps.items()}


def _by_project(project: Project) -> Reached | None:
    return closed([project]).get(project.pk)


def closed(
    projects: Iterable[Project], now: datetime | None = None, today: dict[int, Spent] | None = None
) -> dict[int, Reached]:
    """Return the projects in which a cap of the day or project stops new runs, in two queries at most."""
    caps = {project.pk: _capped(project.config) for project in projects}
    by_day = [pk for pk, each in caps.items() if any(cap.whose == "day" for cap in each)]
    in_all = [pk for pk, each in caps.items() if Cap.PROJECT_COST in each]
    if today is None:
        today = spending.today(by_day, now) if by_day else {}
    ever = spending.of_projects(in_all) if in_all else {}
    found = {}
    for pk, each in caps.items():
        reached = _first(each, "project", ever.get(pk, Spent())) or _first(
            each, "day", today.get(pk, Spent())
        )
        if reached:
            found[pk] = reached
    return found


def closed_line(reached: Reached, now: datetime | None = None) -> str:
    """Say why no agent is started in the project, and until when."""
    raised = f"somebody raises {reached.cap.value} in the project's settings."
    if reached.cap.whose == "project":
        return f"{reached.line} No agent is started until {raised}"
    over = spending.midnight(now) + timedelta(days=1)
    return f"{reached.line} No agent is started before {over:%Y-%m-%d %H:%M} UTC, unless {raised}"


# --- What follows -----------------------------------------------------------------------------------------


def keeps_closed(project: Project) -> bool:
    """Whether no agent may be started in the project at present; records so once a day in its events."""
    reached = _by_project(project)
    if reached is None:
        return False
    told = Event.objects.filter(project=project, kind=EVENT, at__gte=spending.midnight())
    if not told.filter(data__cap=reached.cap.value, data__limit=str(reached.limit)).exists():
        data = {"cap": reached.cap.value, "spent": str(reached.spent), "limit": str(reached.limit)}
        record(project, EVENT, note=closed_line(reached), data=data)
    return True


def park_if_spent(task: Task) -> bool:
    """Ask a person if the task has spent all it may. Returns whether it has."""
    reached = by_task(task)
    if reached is None:
        return False
    ask(task, reached)
    return True


def ask(task: Task, reached: Reached) -> None:
    """Stop the task with a card that says which cap was reached and who spent how much."""
    question = f"{reached.line} {task.title}"
    detail = "Go on once, raise the cap by an amount that you begin your text with, defer or cancel it."
    try:
        opening.stop_for_help(
            task, Conflict.Origin.BUDGET, question[:500], detail=detail, evidence=_evidence(task, reached)
        )
    except (StaleTask, IllegalMove):
        return  # the task moved on, or waits for a person already


def _evidence(task: Task, reached: Reached) -> list[str]:
    """Return a line for the cap, then lines for who spent how much, most first."""
    runs = Run.objects.filter(task=task)
    sums = spending.grouped(runs, "agent_label", "model")
    lines = [budget.evidence_line(reached.cap, reached.spent, reached.limit)]
    ordered = sorted(sums.items(), key=lambda each: (-each[1].cost, -each[1].tokens))
    for (label, model), spent in ordered[:NAMED]:
        if not spent.is_anything:
            continue
        who = f"{label or 'an agent'} ({model})" if model else label or "an agent"
        count = spent.known + spent.unknown
        cost = budget.money(spent.cost) if spent.known else "cost unknown"
        lines.append(f"{who}: {cost}, {spent.tokens:,} tokens, {counted(count, 'run')}")
    unknown = sum(spent.unknown for spent in sums.values())
    if unknown and reached.cap.is_money:
        lines.append(f"Of {counted(unknown, 'run')} nobody knows the cost; it is not counted.")
    return lines
