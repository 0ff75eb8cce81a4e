"""How a document failed, what that adds to the next prompt, and what failures have in common (RB-9, RB-6)."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.rounds.proposals import ReadProposal, read_proposal
from disputes.protocol.text.documents import STATED, Line
from tasks.text.regex import regex

VAGUE_MAX = 5  # per section of a gap; more are too many
EXAMPLES_LEAST = 2
THIN_CHARS = 200
LIST_MAX = 50
VAGUE = (
    "appropriate", "as needed", "reasonable", "sufficient", "adequate", "properly", "when necessary",
    "if applicable", "typically", "generally", "various", "certain", "may", "might", "could", "it depends",
)  # fmt: skip
VAGUE_WORD = regex(rf"\b(?:{'|'.join(phrase.replace(' ', '[ ]{1,3}') for phrase in VAGUE)})\b", re.IGNORECASE)


class Pattern(StrEnum):
    ABSTRACT_OUTPUT = "ABSTRACT_OUTPUT"
    MISSING_SECTIONS = "MISSING_SECTIONS"
    NARROW_EXAMPLES = "NARROW_EXAMPLES"
    INCONSISTENT_REFS = "INCONSISTENT_REFS"
    SCOPE_DRIFT = "SCOPE_DRIFT"


@dataclass(frozen=True, slots=True)
class Expected:
    """The gaps that a document is compared with."""

    assigned: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DetectedPattern:
    """A pattern in a document: what shows it, and what the next prompt says about it."""

    pattern: Pattern
    evidence: str
    adjustment: str


def vague_words(lines: Iterable[Line]) -> list[str]:
    """Return the vague words in these lines, except in quotes and code."""
    text = "\n".join(line.text for line in lines if line.mode is STATED)
    return [" ".join(found.lower().split()) for found in VAGUE_WORD.findall(text)]


# --- What shows them --------------------------------------------------------------------------------------


def _abstract(proposal: ReadProposal, expected: Expected) -> str:
    for section in proposal.sections:
        words = vague_words(section.lines)
        if len(words) > VAGUE_MAX:
            some = ", ".join(dict.fromkeys(words))
            return f"{len(words)} vague words in the section of {section.gap}: {some}"
    return ""


def _missing(proposal: ReadProposal, expected: Expected) -> str:
    missing = [
        name
        for name, present in (
            ("## Gap Resolution:", proposal.has_resolution),
            ("**Confidence:**", proposal.confidence is not None),
            ("### Trade-offs", proposal.has_trade_offs),
        )
        if not present
    ]
    return f"absent: {', '.join(missing)}" if missing else ""


def _narrow(proposal: ReadProposal, expected: Expected) -> str:
    few = [f"{s.gap} ({s.examples})" for s in proposal.sections if s.examples < EXAMPLES_LEAST]
    return f"fewer than {EXAMPLES_LEAST} examples: {', '.join(few)}" if few else ""


def _unknown(proposal: ReadProposal, expected: Expected) -> str:
    bad = list(proposal.unknown(expected.known))
    return f"unknown gaps: {', '.join(bad[:LIST_MAX])}" if bad else ""


def _drifted(proposal: ReadProposal, expected: Expected) -> str:
    other = [gap for gap in proposal.addressed if gap not in expected.assigned]
    return f"not assigned: {', '.join(other)}" if other and expected.assigned else ""


# --- What they add to the prompt --------------------------------------------------------------------------


def _first_heading(expected: Expected) -> str:
    gaps = ", ".join(expected.assigned)
    return (
        f"Your gaps are {gaps}, no others. Your first heading is `## Gap Resolution: {expected.assigned[0]}`."
    )


@dataclass(frozen=True, slots=True)
class Detector:
    """How a pattern is detected, and what it adds to the next prompt."""

    shows: Callable[[ReadProposal, Expected], str]
    adjust: Callable[[Expected], str]


RULES: dict[Pattern, Detector] = {
    Pattern.ABSTRACT_OUTPUT: Detector(
        _abstract, lambda _: "Give values instead of words like these, and at least 3 concrete examples."
    ),
    Pattern.MISSING_SECTIONS: Detector(
        _missing,
        lambda _: (
            "Write every heading: `## Gap Resolution:`, `**Confidence:**`, `### Trade-offs` with at least "
            "2 pros and 2 cons."
        ),
    ),
    Pattern.NARROW_EXAMPLES: Detector(_narrow, lambda _: "Show one case that succeeds and one at the edge."),
    Pattern.INCONSISTENT_REFS: Detector(
        _unknown, lambda expected: f"These gaps exist, no others: {', '.join(expected.known[:LIST_MAX])}."
    ),
    Pattern.SCOPE_DRIFT: Detector(_drifted, _first_heading),
}


def patterns_in(text: str, expected: Expected) -> tuple[DetectedPattern, ...]:
    """Return the patterns by which a document failed (RB-9). Raises DocumentError if it is too large."""
    return tuple(_seen(read_proposal(text), expected))


def _seen(proposal: ReadProposal, expected: Expected) -> Iterator[DetectedPattern]:
    for pattern, rule in RULES.items():
        if evidence := rule.shows(proposal, expected):
            yield DetectedPattern(pattern, evidence, rule.adjust(expected))


# --- What several failures have in common (RB-6) ----------------------------------------------------------


class RootCause(StrEnum):
    DOMAIN_GAP = "domain_gap"
    CONTEXT_MISSING = "context_missing"
    AMBIGUOUS = "ambiguous"
    SCOPE_TOO_LARGE = "scope_too_large"


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed attempt: its patterns, the length of its text, and how many unknown things it names."""

    patterns: frozenset[Pattern]
    chars: int
    unknown: int = 0


# The first cause that fits counts.
CAUSES: tuple[tuple[RootCause, str, Callable[[Sequence[Failed]], bool]], ...] = (
    (
        RootCause.DOMAIN_GAP,
        f"fewer than {THIN_CHARS} characters every time",
        lambda attempts: all(each.chars < THIN_CHARS for each in attempts),
    ),
    (
        RootCause.CONTEXT_MISSING,
        "it refers to unknown things",
        lambda attempts: all(each.unknown for each in attempts),
    ),
    (
        RootCause.AMBIGUOUS,
        "the same failure each time",
        lambda attempts: len({each.patterns for each in attempts}) == 1,
    ),
    (
        RootCause.SCOPE_TOO_LARGE,
        "another failure each time",
        lambda attempts: len({each.patterns for each in attempts}) == len(attempts),
    ),
)


def root_cause(attempts: Sequence[Failed]) -> tuple[RootCause, str] | None:
    """Return the likely common cause of at least two failures, and its evidence, or None (RB-6)."""
    if len(attempts) < 2:
        return None
    return next(((cause, evidence) for cause, evidence, fits in CAUSES if fits(attempts)), None)
