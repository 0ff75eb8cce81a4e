"""Core: turns the lists of tasks that other programs keep into ours, whatever their notation is."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import chain, count, pairwise
from operator import itemgetter
from typing import Any

from tasks.states import MARKERS
from tasks.text.counting import counted, some_of
from tasks.text.regex import regex
from tasks.todo import format
from tasks.todo.drafts import NAMES_MAX
from tasks.todo.format import Problem, TodoFile, TodoSection, TodoTask
from tasks.todo.lenient import Reading
from tasks.todo.wording import marker_of, severity_of

LISTS = "tasks"  # the key of a list that has no name of its own
DEEP = 3  # objects around a list
# The keys under which programs keep the same thing, in small letters and without what is between their words.
KEYS = {
    "name": ("issuekey", "id", "number", "key", "slug", "identifier", "issueid", "taskid"),
    "status": ("status", "state", "listname", "sectioncolumn", "column"),
    "source": ("url", "htmlurl", "cardurl", "link"),
    "depends": (
        "dependencies", "dependson", "depends", "deps", "dep", "needs", "blockedby",
        "blockedbydependencies", "after",
        "inwardissuelinkblocks", "prerequisites", "requires",
    ),
    "whole": ("parenttaskid", "parent", "parentid", "parentissue", "parenttask", "parentkey"),
    "parts": ("subtasks",),
    "tags": ("tags", "labels", "label"),
    "waits for": ("dependsonid", "id"),
    "severity": ("priority", "severity", "prio", "urgency"),
}  # fmt: skip
DONE = ("passes", "passed", "done", "complete", "completed")  # keys whose true says that it is done
CALLED = ("name", "cardname", "summary", "description", "slug")  # the title of an entry that has none
TEXTS = {  # below their labels
    "description": "", "carddescription": "", "body": "", "details": "", "steps": "Steps:",
    "notes": "Notes:", "teststrategy": "Test strategy:", "acceptancecriteria": "Acceptance criteria:",
    "acceptance": "Acceptance criteria:", "definitionofdone": "Definition of done:",
}  # fmt: skip
READ = {"title", *DONE, *CALLED, *TEXTS, *(key for keys in KEYS.values() for key in keys)}
KEY = regex(r"[A-Za-z]\w*-\w+")  # a name as Jira gives; a number alone may be another entry's tomorrow
SEPARATOR = regex(r"\s*[,;\n]\s*")
OF_PRIORITY = regex(r"(?i)^(?:priority|prio|severity|sev|urgency)[\W_]+|[\W_]+priority$")
NAMED = 8  # keys that a note lists
PROSE = 4  # words from which on a text under an unknown key is read by people
WORD_END = regex(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
PART = "parent-child"  # the kind of a link to the entry that this one is a part of
ORDERED = 3  # priorities from which on they are an order if no two are the same


def spelled(key: str) -> str:
    """Return a key as this module compares it, so that Blocked by, blocked_by and blockedBy are one."""
    return "".join(filter(str.isalnum, key.lower()))


def read_entries(found: Any, told: str) -> Reading | None:
    """Return the lists in what a file holds in the form that `parse` reads; None if it holds none.

    A list consists of objects with a title; each named list becomes a section. A task waits for its
    subtasks, and these wait for whatever their task waits for. `told` is what is said of the file.
    """
    notes: list[str] = []
    read = [
        (name or format.FIRST_SECTION, tuple(_List(notes, name).tasks(items)))
        for name, items in _lists_in(_spelled(found), "", DEEP)
    ]
    if not read:
        return None
    sections = [TodoSection(name, tasks=tasks) for name, tasks in read]
    if len(read) == 1:  # its name says nothing
        sections = [TodoSection(format.FIRST_SECTION, 0, tasks=read[0][1])]
    tasks = counted(sum(len(section.tasks) for section in sections), "task")
    lines = format.split_lines(format.render(TodoFile("", tuple(sections))))
    notes = [f"{told}: {tasks} in {counted(len(read), 'list')}.", *notes]
    return Reading(tuple(lines), (0,) * len(lines), tuple(Problem(0, "", note) for note in notes))


def _spelled(found: Any) -> Any:
    """Return it with the known keys of all entries as `spelled` returns them."""
    if isinstance(found, dict):
        return {key: _spelled(_named(key, value)) for key, value in found.items()}
    if not isinstance(found, list):
        return found
    return [
        {_key(key): _spelled(_named(key, each[key])) for key in each}
        if isinstance(each, dict)
        else _spelled(each)
        for each in found
    ]


def _key(key: str) -> str:
    known = spelled(key)
    return known if known in READ else key


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


def _named(key: str, found: Any) -> Any:
    """Return what is below the key, with tasks that are only a title as entries."""
    if key != LISTS or not isinstance(found, list):
        return found
    return [{"title": each} if isinstance(each, str) else each for each in found]


def _title(item: Any, *, is_task: bool = False) -> str:
    """Return what an entry is called; one without a title is a task if it says where it stands or waits."""
    if not isinstance(item, dict):
        return ""
    waits = {*KEYS["depends"]} - {"dependencies"}  # which packages have, too
    is_task |= any(key in item for key in (*KEYS["status"], *DONE, *waits))
    titles = (item.get(key) for key in ("title", *(CALLED if is_task else ())))
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
        self.tell_unread()
        by_name = {name: item for item in reversed(self.items) for name in (item.title, *item.names)}
        for item in self.items:  # an item comes behind the one that it is a part of
            self.find_needs(item, by_name)
        self.leave_out_circles()
        return [_task(item) for item in self.items]

    def take(self, found: Iterable[Any], whole: _Item | None) -> None:
        around = f"“{whole.title}”" if whole else self.called
        for number, told in enumerate(found, start=1):
            if title := _title(told, is_task=True):
                self.take_one(told, title, whole)
            else:
                self.notes.append(f"Entry {number} of {around} has no title and is left out.")

    def tell_unread(self) -> None:
        unread = {
            key: None
            for item in self.items
            for key, value in item.told.items()
            if value and key not in READ and not _is_prose(value)
        }
        if unread:
            self.notes.append(f"Not read in {self.called}: {some_of(unread, NAMED)}.")

    def take_one(self, told: Any, title: str, whole: _Item | None) -> None:
        item = _Item(told, whole)
        own = [str(told[key]) for key in KEYS["name"] if told.get(key) not in (None, "")]
        item.names = tuple(f"{each}.{name}" for each in whole.names for name in own[:1]) if whole else ()
        item.names += tuple(name for name in own if whole is None or "." in name)
        item.title = self.unique(title[: format.TITLE_MAX], next(iter(item.names), ""))
        self.items.append(item)
        self.take([each for each in _listed(item.get("parts")) if isinstance(each, dict)], item)

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
        for each in _listed(item.get("whole")):
            if (around := by_name.get(str(each))) and around is not item:
                around.needs[item] = None
        if item.whole:
            item.needs |= {other: None for other in item.whole.needs if other.whole is not item.whole}
            item.whole.needs[item] = None

    def leave_out_circles(self) -> None:
        """Leave out what would have tasks wait for each other for ever, which other programs take."""
        order = {item: at for at, item in enumerate(self.items)}
        while circle := _circle(self.items):
            needed, item = max(pairwise(circle), key=lambda pair: order[pair[1]])
            del item.needs[needed]
            self.notes.append(f"“{item.title}” waits for “{needed.title}”, which waits for it; left out.")


def _circle(items: list[_Item]) -> list[_Item]:
    """Return items of which each is needed by the next, ending with the first; empty if there are none."""
    try:
        TopologicalSorter({item: item.needs for item in items}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _task(item: _Item) -> TodoTask:
    key = next(filter(KEY.fullmatch, item.names), "")
    source = format.as_line(str(item.get("source") or key))
    tags = tuple(filter(None, map(_tag, _listed(item.get("tags")))))
    urgent = (severity_of(OF_PRIORITY.sub("", word)) for word in (_tag(item.get("severity")), *tags))
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
    marker = marker_of(_tag(item.get("status")))
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
    if isinstance(value, str):
        return [each for each in SEPARATOR.split(value.strip()) if each]
    return value if isinstance(value, list) else () if value is None else (value,)


def _tag(value: Any) -> str:
    value = value.get("name") if isinstance(value, dict) else value
    return "" if value is None else format.as_line(str(value))


def _is_prose(value: Any) -> bool:
    """Whether the value of a key that nobody knows is text for people, which a description must not lose."""
    texts = value if isinstance(value, list) else [value]
    return any(isinstance(each, str) and len(each.split()) >= PROSE for each in texts)


def _line(value: Any) -> str:
    """Return one of several points; of an object, such as {"text": …, "done": true}, its texts."""
    said = value.values() if isinstance(value, dict) else [value]
    return " ".join(str(each) for each in said if not isinstance(each, bool | dict | list))


def _texts(item: _Item) -> Iterator[str]:
    others = {key: f"{WORD_END.sub(' ', key).capitalize()}:" for key in item.told if key not in READ}
    for key, label in (TEXTS | others).items():
        value = item.told.get(key)
        if key in others and not _is_prose(value):
            continue
        text = "\n".join(f"- {_line(each)}" for each in value) if isinstance(value, list) else value
        if isinstance(text, str) and text.strip() not in ("", item.title):
            yield f"{label}\n{text}".strip()
