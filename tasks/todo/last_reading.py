"""What a followed file said when it was last read, so that only what has changed since then is taken over."""

from dataclasses import dataclass, field

from tasks.todo import format
from tasks.todo.format import TodoSection, TodoTask
from tasks.todo.lenient import read_leniently
from tasks.todo.outline import PATH


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a file said of a task when it was last read, and the path of the section that listed it."""

    item: TodoTask
    section: str


@dataclass(frozen=True, slots=True)
class LastReading:
    """What a followed file said when it was last read: of tasks by their keys, of sections by paths."""

    tasks: dict[int, Earlier] = field(default_factory=dict)
    sections: dict[str, TodoSection] = field(default_factory=dict)


def reading_of(text: str) -> LastReading:
    """Return what a file that is followed says, of tasks by their line numbers. Raises TodoError."""
    read = read_leniently(text, is_followed=True)
    todo = format.parse(read.text)
    paths: list[str] = []
    for section, parent in zip(todo.sections, todo.parents(), strict=True):
        paths.append(section.title if parent is None else f"{paths[parent]}{PATH}{section.title}")
    sections = list(zip(paths, todo.sections, strict=True))
    tasks = {
        read.origin(item.line): Earlier(item, path) for path, section in sections for item in section.tasks
    }
    return LastReading(tasks, dict(sections))
