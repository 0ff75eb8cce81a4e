"""What it means if a side delivers nothing, or only a part, in a round (PART-1 to PART-4)."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.rounds.gaps import BLOCKED_STATES, WORKING, GapState
from disputes.protocol.rounds.proposals import read_proposal
from disputes.protocol.rounds.retries import RetrySettings
from disputes.protocol.rounds.validation import FAILURES, Validation
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
class Handling:
    """What follows from a cause. If `extra_runs` is None, there are as many as the retries allow."""

    action: str
    extra_runs: int | None
    choices: tuple[str, ...] = ()


# PART-2, in the order in which causes are looked for.
HANDLING: dict[Cause, Handling] = {
    Cause.EXPLICIT_BLOCK: Handling(
        "The gap waits for input from outside.", 0,
        ("give the input", "defer the gap", "assign another gap", "end the round"),
    ),
    Cause.DOMAIN_GAP: Handling(
        "Once more, with excerpts of the sources, similar gaps that are solved, and leave to answer with LOW "
        "confidence.", 1,
    ),
    Cause.OUTPUT_FAILURE: Handling("Once more, with a notice of what was wrong.", None),
    Cause.UNCLEAR_ASSIGNMENT: Handling("Once more, with its gaps listed and described in full.", 1),
}  # fmt: skip


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


def delivery(
    text: str | None, assigned: Sequence[str], known: Collection[str], validation: Validation
) -> Delivered:
    """Return what was delivered or, in the order of detection, why nothing was (PART-2).

    `validation` is the result of the gate for this same document.
    """
    if text is None or not text.strip():
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
    malformed = any(FAILURES[failure.type].tier < 2 for failure in validation.failures)
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


def runs_before_asking(cause: Cause, settings: RetrySettings | None = None) -> int:
    """Return how many runs there are before a person is asked (PART-3)."""
    extra = HANDLING[cause].extra_runs
    return 1 + ((settings or RetrySettings()).max_retries if extra is None else extra)


def may_run_again(cause: Cause, runs: int, settings: RetrySettings | None = None) -> bool:
    """Whether the agent runs again after so many runs of its own (VAL-9) before a person is asked."""
    return runs < runs_before_asking(cause, settings)


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
        Automatic.IDS: all(gap in known or gap in proposal.announced for gap in proposal.mentioned),
        Automatic.LENGTH: bool(sections) and all(len(each.text.strip()) >= least_chars for each in sections),
    }


# --- Both sides -------------------------------------------------------------------------------------------


class Part(StrEnum):
    """How much one side delivered."""

    WHOLE = "whole"
    PARTLY = "partly"
    EMPTY = "empty"  # it ran and delivered nothing
    FAILED = "failed"  # its retries are used up


class Situation(StrEnum):
    AS_PLANNED = "as_planned"
    ENGINEER_PARTLY = "engineer_partly"
    ENGINEER_FAILED = "engineer_failed"
    REVIEWER_PARTLY = "reviewer_partly"
    REVIEWER_FAILED = "reviewer_failed"
    FINISHED = "finished"
    WAITS_FOR_HUMANS = "waits_for_humans"
    PROCESS_FAILURE = "process_failure"


@dataclass(frozen=True, slots=True)
class PartialOutcome:
    """What follows from a round with missing parts."""

    action: str
    choices: tuple[str, ...] = ()


# PART-4: what follows from each situation.
OUTCOMES: dict[Situation, PartialOutcome] = {
    Situation.AS_PLANNED: PartialOutcome("Go on."),
    Situation.ENGINEER_PARTLY: PartialOutcome("Review what there is. The rest stays open, with the reason."),
    Situation.ENGINEER_FAILED: PartialOutcome(
        "The round is marked SKIP for the engineer. The reviewer may review earlier proposals."
    ),
    Situation.REVIEWER_PARTLY: PartialOutcome(
        "Go on with the gaps that were reviewed. The others stay proposed."
    ),
    Situation.REVIEWER_FAILED: PartialOutcome("The proposals are marked as not reviewed."),
    Situation.FINISHED: PartialOutcome("No gap is open: check whether to end."),
    Situation.WAITS_FOR_HUMANS: PartialOutcome("Every open gap is blocked: show all blockers at once."),
    Situation.PROCESS_FAILURE: PartialOutcome(
        "Nobody delivered anything, and there is work.",
        (
            "again with fresh context",
            "close as won't fix",
            "defer",
            "abandon",
            "a person writes the proposal",
        ),
    ),
}


def situations(engineer: Part, reviewer: Part, states: Iterable[GapState]) -> tuple[Situation, ...]:
    """Return one or two situations that describe the round; `states` are those of all gaps (PART-4)."""
    if engineer is reviewer is Part.EMPTY:
        waiting = [state for state in states if state in WORKING or state in BLOCKED_STATES]
        if not waiting:
            return (Situation.FINISHED,)
        stuck = all(state in BLOCKED_STATES for state in waiting)
        return (Situation.WAITS_FOR_HUMANS if stuck else Situation.PROCESS_FAILURE,)
    found = []
    if engineer is Part.FAILED:
        found.append(Situation.ENGINEER_FAILED)
    elif engineer in {Part.PARTLY, Part.EMPTY}:
        found.append(Situation.ENGINEER_PARTLY)
    if reviewer is Part.FAILED:
        found.append(Situation.REVIEWER_FAILED)
    elif reviewer is Part.PARTLY:
        found.append(Situation.REVIEWER_PARTLY)
    return tuple(found) or (Situation.AS_PLANNED,)


def engineer_part(made: Delivered, *, exhausted: bool = False) -> Part:
    """Return how much the engineer delivered; `exhausted` says that its retries are used up (PART-4)."""
    if exhausted:
        return Part.FAILED
    if not made.addressed:
        return Part.EMPTY
    return Part.PARTLY if made.missing or made.blocked else Part.WHOLE
