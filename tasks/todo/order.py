"""Core: what a person's TODO.md says of the order of its tasks: phases, and what may be done side by side."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import TypeVar

from tasks.text.regex import regex
from tasks.todo.drafts import NAMES_MAX, DraftSection, DraftTask, escaped

PHASE = regex(r"(?i)[^\w\[\\]*phase\W{1,3}([0-9]{1,3})(?![0-9]).*")
PARALLEL = regex(r"(?:^|\s)\[P\](?:\s|$)")  # the mark of tasks that may be done at the same time
STORY = regex(r"(?i)\buser stor(?:y|ies)\b")  # phases that may be done at the same time
PLAN = regex(r"(?i)#\s+implementation plan\b")
STEP = regex(r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}\.?\s")  # the number of a task in a plan
TOLD = 5  # phases in a note
FEW = 2  # tasks with a mark; a single one may be chance

Note = Callable[[int, str], None]
Item = TypeVar("Item")
Phase = tuple[DraftSection, list[DraftTask]]  # its heading, and the tasks in it and in the sections within it


def put_in_order(sections: list[DraftSection], note: Note) -> None:
    """Let phases begin one after another, and what lacks the parallel mark wait for what is above it.

    The numbered tasks of an implementation plan follow each other. Tasks that share a title are passed over.
    """
    names = Counter(task.title for section in sections for task in section.tasks)
    tasks = [task for section in sections for task in section.tasks if names[task.title] == 1]
    steps = [task for task in tasks if STEP.match(task.title)]
    if len(steps) >= FEW and any(PLAN.match(line) for line, _ in sections[0].lines):
        note(steps[0].line, "The numbered tasks of this plan are read to follow each other.")
        _follow_each_other(steps)
        return
    groups, others = _phases(sections)
    for phases in filter(_are_in_order, groups):
        _put_after(phases, note)
    marked = [task for task in tasks if PARALLEL.search(task.title)]
    if len(marked) >= FEW:
        note(marked[0].line, "Tasks without [P] are read to wait for those above them, phase by phase.")
        own = set(map(id, tasks))
        for together in [*(within for phases in groups for _, within in phases), *others]:
            _line_up([task for task in together if id(task) in own])


def _phases(sections: list[DraftSection]) -> tuple[list[list[Phase]], list[list[DraftTask]]]:
    """Return the numbered phases, those below one heading together, and the tasks of each section in none.

    What is within a phase belongs to it.
    """
    groups: dict[int, list[Phase]] = defaultdict(list)
    others: list[list[DraftTask]] = []
    around: list[DraftSection] = []
    phase: Phase | None = None
    for section in sections:
        if phase and section.level > phase[0].level:
            phase[1].extend(section.tasks)
            continue
        while around and around[-1].level >= section.level:
            around.pop()
        phase = (section, list(section.tasks)) if PHASE.fullmatch(section.title) else None
        if phase:
            groups[around[-1].line if around else 0].append(phase)
        else:
            others.append(section.tasks)
        around.append(section)
    return list(groups.values()), others


def _put_after(phases: list[Phase], note: Note) -> None:
    for (section, _), earlier in _in_line(phases, lambda phase: bool(STORY.search(phase[0].title))):
        if earlier:
            names = [before.title for before, _ in earlier]
            section.lines.insert(0, (f"after: {'; '.join(map(escaped, names))}", section.line))
            told = "”, “".join(name[:NAMES_MAX] for name in names[:TOLD])
            note(section.line, f"This phase is read to begin after “{told}”.")


def _are_in_order(phases: list[Phase]) -> bool:
    """Whether the numbers of the phases rise, and no task needs one of a later phase or of none."""
    numbers = [int(match[1]) for section, _ in phases if (match := PHASE.fullmatch(section.title))]
    if any(later <= number for number, later in zip(numbers, numbers[1:], strict=False)):
        return False
    known: set[int] = set()
    for _, tasks in phases:
        known.update(map(id, tasks))
        if not all(id(needed) in known for task in tasks for needed in task.needs):
            return False
    return True


def _line_up(tasks: list[DraftTask]) -> None:
    """Let each task without the mark wait for those above it, and those with it for the last one without."""
    for task, needed in _in_line(_whole(tasks), lambda task: bool(PARALLEL.search(task.title))):
        _wait(task, needed)


def _whole(tasks: list[DraftTask]) -> list[DraftTask]:
    """Return the tasks that are not within another one, without those that nobody is to do."""
    parts = {id(part) for task in tasks for part in task.parts}
    return [task for task in tasks if id(task) not in parts and task.marker not in ">~"]


def _follow_each_other(tasks: list[DraftTask]) -> None:
    levels = [tasks]
    while levels:
        whole = _whole(levels.pop())
        for before, task in zip(whole, whole[1:], strict=False):
            _wait(task, [before])
        levels.extend(task.parts for task in whole if task.parts)


def _in_line(each: list[Item], is_parallel: Callable[[Item], bool]) -> Iterator[tuple[Item, list[Item]]]:
    """Yield each item with those that come first: the parallel ones just above it, or the last other one."""
    last: list[Item] = []
    beside: list[Item] = []
    for item in each:
        if is_parallel(item):
            yield item, last
            beside.append(item)
        else:
            yield item, beside or last
            last, beside = [item], []


def _wait(task: DraftTask, needed: list[DraftTask]) -> None:
    """Let the task, and what is within it, wait for these as well."""
    within = [task]
    while within and needed:
        each = within.pop()
        known = set(map(id, each.needs))
        each.needs += [other for other in needed if id(other) not in known]
        within.extend(each.parts)
