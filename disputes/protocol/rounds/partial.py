"""What it means if a side delivers nothing, or only a part, in a round (PART-1, PART-2)."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.rounds.proposals import read_proposal
from disputes.protocol.rounds.validation import MALFORMED, Validation
from disputes.protocol.text.documents import STATED, DocumentError, Line, scan
from disputes.protocol.text.identifiers import gaps_in
from disputes.protocol.text.quotes import one_line
from tasks.text.regex import regex

BLOCKED = regex(r"\bBLOCKED_NEEDS_INPUT\s{0,9}[*_`]{0,3}\s{0,9}:(?P<text>.*)$")
UNCERTAIN = regex(r"\bUNCERTAINTY\s{0,9}[*_`]{0,3}\s{0,9}:(?P<text>.*)$")
TEXT_MAX = 500

# --- The engineer delivers nothing ------------------------------------------------------------------------


class Cause(StrEnum):
    EXPLICIT_BLOCK = "EXPLICIT_BLOCK"
    DOMAIN_GAP = "DOMAIN_GAP"
    OUTPUT_FAILURE = "OUTPUT_FAILURE"
    UNCLEAR_ASSIGNMENT = "UNCLEAR_ASSIGNMENT"


@dataclass(frozen=True, slots=True)
class Declared:
    """A gap that the engineer says cannot be settled without input."""

    gap: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """What an engineer's document delivers of its assignment.

    `cause` says why it delivers nothing that can be worked with; it is None if there is no such reason.
    """

    addressed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # assigned, but neither addressed nor declared blocked
    blocked: tuple[Declared, ...] = ()
    uncertain: str = ""
    cause: Cause | None = None
    warnings: tuple[str, ...] = ()


def delivery(text: str, assigned: Sequence[str], known: Collection[str], validation: Validation) -> Delivered:
    """Return what was delivered or, in the order of detection, why nothing was (PART-2).

    `validation` is the result of the gate for this same document.
    """
    if not text.strip():
        return Delivered(missing=tuple(assigned), cause=Cause.OUTPUT_FAILURE)
    try:
        proposal = read_proposal(text)
    except DocumentError as error:
        return Delivered(missing=tuple(assigned), cause=Cause.OUTPUT_FAILURE, warnings=(str(error),))
    blocked, warnings = declared(proposal.lines, known)
    stopped = {each.gap for each in blocked}
    addressed = tuple(gap for gap in validation.gaps_addressed if gap in assigned and gap not in stopped)
    missing = tuple(gap for gap in assigned if gap not in addressed and gap not in stopped)
    uncertain = next(_matches(proposal.lines, UNCERTAIN), (0, ""))[1]
    malformed = any(failure.type in MALFORMED for failure in validation.failures)
    # The first cause that holds counts.
    causes: list[tuple[Cause | None, object]] = [
        (Cause.EXPLICIT_BLOCK, blocked and not addressed),
        (Cause.DOMAIN_GAP, uncertain and not addressed),
        (Cause.OUTPUT_FAILURE, malformed),
        (Cause.UNCLEAR_ASSIGNMENT, assigned and not addressed),
        (None, True),
    ]
    cause = next(cause for cause, holds in causes if holds)
    return Delivered(addressed, missing, blocked, uncertain, cause, warnings)


def _matches(lines: Iterable[Line], pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield the line number of a keyword and the text after it, unless it is only quoted (ID-3)."""
    for line in lines:
        if line.mode is STATED and (match := pattern.search(line.text)):
            yield line.number, one_line(match["text"].strip(" *_`"), TEXT_MAX)


def declared(lines: Iterable[Line], known: Collection[str]) -> tuple[tuple[Declared, ...], tuple[str, ...]]:
    """Return the gaps declared blocked, and a warning for each such line without a known gap (PART-2)."""
    found: dict[str, Declared] = {}
    warnings: list[str] = []
    for number, text in _matches(lines, BLOCKED):
        gaps = [gap for gap in gaps_in(text) if gap in known]
        for gap in gaps:
            found.setdefault(gap, Declared(gap, text, number))
        if not gaps:
            warnings.append(f"line {number}: BLOCKED_NEEDS_INPUT names no known gap: {text}")
    return tuple(found.values()), tuple(warnings)


# --- The reviewer finds nothing ---------------------------------------------------------------------------


class Automatic(StrEnum):
    """What the program itself checks if a reviewer found nothing (PART-1)."""

    EXAMPLES = "at least one example for each gap"
    CONFIDENCE = "confidence is stated"
    TRADE_OFFS = "trade-offs are stated"
    NEW_GAPS = "new gaps are stated"
    IDS = "all ids are valid"
    LENGTH = "each gap has enough text"


class Manual(StrEnum):
    """What the reviewer must state to have looked at."""

    SUCCESS_EXAMPLE = "an example that succeeds"
    ERROR_EXAMPLE = "an example of an error, if errors are discussed"
    CONSISTENT = "consistent with settled gaps"
    DEFINITIONS = "no duplicate definitions"
    TERMS = "the same terms"


class Mark(StrEnum):
    YES = "yes"
    NOT_APPLICABLE = "n.a."
    ISSUE = "issue"


# The words by which an item of the checklist is recognised.
MANUAL_WORDS: dict[Manual, re.Pattern[str]] = {
    Manual.SUCCESS_EXAMPLE: regex(r"\bsuccess", re.IGNORECASE),
    Manual.ERROR_EXAMPLE: regex(r"\b(?:edge|error)", re.IGNORECASE),
    Manual.CONSISTENT: regex(r"\bconsisten", re.IGNORECASE),
    Manual.DEFINITIONS: regex(r"\b(?:duplicat\w*|definition)", re.IGNORECASE),
    Manual.TERMS: regex(r"\bterm(?:s|inology)\b", re.IGNORECASE),
}
LISTED = regex(r"^\s*(?:[-*+]\s|\d{1,3}[.)]\s|\|)")
MARKS: tuple[tuple[Mark, re.Pattern[str]], ...] = (
    (Mark.NOT_APPLICABLE, regex(r"\bn\.?/?a\b|\bnot applicable\b", re.IGNORECASE)),
    (
        Mark.ISSUE,
        regex(r"\[ \]|\b(?:issue|fail(?:s|ed)?)\b|[:|]\s{0,9}no\s{0,9}(?:\||$)|✗|❌", re.IGNORECASE),
    ),
    (Mark.YES, regex(r"\[x\]|\b(?:yes|pass(?:es|ed)?|ok|done|checked)\b|✓|✔|✅", re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True)
class NoIssues:
    """A review that found nothing. It says what was looked at, not that the work is right."""

    gaps: tuple[str, ...]
    checklist: dict[Manual, Mark]
    problems: tuple[str, ...] = ()

    def signs_off(self, gap: str) -> bool:
        """Whether the review may count as a sign-off of this gap, which it must list (PART-1)."""
        return not self.problems and gap in self.gaps


def read_no_issues(text: str, known: Collection[str]) -> NoIssues:
    """Read the gaps and the checklist of a review that states NO_ISSUES_FOUND (PART-1).

    Raises DocumentError if it is too large.
    """
    stated = [line for line in scan(text) if line.mode is STATED]
    gaps = tuple(dict.fromkeys(gap for line in stated for gap in gaps_in(line.text) if gap in known))
    checklist: dict[Manual, Mark] = {}
    for line in stated:
        if not LISTED.match(line.text) or not (mark := _mark(line.text)):
            continue
        for item, words in MANUAL_WORDS.items():
            if words.search(line.text):
                checklist.setdefault(item, mark)
    problems = [] if gaps else ["it lists no gap that it looked at"]
    problems += [f"the checklist does not say: {item}" for item in Manual if item not in checklist]
    problems += [
        f"the checklist marks an issue: {item}" for item in checklist if checklist[item] is Mark.ISSUE
    ]
    return NoIssues(gaps, checklist, tuple(problems))


def _mark(text: str) -> Mark | None:
    return next((mark for mark, pattern in MARKS if pattern.search(text)), None)


def automatic_checks(text: str, known: Collection[str], least_chars: int = 200) -> dict[Automatic, bool]:
    """Return the program's own checks of the proposal that was reviewed (PART-1).

    Raises DocumentError if the proposal is too large.
    """
    proposal = read_proposal(text)
    sections = proposal.sections
    return {
        Automatic.EXAMPLES: bool(sections) and all(section.examples for section in sections),
        Automatic.CONFIDENCE: proposal.confidence is not None,
        Automatic.TRADE_OFFS: proposal.has_trade_offs,
        Automatic.NEW_GAPS: proposal.has_new_gaps,
        Automatic.IDS: not proposal.unknown(known),
        Automatic.LENGTH: bool(sections) and all(len(each.text.strip()) >= least_chars for each in sections),
    }
