"""Keeping a submission: taking it into the trusted mirror, with its diff and its bundle.

It comes out of the agent's clone or, if the agent is elsewhere, out of the bundle that it sent.
"""

import contextlib
import copy
import logging
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.db import transaction

from agents.hosts import lfs, paths, processes, sandbox, submodules
from agents.hosts.branches import amending
from agents.hosts.git.commands import SHA, GitError
from agents.hosts.git.mirror import Mirror
from agents.hosts.git.pipes import refuse_pipes
from agents.hosts.git.remotes import Interrupted, Unreachable
from agents.hosts.naming import host_name
from agents.loop import run_ends
from agents.models import Run
from agents.prompts import specifications
from agents.prompts.specifications import SOURCE_MAX
from agents.pull import commits
from disputes import withdrawal
from disputes.silence import detection
from disputes.silence.changes import round_before
from tasks.database.prepared import Prepared, PreparedInsert, PreparedUpdate
from tasks.models import Bundle, Finding, Landing, Submission, Task
from tasks.models.event import record
from tasks.models.submission import FILES_TOLD
from tasks.models.task import locked_task

log = logging.getLogger(__name__)

DIFF_MAX = 1024 * 1024
CHANGES_MAX = 256 * 1024
BUNDLE_MAX = 8 * 1024 * 1024
UNDONE_TOLD = 50
EXCERPT_LINES = 7
REF_MAX, PACKED_REFS_MAX = 65, 4 * 1024 * 1024  # bytes: a hash and a line end; more than 5,000 tags
LEFT_TO_LFS = (
    ".gitattributes leaves it to Git LFS (filter=lfs): only a pointer may be committed, and its content"
    " belongs on the server of Git LFS, where no run can bring it. Do without it or call `steroids blocked`"
)
NAMELESS = (
    "as a repository of its own, so nobody else gets its files. Delete its .git, take it out with"
    " `git rm --cached` and add its files; or name it in .gitmodules, if it is a submodule"
)
# Records that the program writes itself; an agent that edits them would tick its own boxes.
REFUSED = frozenset({"dispute.md", "decisions.md", "todo.md", ".steroids"})


def ref_of(submission: Submission) -> str:
    return f"refs/steroids/submissions/{submission.pk}"


def bring_here(submission: Submission, mirror: Mirror) -> None:
    """Make sure this host's mirror has the commit, taking it from its bundle if need be. Raises GitError."""
    if mirror.has(submission.sha):
        return
    bundle = Bundle.objects.filter(submission=submission).first()
    if bundle is None:
        raise GitError(f"commit {submission.sha[:12]}", "is on another host and was too large to be kept")
    mirror.unbundle(bytes(bundle.data), ref_of(submission))


def is_let_go(submission: Submission, mirror: Mirror) -> bool:
    """Whether the commits were once kept, and neither this host nor the database has them any more."""
    was_kept = submission.state != Submission.State.RECEIVED and not submission.only_on
    return was_kept and _is_out_of_reach(submission, mirror)


def _is_out_of_reach(submission: Submission, mirror: Mirror) -> bool:
    return not (mirror.has(submission.sha) or Bundle.objects.filter(submission=submission).exists())


def keep(submission: Submission, run: Run | None) -> None:
    """Keep what the coder handed in, or send it back with the reason if that cannot be done.

    Without a run it is a person's, who pushed it to some branch of the remote. Raises Unreachable.
    """
    task = submission.task
    mirror = paths.mirror(task.project)
    try:
        mirror.resolve(mirror.target_ref)
    except GitError:  # this host has never seen the branch; if the remote lacks it, the loop tries again
        mirror.fetch_target()
    try:
        with mirror.mended():
            touched = _bring(submission, run, mirror)
    except Unreachable:  # the next turn of the loop, here or on another host, tries again
        raise
    except GitError as error:
        send_back(submission, f"The commit {submission.sha[:12]} cannot be taken: {error}")
        return
    content = _content(submission, mirror, touched)
    with transaction.atomic():
        locked_task(submission.task_id)
        if not _keeping(*content.columns).write(submission.pk, **content.columns):
            return
        write_bundle(submission, content)
        files = len(touched.since_fork)
        record(task.project, "kept", task=task, data={"sha": submission.sha, "files": files})
        for name, value in {"state": Submission.State.KEPT, **content.columns}.items():
            setattr(submission, name, value)
        if not task.is_session:  # its documents are checked once they have passed
            withdrawal.look_for_gone_places(submission)
            detection.look_for_silence(submission)


@cache  # the columns are the same each time
def _keeping(*columns: str) -> PreparedUpdate:
    received = Submission.objects.filter(state=Submission.State.RECEIVED)
    return PreparedUpdate(lambda pk: received.filter(pk=pk), *columns, state=Submission.State.KEPT)


def _fetch_pushed(submission: Submission, mirror: Mirror) -> None:
    """Fetch the commit that a person handed in from the remote, since no clone on this host has it."""
    mirror.fetch_target()
    for earlier in submission.task.submissions.filter(sha=submission.base_sha).exclude(pk=submission.pk)[:1]:
        bring_here(earlier, mirror)
    try:
        mirror.fetch_commit(submission.sha, ref_of(submission))
    except Interrupted:
        raise
    except Unreachable as error:  # the remote was there just now
        raise GitError("your commit", "is not on the remote; push it to a branch there first") from error


@dataclass(frozen=True, slots=True)
class Content:
    """What the rows keep about a submission's commits."""

    columns: dict[str, Any]
    bundle: bytes | None  # None if it is too large, or the target branch has all of it


def write(submission: Submission, content: Content) -> None:
    """Make the row and the bundle describe these commits."""
    Submission.objects.filter(pk=submission.pk).update(**content.columns)
    write_bundle(submission, content)


def write_bundle(submission: Submission, content: Content) -> None:
    """Make the bundle hold these commits, or remove it if they need none."""
    if content.bundle:
        if not _bundles.write(submission.pk, data=content.bundle):
            _new_bundles.insert(Bundle(submission=submission, data=content.bundle))
    else:  # an old bundle came from an agent elsewhere, or has other commits
        Bundle.objects.filter(submission=submission).delete()


_bundles = PreparedUpdate(lambda submission: Bundle.objects.filter(submission=submission), "data")
_new_bundles = PreparedInsert(Bundle)


def content_of_rebased(landing: Landing, mirror: Mirror) -> Content:
    """Return the content of an approved submission as its landing has rebased it. Raises GitError."""
    rebased = copy.copy(landing.submission)
    rebased.sha, rebased.base_sha = landing.sha, landing.seen_head
    mirror.keep(rebased.sha, ref_of(rebased))
    content = _content(rebased, mirror, _touched(rebased, mirror))
    moved = {"sha": rebased.sha, "base_sha": rebased.base_sha, "rebased_from": landing.submission.sha}
    return Content(content.columns | moved, content.bundle)


@dataclass(frozen=True, slots=True)
class _Touched:
    """Paths with the lines added and removed in each, since the coder began and since the work's fork.

    The fork is the commit at which the work left the target branch.
    """

    since_base: list[tuple[str, int, int]]
    since_fork: list[tuple[str, int, int]]
    links: list[str]  # since the fork, to commits of other repositories
    fork: str

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in [*self.since_base, *self.since_fork]]


def _touched(submission: Submission, mirror: Mirror) -> _Touched:
    base, sha = submission.base_sha, submission.sha
    fork = mirror.merge_base(mirror.resolve(mirror.target_ref), sha)
    since_fork = mirror.changed(fork, sha)
    since_base = since_fork if base == fork else mirror.changed(base, sha)
    return _Touched(since_base.files, since_fork.files, since_fork.links, fork)


def _bring(submission: Submission, run: Run | None, mirror: Mirror) -> _Touched:
    """Bring the commit into the mirror and return what it touches. Raises GitError if it may not be taken."""
    if submission.task.origin == Task.Origin.AMENDMENT:
        amending.bring(submission, mirror, ref_of(submission))
    elif run is None:
        _fetch_pushed(submission, mirror)
    elif run.is_pulled:
        commits.bring_base(run, mirror)
        commits.take(run, submission, mirror, ref_of(submission))
    else:
        take(run, mirror, submission.sha, ref_of(submission))
    mirror.log(submission.base_sha, submission.sha)  # which is needed later, and mostly tells the descent
    if not mirror.is_ancestor(submission.base_sha, submission.sha):
        raise GitError("your commit", f"does not descend from {submission.base_sha[:12]}, where you began")
    mirror.check_size(submission.sha, paths.largest_checkout())
    touched = _touched(submission, mirror)
    if refused := sorted({path for path in touched.paths if _is_refused(path)}):
        raise GitError("your commit", f"touches {', '.join(refused[:5])}; leave these files alone")
    if inner := submodules.nameless(mirror, submission.sha, touched.links):
        raise GitError("your commit", f"holds {', '.join(inner[:3])} {NAMELESS}")
    if left := _left_behind(submission, mirror, touched):
        raise GitError("your commit", left)
    is_here = run is not None and not run.is_pulled
    may_be_left = not is_here or lfs.is_used(paths.clone_of(run))  # which costs no process of git
    if may_be_left and (whole := lfs.whole(mirror, submission.sha, touched.fork, touched.paths)):
        raise GitError("your commit", f"holds {', '.join(whole[:3])} whole, but {LEFT_TO_LFS}")
    return touched


def _left_behind(submission: Submission, mirror: Mirror, touched: _Touched) -> str:
    """Return what a commit lacks of what was approved before it clashed with the branch, or "".

    The coder begins anew on the branch, so it brings over every file of the approved commit. No test need
    miss one, and the next review sees only what is there. A file that the response names may stay behind.
    Nobody can bring over what only another host has, or had.
    """
    task = submission.task
    last = _last_landing.first(task.pk)
    if last is None or last.status != Landing.Status.CONFLICT:
        return ""
    accepted = last.submission
    since = task.submissions.standing().taken().filter(pk__gt=accepted.pk)
    if since.exclude(state=Submission.State.RECEIVED).exists():
        return ""  # it was brought over, and later rounds may change it
    if _is_out_of_reach(accepted, mirror):
        return ""
    bring_here(accepted, mirror)
    missing = {path for path, _, _ in mirror.changed(touched.fork, accepted.sha).files}
    missing &= {path for path, _, _ in accepted.diff_stat.get("files", ())}
    missing -= {path for path, _, _ in touched.since_fork}
    left = sorted(path for path in missing if path not in submission.response)
    if not left:
        return ""
    return (
        f"lacks what {accepted.sha[:12]} changed and a review accepted; bring it over, or say in your"
        f" response why it is left out: {', '.join(left[:5])}"
    )


_last_landing = Prepared(
    lambda task: Landing.objects.filter(task=task).select_related("submission").order_by("-pk")[:1]
)


def _content(submission: Submission, mirror: Mirror, touched: _Touched) -> Content:
    sha, fork = submission.sha, touched.fork
    measure = specifications.measure_of(submission, fork, mirror)
    specification = specifications.holding(mirror, measure, sha, submission.task.source)[:SOURCE_MAX]
    diff, patch_id = mirror.change(fork, sha, limit=DIFF_MAX)
    columns = {
        "diff": diff.replace("\0", ""),
        "diff_stat": {
            "files": [list(row) for row in touched.since_fork[:FILES_TOLD]],
            "since_base": [path for path, _, _ in touched.since_base[:FILES_TOLD]],
            "fork": fork,
            **_commits(mirror, touched, sha),
        },
        "since_last_round": _since_last_round(submission, mirror, touched),
        "specification": specification.replace("\0", ""),
        "patch_id": patch_id,
    }
    bundle = mirror.bundle(sha, ref_of(submission), fork, BUNDLE_MAX) if fork != sha else None
    is_too_large = bundle is None and fork != sha
    return Content(columns | {"only_on": host_name() if is_too_large else ""}, bundle)


def _commits(mirror: Mirror, touched: _Touched, sha: str) -> dict[str, Any]:
    """Return what lands besides the diff: the commits, how many more there are, and what they undid."""
    told = mirror.log(touched.fork, sha)
    undone = mirror.touched(touched.fork, sha) if told.count > 1 else set()
    undone -= {path for path, _, _ in touched.since_fork}
    more = told.count - len(told.commits)
    return {"commits": told.commits, "more": more, "undone": sorted(undone)[:UNDONE_TOLD]}


def _since_last_round(submission: Submission, mirror: Mirror, touched: _Touched) -> str:
    """Return what changed since the last round; empty in the first one, or if that commit is not here.

    If the work has moved to another commit of the target branch, what others landed there is left out.
    """
    before = round_before(submission)
    if before is None or not mirror.has(before.sha):
        return ""
    only: set[str] = set()
    if before.diff_stat.get("fork", touched.fork) != touched.fork:
        only = {path for path, _, _ in (*touched.since_fork, *before.diff_stat["files"])}
    if len(only) > FILES_TOLD or any("\ufffd" in path for path in only):
        only = set()
    diff = mirror.diff(before.sha, submission.sha, context=0, limit=CHANGES_MAX, only=sorted(only))
    return diff.replace("\0", "")


def _is_refused(path: str) -> bool:
    """Whether the path begins with a refused name, in any spelling that some disk takes for it.

    Disks pass over case, over invisible characters, or over points and blanks at the end.
    """
    visible = (char for char in path.partition("/")[0] if unicodedata.category(char) != "Cf")
    return "".join(visible).rstrip(" .").casefold() in REFUSED


def send_back(submission: Submission, problem: str) -> None:
    """Give up a submission that cannot be taken, and send the task back with the reason.

    After too many of these, a person is asked.
    """
    with transaction.atomic():
        task = locked_task(submission.task_id)
        received = Submission.objects.filter(pk=submission.pk, state=Submission.State.RECEIVED)
        if not received.update(state=Submission.State.LOST, problem=problem[:500]):
            return  # another host could keep it
        if Submission.objects.standing().filter(pk=submission.pk).exists():
            run_ends.send_back(task, problem)


def salvage(run: Run) -> str:
    """Save what a run left behind without handing in; return the commit, or "" if there is nothing."""
    clone = paths.clone_of(run)
    if run.role != Run.Role.CODER or not run.base_sha:
        return ""
    mirror = paths.mirror(run.project)
    ref = f"refs/steroids/salvage/{run.task_id}"
    try:
        if not (clone / ".git").exists():
            return ""
        head = _head_of(clone, run)
        take(run, mirror, head, ref)
        if not mirror.is_ancestor(run.base_sha, head):
            return ""
        saved = head
        mirror.check_size(head, paths.largest_checkout())  # the next run begins there
        try:
            whole = mirror.commit_tree_of(clone, head, f"Unfinished work of run {run.pk}") or head
            mirror.check_size(whole, paths.largest_checkout())
            saved = whole
        except GitError as error:
            log.warning("Only the commits of run %s are saved: %s", run.pk, error)
        mirror.keep(saved, ref)
    except (GitError, OSError) as error:
        log.warning("Nothing salvaged of run %s: %s", run.pk, error)
        return ""
    except Exception:  # whatever an agent left there, its run must end
        log.exception("Nothing salvaged of run %s.", run.pk)
        return ""
    return "" if saved == run.base_sha else saved


def take(run: Run, mirror: Mirror, sha: str, ref: str) -> None:
    """Fetch a commit from the run's clone, whatever its agent has made of the clone. Raises GitError."""
    clone = paths.clone_of(run)
    refuse_pipes(clone)
    mirror.take(clone, sha, ref, sandbox.upload_pack(clone, mirror.path, run.project_id, run.role))


def _head_of(clone: Path, run: Run) -> str:
    """Return the head of the run's branch, read from the clone's files without running git in it.

    If the files are not as git writes them, return the commit that the run began at.
    """
    name = f"refs/heads/steroids/{run.task.ref}"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        sha = processes.read_small(clone / ".git" / name, REF_MAX).decode("ascii").strip()
        return sha if SHA.match(sha) else run.base_sha
    with contextlib.suppress(OSError):  # `git gc` in the clone moves the branch there
        packed = processes.read_small(clone / ".git" / "packed-refs", PACKED_REFS_MAX)
        for line in packed.decode("utf-8", "replace").split("\n"):
            sha, _, ref = line.partition(" ")
            if ref == name and SHA.match(sha):
                return sha
    return run.base_sha


def add_excerpts(findings: list[Finding], mirror: Mirror, sha: str) -> None:
    """Store the code around each finding's place, so that a page needs no git."""
    for finding in findings:
        if not finding.path or finding.excerpt:
            continue
        text = mirror.read(sha, finding.path, DIFF_MAX)
        if text is None:
            Finding.objects.filter(pk=finding.pk).update(excerpt_start=0)  # there is none; do not look again
            continue
        lines = text.replace("\0", "").splitlines()
        place = min(finding.line or 1, max(len(lines), 1))
        start = max(1, place - EXCERPT_LINES)
        excerpt = "\n".join(line[:400] for line in lines[start - 1 : place + EXCERPT_LINES])
        Finding.objects.filter(pk=finding.pk).update(excerpt=excerpt, excerpt_start=start)
