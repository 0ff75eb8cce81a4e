"""What the card of a suspicion shows: facts, and signs of forgetting or avoiding. No verdicts (SIL-11)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from disputes.protocol.responses.answers import Answered
from disputes.protocol.silence.matching import SoftMatch
from disputes.protocol.silence.substance import NOT_APPLICABLE, Change, Substance
from disputes.protocol.silence.suspicion import Heuristic, Watched

SHORT_DOCUMENT = 1500  # characters below which an output is short
QUOTE_MAX = 300


@dataclass(slots=True)
class Case:
    """One finding under judgement."""

    finding: Watched
    position: int
    answer: Answered | None
    change: Change = NOT_APPLICABLE
    heuristics: list[Heuristic] = field(default_factory=list)
    deflections: list[str] = field(default_factory=list)
    mentioned: int = 0  # line outside code, 0: none
    in_code: int = 0
    match: SoftMatch | None = None


def evidence(case: Case, answered: int, others: int) -> Iterable[str]:
    """What the card shows (SIL-11), a line each. So many of the other findings of its review are answered."""
    finding = case.finding
    name = finding.code or f"#{finding.ordinal}"
    yield f'{name} ({finding.severity or "no severity"}): "{_short(finding.title or finding.text)}"'
    if case.answer:
        yield f"answered in line {case.answer.line} as {case.answer.kind}"
    elif case.mentioned:
        yield f"mentioned in line {case.mentioned}, but not answered"
    elif case.in_code:
        yield f"mentioned in code, line {case.in_code}; nowhere else"
    elif finding.code:
        yield "no table row, heading, bold lead-in, check box or DISAGREE block names it"
    else:
        yield "it has no id that an answer could name"
    if case.match:
        yield f"possible match without its id: {case.match.reason}"
    yield f"{answered} of {others} other findings are answered"
    if finding.gap:
        yield f"{finding.gap} {finding.gap_state or 'is worked on'}"
    if Heuristic.UNJUSTIFIED_DOWNGRADE in case.heuristics:
        yield f"the document declares {finding.gap or 'its gap'} resolved"
    if Heuristic.REPEATED_ROLLBACK in case.heuristics:
        yield f"rolled back {len(finding.rollbacks)} times: {', '.join(finding.rollbacks)}"
    if case.change.substance is Substance.NO:
        yield f"{_section(case.change)} is unchanged"
    elif case.change.substance is Substance.UNKNOWN:
        yield f"{_section(case.change)} is gone; look for yourself"
    elif case.change.overlap is not None:
        share = f"{case.change.overlap:.0%} of its impact's words"
        yield f"{share} are in what changed in {_section(case.change)}"
    if finding.silent_rounds:
        rounds = ", ".join(map(str, finding.silent_rounds))
        yield f"the same concern found no answer in rounds: {rounds}"
    yield from (f'phrase: "{phrase}"' for phrase in case.deflections)


def hints(case: Case, cases: Sequence[Case], answered: int, size: int) -> Iterable[str]:
    """Signs of forgetting and of avoiding (SIL-11)."""
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


def _section(change: Change) -> str:
    return f'section "{change.section}"'


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= QUOTE_MAX else f"{line[:QUOTE_MAX]}…"
