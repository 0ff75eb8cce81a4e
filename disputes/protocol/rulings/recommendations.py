"""What each option costs, which is recommended, and when a low conflict settles itself (OPT-4 to OPT-6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.rulings.options import Option
from disputes.protocol.rulings.synthesis import Source, Synthesis, Views
from disputes.protocol.text.quotes import one_line
from tasks.states import Severity

REASON_MAX = 300
PRECEDENTS = 3  # so many rulings in a row make a pattern


class JudgeVerdict(StrEnum):
    """What a judge may answer (ARB-6)."""

    ENFORCE = "enforce"
    DISMISS = "dismiss"
    ESCALATE = "escalate"


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge said. Without reasons it counts for no recommendation."""

    verdict: JudgeVerdict
    reasons: str = ""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The option that is recommended, and why, in one sentence for people."""

    option: Option
    why: str


def recommend(
    severity: str,
    synthesis: Synthesis | None = None,
    judged: Judged | None = None,
    *,
    is_security: bool = False,
) -> Recommendation | None:
    """Return what is recommended, or None (OPT-4).

    A judge's verdict with reasons comes first. Otherwise A is recommended for a critical finding, because no
    rule can read whether the coder's rationale answers safety and correctness; only the judge's own synthesis
    takes its place. For all others, only a synthesis that covers both sides is recommended. On a matter of
    security that must not be one found by a rule: "optional" is no middle way for a hole.
    """
    if judged and judged.verdict is not JudgeVerdict.ESCALATE and judged.reasons.strip():
        option = Option.UPHOLD_REVIEWER if judged.verdict is JudgeVerdict.ENFORCE else Option.UPHOLD_CODER
        return Recommendation(option, f"The judge: {one_line(judged.reasons, REASON_MAX)}")
    if severity == Severity.CRITICAL:
        if synthesis and synthesis.source is Source.JUDGE and synthesis.covers_both:
            return Recommendation(Option.COMPROMISE, "The judge found a way that covers both sides.")
        return Recommendation(Option.UPHOLD_REVIEWER, "The finding is critical.")
    if synthesis and synthesis.covers_both and not (is_security and synthesis.source is Source.RULE):
        return Recommendation(Option.COMPROMISE, "It covers both sides.")
    return None


def trade_off(option: Option, views: Views, impact: str = "", synthesis: Synthesis | None = None) -> str:
    """Return in one sentence what this option gives up; empty for options that take no side (OPT-5)."""
    match option:
        case Option.UPHOLD_REVIEWER:
            cost = one_line(views.rationale or views.position, REASON_MAX)
            return f"The cost that the coder names: {cost}" if cost else "The coder named no cost."
        case Option.UPHOLD_CODER:
            left = one_line(impact or views.title, REASON_MAX)
            return f"May leave unaddressed: {left}" if left else "The reviewer's concern stays open."
        case Option.COMPROMISE:
            return synthesis.trade_off if synthesis else "Each side gives up a part; somebody must say which."
        case Option.OTHER:
            return "Requires additional user input."
    return ""


# --- Low conflicts ----------------------------------------------------------------------------------------


def settles_itself(severity: str, precedents: Sequence[str]) -> bool:
    """Whether a conflict may go to the coder without a person if `low_auto_resolve` is on (OPT-6).

    Only a low one may, and only if the last three rulings that people made on low conflicts of its kind all
    upheld the coder. `precedents` are their options, oldest first. The caller must log it.
    """
    last = list(precedents[-PRECEDENTS:])
    pattern = len(last) == PRECEDENTS and set(last) == {Option.UPHOLD_CODER}
    return severity == Severity.LOW and pattern
