"""Which findings a response answers, and where: the places of H1-c and the shapes of §19.5."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from disputes.protocol.disagree import STATUS, STATUS_LABELS, is_heading, section_kind
from disputes.protocol.documents import Line, Mode
from disputes.protocol.kinds import ANSWER_WORDS, AnswerKind, is_answer, stated_kind
from disputes.protocol.naming import FULL, Names, Span
from disputes.protocol.sections import Outline, Place, Role, cells_of, is_row

MAX_TEXT = 4000
IN_SENTENCES = frozenset({"claim", "list"})
MARKER = re.compile(r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+)?(?P<box>\[[xX ✓✔]\]\s*)?")
MARKS = " \t*_`[(\"'“#~"
# Behind an id that leads a line: its title in parentheses, then a colon, a dash or an arrow.
LED = re.compile(
    r"[*_`\]\)\"”~]{0,4}\s{0,3}(?:\([^()]{0,120}\)|\[[^\[\]]{0,60}\])?[*_`]{0,3}\s{0,3}(?::|-{1,2}>?|–|—|→|=>)"
)
BOLD = re.compile(r"(?P<mark>\*\*|__)(?P<text>.{1,300}?)(?P=mark)")
LABEL = re.compile(r"[*_]{0,2}(?P<label>[A-Za-z][A-Za-z' ]{1,40}?)[*_]{0,2}:[*_]{0,2}\s")
# Labels behind which stand the findings that a passage answers.
NAMING_LABELS = re.compile(
    r"(?:reviewer )?(?:issues?|findings?|concerns?|comments?)(?: ids?)?"
    r"|(?:revisions?|changes?|fixes|fixed|resolves|resolved|address(?:es|ed|ing)|closes|responds to"
    r"|(?:in )?response to|re|regarding)(?: (?:the )?(?:issues?|findings?))?"
)
# Right before an id, or right behind it: the words that claim something was done about it.
CLAIM_BEFORE = re.compile(
    r"(?:\b(?:address(?:es|ed|ing)?|fix(?:es|ed|ing)?|resolv(?:es|ed|ing)|clos(?:es|ed|ing)|implements"
    r"|respon(?:se|ds|ding) to|repl(?:y|ies) to|answers|as (?:requested|suggested|proposed|asked)"
    r" (?:in|by)|per)\s+(?:the\s+)?(?:reviewer(?:'s)?\s+)?(?:issues?\s+|findings?\s+|feedback\s+)?(?:in\s+)?)"
    r"[*_`\[(\"]{0,4}$",
    re.IGNORECASE,
)
CLAIM_AFTER = re.compile(
    r"[*_`\]]{0,4}\s+(?:fix(?:ed|es)?|clarification|resolution|resolved|addressed|response)\b"
    r"(?!\s+(?:by|in|with|requires|needs))",
    re.IGNORECASE,
)
SUBJECT_CLAIM = re.compile(
    r"[*_`\]]{0,4}(?:\s*\([^()]{0,80}\))?\s+(?:is|was|are|were|ha(?:s|ve|d) been)\s+(?P<rest>.{1,80})",
    re.IGNORECASE,
)
UNDONE = re.compile(
    r"\b(?:not|never|cannot|n't|without|to|would|could|should|might|may|will|must|if|before|until|when|unless)"
    r"(?:\s+\w+){0,1}\s*$",
    re.IGNORECASE,
)
LATE = re.compile(r"[^|:–—→]{1,120}?(?::|–|—|→|=>|\s-{1,2}>?\s)")
TRAILING = re.compile(r"[^()\[\]]{0,60}[)\]][*_`.\s]{0,6}$")
# A first cell that only counts: a version or a date of a history, a number or a severity of a list.
REVISION = re.compile(
    r"[*_`]{0,3}(?:(?:v|ver|version|rev|round|r|draft)\.?\s?\d[\d.]*|\d{4}-\d\d-\d\d.*|\d+\.\d[\d.]*)"
    r"[*_`]{0,3}(?:\s*\([^()]*\))?",
    re.IGNORECASE,
)
COUNTER = re.compile(
    r"[*_`#]{0,3}(?:\d{1,3}|critical|high|medium|low|major|minor|nit)?[*_`.]{0,3}", re.IGNORECASE
)
NAMING_COLUMN = re.compile(r"\b(?:issues?|findings?|concerns?|ids?|comments?|addresses|ref|reference)\b")
UNRELATED = re.compile(
    r"\b(?:see|depends|related|blocked|unlike|cf|duplicate|same as|open|remaining)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Answered:
    """What the coder says it did about one finding; `place` is where it says so (H1-c)."""

    code: str
    kind: AnswerKind
    text: str
    line: int
    place: str = ""


@dataclass(frozen=True, slots=True)
class Mention:
    """A finding named where that is no answer: in a sentence, a quote, or code (H1-d)."""

    code: str
    line: int
    mode: Mode


@dataclass(frozen=True, slots=True)
class _Read:
    """What one line answers: a kind, None where the line does not say it."""

    span: Span
    place: str
    kind: AnswerKind | None
    text: str


def read_answers(lines: list[Line], names: Names) -> tuple[dict[str, Answered], list[Mention]]:
    """The answer to each finding, and every way in which one is named.

    The first answer counts. Only one that says more goes before an earlier one: what became of the finding,
    then a place of its own before a sentence, then this finding alone before a list of them. Headings of
    DISAGREE blocks are left to `read_blocks`.
    """
    found: dict[str, tuple[tuple[bool, bool, bool], Answered]] = {}
    mentions: dict[tuple[str, Mode], Mention] = {}
    outline = Outline()
    for index, line in enumerate(lines):
        place = outline.at(line)
        spans = names.spans(line.text)
        if not spans:
            continue
        for span in spans:
            for code in span.codes:
                if (code, line.mode) not in mentions:
                    mentions[code, line.mode] = Mention(code, line.number, line.mode)
        if line.mode is not Mode.STATED or is_heading(line):
            continue
        for read in _answers_of(lines, index, spans, place, names):
            kind = read.kind or place.kind or AnswerKind.ADDRESSED
            own = read.place not in IN_SENTENCES
            says = read.kind is not None and (own or read.kind is not AnswerKind.ADDRESSED)
            worth = (says, own, len(read.span.codes) == 1)
            for code in read.span.codes:
                if code not in found or worth > found[code][0]:
                    found[code] = (worth, Answered(code, kind, read.text[:MAX_TEXT], line.number, read.place))
    return {code: answer for code, (_, answer) in found.items()}, list(mentions.values())


def _answers_of(
    lines: list[Line], index: int, spans: list[Span], place: Place, names: Names
) -> Iterator[_Read]:
    """What this line answers; a section that repeats or lists what is open answers only where it says so."""
    line = lines[index]
    if (heading := line.heading) is not None:
        reads = _in_heading(lines, index, heading[1], names)
    elif "|" in line.text and (place.head or is_row(line.text)):
        reads = _in_row(line.text, place, names)
    else:
        reads = _in_line(lines, index, spans, place)
    for read in reads:
        if place.role in {Role.RECAP, Role.OPEN} and read.kind is None:
            continue
        yield read


def _in_heading(lines: list[Line], index: int, heading: str, names: Names) -> Iterator[_Read]:
    """A heading that names a finding: `### Response to <id>`, `#### Limits (Addressing <id>)`."""
    for span in names.spans(heading):
        led = _led(heading, 0, span)
        if span.weak and not led and not CLAIM_BEFORE.search(heading[: span.start]):
            continue
        rest = heading[led:].strip(MARKS) if led else ""
        kind = stated_kind(rest) if rest else None
        below = section_kind(lines, index)
        yield _Read(span, "heading", below or kind, _told(rest) if rest else _paragraph(lines, index))


def _in_row(text: str, place: Place, names: Names) -> Iterator[_Read]:
    """A row of a table: in its first cell, or in another one where the table tells what was done."""
    cells = cells_of(text)
    column, spans = next(
        ((at, spans) for at, cell in enumerate(cells) if (spans := names.spans(cell))), (0, [])
    )
    if not spans:
        return
    cell, span = cells[column], spans[0]
    leads = not cell[: span.start].strip(MARKS)
    others = [other.strip(" *`") for at, other in enumerate(cells) if at != column]
    told = others if column == 0 else [other for at, other in enumerate(cells) if at > column]
    rest = cell[spans[-1].end :].strip(" *`")
    alone = next((other for other in [*others, rest] if is_answer(other)), "")
    if place.describes and not alone:
        return
    if not leads and (span.weak or not place.head):
        return
    if column and not _tells(cells, column, place, leads, cell[: span.start]):
        return
    # The cell that holds nothing but an answer, wherever it is, or else how the second one begins.
    kind = stated_kind(alone or "".join(told[:1])) or stated_kind(rest.lstrip(" (:-–—"))
    words = " ".join(other for other in told if other and other.lower() not in ANSWER_WORDS)
    for each in spans:
        yield _Read(each, "row", kind, words if told else rest.lstrip(" :-–—*").strip())


def _tells(cells: list[str], column: int, place: Place, leads: bool, before: str) -> bool:
    """Whether another cell than the first answers: in a history of revisions, or a table of what was done."""
    if not place.tells:
        return False
    if REVISION.fullmatch(cells[0]) or CLAIM_BEFORE.search(before):
        return True
    column_names = place.head[column].lower() if column < len(place.head) else ""
    return leads and (
        COUNTER.fullmatch(cells[0]) is not None or NAMING_COLUMN.search(column_names) is not None
    )


def _in_line(lines: list[Line], index: int, spans: list[Span], place: Place) -> Iterator[_Read]:
    """A line of a list or of a text: it begins with the finding, ticks it off, or claims that it is done."""
    text = lines[index].text
    marker = MARKER.match(text)
    start = marker.end() if marker else 0
    box = (marker["box"] or "").strip() if marker else ""
    ticked, waiting = bool(box) and box != "[ ]", box == "[ ]"
    first = spans[0]
    end = _led(text, start, first)
    if not end and not text[start : first.start].strip(MARKS):
        end = _led_late(text, first, listed=start > 0, place=place)
    if not end:
        end = _bold(text, start, first) or _labelled(text, start, first)
    if end:
        rest = text[end:].strip(" *_`")
        kind = stated_kind(rest) or _kind_below(lines, index)
        if kind or not waiting:
            yield _Read(
                first,
                "checkbox" if ticked else "lead-in",
                kind,
                _told(rest) if rest else _paragraph(lines, index),
            )
        return
    for span in spans:
        if ticked and not span.weak:
            yield _Read(span, "checkbox", AnswerKind.ADDRESSED, text[start:].strip())
        elif (kind := _claimed(text, start, span)) and not waiting:
            yield _Read(span, "claim", kind, text[start:].strip())
        elif (
            place.role is Role.RESPONSE
            and marker
            and start
            and TRAILING.match(text, span.end)
            and not span.weak
        ):
            yield _Read(span, "list", None, text[start : span.start].strip(" *_`(["))


def _led(text: str, start: int, span: Span) -> int:
    """Where the words behind an id begin that leads the text from `start` on; 0 where none does."""
    if text[start : span.start].strip(MARKS):
        return 0
    match = LED.match(text, span.end)
    return match.end() if match else 0


def _led_late(text: str, span: Span, *, listed: bool, place: Place) -> int:
    """The same for an id with a title behind it: `- ISSUE-R1-001 retry prompt: fixed`."""
    if span.weak:
        return 0
    if text.startswith("**", span.end) or text.startswith("__", span.end):
        return span.end + 2
    late = LATE.match(text, span.end)
    if late and stated_kind(text[late.end() :]):
        return late.end()
    if listed and place.role is Role.RESPONSE:
        return span.end
    return 0


def _bold(text: str, start: int, span: Span) -> int:
    """Where the words begin behind a bold run that opens the text and names the finding."""
    match = BOLD.match(text, start)
    if not match or not match.start("text") <= span.start < match.end("text"):
        return 0
    before = match["text"][: span.start - match.start("text")]
    if (span.weak and before.strip(MARKS) and not CLAIM_BEFORE.search(before)) or UNRELATED.search(before):
        return 0
    return match.end() + len(text[match.end() :]) - len(text[match.end() :].lstrip(" :-–—"))


def _labelled(text: str, start: int, span: Span) -> int:
    """Where the words begin behind `Issue: ISSUE-R1-001` or `**Revision:** Addresses ISSUE-R1-001`."""
    match = LABEL.match(text, start)
    if not match or not NAMING_LABELS.fullmatch(match["label"].strip().lower()):
        return 0
    before = text[match.end() : span.start]
    if before.strip(MARKS) and not CLAIM_BEFORE.search(before):
        return 0
    return span.end


def _claimed(text: str, start: int, span: Span) -> AnswerKind | None:
    """What a sentence claims about a finding: `Fixes <id>`, `(<id> fix)`, `<id> was deferred`."""
    before = text[max(start, span.start - 80) : span.start]
    if match := CLAIM_BEFORE.search(before):
        undone = UNDONE.search(before[: match.start()])
        if not undone or (undone[0].lower().strip() == "to" and not before[: undone.start()].strip(MARKS)):
            return AnswerKind.ADDRESSED
    leads = not text[start : span.start].strip(MARKS)
    if re.fullmatch(r"\W*from\s+\W*", text[start : span.start], re.IGNORECASE):
        return AnswerKind.ADDRESSED if LED.match(text, span.end) else None
    if CLAIM_AFTER.match(text, span.end) and not UNDONE.search(before):
        return AnswerKind.ADDRESSED
    if leads and not span.weak and (match := SUBJECT_CLAIM.match(text, span.end)):
        return stated_kind(match["rest"])
    return None


def _kind_below(lines: list[Line], index: int) -> AnswerKind | None:
    """What the details below a list item or a lead-in say became of the finding."""
    for line in lines[index + 1 : index + 9]:
        if line.mode is not Mode.STATED:
            continue
        if not line.text.strip() or line.heading or FULL.search(line.text):
            break
        if ":" not in line.text:
            continue
        match = STATUS.match(line.text)
        if match and match["label"].strip().lower() in STATUS_LABELS and (kind := stated_kind(match["text"])):
            return kind
    return None


def _told(rest: str) -> str:
    """The words of an answer; nothing where they only name its kind."""
    return "" if rest.lower() in ANSWER_WORDS else rest


def _paragraph(lines: list[Line], index: int) -> str:
    """The first paragraph below a line, at most twelve lines of it."""
    taken: list[str] = []
    for line in lines[index + 1 : index + 13]:
        if line.heading or FULL.search(line.text):
            break
        if line.text.strip():
            taken.append(line.text.strip())
        elif taken:
            break
    return "\n".join(taken)
