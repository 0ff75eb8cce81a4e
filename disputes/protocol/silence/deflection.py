"""Recognising that an answer turns a finding away without offering an alternative, by its phrases (SIL-5)."""

import re
from collections.abc import Sequence
from itertools import islice, takewhile

from disputes.protocol.responses.answers import Answered
from disputes.protocol.text.documents import STATED, Line
from disputes.protocol.text.mentions import FULL
from tasks.text.regex import regex

# Neither case nor the endings of most words make a difference.
PHRASES = regex(
    r"\breviewer(?:'s|s)?\s+(?:(?:has|have|is|seems\s+to|clearly|simply|completely)\s+){0,2}"
    r"(?:misunderst\w+|misread\w*|misinterpret\w*)(?:\s+\w+){0,6}"
    r"|\breviewer(?:'s|s)?\s+(?:is|was|are)\s+(?:simply\s+)?(?:wrong|mistaken|incorrect)(?:\s+\w+){0,6}"
    r"|\bnot\s+(?:really\s+)?an?\s+(?:real|actual|genuine|valid)\s+(?:issue|problem|concern|bug|finding)s?"
    r"|\b(?:reviewer(?:'s|s)?\s+)?suggest\w+\s+would\s+(?:actually\s+)?break(?:\s+\w+){0,6}"
    r"|\bfinding\s+(?:does\s+not|doesn['’]t)\s+(?:apply|hold)"
    r"|\b(?:do\s+not|don['’]t|fail\s+to)\s+see\s+(?:how|why|the\s+(?:issue|problem|point))(?:\s+\w+){0,6}"
    r"|\bcurrent\s+(?:behaviou?r|code|implementation)\s+is\s+(?:already\s+)?"
    r"(?:right|correct|fine|intended|intentional|sufficient)"
    r"|\b(?:this|it|that)\s+(?:can\s?not|can['’]t)\s+be\s+(?:changed|done|fixed)(?:\s+\w+){0,6}"
    r"|\b(?:i|we)\s+(?:have\s+)?kept\s+the\s+\w+",
    re.IGNORECASE,
)
ALTERNATIVE = regex(
    r"(?:^|[.;]\s)\s*(?:[-*+]\s+)?(?:\*\*|__)?(?:proposed\s+)?alternatives?(?:\s+\w+){0,2}(?:\s?\([^()]{0,30}\))?(?:\*\*|__)?\s*:",
    re.IGNORECASE,
)
OFFERING = regex(r"\balternative|\binstead\b|\bwe\s+propose", re.IGNORECASE)
BOLD = regex(r"(?:\*\*|__)([^*_]{1,200})(?:\*\*|__)")
MAX_PHRASES = 8  # one section may answer thousands of findings, and each of them shows its phrases
ROW_OR_LINE = 40  # how many lines an answer may have if it is not the section of a heading


def response_section(lines: Sequence[Line], answer: Answered) -> list[Line]:
    """Return what answers one finding: the section of a heading, a table row, or a paragraph and its list."""
    start = answer.line - 1
    if not 0 <= start < len(lines):
        return []
    first = lines[start]
    if answer.place == "row":
        return [first]
    if heading := first.heading:
        below = takewhile(lambda line: not line.heading or line.heading[0] > heading[0], lines[start + 1 :])
        return [first, *below]
    taken = [first]
    for line in lines[start + 1 : start + ROW_OR_LINE]:
        if line.heading or (line.mode is STATED and FULL.search(line.text)):
            break
        taken.append(line)
    return taken


def deflections(section: Sequence[Line]) -> list[str]:
    """Return the first phrases that turn the finding away; empty if an alternative is offered (SIL-5)."""
    stated = [line for line in section if line.mode is STATED]
    if any(_offers(line) for line in stated):
        return []
    found = (" ".join(match[0].split()) for line in stated for match in PHRASES.finditer(line.text))
    return list(islice(found, MAX_PHRASES))


def _offers(line: Line) -> bool:
    """Whether a line offers an alternative in a label, a heading or bold words."""
    if line.heading:
        return OFFERING.search(line.heading[1]) is not None
    if ALTERNATIVE.search(line.text):
        return True
    return any(OFFERING.search(bold) for bold in BOLD.findall(line.text))
