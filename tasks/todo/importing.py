"""Importing TODO.md into rows, and exporting rows as TODO.md.

Both directions start from one outline of the project's rows, and rows are compared with a file in the form in
which the export would write them. So importing an export changes nothing.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from itertools import groupby

from django.db import transaction
from django.db.models import Max

from tasks.dependencies import recount
from tasks.events import Actor
from tasks.hooks import retitled
from tasks.locking import locked
from tasks.models import Dependency, Project, Section, Task
from tasks.models.event import AT_ONCE, record, record_created
from tasks.models.task import RANK_STEP
from tasks.states import MEANINGS, UNFINISHED, Severity, Status
from tasks.todo import format
from tasks.todo.format import Problem, TodoError, TodoFile, TodoSection, TodoTask
from tasks.todo.json_lists import read_json
from tasks.todo.lenient import Reading, read_leniently
from tasks.todo.org import as_markdown, first_headline

# What a marker means for a new task: it has never run here, so it can be neither under way nor in dispute.
STATUS_OF_NEW = {
    Status.PENDING: Status.PENDING,
    Status.IN_PROGRESS: Status.PENDING,
    Status.REVIEW: Status.PENDING,
    Status.COMPLETED: Status.COMPLETED,
    Status.DISPUTED: Status.DEFERRED,
    Status.FAILED: Status.DEFERRED,
    Status.DEFERRED: Status.DEFERRED,
    Status.CANCELLED: Status.CANCELLED,
}
FIELDS = ("title", "body", "source", "severity", "tags")
ALIKE = 0.6  # similarity to its old title from which a line counts as reworded
CONFLICT = "Git left a conflict here, with both sides of it. Settle it first."
COMPARED_MAX = 10_000  # titles compared for that, which takes about a second; all lines beyond are new
PATH = " / "  # "Server / Tests" names a section whose title alone is not unique


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
    """Return a list of another form than ours, in JSON or as an outline of Org mode."""
    if line := first_headline(text):
        read = read_leniently(as_markdown(text))
        said = Problem.at(
            format.split_lines(text),
            line,
            "The file is an outline of Org mode: its TODO lines are the tasks.",
        )
        return replace(read, notes=(said, *read.notes))
    return read_json(text)


def _import(
    project: Project, text: str, read: Reading | None, actor: Actor, earlier: LastReading | None
) -> ImportReport:
    wanted = format.parse(text)
    with transaction.atomic():
        locked(Project.objects).get(pk=project.pk)  # otherwise two imports could give out the same numbers
        report = _Import(project, wanted, format.split_lines(text), actor, earlier).run()
        if not wanted.has_tasks:
            raise TodoError([format.no_task(text)])
        if read is None:
            return report
        told = tuple(f"{note}"[0].upper() + f"{note}"[1:] for note in read.notes)
        said = tuple((row, replace(item, line=read.origin(item.line))) for row, item in report.said)
        return replace(report, notes=told + report.notes, said=said)


def export_todo(project: Project) -> str:
    """Return the project's sections and tasks as a file that names every task by its ref."""
    outline = _Outline(project)
    names, entries = outline.places_by_name(), outline.entries_by_place()
    sections = [
        TodoSection(
            title=place.title,
            level=place.level,
            after=tuple(
                needed.title if len(names[needed.title]) == 1 else needed.path for needed in place.after
            ),
            body=format.as_section_text(place.row.body),
            tasks=tuple(_as_item(entry) for entry in entries[place]),
        )
        for place in outline.places
    ]
    preamble = f"# {format.as_line(project.name)}\n\n{format.as_section_text(project.preamble)}"
    return format.render(TodoFile(preamble.strip(), tuple(sections)))


# --- The outline: the rows, and what a file wants of them ---------------------------------------------------


@dataclass(eq=False, slots=True)
class _Place:
    """A section; `line` is 0 if the file does not list it."""

    row: Section
    title: str
    parent: "_Place | None"
    after: list["_Place"] = field(default_factory=list)
    line: int = 0
    is_new: bool = False
    changed: list[str] = field(default_factory=list)

    def upwards(self) -> Iterator["_Place"]:
        """Yield this section and then those that contain it, from the inside out."""
        place: _Place | None = self
        while place is not None:
            yield place
            place = place.parent

    @property
    def level(self) -> int:
        return 1 + sum(1 for _ in self.upwards())

    @property
    def path(self) -> str:
        return PATH.join(reversed([place.title for place in self.upwards()]))


@dataclass(eq=False, slots=True)
class _Entry:
    """A task; `line` is 0 if the file does not list it."""

    row: Task
    title: str
    place: _Place
    depends: list["_Entry"] = field(default_factory=list)
    line: int = 0
    is_new: bool = False
    changed: list[str] = field(default_factory=list)

    @property
    def is_finished(self) -> bool:
        return self.row.landed_at is not None or MEANINGS[Status(self.row.status)].finished


class _Outline:
    """A project's rows in the order of its file: each section, its tasks, then the sections within it."""

    def __init__(self, project: Project) -> None:
        self.places: list[_Place] = []
        self.entries: list[_Entry] = []
        sections = Section.objects.filter(project=project)
        children: dict[int | None, list[Section]] = defaultdict(list)
        for section in sections.order_by("rank", "pk").prefetch_related("depends_on"):
            children[section.parent_id].append(section)
        self._add_places(None, children)

        places = {place.row.pk: place for place in self.places}
        tasks: dict[int, list[Task]] = defaultdict(list)
        for task in Task.objects.filter(project=project).order_by("rank", "number"):
            tasks[task.section_id].append(task)
        for place in self.places:
            keys = sorted(section.pk for section in place.row.depends_on.all())
            place.after = [places[key] for key in keys if key in places]
            for task in tasks[place.row.pk]:
                task.project, task.section = project, place.row  # known already, so no query later
                self.entries.append(_Entry(task, format.as_line(task.title), place))

        entries = {entry.row.pk: entry for entry in self.entries}
        links = Dependency.objects.filter(task__project=project).order_by("on").values_list("task", "on")
        for pk, on in links:
            if pk in entries and on in entries:
                entries[pk].depends.append(entries[on])

    def _add_places(self, parent: _Place | None, children: dict[int | None, list[Section]]) -> None:
        for section in children[parent.row.pk if parent else None]:
            section.parent = parent.row if parent else None  # known already, so no query later
            place = _Place(section, format.as_line(section.title), parent)
            self.places.append(place)
            self._add_places(place, children)

    def entries_by_place(self) -> dict[_Place, list[_Entry]]:
        found: dict[_Place, list[_Entry]] = {place: [] for place in self.places}
        for entry in self.entries:
            found[entry.place].append(entry)
        return found

    def places_by_name(self) -> dict[str, list[_Place]]:
        """Return the sections by what a file may call them: their title, or their path from the top."""
        found: dict[str, list[_Place]] = defaultdict(list)
        for place in self.places:
            for name in {place.title, place.path}:
                found[name].append(place)
        return found


def _as_item(entry: _Entry) -> TodoTask:
    """Return the row as the export writes it."""
    row = entry.row
    tags = [format.as_line(str(tag)) for tag in row.tags]
    return TodoTask(
        title=format.as_line(row.title),
        status=Status(row.status),
        ref=row.ref,
        source=format.as_line(row.source),
        severity=Severity(row.severity),
        tags=tuple(tag for tag in tags if tag),
        depends=tuple(needed.row.ref for needed in entry.depends),
        body=format.as_text(row.body),
    )


def circle_in(project: Project) -> str:
    """Return a sentence about the project's tasks and sections that wait for each other; empty if none do."""
    circle = _first_circle(_Outline(project))
    return _says(circle) if circle else ""


def _first_circle(outline: _Outline) -> list[_Place | _Entry]:
    """Return the first circle of tasks and sections of which none could ever begin; empty if there is none.

    A task is done after its dependencies, and after its section begins. A section begins after the sections
    named in its `after` and after the section around it; it is done after it begins, after its tasks and
    after the sections within it. A finished task waits for nothing.
    """
    graph: TopologicalSorter[tuple[str, _Place | _Entry]] = TopologicalSorter()
    for place in outline.places:
        graph.add(("begins", place), *[("done", needed) for needed in place.after])
        graph.add(("done", place), ("begins", place))
        if place.parent:
            graph.add(("begins", place), ("begins", place.parent))
            graph.add(("done", place.parent), ("done", place))
    for entry in outline.entries:
        graph.add(("done", entry.place), ("done", entry))
        if not entry.is_finished:
            needed = [("done", other) for other in entry.depends]
            graph.add(("done", entry), ("begins", entry.place), *needed)
    try:
        graph.prepare()
    except CycleError as error:
        return [node for node, _ in groupby(node for _, node in reversed(error.args[1]))]
    return []


def _says(circle: list[_Place | _Entry]) -> str:
    names = [f"“{node.title}”" if isinstance(node, _Entry) else f"section “{node.title}”" for node in circle]
    if len(circle) == 1:
        return f"This would wait for itself: {names[0]}."
    return f"These would wait for each other for ever: {' → '.join(names)}."


def _preorder(parent: _Place | None, children: dict[_Place | None, list[_Place]]) -> Iterator[_Place]:
    for place in children[parent]:
        yield place
        yield from _preorder(place, children)


# --- One import ---------------------------------------------------------------------------------------------


class _Import:
    """One import: compares file and rows, collects problems, and writes only if there are none."""

    def __init__(
        self,
        project: Project,
        wanted: TodoFile,
        lines: list[str],
        actor: Actor,
        earlier: LastReading | None,
    ) -> None:
        self.project, self.wanted, self.lines, self.actor = project, wanted, lines, actor
        self.follows, last = earlier is not None, earlier or LastReading()
        self.earlier, self.earlier_sections = last.tasks, last.sections
        self.outline = _Outline(project)
        self.known_places = list(self.outline.places)
        self.known_entries = list(self.outline.entries)
        # What the file lists, in its order.
        self.places: list[tuple[_Place, TodoSection]] = []
        self.entries: list[tuple[_Entry, TodoTask]] = []
        self.problems: list[Problem] = []
        self.left_to_compare = COMPARED_MAX

    def report(self, number: int, reason: str) -> None:
        self.problems.append(Problem.at(self.lines, number, reason))

    def run(self) -> ImportReport:
        self.match_places()
        self.match_entries()
        self.resolve_after()
        self.resolve_depends()
        self.refuse_cycles()
        if self.problems:
            raise TodoError(self.problems)
        notes = tuple(self.notes())
        self.keep_preamble()
        self.put_in_order()
        self.save_places()
        self.save_entries()
        self.save_dependencies()
        self.record_the_rest()
        self.recount()
        return ImportReport(
            created=tuple(entry.row for entry, _ in self.entries if entry.is_new),
            updated=tuple(entry.row for entry, _ in self.entries if entry.changed and not entry.is_new),
            unchanged=tuple(entry.row for entry, _ in self.entries if not entry.changed and not entry.is_new),
            missing=tuple(entry.row for entry in self.known_entries if not entry.line),
            notes=notes,
            said=tuple((entry.row, item) for entry, item in self.entries),
        )

    # Comparing.

    def match_places(self) -> None:
        """Find the row of each section by its path, or plan a new one."""
        known = {(place.parent, place.title): place for place in self.known_places}
        for item, above in zip(self.wanted.sections, self.wanted.parents(), strict=True):
            parent = None if above is None else self.places[above][0]
            place = known.get((parent, item.title))
            if place is None:
                place = _Place(
                    Section(project=self.project, title=item.title), item.title, parent, is_new=True
                )
                self.outline.places.append(place)
            place.line = item.line
            # Tasks above the first heading say nothing about the section that they are put into.
            was = self.earlier_sections.get(place.path)
            is_said = item.level and (was is None or was.body != item.body)
            if is_said and format.as_section_text(place.row.body) != item.body:
                place.row.body = item.body
                place.changed.append("body")
            self.places.append((place, item))

    def match_entries(self) -> None:
        """Find the row of each task by its ref, else by section and title, else by title; or plan a new one.

        A line that moved to another section is still the same task, unless it is one of another list.
        """
        by_ref = {entry.row.ref: entry for entry in self.known_entries}
        items = [(place, item) for place, section in self.places for item in section.tasks]
        for _, item in items:
            if item.ref in by_ref:
                by_ref[item.ref].line = item.line
            elif item.ref:
                self.report(
                    item.line,
                    f"{item.ref} is not a task of {self.project.slug}. Without the comment it is a new task.",
                )
        here, anywhere = self.entries_by_name()
        other_lists = self.other_lists({item.title for _, item in items})
        chosen = [self.choose(here[place.path, item.title], item, by_ref) for place, item in items]
        for at, (place, item) in enumerate(items):
            entry = chosen[at]
            if entry is None and not item.ref:
                entry = self.moved(anywhere[item.title], other_lists) or self.reworded(place, item)
            self.entries.append(
                (self.edited(entry, place, item) if entry else self.planned(place, item), item)
            )

    def entries_by_name(self) -> tuple[dict[tuple[str, str], list[_Entry]], dict[str, list[_Entry]]]:
        """Return known tasks by section and title, and by title, as the file last named them."""
        here: dict[tuple[str, str], list[_Entry]] = defaultdict(list)
        anywhere: dict[str, list[_Entry]] = defaultdict(list)
        for entry in self.known_entries:
            was = self.earlier.get(entry.row.number)
            section, title = (was.section, was.item.title) if was else (entry.place.path, entry.title)
            here[section, title].append(entry)
            anywhere[title].append(entry)
        return here, anywhere

    def moved(self, same: list[_Entry], other_lists: set[_Place]) -> _Entry | None:
        """Return the only task of a title that no line means yet, and that is not another list's."""
        free = [entry for entry in same if not entry.line]
        own = [e for e in free if e.row.number in self.earlier or e.place not in other_lists]
        return own[0] if len(own) == 1 else None

    def other_lists(self, titles: set[str]) -> set[_Place]:
        """Return the sections that belong to other lists, if all of this one lies within one section.

        Neither they nor most of their tasks are in the file. A section that was renamed or dissolved left
        most of its tasks there.
        """
        if len([place for place, _ in self.places if place.parent is None]) != 1 or len(self.places) == 1:
            return set()
        tasks = Counter(entry.place for entry in self.known_entries if not entry.place.line)
        here = Counter(entry.place for entry in self.known_entries if entry.title in titles)
        return {place for place, count in tasks.items() if 2 * here[place] <= count}

    @cached_property
    def gone(self) -> dict[str, dict[str, _Entry]]:
        """Tasks that no line means by its words, by the section and title that the file last gave them."""
        found: dict[str, dict[str, _Entry]] = defaultdict(dict)
        for entry in self.known_entries:
            if not entry.line and (was := self.earlier.get(entry.row.number)):
                found[was.section][was.item.title] = entry
        return found

    def reworded(self, place: _Place, item: TodoTask) -> _Entry | None:
        """Return the task whose line in this section is gone and read much like this new one, or None.

        Only a file that is followed has such tasks.
        """
        gone = {title: entry for title, entry in self.gone[place.path].items() if not entry.line}
        self.left_to_compare -= len(gone)
        if self.left_to_compare < 0:
            return None
        return next((gone[title] for title in get_close_matches(item.title, gone, n=1, cutoff=ALIKE)), None)

    def choose(self, same: list[_Entry], item: TodoTask, by_ref: dict[str, _Entry]) -> _Entry | None:
        """Return the task that the line means, by its ref or among those of its section and title.

        Returns None if there is none.
        """
        if item.ref:
            return by_ref.get(item.ref)
        free = [entry for entry in same if not entry.line]
        if len(free) > 1:
            refs = ", ".join(entry.row.ref for entry in free)
            self.report(item.line, f"{refs} have this title; an identity comment has to say which it is.")
        if not free:
            return None
        free[0].line = item.line
        return free[0]

    def planned(self, place: _Place, item: TodoTask) -> _Entry:
        """Plan a new task."""
        status = STATUS_OF_NEW[item.status]
        row = Task(
            project=self.project,
            title=item.title,
            body=item.body,
            source=item.source,
            severity=item.severity or Severity.MEDIUM,
            tags=list(item.tags),
            status=status,
            finished_by="import" if status == Status.COMPLETED else "",
            origin=Task.Origin.TODO,
        )
        entry = _Entry(row, item.title, place, line=item.line, is_new=True)
        self.outline.entries.append(entry)
        return entry

    def edited(self, entry: _Entry, place: _Place, item: TodoTask) -> _Entry:
        """Give a known task the values of the file."""
        old, new = _as_item(entry), replace(item, severity=item.severity or Severity.MEDIUM)
        was = self.earlier.get(entry.row.number)
        for name in FIELDS:
            value = getattr(new, name)
            if value != getattr(old, name) and self.is_said(name, item, was):
                setattr(entry.row, name, list(value) if name == "tags" else value)
                entry.changed.append(name)
        if entry.place is not place and not (was and was.section == place.path):
            entry.changed.append("section")
            entry.place = place
        entry.title, entry.line = item.title, item.line
        return entry

    def is_said(self, name: str, item: TodoTask, was: Earlier | None) -> bool:
        """Whether the file decides on this value; a file that is followed does if it says something new."""
        value = getattr(item, name)
        if was is not None:
            waits_no_more = name == "depends" and item.status == Status.COMPLETED
            return bool(value != getattr(was.item, name)) and not waits_no_more
        return bool(value) or not self.follows

    def resolve_after(self) -> None:
        names = self.outline.places_by_name()
        for place, item in self.places:
            needed = []
            for name in item.after:
                same = names.get(name, [])
                same = [other for other in same if other.parent is place.parent] or same
                if len(same) == 1:
                    needed.append(same[0])
                elif same:
                    paths = "; ".join(other.path for other in same)
                    self.report(item.line, f"Several sections are called “{name}”: {paths}.")
                else:
                    self.report(item.line, f"There is no section “{name}” to come after.")
            was = self.earlier_sections.get(place.path)
            is_said = was.after != item.after if was else needed or not self.follows
            if item.level and is_said and set(needed) != set(place.after):
                place.after = needed
                place.changed.append("after")

    def resolve_depends(self) -> None:
        by_ref = {entry.row.ref: entry for entry in self.known_entries}
        by_title: dict[str, list[_Entry]] = defaultdict(list)
        beside: dict[tuple[_Place, str], list[_Entry]] = defaultdict(list)
        for entry in self.outline.entries:
            by_title[entry.title].append(entry)
            beside[entry.place, entry.title].append(entry)
        for entry, item in self.entries:
            if not entry.is_new and not self.is_said("depends", item, self.earlier.get(entry.row.number)):
                continue
            needed = []
            for name in item.depends:
                named = beside[entry.place, name] or by_title[name]
                same = [by_ref[name]] if name in by_ref else [each for each in named if each.line] or named
                if len(same) == 1:
                    needed.append(same[0])
                elif same:
                    self.report(item.line, f"Several tasks are called “{name}”; depends needs a ref.")
                else:
                    self.report(item.line, f"There is no task “{name}” to depend on.")
            if set(needed) != set(entry.depends):
                entry.depends = needed
                entry.changed.append("depends")

    def refuse_cycles(self) -> None:
        if circle := _first_circle(self.outline):
            line = min((node.line for node in circle if node.line), default=1)
            self.report(line, _says(circle))

    def notes(self) -> Iterator[str]:
        differ = []
        for entry, item in self.entries:
            if entry.is_new and MEANINGS[item.status].waits_for_human:
                marker = MEANINGS[item.status].marker
                yield f"“{item.title}” is new and marked [{marker}]: it is deferred until it is resumed."
            elif entry.is_new and item.status in {Status.IN_PROGRESS, Status.REVIEW}:
                marker = MEANINGS[item.status].marker
                yield f"“{item.title}” is new and marked [{marker}]: it begins from the start, as [ ]."
            elif entry.is_new and item.status == Status.CANCELLED:
                yield f"“{item.title}” is new and marked [~]: it is cancelled, so nobody works on it."
            elif not entry.is_new and entry.row.status != item.status:
                differ.append(entry.row.ref)
        if differ:
            yield f"The file says another status for {', '.join(differ)}; a known task keeps its own."

    # Writing.

    def keep_preamble(self) -> None:
        """Store the text above the first section; a file without one leaves the stored text as it is."""
        title, _, rest = self.wanted.preamble.partition("\n")
        text = rest.strip("\n") if title.startswith("# ") else self.wanted.preamble
        if text.strip() and text != format.as_section_text(self.project.preamble):
            self.project.preamble = text
            self.project.save(update_fields=["preamble"])
            record(self.project, "edited", actor=self.actor, note="The text above the first section.")

    def put_in_order(self) -> None:
        """Rank what the file lists in its order, and the rest of each section behind it.

        If that is the order already, the ranks stay as they are.
        """
        children: dict[_Place | None, list[_Place]] = defaultdict(list)
        for place in [*[place for place, _ in self.places], *[p for p in self.known_places if not p.line]]:
            children[place.parent].append(place)
        self.outline.places = list(_preorder(None, children))
        self.outline.entries = [entry for entry, _ in self.entries]
        self.outline.entries += [entry for entry in self.known_entries if not entry.line]
        by_place = self.outline.entries_by_place()
        self.outline.entries = [entry for place in self.outline.places for entry in by_place[place]]

        if self.outline.places != self.known_places:
            for index, place in enumerate(self.outline.places):
                place.row.rank = (index + 1) * RANK_STEP
            Section.objects.bulk_update([place.row for place in self.known_places], ["rank"], batch_size=500)
        moved = any("section" in entry.changed for entry in self.known_entries)
        if moved or self.outline.entries != self.known_entries:
            for index, entry in enumerate(self.outline.entries):
                entry.row.rank = (index + 1) * RANK_STEP
            Task.objects.bulk_update([entry.row for entry in self.known_entries], ["rank"], batch_size=500)

    def save_places(self) -> None:
        for place, _ in self.places:
            if place.is_new:
                place.row.parent = place.parent.row if place.parent else None
                place.row.save()
            elif "body" in place.changed:
                place.row.save(update_fields=["body"])
        for place, _ in self.places:
            if "after" in place.changed:
                place.row.depends_on.set([needed.row for needed in place.after])

    def save_entries(self) -> None:
        number = Task.objects.filter(project=self.project).aggregate(last=Max("number"))["last"] or 0
        new: list[Task] = []
        for entry, _ in self.entries:
            row = entry.row
            row.section = entry.place.row
            if entry.is_new:
                number += 1
                row.number = number
                row.put_before_first_stage()
                new.append(row)
            elif entry.changed:
                row.save(update_fields=[name for name in entry.changed if name != "depends"])
                if "title" in entry.changed:
                    retitled(row)
                note = f"Changed in TODO.md: {', '.join(entry.changed)}."
                record(self.project, "edited", actor=self.actor, task=row, note=note)
        Task.objects.bulk_create(new, batch_size=AT_ONCE)
        record_created(self.project, new, actor=self.actor)

    def save_dependencies(self) -> None:
        for entry, _ in self.entries:
            if "depends" in entry.changed:
                wanted = {needed.row.pk for needed in entry.depends}
                links = Dependency.objects.filter(task=entry.row, on__project=self.project)
                links.exclude(on__in=wanted).delete()
                missing = wanted - set(links.values_list("on", flat=True))
                Dependency.objects.bulk_create([Dependency(task=entry.row, on_id=pk) for pk in missing])

    def record_the_rest(self) -> None:
        """Record one event for what belongs to no single task: changed sections, and a new order of tasks."""
        notes = [
            f"Section “{place.title}”: {', '.join(place.changed)}."
            for place in self.known_places
            if place.changed
        ]
        if [entry for entry in self.outline.entries if not entry.is_new] != self.known_entries:
            notes.append("The tasks have a new order.")
        if notes:
            record(self.project, "edited", actor=self.actor, note=" ".join(notes))

    def recount(self) -> None:
        """Recount every unfinished task that waits for something or did so; do nothing if nothing moved."""
        moves = {"section", "depends"}
        if not (
            any(place.is_new or "after" in place.changed for place, _ in self.places)
            or any(entry.is_new or moves.intersection(entry.changed) for entry, _ in self.entries)
        ):
            return
        waiting = {place for place in self.outline.places if any(p.after for p in place.upwards())}
        recount(
            entry.row
            for entry in self.outline.entries
            if entry.row.status in UNFINISHED
            and (entry.row.waits_for or entry.depends or entry.place in waiting)
        )
