"""Finding a part of a Markdown document: by its anchor or number, by a line, or by words quoted from it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from disputes.protocol.text.documents import Line
from tasks.text.regex import regex

_BLANKS = regex(r"\s+")


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading and what stands below it, as indexes into the document's lines."""

    title: str
    start: int  # the heading
    own: int  # after its own text: the next heading of any level, or the end
    end: int  # after its last subsection


def chapters(lines: Sequence[Line]) -> list[Chapter]:
    """Every heading of the document with what stands below it, in order."""
    heads = [(index, *line.heading) for index, line in enumerate(lines) if line.heading]
    found = []
    for place, (start, level, title) in enumerate(heads):
        after = heads[place + 1 :]
        own = after[0][0] if after else len(lines)
        end = next((index for index, other, _ in after if other <= level), len(lines))
        found.append(Chapter(title, start, own, end))
    return found


def named(every: Sequence[Chapter], anchor: str) -> Chapter | None:
    """The section that an anchor names: docs/SPEC.md#login, or #4.3 for `4.3 Retries`."""
    wanted = _slug(anchor)
    if not wanted:
        return None
    numbered = re.compile(rf"{wanted}-(?!\d)") if re.fullmatch(r"\d+(-\d+)*", wanted) else None
    exact = next((each for each in every if _slug(each.title) == wanted), None)
    if exact or not numbered:
        return exact
    return next((each for each in every if numbered.match(_slug(each.title))), None)


def at_line(every: Sequence[Chapter], number: int) -> Chapter | None:
    """The innermost section that holds the line of that number, counted from 1."""
    return next((each for each in reversed(every) if each.start < number <= each.own), None)


def quoting(lines: Sequence[Line], every: Sequence[Chapter], words: str) -> Chapter | None:
    """The first section whose own text holds these words, whatever the line ends between them."""
    wanted = _flat(words)
    for each in every if wanted else ():
        if wanted in _flat("\n".join(line.text for line in lines[each.start : each.own])):
            return each
    return None


def _flat(text: str) -> str:
    return _BLANKS.sub(" ", text).strip().casefold()


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
