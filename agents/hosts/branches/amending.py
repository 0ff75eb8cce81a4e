"""Drafting amendments of specifications: the commits that write into the repository what was ruled.

A draft lies on a ref of its own in the mirror, off every branch. Its commit is the same on every host, so
whichever host lands it can make it.
"""

import logging

from django.db.models import Q

from agents.hosts import paths
from agents.hosts.git.commands import GitError
from agents.hosts.git.mirror import Mirror
from agents.hosts.git.remotes import Unreachable
from disputes import amendments
from disputes.models import Amendment
from disputes.protocol.rulings.amendments import NotAmended, amended
from disputes.protocol.text.documents import MAX_BYTES
from disputes.protocol.text.quotes import one_line
from tasks.models import Project, Submission
from tasks.states import Status

log = logging.getLogger(__name__)

DIFF_MAX = 256 * 1024
MESSAGE = """\
docs: {ruling} in {path}

{question}

Written by Steroids Web for {slug}: what a person ruled, in the specification.
A person approves it before it lands.

Ruling: {ruling}"""


def due() -> list[Amendment]:
    """Return the amendments that a host must draft, and those whose approved commit can no longer land."""
    over = Q(state=Amendment.State.APPROVED, task__status__in=[Status.IN_PROGRESS, Status.CANCELLED])
    rows = Amendment.objects.filter(Q(state=Amendment.State.ASKED) | over)
    return list(rows.select_related(*WITH).order_by("pk"))


WITH = (
    "decision__conflict__dispute__task", "decision__conflict__dispute__project",
    "decision__conflict__finding",
)  # fmt: skip


def advance(amendment: Amendment) -> None:
    """Draft the amendment, or take it up again. Problems become columns; no error of git is raised."""
    if amendment.state == Amendment.State.APPROVED:
        amendments.go_on(amendment)
        return
    project = amendment.decision.conflict.dispute.project
    try:
        with paths.mirror(project).mended():
            _draft(amendment, project)
    except NotAmended as error:
        amendments.failed(amendment, str(error))
    except Unreachable as error:
        log.info("Amendment %s waits: %s", amendment.pk, error)
    except GitError as error:
        amendments.failed(amendment, f"It could not be drafted: {error}")


def _draft(amendment: Amendment, project: Project) -> None:
    """Draft the amendment on the head of the target branch. Raises NotAmended and GitError."""
    if not amendments.holds(amendment.decision):
        raise NotAmended("The ruling was taken back or reopened.")
    mirror = paths.mirror(project)
    head = mirror.fetch_target()
    sha, section = _committed(amendment, project, mirror, head)
    diff = mirror.diff(head, sha, limit=DIFF_MAX).replace("\0", "")
    amendments.drafted(amendment, base_sha=head, sha=sha, diff=diff, section=section)


def _committed(amendment: Amendment, project: Project, mirror: Mirror, base: str) -> tuple[str, str]:
    """Return the commit on `base`, and the section that it amends. Raises NotAmended and GitError."""
    path = amendment.path
    document = mirror.read(base, path, MAX_BYTES + 1)
    if document is None or not mirror.is_plain_file(base, path):
        raise NotAmended(f"There is no file {path} on {project.target_branch}.")
    if "\ufffd" in document:
        raise NotAmended(f"{path} is not written in UTF-8.")
    text, section = amended(document, path, amendment.words, amendments.about(amendment))
    conflict = amendment.decision.conflict
    message = MESSAGE.format(
        ruling=f"{conflict.dispute.ref} ({conflict.ref})", path=path, slug=project.slug,
        question=one_line(conflict.question),
    )  # fmt: skip
    sha = mirror.commit_files(base, path, {path: text}, message, at=amendment.asked_at)
    if sha is None:
        raise NotAmended(f"{path} says so already.")
    mirror.keep(sha, f"refs/steroids/amendments/{amendment.pk}")
    return sha, section


def bring(submission: Submission, mirror: Mirror, ref: str) -> None:
    """Bring the approved commit into this host's mirror, making it again if another host drafted it.

    Raises GitError if the result is a different commit.
    """
    amendment = Amendment.objects.select_related(*WITH).get(task=submission.task_id)
    if not mirror.has(submission.sha):
        mirror.fetch_target()
        try:
            made, _ = _committed(amendment, submission.task.project, mirror, submission.base_sha)
        except NotAmended as error:
            raise GitError("the amendment", f"failed: {error}") from error
        if made != submission.sha:
            raise GitError("the amendment", "comes out otherwise than it was approved")
    mirror.keep(submission.sha, ref)
