"""A project's sections and tasks in the order of its list, as the list would write them."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import groupby

from tasks.models import Dependency, Project, Section, Task
from tasks.states import MEANINGS, Severity, Status
from tasks.todo import format
from tasks.todo.format import TodoTask

PATH = " / "  # "Server / Tests" names a section whose title alone is not unique


@dataclass(eq=False, slots=True)
class Place:
    """A section; `line` is 0 if the file does not list it."""

    row: Section
    title: str
    parent: "Place | None"
    after: list["Place"] = field(default_factory=list)
    line: int = 0
    is_new: bool = False
    changed: list[str] = field(default_factory=list)

    def upwards(self) -> Iterator["Place"]:
        """Yield this section and then those that contain it, from the inside out."""
        place: Place | None = self
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
class Entry:
    """A task; `line` is 0 if the file does not list it.

    `replaced` are its texts that the file replaces, though they did not come from there: people typed them.
    """

    row: Task
    title: str
    place: Place
    depends: list["Entry"] = field(default_factory=list)
    line: int = 0
    is_new: bool = False
    changed: list[str] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        return self.row.landed_at is not None or MEANINGS[Status(self.row.status)].finished


class Outline:
    """A project's rows in the order of its file: each section, its tasks, then the sections within it."""

    def __init__(self, project: Project) -> None:
        self.places: list[Place] = []
        self.entries: list[Entry] = []
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
                self.entries.append(Entry(task, format.as_line(task.title), place))

        entries = {entry.row.pk: entry for entry in self.entries}
        links = Dependency.objects.filter(task__project=project).order_by("on").values_list("task", "on")
        for pk, on in links:
            if pk in entries and on in entries:
                entries[pk].depends.append(entries[on])

    def _add_places(self, parent: Place | None, children: dict[int | None, list[Section]]) -> None:
        for section in children[parent.row.pk if parent else None]:
            section.parent = parent.row if parent else None  # known already, so no query later
            place = Place(section, format.as_line(section.title), parent)
            self.places.append(place)
            self._add_places(place, children)

    def entries_by_place(self) -> dict[Place, list[Entry]]:
        found: dict[Place, list[Entry]] = {place: [] for place in self.places}
        for entry in self.entries:
            found[entry.place].append(entry)
        return found

    def places_by_name(self) -> dict[str, list[Place]]:
        """Return the sections by what a file may call them: their title, or their path from the top."""
        found: dict[str, list[Place]] = defaultdict(list)
        for place in self.places:
            for name in {place.title, place.path}:
                found[name].append(place)
        return found


def as_item(entry: Entry) -> TodoTask:
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
    circle = first_circle(Outline(project))
    return as_sentence(circle) if circle else ""


def first_circle(outline: Outline) -> list[Place | Entry]:
    """Return the first circle of tasks and sections of which none could ever begin; empty if there is none.

    A task is done after its dependencies, and after its section begins. A section begins after the sections
    named in its `after` and after the section around it; it is done after it begins, after its tasks and
    after the sections within it. A finished task waits for nothing.
    """
    graph: TopologicalSorter[tuple[str, Place | Entry]] = TopologicalSorter()
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


def as_sentence(circle: list[Place | Entry]) -> str:
    names = [f"“{node.title}”" if isinstance(node, Entry) else f"section “{node.title}”" for node in circle]
    if len(circle) == 1:
        return f"This would wait for itself: {names[0]}."
    return f"These would wait for each other for ever: {' → '.join(names)}."


def preorder(parent: Place | None, children: dict[Place | None, list[Place]]) -> Iterator[Place]:
    for place in children[parent]:
        yield place
        yield from preorder(place, children)
