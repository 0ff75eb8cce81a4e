"""Reading a coder's response: one answer per finding, and its DISAGREE blocks (§12, §19.5)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from disputes.protocol.documents import DocumentError, Line, Mode, Problem, joined, scan
from disputes.protocol.reviews import CODE, MORE_CODES, SHORT_CODE, codes_in


class AnswerKind(StrEnum):
    ADDRESSED = "addressed"
    DECLINED = "declined"
    DISCARDED = "discarded"
    DEFERRED = "deferred"
    PARTLY = "partly"


ANSWER_WORDS: dict[str, AnswerKind] = {
    **{kind.value: kind for kind in AnswerKind},
    "fixed": AnswerKind.ADDRESSED,
    "done": AnswerKind.ADDRESSED,
    "resolved": AnswerKind.ADDRESSED,
    "implemented": AnswerKind.ADDRESSED,
    "disagree": AnswerKind.DECLINED,
    "rejected": AnswerKind.DECLINED,
    "dropped": AnswerKind.DISCARDED,
    "later": AnswerKind.DEFERRED,
    "partially": AnswerKind.PARTLY,
    "partial": AnswerKind.PARTLY,
}
DISAGREE = re.compile(
    rf"^ {{0,3}}#{{2,4}}\s+(?:\*\*)?DISAGREE\b:?(?:\*\*)?\s*[*`\[]*(?P<code>{CODE})?", re.IGNORECASE
)
CODES = rf"(?P<codes>{CODE}{MORE_CODES}|{SHORT_CODE}\s+(?:through|to)\s+{SHORT_CODE})"
ROW = re.compile(rf"^\s*\|\s*[*`\[]*{CODES}(?P<rest>.*)$", re.IGNORECASE)
BULLET = re.compile(
    r"^\s*(?:[-*]\s+|\d+\.\s+|#{2,4}\s+)?(?:\[[xX ]\]\s*)?"
    rf"[*`\[]*{CODES}[*`\]]*(?:\s*\([^)]*\))?\s*[:\-–—]+"
    r"[*\s]*(?P<rest>.*)$",
    re.IGNORECASE,
)
# Words that may stand before the answer: "I disagree", "was fixed".
FILLERS = {"i", "we", "is", "was", "has", "have", "been", "be", "did", "do", "will", "now", "yet"}
DENIALS = {"not", "never", "cannot"}
RULE = re.compile(r"^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$")
LABEL = re.compile(r"^\s*\*\*(?P<label>[^*:]{3,40}):?\*\*:?\s*(?P<text>.*)$")
LABELS = {
    "reviewer concern": "concern",
    "engineer position": "position",
    "coder position": "position",
    "rationale": "rationale",
    "alternative approach (if any)": "alternative",
    "alternative approach": "alternative",
    "alternative": "alternative",
    "request": "request",
}


@dataclass(frozen=True, slots=True)
class Answered:
    """What the coder says it did about one finding."""

    code: str
    kind: AnswerKind
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One DISAGREE block, in the coder's own words."""

    code: str
    position: str
    rationale: str
    concern: str
    alternative: str
    line: int


@dataclass(frozen=True, slots=True)
class ReadResponse:
    """A response as read; the text itself is kept beside it."""

    answers: tuple[Answered, ...]
    disagreements: tuple[Disagreement, ...]
    text: str


def read_response(document: str | Mapping[str, Any]) -> ReadResponse:
    """A response out of Markdown or of its structured form. Raises DocumentError with every problem."""
    return _from_markdown(document) if isinstance(document, str) else _from_structure(document)


def _from_markdown(text: str) -> ReadResponse:
    lines = scan(text)
    problems: list[Problem] = []
    disagreements = list(_disagreements(lines, problems))
    answers = _answers(lines)
    for block in disagreements:
        answers[block.code] = Answered(block.code, AnswerKind.DECLINED, block.position, block.line)
    declined = {block.code for block in disagreements}
    for answer in answers.values():
        if answer.kind is AnswerKind.DECLINED and answer.code not in declined:
            problems.append(
                Problem(
                    answer.line, f"{answer.code} is declined without a block `## DISAGREE: {answer.code}`"
                )
            )
    if problems:
        raise DocumentError("malformed_response", sorted(problems, key=lambda problem: problem.line))
    return ReadResponse(tuple(answers.values()), tuple(disagreements), text)


def _answers(lines: Iterable[Line]) -> dict[str, Answered]:
    """The first answer to each finding: a table row or a line that begins with its code (H1-c)."""
    found: dict[str, Answered] = {}
    for line in lines:
        if line.mode is not Mode.STATED or DISAGREE.match(line.text):
            continue
        if match := ROW.match(line.text):
            first, *cells = [cell.strip(" *`") for cell in match["rest"].split("|")]
            # The cell that holds nothing but an answer, wherever it is, or else how the second one begins.
            alone = next((cell for cell in [*cells, first] if _is_answer(cell)), "")
            kind = _answer_kind(alone or "".join(cells[:1]))
        elif match := BULLET.match(line.text):
            cells = [match["rest"].strip(" *`")]
            kind = _answer_kind(cells[0])
        else:
            continue
        text = " ".join(cell for cell in cells if cell and cell.lower() not in ANSWER_WORDS)
        for code in codes_in(match["codes"]):
            found.setdefault(code, Answered(code, kind, text[:4000], line.number))
    return found


def _words(text: str) -> list[str]:
    """The words with which a text begins."""
    plain = re.sub(r"\b[a-z]*n['’]t\b", "not", text[:80].lower())
    return [word for word in re.split(r"[^a-z]+", plain) if word and word not in FILLERS]


def _is_answer(cell: str) -> bool:
    """Whether a cell holds words of an answer and no others."""
    words = [word for word in _words(cell) if word not in DENIALS]
    return bool(words) and len(cell) <= 80 and all(word in ANSWER_WORDS for word in words)


def _answer_kind(text: str) -> AnswerKind:
    """What a text says at its beginning; a finding that is only named is addressed, a denied one left out."""
    first = next(iter(_words(text)), "")
    return AnswerKind.DISCARDED if first in DENIALS else ANSWER_WORDS.get(first, AnswerKind.ADDRESSED)


def _disagreements(lines: list[Line], problems: list[Problem]) -> Iterable[Disagreement]:
    starts = [
        (index, match)
        for index, line in enumerate(lines)
        if line.mode is Mode.STATED and (match := DISAGREE.match(line.text))
    ]
    seen: set[str] = set()
    for index, match in starts:
        line = lines[index]
        if not match["code"]:
            problems.append(Problem(line.number, "a DISAGREE heading names its finding: ISSUE-R1-001"))
            continue
        code = match["code"].upper()
        if code in seen:
            problems.append(Problem(line.number, f"{code} has a second DISAGREE block"))
            continue
        seen.add(code)
        parts = _parts(lines, index)
        if not parts.get("rationale"):
            problems.append(Problem(line.number, f"the block on {code} has no **Rationale:** with text"))
        if not parts.get("concern"):
            problems.append(
                Problem(line.number, f"the block on {code} does not quote the **Reviewer Concern:**")
            )
        yield Disagreement(
            code=code,
            position=parts.get("position") or parts.get("rationale", ""),
            rationale=parts.get("rationale", ""),
            concern=parts.get("concern", ""),
            alternative=parts.get("alternative", ""),
            line=line.number,
        )


def _parts(lines: list[Line], start: int) -> dict[str, str]:
    """The labelled parts of a block, which ends at the next heading of its level or above."""
    heading = lines[start].heading
    level = heading[0] if heading else 2
    parts: dict[str, list[Line]] = {}
    current = ""
    for index in range(start + 1, len(lines)):
        line = lines[index]
        if (below := line.heading) and below[0] <= level:
            break
        label = LABEL.match(line.text) if line.mode is Mode.STATED else None
        name = LABELS.get(label["label"].strip().lower()) if label else None
        if label and name:
            current = name
            parts.setdefault(current, []).append(Line(line.number, label["text"], line.mode))
        elif current:
            parts[current].append(line)
    texts = {name: joined(_without_rule(block)).strip() for name, block in parts.items()}
    if concern := texts.get("concern"):
        texts["concern"] = re.sub(r"^[ \t]*> ?", "", concern, flags=re.MULTILINE).strip()
    return texts


def _without_rule(block: list[Line]) -> list[Line]:
    """The lines without the rules and blank lines at their end, which only part them from what follows."""
    end = len(block)
    while end and (
        not block[end - 1].text.strip()
        or (block[end - 1].mode is Mode.STATED and RULE.match(block[end - 1].text))
    ):
        end -= 1
    return block[:end]


def _from_structure(data: Mapping[str, Any]) -> ReadResponse:
    problems: list[Problem] = []
    answers: list[Answered] = []
    disagreements: list[Disagreement] = []
    seen: set[str] = set()
    entries = data.get("answers", [])
    if not isinstance(entries, list):
        raise DocumentError("malformed_response", [Problem(0, "answers must be a list")])
    for number, entry in enumerate(entries, start=1):
        told = entry.items() if isinstance(entry, dict) else ()
        fields = {key: str(value) for key, value in told if value is not None}
        code = fields.get("finding", "").upper()
        kind = ANSWER_WORDS.get(fields.get("kind", "").lower())
        if not code or kind is None:
            kinds = ", ".join(AnswerKind)
            problems.append(Problem(number, f"answer {number} needs a finding and a kind: {kinds}"))
            continue
        if code in seen:
            problems.append(Problem(number, f"answer {number} answers {code} a second time"))
            continue
        seen.add(code)
        answers.append(Answered(code, kind, fields.get("text", ""), number))
        if kind is AnswerKind.DECLINED:
            if not fields.get("rationale", "").strip():
                problems.append(Problem(number, f"answer {number} declines {code} without a rationale"))
            disagreements.append(
                Disagreement(
                    code=code,
                    position=fields.get("position") or fields.get("text") or fields.get("rationale", ""),
                    rationale=fields.get("rationale", ""),
                    concern=fields.get("concern", ""),
                    alternative=fields.get("alternative", ""),
                    line=number,
                )
            )
    if problems:
        raise DocumentError("malformed_response", problems)
    return ReadResponse(tuple(answers), tuple(disagreements), str(data.get("text") or ""))
