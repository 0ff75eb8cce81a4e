"""The lines of the specification that a dispute turns on, as the task quotes them. Pure."""

import re
from dataclasses import dataclass

from disputes.protocol.keywords import keywords

WHOLE_MAX = 400  # characters up to which all of it is shown
BODY_MAX = 20_000  # that are looked through
SENTENCES = 2

_SENTENCE = re.compile(r"\S[^\n]*?(?:[.!?](?=\s|$)|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Passage:
    """Where the specification says it, and its words."""

    source: str  # docs/SPEC.md §4.3
    text: str
    is_whole: bool


def passage_of(source: str, body: str, about: str) -> Passage | None:
    """All of a short text, else its sentences that share the most words with what is argued about.

    None where there is no text, or nothing in a long one is about it.
    """
    text = body.strip()
    if not text:
        return None
    named = _named(source)
    if len(text) <= WHOLE_MAX:
        return Passage(named, text, is_whole=True)
    wanted = keywords(about)
    found = [sentence.strip() for sentence in _SENTENCE.findall(text[:BODY_MAX]) if sentence.strip()]
    shared = [len(keywords(sentence[:WHOLE_MAX]) & wanted) for sentence in found]
    best = sorted(range(len(found)), key=lambda index: (-shared[index], index))[:SENTENCES]
    said = [found[index][:WHOLE_MAX] for index in sorted(best) if shared[index] > 1]
    return Passage(named, " … ".join(said), is_whole=False) if said else None


def _named(source: str) -> str:
    path, _, part = source.partition("#")
    return f"{path} §{part}" if part else path
