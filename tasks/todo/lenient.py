r"""Core: turns a TODO.md as people write it into the form that `format.parse` reads.

Whatever is read differently from how it is written is noted, line by line. What the export writes stays as it
is: its tasks have identity comments, below which nothing is taken apart, and it puts a backslash before text
that would be misread here.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tasks.states import MARKERS, Severity
from tasks.text.counting import counted
from tasks.text.regex import regex
from tasks.todo.format import (
    ATTRIBUTE,
    ATTRIBUTES,
    FIRST_SECTION,
    HEADING,
    IDENTITY,
    MAX_LEVEL,
    NUMBERED,
    SECTION_TITLE_MAX,
    TASK,
    TITLE_MAX,
    TOP_HEADING,
    UNDERLINE,
    Problem,
    after_fence,
    split_lines,
    split_list,
)
from tasks.todo.wording import (
    IN_HEADING,
    IN_TITLE,
    IN_VALUE,
    MARKS,
    column_of,
    field_of,
    legend_in,
    names_in,
    number_of,
    plain,
    severity_of,
    urgency,
)

Line = tuple[str, int]  # a line for `parse`, and the line of the file that it comes from
BOXED = regex(r"\[([^\[\]]{0,3})\](?![(\[:])[ \t]*(\S.*)")  # the title of a heading that is a task
INDENTED = regex(r"([ \t]+)(\S.*)")
RULE = regex(r"(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}")
NAMES_MAX = 60  # characters of a title in a note
BROKEN_FROM = 60  # characters of a line that may have been broken because it was long


@dataclass(frozen=True, slots=True)
class Reading:
    """The lines for `parse`, the line of the file behind each, and what was read differently."""

    lines: tuple[str, ...]
    origins: tuple[int, ...]
    notes: tuple[Problem, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def origin(self, line: int) -> int:
        """Return the line of the file behind a line that was given to `parse`."""
        return self.origins[min(line, len(self.origins)) - 1] if self.origins else line


@dataclass(slots=True)
class _Task:
    line: int
    marker: str
    title: str
    identity: str
    indent: int
    lines: list[Line] = field(default_factory=list)
    parts: list["_Task"] = field(default_factory=list)
    severity: Severity | None = None  # as its words say, if no attribute does
    needs: list["_Task"] = field(default_factory=list)  # as its words say

    @property
    def name(self) -> str:
        """The name by which an attribute of another task means this one."""
        match = IDENTITY.fullmatch(self.identity)
        return match[1] if match else re.sub(r"([\\;])", r"\\\1", self.title)

    def plain_lines(self) -> Iterator[Line]:
        """Yield the lines of its text that are in no fence."""
        fence = ""
        for line, number in self.lines:
            before, fence = fence, after_fence(line.strip(), fence)
            if not before and not fence:
                yield line, number


@dataclass(slots=True)
class _Section:
    """A heading with the text and the tasks below it; the first one has no heading."""

    line: int
    level: int
    title: str
    lines: list[Line] = field(default_factory=list)
    tasks: list[_Task] = field(default_factory=list)


def read_leniently(text: str, *, is_followed: bool = False) -> Reading:
    """Return the file in the form that `parse` reads. What cannot be mended is left for `parse` to report.

    In a file that is followed, only a box says that a task is done, never the heading above it: the program
    fills boxes there, and a task must not be open again because its neighbour has got a tick.
    """
    return _Reader(split_lines(text), is_followed).read()


class _Reader:
    def __init__(self, lines: list[str], is_followed: bool) -> None:
        self.lines, self.is_followed = lines, is_followed
        self.notes: list[Problem] = []
        self.sections = [_Section(0, 0, "")]
        self.open: list[_Task] = []  # the task that is being read, preceded by the tasks that contain it
        self.fence = ""
        self.has_title = False
        self.shift = 0  # 1 if the file has several top headings, which puts all others one level lower
        self.outside = False  # the last line was text below a task without an indent
        self.legend: dict[str, str] = {}  # markers that the file explains itself
        for line in lines:
            if not _item(line.strip()):
                self.legend |= legend_in(line)
        self.within = 0  # the level of the heading that is the task which is being read
        self.understood: set[int] = set()  # lines whose words say something of their task

    def note(self, number: int, reason: str) -> None:
        self.notes.append(Problem.at(self.lines, number, reason))

    def read(self) -> Reading:
        skipped = 0
        for number, line in enumerate(self.lines, start=1):
            if number == skipped:
                continue
            if self.within and not self.fence:
                line = self.below_heading(line)
            if not self.fence and not self.within and self.is_underlined(number):
                skipped = number + 1
                self.heading(number, 1 if self.lines[number].startswith("=") else 2, line.strip())
                self.note(number, "A line with a rule below it is read as a heading.")
            else:
                self.take(number, line)
        self.tell_apart()
        _Words(self).read()
        written = list(self.written())
        return Reading(
            tuple(line for line, _ in written),
            tuple(number for _, number in written),
            tuple(sorted(self.notes, key=lambda note: note.line)),
        )

    # One line.

    def is_underlined(self, number: int) -> bool:
        """Whether the line is a heading because of the rule in the next one (setext)."""
        line = self.lines[number - 1]
        below = self.lines[number] if number < len(self.lines) else ""
        above = self.lines[number - 2] if number > 1 else ""
        is_text = bool(line.strip()) and not line.startswith((" ", "\t", ">", "#", "\\", "|", "`", "~"))
        return is_text and not above.strip() and bool(UNDERLINE.fullmatch(below)) and not _item(line)

    def below_heading(self, line: str) -> str:
        """Return a line below a heading that is a task as its text; a rule or the next heading ends it."""
        match = HEADING.fullmatch(line) or TOP_HEADING.fullmatch(line)
        level = len(line) - len(line.lstrip("#")) if match else MAX_LEVEL + 1
        if level <= self.within or RULE.fullmatch(line):
            self.within = 0
        return f"  {line}" if self.within and line.strip() else line

    def take(self, number: int, line: str) -> None:
        if self.fence:
            self.inside_fence(number, line)
        elif (match := HEADING.fullmatch(line)) and (boxed := BOXED.fullmatch(match[2])):
            self.open, self.within = [], len(match[1])
            self.note(number, "A heading with a box is read as a task.")
            self.task(number, boxed, 0)
        elif match := HEADING.fullmatch(line):
            self.heading(number, len(match[1]) + self.shift, match[2].strip())
        elif match := TOP_HEADING.fullmatch(line):
            self.heading(number, 1, match[1].strip())
        elif match := _item(line):
            self.open = []
            self.task(number, match, 0)
        elif (inner := INDENTED.fullmatch(line)) and (match := _item(inner[2])) and self.may_be_part():
            self.task(number, match, len(inner[1].expandtabs(4)))
        elif self.open and RULE.fullmatch(line):
            self.open, self.outside = [], False  # a rule ends a task, and says nothing
        elif inner and self.goes_on(number, inner[2]):
            self.open[-1].title += f" {inner[2].rstrip()}"
            self.note(number, "The title goes on in this line.")
        else:
            self.text(number, line)

    def goes_on(self, number: int, text: str) -> bool:
        """Whether the title above is a long line that was broken, so that this one goes on with it."""
        if not self.open or self.open[-1].identity or self.open[-1].lines:
            return False
        above, whole = self.lines[number - 2].rstrip(), self.open[-1].title
        is_broken = len(above) >= BROKEN_FROM and not above.endswith((".", ":", ";", "!", "?"))
        return is_broken and text[0].islower() and not _key(text) and len(whole) + len(text) < TITLE_MAX

    def may_be_part(self) -> bool:
        """Whether a box in an indented line is a task; below a task of the export it is part of its text."""
        return not self.open or not self.open[0].identity

    def heading(self, number: int, level: int, title: str) -> None:
        if level == 1 and not self.has_title and len(self.sections) == 1 and not self.sections[0].tasks:
            self.has_title = True
            self.sections[0].lines.append((f"# {title}", number))
            return
        if level == 1:
            level, self.shift = 2, 1
            self.note(number, "A second top heading is read as a section.")
        last = max(self.sections[-1].level, 1)
        if level > min(last + 1, MAX_LEVEL):
            level = min(last + 1, MAX_LEVEL)
            self.note(number, f"A heading that skips a level is read as one with {'#' * level}.")
        self.open, self.outside = [], False
        section = _Section(number, level, title)
        if len(title) > SECTION_TITLE_MAX:
            section.title = title[: SECTION_TITLE_MAX - 1] + "…"
            section.lines.append((title, number))
            self.note(number, "The title is too long: it is cut, and whole in the text of the section.")
        self.sections.append(section)

    def task(self, number: int, match: re.Match[str], indent: int) -> None:
        marker, rest = match[1], match[2].strip()
        identity = ""
        begin = rest.rfind("<!--")
        if begin >= 0 and IDENTITY.fullmatch(rest, begin):
            rest, identity = rest[:begin].strip(), rest[begin:]
        if not rest:
            self.note(number, "A box without a title is passed over.")
            return
        self.outside = False
        while self.open and self.open[-1].indent >= indent:
            self.open.pop()
        if not identity and self.legend.get(marker, marker) != marker:
            self.note(number, f"[{marker}] is read as [{self.legend[marker]}], as the file explains it.")
            marker = self.legend[marker]
        task = _Task(number, self.marker(number, marker), rest, identity, indent)
        if match.re.pattern == NUMBERED.pattern:
            self.note(number, "A numbered box is read as a task.")
        if len(rest) > TITLE_MAX:
            task.title = rest[: TITLE_MAX - 1] + "…"
            task.lines += [("", number), (f"  {rest}", number), ("", number)]
            self.note(number, "The title is too long: it is cut, and whole in the description.")
        if self.open:
            self.open[-1].parts.append(task)
            above = self.open[-1].title[:NAMES_MAX]
            self.note(number, f"A box within “{above}” is a task of its own, for which that one waits.")
        self.sections[-1].tasks.append(task)
        self.open.append(task)

    def marker(self, number: int, marker: str) -> str:
        known = marker.strip() or " "
        known = "x" if known == "X" else known
        if known in MARKERS:
            return known
        if known in MARKS:
            self.note(number, f"[{marker}] is read as [{MARKS[known]}].")
            return MARKS[known]
        self.note(number, f"[{marker}] is no marker of ours: the task is read as one to do, [ ].")
        return " "

    def text(self, number: int, line: str) -> None:
        if not self.open:
            self.sections[-1].lines.append((line, number))
            self.fence = after_fence(line, self.fence)
            return
        task = self.open[-1]
        inner = INDENTED.fullmatch(line)
        if not line.strip():
            task.lines.append(("" if task.indent else line, number))
        elif inner is None:
            if not self.outside:
                self.note(number, f"Text below “{task.title[:NAMES_MAX]}” is read as its description.")
            self.outside = True
            task.lines.append((f"  {line}", number))
            self.fence = after_fence(line, self.fence)
        else:
            self.outside = False
            content = line if not task.indent else _within(line, task.indent)
            task.lines.append((content, number))
            if not task.identity:
                self.fence = after_fence(content.strip(), self.fence)

    def inside_fence(self, number: int, line: str) -> None:
        if not self.open:
            self.sections[-1].lines.append((line, number))
        elif self.outside:
            self.open[-1].lines.append((f"  {line}" if line.strip() else "", number))
        elif line.strip() and not INDENTED.fullmatch(line):
            self.fence = ""  # the text of a task ends with its indent
            self.take(number, line)
            return
        else:
            self.open[-1].lines.append((_within(line, self.open[-1].indent), number))
        self.fence = after_fence(line.strip() if self.open else line, self.fence)

    # The whole.

    def tell_apart(self) -> None:
        """Rename sections under one parent, and tasks of one section, that have the same name."""
        around: list[_Section] = []
        used: set[tuple[int, str]] = set()
        for section in self.sections[1:]:
            while around and around[-1].level >= section.level:
                around.pop()
            parent = around[-1].line if around else 0
            section.title = self.free(section, used, parent, "section")
            around.append(section)
        for section in self.sections:
            taken: set[tuple[int, str]] = {(0, task.title) for task in section.tasks if task.identity}
            for task in section.tasks:
                if not task.identity:
                    task.title = self.free(task, taken, 0, "task")

    def free(self, item: _Section | _Task, used: set[tuple[int, str]], parent: int, what: str) -> str:
        title, number = item.title, 1
        while (parent, title) in used or (
            what == "section" and title == FIRST_SECTION and self.is_taken(item)
        ):
            number += 1
            title = f"{item.title} ({number})"
        used.add((parent, title))
        if title != item.title:
            self.note(item.line, f"A second {what} of this name is called “{title[:NAMES_MAX]}” here.")
        return title

    def is_taken(self, item: _Section | _Task) -> bool:
        """Whether tasks above the first heading have taken this section's name already."""
        return isinstance(item, _Section) and item.level == 2 and bool(self.sections[0].tasks)

    def written(self) -> Iterator[Line]:
        for section in self.sections:
            if section.level:
                yield f"{'#' * section.level} {section.title}", section.line
            yield from section.lines
            for task in section.tasks:
                identity = f" {task.identity}" if task.identity else ""
                yield f"- [{task.marker}] {task.title}{identity}", task.line
                yield from self.below(task)

    def below(self, task: _Task) -> Iterator[Line]:
        """Yield the attributes first, with the parts that the task waits for, and then its text."""
        values, others, rest = self.attributes(task)
        given = {_key(line): at for at, (line, _) in enumerate(values)}
        if task.severity and "severity" not in given:
            values.append((f"  severity: {task.severity}", task.line))
        if (needed := [*task.parts, *task.needs]) and task.marker != "x":
            names = "; ".join(each.name for each in needed)
            if "depends" in given:
                line, number = values[given["depends"]]
                values[given["depends"]] = (f"{line.rstrip().rstrip(';')}; {names}", number)
            else:
                values.append((f"  depends: {names}", task.line))
        yield from values
        if others:
            yield "", others[0][1]
        yield from others
        yield from rest

    def attributes(self, task: _Task) -> tuple[list[Line], list[Line], list[Line]]:
        """Return the attributes directly below a task, lines that only look like attributes, and the rest."""
        values: list[Line] = []
        others: list[Line] = []
        seen: set[str] = set()
        for at, (line, number) in enumerate(task.lines):
            match = ATTRIBUTE.fullmatch(line.strip())
            if match is None or (match[1].lower() not in ATTRIBUTES and match[3] and not match[2]):
                return values, others, task.lines[at:]
            key = match[1].lower()
            is_severity = key != "severity" or match[3].lower() in set(Severity)
            if key in ATTRIBUTES and key not in seen and is_severity:
                seen.add(key)
                values.append((line, number))
            else:
                others.append((line, number))
                if number in self.understood:
                    continue
                self.note(number, "This is no attribute that is known here: it is read as description.")
        return values, others, []


class _Words:
    """What the words of a file say of tasks besides their attributes; tasks of the export are passed over."""

    def __init__(self, reader: _Reader) -> None:
        self.reader, self.sections = reader, reader.sections
        self.tasks = [task for section in self.sections for task in section.tasks if not task.identity]
        self.section_of = {id(task): section for section in self.sections for task in section.tasks}
        self.said: list[
            tuple[_Task, str, _Task, int]
        ] = []  # who waits, by which name, for whom, in which line
        self.titles: dict[str, list[_Task]] = defaultdict(list)
        self.numbers: dict[str, list[_Task]] = defaultdict(list)
        for section in self.sections:
            for task in section.tasks:
                self.titles[plain(task.title)].append(task)
                self.numbers[number_of(task.title)].append(task)

    def read(self) -> None:
        for section, marker, tasks in self.below(lambda section: column_of(section.title)):
            self.put(section, marker, tasks)
        for task in self.tasks:
            self.weigh(task)
        for section, word, tasks in self.below(_urgency_of):
            if unsaid := [task for task in tasks if not task.severity and not _own(task, "severity")]:
                for task in unsaid:
                    task.severity = severity_of(word)
                told = counted(len(unsaid), "task")
                words = f"“{word}” is read as severity: {severity_of(word)} of {told}."
                self.reader.note(section.line, words)
        for section in self.sections:
            for task in section.tasks:
                if not task.identity:
                    self.link(task, section)
        _cut_circles(self.tasks)
        self.tell_links()

    def below(self, says: Callable[[_Section], str]) -> Iterator[tuple[_Section, str, list[_Task]]]:
        """Yield each section that says a word, with it and the tasks to which no other word is nearer."""
        found: list[tuple[_Section, str, list[_Task]]] = []
        around: list[tuple[_Section, str, list[_Task]]] = []
        for section in self.sections[1:]:
            while around and around[-1][0].level >= section.level:
                around.pop()
            if word := says(section):
                around.append((section, word, []))
                found.append(around[-1])
            if around:
                around[-1][2].extend(task for task in section.tasks if not task.identity)
        yield from found

    def put(self, section: _Section, marker: str, tasks: list[_Task]) -> None:
        """Mark the open tasks of a column; if some of a finished one are ticked, the others are open."""
        unmarked = [task for task in tasks if task.marker == " "]
        if not unmarked or (marker == "x" and (self.reader.is_followed or len(unmarked) < len(tasks))):
            return
        for task in unmarked:
            task.marker = marker
        told = counted(len(unmarked), "task")
        self.reader.note(section.line, f"“{section.title[:NAMES_MAX]}” is read as [{marker}] of {told}.")

    def weigh(self, task: _Task) -> None:
        if _own(task, "severity"):
            return
        said = [(urgency(task.title, IN_TITLE), task.line)]
        for line, number in task.plain_lines():
            key, value = field_of(line)
            said.append((urgency(value, IN_VALUE) if key == "severity" else "", number))
        word, number = next((each for each in reversed(said) if each[0]), ("", 0))
        if word:
            task.severity = severity_of(word)
            self.reader.understood.add(number)
            self.reader.note(number, f"“{word}” is read as severity: {task.severity}.")

    def link(self, task: _Task, section: _Section) -> None:
        """Let the task wait for those that its text names."""
        own = _own(task, "depends")
        for at, (line, number) in enumerate(task.lines):
            if own and _key(line) == "depends":
                task.lines[at] = (self.renamed(line, task, section, number), number)
                break
        for line, number in task.plain_lines():
            key, value = field_of(line)
            if key != "depends" or (own and _key(line) == "depends"):
                continue
            for name, label in names_in(value):
                needed = self.meant(name, label, task, section)
                if needed is None or needed is task:
                    self.refuse(name, number)
                elif not any(needed is each for each in [*task.parts, *task.needs]):
                    task.needs.append(needed)
                    self.said.append((task, name, needed, number))

    def tell_links(self) -> None:
        for task, name, needed, number in self.said:
            if any(needed is each for each in task.needs):
                self.reader.understood.add(number)
                self.tell(name, needed, number)
            else:
                self.refuse(name, number)

    def refuse(self, name: str, number: int) -> None:
        self.reader.note(number, f"“{name[:NAMES_MAX]}” names no task for which this one could wait.")

    def tell(self, name: str, needed: _Task, number: int) -> None:
        told = f"“{name[:NAMES_MAX]}” is read as depends: {needed.title[:NAMES_MAX]}."
        self.reader.note(number, told)

    def renamed(self, line: str, task: _Task, section: _Section, number: int) -> str:
        """Return the attribute with titles in place of the numbers by which it names tasks."""
        match = ATTRIBUTE.fullmatch(line.strip())
        names = []
        for name in split_list(match[3], ";") if match else ():
            label = next((label for _, label in names_in(name)), "")
            needed = None if plain(name) in self.titles else self.meant(name, label, task, section)
            if needed:
                self.tell(name, needed, number)
            names.append(needed.name if needed else re.sub(r"([\\;])", r"\\\1", name))
        return f"  depends: {'; '.join(names)}"

    def meant(self, name: str, label: str, task: _Task, section: _Section) -> _Task | None:
        """Return the one task that a name means, if it can be named and does not wait for this one."""
        same = self.titles.get(plain(name)) or (self.numbers.get(label, []) if label else [])
        beside = [each for each in same if self.section_of[id(each)] is section]
        if len(found := beside or same) != 1:
            return None
        alike = self.titles.get(plain(found[0].title), [])
        return None if len(alike) > 1 and not beside else found[0]


def _cut_circles(tasks: list[_Task]) -> None:
    """Let no task wait, by what its text names, for one that waits for it."""
    above: set[int] = set()
    done: set[int] = set()
    for first in tasks:
        path = [] if id(first) in done else [(first, iter([*first.parts, *first.needs]))]
        above.update(id(task) for task, _ in path)
        while path:
            task, rest = path[-1]
            needed = next(rest, None)
            if needed is None:
                path.pop()
                above.discard(id(task))
                done.add(id(task))
            elif id(needed) in above:
                task.needs = [each for each in task.needs if each is not needed]
            elif id(needed) not in done:
                path.append((needed, iter([*needed.parts, *needed.needs])))
                above.add(id(needed))


def _own(task: _Task, key: str) -> bool:
    """Whether the task has this attribute itself, in the form that `parse` reads."""
    for line, _ in task.lines:
        match = ATTRIBUTE.fullmatch(line.strip())
        if match is None or (match[1].lower() not in ATTRIBUTES and match[3] and not match[2]):
            return False
        if match[1].lower() == key:
            return key != "severity" or match[3].lower() in set(Severity)
    return False


def _urgency_of(section: _Section) -> str:
    fields = [field_of(line) for line, _ in section.lines]
    words = [urgency(value, IN_VALUE) for key, value in fields if key == "severity"]
    return urgency(section.title, IN_HEADING) or next(filter(None, words), "")


def _item(line: str) -> re.Match[str] | None:
    """Match a task in the first column, with a bullet or a number."""
    return TASK.fullmatch(line) or NUMBERED.fullmatch(line)


def _key(line: str) -> str:
    match = ATTRIBUTE.fullmatch(line.strip())
    return match[1].lower() if match else ""


def _within(line: str, indent: int) -> str:
    """Return the text of a nested task, indented as the text of a task in the first column."""
    if not indent or not line.strip():
        return line
    content = line.expandtabs(4)
    spaces = len(content) - len(content.lstrip())
    return " " * max(spaces - indent, 2) + content.lstrip()
