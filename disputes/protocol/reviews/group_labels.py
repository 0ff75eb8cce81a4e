"""Labels above a list that give it a severity or a purpose without being a heading (FND-7)."""

import re
from dataclasses import dataclass

from disputes.protocol.reviews.headings import Purpose, purpose_of, section_severity
from disputes.protocol.reviews.verdict_words import Verdict, read_verdict
from tasks.states import Severity

MAX_LABEL = 60
# In a note without headings: what the sentence asks for stands in the list below it.
ASKING = re.compile(
    r"\b(?:before (?:i|we) (?:can )?(?:approve|merge|sign|accept)|(?:like|want|need|have) to see"
    r"|please (?:fix|change|address|correct))\b",
    re.IGNORECASE,
)
MAX_OPENING = 160  # letters of a sentence that a list follows


@dataclass(frozen=True, slots=True)
class Group:
    """A label that gives what stands below it a severity or a purpose: **MAJOR (must fix):**"""

    index: int
    purpose: Purpose | None
    severity: Severity | None
    raw: str
    indent: int
    ambiguous: bool = False
    demands: bool = False  # it is a sentence that asks for what the list below it says


def opened(index: int, text: str, *, is_note: bool) -> Group | None:
    """What a line in plain words that ends with a colon says about the list below it."""
    if len(text) <= MAX_LABEL:
        severity, ambiguous = section_severity(text)
        if severity:
            return Group(index, None, severity, text.rstrip(":"), 0, ambiguous)
        purpose = purpose_of(text)
        if purpose is Purpose.REQUIRED or (is_note and purpose is Purpose.ISSUES):
            return Group(index, purpose, None, "", 0, demands=True)
    # "This needs changes before I merge:"
    if read_verdict(text) is Verdict.NEEDS_REVISION or (is_note and ASKING.search(text)):
        return Group(index, Purpose.ISSUES, None, "", 0, demands=True)
    return None
