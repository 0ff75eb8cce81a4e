"""Finding a section of a Markdown document by its anchor or number, by a line, or by words quoted from it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from disputes.protocol.text.documents import Line
from tasks.text.regex import regex

_BLANKS = regex(r"\s+")


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading and the text below it, as indexes into the document's lines."""

    title: str
    start: int  # the index of the heading
    own: int  # the index after its own text: the next heading of any level, or the end
    end: int  # the index after its last subsection
    parent: int  # which chapter it is a part of, by its place in the list; -1 for none


def chapters(lines: Sequence[Line]) -> list[Chapter]:
    """Return a chapter for every heading of the document, in order."""
    heads = [(index, *line.heading) for index, line in enumerate(lines) if line.heading]
    owns = [*(start for start, _, _ in heads), len(lines)][1:]
    ends, parents = [len(lines)] * len(heads), [-1] * len(heads)
    above: list[int] = []
    for place, (start, level, _) in enumerate(heads):
        while above and heads[above[-1]][1] >= level:
            ends[above.pop()] = start
        parents[place] = above[-1] if above else -1
        above.append(place)
    return [
        Chapter(title, start, own, end, parent)
        for (start, _, title), own, end, parent in zip(heads, owns, ends, parents, strict=True)
    ]


def named(every: Sequence[Chapter], anchor: str) -> Chapter | None:
    """Return the section that an anchor names, or None.

    `login` names the section of docs/SPEC.md#login, `4.3` the one with the title `4.3 Retries`.
    """
    wanted = _slug(anchor)
    if not wanted:
        return None
    numbered = re.compile(rf"{wanted}-(?!\d)") if re.fullmatch(r"\d+(-\d+)*", wanted) else None
    exact = next((each for each in every if _slug(each.title) == wanted), None)
    if exact or not numbered:
        return exact
    return next((each for each in every if numbered.match(_slug(each.title))), None)


def at_line(every: Sequence[Chapter], number: int) -> Chapter | None:
    """Return the innermost section that contains the line with this number, counted from 1, or None."""
    return next((each for each in reversed(every) if each.start < number <= each.own), None)


def quoting(lines: Sequence[Line], every: Sequence[Chapter], words: str) -> Chapter | None:
    """Return the first section whose own text contains these words, or None.

    Line breaks, other white space and upper and lower case make no difference.
    """
    wanted = _flat(words)
    for each in every if wanted else ():
        if wanted in _flat("\n".join(line.text for line in lines[each.start : each.own])):
            return each
    return None


def _flat(text: str) -> str:
    return _BLANKS.sub(" ", text).strip().casefold()


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
