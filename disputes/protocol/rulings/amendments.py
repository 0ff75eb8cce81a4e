"""What a ruling adds to a specification: its words in a fixed form, and the section they are put into.

Values go in, Markdown comes out. All of the words are in a quote, so that they can neither become a
heading of the specification nor open a fence in it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from disputes.protocol.text import chapters
from disputes.protocol.text.chapters import Chapter
from disputes.protocol.text.documents import DocumentError, Line, scan, unclosed_fence
from disputes.protocol.text.locations import same_file
from disputes.protocol.text.quotes import inert, one_line, plain, quoted
from tasks.text.regex import regex

HEADING = "Rulings"  # the section for rulings that quote no other section
WORDS_MAX = 20_000
QUESTION_MAX = 300
TEXTS_MAX = 8_000  # how many characters of each text are searched for quotations
QUOTES_MAX = 40
_NUMBER = regex(r"(?:§\s{0,2}|\bsection\s{1,2})(\d{1,3}(?:\.\d{1,3}){0,5})", re.IGNORECASE)
_QUOTE = regex(r"[\"“„«]([^\"“”„«»]{15,400})[\"”“»]")


class NotAmended(Exception):
    """The document cannot be amended; the message says why in a sentence."""


@dataclass(frozen=True, slots=True)
class Ruled:
    """A ruling as its amendment words it; `on` is a day."""

    ref: str  # D-12, C-14
    question: str
    text: str
    rationale: str
    constraints: str
    by: str
    on: str


@dataclass(frozen=True, slots=True)
class About:
    """What is known about the part of the specification that was in dispute."""

    path: str = ""  # where the finding points
    line: int | None = None
    texts: tuple[str, ...] = ()  # texts that may name a section or quote words from it
    source: str = ""  # the source of the task: docs/SPEC.md#login


def words_of(ruled: Ruled) -> str:
    """Return the ruling in its fixed form, which a person may edit before it is drafted."""
    head = f"**Ruling {ruled.ref}** ({ruled.on}, {inert(one_line(ruled.by))}): "
    lines = [f"> {head}{inert(one_line(ruled.question, QUESTION_MAX))}"]
    for label, text in (("", ruled.text), ("Why: ", ruled.rationale), ("Constraints: ", ruled.constraints)):
        if text.strip():
            lines += [">", *(inert(line) for line in quoted(f"{label}{text.strip()}", WORDS_MAX))]
    return "\n".join(lines)


def amended(document: str, specification: str, words: str, about: About) -> tuple[str, str]:
    """Return the document with these words added, and the title of the section that they were put into.

    That is the section which the dispute names, quotes or points to, or otherwise one of its own at the end.
    Line ends stay as they are. Raises NotAmended if the document is too large or has a fence that is never
    closed.
    """
    try:
        lines = scan(document)
    except DocumentError as error:
        raise NotAmended(f"{specification} cannot be read: {error}.") from None
    if fence := unclosed_fence(lines):
        raise NotAmended(f"{specification} has a fence that line {fence} opens and nothing closes.")
    every = chapters.chapters(lines)
    found = section_in_dispute(lines, every, specification, about)
    found = found or next((each for each in every if each.title.strip() == HEADING), None)
    if found is None:
        added, at, title = ["", f"## {HEADING}", "", *_lines(words), ""], len(lines), HEADING
    else:
        added, at, title = ["", *_lines(words), ""], found.own, found.title
    kept = [line.text for line in lines]
    before, after = _without_blanks(kept[:at]), kept[at:]
    changed = [*before, *(added if before else added[1:]), *after]
    newline = "\r\n" if "\r\n" in document else "\n"
    return newline.join(changed), title


def section_in_dispute(
    lines: Sequence[Line], every: Sequence[Chapter], specification: str, about: About
) -> Chapter | None:
    """Return the section that the dispute is about, by number, quoted words, line or task source, or None."""
    texts = [text[:TEXTS_MAX] for text in about.texts]
    is_there = same_file(about.path, specification)
    path, _, anchor = about.source.partition("#")
    candidates = (
        *(chapters.named(every, number) for text in texts for number in _NUMBER.findall(text)[:QUOTES_MAX]),
        *(chapters.quoting(lines, every, words) for words in _quotes(texts)),
        chapters.at_line(every, about.line) if is_there and about.line else None,
        chapters.named(every, anchor) if same_file(path, specification) else None,
    )
    return next(filter(None, candidates), None)


def _quotes(texts: Iterable[str]) -> list[str]:
    return [words for text in texts for words in _QUOTE.findall(text)][:QUOTES_MAX]


def _lines(words: str) -> list[str]:
    return plain(words).strip("\n").split("\n")


def _without_blanks(lines: list[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]
