"""Reading a coder's response: one answer per finding, and its DISAGREE blocks (ANS-1, DIS-2)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from disputes.protocol.responses.answer_kinds import ANSWER_WORDS, HAND_IN_KINDS, AnswerKind
from disputes.protocol.responses.answers import MAX_TEXT, Answered, Mention, read_answers
from disputes.protocol.responses.disagree_blocks import MALFORMED, MISSING_POSITION, Disagreement, read_blocks
from disputes.protocol.text.documents import DocumentError, Problem, scan
from disputes.protocol.text.mentions import Names

__all__ = [
    "ANSWER_WORDS", "AnswerKind", "Answered", "Disagreement", "Mention", "ReadResponse", "read_response"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReadResponse:
    """A response as read, with its text.

    `elsewhere` holds answers to findings that are none of the known ones: those of another review. `mentions`
    holds the findings that it names without an answer, `warnings` what is wrong with it, line by line.
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
    decided: Collection[str] = (),
    strict: bool = False,
) -> ReadResponse:
    """Read a response, from Markdown or from its structured form.

    `known` are the codes of the findings it may answer, as their review prints them; without them every
    canonical code counts. `decided` are those that a human has decided (RE_ARGUED_CONFLICT). A malformed
    DISAGREE block is kept as a draft with its problems (DIS-2). Raises DocumentError with every problem where
    `strict` is asked for and a block is malformed or a finding is declined without one; where the structured
    form is malformed; and for a document that is too large.
    """
    if isinstance(document, str):
        return _from_markdown(document, Names(known), decided, strict)
    return _from_structure(document)


def _from_markdown(text: str, names: Names, decided: Collection[str], strict: bool) -> ReadResponse:
    lines = scan(text)
    blocks, problems = read_blocks(lines, names, decided)
    answers, mentions = read_answers(lines, names)
    for block in blocks:
        if block.code:
            answers[block.code] = Answered(
                block.code, AnswerKind.DECLINED, block.position[:MAX_TEXT], block.line, "block"
            )
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
    """The disagreement of an answer that declines in one line: a draft, for it quotes and reasons nothing."""
    return Disagreement(
        answer.code, answer.text, "", "", "", answer.line, problems=(MALFORMED,)
        if answer.text else (MALFORMED, MISSING_POSITION),
    )  # fmt: skip


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
            kinds = ", ".join(HAND_IN_KINDS)
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
