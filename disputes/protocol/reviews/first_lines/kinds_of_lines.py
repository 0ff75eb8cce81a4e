"""Telling headings, list items and paragraphs apart, and reading each by its notation (FND-1)."""

from disputes.protocol.reviews.first_lines import severity_tags
from disputes.protocol.reviews.first_lines.ids import RECORD, leads_with_id, read_coded, read_record, take_id
from disputes.protocol.reviews.first_lines.places import read_place
from disputes.protocol.reviews.first_lines.signs import CIRCLES, without_signs
from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.first_lines.titles import read_anonymous, read_plain_item
from disputes.protocol.reviews.headings import FIRST_SIGN, NUMBERING
from disputes.protocol.text.documents import HEADING, ITEM, LIST_MARKERS, SMALL_INDENT, Line, bold_lead
from disputes.protocol.text.identifiers import LIKE_AN_ID
from disputes.protocol.text.locations import LINE_OF_FILE
from tasks.text.regex import regex

# What is shown of a part that folds.
SUMMARY = regex(
    r"(?:<details(?: open)?>\s*)?<summary>(?:<(?:b|strong)>)?(?P<text>[^<>]{1,300})"
    r"(?:</(?:b|strong)>)?</summary>(?:<blockquote>)?\s*$"
)
CHECKBOXES = {"[ ]": " ", "[x]": "x", "[X]": "x"}
WORDS_OF_A_LABEL = 3
BULLETS = frozenset("-*+")
ITEM_FIRST = frozenset("*_[`~")
BOLD_MARKS = frozenset(["**", "__"])


def read_start(line: Line) -> Start | None:
    """Read the line as the first line of a finding (FND-1, ARB-1); None if it cannot be one."""
    text = line.text
    stripped = text.lstrip(" \t")
    first = stripped[:1]
    if first == "<" and (folded := SUMMARY.match(stripped)):
        return _paragraph(f"**{folded['text']}**", 0, is_bold=True)
    if first not in LIST_MARKERS and (of_file := read_place(stripped, len(text) - len(stripped))):
        return of_file
    if first == "#" and (heading := _heading(text)):
        return heading
    indent = len(text) - len(stripped)
    if indent and "\t" in text[:indent]:
        indent = len(text[:indent].expandtabs(SMALL_INDENT))
    is_bold = stripped[:2] in BOLD_MARKS
    if first in LIST_MARKERS and not is_bold and (marker := ITEM.match(stripped)):
        return _item(stripped[marker.end() :].strip(), indent, numbered=first not in BULLETS)
    return _paragraph(stripped, indent, is_bold=is_bold)


def _heading(text: str) -> Start | None:
    if not (match := HEADING.match(text)):
        return None
    marks, content = match.groups()
    return _content(content.strip().rstrip("#").rstrip(), Start(Shape.HEADING, level=len(marks)))


def _item(text: str, indent: int, *, numbered: bool) -> Start | None:
    if match := severity_tags.kind_of_comment(text):
        return severity_tags.read_comment(match, text, indent)
    if of_file := read_place(text, indent):
        return of_file
    start = Start(Shape.ITEM, indent=indent, numbered=numbered)
    if text[:1] in ITEM_FIRST or text[:1] >= FIRST_SIGN or leads_with_id(text):
        return _content(text, start)
    return read_plain_item(text, start)


def _paragraph(text: str, indent: int, *, is_bold: bool) -> Start | None:
    if match := severity_tags.kind_of_comment(text):
        return severity_tags.read_comment(match, text)
    if match := RECORD.fullmatch(text):
        return read_record(match, text, indent)
    if match := severity_tags.severe_first(text):
        return severity_tags.read_loud(match, text, indent)
    if not (is_bold or text[:1] in "[~" or text[:1] >= FIRST_SIGN or leads_with_id(text)):
        return None
    if is_bold and (start := severity_tags.read_badged(text, indent)):
        return start
    return _content(text.rstrip(), Start(Shape.PLAIN, indent=indent))


def _content(text: str, start: Start) -> Start | None:
    """Read what a line says after its list marker or heading marks."""
    if tick := CHECKBOXES.get(text[:3], ""):
        text = text[3:].lstrip()
    circle = CIRCLES.get(text[:1], "")
    text, sign = without_signs(text)
    start.tick = tick or sign
    start.shape = _shape(start.shape, text, circle, sign)
    if text[:2] == "~~":
        start.struck, text = True, text.replace("~~", "")
    if start.level:
        start.numbering, text = _without_numbering(text)
    if start.shape is Shape.PLAIN and (match := severity_tags.severe_first(text)):
        return severity_tags.read_loud(match, text, start.indent)
    if lead := bold_lead(text):
        found = _bold(lead[0].strip(), lead[1].strip(), start)
    else:
        found = _notation(start, text, "")
    if circle and found and not (found.words or found.level or found.field):
        found.words, found.leading = (circle,), True
    return found


def _shape(shape: Shape, text: str, circle: str, tick: str) -> Shape:
    """Return the kind of a line behind signs, which make an item of a paragraph.

    A coloured sign does so only before a sentence, since it may stand before a verdict or a label as well.
    """
    if shape is not Shape.PLAIN or not (circle or tick):
        return shape
    is_said = len(text.split()) > WORDS_OF_A_LABEL or LINE_OF_FILE.search(text) is not None
    is_sentence = is_said and not (text.endswith(":") or "=" in text)
    return Shape.ITEM if tick or is_sentence else shape


def _bold(text: str, rest: str, start: Start) -> Start | None:
    """Read what a line says that begins with these bold words."""
    if match := severity_tags.kind_of_comment(f"{text.rstrip(':')}: "):
        return severity_tags.read_comment(match, f"{match[0]}{rest.lstrip(': ')}", start.indent)
    start.bold = True
    if start.shape is Shape.PLAIN:
        start.shape = Shape.BOLD
    text, sign = without_signs(text)
    start.tick = start.tick or sign
    if not start.numbering:
        start.numbering, text = _without_numbering(text)
    return _notation(start, text, rest)


def _without_numbering(text: str) -> tuple[str, str]:
    """Return the number before a title, and the text without it."""
    match = NUMBERING.match(text)
    return (match[0].strip(), text[match.end() :]) if match else ("", text)


def _notation(start: Start, text: str, rest: str) -> Start | None:
    """Read the words by the first notation that fits; `rest` is the text after the bold words."""
    bracket = text[:1] in ("[", "`")
    # The id may be in italics: *N-1*
    inner = text.lstrip("[`") if bracket else text.lstrip("*_")
    if LIKE_AN_ID.match(inner) and (after := take_id(start, inner, bracket=bracket)) is not None:
        start.bracket = bracket
        return read_coded(start, after, rest)
    if bracket and (tag := severity_tags.leading_tag(text, start.shape)):
        word, end = tag
        return severity_tags.read_tagged(start, word, text[end:], rest)
    return read_anonymous(start, text.strip(), rest) if start.shape is not Shape.PLAIN else None
