"""Reading DISAGREE blocks: all their shapes, their parts, and what is wrong with them (DIS-2)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from disputes.protocol.responses.answer_kinds import AnswerKind, stated_kind
from disputes.protocol.text.documents import STATED, Line, Problem, joined, trimmed
from disputes.protocol.text.mentions import Names, Span
from tasks.text.regex import regex

INVALID_REF = "INVALID_DISAGREE_REF"
MALFORMED = "MALFORMED_DISAGREE"
MISSING_POSITION = "MISSING_POSITION"

HEADING = regex(
    r" {0,3}#{2,4}[ \t]+(?:\d{1,3}[.)]\s+)?[*_\[]{0,3}DISAGREE(?:MENT|S)?\b"
    r"(?P<colon>[*_\]]{0,3}\s{0,3}[:\-–—])?(?P<rest>.*)$",
    re.IGNORECASE,
)
# `DISAGREE: <id>` in a line; in backticks it is only mentioned.
INLINE = regex(r"(?<![\w`*#\"“'])[*_]{0,3}DISAGREE[*_]{0,3}\s?:[*_]{0,3}\s{0,3}[*_`\[(]{0,4}")
# What may come right before an id in a heading: "I disagree with <id>", "Disagreement on <id>".
DECLINING = regex(
    r"\bdisagree(?:ments?|s|d|ing)?[*_]{0,3}\s{0,3}(?:with|on|about|[:–—-])?\s{0,3}(?:the\s)?(?:issue\s|finding\s)?"
    r"[*_`\[(]{0,4}$",
    re.IGNORECASE,
)
FOREIGN = regex(r"[\s:*`\[(]{0,8}(?P<code>[A-Z][A-Z0-9-]{0,30}\d)\b")
LABEL = regex(r"^\s*(?:[-*+]\s+)?(?:\*\*|__)(?P<label>[^*:]{3,40}):?(?:\*\*|__):?\s*(?P<text>.*)$")
LABELS = {
    **dict.fromkeys(
        ["reviewer concern", "reviewer's concern", "reviewer position", "reviewer issue", "quote"],
        "concern",
    ),
    **dict.fromkeys(
        ["engineer position", "coder position", "engineer's position", "coder's position", "position"]
        + ["my position", "our position", "engineer response", "coder response"],
        "position",
    ),
    **dict.fromkeys(["rationale", "reason", "reasons", "reasoning", "justification"], "rationale"),
    **dict.fromkeys(
        ["alternative approach (if any)", "alternative approach", "alternative", "alternatives"]
        + ["alternative view", "alternative (if any)", "proposed alternative", "alternative proposal"],
        "alternative",
    ),
    "request": "request",
}


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One finding that the coder declines, in the coder's own words (DIS-2).

    `problems` says what is wrong with it: INVALID_DISAGREE_REF, MALFORMED_DISAGREE, and as a mere
    warning MISSING_POSITION. A malformed one is a draft: people see it all the same, with its whole
    text as the position.
    """

    code: str
    position: str
    rationale: str
    concern: str
    alternative: str
    line: int
    request: str = ""
    problems: tuple[str, ...] = ()

    @property
    def is_draft(self) -> bool:
        """Whether something is wrong with it that the coder must correct."""
        return any(problem != MISSING_POSITION for problem in self.problems)


@dataclass(frozen=True, slots=True)
class _Start:
    """The beginning of a block: its line, the codes it names, and the level of its heading (0: none)."""

    index: int
    codes: tuple[str, ...]
    level: int
    rest: str = ""  # the rest of the line after the id


def heading_of_block(line: Line, names: Names) -> re.Match[str] | None:
    """Match a line that is a heading which opens a block."""
    if line.mode is not STATED or "#" not in line.text[:4]:
        return None
    match = HEADING.match(line.text)
    if match is None or match["colon"] or not match["rest"].strip(" *_]"):
        return match
    # "Disagree with the schema" is an ordinary title of a section, while "Disagree <id>" opens a block.
    spans = names.spans(match["rest"])
    return match if spans and not match["rest"][: spans[0].start].strip(" \t*_`[(") else None


def read_blocks(lines: list[Line], names: Names) -> tuple[list[Disagreement], list[Problem]]:
    """Return the blocks of a document, one for each finding, and every fault with its line and reason.

    Of two blocks on one finding, the first well-formed one counts. A block on an unknown finding is kept
    with its problem, and the blocks after it are read all the same (VAL-2).
    """
    faults: list[Problem] = []
    found: dict[str, Disagreement] = {}
    starts = list(_starts(lines, names))
    ends = {start.index for start in starts}
    for start in starts:
        line = lines[start.index]
        if not start.codes:
            faults.append(Problem(line.number, "a DISAGREE heading names its finding: ISSUE-R1-001"))
        block = _block(lines, start, ends)
        for code in start.codes or ("",):
            if code and code in found:
                faults.append(Problem(line.number, f"{code} has a second DISAGREE block"))
                if not found[code].is_draft:
                    continue
            read = _judged(replace(block, code=code), names)
            if code:
                faults += _faults(read)
            found[code or f"\0{line.number}"] = read
    return list(found.values()), faults


def _starts(lines: list[Line], names: Names) -> Iterator[_Start]:
    for index, line in enumerate(lines):
        if line.mode is not STATED:
            continue
        text = line.text
        if text.lstrip(" ")[:1] == "#":
            heading = line.heading
            if heading is None:
                continue
            if (match := heading_of_block(line, names)) is not None:
                spans = names.spans(match["rest"])
                codes = spans[0].codes if spans else _foreign(match["rest"], names)
                yield _Start(index, codes, heading[0], _behind(match["rest"], spans))
            elif (spans := names.spans(heading[1])) and _declines(lines, index, heading[1], spans[0]):
                yield _Start(index, spans[0].codes, heading[0], _behind(heading[1], spans))
        elif "DISAGREE" in text and (match := INLINE.search(text)):
            spans = [span for span in names.spans(text) if span.start == match.end()]
            foreign = () if spans else _foreign(text[match.end() :], names)
            if spans or foreign:
                yield _Start(index, spans[0].codes if spans else foreign, 0, _behind(text, spans))


def _foreign(text: str, names: Names) -> tuple[str, ...]:
    """Return an id that is not among the known findings; empty if there is none or no findings are known."""
    match = FOREIGN.match(text) if names.known is not None else None
    return (match["code"],) if match else ()


def _behind(text: str, spans: list[Span]) -> str:
    return text[spans[0].end :].lstrip(" \t*_`])|:–—-.,").rstrip(" \t*_|") if spans else ""


def _declines(lines: list[Line], index: int, heading: str, span: Span) -> bool:
    """Whether a section on a finding declines it, by its heading or by a position below it."""
    said = stated_kind(heading[span.end :]), section_kind(lines, index)
    return DECLINING.search(heading[: span.start]) is not None or AnswerKind.DECLINED in said


STATUS_LABELS = frozenset(
    ["status", "response", "resolution", "disposition", "answer", "action", "decision", "outcome", "result",
     "verdict", "engineer position", "coder position", "position", "engineer response", "coder response",
     "our response", "reply", "stance"]
)  # fmt: skip
STATUS = regex(
    r"\s*(?:[-*+]\s+)?(?:\*\*|__)?(?P<label>[A-Za-z][A-Za-z' ]{2,28}?)"
    r"(?::(?:\*\*|__)|(?:\*\*|__)?\s?:)\s*(?P<text>.*)$"
)
LOOK_AHEAD = 40


def section_kind(lines: list[Line], index: int) -> AnswerKind | None:
    """Return what the lines below a heading say became of the finding (`**Status:** Deferred`), or None."""
    return first_kind(takewhile(lambda line: not line.heading, lines[index + 1 : index + 1 + LOOK_AHEAD]))


def first_kind(lines: Iterable[Line]) -> AnswerKind | None:
    """Return what the first of these lines that has a label for it says became of a finding, or None."""
    for line in lines:
        match = STATUS.match(line.text) if line.mode is STATED and ":" in line.text else None
        if match and match["label"].strip().lower() in STATUS_LABELS and (kind := stated_kind(match["text"])):
            return kind
    return None


def _block(lines: list[Line], start: _Start, starts: set[int]) -> Disagreement:
    """Return the block without its code."""
    body = _body(lines, start, starts)
    parts = _parts(body)
    texts = {name: joined(trimmed(block)).strip() for name, block in parts.items()}
    concern = re.sub(r"^[ \t]*> ?", "", texts.get("concern", ""), flags=re.MULTILINE).strip()
    position = _without_word(texts.get("position", ""))
    whole = "" if parts else joined(trimmed(body)).strip() or start.rest
    if not parts and not start.level:
        first = joined(list(takewhile(lambda line: line.text.strip(), body))).strip()
        whole = "\n".join(filter(None, [start.rest, first]))
    problems = [] if texts.get("rationale") and concern else [MALFORMED]
    return Disagreement(
        code="",
        position=position or texts.get("rationale", "") or whole or _without_word(texts.get("position", "")),
        rationale=texts.get("rationale", ""),
        concern=concern,
        alternative=texts.get("alternative", ""),
        line=lines[start.index].number,
        request=texts.get("request", ""),
        problems=tuple(problems if position else [*problems, MISSING_POSITION]),
    )


def _body(lines: list[Line], start: _Start, starts: set[int]) -> list[Line]:
    """Return the lines of a block, up to the next block or the next heading of the same or a higher level."""
    end = start.index + 1
    while end < len(lines) and end not in starts:
        below = lines[end].heading if "#" in lines[end].text[:4] else None
        if below and (not start.level or below[0] <= start.level):
            break
        end += 1
    return lines[start.index + 1 : end]


def _parts(body: list[Line]) -> dict[str, list[Line]]:
    """Return the labelled parts of a block, each with the lines that follow its label."""
    parts: dict[str, list[Line]] = {}
    current = ""
    for line in body:
        label = LABEL.match(line.text) if line.mode is STATED and ":" in line.text else None
        name = LABELS.get(label["label"].strip().lower().replace("’", "'")) if label else None
        if label and name:
            current = name
            parts.setdefault(current, []).append(Line(line.number, label["text"], line.mode))
        elif current:
            parts[current].append(line)
    return parts


def _without_word(position: str) -> str:
    """Return a position without the mere word DISAGREE at its beginning."""
    match = re.match(r"[*_]{0,3}DISAGREE[DS]?\b[*_]{0,3}[\s.:,–—-]*", position, re.IGNORECASE)
    return position[match.end() :].strip() if match else position


def _judged(block: Disagreement, names: Names) -> Disagreement:
    """Return the block, with a problem if its finding is not known."""
    if block.code and names.knows(block.code):
        return block
    return replace(block, problems=(INVALID_REF, *block.problems))


def _faults(block: Disagreement) -> Iterator[Problem]:
    """Yield what is wrong with the block, in words for the agent that wrote it."""
    if INVALID_REF in block.problems:
        yield Problem(block.line, f"{block.code} is not a finding of this review")
    if not block.rationale:
        yield Problem(block.line, f"the block on {block.code} has no **Rationale:** with text")
    if not block.concern:
        yield Problem(block.line, f"the block on {block.code} does not quote the **Reviewer Concern:**")
