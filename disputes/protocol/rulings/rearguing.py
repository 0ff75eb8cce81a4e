"""Recognising hand-ins that argue again what is decided (DEC-2 to DEC-4).

The record of a decision is `records.DecisionEntry`; the lines of the prompt are
`prompt_lines.ruling_lines`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from disputes.protocol.responses.answer_kinds import AnswerKind
from disputes.protocol.responses.response import Answered, Disagreement
from disputes.protocol.rulings.options import Option
from disputes.protocol.text.documents import STATED, Line, Problem, scan
from disputes.protocol.text.keywords import keywords, overlap
from tasks.text.regex import regex

RE_ARGUED_CONFLICT = "RE_ARGUED_CONFLICT"
# DEC-4: so many words of a sentence, and this share of them in one paragraph, make it the same proposal.
PROPOSAL_WORDS = 4
PROPOSAL_SHARE = 0.8
SENTENCES_MAX = 20
_SENTENCE = regex(r"[.!?;](?:\s|$)|\n\s*\n")


@dataclass(frozen=True, slots=True)
class StandingDecision:
    """One decision that holds, as the next hand-ins are compared with it.

    `codes` are all names that the finding has had over the rounds.
    """

    codes: frozenset[str]
    option: Option
    text: str = ""
    coder_position: str = ""
    expects_change: bool = True


def reargued(
    disagreements: Iterable[Disagreement], answers: Iterable[Answered], decisions: Iterable[StandingDecision]
) -> tuple[Problem, ...]:
    """Return a problem for each finding that a response argues although it is decided (DEC-2, DEC-3).

    A DISAGREE block always argues. An answer "declined" does so only if code must change, since otherwise it
    may just report the ruling. The reader of responses has already passed over fences and quotes (DEC-6).
    """
    standing = list(decisions)
    decided = frozenset(code for decision in standing for code in decision.codes)
    ordered = frozenset(code for decision in standing if decision.expects_change for code in decision.codes)
    lines: dict[str, int] = {}
    for block in disagreements:
        if block.code in decided:
            lines.setdefault(block.code, block.line)
    for answer in answers:
        if answer.kind == AnswerKind.DECLINED and answer.code in ordered:
            lines.setdefault(answer.code, answer.line)
    return tuple(
        Problem(
            line, f"{code} is decided and cannot be argued again; trouble that it causes is a new finding"
        )
        for code, line in sorted(lines.items(), key=lambda pair: pair[1])
    )


def repeated_positions(document: str, decisions: Iterable[StandingDecision]) -> tuple[Problem, ...]:
    """Return where a response proposes again what a ruling has set aside, as mere warnings (DEC-4).

    Only rulings other than B are looked at, and only text outside fences and quotes. Words that the ruling
    itself uses prove nothing. Raises DocumentError if the document is too large.
    """
    against = [
        (decision, sentences)
        for decision in decisions
        if decision.option is not Option.UPHOLD_CODER and (sentences := _proposals(decision))
    ]
    if not against:
        return ()
    every = ((line, keywords(text)) for line, text in _paragraphs(scan(document)))
    paragraphs = [(line, words) for line, words in every if len(words) >= PROPOSAL_WORDS * PROPOSAL_SHARE]
    found = []
    for decision, sentences in against:
        line = _line_that_repeats(paragraphs, sentences)
        if line:
            names = ", ".join(sorted(decision.codes))
            found.append(Problem(line, f"may propose again what was ruled out on {names}"))
    return tuple(found)


def _proposals(decision: StandingDecision) -> list[frozenset[str]]:
    """Return the words of each sentence of the coder's position that are not in the ruling."""
    ruled = keywords(decision.text)
    sentences = _SENTENCE.split(decision.coder_position)[:SENTENCES_MAX]
    words = (keywords(sentence) - ruled for sentence in sentences)
    return [each for each in words if len(each) >= PROPOSAL_WORDS]


def _line_that_repeats(
    paragraphs: Sequence[tuple[int, frozenset[str]]], sentences: Sequence[frozenset[str]]
) -> int:
    for line, words in paragraphs:
        if any((overlap(sentence, words) or 0) >= PROPOSAL_SHARE for sentence in sentences):
            return line
    return 0


def _paragraphs(lines: Iterable[Line]) -> Iterator[tuple[int, str]]:
    """Yield the number of the first line and the text of every paragraph that is not quoted."""
    start, texts = 0, list[str]()
    for line in lines:
        if line.mode is STATED and line.text.strip():
            start = start or line.number
            texts.append(line.text)
        elif texts:
            yield start, "\n".join(texts)
            start, texts = 0, []
    if texts:
        yield start, "\n".join(texts)
