"""The scanner below every parser: lines with their numbers, and whether they state or only quote something.

An id, a heading or a keyword inside a fence or a quote is an example, not a statement (ID-3).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

MAX_BYTES = 256 * 1024
FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})(?P<info>[^`]*)$")
HEADING = re.compile(r"^ {0,3}(?P<level>#{1,6})\s+(?P<text>.*?)\s*#*\s*$")


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
        return (len(match["level"]), match["text"]) if match else None


def scan(text: str) -> list[Line]:
    """The lines of a document. Raises DocumentError for one that is too large.

    Fences nest: one closes only with the same character, at least as many of them, and no info string.
    """
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        problem = Problem(1, f"the document has {size} bytes; {MAX_BYTES} are the limit")
        raise DocumentError("too_large", [problem])
    return list(_scan(text))


def _scan(text: str) -> Iterator[Line]:
    fence = ""
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        match = FENCE.match(raw)
        if fence:
            closes = match and match["mark"].startswith(fence) and not match["info"].strip()
            yield Line(number, raw, Mode.FENCED)
            if closes:
                fence = ""
        elif match:
            fence = match["mark"]
            yield Line(number, raw, Mode.FENCED)
        elif raw.lstrip().startswith(">"):
            yield Line(number, raw, Mode.QUOTED)
        else:
            yield Line(number, raw, Mode.STATED)


def joined(lines: list[Line]) -> str:
    """The text of these lines as written, without blank ones around it."""
    return "\n".join(line.text for line in lines).strip("\n")
