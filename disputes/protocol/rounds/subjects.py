"""Which gaps a document is about: those it proposes for, is assigned, or claims to be resolved (SIL-6)."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from disputes.protocol.rounds.proposals import label_of, read_proposal
from disputes.protocol.text.documents import STATED, Line, cells, scan
from disputes.protocol.text.identifiers import GAP, gaps_in
from tasks.text.regex import regex

# Labels at the top of a document before the gaps that it works on.
ASSIGNING = regex(
    r"(?:focus|gaps?(?: (?:addressed|assigned|covered|resolved|affected|id))?|assigned(?: gaps?)?|assignment"
    r"|scope|addressing|addresses|subject|target|task)"
)
HEAD_LINES = 25
# A cell of a summary that says a gap is done or, below, put forward.
CLAIMED = regex(
    r"(?:now |fully )?(?:resolved|closed|done|complete|completed|accepted|fixed)\.?", re.IGNORECASE
)
PUT_FORWARD = regex(r"(?:re-?)?(?:proposed|revised|submitted|updated)\.?", re.IGNORECASE)
CLAIM = regex(
    r"^\s*(?:[-*+]\s+)?[*_]{0,2}Status[*_]{0,2}\s?:[*_]{0,2}\s?[*_]{0,2}(?P<status>[A-Za-z ]{4,20})"
)


@dataclass(frozen=True, slots=True)
class Subject:
    """The gaps that a document works on, and those of them that it declares resolved."""

    gaps: frozenset[str]
    resolved: frozenset[str] = frozenset()

    def expects(self, gap: str, candidates: Collection[str] = (), *, answers: bool = False) -> bool:
        """Whether the document should treat a finding on this gap (SIL-6).

        If the gap of the finding is unknown, it should if it works on all `candidates`, the gaps that were
        reviewed. If one side names no gaps, it should if it `answers` that review at all. If neither does,
        there is only one subject.
        """
        if self.gaps and (gap or candidates):
            return gap in self.gaps if gap else set(candidates) <= self.gaps
        return answers or not (self.gaps or gap or candidates)


def subject_of(document: str) -> Subject:
    """Return what a document is about. Raises DocumentError only if it is too large."""
    proposal = read_proposal(document)
    gaps = {*proposal.addressed} - {*proposal.announced} | {*_assigned(proposal.lines)}
    resolved = {
        section.gap
        for section in proposal.sections
        if any(_claims(line) for line in section.lines[:HEAD_LINES])
    }
    for gap, said in _rows(proposal.lines):
        if any(PUT_FORWARD.fullmatch(cell) for cell in said):
            gaps.add(gap)
        if gap in gaps and any(CLAIMED.fullmatch(cell) for cell in said):
            resolved.add(gap)
    return Subject(frozenset(gaps), frozenset(resolved))


def _rows(lines: Iterable[Line]) -> Iterable[tuple[str, list[str]]]:
    """Yield for each table row that begins with a gap that gap and the contents of the other cells."""
    for line in lines:
        if line.mode is not STATED or "|" not in line.text or "GAP-" not in line.text:
            continue
        row = cells(line.text)
        if row and (named := GAP.match(row[0].lstrip("*_` "))):
            yield named[0], [cell.strip("*_` ") for cell in row[1:]]


def _assigned(lines: Iterable[Line]) -> Iterable[str]:
    """Yield the gaps that labels at the top of the document assign: **Focus:** Stalls (GAP-FLOW-002)."""
    for line in lines:
        if line.number > HEAD_LINES:
            break
        told = label_of(line)
        if told and ASSIGNING.fullmatch(told[0]):
            yield from gaps_in(told[1])


def _claims(line: Line) -> bool:
    """Whether a line declares its section's gap resolved: **Status:** RESOLVED."""
    match = CLAIM.match(line.text) if line.mode is STATED and ":" in line.text else None
    return bool(match and CLAIMED.fullmatch(match["status"].strip()))


def gap_texts(document: str) -> dict[str, str]:
    """Return what a document says about each gap that it works on."""
    return {section.gap: section.text for section in read_proposal(document).sections}


def stated_text(document: str) -> str:
    """Return what a document states itself, without code and quotes (ID-3)."""
    return "\n".join(line.text for line in scan(document) if line.mode is STATED)
