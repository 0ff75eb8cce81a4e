"""Keeping dispute.md, decisions.md and the folders of rounds up to date on a branch of the repository.

The commits say that the program wrote them. Many changes become one commit, and a push is never forced: if
somebody was faster, the next turn starts from what is on the branch.
"""

import logging
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from django.conf import settings
from django.db.models import F, Max, Q

from agents.hosts import paths
from agents.hosts.git import remotes
from agents.hosts.git.commands import GitError
from agents.hosts.git.mirror import Mirror
from disputes import records
from disputes.sessions.documents import NAME, Folder, name_of
from tasks.database.clock import estimated_time
from tasks.models import Project, Task

log = logging.getLogger(__name__)

NOTICE = """\
Written by Steroids Web for {slug}; nobody wrote it by hand.

It holds what the program knows at event {event}. Changes that are made here are overwritten."""


def due(by: datetime | None = None) -> list[Project]:
    """Return the projects whose records are older than their last event and were not written just now."""
    rested = (by or estimated_time()) - timedelta(seconds=settings.DURATIONS["records"])
    named = Project.objects.filter(settings__has_key="records_branch").exclude(settings__records_branch="")
    chosen = named.filter(Q(records_at__isnull=True) | Q(records_at__lte=rested))
    return list(chosen.annotate(newest=Max("events")).filter(newest__gt=F("records_event")))


def files_of(project: Project) -> dict[str, str]:
    """Return the text of every file of the records by its path on the branch."""
    found = {name: text(project) for name, text in records.FILES.items()}
    for session in project.tasks.filter(origin=Task.Origin.ROUNDS).order_by("number"):
        session.project = project
        folder = name_of(session)
        found |= {f"{folder}/{path}": text for path, text in Folder(session).files.items()}
    below = project.config.records_path.strip("/")
    return {str(PurePosixPath(below) / path): text for path, text in found.items()}


def write(project: Project) -> str:
    """Bring the branch up to date (RND-7); return the commit that holds the records, or "" on failure."""
    newest = project.events.aggregate(newest=Max("pk"))["newest"] or 0
    now = estimated_time()
    taken = Project.objects.filter(pk=project.pk, records_at=project.records_at).update(records_at=now)
    if not taken:
        return ""  # another host is doing it
    try:
        sha = _written(project, newest)
    except GitError as error:
        log.warning("The records of %s cannot be written: %s", project.slug, error)
        Project.objects.filter(pk=project.pk).update(records_problem=str(error)[:500])
        return ""
    Project.objects.filter(pk=project.pk).update(records_event=newest, records_problem="")
    return sha


def _written(project: Project, newest: int) -> str:
    """Commit and push the records, and return the commit that holds them. Raises GitError."""
    main = paths.mirror(project)
    head = main.fetch_target()
    branch = Mirror(main.path, main.url, project.config.records_branch, main.network)
    if remotes.has_branch(branch.url, branch.branch, branch.network):
        head = branch.fetch_target()
    below = str(PurePosixPath(project.config.records_path.strip("/")) / NAME)
    message = f"docs: records of {project.slug}\n\n{NOTICE.format(slug=project.slug, event=newest)}"
    sha = branch.commit_files(head, below, files_of(project), message)
    if sha is None:
        return head
    branch.push(sha)
    return sha
