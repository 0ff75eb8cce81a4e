"""Figures of how a team rules: shares with their uncertainty, quantiles from buckets, sums of counts.

What one row counts for is a list of pairs, a measure and a key; what a period counts for is their sum.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import floor, log2, sqrt

from disputes.protocol.rulings.options import Kind, Option

FEW = 5  # with fewer, no share is drawn: its interval would span nearly everything
QUICK = 5.0  # seconds; who rules faster has hardly read the card
PER_DOUBLING = 3  # buckets from a duration to twice as much; one is a quarter wide
Z95 = 1.959964  # 95 % of the normal distribution lies within this many standard deviations

Counted = tuple[str, str]  # measure, key
Sums = dict[str, Counter[str]]


class Measure(StrEnum):
    """What is counted. The key, where there is one, is said beside it."""

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
    # Only of spans: the two charts over time, a point a day or a week.
    TREND_OPENED = "trend_opened"  # first day
    TREND_WAITED = "trend_waited"  # first day|bucket


class Side(StrEnum):
    """Whom a ruling on a disagreement agreed with."""

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
    """`hits` of `n`, and the 95 % interval of that share (Wilson's, which holds for small n)."""

    hits: int
    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.n:
            raise ValueError(f"{self.hits} of {self.n} is no share.")

    @property
    def is_few(self) -> bool:
        """Whether there is too little to speak of a share."""
        return self.n < FEW

    @property
    def value(self) -> float | None:
        """From 0 to 1; None where there is too little."""
        return None if self.is_few else self.hits / self.n

    @property
    def low(self) -> float:
        return wilson(self.hits, self.n)[0]

    @property
    def high(self) -> float:
        return wilson(self.hits, self.n)[1]


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share, from 0 to 1; of nothing at all it is everything."""
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
    """The bucket of a duration: 0 below a second, then three for each doubling."""
    return 0 if seconds < 1 else 1 + floor(PER_DOUBLING * log2(seconds) + 1e-9)


def bounds_of(bucket: int) -> tuple[float, float]:
    """From how many seconds up to how many a bucket holds."""
    if bucket <= 0:
        return 0.0, 1.0
    return 2 ** ((bucket - 1) / PER_DOUBLING), 2 ** (bucket / PER_DOUBLING)


def quantile(buckets: Mapping[int, int], share: float) -> float | None:
    """The duration in seconds that `share` of all do not pass; None of nothing.

    Within its bucket it is interpolated, so it is off by a quarter at most, and by far less of many.
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
    """One ruling of a person, as far as the figures go. Names may be empty where nobody knows them."""

    kind: str
    option: str
    severity: str
    category: str
    waited: float  # seconds since the conflict was opened
    seconds: float | None = None  # how long the card was before the person
    ruler: str = ""
    followed: str = ""
    coder: str = ""
    reviewer: str = ""
    coder_model: str = ""
    reviewer_model: str = ""


def of_ruling(ruling: CountedRuling) -> list[Counted]:
    """What a ruling counts for."""
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
    """quick, slower, or unknown where nobody measured."""
    if seconds is None:
        return "unknown"
    return "quick" if seconds < QUICK else "slower"


def of_flag(heuristics: Iterable[str], status: str) -> list[Counted]:
    """What a flag counts for: confirmed by whatever people made of it but a false alarm."""
    verdict = {"false_positive": "false", "open": "open", "moot": "open", "answered": "open"}.get(
        status, "confirmed"
    )
    counted = [(Measure.FLAGGED.value, verdict)]
    return counted + [(Measure.FLAGS.value, joined(name, verdict)) for name in sorted(set(heuristics))]


def joined(*parts: object) -> str:
    """A key of several parts; a name that others chose comes last, for it may hold anything."""
    return "|".join(map(str, parts))


# --- Sums -------------------------------------------------------------------------------------------------


def fold(rows: Iterable[tuple[str, str, int]]) -> Sums:
    """Measure, key and number of many rows as one sum for each measure."""
    sums: Sums = {}
    for measure, key, n in rows:
        sums.setdefault(measure, Counter())[key] += n
    return sums


def split(counts: Mapping[str, int]) -> dict[str, Counter[str]]:
    """Counts under keys of two parts, by the last part and then by the first: side|coder."""
    found: dict[str, Counter[str]] = {}
    for key, n in counts.items():
        first, _, last = key.partition("|")
        found.setdefault(last, Counter())[first] += n
    return found


def buckets_by(counts: Mapping[str, int]) -> dict[str, dict[int, int]]:
    """Counts under keys that end in a bucket, by what stands before it: severity|12."""
    found: dict[str, dict[int, int]] = {}
    for key, n in counts.items():
        first, _, bucket = key.rpartition("|")
        of_first = found.setdefault(first, {})
        of_first[int(bucket)] = of_first.get(int(bucket), 0) + n
    return found


def all_buckets(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Several sets of buckets as one."""
    total: Counter[int] = Counter()
    for buckets in parts:
        total.update(buckets)
    return dict(total)


def for_the_reviewer(sides: Mapping[str, int]) -> Share:
    """How often one of the two sides was upheld, and of these how often the reviewer."""
    reviewer, coder = sides.get(Side.REVIEWER, 0), sides.get(Side.CODER, 0)
    return Share(reviewer, reviewer + coder)
