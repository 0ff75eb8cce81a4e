"""Reading labels above a list that give it a severity or a purpose without being a heading (FND-7)."""

import re
from dataclasses import dataclass

from disputes.protocol.reviews.fields import field_name
from disputes.protocol.reviews.first_lines.kinds_of_lines import SUMMARY
from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.headings import OBSERVING, WORD, Purpose, purpose_of, section_severity
from disputes.protocol.reviews.layout import Layout
from disputes.protocol.reviews.verdict_words import Verdict, read_verdict
from tasks.states import Severity
from tasks.text.regex import regex

MAX_LABEL = 60
MAX_INDENT = 3
MAX_WORDS = 3  # the most words of a bold line that serves as a heading
# In a note without headings, the list below such a sentence says what it asks for.
ASKING = regex(
    r"\b(?:before (?:(?:i|we) (?:can )?(?:approve|merge|sign|accept)"
    r"|(?:this|it|that) (?:can|may|could) (?:be )?(?:approved|merged?|accepted|land|ship|go in))"
    r"|(?:like|want|need|have) to see"
    r"|please (?:fix|change|address|correct)"
    r"|(?:not|\w{2,8}n['’]t|cannot) (?:merge|approve|sign|accept|ship)\b.{0,60}\b"
    r"(?:before|until|unless|yet))\b",
    re.IGNORECASE,
)
# "Found 3 issues:"
COUNTING = regex(
    r"(?:(?:i|we) )?(?:have )?found \d{1,3} (?:\w+ ){0,2}(?:issues?|problems?|bugs?|findings?|defects?):$",
    re.IGNORECASE,
)
# What is shown of the comments on one file that fold: "src/io.py (2)".
FILE_COUNT = regex(r"[\w./+-]{1,200}\.\w{1,16} \(\d{1,3}\)")
MAX_OPENING = 160  # the most characters of a sentence before a list


@dataclass(frozen=True, slots=True)
class GroupLabel:
    """A label that gives the list below it a severity or a purpose, such as `**MAJOR (must fix):**`."""

    index: int
    purpose: Purpose | None
    severity: Severity | None
    raw: str
    indent: int
    ambiguous: bool = False
    demands: bool = False  # it is a sentence, and the list below it says what it demands
    folds: bool = False  # it is what is shown of a part that folds, which may hold rules


def label_of_list(index: int, text: str, *, is_note: bool) -> GroupLabel | None:
    """Return what a plain line that ends with a colon says about the list below it, or None."""
    if len(text) > MAX_OPENING:
        return None
    if len(text) <= MAX_LABEL:
        severity, ambiguous = section_severity(text)
        if severity:
            return GroupLabel(index, None, severity, text.rstrip(":"), 0, ambiguous)
        if COUNTING.match(text):
            return GroupLabel(index, Purpose.ISSUES, None, "", 0, demands=True)
        purpose = purpose_of(text)
        if purpose in (Purpose.PRIOR, Purpose.HISTORY, Purpose.PRAISE):
            return GroupLabel(index, purpose, None, "", 0)
        if purpose is Purpose.REQUIRED or (is_note and purpose is Purpose.ISSUES):
            return GroupLabel(index, purpose, None, "", 0, demands=True)
    # "This needs changes before I merge:"
    if read_verdict(text) is Verdict.NEEDS_REVISION or (is_note and ASKING.search(text)):
        return GroupLabel(index, Purpose.ISSUES, None, "", 0, demands=True)
    return None


def bold_label(
    layout: Layout, index: int, first: Start | None, above: GroupLabel | None
) -> GroupLabel | None:
    """Return what a bold line says about the list below it; None if it is a finding or part of one.

    `first` is the first line of the open finding, `above` the label whose list the line is in.
    """
    start = layout.starts[index]
    if start is None or start.coded or start.rest or start.indent > MAX_INDENT:
        return None
    if not (start.bold or (start.closed and start.shape is Shape.ITEM)):
        return None
    text = layout.lines[index].text.strip().lstrip("-*_+ ")
    if text[:1] == "<" and SUMMARY.match(text):
        return _of_summary(index, start, above)
    if len(text) > MAX_LABEL + 30:
        return None
    label = text.rstrip("*_ ")
    severity, ambiguous = section_severity(label)
    purpose = _purpose_of_label(label, start, above)
    if severity is None:
        if not _names_section(label, start, purpose, first) or not _stands_outside(layout, index, first):
            return None
    elif set(WORD.findall(label.lower())) & OBSERVING:
        purpose = Purpose.OBSERVATIONS
    stated = None if purpose is Purpose.OTHER else purpose
    return GroupLabel(index, stated, severity, label.rstrip(":"), start.indent, ambiguous)


def _of_summary(index: int, start: Start, above: GroupLabel | None) -> GroupLabel | None:
    """Return what is shown of a part that folds says about its content, or None.

    One with a severity gives it to all of its parts, up to one that is no file.
    """
    severity, ambiguous = section_severity(start.title)
    if severity is None and (not (above and above.folds) or FILE_COUNT.fullmatch(start.title)):
        return None
    return GroupLabel(index, None, severity, start.title, 0, ambiguous, folds=True)


def _purpose_of_label(label: str, start: Start, above: GroupLabel | None) -> Purpose:
    """Return the purpose of the list below a label that ends with a colon or serves as a heading.

    An example of the latter is **Praise** between **Blocking** and **Minor**, and so are the labels after it.
    """
    purpose = purpose_of(label)
    if label.endswith(":"):
        return purpose
    after_praise = above is not None and above.purpose is Purpose.PRAISE
    if start.whole and len(label.split()) <= MAX_WORDS and (purpose is Purpose.PRAISE or after_praise):
        return purpose
    return Purpose.OTHER


def _names_section(label: str, start: Start, purpose: Purpose, first: Start | None) -> bool:
    """Whether a bold label without a severity is a heading rather than a title or the label of a part."""
    if not start.bold or start.numbering or start.numbered or purpose is Purpose.OTHER:
        return False
    is_part = label.endswith(":") and bool(field_name(label))
    return not is_part or (first is None and purpose is Purpose.CLOSING)


def _stands_outside(layout: Layout, index: int, first: Start | None) -> bool:
    """Whether a bold line is outside the open finding."""
    if first is None:
        return True
    start = layout.starts[index]
    before = layout.lines[index - 1].text.strip() if index else ""
    apart = start is not None and not before and start.indent == 0 and start.shape is Shape.BOLD
    return apart and first.shape in (Shape.ITEM, Shape.TAG, Shape.PLAIN)
