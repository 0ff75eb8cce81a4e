"""What the card of a flag shows: facts, and signs of forgetting or avoiding, but no verdicts (SIL-11)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from disputes.protocol.responses.answers import Answered
from disputes.protocol.silence.matching import SoftMatch
from disputes.protocol.silence.substance import NOT_APPLICABLE, Change, Substance
from disputes.protocol.silence.suspicion import Heuristic, Watched
from tasks.text.counting import shortened

SHORT_DOCUMENT = 1500  # an output with fewer characters is short
QUOTE_MAX = 300


@dataclass(slots=True)
class Suspect:
    """One finding that is checked for silence, with what has been found out about it."""

    finding: Watched
    position: int
    answer: Answered | None
    change: Change = NOT_APPLICABLE
    heuristics: list[Heuristic] = field(default_factory=list)
    deflections: list[str] = field(default_factory=list)
    mentioned: int = 0  # the line of a mention outside code fences, 0 if there is none
    in_code: int = 0
    match: SoftMatch | None = None


def evidence(case: Suspect, answered: int, others: int) -> Iterable[str]:
    """Yield the lines of the card (SIL-11); `answered` of the `others` in the same review have an answer."""
    finding = case.finding
    name = finding.code or f"#{finding.ordinal}"
    words = shortened(" ".join((finding.title or finding.text).split()), QUOTE_MAX)
    yield f'{name} ({finding.severity or "no severity"}): "{words}"'
    yield _where_named(case)
    if case.match:
        yield f"possible match without its id: {case.match.reason}"
    yield f"{answered} of {others} other findings are answered"
    if finding.gap:
        yield f"{finding.gap} is worked on"
    if Heuristic.UNJUSTIFIED_DOWNGRADE in case.heuristics:
        yield f"the document declares {finding.gap or 'its gap'} resolved"
    if Heuristic.REPEATED_ROLLBACK in case.heuristics:
        yield f"rolled back {len(finding.rollbacks)} times: {', '.join(finding.rollbacks)}"
    yield from _what_changed(case.change)
    if finding.silent_rounds:
        rounds = ", ".join(map(str, finding.silent_rounds))
        yield f"the same concern found no answer in rounds: {rounds}"
    yield from (f'phrase: "{phrase}"' for phrase in case.deflections)


def _where_named(case: Suspect) -> str:
    if case.answer:
        return f"answered in line {case.answer.line} as {case.answer.kind}"
    if case.mentioned:
        return f"mentioned in line {case.mentioned}, but not answered"
    if case.in_code:
        return f"mentioned in code, line {case.in_code}; nowhere else"
    if case.finding.code:
        return "no table row, heading, bold lead-in, check box or DISAGREE block names it"
    return "it has no id that an answer could name"


def _what_changed(change: Change) -> Iterable[str]:
    section = f'section "{change.section}"'
    if change.substance is Substance.NO:
        yield f"{section} is unchanged"
    elif change.substance is Substance.UNKNOWN:
        yield f"{section} is gone; look for yourself"
    elif change.overlap is not None:
        yield f"{change.overlap:.0%} of its impact's words are in what changed in {section}"


def signs(case: Suspect, cases: Sequence[Suspect], answered: int, size: int) -> Iterable[str]:
    """Yield the signs of forgetting and of avoiding; none if the finding is answered (SIL-11)."""
    if case.answer:
        return
    short = size < SHORT_DOCUMENT
    at = case.position
    around = [*cases[max(0, at - 1) : at], *cases[at + 1 : at + 2]]
    if answered:
        yield "forgot? other findings are answered"
    if short:
        yield "forgot? the output is short"
    if not case.finding.silent_rounds:
        yield "forgot? it was never passed over before"
    if around and all(other.answer for other in around):
        yield "avoided? its neighbours are answered"
    if not short:
        yield "avoided? the output has its normal length"
    if case.finding.silent_rounds:
        yield "avoided? it was passed over before"
