"""Core: what the words of a person's TODO.md say of its tasks: urgency, what they wait for, columns."""

from collections import defaultdict
from collections.abc import Callable, Iterator

from tasks.states import Severity
from tasks.text.counting import counted
from tasks.todo import wording
from tasks.todo.drafts import NAMES_MAX, DraftSection, DraftTask, escaped, key_of
from tasks.todo.format import AFTER, ATTRIBUTE, ATTRIBUTES, split_list
from tasks.todo.order import put_in_order

Column = tuple[DraftSection, str, list[DraftTask]]  # a section, the word that it says, and its tasks
Said = tuple[DraftTask, str, DraftTask, int]  # who waits, by which name, for whom, in which line


class WordsOfTasks:
    """What the words of a file say of tasks besides their attributes; tasks of the export are passed over."""

    def __init__(
        self, sections: list[DraftSection], note: Callable[[int, str], None], *, is_followed: bool
    ) -> None:
        self.sections, self.note, self.is_followed = sections, note, is_followed
        self.understood: set[int] = set()  # lines whose words say something of their task
        self.tasks = [task for section in self.sections for task in section.tasks if not task.identity]
        self.section_of = {id(task): section for section in self.sections for task in section.tasks}
        self.said: list[Said] = []
        self.titles: dict[str, list[DraftTask]] = defaultdict(list)
        self.numbers: dict[str, list[DraftTask]] = defaultdict(list)
        for section in self.sections:
            for task in section.tasks:
                self.titles[wording.plain(task.title)].append(task)
                self.numbers[wording.number_of(task.title)].append(task)

    def read(self) -> None:
        for section, marker, tasks in self.below(lambda section: wording.column_of(section.title)):
            self.put(section, marker, tasks)
        for task in self.tasks:
            self.weigh(task)
        for section, word, tasks in self.below(_urgency_of):
            if unsaid := [task for task in tasks if not task.severity and not _own(task, "severity")]:
                for task in unsaid:
                    task.severity = wording.severity_of(word)
                told = counted(len(unsaid), "task")
                words = f"“{word}” is read as severity: {wording.severity_of(word)} of {told}."
                self.note(section.line, words)
        for section in self.sections:
            for task in section.tasks:
                if not task.identity:
                    self.link(task, section)
        if not self.states_order():
            put_in_order(self.sections, self.note)
        _cut_circles(self.tasks)
        self.tell_links()

    def states_order(self) -> bool:
        """Whether the file states the order of its tasks in the form that `parse` reads."""
        lines = (line for section in self.sections for line, _ in section.lines)
        tasks = (task for section in self.sections for task in section.tasks)
        return any(map(AFTER.fullmatch, lines)) or any(
            task.identity or _own(task, "depends") for task in tasks
        )

    def below(self, says: Callable[[DraftSection], str]) -> Iterator[Column]:
        """Yield each section that says a word, with it and the tasks to which no other word is nearer."""
        found: list[Column] = []
        around: list[Column] = []
        for section in self.sections[1:]:
            while around and around[-1][0].level >= section.level:
                around.pop()
            if word := says(section):
                around.append((section, word, []))
                found.append(around[-1])
            if around:
                around[-1][2].extend(task for task in section.tasks if not task.identity)
        yield from found

    def put(self, section: DraftSection, marker: str, tasks: list[DraftTask]) -> None:
        """Mark the open tasks of a column; if some of a finished one are ticked, the others are open."""
        unmarked = [task for task in tasks if task.marker == " "]
        if not unmarked or (marker == "x" and (self.is_followed or len(unmarked) < len(tasks))):
            return
        for task in unmarked:
            task.marker = marker
        told = counted(len(unmarked), "task")
        self.note(section.line, f"“{section.title[:NAMES_MAX]}” is read as [{marker}] of {told}.")

    def weigh(self, task: DraftTask) -> None:
        if _own(task, "severity"):
            return
        said = [(wording.urgency(task.title, wording.IN_TITLE), task.line)]
        for line, number in task.plain_lines():
            key, value = wording.field_of(line)
            said.append((wording.urgency(value, wording.IN_VALUE) if key == "severity" else "", number))
        word, number = next((each for each in reversed(said) if each[0]), ("", 0))
        if word:
            task.severity = wording.severity_of(word)
            self.understood.add(number)
            self.note(number, f"“{word}” is read as severity: {task.severity}.")

    def link(self, task: DraftTask, section: DraftSection) -> None:
        """Let the task wait for those that its text names."""
        own = _own(task, "depends")
        for at, (line, number) in enumerate(task.lines):
            if own and key_of(line) == "depends":
                task.lines[at] = (self.renamed(line, task, section, number), number)
                break
        for line, number in [(task.title, task.line), *task.plain_lines()]:
            key, value = wording.field_of(line)
            if own and (key != "depends" or key_of(line) == "depends"):
                continue
            for name, label in wording.names_in(value) if key == "depends" else wording.names_in_text(line):
                needed = self.meant(name, label, task, section)
                if needed is None or needed is task:
                    if key == "depends":
                        self.refuse(name, number)
                elif not any(needed is each for each in [*task.parts, *task.needs]):
                    task.needs.append(needed)
                    self.said.append((task, name, needed, number))

    def tell_links(self) -> None:
        for task, name, needed, number in self.said:
            if any(needed is each for each in task.needs):
                self.understood.add(number)
                self.tell(name, needed, number)
            else:
                self.refuse(name, number)

    def refuse(self, name: str, number: int) -> None:
        self.note(number, f"“{name[:NAMES_MAX]}” names no task for which this one could wait.")

    def tell(self, name: str, needed: DraftTask, number: int) -> None:
        told = f"“{name[:NAMES_MAX]}” is read as depends: {needed.title[:NAMES_MAX]}."
        self.note(number, told)

    def renamed(self, line: str, task: DraftTask, section: DraftSection, number: int) -> str:
        """Return the attribute with titles in place of the numbers by which it names tasks."""
        match = ATTRIBUTE.fullmatch(line.strip())
        names = []
        for name in split_list(match[3], ";") if match else ():
            label = next((label for _, label in wording.names_in(name)), "")
            needed = None if wording.plain(name) in self.titles else self.meant(name, label, task, section)
            if needed:
                self.tell(name, needed, number)
            names.append(needed.name if needed else escaped(name))
        return f"  depends: {'; '.join(names)}"

    def meant(self, name: str, label: str, task: DraftTask, section: DraftSection) -> DraftTask | None:
        """Return the one task that a name means, if it can be named and does not wait for this one."""
        same = self.titles.get(wording.plain(name)) or (self.numbers.get(label, []) if label else [])
        beside = [each for each in same if self.section_of[id(each)] is section]
        if len(found := beside or same) != 1:
            return None
        alike = self.titles.get(wording.plain(found[0].title), [])
        return None if len(alike) > 1 and not beside else found[0]


def _cut_circles(tasks: list[DraftTask]) -> None:
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


def _own(task: DraftTask, key: str) -> bool:
    """Whether the task has this attribute itself, in the form that `parse` reads."""
    for line, _ in task.lines:
        match = ATTRIBUTE.fullmatch(line.strip())
        if match is None or (match[1].lower() not in ATTRIBUTES and match[3] and not match[2]):
            return False
        if match[1].lower() == key:
            return key != "severity" or match[3].lower() in set(Severity)
    return False


def _urgency_of(section: DraftSection) -> str:
    fields = [wording.field_of(line) for line, _ in section.lines]
    words = [wording.urgency(value, wording.IN_VALUE) for key, value in fields if key == "severity"]
    return wording.urgency(section.title, wording.IN_HEADING) or next(filter(None, words), "")
