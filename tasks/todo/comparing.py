"""Comparing a file with the rows of its project: which row each line means, and what changes with it."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property

from tasks.models import Project, Section, Task
from tasks.states import MEANINGS, Severity, Status
from tasks.text.regex import regex
from tasks.todo import format
from tasks.todo.format import Problem, TodoError, TodoFile, TodoSection, TodoTask
from tasks.todo.last_reading import Earlier, LastReading
from tasks.todo.outline import Entry, Outline, Place, as_item, as_sentence, first_circle

# What other markers mean for a new task: it has never run here, so it is neither under way nor in dispute.
STATUS_OF_NEW = {
    Status.IN_PROGRESS: Status.PENDING,
    Status.REVIEW: Status.PENDING,
    Status.DISPUTED: Status.DEFERRED,
    Status.FAILED: Status.DEFERRED,
}
TEXTS = ("title", "body", "source")
FIELDS = (*TEXTS, "severity", "tags")
ENTRY = regex(r"\w+://\S+|[A-Za-z]\w*-\w+")  # a source that is one entry elsewhere: an address or a key
ALIKE = 0.6  # similarity to its old title from which a line counts as reworded
COMPARED_MAX = 10_000  # titles compared for that, which takes about a second
FEW = 5  # beyond these, a line is compared only with titles that share a word which so few of them have


class Comparison:
    """A file beside the rows of its project, which change in memory only.

    Raises TodoError with every problem, of which cycles report only the first.
    """

    def __init__(
        self, project: Project, wanted: TodoFile, lines: list[str], earlier: LastReading | None
    ) -> None:
        self.project, self.wanted, self.lines = project, wanted, lines
        self.follows, last = earlier is not None, earlier or LastReading()
        self.earlier, self.earlier_sections = last.tasks, last.sections
        self.outline = Outline(project)
        self.known_places = list(self.outline.places)
        self.known_entries = list(self.outline.entries)
        # What the file lists, in its order.
        self.places: list[tuple[Place, TodoSection]] = []
        self.entries: list[tuple[Entry, TodoTask]] = []
        self.problems: list[Problem] = []
        self.left_to_compare = COMPARED_MAX

        self.match_places()
        self.match_entries()
        self.resolve_after()
        self.resolve_depends()
        self.refuse_cycles()
        if self.problems:
            raise TodoError(self.problems)

    def report(self, number: int, reason: str) -> None:
        self.problems.append(Problem.at(self.lines, number, reason))

    def match_places(self) -> None:
        """Find the row of each section by its path, or plan a new one."""
        known = {(place.parent, place.title): place for place in self.known_places}
        for item, above in zip(self.wanted.sections, self.wanted.parents(), strict=True):
            parent = None if above is None else self.places[above][0]
            place = known.get((parent, item.title))
            if place is None:
                place = Place(
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
        """Find the row of each task by its ref, its source, its section and title, or its title; or plan one.

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
        sourced = self.by_source(items)
        chosen = [
            sourced.get(item.line) or self.choose(here[place.path, item.title], item, by_ref)
            for place, item in items
        ]
        for at, (place, item) in enumerate(items):
            entry = chosen[at]
            if entry is None and not item.ref:
                entry = self.moved(anywhere[item.title], other_lists) or self.reworded(place, item)
            self.entries.append(
                (self.edited(entry, place, item) if entry else self.planned(place, item), item)
            )

    def entries_by_name(self) -> tuple[dict[tuple[str, str], list[Entry]], dict[str, list[Entry]]]:
        """Return known tasks by section and title, and by title, as the file last named them."""
        here: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        anywhere: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.known_entries:
            was = self.earlier.get(entry.row.number)
            section, title = (was.section, was.item.title) if was else (entry.place.path, entry.title)
            here[section, title].append(entry)
            anywhere[title].append(entry)
        return here, anywhere

    def by_source(self, items: list[tuple[Place, TodoTask]]) -> dict[int, Entry]:
        """Return the tasks that lines mean by the entry elsewhere that both name, such as an issue, by line.

        Each is named by one line and by one task. A line without a source that has the task's title, too,
        comes first.
        """
        said = Counter(item.source for _, item in items)
        named = Counter(entry.row.source for entry in self.known_entries)
        kept = {(place.path, item.title) for place, item in items if not item.source}
        entries = {
            entry.row.source: entry
            for entry in self.known_entries
            if not entry.line and named[entry.row.source] == 1 and (entry.place.path, entry.title) not in kept
        }
        found = {}
        for _, item in items:
            is_one = said[item.source] == 1 and not item.ref and ENTRY.fullmatch(item.source)
            if is_one and (entry := entries.get(item.source)):
                entry.line, found[item.line] = item.line, entry
        return found

    def moved(self, same: list[Entry], other_lists: set[Place]) -> Entry | None:
        """Return the only task of a title that no line means yet, and that is not another list's."""
        free = [entry for entry in same if not entry.line]
        own = [e for e in free if e.row.number in self.earlier or e.place not in other_lists]
        return own[0] if len(own) == 1 else None

    def other_lists(self, titles: set[str]) -> set[Place]:
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
    def gone(self) -> dict[str, dict[str, Entry]]:
        """Tasks that no line means by its words, by the section and title that the file last gave them.

        Those of sections that the file does not list any more stand under the empty name.
        """
        listed = {place.path for place, _ in self.places}
        found: dict[str, dict[str, Entry]] = defaultdict(dict)
        for entry in self.known_entries:
            if not entry.line and (was := self.earlier.get(entry.row.number)):
                found[was.section if was.section in listed else ""][was.item.title] = entry
        return found

    @cached_property
    def with_word(self) -> dict[str, list[str]]:
        """The titles of the tasks that are gone, by their words."""
        found: dict[str, list[str]] = defaultdict(list)
        for title in sorted({title for titles in self.gone.values() for title in titles}):
            for word in set(title.split()):
                found[word].append(title)
        return found

    def reworded(self, place: Place, item: TodoTask) -> Entry | None:
        """Return the task whose line in this section is gone and read much like this new one, or None.

        A section that is new may be an old one by another name. Only a file that is followed has such tasks.
        """
        gone = self.gone[place.path] | (self.gone[""] if place.is_new else {})
        gone = {title: entry for title, entry in gone.items() if not entry.line}
        self.left_to_compare -= len(gone)
        if self.left_to_compare < 0:
            rare = [
                titles for word in item.title.split() if len(titles := self.with_word.get(word, [])) <= FEW
            ]
            gone = {title: gone[title] for titles in rare for title in titles if title in gone}
        return next((gone[title] for title in get_close_matches(item.title, gone, n=1, cutoff=ALIKE)), None)

    def choose(self, same: list[Entry], item: TodoTask, by_ref: dict[str, Entry]) -> Entry | None:
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

    def planned(self, place: Place, item: TodoTask) -> Entry:
        """Plan a new task."""
        status = STATUS_OF_NEW.get(item.status, item.status)
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
        entry = Entry(row, item.title, place, line=item.line, is_new=True)
        self.outline.entries.append(entry)
        return entry

    def edited(self, entry: Entry, place: Place, item: TodoTask) -> Entry:
        """Give a known task the values of the file."""
        old, new = as_item(entry), replace(item, severity=item.severity or Severity.MEDIUM)
        was = self.earlier.get(entry.row.number)
        for name in FIELDS:
            value = getattr(new, name)
            if value != getattr(old, name) and self.is_said(name, item, was):
                if name in TEXTS and getattr(old, name) not in {"", getattr(was.item, name) if was else ""}:
                    entry.replaced[name] = getattr(entry.row, name)
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
        by_title: dict[str, list[Entry]] = defaultdict(list)
        beside: dict[tuple[Place, str], list[Entry]] = defaultdict(list)
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
        if circle := first_circle(self.outline):
            line = min((node.line for node in circle if node.line), default=1)
            self.report(line, as_sentence(circle))

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
