"""The lines of a specification, or of a task, that a dispute turns on. Pure."""

import re
from dataclasses import dataclass

from disputes.protocol.text.keywords import keywords
from tasks.text.fences import after_fence
from tasks.text.regex import regex

WHOLE_MAX = 400  # characters up to which the whole text is shown
BODY_MAX = 20_000  # characters that are searched
SENTENCES = 2

_HEADING = regex(r" {0,3}#{1,6}(?:\s|$)")
_OWN_LINE = regex(r"\s*(?:[-*+>]\s|[|#]|\d{1,3}[.)]\s)")  # a list item, a quotation, a table row, a heading
_SENTENCE = regex(r"\S[^\n]*?(?:[.!?](?=\s|$)|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Passage:
    """The quoted words and their source."""

    source: str  # such as docs/SPEC.md §4.3, or Task
    text: str


def passage_of(source: str, body: str, about: str) -> Passage | None:
    """Return all of a short text, or the sentences of a long one that share most words with the argument.

    None if there is no text, or if nothing in a long one is about it.
    """
    text = _flowing(body)
    if not text:
        return None
    if len(text) <= WHOLE_MAX:
        return Passage(source, text)
    wanted = keywords(about)
    found = [sentence.strip() for sentence in _SENTENCE.findall(text) if sentence.strip()]
    shared = [len(keywords(sentence[:WHOLE_MAX]) & wanted) for sentence in found]
    best = sorted(range(len(found)), key=lambda index: (-shared[index], index))[:SENTENCES]
    said = [found[index][:WHOLE_MAX] for index in sorted(best) if shared[index] > 1]
    return Passage(source, " … ".join(said)) if said else None


def _flowing(body: str) -> str:
    """Return the text without its heading and with one line per paragraph, as a sentence may span lines."""
    lines = body[:BODY_MAX].strip().splitlines()
    if lines and _HEADING.match(lines[0]):
        lines = lines[1:]
    flowing: list[str] = []
    fence, goes_on = "", False
    for line in lines:
        before, fence = fence, after_fence(line, fence)
        if before or fence:
            flowing.append(line)
            goes_on = False
        elif not line.strip() or _OWN_LINE.match(line) or not goes_on:
            flowing.append(line.strip())
            goes_on = bool(line.strip())
        else:
            flowing[-1] += f" {line.strip()}"
    return "\n".join(flowing).strip()


def named(source: str) -> str:
    """Return a source as people read it: docs/SPEC.md#4.3 as docs/SPEC.md §4.3."""
    path, _, part = source.partition("#")
    return f"{path} §{part}" if part else path
