"""Reading a coder's response: one answer per finding, and its DISAGREE blocks (ANS-1, DIS-2)."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from disputes.protocol.responses.answer_kinds import ANSWER_WORDS, HAND_IN_KINDS, AnswerKind, stated_kind
from disputes.protocol.responses.answers import MAX_TEXT, Answered, Mention, read_answers
from disputes.protocol.responses.disagree_blocks import MALFORMED, MISSING_POSITION, Disagreement, read_blocks
from disputes.protocol.responses.references import resolved
from disputes.protocol.text.data import Data, data_in
from disputes.protocol.text.documents import DocumentError, Line, Problem, scan
from disputes.protocol.text.front_matter import check_keys, read_front_matter
from disputes.protocol.text.mentions import FULL, Names
from disputes.protocol.text.tags import read_tags
from tasks.configuration.yaml_files import Lines
from tasks.text.regex import regex

__all__ = [
    "ANSWER_WORDS", "AnswerKind", "Answered", "Disagreement", "Mention", "ReadResponse", "read_response"
]  # fmt: skip
RESPONSE_KEYS = ("answers",)
ANSWERS = frozenset(["answer", "finding", "issue", "item", "point"])  # elements in tags
HAS_TAGS = regex(r"(?:^|\n)[ \t]*<[A-Za-z_][\w-]*[\s>]")
# What the data of a response may be known by; a mapping may have the ids themselves for its keys.
LISTS = ("answers", "responses", "ISSUE-R")
SPELLED = regex(r"(?<![\w-])ISSUE(?:[_ ]R(\d{1,2})[-_ ]|-R(\d{1,2})_)(\d{1,3})(?![\w-])", re.IGNORECASE)
# The parts of an answer by the other names that they are given.
PARTS = {
    **dict.fromkeys(["id", "code", "issue", "finding_id"], "finding"),
    **dict.fromkeys(["status", "action", "answer", "resolution", "disposition"], "kind"),
    **dict.fromkeys(["comment", "note", "details", "explanation", "response", "description"], "text"),
    **dict.fromkeys(["reason", "justification"], "rationale"),
}
ENTRY_KEYS = ("finding", "kind", "text", "position", "rationale", "concern", "alternative")


@dataclass(frozen=True, slots=True)
class ReadResponse:
    """A response as read, with its text.

    `elsewhere` has the answers to findings that are not among the known ones, such as those of another
    review. `mentions` has the findings that are named without an answer, `warnings` what is wrong, line by
    line.
    """

    answers: tuple[Answered, ...]
    disagreements: tuple[Disagreement, ...]
    text: str
    mentions: tuple[Mention, ...] = ()
    warnings: tuple[Problem, ...] = ()
    elsewhere: tuple[Answered, ...] = ()


def read_response(
    document: str | Mapping[str, Any],
    known: Collection[str] | None = None,
    *,
    strict: bool = False,
) -> ReadResponse:
    """Read a response from Markdown, from JSON, or from YAML front matter above Markdown.

    `known` are the codes of the findings that it may answer, as their review prints them; if it is None,
    every canonical code counts. A malformed DISAGREE block is kept as a draft with its problems (DIS-2).

    Raises DocumentError if the document is too large or its structure is malformed. If `strict`, it is also
    raised, with every problem, for a malformed block and for a finding that is declined without one.
    """
    if not isinstance(document, str):
        return _from_structure(document)
    document = SPELLED.sub(_as_printed, document)
    if front := read_front_matter(document, ("answers",)):
        data, prose = front
        return _with_prose(_answers_of(data), prose, document, Names(known), strict)
    lines = scan(document)
    if (found := data_in(document, lines, LISTS, _entries) or _in_tags(lines)) and found.entries:
        read = _from_structure({"answers": found.entries})
        return _with_prose(read, found.prose, document, Names(known), strict)
    return _from_markdown(document, Names(known), strict)


def _as_printed(match: re.Match[str]) -> str:
    """Return an id as the program prints it, which is written with other marks between its parts."""
    return f"ISSUE-R{int(match[1] or match[2])}-{match[3].zfill(3)}"


def _in_tags(lines: Sequence[Line]) -> Data | None:
    """Return the answers in tags, as in XML; None if one of them says nothing that can be read."""
    found = read_tags(lines, HAS_TAGS, _is_answer, _is_part)
    # What an element holds that has no parts is all that is said of the finding.
    told = [
        {**dict.fromkeys(["kind", "text", "rationale"], each.get("problem", "")), **_named(each)}
        for each in (found.entries if found else ())
    ]
    entries = _entries({"answers": told})
    is_read = entries and all(stated_kind(each["kind"]) for each in entries)
    return found._replace(entries=entries) if found and entries and is_read else None


def _is_part(key: str) -> bool:
    """Whether an element in tags is a part of an answer."""
    return key.replace(" ", "_") in {*PARTS, *ENTRY_KEYS}


def _is_answer(name: str, told: Mapping[str, str]) -> bool:
    """Whether an element in tags is an answer: by its name, or as it names a finding in an attribute."""
    return name in ANSWERS or any(FULL.fullmatch(value) for value in told.values())


def _entries(data: Mapping[str, Any]) -> list[Any] | None:
    """Return the answers in data, each by our names for its parts; None if they are none (ANS-1)."""
    listed = next((data[name] for name in LISTS if isinstance(data.get(name), list | Mapping)), data)
    if isinstance(listed, Mapping):
        named = {SPELLED.sub(_as_printed, str(name)): said for name, said in listed.items()}
        listed = [
            {"finding": name, **(said if isinstance(said, Mapping) else {"kind": said, "text": said})}
            for name, said in named.items()
            if FULL.fullmatch(name)
        ]
    told = [_named(entry) for entry in listed if isinstance(entry, Mapping)]
    is_answers = len(told) == len(listed) and all("finding" in each and "kind" in each for each in told)
    return told if is_answers else None


def _named(entry: Mapping[str, Any]) -> dict[str, Any]:
    ours = {name: value for name, value in entry.items() if name not in PARTS}
    return {**{PARTS[name]: value for name, value in entry.items() if name in PARTS}, **ours}


def _with_prose(front: ReadResponse, prose: str, text: str, names: Names, strict: bool) -> ReadResponse:
    """Return the answers of the data in a response, and those of the Markdown beside it to other findings.

    A finding that it declines and the data answers otherwise counts as
    declined; if `strict`, that raises DocumentError.
    """
    below = _from_markdown(prose, names, strict=False)
    torn = {problem.line: problem for problem in _torn(front, below)}
    problems = sorted([*below.warnings, *torn.values()], key=lambda problem: problem.line)
    if problems and strict:
        raise DocumentError("malformed_response", problems)
    declined = {block.code for block in below.disagreements if block.line in torn}
    read = replace(
        front, answers=tuple(each for each in front.answers if each.code not in declined), text=text
    )
    return replace(_joined(read, below), warnings=tuple(problems))


def _answers_of(data: Lines) -> ReadResponse:
    """Return what the front matter itself says, with its line numbers."""
    check_keys(data, RESPONSE_KEYS, "the front matter")
    entries = data.get("answers") or []
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Lines):
            check_keys(entry, ENTRY_KEYS, "an answer")
    read = _from_structure({**data, "answers": entries})
    at = {answer.code: entry.line for answer, entry in zip(read.answers, entries, strict=True)}
    return replace(
        read,
        answers=tuple(replace(each, line=at[each.code]) for each in read.answers),
        disagreements=tuple(replace(each, line=at[each.code]) for each in read.disagreements),
    )


def _torn(front: ReadResponse, below: ReadResponse) -> Iterator[Problem]:
    """Yield a problem for each finding that the prose declines and the front matter answers otherwise."""
    kinds = {answer.code: answer.kind for answer in front.answers}
    for block in below.disagreements:
        kind = kinds.get(block.code, AnswerKind.DECLINED)
        if kind is not AnswerKind.DECLINED:
            reason = f"the prose declines {block.code}, the data beside it says {kind.value}"
            yield Problem(block.line, reason)


def _joined(read: ReadResponse, below: ReadResponse) -> ReadResponse:
    """Return the response together with what only the prose says."""
    answered = {each.code for each in read.answers}
    blocked = {each.code for each in read.disagreements}
    return replace(
        read,
        answers=(*read.answers, *(each for each in below.answers if each.code not in answered)),
        disagreements=(
            *read.disagreements,
            *(each for each in below.disagreements if each.code not in blocked),
        ),
        mentions=tuple(each for each in below.mentions if each.code not in answered),
        elsewhere=tuple(each for each in below.elsewhere if each.code not in answered),
    )


def _from_markdown(text: str, names: Names, strict: bool) -> ReadResponse:
    lines = scan(text)
    blocks, problems = read_blocks(lines, names)
    answers, mentions = read_answers(lines, names)
    for block in blocks:
        if block.code:
            answers[block.code] = Answered(
                block.code, AnswerKind.DECLINED, block.position[:MAX_TEXT], block.line, "block"
            )
    answers = resolved(answers)
    declined = {block.code for block in blocks}
    for answer in answers.values():
        if answer.kind is AnswerKind.DECLINED and answer.code not in declined:
            reason = f"{answer.code} is declined without a block `## DISAGREE: {answer.code}`"
            problems.append(Problem(answer.line, reason))
            if names.knows(answer.code):
                blocks.append(_draft(answer))
    problems.sort(key=lambda problem: problem.line)
    if problems and strict:
        raise DocumentError("malformed_response", problems)
    ordered = sorted(answers.values(), key=lambda answer: answer.line)
    return ReadResponse(
        answers=tuple(answer for answer in ordered if names.knows(answer.code)),
        disagreements=tuple(sorted(blocks, key=lambda block: block.line)),
        text=text,
        mentions=tuple(
            mention for mention in mentions if mention.code not in answers and names.knows(mention.code)
        ),
        warnings=tuple(problems),
        elsewhere=tuple(answer for answer in ordered if not names.knows(answer.code)),
    )


def _draft(answer: Answered) -> Disagreement:
    """Return the draft of a disagreement for an answer that declines without quoting or reasoning."""
    return Disagreement(
        answer.code, answer.text, "", "", "", answer.line, problems=(MALFORMED,)
        if answer.text else (MALFORMED, MISSING_POSITION),
    )  # fmt: skip


def _kind_named(said: str) -> AnswerKind | None:
    plain = said.lower().replace("_", " ").replace("wont ", "won't ")  # "wont_fix"
    return ANSWER_WORDS.get(said.lower()) or stated_kind(said) or stated_kind(plain)


def _needs(number: int, said: str) -> str:
    unknown = f", not {said[:40]!r}" if said.strip() else ""
    return f"answer {number} needs a finding and a kind: {', '.join(HAND_IN_KINDS)}{unknown}"


def _from_structure(data: Mapping[str, Any]) -> ReadResponse:
    problems: list[Problem] = []
    answers: list[Answered] = []
    disagreements: list[Disagreement] = []
    seen: set[str] = set()
    entries = _entries(data) or data.get("answers", [])
    if not isinstance(entries, list):
        raise DocumentError("malformed_response", [Problem(0, "answers must be a list")])
    for number, entry in enumerate(entries, start=1):
        told = entry.items() if isinstance(entry, dict) else ()
        fields = {key: str(value) for key, value in told if value is not None}
        code = SPELLED.sub(_as_printed, fields.get("finding", "")).upper()
        said = fields.get("kind", "")
        kind = _kind_named(said)
        if not code or kind is None:
            problems.append(Problem(number, _needs(number, said if code else "")))
            continue
        if code in seen:
            problems.append(Problem(number, f"answer {number} answers {code} a second time"))
            continue
        seen.add(code)
        answer = Answered(code, kind, fields.get("text", ""), number).checked()
        answers.append(answer)
        if answer.kind is AnswerKind.DECLINED:
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
