"""What runs cost, in words: the same on every page, in the API and on the command line."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.models import Run
from agents.money import caps, spending
from agents.money.spending import Spent
from disputes.protocol.completion.budget import money
from tasks.models import Project, Task
from tasks.text.counting import counted

PROJECTS = 5  # shown on the dashboard


def short(count: int) -> str:
    """Return a number of tokens in short form, such as 1,234 or 56k or 7.8M."""
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def tokens_in_words(spent: Spent) -> str:
    """Return tokens in words, such as "12k in, 340k from a cache, 900 out"; zeros are left out."""
    parts = [(spent.tokens_in, "in"), (spent.tokens_cached, "from a cache"), (spent.tokens_out, "out")]
    return ", ".join(f"{short(count)} {word}" for count, word in parts if count)


def line(spent: Spent) -> str:
    """Return costs and tokens in one line; empty if nothing was used.

    For example: "$1.24; tokens: 12k in, 3,000 out; the cost of 2 runs is unknown".
    """
    parts = [money(spent.cost)] if spent.known else []
    if words := tokens_in_words(spent):
        parts.append(f"tokens: {words}")
    if spent.unknown:
        parts.append(f"the cost of {counted(spent.unknown, 'run')} is unknown")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


@dataclass(frozen=True, slots=True)
class RunCost:
    """A run's cost and tokens for its page; `cost` says "unknown" rather than nothing."""

    cost: str
    source: str
    tokens: str

    @property
    def line(self) -> str:
        return ", ".join(part for part in (self.cost, self.source) if part)


def of_run(run: Run) -> RunCost | None:
    """Return what the page of a run shows, or None for a verification, which needs no model."""
    if run.role == Run.Role.VERIFIER:
        return None
    used = Spent(tokens_in=run.tokens_in, tokens_cached=run.tokens_cached, tokens_out=run.tokens_out)
    words = tokens_in_words(used) or "none counted"
    if run.cost is not None:
        source = run.get_cost_from_display()
        return RunCost(money(run.cost), source[:1].lower() + source[1:], words)
    return RunCost("not yet known" if run.status != Run.Status.ENDED else "unknown", "", words)


def of_task(task: Task) -> Spent:
    """Return what all runs of the task used, in one query."""
    return spending.total(Run.objects.filter(task=task))


def task_line(task: Task) -> str:
    """Return the line on costs for the API and `steroids tasks show`."""
    return line(of_task(task))


@dataclass(frozen=True, slots=True)
class ProjectToday:
    """A row of the dashboard's tile on costs."""

    project: Project
    spent: Spent
    closed: str  # why no agent is started; empty if agents may start

    @property
    def line(self) -> str:
        return line(self.spent)


@dataclass(frozen=True, slots=True)
class Today:
    """What a person's projects used today, by UTC."""

    total: Spent
    projects: list[ProjectToday]

    @property
    def cost(self) -> str:
        return money(self.total.cost) if self.total.known else "unknown" if self.total.unknown else "nothing"

    @property
    def tokens(self) -> str:
        return tokens_in_words(self.total)


def today(projects: Iterable[Project], now: datetime | None = None) -> Today:
    """Return today's sums, the dearest project first, and which projects a cap closes.

    This takes two queries at most.
    """
    rows = {project.pk: project for project in projects}
    sums = spending.today(rows, now)
    closed = caps.closed(rows.values(), now, sums)
    order = sorted(set(sums) | set(closed), key=lambda pk: (-_cost(sums, pk), rows[pk].name))
    shown = [
        ProjectToday(
            rows[pk], sums.get(pk, Spent()), caps.closed_line(closed[pk], now) if pk in closed else ""
        )
        for pk in order
        if pk in closed or sums[pk].is_anything
    ]
    return Today(sum(sums.values(), Spent()), shown[:PROJECTS])


def _cost(sums: dict[int, Spent], pk: int) -> Any:
    return sums[pk].cost if pk in sums else 0
