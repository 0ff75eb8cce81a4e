"""Figures about how a team rules: shares with their uncertainty, quantiles from buckets, sums of counts.

A row counts for a list of pairs, each a measure and a key; a period counts for their sum.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import floor, log2, sqrt

from disputes.protocol.rulings.options import Kind, Option

FEW = 5  # with fewer, no share is shown, since its interval would span nearly everything
QUICK = 5.0  # seconds; whoever rules faster has hardly read the card
PER_DOUBLING = 3  # how many buckets there are from a duration to twice as much; each spans about a quarter
Z95 = 1.959964  # 95 % of the normal distribution lies within this many standard deviations

Counted = tuple[str, str]  # measure, key
Sums = dict[str, Counter[str]]


class Measure(StrEnum):
    """What is counted: the comment beside each one says what, then its key if it has one."""

    OPENED = "opened"  # disputes; severity
    WAITED = "waited"  # rulings; severity|bucket of the time since the conflict was opened
    RULER = "ruler"  # rulings; the person's number
    PACE = "pace"  # rulings; quick, slower, unknown
    FOLLOWED = "followed"  # rulings; what became of them
    SIDE_CODER = "side_coder"  # rulings on disagreements; side|coder
    SIDE_REVIEWER = "side_reviewer"
    SIDE_CODER_MODEL = "side_coder_model"
    SIDE_REVIEWER_MODEL = "side_reviewer_model"
    SIDE_CATEGORY = "side_category"
    ANSWERS = "answers"  # answers to critical and high findings; kind
    FLAGGED = "flagged"  # flags; confirmed, false, open
    FLAGS = "flags"  # the same for each heuristic; heuristic|verdict
    REJECTIONS = "rejections"  # completed tasks; how often each was rejected
    RUNS = "runs"  # ended runs; role|outcome
    STEPS = "steps"  # attempts on a ladder; passed, failed or open|stage step
    SPENT = "spent"  # known, unknown|agent: its runs; mills|agent: what they cost; kilotokens|agent
    STEP_COST = "step_cost"  # known|stage step: attempts of known cost; mills|stage step: what they cost
    JUDGED = "judged"  # rulings of people on what a judge had said before; agreed, differed
    # Only for whole periods: the two charts over time, with a point for each day or week.
    TREND_OPENED = "trend_opened"  # first day
    TREND_WAITED = "trend_waited"  # first day|bucket


class Side(StrEnum):
    """The side that a ruling on a disagreement agreed with."""

    REVIEWER = "reviewer"
    CODER = "coder"
    BOTH = "both"
    OWN = "own"


SIDES = {
    Option.UPHOLD_REVIEWER: Side.REVIEWER,
    Option.UPHOLD_CODER: Side.CODER,
    Option.COMPROMISE: Side.BOTH,
    Option.OTHER: Side.OWN,
}


# --- Shares -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Share:
    """`hits` of `n`, and the 95 % interval of that share (Wilson's, which also holds for small n)."""

    hits: int
    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.n:
            raise ValueError(f"{self.hits} of {self.n} is no share.")

    @property
    def is_few(self) -> bool:
        """Whether there are too few to speak of a share."""
        return self.n < FEW

    @property
    def value(self) -> float | None:
        """The share, from 0 to 1; None if there are too few."""
        return None if self.is_few else self.hits / self.n

    @property
    def low(self) -> float:
        return wilson(self.hits, self.n)[0]

    @property
    def high(self) -> float:
        return wilson(self.hits, self.n)[1]


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share, within 0 to 1; the whole range if `n` is 0."""
    if n == 0:
        return 0.0, 1.0
    share, square = hits / n, Z95 * Z95
    middle = share + square / (2 * n)
    spread = Z95 * sqrt(share * (1 - share) / n + square / (4 * n * n))
    whole = 1 + square / n
    low = 0.0 if hits == 0 else (middle - spread) / whole
    high = 1.0 if hits == n else (middle + spread) / whole
    return low, high


# --- Durations --------------------------------------------------------------------------------------------


def bucket_of(seconds: float) -> int:
    """Return the bucket of a duration: 0 below a second, then three for each doubling."""
    return 0 if seconds < 1 else 1 + floor(PER_DOUBLING * log2(seconds) + 1e-9)


def bounds_of(bucket: int) -> tuple[float, float]:
    """Return the seconds from which and up to which a bucket reaches."""
    if bucket <= 0:
        return 0.0, 1.0
    return 2 ** ((bucket - 1) / PER_DOUBLING), 2 ** (bucket / PER_DOUBLING)


def quantile(buckets: Mapping[int, int], share: float) -> float | None:
    """Return the duration in seconds that `share` of all durations do not exceed; None if there are none.

    It is interpolated within its bucket, so it is off by a quarter at most, and by far less if there are
    many.
    """
    total = sum(buckets.values())
    if total <= 0:
        return None
    wanted, seen = share * total, 0
    for bucket in sorted(buckets):
        n = buckets[bucket]
        if n and seen + n >= wanted:
            low, high = bounds_of(bucket)
            return low + (high - low) * max(wanted - seen, 0) / n
        seen += n
    raise AssertionError("The last bucket holds the rest.")


# --- What rows count for ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CountedRuling:
    """One ruling of a person, as far as the figures need it. Names are empty if nobody knows them."""

    kind: str
    option: str
    severity: str
    category: str
    waited: float  # seconds since the conflict was opened
    seconds: float | None = None  # how long the person had the card open; None if unknown
    ruler: str = ""
    followed: str = ""
    coder: str = ""
    reviewer: str = ""
    coder_model: str = ""
    reviewer_model: str = ""


def of_ruling(ruling: CountedRuling) -> list[Counted]:
    """Return what a ruling counts for."""
    counted = [
        (Measure.WAITED.value, joined(ruling.severity, bucket_of(ruling.waited))),
        (Measure.RULER.value, ruling.ruler),
        (Measure.PACE.value, pace_of(ruling.seconds)),
        (Measure.FOLLOWED.value, ruling.followed or "waiting"),
    ]
    side = SIDES.get(Option(ruling.option)) if ruling.option in set(Option) else None
    if ruling.kind != Kind.DISAGREEMENT or side is None:
        return counted
    about = {
        Measure.SIDE_CODER: ruling.coder,
        Measure.SIDE_REVIEWER: ruling.reviewer,
        Measure.SIDE_CODER_MODEL: ruling.coder_model,
        Measure.SIDE_REVIEWER_MODEL: ruling.reviewer_model,
        Measure.SIDE_CATEGORY: ruling.category,
    }
    return counted + [(measure.value, joined(side, name)) for measure, name in about.items() if name]


def pace_of(seconds: float | None) -> str:
    """Return quick or slower, or unknown if nobody measured the time."""
    if seconds is None:
        return "unknown"
    return "quick" if seconds < QUICK else "slower"


def of_flag(heuristics: Iterable[str], status: str) -> list[Counted]:
    """Return what a flag counts for: confirmed, unless it is unsettled or was called a false alarm."""
    verdict = {"false_positive": "false", "open": "open", "moot": "open", "answered": "open"}.get(
        status, "confirmed"
    )
    counted = [(Measure.FLAGGED.value, verdict)]
    return counted + [(Measure.FLAGS.value, joined(name, verdict)) for name in sorted(set(heuristics))]


def joined(*parts: object) -> str:
    """Return a key of several parts; a name that others chose must come last, as it may contain anything."""
    return "|".join(map(str, parts))


# --- Sums -------------------------------------------------------------------------------------------------


def fold(rows: Iterable[tuple[str, str, int]]) -> Sums:
    """Return many rows of measure, key and number as one sum of counts for each measure."""
    sums: Sums = {}
    for measure, key, n in rows:
        sums.setdefault(measure, Counter())[key] += n
    return sums


def split(counts: Mapping[str, int]) -> dict[str, Counter[str]]:
    """Return counts under two-part keys such as side|coder, by the last part and then by the first."""
    found: dict[str, Counter[str]] = {}
    for key, n in counts.items():
        first, _, last = key.partition("|")
        found.setdefault(last, Counter())[first] += n
    return found


def buckets_by(counts: Mapping[str, int]) -> dict[str, dict[int, int]]:
    """Return counts under keys that end in a bucket, such as severity|12, by what comes before the bucket."""
    found: dict[str, dict[int, int]] = {}
    for key, n in counts.items():
        first, _, bucket = key.rpartition("|")
        of_first = found.setdefault(first, {})
        of_first[int(bucket)] = of_first.get(int(bucket), 0) + n
    return found


def all_buckets(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the sum of several sets of buckets."""
    total: Counter[int] = Counter()
    for buckets in parts:
        total.update(buckets)
    return dict(total)


def for_the_reviewer(sides: Mapping[str, int]) -> Share:
    """Return the share of rulings for the reviewer among those that upheld one of the two sides."""
    reviewer, coder = sides.get(Side.REVIEWER, 0), sides.get(Side.CODER, 0)
    return Share(reviewer, reviewer + coder)
