"""What runs cost: sums over their rows, which are kept for good. No counter is kept, so none can drift."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum, Window

from agents.models import Run
from tasks.database.clock import estimated_time

NOTHING = Decimal(0)
# Runs of unknown cost, although an agent was at work. A verification needs no model.
UNKNOWN = Q(cost__isnull=True, started_at__isnull=False) & ~Q(role=Run.Role.VERIFIER)
SUMS = {
    "cost_sum": Sum("cost"),
    "in_sum": Sum("tokens_in"),
    "cached_sum": Sum("tokens_cached"),
    "out_sum": Sum("tokens_out"),
    "known": Count("pk", filter=Q(cost__isnull=False)),
    "unknown": Count("pk", filter=UNKNOWN),
}


@dataclass(frozen=True, slots=True)
class Spent:
    """What some runs used. `cost` is the sum of the known costs; `unknown` counts the runs it leaves out."""

    cost: Decimal = NOTHING
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    known: int = 0
    unknown: int = 0

    @property
    def tokens(self) -> int:
        """The tokens that count towards caps: read and written, without those from a cache."""
        return self.tokens_in + self.tokens_out

    @property
    def is_anything(self) -> bool:
        return bool(self.known or self.unknown or self.tokens or self.tokens_cached)

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            self.cost + other.cost,
            self.tokens_in + other.tokens_in,
            self.tokens_cached + other.tokens_cached,
            self.tokens_out + other.tokens_out,
            self.known + other.known,
            self.unknown + other.unknown,
        )


def _spent(row: dict[str, Any]) -> Spent:
    return Spent(
        row["cost_sum"] or NOTHING, row["in_sum"] or 0, row["cached_sum"] or 0, row["out_sum"] or 0,
        row["known"], row["unknown"],
    )  # fmt: skip


def total(runs: QuerySet[Run]) -> Spent:
    """Return the sum of these runs, in one query."""
    return _spent(runs.order_by().aggregate(**SUMS))


def with_total(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Annotate the runs with the sum of all of them, even those that a limit leaves out: see `told`."""
    return runs.annotate(**{name: Window(amount) for name, amount in SUMS.items()})


def told(runs: Sequence[Run]) -> Spent:
    """Return the sum over runs that were read by `with_total`."""
    return _spent({name: getattr(runs[0], name) for name in SUMS}) if runs else Spent()


def grouped(runs: QuerySet[Run], *columns: str) -> dict[Any, Spent]:
    """Return the sum of each group, in one query. The key is a column's value, or a tuple of several."""
    rows = runs.order_by().values(*columns).annotate(**SUMS)
    return {
        row[columns[0]] if len(columns) == 1 else tuple(row[column] for column in columns): _spent(row)
        for row in rows
    }


def midnight(now: datetime | None = None) -> datetime:
    """Return when the current day began in UTC."""
    return (now or estimated_time()).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def of_projects(projects: Iterable[int]) -> dict[int, Spent]:
    """Return what all runs of each of these projects used."""
    return grouped(Run.objects.filter(project__in=list(projects)), "project")


def today(projects: Iterable[int], now: datetime | None = None) -> dict[int, Spent]:
    """Return what each of these projects spent on the current day of UTC.

    A run counts on the day on which it ends, with all it cost; while it is live it counts today.
    """
    return grouped(of_today(projects, now), "project")


def of_today(projects: Iterable[int], now: datetime | None = None) -> QuerySet[Run]:
    """Return the runs that count today, both live and ended, each sort looked up in its own index.

    As two halves of one condition, SQLite would read all runs ever made if there are many projects.
    """
    mine = Run.objects.filter(project__in=list(projects)).order_by().values("pk")
    ended = mine.filter(status=Run.Status.ENDED, ended_at__gte=midnight(now))
    return Run.objects.filter(pk__in=ended.union(mine.live(), all=True))
