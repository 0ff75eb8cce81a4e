r"""Core: reading and writing TODO.md.

    # Title and free text (the preamble)

    ## Section
    after: Another section; A third one

    Free text of the section.

    - [ ] Title <!-- t:ledger-12 -->
      source: docs/SPEC.md#login
      severity: high
      tags: a, b
      depends: Another title; ledger-3

      Free Markdown, indented by two spaces.

Headings and tasks begin in the first column; whatever is indented belongs to the task above. A line that
looks like a heading or a task is text if it is inside a fence of a preamble or section, or if it follows a
backslash (`\## like this`). In lists, a backslash keeps a separator: `Read\; write`. A title of a section
that begins with a bracket is written with one before it (`## \[x] like this`).

`render` writes the canonical form, and `parse` returns exactly what was rendered. From other files, only
these are lost: a byte order mark, CRLF, blank lines around texts, spaces around titles and values, `*` and
`+` as bullets, `[X]`, tabs as indent, capitals in keys and severities, the order of attributes, empty
attributes and empty items of lists.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from tasks.states import MARKERS, MEANINGS, Severity, Status
from tasks.text.fences import after_fence, closed
from tasks.text.regex import regex

MAX_BYTES = 8 * 1024 * 1024
MAX_LEVEL = 6  # Markdown has no deeper heading
TITLE_MAX = 300
SECTION_TITLE_MAX = 200
SOURCE_MAX = 300
EXCERPT_MAX = 200
FIRST_SECTION = "Tasks"  # where the tasks above the first heading go
ATTRIBUTES = ("source", "severity", "tags", "depends")

HEADING = regex(r"(#{2,})[ \t]*(.*)")
# Not a link such as "- [a](b)". Up to three characters, so that "[ x]" and "[ok]" are refused, not skipped.
TASK = regex(r"(?:-[ \t]*|[*+][ \t]+)\[([^\[\]]{0,3})\](?![(\[:])[ \t]*(.*)")
# What only the lenient reading takes for more than text; the export puts a backslash before these.
NUMBERED = regex(r"[0-9]{1,9}[.)][ \t]+\[([^\[\]]{0,3})\](?![(\[:])[ \t]*(.*)")
TOP_HEADING = regex(r"#[ \t]+(\S.*)")
UNDERLINE = regex(r"(?:={2,}|-{3,})[ \t]*")
# What a person may have meant as a task: "- Do it", "1. Do it", "1. [ ] Do it".
ITEM = regex(r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(?:\[[^\[\]]{0,3}\](?![(\[:]))?[ \t]*(\S.*)")
AFTER = regex(r"after:(.*)", re.IGNORECASE)
ATTRIBUTE = regex(r"([A-Za-z][\w-]*):(\s*)(.*)")
IDENTITY = regex(r"<!--\s*t:\s*([A-Za-z0-9_-]+-[1-9][0-9]{0,8})\s*-->")
IDENTITY_BEGIN = regex(r"<!--\s*t\s*:")
CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a file: the line's number from 1, its text, and the reason as a sentence.

    The number is 0 if the fault is no line's, but one of the whole file or of something that it names.
    """

    line: int
    text: str
    reason: str

    @classmethod
    def at(cls, lines: Sequence[str], number: int, reason: str) -> "Problem":
        """Return a problem of that line, with its text cut and made safe to print."""
        text = lines[number - 1][:EXCERPT_MAX] if number else ""
        return cls(number, CONTROL.sub(REPLACEMENT, text), reason)

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}" if self.line else self.reason


class TodoError(ValueError):
    """A file that cannot be read; `problems` holds everything that is wrong with it, from top to bottom."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: problem.line)
        super().__init__("\n".join(map(str, self.problems)))

    def lines(self, file: str) -> list[str]:
        """Return each problem with its place in the file of that name."""
        return [f"{file}{f':{each.line}' if each.line else ''}: {each.reason}" for each in self.problems]


@dataclass(frozen=True, slots=True)
class TodoTask:
    """One task of the file. `depends` names titles or refs; without a severity the file gives none."""

    title: str
    status: Status = Status.PENDING
    ref: str = ""
    source: str = ""
    severity: Severity | None = None
    tags: tuple[str, ...] = ()
    depends: tuple[str, ...] = ()
    body: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class TodoSection:
    """One heading with what is below it. Level 0 has no heading: it holds the tasks above the first one."""

    title: str
    level: int = 2
    after: tuple[str, ...] = ()
    body: str = ""
    tasks: tuple[TodoTask, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class TodoFile:
    """The whole file: its preamble, and its sections in order, nested by their levels."""

    preamble: str = ""
    sections: tuple[TodoSection, ...] = ()

    @property
    def has_tasks(self) -> bool:
        return any(section.tasks for section in self.sections)

    def parents(self) -> list[int | None]:
        """Return for each section the index of the one that contains it, or None."""
        found: list[int | None] = []
        around: list[int] = []
        for index, section in enumerate(self.sections):
            while around and self.sections[around[-1]].level >= section.level:
                around.pop()
            found.append(around[-1] if around else None)
            if section.level:
                around.append(index)
        return found


def parse(text: str) -> TodoFile:
    """Read a file. Raises TodoError with every problem in it."""
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise TodoError([Problem(1, "", f"The file has {size} bytes; {MAX_BYTES} are the limit. Divide it.")])
    return _Reader(split_lines(text)).read()


def no_task(text: str) -> Problem:
    """Return the problem of a file without a task, at the first line that may be meant as one."""
    lines = split_lines(text)
    for number, line in enumerate(lines, start=1):
        if item := ITEM.fullmatch(line):
            return Problem.at(lines, number, f"The file holds no task. {_box_of(item)}")
    return Problem.at(lines, 1, "The file holds no task. A task is a line such as `- [ ] Say what it does`.")


def _box_of(item: re.Match[str]) -> str:
    return f"A task begins with a dash and a box: `- [ ] {as_line(item[1])[:EXCERPT_MAX]}`."


def render(todo: TodoFile) -> str:
    """Write the canonical form. Raises TodoError for a value that would be read back as a different one."""
    blocks = [_escaped(todo.preamble, is_preamble=True)]
    for section in todo.sections:
        blocks += _section_blocks(section)
        for task in section.tasks:
            blocks += _task_blocks(task)
    text = "".join(f"{block}\n\n" for block in blocks if block)[:-1]
    # The size is not limited here: a large project can be written, although it cannot be read again.
    if _Reader(split_lines(text)).read() != todo:
        raise TodoError([Problem(1, "", "These values have no form in TODO.md that keeps them as they are.")])
    return text


def split_lines(text: str) -> list[str]:
    """Return the lines as `parse` numbers them."""
    return text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").replace("\r\n", "\n").split("\n")


# --- Values from elsewhere, made fit for the file; those out of `parse` stay as they are --------------------


def as_line(value: str) -> str:
    """Make a title, or another value of one line, fit for the file."""
    return CONTROL.sub(REPLACEMENT, re.sub(r"\r?\n|\r", " ", value)).strip()


def as_text(value: str) -> str:
    """Make the body of a task fit for the file."""
    return _trimmed(CONTROL.sub(REPLACEMENT, value.replace("\r\n", "\n").replace("\r", "\n")).split("\n"))


def as_section_text(value: str) -> str:
    """Make the body of a section fit for the file, so that it leaves no fence open over what follows."""
    return closed(as_text(value))


# --- Reading ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Block:
    """A heading or a task line, with the lines up to the next one."""

    line: int
    head: re.Match[str]
    lines: list[str] = field(default_factory=list)

    @property
    def is_task(self) -> bool:
        return self.head.re.pattern == TASK.pattern


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.problems: list[Problem] = []

    def report(self, number: int, reason: str) -> None:
        self.problems.append(Problem.at(self.lines, number, reason))

    def read(self) -> TodoFile:
        self.check_characters()
        preamble, blocks = self.blocks()
        found: list[tuple[TodoSection, list[TodoTask]]] = []
        for block in blocks:
            if not block.is_task:
                found.append((self.section(block), []))
                continue
            if not found:
                found.append((TodoSection(FIRST_SECTION, level=0, line=block.line), []))
            found[-1][1].append(self.task(block))
        sections = tuple(replace(section, tasks=tuple(tasks)) for section, tasks in found)
        todo = TodoFile(_trimmed(preamble), sections)
        self.check_sections(todo)
        self.check_identities(todo)
        if self.problems:
            raise TodoError(self.problems)
        return todo

    def blocks(self) -> tuple[list[str], list[_Block]]:
        """Cut the file at its headings and tasks, which count only outside the fences of free text."""
        preamble: list[str] = []
        blocks: list[_Block] = []
        below = preamble
        fence, opened = "", 0
        for number, line in enumerate(self.lines, start=1):
            if not fence and (head := _head(line)):
                blocks.append(_Block(number, head))
                below = blocks[-1].lines
            elif blocks and blocks[-1].is_task:
                below.append(line)
            elif fence:
                below.append(line)
                fence = after_fence(line, fence)
            else:
                below.append(_unescaped(line))
                fence, opened = after_fence(line, fence), number
        if fence:
            self.report(opened, "This fence is never closed, so that everything below it would be text.")
        return preamble, blocks

    def section(self, block: _Block) -> TodoSection:
        level, title = len(block.head[1]), re.sub(r"^\\(\\*\[)", r"\1", block.head[2].strip())
        if not title:
            self.report(block.line, "A heading needs a title.")
        if len(title) > SECTION_TITLE_MAX:
            self.report(block.line, f"The title of a section has at most {SECTION_TITLE_MAX} characters.")
        named = list(takewhile(bool, map(AFTER.fullmatch, block.lines)))
        after = tuple(name for match in named if match for name in split_list(match[1], ";"))
        return TodoSection(title, level, after, _trimmed(block.lines[len(named) :]), line=block.line)

    def task(self, block: _Block) -> TodoTask:
        marker, rest = block.head[1], block.head[2].strip()
        status = MARKERS.get("x" if marker == "X" else marker)
        if status is None:
            known = " ".join(f"[{marker}]" for marker in MARKERS)
            self.report(block.line, f"[{marker}] is not a marker; known are {known}.")
        title, ref = self.identity(block.line, rest)
        if not title:
            self.report(block.line, "A task needs a title.")
        if len(title) > TITLE_MAX:
            self.report(block.line, f"The title of a task has at most {TITLE_MAX} characters.")
        values, used = self.attributes(block)
        return TodoTask(
            title=title,
            status=status or Status.PENDING,
            ref=ref,
            source=values.get("source", ""),
            severity=Severity(values["severity"].lower()) if "severity" in values else None,
            tags=split_list(values.get("tags", ""), ","),
            depends=split_list(values.get("depends", ""), ";"),
            body=self.body(block, used),
            line=block.line,
        )

    def identity(self, number: int, rest: str) -> tuple[str, str]:
        """Split what follows the marker into title and ref."""
        begin = rest.rfind("<!--")
        if begin >= 0 and (match := IDENTITY.fullmatch(rest, begin)):
            return rest[:begin].strip(), match[1]
        if IDENTITY_BEGIN.search(rest):
            self.report(number, "An identity comment ends the line and looks like <!-- t:ledger-12 -->.")
        return rest, ""

    def attributes(self, block: _Block) -> tuple[dict[str, str], int]:
        """Return the attributes directly below the task, and how many lines they take up."""
        values: dict[str, str] = {}
        for used, line in enumerate(block.lines):
            match = ATTRIBUTE.fullmatch((_dedented(line) or "").strip())
            if match is None:
                return values, used
            key, value, number = match[1].lower(), match[3], block.line + 1 + used
            if key not in ATTRIBUTES and value and not match[2]:  # a URL, or C++ such as std::vector
                return values, used
            if key not in ATTRIBUTES:
                known = ", ".join(ATTRIBUTES)
                self.report(
                    number,
                    f"{match[1]} is not an attribute; known are {known}. Free text follows a blank line.",
                )
            elif key in values:
                self.report(number, f"{key} is given twice for this task.")
            elif key == "severity" and value.lower() not in set(Severity):
                known = ", ".join(Severity)
                self.report(number, f"{value or 'Nothing'} is not a severity; known are {known}.")
            elif key == "source" and len(value) > SOURCE_MAX:
                self.report(number, f"A source has at most {SOURCE_MAX} characters.")
            else:
                values[key] = value
        return values, len(block.lines)

    def body(self, block: _Block, used: int) -> str:
        lines = []
        for number, line in enumerate(block.lines[used:], start=block.line + 1 + used):
            content = _dedented(line)
            if content is None:
                indented = "Text below a task is indented by two spaces."
                item = ITEM.fullmatch(line)
                self.report(number, f"{_box_of(item)} {indented}" if item else indented)
            else:
                lines.append(content)
        return _trimmed(lines)

    def check_characters(self) -> None:
        for number, line in enumerate(self.lines, start=1):
            if match := CONTROL.search(line):
                self.report(number, f"The line holds the control character U+{ord(match[0]):04X}.")

    def check_sections(self, todo: TodoFile) -> None:
        """Report levels that skip one, and section titles that occur twice under one parent."""
        level = 1
        seen: dict[tuple[int | None, str], int] = {}
        for section, parent in zip(todo.sections, todo.parents(), strict=True):
            if section.level > MAX_LEVEL:
                self.report(section.line, f"A heading begins with at most {'#' * MAX_LEVEL}.")
            elif section.level > level + 1:
                signs = "#" * section.level
                self.report(section.line, f"A heading with {signs} needs one with {signs[1:]} above it.")
            level = max(section.level, 1)
            first = seen.setdefault((parent, section.title), section.line)
            if first != section.line:
                self.report(
                    section.line,
                    f"A section “{section.title}” is already in line {first}, under the same parent.",
                )

    def check_identities(self, todo: TodoFile) -> None:
        """Report tasks that occur twice, by their ref or else by their title in the section."""
        refs: dict[str, int] = {}
        for section in todo.sections:
            titles: dict[str, TodoTask] = {}
            for task in section.tasks:
                if task.ref and refs.setdefault(task.ref, task.line) != task.line:
                    self.report(task.line, f"{task.ref} is already in line {refs[task.ref]}.")
                first = titles.setdefault(task.title, task)
                if first is not task and not (first.ref and task.ref):
                    self.report(
                        task.line, f"“{task.title}” is already in line {first.line}, in the same section."
                    )


def _head(line: str) -> re.Match[str] | None:
    return HEADING.fullmatch(line) or TASK.fullmatch(line)


def _dedented(line: str) -> str | None:
    """Return the line without the indent of a task's text; None if it has no indent and is not blank."""
    for indent in ("  ", "\t", " \t"):
        if line.startswith(indent):
            return line.removeprefix(indent)
    return None if line.strip() else ""


def _unescaped(line: str) -> str:
    return line[1:] if line.startswith("\\") and _is_marked(line.lstrip("\\")) else line


def _is_marked(line: str) -> bool:
    """Whether the strict or the lenient reading takes the line for more than text."""
    lenient = (NUMBERED, TOP_HEADING, UNDERLINE)
    return bool(_head(line)) or any(pattern.fullmatch(line) for pattern in lenient)


def _trimmed(lines: list[str]) -> str:
    """Join the lines to one text, without the blank lines around it."""
    filled = [index for index, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[filled[0] : filled[-1] + 1]) if filled else ""


def split_list(value: str, separator: str) -> tuple[str, ...]:
    """Return the items of a list in which a backslash keeps a separator."""
    items = re.findall(rf"(?:\\[\\{separator}]|[^{separator}])+", value)
    plain = (re.sub(rf"\\([\\{separator}])", r"\1", item.strip()) for item in items)
    return tuple(item for item in plain if item)


# --- Writing ----------------------------------------------------------------------------------------------


def _section_blocks(section: TodoSection) -> list[str]:
    if not section.level:
        return []
    title = re.sub(r"^(\\*\[)", r"\\\1", section.title)  # to the lenient reading a box makes it a task
    heading = f"{'#' * section.level} {title}"
    if section.after:
        heading += f"\nafter: {_join(section.after, ';')}"
    return [heading, _escaped(section.body, is_preamble=False)]


def _task_blocks(task: TodoTask) -> list[str]:
    lines = [f"- [{MEANINGS[task.status].marker}] {task.title}"]
    if task.ref:
        lines[0] += f" <!-- t:{task.ref} -->"
    values = {
        "source": task.source,
        "severity": task.severity or "",
        "tags": _join(task.tags, ","),
        "depends": _join(task.depends, ";"),
    }
    lines += [f"  {key}: {values[key]}" for key in ATTRIBUTES if values[key]]
    body = [f"  {line}" if line else "" for line in task.body.split("\n")]
    return ["\n".join(lines), "\n".join(body)]


def _escaped(text: str, *, is_preamble: bool) -> str:
    """Return free text with a backslash before each line that would be read as a heading or a task.

    The first top heading of the preamble is the title of the file and stays as it is.
    """
    lines, fence = [], ""
    for line in text.split("\n"):
        is_title = is_preamble and bool(TOP_HEADING.fullmatch(line))
        is_preamble = is_preamble and not is_title
        lines.append(f"\\{line}" if not fence and not is_title and _is_marked(line.lstrip("\\")) else line)
        fence = after_fence(line, fence)
    return "\n".join(lines)


def _join(items: Iterable[str], separator: str) -> str:
    return f"{separator} ".join(re.sub(rf"([\\{separator}])", r"\\\1", item) for item in items)
