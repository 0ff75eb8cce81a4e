"""The daily sums behind the insights page: counted from the rows, stored, and countable again at any time.

Days are days in UTC. A day is counted once it is over; what came since is counted when somebody looks. A day
may still change for ninety days (a ruling turns out to be followed, a flag to be a false alarm), so all of
these are counted again every night.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, QuerySet, Subquery, Sum
from django.db.models.functions import TruncDate

from disputes import hooks
from disputes.models import CountedUntil, Decision, Dispute, Flag, Opinion, Tally
from disputes.models.insights import DAY
from disputes.protocol.reviews.severity import GRAVE
from disputes.protocol.rulings import figures
from disputes.protocol.rulings.arbitration import option_of
from disputes.protocol.rulings.figures import Measure
from disputes.protocol.rulings.recommendations import JudgeVerdict
from tasks.database.clock import estimated_time
from tasks.database.locking import locked
from tasks.models import Answer, Project, Task
from tasks.states import Status
from tasks.text.counting import counted

PERIODS = (7, 30, 90)  # days, including today
STEPS = {7: 1, 30: 1, 90: 7}  # days between two points of a chart over time
TRENDS = {Measure.OPENED: Measure.TREND_OPENED, Measure.WAITED: Measure.TREND_WAITED}  # shown over time
BUDGET = 20.0  # seconds per job; the next job continues with what is left
RECOUNT = timedelta(days=max(PERIODS))

Row = tuple[int, date, str, str, int]  # project, day, measure, key, n
Source = Callable[["Within"], Iterator[Row]]


@dataclass
class Within:
    """Which rows are to be counted: for each project, those from a day on."""

    since: dict[int, date | None]  # the first day by project; None for all days
    until: date | None = None  # including this day
    is_recent: bool = False  # so few rows that filtering by time alone is fastest

    def of(self, at: str, project: str) -> Q:
        """Return a filter on the columns that hold a row's time and its project.

        It may let rows of other projects pass; `holds` excludes them.
        """
        if self.is_recent and "__" in project and all(self.since.values()):
            wanted = Q(**{f"{at}__gte": midnight(min(day for day in self.since.values() if day))})
        else:
            wanted = self._of_each(at, project)
        if self.until:
            wanted &= Q(**{f"{at}__lt": midnight(self.until + timedelta(days=1))})
        return wanted

    def _of_each(self, at: str, project: str) -> Q:
        by_day: dict[date | None, list[int]] = {}
        for key, day in self.since.items():
            by_day.setdefault(day, []).append(key)
        wanted = Q(pk__in=[])
        for day, projects in by_day.items():
            part = Q(**{f"{project}__in": projects})
            wanted |= part & Q(**{f"{at}__gte": midnight(day)}) if day else part
        return wanted

    def holds(self, project: int, day: date) -> bool:
        """Whether a row of that project and day is to be counted."""
        return project in self.since and day >= (self.since[project] or date.min)


def midnight(day: date) -> datetime:
    return datetime.combine(day, clock(), UTC)


def per_day(rows: QuerySet[Any], at: str, *columns: str) -> Iterable[Any]:
    """Return how many rows there are for each day and each value of the columns: (day, *columns, n)."""
    days = rows.order_by().annotate(day=TruncDate(at, tzinfo=UTC))
    return days.values_list("day", *columns).annotate(n=Count("pk"))


# --- What is counted --------------------------------------------------------------------------------------


def opened(within: Within) -> Iterator[Row]:
    """Count disputes on the day they were opened."""
    rows = Dispute.objects.filter(within.of("opened_at", "project")).exclude(closed_reason="logged")
    for day, project, severity, n in per_day(rows, "opened_at", "project", "severity"):
        yield project, day, Measure.OPENED, severity, n


def ruled(within: Within) -> Iterator[Row]:
    """Count people's rulings in force on the day they were made."""
    columns = _of_people(within).values_list(
        "conflict__dispute__project", "at", "conflict__opened_at", "option", "seconds", "user",
        "conflict__kind", "conflict__severity", "conflict__reason", "conflict__followed",
        "conflict__coder_label", "conflict__reviewer_label", "conflict__submission__by_model",
        "conflict__finding__review__by_model",
    )  # fmt: skip
    for (
        project, at, opened_at, option, seconds, user, kind, severity, category, followed, coder, reviewer,
        coder_model, reviewer_model,
    ) in columns:  # fmt: skip
        ruling = figures.CountedRuling(
            kind=kind, option=option, severity=severity, category=category,
            waited=(at - opened_at).total_seconds(), seconds=seconds, ruler=str(user), followed=followed,
            coder=coder, reviewer=reviewer, coder_model=coder_model or "",
            reviewer_model=reviewer_model or "",
        )  # fmt: skip
        day = at.astimezone(UTC).date()
        for measure, key in figures.of_ruling(ruling):
            yield project, day, measure, key, 1


def judged(within: Within) -> Iterator[Row]:
    """Count people's rulings after a judge had taken a side, by whether they ruled as it said."""
    before = Opinion.objects.judge_before_ruling()
    said = (
        _of_people(within)
        .annotate(said=Subquery(before.values("verdict")[:1]))
        .filter(said__in=[JudgeVerdict.ENFORCE, JudgeVerdict.DISMISS])
    )
    for project, at, option, verdict in said.values_list(
        "conflict__dispute__project", "at", "option", "said"
    ):
        word = "agreed" if option == option_of(verdict) else "differed"
        yield project, at.astimezone(UTC).date(), Measure.JUDGED, word, 1


def _of_people(within: Within) -> QuerySet[Decision]:
    in_force = Decision.objects.standing().filter(authority=Decision.Authority.PERSON)
    return in_force.filter(within.of("at", "conflict__dispute__project")).order_by()


def answered(within: Within) -> Iterator[Row]:
    """Count how critical and high findings were answered, on the day of the submission."""
    rows = Answer.objects.standing().filter(
        within.of("submission__at", "submission__task__project"), finding__severity__in=sorted(GRAVE)
    )
    for day, project, kind, n in per_day(rows, "submission__at", "submission__task__project", "kind"):
        yield project, day, Measure.ANSWERS, kind, n


def flagged(within: Within) -> Iterator[Row]:
    """Count flags of silent disagreement on the day they were raised."""
    rows = Flag.objects.filter(within.of("at", "submission__task__project"))
    columns = rows.order_by().values_list("submission__task__project", "at", "heuristics", "status")
    for project, at, heuristics, status in columns:
        for measure, key in figures.of_flag(heuristics, status):
            yield project, at.astimezone(UTC).date(), measure, key, 1


def completed(within: Within) -> Iterator[Row]:
    """Count tasks on the day they were completed, by how often each was rejected."""
    rows = Task.objects.filter(within.of("status_at", "project"), status=Status.COMPLETED)
    for day, project, rejections, n in per_day(rows, "status_at", "project", "rejections"):
        yield project, day, Measure.REJECTIONS, str(rejections), n


SOURCES: tuple[Source, ...] = (opened, ruled, judged, answered, flagged, completed)


def count(within: Within) -> Counter[tuple[int, date, str, str]]:
    """Return the counts of all sources, summed for each project, day, measure and key."""
    found: Counter[tuple[int, date, str, str]] = Counter()
    for each in (*SOURCES, *hooks.sources_above()):
        for project, day, measure, key, n in each(within):
            if within.holds(project, day):
                found[project, day, str(measure), key[:200]] += n
    return found


# --- Storing the sums -------------------------------------------------------------------------------------


def count_days() -> str:
    """Run as a job: count projects that are not counted up to yesterday, until time is up. Idempotent."""
    today, deadline = _today(), time.monotonic() + BUDGET
    done = 0
    for project in due(today):
        rebuild([project], since=today - RECOUNT)
        done += 1
        if time.monotonic() > deadline:
            break
    return f"counted {counted(done, 'project')}"


def due(today: date) -> list[Project]:
    """Return the projects that are not counted up to yesterday."""
    yesterday = today - timedelta(days=1)
    return list(Project.objects.exclude(counted_until__day__gte=yesterday).order_by("pk"))


def rebuild(projects: Iterable[Project] | None = None, *, since: date | None = None) -> int:
    """Count the days from `since` to yesterday again, or all days without it. Return the rows written.

    Days between those counted before and `since` are counted too, so that there is never a gap.
    """
    yesterday = _today() - timedelta(days=1)
    wanted = Project.objects.order_by("pk") if projects is None else projects
    marks = counted_until(project.pk for project in wanted)
    written = 0
    for project in wanted:
        mark = marks.get(project.pk)
        first = min(since, mark + timedelta(days=1)) if since and mark else None
        counts = count(Within({project.pk: first}, yesterday))
        with transaction.atomic():
            locked(Project.objects).get(pk=project.pk)
            kept = Tally.objects.filter(project=project, span=DAY)
            written += _replace(kept.filter(day__gte=first) if first else kept, counts)
            for period in PERIODS:
                written += _replace(*_span(project, period, yesterday))
            CountedUntil.objects.update_or_create(project=project, defaults={"day": yesterday})
    return written


def _replace(kept: QuerySet[Tally], counts: Counter[tuple[int, date, str, str]], span: int = DAY) -> int:
    """Make the rows hold the counts, writing only those that differ. Return how many were written."""
    left = dict(counts)
    stale = []
    for pk, project, day, measure, key, n in kept.values_list("pk", "project", "day", "measure", "key", "n"):
        if left.get((project, day, measure, key)) == n:
            del left[project, day, measure, key]
        else:
            stale.append(pk)
    for start in range(0, len(stale), 500):
        Tally.objects.filter(pk__in=stale[start : start + 500]).delete()
    Tally.objects.bulk_create(
        [
            Tally(project_id=project, span=span, day=day, measure=measure, key=key, n=n)
            for (project, day, measure, key), n in left.items()
        ],
        batch_size=2_000,
    )
    return len(left)


def _span(
    project: Project, period: int, last: date
) -> tuple[QuerySet[Tally], Counter[tuple[int, date, str, str]], int]:
    """Return the stored rows of a period, what they should hold, and its length in days.

    The period's last day, today, is not in the sums.
    """
    days = Tally.objects.filter(
        project=project, span=DAY, day__gt=last - timedelta(days=period - 1), day__lte=last
    )
    sums: Counter[tuple[int, date, str, str]] = Counter()
    by_key = days.order_by().values_list("measure", "key").annotate(total=Sum("n"))
    for measure, key, n in by_key:
        sums[project.pk, last, measure, key] = n
    over_time = days.order_by().filter(measure__in=TRENDS).values_list("day", "measure", "key", "n")
    for row in over_time:
        for measure, key, n in trend(period, *row):
            sums[project.pk, last, measure, key] += n
    return Tally.objects.filter(project=project, span=period), sums, period


def trend(period: int, day: date, measure: str, key: str, n: int) -> Iterator[tuple[str, str, int]]:
    """Yield what one day's sum adds to a period's charts over time."""
    if measure == Measure.OPENED:
        yield Measure.TREND_OPENED, step_of(day, period).isoformat(), n
    elif measure == Measure.WAITED:
        bucket = key.rpartition("|")[2]
        yield Measure.TREND_WAITED, figures.joined(step_of(day, period).isoformat(), bucket), n


def step_of(day: date, period: int) -> date:
    """Return the first day of the chart's point for this day: the day itself, or the Monday of its week."""
    return day - timedelta(days=day.weekday()) if STEPS[period] == 7 else day


# --- Reading the sums -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Period:
    """The sums of a period in some projects, from its first day up to this moment."""

    days: int
    first: date
    last: date
    sums: figures.Sums


def look(projects: Iterable[int], days: int) -> Period:
    """Return the sums of the last `days` days, including today: the stored ones, and what came since.

    If nothing was counted for long, the stored days reach back further; the returned period says so.
    """
    keys, today = list(projects), _today()
    first = today - timedelta(days=days - 1)
    marks = {key: day for key, day in counted_until(keys).items() if day >= first}
    kept = Tally.objects.filter(project__in=list(marks), span=days)
    rows = list(kept.order_by().values_list("measure", "key").annotate(total=Sum("n")))
    lately = {key: day + timedelta(days=1) for key, day in marks.items()}
    never = dict.fromkeys(set(keys) - set(marks), first)
    for within in (Within(lately, is_recent=True), Within(never)):
        for (_, day, measure, key), n in count(within).items() if within.since else ():
            rows.append((measure, key, n))
            rows.extend(trend(days, day, measure, key, n))
    back = [day - timedelta(days=days - 2) for day in marks.values()]
    return Period(days, min([first, *back]), today, figures.fold(rows))


def counted_until(projects: Iterable[int]) -> dict[int, date]:
    """Return the day up to which each project is counted; projects that were never counted are left out."""
    rows = CountedUntil.objects.filter(project__in=list(projects))
    return dict(rows.values_list("project", "day"))


def _today() -> date:
    return estimated_time().astimezone(UTC).date()
