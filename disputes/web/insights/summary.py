"""The figures of the insights page, from the sums of a period, each with the number it rests on."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from typing import Any

from django.db.models import Count, Q

from disputes import staleness, tallies
from disputes.models import Conflict, Dispute
from disputes.protocol.rulings import figures
from disputes.protocol.rulings.figures import Measure, Share, Side
from disputes.protocol.silence.suspicion import SEEN_AS
from tasks.database.clock import estimated_time
from tasks.models import SEVERITY_CHOICES, Answer, Project
from tasks.text.counting import counted

NAMES_MAX = 12  # how many agents or models a table of the page shows; the download has all
REJECTIONS_MAX = 6  # tasks rejected at least this often share a row
LATE_HOURS = 24

OUTCOMES = {
    "handed_in": "Handed in", "nothing": "Nothing handed in", "lost": "Lost", "silent": "Went silent",
    "wall": "Ran too long", "bytes": "Wrote too much",
    "limits": "Took too much of its host", "refused": "Could not start", "stopped": "Stopped",
    "crash": "Crashed", "cost": "Reached a cap", "provider": "Trouble with its provider",
    "not_taken": "Every hand-in refused",
}  # fmt: skip


# --- What is open -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Open:
    """How many disputes wait for people at this moment."""

    n: int = 0
    late: int = 0  # for more than a day
    stale: int = 0  # for longer than their project's limit


def open_now(projects: Iterable[Project]) -> Open:
    """Count the open disputes live, in one query."""
    now = estimated_time()
    rows = list(projects)
    stale = staleness.stale(rows)
    waiting = Dispute.objects.waiting().filter(project__in=[project.pk for project in rows]).order_by()
    late = Q(opened_at__lt=now - timedelta(hours=LATE_HOURS))
    return Open(**waiting.aggregate(n=Count("pk"), late=Count("pk", late), stale=Count("pk", stale)))


# --- Figures ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Waited:
    """How long rulings took, in seconds; the quantiles are None if there are too few."""

    label: str
    buckets: dict[int, int]

    @property
    def n(self) -> int:
        return sum(self.buckets.values())

    @property
    def is_few(self) -> bool:
        return self.n < figures.FEW

    @property
    def median(self) -> float | None:
        return None if self.is_few else figures.quantile(self.buckets, 0.5)

    @property
    def ninety(self) -> float | None:
        return None if self.is_few else figures.quantile(self.buckets, 0.9)


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A day or a week of the charts over time."""

    first: date
    last: date
    opened: int
    waited: Waited


@dataclass(frozen=True, slots=True)
class Versus:
    """Which side rulings agreed with, for one agent, model or category."""

    label: str
    share: Share  # the reviewer's share of the rulings for one of the two sides
    others: int  # rulings for both sides, or in own words

    @property
    def n(self) -> int:
        return self.share.n + self.others


@dataclass(frozen=True, slots=True)
class SidesTable:
    """A table that shows which side rulings agreed with, by agent, model or category."""

    name: str
    title: str
    column: str
    rows: list[Versus]

    @property
    def shown(self) -> list[Versus]:
        return self.rows[:NAMES_MAX]

    @property
    def left_out(self) -> int:
        return max(len(self.rows) - NAMES_MAX, 0)


@dataclass(frozen=True, slots=True)
class SignFigures:
    """What became of the flags that one heuristic raised."""

    label: str
    raised: int
    precision: Share  # the share confirmed, of those confirmed or refused

    @property
    def false(self) -> int:
        return self.precision.n - self.precision.hits


@dataclass(frozen=True, slots=True)
class BarPart:
    """How many of a total have one property, for a bar."""

    label: str
    n: int
    total: int

    @property
    def share(self) -> Share:
        return Share(self.n, self.total)


@dataclass(frozen=True, slots=True)
class Rung:
    """What became of the attempts on one step of a ladder, and what they cost."""

    label: str
    passed: Share  # the share that passed, of those that passed or failed
    open: int
    known: int  # the number of attempts whose cost is known
    dollars: float

    @property
    def attempts(self) -> int:
        return self.passed.n + self.open

    @property
    def order(self) -> tuple[str, int, str]:
        """The sort key: the stage, then the number of failures with which the step begins."""
        stage, _, step = self.label.rpartition(": ")[0].rpartition(" ")
        first = step.rstrip("+").partition("-")[0]
        return stage, int(first) if first.isdecimal() else 0, self.label


@dataclass(frozen=True, slots=True)
class Spender:
    """What the runs of one agent cost."""

    label: str
    known: int  # the number of runs whose cost is known
    unknown: int
    dollars: float
    kilotokens: int


@dataclass
class Report:
    """All figures of a period."""

    period: tallies.Period
    open: Open
    coder: str  # what these projects call it
    waited: Waited = field(init=False)
    by_severity: list[Waited] = field(init=False)
    points: list[ChartPoint] = field(init=False)
    groups: list[SidesTable] = field(init=False)

    def __post_init__(self) -> None:
        waited = figures.buckets_by(self._counts(Measure.WAITED))
        self.waited = Waited("All", figures.all_buckets(waited.values()))
        self.by_severity = [Waited(label, waited[word]) for word, label in SEVERITY_CHOICES if word in waited]
        self.points = list(self._points())
        self.groups = [
            self._group(Measure.SIDE_CODER, f"By {self.coder}", self.coder.capitalize()),
            self._group(Measure.SIDE_REVIEWER, "By reviewer", "Reviewer"),
            self._group(Measure.SIDE_CODER_MODEL, f"By model of the {self.coder}", "Model"),
            self._group(Measure.SIDE_REVIEWER_MODEL, "By model of the reviewer", "Model"),
            self._group(Measure.SIDE_CATEGORY, "By category", "Category", dict(Conflict.Reason.choices)),
        ]

    def _counts(self, measure: Measure) -> dict[str, int]:
        return dict(self.period.sums.get(measure.value, {}))

    def _share(self, measure: Measure, hit: str, *others: str) -> Share:
        return _share_of(self._counts(measure), hit, *others)

    # --- Rulings ---

    @property
    def ruled(self) -> int:
        return self.waited.n

    @property
    def people(self) -> int:
        return len(self._counts(Measure.RULER))

    @property
    def quick(self) -> Share:
        """The share of rulings made in under five seconds, of those whose time is known."""
        return self._share(Measure.PACE, "quick", "slower")

    @property
    def unknown_pace(self) -> int:
        return self._counts(Measure.PACE).get("unknown", 0)

    @property
    def honoured(self) -> Share:
        """The share of rulings that were followed, of those for which that can be told."""
        return self._share(Measure.FOLLOWED, Conflict.Followed.APPLIED, Conflict.Followed.NOT_HONOURED)

    @property
    def judged(self) -> Share:
        """The share of people's rulings that agree with the judge's earlier opinion, if it took a side."""
        return self._share(Measure.JUDGED, "agreed", "differed")

    @property
    def cannot_tell(self) -> int:
        return self._counts(Measure.FOLLOWED).get(Conflict.Followed.CANNOT_TELL, 0)

    @property
    def disagreed(self) -> Share:
        """The share of critical and high findings that the coder declined, of all it was asked to answer."""
        declined = Answer.Kind.DECLINED.value
        return self._share(Measure.ANSWERS, declined, *(set(Answer.Kind.values) - {declined}))

    # --- Over time ---

    def _points(self) -> Iterator[ChartPoint]:
        opened = self._counts(Measure.TREND_OPENED)
        waited = figures.buckets_by(self._counts(Measure.TREND_WAITED))
        step = tallies.STEPS[self.period.days]
        first = tallies.step_of(self.period.first, self.period.days)
        while first <= self.period.last:
            name, last = first.isoformat(), first + timedelta(days=step - 1)
            yield ChartPoint(
                max(first, self.period.first), min(last, self.period.last), opened.get(name, 0),
                Waited(name, waited.get(name, {})),
            )  # fmt: skip
            first += timedelta(days=step)

    # --- Sides ---

    def _group(
        self, measure: Measure, title: str, column: str, labels: dict[str, str] | None = None
    ) -> SidesTable:
        rows = [
            Versus(
                (labels or {}).get(name, name), figures.for_the_reviewer(sides),
                sides.get(Side.BOTH, 0) + sides.get(Side.OWN, 0),
            )
            for name, sides in figures.split(self._counts(measure)).items()
        ]  # fmt: skip
        return SidesTable(measure.value, title, column, sorted(rows, key=lambda row: (-row.n, row.label)))

    # --- Flags, tasks, runs ---

    @property
    def checks(self) -> list[SignFigures]:
        by_name = figures.split({_turned(key): n for key, n in self._counts(Measure.FLAGS).items()})
        return [
            SignFigures(
                SEEN_AS.get(name, name).capitalize(), sum(counts.values()),
                _share_of(counts, "confirmed", "false"),
            )
            for name, counts in sorted(by_name.items())
        ]  # fmt: skip

    @property
    def flagged(self) -> int:
        return sum(self._counts(Measure.FLAGGED).values())

    @property
    def flag_precision(self) -> Share:
        return self._share(Measure.FLAGGED, "confirmed", "false")

    @property
    def completed(self) -> int:
        return sum(self._counts(Measure.REJECTIONS).values())

    @property
    def rejections_mean(self) -> float | None:
        if self.completed < figures.FEW:
            return None
        return sum(int(key) * n for key, n in self._counts(Measure.REJECTIONS).items()) / self.completed

    @property
    def rejections(self) -> list[BarPart]:
        """Completed tasks by how often they were rejected."""
        by_number: dict[int, int] = {}
        for key, n in self._counts(Measure.REJECTIONS).items():
            number = min(int(key), REJECTIONS_MAX)
            by_number[number] = by_number.get(number, 0) + n
        return [BarPart(_often(number), n, self.completed) for number, n in sorted(by_number.items())]

    @property
    def runs(self) -> list[tuple[str, list[BarPart]]]:
        """Ended runs of each role by how they ended, most frequent first."""
        by_role: dict[str, dict[str, int]] = {}
        for key, n in self._counts(Measure.RUNS).items():
            role, _, outcome = key.partition("|")
            by_role.setdefault(role, {})[outcome] = n
        return [
            (role.capitalize(), _parts({OUTCOMES.get(word, word): n for word, n in by_role[role].items()}))
            for role in sorted(by_role)
        ]

    @property
    def rungs(self) -> list[Rung]:
        """The steps of the ladders, from the first to the last of each stage (LAD-5)."""
        became = figures.split(self._counts(Measure.STEPS))
        cost = figures.split(self._counts(Measure.STEP_COST))
        rows = [
            Rung(
                label, _share_of(counts, "passed", "failed"), counts.get("open", 0),
                cost.get(label, {}).get("known", 0), cost.get(label, {}).get("mills", 0) / 1000,
            )
            for label, counts in became.items()
        ]  # fmt: skip
        return sorted(rows, key=lambda row: row.order)

    @property
    def spenders(self) -> list[Spender]:
        """What each agent cost, the most expensive first."""
        rows = [
            Spender(
                label, counts.get("known", 0), counts.get("unknown", 0), counts.get("mills", 0) / 1000,
                counts.get("kilotokens", 0),
            )
            for label, counts in figures.split(self._counts(Measure.SPENT)).items()
        ]  # fmt: skip
        return sorted(rows, key=lambda row: (-row.dollars, -row.kilotokens, row.label))

    @property
    def ended(self) -> int:
        return sum(self._counts(Measure.RUNS).values())


def _share_of(counts: dict[str, int], hit: str, *others: str) -> Share:
    hits = counts.get(hit, 0)
    return Share(hits, hits + sum(counts.get(other, 0) for other in others))


def _turned(key: str) -> str:
    """Turn heuristic|verdict into verdict|heuristic, because keys are split by their last part."""
    name, _, verdict = key.partition("|")
    return figures.joined(verdict, name)


def _parts(counts: dict[str, int]) -> list[BarPart]:
    total = sum(counts.values())
    return [
        BarPart(label, n, total) for label, n in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]


def report(projects: list[Project], days: int) -> Report:
    """Return the figures of these projects, in a constant number of queries."""
    coder = Project.coder_word_of(project.kind for project in projects)
    return Report(tallies.look([project.pk for project in projects], days), open_now(projects), coder)


# --- As a list, for downloads -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    """One number: what it is about, its unit, what it rests on, and its interval if it is a share."""

    section: str
    name: str
    figure: str
    value: float | int | None  # None if there are too few to say
    unit: str  # count, seconds, share
    n: int
    low: float | None = None
    high: float | None = None


def listed(page: Report) -> list[Figure]:
    """Return all figures of the page, including those that its tables leave out."""
    return [*_general(page), *_over_time(page), *_sides(page), *_rest(page)]


def _count(section: str, name: str, figure: str, number: int) -> Figure:
    return Figure(section, name, figure, number, "count", number)


def _of(section: str, name: str, figure: str, share: Share) -> Figure:
    low, high = (None, None) if share.is_few else (round(share.low, 4), round(share.high, 4))
    value = None if share.value is None else round(share.value, 4)
    return Figure(section, name, figure, value, "share", share.n, low, high)


def _often(number: int) -> str:
    return f"{number} or more times" if number == REJECTIONS_MAX else counted(number, "time")


def _times(section: str, name: str, waited: Waited) -> Iterator[Figure]:
    for figure, value in (("median", waited.median), ("90 %", waited.ninety)):
        yield Figure(section, name, figure, None if value is None else round(value, 1), "seconds", waited.n)


def _general(page: Report) -> Iterator[Figure]:
    yield _count("Disputes", "now", "open", page.open.n)
    yield _count("Disputes", "now", "open for more than a day", page.open.late)
    yield _count("Disputes", "now", "stale", page.open.stale)
    yield _count("Rulings", "all", "made", page.ruled)
    yield _count("Rulings", "all", "people who ruled", page.people)
    yield _of("Rulings", "all", "made in under 5 s", page.quick)
    yield _of("Rulings", "all", "honoured", page.honoured)
    yield _count("Rulings", "all", "could not be verified", page.cannot_tell)
    yield _of("Rulings", "after a judge's opinion", "as the judge said", page.judged)
    yield _of("Findings", "critical and high", "Declined findings", page.disagreed)
    for waited in (page.waited, *page.by_severity):
        yield from _times("Time to ruling", waited.label, waited)


def _over_time(page: Report) -> Iterator[Figure]:
    for point in page.points:
        yield _count("Over time", point.first.isoformat(), "disputes opened", point.opened)
        yield _count("Over time", point.first.isoformat(), "rulings", point.waited.n)
        yield from _times("Over time", point.first.isoformat(), point.waited)


def _sides(page: Report) -> Iterator[Figure]:
    for group in page.groups:
        section = f"Sides, {group.title[0].lower()}{group.title[1:]}"
        for row in group.rows:
            yield _of(section, row.label, "for the reviewer", row.share)
            yield _count(section, row.label, "both or own words", row.others)


def _rest(page: Report) -> Iterator[Figure]:
    yield _count("Silence flags", "all", "raised", page.flagged)
    yield _of("Silence flags", "all", "confirmed", page.flag_precision)
    for check in page.checks:
        yield _count("Silence flags", check.label, "raised", check.raised)
        yield _of("Silence flags", check.label, "confirmed", check.precision)
    mean = page.rejections_mean
    value = None if mean is None else round(mean, 2)
    yield Figure("Tasks", "completed", "rejections for each", value, "mean", page.completed)
    for part in page.rejections:
        yield _of("Tasks", f"rejected {part.label}", "share", part.share)
    for rung in page.rungs:
        yield _of("Ladders", rung.label, "passed", rung.passed)
        yield _count("Ladders", rung.label, "not decided yet", rung.open)
        yield Figure("Ladders", rung.label, "cost", round(rung.dollars, 3), "dollars", rung.known)
    for row in page.spenders:
        yield Figure("Costs", row.label, "cost", round(row.dollars, 3), "dollars", row.known)
        yield _count("Costs", row.label, "runs of unknown cost", row.unknown)
        yield _count("Costs", row.label, "thousands of tokens", row.kilotokens)
    for role, parts in page.runs:
        for part in parts:
            yield _of("Runs", role, part.label.lower(), part.share)


def as_json(page: Report, projects: Iterable[Project]) -> dict[str, Any]:
    """Return the figures as JSON data for programs to download."""
    return {
        "from": page.period.first.isoformat(),
        "to": page.period.last.isoformat(),
        "projects": [project.slug for project in projects],
        "few": figures.FEW,
        "figures": [asdict(figure) for figure in listed(page)],
    }
