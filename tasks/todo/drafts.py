"""Core: tasks and sections of a TODO.md while a person's file is being read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tasks.states import Severity
from tasks.text.fences import after_fence
from tasks.todo.format import ATTRIBUTE, IDENTITY

Line = tuple[str, int]  # a line for `parse`, and the line of the file that it comes from
NAMES_MAX = 60  # characters of a title in a note


@dataclass(slots=True)
class DraftTask:
    """A task with the lines below it, the tasks within it, and what its words say."""

    line: int
    marker: str
    title: str
    identity: str
    indent: int
    lines: list[Line] = field(default_factory=list)
    parts: list["DraftTask"] = field(default_factory=list)
    severity: Severity | None = None  # as its words say, if no attribute does
    needs: list["DraftTask"] = field(default_factory=list)  # as its words say

    @property
    def name(self) -> str:
        """The name by which an attribute of another task means this one."""
        match = IDENTITY.fullmatch(self.identity)
        return match[1] if match else escaped(self.title)

    def plain_lines(self) -> Iterator[Line]:
        """Yield the lines of its text that are in no fence."""
        fence = ""
        for line, number in self.lines:
            before, fence = fence, after_fence(line.strip(), fence)
            if not before and not fence:
                yield line, number


@dataclass(slots=True)
class DraftSection:
    """A heading with the text and the tasks below it; the first one has no heading."""

    line: int
    level: int
    title: str
    lines: list[Line] = field(default_factory=list)
    tasks: list[DraftTask] = field(default_factory=list)


def escaped(name: str) -> str:
    """Return a name as it stands in a list, with a backslash before what would end it."""
    return re.sub(r"([\\;])", r"\\\1", name)


def key_of(line: str) -> str:
    """Return the key of a line such as `severity: high`, in small letters; empty for any other line."""
    match = ATTRIBUTE.fullmatch(line.strip())
    return match[1].lower() if match else ""
