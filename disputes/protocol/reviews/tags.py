"""Reading the tags of reviews in XML as the labelled lines that they stand for (FND-1)."""

from collections.abc import Sequence

from disputes.protocol.text.documents import STATED, Line
from tasks.text.regex import regex

# `<severity>high</severity>`, or its opening tag with the first line of what it holds.
LABEL = regex(r"[ \t]*<(?P<label>[A-Za-z_]{2,24})>(?P<text>[^<>]*?)(?:</(?P=label)>)?[ \t]*$")
# `<finding severity="high" file="a.py">`
OPENING = regex(
    r"""[ \t]*<[A-Za-z_]{2,24}[ \t][^<>]{0,300}?\bseverity=["'](?P<severity>[^"'<>]{1,30})["'][^<>]{0,300}>"""
)
CLOSING = regex(r"[ \t]*</[A-Za-z_]{2,24}>[ \t]*$")
HAS_TAGS = regex(r"(?:^|\n)[ \t]*</?(?:finding|issue|comment|problem|verdict)s?\b")


def without_tags(lines: Sequence[Line], text: str) -> Sequence[Line]:
    """Return the lines of a review with its tags as labels, one for one; unchanged if it has no such tags."""
    if "<" not in text or not HAS_TAGS.search(text):
        return lines
    return [line._replace(text=_as_label(line.text)) if line.mode is STATED else line for line in lines]


def _as_label(text: str) -> str:
    if "<" not in text:
        return text.strip()
    if opening := OPENING.match(text):
        return f"severity: {opening['severity']}"
    if label := LABEL.match(text):
        said = label["text"].strip()
        return f"{label['label'].replace('_', ' ')}: {said}" if said else ""
    return "" if CLOSING.match(text) else text
