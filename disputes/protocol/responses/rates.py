"""How often a coder disagrees: the limits RL-1 to RL-3, and the card that asks what to do about it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from disputes.protocol.reviews.severity import GRAVE
from disputes.protocol.text.quotes import one_line
from tasks.configuration.policy import ProjectSettings
from tasks.states import Severity
from tasks.text.counting import counted

TITLE_MAX = 200


class Action(IntEnum):
    """What the disagreements of a round lead to, from the mildest to the worst."""

    ALLOW = 0
    WARN_USER = 1
    SYSTEMATIC_ALERT = 2
    BLOCK_ROUND = 3


class Rule(StrEnum):
    ABSOLUTE = "RL-1"
    ROUND_SHARE = "RL-2"
    SESSION = "RL-3"


@dataclass(frozen=True, slots=True)
class Rated:
    """One finding of the previous review, as it was answered in the round under judgement.

    `disagreed` says that a DISAGREE block declines it. `converted` says that a person made a conflict of a
    flag on it, so that it counts from then on.
    """

    code: str
    title: str
    severity: Severity | None
    disagreed: bool = False
    converted: bool = False


@dataclass(frozen=True, slots=True)
class RateTally:
    """One round in numbers.

    `explicit` counts DISAGREE blocks of any severity, `disputed` the disputed ones among the `answered`
    critical and high findings.
    """

    round: int
    explicit: int
    disputed: int
    answered: int


@dataclass(frozen=True, slots=True)
class Hit:
    """One limit that is exceeded, with `disputed` of `answered` findings and its message.

    RL-1 has no share: there, `answered` is the limit.
    """

    rule: Rule
    action: Action
    disputed: int
    answered: int
    message: str
    recommendation: str


@dataclass(frozen=True, slots=True)
class Rates:
    """The result of all limits together: the worst action, and every limit that is exceeded."""

    action: Action
    hits: tuple[Hit, ...]


def tally(round_: int, findings: Iterable[Rated]) -> RateTally:
    """Return the numbers of one round (RL-4). Converted flags count as disputed, but not as explicit."""
    listed = list(findings)
    counted = [finding for finding in listed if finding.severity in GRAVE]
    return RateTally(
        round=round_,
        explicit=sum(finding.disagreed for finding in listed),
        disputed=sum(finding.disagreed or finding.converted for finding in counted),
        answered=len(counted),
    )


def check_rates(current: RateTally, earlier: Sequence[RateTally], settings: ProjectSettings) -> Rates:
    """Check the current round against all three limits; `earlier` are the rounds before it, oldest first.

    All of them are looked at, and the worst result counts (RL-1 to RL-3).
    """
    found = (
        _absolute(current, settings),
        _round_share(current, settings),
        _session(current, earlier, settings),
    )
    hits = tuple(hit for hit in found if hit)
    return Rates(max((hit.action for hit in hits), default=Action.ALLOW), hits)


def _absolute(current: RateTally, settings: ProjectSettings) -> Hit | None:
    limit = settings.disagree_absolute
    if current.explicit <= limit:
        return None
    return Hit(
        Rule.ABSOLUTE, Action.BLOCK_ROUND, current.explicit, limit,
        f"The coder declined {counted(current.explicit, 'finding')} in one round (limit: {limit}).",
        "It must decline fewer, or justify itself once for all of them.",
    )  # fmt: skip


def _round_share(current: RateTally, settings: ProjectSettings) -> Hit | None:
    if current.answered < settings.disagree_min_denominator:
        return None
    if current.disputed / current.answered <= settings.disagree_round_share:
        return None
    share = percent(current.disputed, current.answered)
    return Hit(
        Rule.ROUND_SHARE, Action.WARN_USER, current.disputed, current.answered,
        f"The coder declined {current.disputed} of {current.answered} critical and high findings "
        f"of this round ({share}).",
        "Look whether the review asks for too much, or the coder needs guidance.",
    )  # fmt: skip


def _session(current: RateTally, earlier: Sequence[RateTally], settings: ProjectSettings) -> Hit | None:
    """Return the hit if too much was disputed over the last rounds that had such findings, or None.

    A round without such findings says nothing new and never repeats an earlier alert.
    """
    window = [each for each in (*earlier, current) if each.answered][-settings.session_window :]
    if not current.answered or len(window) < settings.session_window:
        return None
    disputed, answered = sum(each.disputed for each in window), sum(each.answered for each in window)
    if disputed / answered <= settings.disagree_session_share:
        return None
    return Hit(
        Rule.SESSION, Action.SYSTEMATIC_ALERT, disputed, answered,
        f"The coder declined {disputed} of {answered} critical and high findings of the last "
        f"{counted(len(window), 'round')} ({percent(disputed, answered)}).",
        "The review may be too rigid, both may see the scope differently, or they may need your help.",
    )  # fmt: skip


def percent(part: int, whole: int) -> str:
    """Return a share as people read it: 80%, 46.7%."""
    return f"{100 * part / whole:.1f}".removesuffix(".0") + "%"


# --- The alert card ---------------------------------------------------------------------------------------


HYPOTHESES = (
    "The review asks for too much",
    "The coder avoids work",
    "Both understand the task differently",
)


def alert_lines(rates: Rates, findings: Iterable[Rated]) -> list[str]:
    """Return the text of the card: what was exceeded, which findings, and three hypotheses (RL-5).

    The options follow below it as on every card. Empty if nothing was exceeded.
    """
    if not rates.hits:
        return []
    lines = ["MANY FINDINGS DECLINED", ""]
    for hit in rates.hits:
        lines += [hit.message, hit.recommendation, ""]
    disputed = [finding for finding in findings if finding.disagreed or finding.converted]
    if disputed:
        lines += ["Declined findings:", *_numbered(_named(finding) for finding in disputed), ""]
    return [*lines, "This may mean:", *_numbered(HYPOTHESES)]


def _numbered(texts: Iterable[str]) -> list[str]:
    return [f"{number}. {text}" for number, text in enumerate(texts, start=1)]


def _named(finding: Rated) -> str:
    severity = finding.severity.upper() if finding.severity else "no severity"
    silent = "" if finding.disagreed else ", never answered"
    return f"{finding.code} ({severity}{silent}): {one_line(finding.title, TITLE_MAX)}"


def justify_lines(rates: Rates, findings: Iterable[Rated]) -> list[str]:
    """Return what the coder of a blocked round is told before people are asked; else empty (RL-1)."""
    hit = next((hit for hit in rates.hits if hit.rule is Rule.ABSOLUTE), None)
    if hit is None:
        return []
    declined = [finding for finding in findings if finding.disagreed]
    return [
        hit.message,
        "Hand in your response again. For each of these, either withdraw the disagreement and do what the "
        "finding asks, or keep it and say what evidence (code, requirement, test) makes the finding wrong.",
        *_numbered(_named(finding) for finding in declined),
    ]
