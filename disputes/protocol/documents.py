"""The scanner below every parser: lines with their numbers, and whether they state or only quote something.

An id, a heading or a keyword inside a fence or a quote is an example, not a statement (ID-3).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

MAX_BYTES = 256 * 1024
# However deep, for below a list item a fence is indented as the item is.
FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)$")
HEADING = re.compile(r"^ {0,3}(?P<level>#{1,6})[ \t]+(?P<text>.*)$")


class DocumentError(ValueError):
    """A document cannot be taken; `problems` names every line at fault and why."""

    def __init__(self, code: str, problems: list["Problem"]) -> None:
        self.code, self.problems = code, problems
        super().__init__("; ".join(f"line {p.line}: {p.reason}" for p in problems))


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a document."""

    line: int
    reason: str


class Mode(StrEnum):
    STATED = "stated"
    QUOTED = "quoted"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number from 1, its text without line end, and how it is meant."""

    number: int
    text: str
    mode: Mode

    @property
    def heading(self) -> tuple[int, str] | None:
        """Level and text, where the line is a heading that states something."""
        match = HEADING.match(self.text) if self.mode is Mode.STATED else None
        return (len(match["level"]), match["text"].rstrip().rstrip("#").rstrip()) if match else None


def scan(text: str) -> list[Line]:
    """The lines of a document. Raises DocumentError for one that is too large.

    Fences nest: one closes only with the same character, at least as many of them, no info string, and less
    than four blanks deeper than it was opened.
    """
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        problem = Problem(1, f"the document has {size} bytes; {MAX_BYTES} are the limit")
        raise DocumentError("too_large", [problem])
    return list(_scan(text))


def _scan(text: str) -> Iterator[Line]:
    fence, depth = "", 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        match = FENCE.match(raw)
        indent = len(match["indent"].expandtabs(4)) if match else 0
        if fence:
            closes = (
                match and match["mark"].startswith(fence) and not match["info"].strip() and indent < depth + 4
            )
            yield Line(number, raw, Mode.FENCED)
            if closes:
                fence = ""
        elif match:
            fence, depth = match["mark"], indent
            yield Line(number, raw, Mode.FENCED)
        elif raw.lstrip().startswith(">"):
            yield Line(number, raw, Mode.QUOTED)
        else:
            yield Line(number, raw, Mode.STATED)


def joined(lines: list[Line]) -> str:
    """The text of these lines as written, without blank ones around it."""
    return "\n".join(line.text for line in lines).strip("\n")
