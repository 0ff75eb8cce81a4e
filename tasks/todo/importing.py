"""Importing a list into rows.

Import and export start from one outline of the project's rows, and rows are compared with a file in the form
in which the export would write them. So importing an export changes nothing.
"""

import json
from dataclasses import dataclass, replace
from hashlib import sha256

from django.db import transaction

from tasks.database.locking import locked
from tasks.events import Actor
from tasks.models import Project, Task
from tasks.states import Status
from tasks.todo import asciidoc, format, org
from tasks.todo.comparing import Comparison
from tasks.todo.format import Problem, TodoError, TodoTask
from tasks.todo.last_reading import LastReading
from tasks.todo.lenient import Reading, read_leniently
from tasks.todo.notations import read_list
from tasks.todo.writing import write

CONFLICT = "Git left a conflict here, with both sides of it. Settle it first."
OUTLINES = (
    (
        org.first_headline, org.as_markdown,
        "The file is an outline of Org mode: its TODO lines are the tasks.",
    ),
    (asciidoc.first_item, asciidoc.as_markdown, "The file is AsciiDoc: its items with boxes are the tasks."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. `missing` are the tasks that the file does not list; they were left alone."""

    created: tuple[Task, ...]
    updated: tuple[Task, ...]
    unchanged: tuple[Task, ...]
    missing: tuple[Task, ...]
    notes: tuple[str, ...]
    said: tuple[tuple[Task, TodoTask], ...] = ()  # what the file says of each task that it lists

    def lines(self) -> list[str]:
        """Return a line for each new or changed task, as the import understood it."""
        new = [f"New: {_told(task)}" for task in self.created]
        return new + [f"Changed: {task.ref} {_told(task)}" for task in self.updated]

    def digest(self, text: str) -> str:
        """Return a hash of what this file makes of this project; another file or other rows change it."""
        told = [text, self.lines(), [task.body for task in (*self.created, *self.updated)], self.notes]
        told += [[task.ref for task in rows] for rows in (self.unchanged, self.missing)]
        return sha256(json.dumps(told).encode()).hexdigest()


def _told(task: Task) -> str:
    status = "" if task.status == Status.PENDING else f", {task.get_status_display().lower()}"
    return f"{task.title} ({task.section.title}, {task.severity}{status})"


def refuse_unreadable(text: str) -> None:
    """Raise TodoError if the text was in another encoding, or if git left both sides of a conflict in it."""
    if "\0" in text:
        raise TodoError([Problem(0, "", "The file is not written in UTF-8. Save it so.")])
    lines = format.split_lines(text)
    begun = [number for number, line in enumerate(lines, start=1) if line.startswith("<<<<<<< ")]
    if begun and any(line.startswith(">>>>>>> ") for line in lines[begun[0] :]):
        raise TodoError([Problem.at(lines, number, CONFLICT) for number in begun])


def import_todo(
    project: Project,
    text: str,
    *,
    actor: Actor,
    strict: bool = False,
    earlier: LastReading | None = None,
) -> ImportReport:
    """Bring the project's sections and tasks into the shape of the file, in one transaction.

    Unless `strict`, a file is read as people write one, and the notes say line by line what was read
    differently from how it is written. A known task keeps its status, whatever the file says. What the file
    does not list stays, ranked behind what it lists. `earlier` is what the file said before, by the tasks'
    numbers; with it, tasks and sections take over only what has changed since then. Raises TodoError with
    every problem, of which cycles report only the first, or because the file has no task; then nothing has
    changed.
    """
    refuse_unreadable(text)
    read = None
    if not strict:
        read = (earlier is None and _read_other(text)) or read_leniently(
            text, is_followed=earlier is not None
        )
    try:
        return _import(project, read.text if read else text, read, actor, earlier)
    except TodoError as error:
        if read is None:
            raise
        lines = format.split_lines(text)
        problems = [Problem.at(lines, read.origin(each.line), each.reason) for each in error.problems]
        raise TodoError(problems) from error


def _read_other(text: str) -> Reading | None:
    """Return a list of another form than ours: an outline, or in JSON, YAML, CSV or todo.txt."""
    for first, as_markdown, told in OUTLINES:
        if line := first(text):
            read = read_leniently(as_markdown(text))
            return replace(read, notes=(Problem.at(format.split_lines(text), line, told), *read.notes))
    return read_list(text)


def _import(
    project: Project, text: str, read: Reading | None, actor: Actor, earlier: LastReading | None
) -> ImportReport:
    wanted = format.parse(text)
    with transaction.atomic():
        locked(Project.objects).get(pk=project.pk)  # otherwise two imports could give out the same numbers
        compared = Comparison(project, wanted, format.split_lines(text), earlier)
        if not wanted.has_tasks:
            raise TodoError([format.no_task(text)])
        notes = tuple(compared.notes())
        write(compared, actor)

    entries = compared.entries
    listed = [(entry.row, item) for entry, item in entries]
    if read is not None:
        notes = (*[f"{note}"[0].upper() + f"{note}"[1:] for note in read.notes], *notes)
        listed = [(row, replace(item, line=read.origin(item.line))) for row, item in listed]
    return ImportReport(
        created=tuple(entry.row for entry, _ in entries if entry.is_new),
        updated=tuple(entry.row for entry, _ in entries if entry.changed and not entry.is_new),
        unchanged=tuple(entry.row for entry, _ in entries if not entry.changed and not entry.is_new),
        missing=tuple(entry.row for entry in compared.known_entries if not entry.line),
        notes=notes,
        said=tuple(listed),
    )
