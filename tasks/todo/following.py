"""Following the TODO.md of a project's repository: what a new version of the file changes, and what waits.

People write the file, so it decides wherever it says something new. What the landed work of agents changed in
it waits for a person, and ticks of theirs close nothing. The program itself only fills boxes, and recognises
its own ticks by the version that it wrote. This module handles rows only; a host reads and writes the file
(agents/hosts/branches/todo.py).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from tasks.database.clock import estimated_time
from tasks.database.locking import locked
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import FollowedTodo, Project, Task
from tasks.models.event import record
from tasks.states import UNFINISHED, IllegalMove, Status
from tasks.text.regex import regex
from tasks.todo.format import TodoError
from tasks.todo.importing import ImportReport, import_todo
from tasks.todo.last_reading import Earlier, LastReading, reading_of

SHOWN = 20  # sentences that are kept about what waits
TICK_OF = regex(r"(\s*(?:[-*+]|[0-9]{1,9}[.)]|#{2,6})[ \t]*\[)[^\[\]]{0,3}(\].*)", re.DOTALL)
OPEN = frozenset({Status.PENDING, Status.IN_PROGRESS, Status.REVIEW})  # the statuses of an unfinished box


@dataclass(frozen=True, slots=True)
class Version:
    """The file in one commit of the target branch, and its text when it was last taken; empty if unknown."""

    sha: str
    path: str
    text: str
    before: str = ""
    changed_by: tuple[str, ...] = ()  # tasks whose landed work changed the file since then
    changed_at: str = ""  # the newest commit that changed it


def take(project: Project, version: Version) -> bool:
    """Bring the project's tasks into the shape of this version of the file (RND-8).

    Returns False if a person is to look at it first, or if it cannot be read; then nothing changes, and the
    row says why.
    """
    actor = Actor("system", f"{version.path} at {version.sha[:8]}"[:120])
    problem, waits = "", False
    sentences: list[str] = []
    try:
        with transaction.atomic():
            locked(Project.objects).get(pk=project.pk)
            followed = FollowedTodo.objects.get(project=project)
            if followed.path != version.path:  # another file: what the old one listed is not gone
                followed.lines, followed.opened = {}, []
            earlier = _earlier(followed, version)
            report = import_todo(project, version.text, actor=actor, earlier=earlier)
            listed = {str(row.number) for row, _ in report.said}
            gone = [number for number in followed.lines if number not in listed]
            if version.changed_by:  # what it changes besides ticks
                sentences = [*report.lines(), *(f"Gone: {project.slug}-{number}" for number in gone)]
            if waits := bool(sentences):
                transaction.set_rollback(True)
            else:
                _follow(project, followed, version, report, earlier.tasks, actor)
    except TodoError as error:
        problem = f"{version.path} at {version.sha[:8]} cannot be read: {error}"
    if waits:
        _wait(project, version, sentences, actor)
    else:
        FollowedTodo.objects.filter(project=project).update(
            seen=version.sha, problem=problem[:500], waiting="", waiting_for=[]
        )
    return not waits and not problem


def _earlier(followed: FollowedTodo, version: Version) -> LastReading:
    """Return what the version before said of the sections, and of each task by its number."""
    if not version.before or followed.path != version.path:
        return LastReading()
    try:
        last = reading_of(version.before)
    except TodoError:
        return LastReading()
    tasks = {int(number): last.tasks[line] for number, line in followed.lines.items() if line in last.tasks}
    return LastReading(tasks, last.sections)


def _wait(project: Project, version: Version, sentences: list[str], actor: Actor) -> None:
    by = ", ".join(version.changed_by)
    shown = [sentence[:300] for sentence in sentences[:SHOWN]]
    if more := len(sentences) - len(shown):
        shown.append(f"and {more} more")
    with transaction.atomic():
        mine = FollowedTodo.objects.filter(project=project)
        mine.update(seen=version.sha)
        if mine.exclude(waiting=version.changed_at).update(
            waiting=version.changed_at, waiting_for=shown, problem=""
        ):
            note = f"{by} changed it: {'; '.join(shown)}"
            record(project, "todo_waits", actor=actor, note=note[:500], data={"sha": version.changed_at})


def _follow(
    project: Project,
    followed: FollowedTodo,
    version: Version,
    report: ImportReport,
    earlier: Mapping[int, Earlier],
    actor: Actor,
) -> None:
    """Close tasks that somebody ticked, record those that are gone or open again, and remember the file."""
    known = Task.objects.select_related("project", "section").in_bulk([row.pk for row, _ in report.said])
    opened = set(followed.opened)
    for row, item in report.said:
        task = known[row.pk]
        was = earlier.get(task.number)
        is_finished = task.status not in UNFINISHED
        if item.status == Status.COMPLETED:
            opened.discard(task.number)
            if not is_finished and not (was and was.item.status == Status.COMPLETED):
                _close(task, version, actor)
        elif not is_finished:
            opened.discard(task.number)
        elif item.status in OPEN and was and was.item.status == Status.COMPLETED:
            opened.add(task.number)
            note = "The task is finished. Reopen it on its page if there is more to do."
            record(project, "todo_reopened", actor=actor, task=task, note=note)
    here = {str(row.number): item.line for row, item in report.said}
    gone = [int(number) for number in followed.lines if number not in here]
    for task in project.tasks.filter(number__in=gone, status__in=UNFINISHED):
        record(
            project, "todo_removed", actor=actor, task=task,
            note="The task stays as it is. Cancel it on its page if it is not wanted any more.",
        )  # fmt: skip
    FollowedTodo.objects.filter(pk=followed.pk).update(
        sha=version.sha, path=version.path, lines=here, opened=sorted(opened.difference(gone)),
        ticked=[row.number for row, item in report.said if item.status == Status.COMPLETED],
    )  # fmt: skip


def _close(task: Task, version: Version, actor: Actor) -> None:
    """Finish the task because a person ticked its box, or record why that is not possible."""
    why = f"{', '.join(version.changed_by)} changed the file; only people close tasks so."
    if not version.changed_by:
        try:
            task.finish(actor=actor, note="Its box was ticked.")
            return
        except (Refused, IllegalMove) as refused:
            why = str(refused)
    record(task.project, "todo_unclosed", actor=actor, task=task, note=why[:500])


def grant(project: Project, sha: str, *, user: Any) -> None:
    """Let a version pass that waits for a person; the caller has checked that this person may.

    Raises Refused("moved_on") if another version is waiting by now.
    """
    with transaction.atomic():
        waiting = FollowedTodo.objects.filter(project=project, waiting=sha).exclude(waiting="")
        if not waiting.update(granted=sha, waiting="", waiting_for=[], seen="", looked_at=None):
            raise Refused("moved_on", "The file has changed since you looked at it.", "Look at it again.")
        record(project, "todo_taken", actor=Actor.person(user), data={"sha": sha}, note=sha[:12])


# --- The program's own ticks --------------------------------------------------------------------------------


def to_tick(followed: FollowedTodo) -> list[Task]:
    """Return the finished tasks whose box is not known to be filled, without those that a person emptied."""
    known = set(followed.ticked)
    return [task for task in _finished(followed) if task.number not in known]


def _finished(followed: FollowedTodo) -> list[Task]:
    """Return the tasks of the file that landed or were finished, and whose box nobody has emptied since."""
    numbers = {int(number) for number in followed.lines}.difference(followed.opened)
    done = followed.project.tasks.filter(status=Status.COMPLETED, number__in=numbers)
    tasks = list(done.exclude(landed_at__isnull=True, finished_by="").order_by("number"))
    for task in tasks:
        task.project = followed.project
    return tasks


def ticked(followed: FollowedTodo, text: str) -> tuple[str, list[Task]]:
    """Return the text that was taken last with the boxes of finished tasks filled, and those tasks.

    Nothing else changes: a box that a person emptied or filled differently stays as it is.
    """
    items, lines, done = reading_of(text).tasks, text.split("\n"), []
    for task in _finished(followed):
        line = followed.lines[str(task.number)]
        match = TICK_OF.fullmatch(lines[line - 1]) if line in items else None
        if match and items[line].item.status in OPEN:
            lines[line - 1] = f"{match[1]}x{match[2]}"
            done.append(task)
    return "\n".join(lines), done


def wrote(followed: FollowedTodo, tasks: Collection[Task], *, sha: str, branch: str) -> None:
    """Write down that the program has pushed its ticks.

    On the target branch, the pushed commit becomes the version that was taken last.
    """
    project = followed.project
    with transaction.atomic():
        now = {"sha": sha, "seen": sha} if branch == project.target_branch else {}
        FollowedTodo.objects.filter(pk=followed.pk).update(written=sha, problem="", **now)
        refs = ", ".join(task.ref for task in tasks)
        record(project, "todo_ticked", note=f"{refs} on {branch}"[:500], data={"sha": sha})


def note_ticked(followed: FollowedTodo) -> None:
    """Write down that no box waits to be filled, until the file or a task changes."""
    numbers = [task.number for task in to_tick(followed)]
    FollowedTodo.objects.filter(pk=followed.pk, sha=followed.sha).update(ticked=[*followed.ticked, *numbers])


def look(project: Project, rested: datetime) -> FollowedTodo | None:
    """Return the project's row for a host that looks at the file now.

    Returns None if another host looked after `rested`, or is looking at this moment.
    """
    row, _ = FollowedTodo.objects.get_or_create(project=project)
    row.project = project
    if row.looked_at is not None and row.looked_at > rested:
        return None
    mine = FollowedTodo.objects.filter(pk=row.pk, looked_at=row.looked_at)
    return row if mine.update(looked_at=estimated_time()) else None
