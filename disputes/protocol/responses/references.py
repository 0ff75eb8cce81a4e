"""Answers that refer to the answer to another finding: "see ISSUE-R1-001", "same as above" (ANS-8)."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from disputes.protocol.responses.answer_kinds import AnswerKind
from disputes.protocol.text.mentions import Names
from tasks.text.regex import regex

if TYPE_CHECKING:
    from disputes.protocol.responses.answers import Answered

_WORDS = (
    r"(?:(?:please |also )?see(?: also)?|cf\.?|as(?: in| for| with| under)?|like|likewise"
    r"|same(?: \w+){0,2}? (?:as|for|like)"
    r"|(?:this is |it is )?(?:an? )?dup(?:licates?|e)?(?: of)?|identical to"
    r"|(?:is )?(?:covered|handled|answered|treated|subsumed|included|merged|part)(?: together)?"
    r" (?:by|with|in|under|into|of)|siehe|wie(?: bei)?|ver|voir)"
)
REFERRING = regex(
    rf"[\s*_]{{0,8}}{_WORDS}[\s:]{{1,3}}(?:(?:the|my|our)\s)?(?:(?:answer|fix|reply|response|finding|issue)s?\s)?"
    r"(?:(?:to|of|for|in|under|on)\s)?[*_`\[(\"]{0,4}",
    re.IGNORECASE,
)
ABOVE = regex(
    rf"[\s*_]{{0,8}}(?:{_WORDS} (?:the )?(?:above|before|previous(?: (?:one|answer|finding))?|oben)"
    r"|ditto|dito|idem|likewise|same(?: here)?)[\s*_.!]{0,8}",
    re.IGNORECASE,
)
STEPS_MAX = 4  # from answer to answer, where one refers to another further below


def referred(text: str, before: str, names: Names) -> tuple[str, ...]:
    """Return the findings to whose answers a text refers; `before` is the finding answered before it."""
    if ABOVE.fullmatch(text):
        return (before,)
    match = REFERRING.match(text)
    span = next(iter(names.spans(text[: match.end() + 400])), None) if match else None
    return span.codes if match and span and span.start <= match.end() else ()


def resolved(answers: Mapping[str, "Answered"]) -> dict[str, "Answered"]:
    """Return the answers with those that refer to others as these answer, or without them (ANS-8).

    Of several the worst one counts. Who refers to what nobody answers, answers nothing.
    """
    kinds: dict[str, AnswerKind | None] = {
        code: None if answer.refers else answer.kind for code, answer in answers.items()
    }
    waiting = [answer for answer in answers.values() if answer.refers]
    for _ in range(STEPS_MAX):
        for answer in waiting:
            said = [kinds.get(code) for code in answer.refers]
            known = [kind for kind in said if kind]
            if len(known) == len(said):
                kinds[answer.code] = next((k for k in known if k is not AnswerKind.ADDRESSED), known[0])
    return {code: replace(answer, kind=kind) for code, answer in answers.items() if (kind := kinds[code])}
