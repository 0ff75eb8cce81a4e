"""Core: reads lists of tasks that other programs keep as JSON, such as the tasks.json of Task Master."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, count
from operator import itemgetter
from typing import Any

from tasks.states import MARKERS
from tasks.text.counting import counted
from tasks.todo import format
from tasks.todo.drafts import NAMES_MAX
from tasks.todo.format import Problem, TodoError, TodoFile, TodoSection, TodoTask
from tasks.todo.lenient import Reading
from tasks.todo.wording import marker_of, severity_of

BEGINS = ('{"', "[{")
LISTS = "tasks"  # the key of a list that has no name of its own
DEEP = 3  # objects around a list
# The keys under which programs keep the same thing; a text is kept below its label.
KEYS = {
    "name": ("id", "number", "key"),
    "status": ("status", "state"),
    "source": ("url", "html_url"),
    "depends": ("dependencies", "depends_on", "dependsOn"),
    "parts": ("subtasks", "subTasks"),
    "tags": ("tags", "labels"),
    "waits for": ("depends_on_id", "id"),
}
DONE = ("passes", "passed", "done", "complete", "completed")  # keys whose true says that it is done
CALLED = ("name", "summary", "description")  # the title of an entry that has none but says where it stands
TEXTS = {
    "description": "", "body": "", "details": "", "steps": "Steps:", "notes": "Notes:",
    "testStrategy": "Test strategy:", "acceptanceCriteria": "Acceptance criteria:",
}  # fmt: skip
PART = "parent-child"  # the kind of a link to the entry that this one is a part of
ORDERED = 3  # priorities from which on they are an order if no two are the same


def read_json(text: str) -> Reading | None:
    """Return the lists of a JSON file in the form that `parse` reads; None if the text is no such file.

    A list is an array of objects with a title; each named list becomes a section. A task waits for its
    subtasks, and these wait for whatever their task waits for. An object in each line is one list. Raises
    TodoError for broken JSON.
    """
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    if "".join(text[:100].split())[:2] not in BEGINS:
        return None
    notes: list[str] = []
    try:
        lists = _lists_in(json.loads(_joined(text)), "", DEEP)
        read = [
            (name or format.FIRST_SECTION, tuple(_List(notes, name).tasks(items))) for name, items in lists
        ]
    except json.JSONDecodeError as error:
        reason = f"This is no valid JSON: {error.msg} at column {error.colno}."
        raise TodoError([Problem.at(format.split_lines(text), error.lineno, reason)]) from error
    except (RecursionError, ValueError) as error:  # the latter for a number of thousands of digits
        reason = "This JSON is nested too deeply, or holds a number that is too long."
        raise TodoError([Problem(0, "", reason)]) from error
    if not read:
        return None
    sections = [TodoSection(name, tasks=tasks) for name, tasks in read]
    if len(read) == 1:  # its name says nothing
        sections = [TodoSection(format.FIRST_SECTION, 0, tasks=read[0][1])]
    tasks = counted(sum(len(section.tasks) for section in sections), "task")
    lines = format.split_lines(format.render(TodoFile("", tuple(sections))))
    told = (f"The file is JSON: {tasks} in {counted(len(read), 'list')}.", *notes)
    return Reading(tuple(lines), (0,) * len(lines), tuple(Problem(0, "", note) for note in told))


def _joined(text: str) -> str:
    """Return JSON in which each line is an object as one list, with the same lines."""
    lines = [line.strip() for line in text.rstrip().split("\n")]
    if len(lines) > 1 and all(not line or line[0] + line[-1] == "{}" for line in lines):
        return "[" + "\n".join(line and f"{line}," for line in lines).removesuffix(",") + "]"
    return text


def _lists_in(found: Any, name: str, deep: int) -> Iterator[tuple[str, list[Any]]]:
    if isinstance(found, list) and deep:
        inner = [each for each in found if isinstance(each, dict) and isinstance(each.get(LISTS), list)]
        own = [each for each in found if each not in inner] if inner else found
        if any(_title(each) for each in own):
            yield format.as_line(name)[: format.SECTION_TITLE_MAX], own
        for each in inner:
            yield from _lists_in(each[LISTS], str(each.get("title") or each.get("name") or name), deep - 1)
    elif isinstance(found, dict) and deep:
        for key, value in found.items():
            yield from _lists_in(value, name if key == LISTS else key, deep - 1)


def _title(item: Any) -> str:
    if not isinstance(item, dict):
        return ""
    says_state = any(key in item for key in (*KEYS["status"], *DONE))
    titles = (item.get(key) for key in ("title", *(CALLED if says_state else ())))
    title = next((each for each in titles if isinstance(each, str) and each.strip()), "")
    return format.as_line(title.strip().splitlines()[0]) if title.strip() else ""


def _in_order(found: list[Any]) -> list[Any]:
    """Return the entries without priorities, sorted by them, if these number the entries of the list."""
    ranks = [each.get("priority") for each in found if isinstance(each, dict)]
    is_order = len(found) >= ORDERED and len(set(map(str, ranks))) == len(found) and all(map(_title, found))
    if not is_order or not all(type(rank) is int for rank in ranks):
        return found
    return [each | {"priority": None} for each in sorted(found, key=lambda each: each["priority"])]


@dataclass(eq=False, slots=True)
class _Item:
    """An entry of a list, the one that it is a part of, and what it waits for."""

    told: dict[str, Any]
    whole: "_Item | None" = None
    names: tuple[str, ...] = ()
    title: str = ""
    needs: dict["_Item", None] = field(default_factory=dict)

    def get(self, kind: str) -> Any:
        return next((self.told[key] for key in KEYS[kind] if self.told.get(key) not in (None, "")), None)

    def around(self) -> Iterator["_Item"]:
        """Yield the items that it is a part of, from the inside out."""
        if self.whole:
            yield self.whole
            yield from self.whole.around()


class _List:
    """One list while it is being read; its tasks name each other by their numbers."""

    def __init__(self, notes: list[str], name: str) -> None:
        self.notes = notes
        self.called = f"“{name}”" if name else "the list"
        self.items: list[_Item] = []
        self.titles: dict[str, int] = {}  # with the last number that was put behind each

    def tasks(self, found: list[Any]) -> list[TodoTask]:
        """Return the tasks of the list, each in front of its parts."""
        self.take(_in_order(found), None)
        by_name = {name: item for item in reversed(self.items) for name in item.names}
        for item in self.items:  # an item comes behind the one that it is a part of
            self.find_needs(item, by_name)
        return [_task(item) for item in self.items]

    def take(self, found: Iterable[Any], whole: _Item | None) -> None:
        around = f"“{whole.title}”" if whole else self.called
        for number, told in enumerate(found, start=1):
            if title := _title(told):
                self.take_one(told, title, whole)
            else:
                self.notes.append(f"Entry {number} of {around} has no title and is left out.")

    def take_one(self, told: Any, title: str, whole: _Item | None) -> None:
        item = _Item(told, whole)
        name = str(item.get("name") or "")
        item.names = tuple(f"{each}.{name}" for each in whole.names) if whole else ()
        item.names += (name,) if name and (whole is None or "." in name) else ()
        item.title = self.unique(title[: format.TITLE_MAX], next(iter(item.names), ""))
        self.items.append(item)
        self.take(_listed(item.get("parts")), item)

    def unique(self, title: str, name: str) -> str:
        """Return the title, with the task's name or a number behind it if another task has that title."""
        found, number = title, self.titles.get(title, 1)
        marks = chain(filter(None, [name]), count(number + 1))
        while found in self.titles:
            mark = next(marks)
            number = mark if isinstance(mark, int) else number
            behind = f" ({mark})"
            found = f"{title[: format.TITLE_MAX - len(behind)]}{behind}"
        self.titles[title] = number
        self.titles.setdefault(found, 1)
        return found

    def find_needs(self, item: _Item, by_name: dict[str, _Item]) -> None:
        """Note what it waits for: its parts, what it names, and whatever the one around it names.

        A number in a part means another part of the same task, if there is one, or else a task of the list.
        """
        for each, is_part in filter(itemgetter(0), map(_link, _listed(item.get("depends")))):
            beside = [f"{name}.{each}" for name in item.whole.names] if item.whole else []
            found = next(filter(None, map(by_name.get, [*beside, each])), None)
            if found is None:
                name = format.as_line(each)[:NAMES_MAX]
                self.notes.append(f"“{item.title}” waits for {name}, which is not in the list; left out.")
            elif found is not item and found not in item.around():
                needs, other = (found.needs, item) if is_part else (item.needs, found)
                needs[other] = None
        if item.whole:
            item.needs |= {other: None for other in item.whole.needs if other.whole is not item.whole}
            item.whole.needs[item] = None


def _task(item: _Item) -> TodoTask:
    source = format.as_line(str(item.get("source") or ""))
    tags = tuple(filter(None, map(_tag, _listed(item.get("tags")))))
    urgent = (severity_of(word) for word in (str(item.told.get("priority", "")), *tags))
    return TodoTask(
        title=item.title,
        status=MARKERS[_marker(item)],
        source=source if len(source) <= format.SOURCE_MAX else "",
        severity=next(filter(None, urgent), None),
        tags=tags,
        depends=tuple(other.title for other in item.needs),
        body=format.as_text("\n\n".join(_texts(item))),
    )


def _marker(item: _Item) -> str:
    marker = marker_of(str(item.get("status") or ""))
    return "x" if marker == " " and any(item.told.get(key) is True for key in DONE) else marker


def _link(value: Any) -> tuple[str, bool]:
    """Return the name of what an entry waits for, and whether the entry is a part of it instead.

    A link of another kind, such as to a related entry, names nothing.
    """
    if not isinstance(value, dict):
        return str(value), False
    kind = value.get("type", "blocks")
    name = next((value[key] for key in KEYS["waits for"] if value.get(key)), "")
    return (str(name) if kind in ("blocks", PART) else ""), kind == PART


def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else () if value is None else (value,)


def _tag(value: Any) -> str:
    return format.as_line(str(value.get("name", "") if isinstance(value, dict) else value))


def _texts(item: _Item) -> Iterator[str]:
    for key, label in TEXTS.items():
        value = item.told.get(key)
        text = "\n".join(f"- {each}" for each in value) if isinstance(value, list) else value
        if isinstance(text, str) and text.strip() not in ("", item.title):
            yield f"{label}\n{text}".strip()
