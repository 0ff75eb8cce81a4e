r"""Core: turns a TODO.md as people write it into the form that `format.parse` reads.

Whatever is read differently from how it is written is noted, line by line. What the export writes stays as it
is: its tasks have identity comments, below which nothing is taken apart, and it puts a backslash before text
that would be misread here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.states import MARKERS, Severity
from tasks.text.counting import shortened
from tasks.text.fences import after_fence
from tasks.text.regex import regex
from tasks.todo import format
from tasks.todo.drafts import NAMES_MAX, DraftSection, DraftTask, Line, key_of
from tasks.todo.meaning import WordsOfTasks
from tasks.todo.wording import MARKS, legend_in

BOXED = regex(r"\[([^\[\]]{0,3})\](?![(\[:])[ \t]*(\S.*)")  # the title of a heading that is a task
INDENTED = regex(r"([ \t]+)(\S.*)")
NAMED_LIST = regex(
    r"(?i)task(?:s|[ -]?list)[ \t]*[:–—-][ \t]+(\S.*)"
)  # "Tasks: Exports", one list of several
RULE = regex(r"(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}")
TITLE_MARK = regex(r"\]\*{0,3} [^\[\]]{0,40}\[([A-Z])\] ")  # a file's own mark within the title of a task
BROKEN_FROM = 60  # characters of a line that may have been broken because it was long


@dataclass(frozen=True, slots=True)
class Reading:
    """The lines for `parse`, the line of the file behind each, and what was read differently."""

    lines: tuple[str, ...]
    origins: tuple[int, ...]
    notes: tuple[format.Problem, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def origin(self, line: int) -> int:
        """Return the line of the file behind a line that was given to `parse`."""
        return self.origins[min(line, len(self.origins)) - 1] if self.origins else line


def read_leniently(text: str, *, is_followed: bool = False) -> Reading:
    """Return the file in the form that `parse` reads. What cannot be mended is left for `parse` to report.

    In a file that is followed, only a box says that a task is done, never the heading above it: the program
    fills boxes there, and a task must not be open again because its neighbour has got a tick.
    """
    return _Reader(format.split_lines(text), is_followed).read()


def _end_of_front_matter(lines: list[str]) -> int:
    """Return the number of the line that ends the front matter of a file; 0 if it has none."""
    if lines and lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], start=2):
            if line.rstrip() == "---":
                return number
            if line.strip() and ":" not in line and not line.startswith((" ", "-", "#")):
                break
    return 0


class _Reader:
    def __init__(self, lines: list[str], is_followed: bool) -> None:
        self.lines, self.is_followed = lines, is_followed
        self.notes: list[format.Problem] = []
        self.sections = [DraftSection(0, 0, "")]
        self.open: list[DraftTask] = []  # the task that is being read, preceded by the tasks that contain it
        self.fence = ""
        self.has_title = False
        self.shift = 0  # 1 if top headings are sections, which puts all others one level lower
        self.outside = False  # the last line was text below a task without an indent
        self.legend: dict[str, str] = {}  # markers that the file explains itself
        for line in lines:
            if not _item(line.strip()):
                self.legend |= legend_in(line)
        marks = {mark for line in lines if _item(line.strip()) for mark in TITLE_MARK.findall(line)}
        self.title_marks = marks - {"X", *MARKERS, *MARKS, *self.legend}
        self.front = _end_of_front_matter(lines)
        self.within = 0  # the level of the heading that is the task which is being read
        self.understood: set[int] = set()  # lines whose words say something of their task

    def note(self, number: int, reason: str) -> None:
        self.notes.append(format.Problem.at(self.lines, number, reason))

    def read(self) -> Reading:
        skipped = 0
        for number, line in enumerate(self.lines, start=1):
            if number == skipped:
                continue
            if self.within and not self.fence:
                line = self.below_heading(line)
            if not self.fence and not self.within and number > self.front and self.is_underlined(number):
                skipped = number + 1
                self.heading(number, 1 if self.lines[number].startswith("=") else 2, line.strip())
                self.note(number, "A line with a rule below it is read as a heading.")
            else:
                self.take(number, line)
        self.tell_apart()
        words = WordsOfTasks(self.sections, self.note, is_followed=self.is_followed)
        words.read()
        self.understood = words.understood
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
        return is_text and not above.strip() and bool(format.UNDERLINE.fullmatch(below)) and not _item(line)

    def below_heading(self, line: str) -> str:
        """Return a line below a heading that is a task as its text; a rule or the next heading ends it."""
        match = format.HEADING.fullmatch(line) or format.TOP_HEADING.fullmatch(line)
        level = len(line) - len(line.lstrip("#")) if match else format.MAX_LEVEL + 1
        if level <= self.within or RULE.fullmatch(line):
            self.within = 0
        return f"  {line}" if self.within and line.strip() else line

    def take(self, number: int, line: str) -> None:
        if self.fence:
            self.inside_fence(number, line)
        elif (match := format.HEADING.fullmatch(line)) and (boxed := BOXED.fullmatch(match[2])):
            self.open, self.within = [], len(match[1])
            self.note(number, "A heading with a box is read as a task.")
            self.task(number, boxed, 0)
        elif match := format.HEADING.fullmatch(line):
            self.heading(number, len(match[1]) + self.shift, match[2].strip())
        elif match := format.TOP_HEADING.fullmatch(line):
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
        return (
            is_broken and text[0].islower() and not key_of(text) and len(whole) + len(text) < format.TITLE_MAX
        )

    def may_be_part(self) -> bool:
        """Whether a box in an indented line is a task; below a task of the export it is part of its text."""
        return not self.open or not self.open[0].identity

    def heading(self, number: int, level: int, title: str) -> None:
        if not title:
            self.open, self.outside = [], False
            self.note(number, "A heading without a title is passed over.")
            return
        is_first = not self.has_title and len(self.sections) == 1 and not self.sections[0].tasks
        named = NAMED_LIST.fullmatch(title)
        if level == 1 and is_first and not named:
            self.has_title = True
            self.sections[0].lines.append((f"# {title}", number))
            return
        if level == 1:
            level, self.shift = 2, 1
            if named and is_first:
                title = named[1]
                self.note(number, f"This list has a name: its sections lie within “{title[:NAMES_MAX]}”.")
            else:
                self.note(number, "A second top heading is read as a section.")
        last = max(self.sections[-1].level, 1)
        if level > min(last + 1, format.MAX_LEVEL):
            level = min(last + 1, format.MAX_LEVEL)
            self.note(number, f"A heading that skips a level is read as one with {'#' * level}.")
        self.open, self.outside = [], False
        section = DraftSection(number, level, title)
        if len(title) > format.SECTION_TITLE_MAX:
            section.title = shortened(title, format.SECTION_TITLE_MAX)
            section.lines.append((title, number))
            self.note(number, "The title is too long: it is cut, and whole in the text of the section.")
        self.sections.append(section)

    def task(self, number: int, match: re.Match[str], indent: int) -> None:
        marker, rest = match[1], match[2].strip()
        identity = ""
        begin = rest.rfind("<!--")
        if begin >= 0 and format.IDENTITY.fullmatch(rest, begin):
            rest, identity = rest[:begin].strip(), rest[begin:]
        if not rest:
            self.note(number, "A box without a title is passed over.")
            return
        self.outside = False
        if not indent and marker in self.title_marks:
            self.text(number, f"\\{self.lines[number - 1]}")
            self.note(
                number, f"[{marker}] stands in titles, too: this line is read as text that explains it."
            )
            return
        while self.open and self.open[-1].indent >= indent:
            self.open.pop()
        if not identity and self.legend.get(marker, marker) != marker:
            self.note(number, f"[{marker}] is read as [{self.legend[marker]}], as the file explains it.")
            marker = self.legend[marker]
        is_optional = not identity and rest.startswith("* ")
        rest = rest.removeprefix("* ") if is_optional else rest
        task = DraftTask(number, self.marker(number, marker), rest, identity, indent)
        if is_optional:
            task.severity = Severity.LOW
            self.note(number, "“*” behind the box marks what is optional: it is read as severity: low.")
        if match.re.pattern == format.NUMBERED.pattern:
            self.note(number, "A numbered box is read as a task.")
        if len(rest) > format.TITLE_MAX:
            task.title = shortened(rest, format.TITLE_MAX)
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
        around: list[DraftSection] = []
        used: dict[tuple[int, str], int] = {}
        for section in self.sections[1:]:
            while around and around[-1].level >= section.level:
                around.pop()
            parent = around[-1].line if around else 0
            section.title = self.free(section, used, parent, "section")
            around.append(section)
        for section in self.sections:
            taken = {(0, task.title): 1 for task in section.tasks if task.identity}
            for task in section.tasks:
                if not task.identity:
                    task.title = self.free(task, taken, 0, "task")

    def free(
        self, item: DraftSection | DraftTask, used: dict[tuple[int, str], int], parent: int, what: str
    ) -> str:
        """Return a title that is free; `used` has the last number that was put behind each."""
        title, number = item.title, used.get((parent, item.title), 1)
        while (parent, title) in used or (
            what == "section" and title == format.FIRST_SECTION and self.is_taken(item)
        ):
            number += 1
            title = f"{item.title} ({number})"
        used[parent, item.title] = number
        used.setdefault((parent, title), 1)
        if title != item.title:
            self.note(item.line, f"A second {what} of this name is called “{title[:NAMES_MAX]}” here.")
        return title

    def is_taken(self, item: DraftSection | DraftTask) -> bool:
        """Whether tasks above the first heading have taken this section's name already."""
        return isinstance(item, DraftSection) and item.level == 2 and bool(self.sections[0].tasks)

    def written(self) -> Iterator[Line]:
        for section in self.sections:
            if section.level:
                yield f"{'#' * section.level} {section.title}", section.line
            yield from section.lines
            for task in section.tasks:
                identity = f" {task.identity}" if task.identity else ""
                yield f"- [{task.marker}] {task.title}{identity}", task.line
                yield from self.below(task)

    def below(self, task: DraftTask) -> Iterator[Line]:
        """Yield the attributes first, with the parts that the task waits for, and then its text."""
        values, others, rest = self.attributes(task)
        given = {key_of(line): at for at, (line, _) in enumerate(values)}
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

    def attributes(self, task: DraftTask) -> tuple[list[Line], list[Line], list[Line]]:
        """Return the attributes directly below a task, lines that only look like attributes, and the rest."""
        values: list[Line] = []
        others: list[Line] = []
        seen: set[str] = set()
        for at, (line, number) in enumerate(task.lines):
            match = format.ATTRIBUTE.fullmatch(line.strip())
            if match is None or (match[1].lower() not in format.ATTRIBUTES and match[3] and not match[2]):
                return values, others, task.lines[at:]
            key = match[1].lower()
            is_severity = key != "severity" or match[3].lower() in set(Severity)
            if key in format.ATTRIBUTES and key not in seen and is_severity:
                seen.add(key)
                values.append((line, number))
            else:
                others.append((line, number))
                if number in self.understood:
                    continue
                self.note(number, "This is no attribute that is known here: it is read as description.")
        return values, others, []


def _item(line: str) -> re.Match[str] | None:
    """Match a task in the first column, with a bullet or a number."""
    return format.TASK.fullmatch(line) or format.NUMBERED.fullmatch(line)


def _within(line: str, indent: int) -> str:
    """Return the text of a nested task, indented as the text of a task in the first column."""
    if not indent or not line.strip():
        return line
    content = line.expandtabs(4)
    spaces = len(content) - len(content.lstrip())
    return " " * max(spaces - indent, 2) + content.lstrip()
