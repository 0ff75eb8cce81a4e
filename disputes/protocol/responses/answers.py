"""Reading which findings a response answers, where, and in which words (ANS-1, ANS-4)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import itemgetter

from disputes.protocol.responses import leading_ids
from disputes.protocol.responses.answer_kinds import (  # fmt: skip
    ANSWER_WORDS,
    SYMBOLS,
    AnswerKind,
    is_answer,
    is_open,
    stated_kind,
)
from disputes.protocol.responses.arguments import (  # fmt: skip
    answer_kind,
    is_silencing,
    is_undone,
    says_nothing,
    tells_of_deed,
)
from disputes.protocol.responses.disagree_blocks import first_kind, heading_of_block, section_kind
from disputes.protocol.responses.references import referred
from disputes.protocol.responses.replies import reply_below
from disputes.protocol.responses.sections import LineContext, Role, SectionTracker, is_row, row_cells
from disputes.protocol.text.documents import STATED, Line, Mode
from disputes.protocol.text.mentions import FULL, Names, Span
from tasks.text.regex import regex

MAX_TEXT = 4000
# An answer beside the id: "<id> (disagree): it is bounded".
BESIDE = regex(r"[\s*_`]{0,6}[(\[](?P<said>[^()\[\]]{2,60})[)\]]")
ENDING = regex(r"[*_`]{0,2}[)\]][.!]?\s*")  # behind the id that ends an entry
SIGNS = f"{''.join(SYMBOLS)}\ufe0f "
DENYING = regex(
    r"\W*(?:i|we) (?:(?:did|do|have|could|can) not|(?:did|do|have|could|ca)n['’]t|cannot)\b", re.IGNORECASE
)
IN_SENTENCES = frozenset({"claim", "list"})
UNDONE = frozenset({
    AnswerKind.ACCEPTED_AS_IS, AnswerKind.DECLINED, AnswerKind.DEFERRED, AnswerKind.DISCARDED,
    AnswerKind.USER_DECISION,
})  # fmt: skip
MARKER = regex(r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+)?(?P<box>\[[xX ✓✔]\]\s*)?")
# First cells that hold only the version or date of a history, or the number or severity of a list.
REVISION = regex(
    r"[*_`]{0,3}(?:(?:v|ver|version|rev|round|r|draft)\.?\s?\d[\d.]*|\d{4}-\d\d-\d\d.*|\d+\.\d[\d.]*)"
    r"[*_`]{0,3}(?:\s*\([^()]*\))?",
    re.IGNORECASE,
)
COUNTER = regex(r"[*_`#]{0,3}(?:\d{1,3}|critical|high|medium|low|major|minor|nit)?[*_`.]{0,3}", re.IGNORECASE)
NAMING_COLUMN = regex(r"\b(?:issues?|findings?|concerns?|ids?|comments?|addresses|ref|reference)\b")


@dataclass(frozen=True, slots=True)
class Answered:
    """What the coder says it did about one finding; `place` is the kind of place where it says so (ANS-1).

    `is_unclear` says that it tells of nothing done, so that it may be a refusal (ANS-7). `refers` are the
    findings whose answers hold for it, too. `is_torn` says that it is called done and also not done (ANS-9).
    """

    code: str
    kind: AnswerKind
    text: str
    line: int
    place: str = ""
    is_unclear: bool = False
    refers: tuple[str, ...] = ()
    is_torn: bool = False

    def checked(self) -> "Answered":
        """Return the answer as its words have it if it is called done and they say that it is not (ANS-9)."""
        if self.kind is not AnswerKind.ADDRESSED:
            return self
        said = answer_kind(self.text)
        if said is AnswerKind.PARTLY:
            return replace(self, kind=said)
        if said is AnswerKind.ACCEPTED_AS_IS and tells_of_deed(self.text):
            return self  # "No change to the API, only the lock was added"
        if said in UNDONE:
            return replace(self, kind=said, is_torn=True)
        return replace(self, is_torn=is_open(self.text) or is_undone(self.text))

    def beside(self, later: "Answered") -> "Answered":
        """Return which counts of this answer and a later one of equal worth (ANS-9)."""
        if (self.kind in UNDONE) is (later.kind in UNDONE):
            return self
        return replace(self if self.kind in UNDONE else later, is_torn=True)


@dataclass(frozen=True, slots=True)
class Mention:
    """A finding named in a sentence, a quote or code, which is not an answer (ANS-2)."""

    code: str
    line: int
    mode: Mode


_Worth = tuple[bool, bool, bool]


@dataclass(frozen=True, slots=True)
class _Read:
    """What one line answers; `kind` is None if the line does not say what became of the finding."""

    span: Span
    place: str
    kind: AnswerKind | None
    text: str
    below: str = ""  # the text below a heading, whose own words may be the title of the finding

    @property
    def said(self) -> str:
        """The words of the coder."""
        return self.below if self.place == "heading" else self.text

    @property
    def denies(self) -> bool:
        """Whether it says of this finding alone that nothing was done."""
        return len(self.span.codes) == 1 and (self.kind in UNDONE or DENYING.match(self.said) is not None)

    @property
    def worth(self) -> _Worth:
        """How much the line says: a kind, in a place of its own, about this finding alone."""
        own = self.place not in IN_SENTENCES
        says = self.kind is not None and (own or self.kind is not AnswerKind.ADDRESSED)
        return (says, own, len(self.span.codes) == 1)


def read_answers(lines: list[Line], names: Names) -> tuple[dict[str, Answered], list[Mention]]:
    """Return the answer to each finding by its code, and all mentions of findings (ANS-1).

    The first answer counts, unless a later one says more: it states what became of the finding, has a place
    of its own instead of a sentence, or is about this finding alone instead of several. Of two that are worth
    the same, one that says that nothing was done counts; of a lesser one only the contradiction is kept
    (ANS-9). Headings of DISAGREE blocks are left to `read_blocks`.
    """
    found: dict[str, tuple[_Worth, Answered]] = {}
    mentions: dict[tuple[str, Mode], Mention] = {}
    outline = SectionTracker()
    last = ""  # the finding that was answered last
    for index, line in enumerate(lines):
        outline.follow(line)
        spans = names.spans(line.text)
        if not spans:
            continue
        place = outline.place
        for span in spans:
            for code in span.codes:
                if (code, line.mode) not in mentions:
                    mentions[code, line.mode] = Mention(code, line.number, line.mode)
        if heading_of_block(line, names):
            continue
        if line.mode is not STATED:
            reads = _below_quote(lines, index, names)
        else:
            reads = _answers_of(lines, index, spans, place, names)
        excepted = leading_ids.excepted_codes(line.text, spans)
        for read in reads:
            for answer in _answered(read, line.number, place.kind, last, names):
                code = answer.code
                if code in excepted:
                    continue
                found[code] = _counting(read, answer, *found[code]) if code in found else (read.worth, answer)
            last = read.span.codes[-1]
    return {code: answer for code, (_, answer) in found.items()}, list(mentions.values())


def _counting(read: _Read, answer: Answered, worth: _Worth, before: Answered) -> tuple[_Worth, Answered]:
    """Return which counts of two answers to a finding, with its worth; `read` is the later one's line."""
    if read.worth > worth:
        return read.worth, answer
    if read.worth == worth and worth[0]:
        return worth, before.beside(answer)
    is_torn = before.is_torn or (before.kind is AnswerKind.ADDRESSED and read.denies)
    return worth, replace(before, is_torn=is_torn)


def _answered(
    read: _Read, number: int, of_section: AnswerKind | None, last: str, names: Names
) -> Iterator[Answered]:
    """Yield what a line answers, a finding each; `last` is the finding that was answered before."""
    stated = read.kind or of_section
    refers = () if stated else referred(read.text, last, names)
    apart, unclear = {}, False
    if read.place not in IN_SENTENCES:
        apart = leading_ids.kinds_apart(read.text[:MAX_TEXT], read.span)
        unclear = is_silencing(read.said) or not (stated or refers or tells_of_deed(read.said))
    for code in read.span.codes:
        if kind := apart.get(code, stated or AnswerKind.ADDRESSED):
            said = Answered(code, kind, read.text[:MAX_TEXT], number, read.place, unclear, refers)
            yield said.checked() if read.place == "row" else said


def _answers_of(
    lines: list[Line], index: int, spans: list[Span], place: LineContext, names: Names
) -> Iterator[_Read]:
    """Yield what this line answers.

    In a section that repeats findings or lists open ones, a line is an answer only if it says what was done.
    """
    line = lines[index]
    if (heading := line.heading) is not None:
        reads = _in_heading(lines, index, heading[1], names)
    elif "|" in line.text and (place.head or is_row(line.text)):
        reads = _in_row(line.text, place, names)
    else:
        reads = _in_line(lines, index, spans, place)
    for read in reads:
        silent = place.role in {Role.RECAP, Role.OPEN} or (not place.kind and says_nothing(read.said))
        if silent and read.kind is None:
            continue
        yield read


def _below_quote(lines: list[Line], index: int, names: Names) -> Iterator[_Read]:
    """Read the text below a quoted finding, which answers it (ANS-6)."""
    if reply := reply_below(lines, index, names):
        yield _Read(reply.span, "quote", reply.kind, _told(reply.text))


def _in_heading(lines: list[Line], index: int, heading: str, names: Names) -> Iterator[_Read]:
    """Read a heading that names a finding: `### Response to <id>`, `#### Limits (Addressing <id>)`."""
    for span in names.spans(heading):
        led = leading_ids.after_leading_id(heading, 0, span)
        numbers = not heading[: span.start].strip(leading_ids.MARKS) and heading.startswith(". ", span.end)
        around = heading[: span.start] + heading[span.end :]
        is_sure = led or numbers or leading_ids.CLAIM_BEFORE.search(heading[: span.start])
        if span.weak and not is_sure and around.strip(leading_ids.MARKS):
            continue
        rest = heading[led:].strip(leading_ids.MARKS) if led else ""
        kind = stated_kind(rest) if rest else None
        told = _paragraph(lines, index)
        below = section_kind(lines, index)
        if kind is None and below is None:  # the words below the heading may say it: "Won't fix: ..."
            kind = answer_kind(told)
        yield _Read(span, "heading", below or kind, _told(rest) if rest else told, told)


def _in_row(text: str, place: LineContext, names: Names) -> Iterator[_Read]:
    """Read a table row with the finding in its first cell, or in another if the table says what was done."""
    cells = row_cells(text)
    found = ((at, names.spans(cell)) for at, cell in enumerate(cells))
    column, spans = next(filter(itemgetter(1), found), (0, []))
    if not spans or not _tells(cells, column, place, spans[0]):
        return
    plain = [cell.strip(" *`") for cell in cells]
    told = [cell for at, cell in enumerate(plain) if at > column and not place.is_describing(at)]
    others = [cell for at, cell in enumerate(plain[:column]) if not place.is_describing(at)] + told
    rest = cells[column][spans[-1].end :].strip(" *`")
    alone = next(filter(is_answer, [*others, rest]), "")
    if not alone and (place.describes or any(map(is_open, others))):
        return
    # A cell with nothing but an answer counts wherever it is, otherwise the beginning of the next cell.
    words = " ".join(filter(None, [_told(other) if other == alone else other for other in told]))
    said = (alone or "".join(told[:1]), rest.lstrip(" (:-–—"), words)
    kind = next(filter(None, map(answer_kind, said)), None)
    for each in spans:
        yield _Read(each, "row", kind, words if told else rest.lstrip(" :-–—*").strip())


def _tells(cells: tuple[str, ...], column: int, place: LineContext, span: Span) -> bool:
    """Whether the cell that names a finding answers it.

    A cell other than the first does so only in a history of revisions or in a table of what was done.
    """
    before = cells[column][: span.start]
    is_first = not before.strip(leading_ids.MARKS)
    if not is_first and (span.weak or not place.head):
        return False
    if not column:
        return True
    if not place.tells:
        return False
    if REVISION.fullmatch(cells[0]) or leading_ids.CLAIM_BEFORE.search(before):
        return True
    column_names = place.head[column].lower() if column < len(place.head) else ""
    return is_first and (
        COUNTER.fullmatch(cells[0]) is not None or NAMING_COLUMN.search(column_names) is not None
    )


def _in_line(lines: list[Line], index: int, spans: list[Span], place: LineContext) -> Iterator[_Read]:
    """Read a list item or line that begins with the finding, ticks it off, or claims that it is done."""
    text = lines[index].text
    marker = MARKER.match(text)
    start, box = (marker.end(), (marker["box"] or "").strip()) if marker else (0, "")
    sign = SYMBOLS.get(text[start : start + 1])
    if sign:
        start += len(text[start:]) - len(text[start + 1 :].lstrip("\ufe0f "))
    line = _Entry(lines, index, start, ticked=bool(box) and box != "[ ]", waiting=box == "[ ]", sign=sign)
    first = spans[0]
    if end := (
        leading_ids.after_leading_id(text, start, first)
        or leading_ids.after_titled_id(text, start, first, place)
        or leading_ids.after_bold_id(text, start, first)
        or line.end_if_alone(first)
    ):
        yield from line.read_leading(first, end)
    elif label := leading_ids.label_before(text, start, first):
        yield from line.read_labelled(spans if label[1] else spans[:1], label[1])
    else:
        before: tuple[int, AnswerKind | None] = (0, None)
        for span in spans:
            carried = before[1] if leading_ids.JOINED.fullmatch(text, before[0], span.start) else None
            for read in line.read_inside(span, place, carried):
                yield read
                before = (span.end, read.kind if read.place == "claim" else None)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line whose text begins at `start`; its box is ticked, waiting to be ticked, or missing."""

    lines: list[Line]
    index: int
    start: int
    ticked: bool
    waiting: bool
    sign: AnswerKind | None  # what a sign before the text says

    @property
    def text(self) -> str:
        return self.lines[self.index].text

    def end_if_alone(self, span: Span) -> int:
        """Return the end of an id that is the whole line, if a tick or the lines below answer it; else 0."""
        if self.text[self.start : span.start].strip(leading_ids.MARKS) or self.text[span.end :].strip(
            leading_ids.MARKS
        ):
            return 0
        return span.end if self.ticked or _kind_below(self.lines, self.index) else 0

    def read_leading(self, span: Span, end: int) -> Iterator[_Read]:
        """Read a line that begins with the finding and, after `end`, says what became of it."""
        rest = self.text[end:].strip(" *_`")
        said = rest or self._below()
        beside = BESIDE.match(self.text, span.end, end)
        stated = stated_kind(beside["said"]) if beside and is_answer(beside["said"]) else None
        kind = answer_kind(said) or self.sign or stated or _kind_below(self.lines, self.index)
        kind = stated if kind is AnswerKind.ADDRESSED and stated else kind
        if kind or not (self.waiting or is_open(rest)):
            yield _Read(span, "checkbox" if self.ticked else "lead-in", kind, _told(said))

    def _below(self) -> str:
        """Return the paragraph below the line; what stands below a list item must be indented."""
        below = self.lines[self.index + 1].text if self.index + 1 < len(self.lines) else ""
        return (
            "" if self.start and below[:1].strip(" \t") == below[:1] else _paragraph(self.lines, self.index)
        )

    def read_labelled(self, spans: list[Span], kind: AnswerKind | None) -> Iterator[_Read]:
        """Read a line that begins with a label before the findings."""
        for span in spans:
            behind = self.text[span.end : span.end + MAX_TEXT].strip(" *_`():,-–—")
            said = kind or answer_kind(behind) or _kind_below(self.lines, self.index)
            yield _Read(span, "lead-in", said, behind)

    def read_inside(self, span: Span, place: LineContext, carried: AnswerKind | None) -> Iterator[_Read]:
        """Read a line with the finding inside it; `carried` is the claim about the one before it, if any."""
        words = self.text[self.start : self.start + MAX_TEXT].strip()
        if self.ticked and not span.weak:
            yield _Read(span, "checkbox", AnswerKind.ADDRESSED, words)
        elif (end := leading_ids.after_responding(self.text, self.start, span)) and not self.waiting:
            said = self.text[end : end + MAX_TEXT].strip(" *_`,")
            yield _Read(span, "lead-in", answer_kind(said), _told(said))
        elif (kind := carried or leading_ids.claimed_kind(self.text, self.start, span)) and not self.waiting:
            yield _Read(span, "claim", kind, words)
        elif self.start and leading_ids.closes(self.text, self.start, span):
            is_told = (
                place.role is Role.PLAIN and ENDING.fullmatch(self.text, span.end) and tells_of_deed(words)
            )
            if place.role is Role.RESPONSE or is_told:
                yield _Read(span, "list", None, words)


def _kind_below(lines: list[Line], index: int) -> AnswerKind | None:
    """Return what the details below a list item or a lead-in say became of the finding, or None."""

    def goes_on(line: Line) -> bool:
        is_detail = line.text.strip() and not line.heading and not FULL.search(line.text)
        return line.mode is not STATED or bool(is_detail)

    return first_kind(takewhile(goes_on, lines[index + 1 : index + 9]))


def _told(rest: str) -> str:
    """Return the words of an answer; empty if they only name its kind."""
    return "" if rest.strip(SIGNS).lower() in ANSWER_WORDS else rest


def _paragraph(lines: list[Line], index: int) -> str:
    """Return the first paragraph among the twelve lines below a line."""
    taken: list[str] = []
    for line in lines[index + 1 : index + 13]:
        if line.heading or FULL.search(line.text):
            break
        if line.text.strip():
            taken.append(line.text.strip())
        elif taken:
            break
    return "\n".join(taken)
