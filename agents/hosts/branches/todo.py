"""Following a project's TODO.md on its target branch, and ticking the boxes of what landed.

A tick changes nothing else in its line. The commits say that the program made them, many ticks become one
commit, and a push is never forced: if somebody was faster, the next turn reads what is on the branch.
"""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from agents.hosts import paths
from agents.hosts.git import remotes
from agents.hosts.git.commands import GitError
from agents.hosts.git.mirror import Mirror
from tasks.database.clock import estimated_time
from tasks.models import FollowedTodo, Landing, Project
from tasks.todo import following
from tasks.todo.following import Version
from tasks.todo.format import MAX_BYTES

log = logging.getLogger(__name__)

LANDINGS = 200  # the newest landings; their changes to the file are the work of agents
MESSAGE = """\
docs: tick what landed in {path}

{refs}

Written by Steroids Web for {slug}; nobody wrote it by hand. Only boxes were ticked."""


def _rested(by: datetime | None) -> datetime:
    return (by or estimated_time()) - timedelta(seconds=settings.DURATIONS["records"])


def due(by: datetime | None = None) -> list[Project]:
    """Return the projects that follow a file which has not been looked at just now."""
    looked = FollowedTodo.objects.filter(looked_at__gt=_rested(by)).values("project")
    return list(_following().exclude(pk__in=looked))


def _following() -> QuerySet[Project]:
    named = Project.objects.filter(status=Project.Status.ACTIVE, settings__has_key="todo_path")
    return named.exclude(settings__todo_path="").exclude(target_branch="").select_related("todo")


def has_work() -> bool:
    """Whether a file was never looked at or a box is to be ticked; what people may push does not count."""
    for project in _following():
        row = getattr(project, "todo", None)
        if row is None or row.looked_at is None:
            return True
        is_fine = not row.problem and not row.waiting and project.config.todo_branch
        if is_fine and following.to_tick(row):
            return True
    return False


def follow(project: Project) -> None:
    """Take the newest version of the file, then tick what landed (RND-8). Problems become a column."""
    row = following.look(project, _rested(None))
    if row is None:
        return  # another host is doing it
    main = paths.mirror(project)
    try:
        head = main.fetch_target()
        if head != row.seen or row.path != project.config.todo_path:
            _read(project, row, main, head)
        row.refresh_from_db(fields=["sha", "path", "lines", "ticked", "opened"])
        if row.sha == head and project.config.todo_branch:
            _tick(row, main, head)
    except GitError as error:
        log.warning("The TODO.md of %s cannot be followed: %s", project.slug, error)
        FollowedTodo.objects.filter(pk=row.pk).update(problem=str(error)[:500], seen="")


def _read(project: Project, row: FollowedTodo, mirror: Mirror, head: str) -> None:
    """Read the file at `head`, and take it if it has changed. Raises GitError."""
    path = project.config.todo_path
    text = mirror.read(head, path, MAX_BYTES + 1)
    mine = FollowedTodo.objects.filter(pk=row.pk)
    if text is None or not mirror.is_plain_file(head, path):
        what = "no file" if text is None else "a link and no file"
        missing = f"There is {what} {path} on {project.target_branch}."
        mine.update(seen=head, problem=missing, waiting="", waiting_for=[])
        return
    if "\ufffd" in text:
        mine.update(seen=head, problem=f"{path} is not written in UTF-8.", waiting="", waiting_for=[])
        return
    before = ""
    if row.sha and row.path == path and mirror.has(row.sha):
        before = mirror.read(row.sha, path, MAX_BYTES + 1) or ""
    if before and before == text:
        mine.update(seen=head, sha=head, problem="", waiting="", waiting_for=[])
        return
    since = row.sha
    if row.granted and mirror.contains(head, row.granted) and mirror.contains(row.granted, since):
        since = row.granted  # a person accepted the changes up to there
    commits = mirror.touching(since, head, path) if before else []
    changed_by = _landed_in(project, mirror, commits)
    following.take(project, Version(head, path, text, before, changed_by, next(iter(commits), "")))


def _landed_in(project: Project, mirror: Mirror, commits: list[str]) -> tuple[str, ...]:
    """Return the tasks whose landed work includes some of these commits."""
    landed = Landing.objects.filter(project=project, status=Landing.Status.LANDED).select_related("task")
    found = []
    for landing in landed.order_by("-landed_at")[:LANDINGS] if commits else ():
        of_it = [sha for sha in commits if mirror.contains(landing.sha, sha)]
        before = landing.seen_head
        if any(not before or not mirror.contains(before, sha) for sha in of_it):
            landing.task.project = project
            found.append(landing.task.ref)
    return tuple(dict.fromkeys(reversed(found)))


def _tick(row: FollowedTodo, main: Mirror, head: str) -> None:
    """Tick the boxes of what landed, and push that. Raises GitError."""
    project, path = row.project, row.path
    name = project.config.todo_branch
    if not following.to_tick(row):
        return
    if name == project.target_branch and project.landings.filter(status__in=Landing.LIVE).exists():
        return  # the landing would have to be rebased, and ticks can wait
    text = main.read(head, path, MAX_BYTES + 1) or ""
    made, tasks = following.ticked(row, text)
    branch = Mirror(main.path, main.url, name, main.network)
    parent = head if name == project.target_branch else _begin(row, branch, head, text)
    if tasks and parent:
        refs = ", ".join(task.ref for task in tasks)
        message = MESSAGE.format(path=path, refs=refs, slug=project.slug)
        if sha := branch.commit_files(parent, path, {path: made}, message):
            branch.push(sha)
            following.wrote(row, tasks, sha=sha, branch=name)
            if name == project.target_branch:  # a tick changes nothing that is built or tested
                known = Project.objects.filter(pk=project.pk, base_sha=head, base_state__in=Project.FIT)
                known.update(base_sha=sha)
                row.refresh_from_db(fields=["sha"])
    following.note_ticked(row)


def _begin(row: FollowedTodo, branch: Mirror, head: str, text: str) -> str:
    """Return the commit of the branch to tick on; empty if somebody changed the file there.

    A branch that was merged starts again from the target branch. Raises GitError.
    """
    if not remotes.has_branch(branch.url, branch.branch, branch.network):
        return head
    parent = branch.fetch_target()
    if branch.contains(head, parent):
        return head
    there = branch.read(parent, row.path, MAX_BYTES + 1)
    ours = branch.read(row.written, row.path, MAX_BYTES + 1) if row.written else None
    if there in {ours, text}:
        return parent
    problem = f"Somebody changed {row.path} on {branch.branch}; it stays so until that is merged or deleted."
    FollowedTodo.objects.filter(pk=row.pk).update(problem=problem[:500])
    return ""
