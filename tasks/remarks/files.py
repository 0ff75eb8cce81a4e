"""The comments of a task as files beside the artifacts that they are about, and back (ITM-1)."""

from django.db import transaction

from tasks.events import Actor
from tasks.models import Comment, Task
from tasks.models.event import record
from tasks.models.task import locked_task
from tasks.remarks.meta_yaml import SUFFIX, Item, MetaComment, artifact_of, numbered, read_meta, write_meta
from tasks.remarks.objections import Objection, objections_among, threads_of
from tasks.states import Status
from tasks.text.counting import counted

BY_KIND = "import"


def export_comments(task: Task) -> dict[str, str]:
    """Return the files by their paths, one for each artifact; threads about none go into the task's own."""
    by_artifact: dict[str, list[list[Comment]]] = {}
    for thread in threads_of(task.comments.order_by("at", "pk")):
        by_artifact.setdefault(artifact_of(thread[0].target), []).append(thread)
    return {
        f"{artifact or task.ref}{SUFFIX}": write_meta(_item(task, artifact, threads), artifact)
        for artifact, threads in sorted(by_artifact.items())
    }


def _item(task: Task, artifact: str, threads: list[list[Comment]]) -> Item:
    rows = [
        MetaComment(
            str(comment.pk), comment.by_label, comment.at, comment.body,
            _inside(artifact, comment.target) if comment is thread[0] else "",
            "" if comment is thread[0] else str(comment.parent_id), comment.status, comment.resolution,
        )
        for thread in threads
        for comment in thread
    ]  # fmt: skip
    item = Item(numbered(rows), issue=task.ref)
    disputed = max(
        objections_among(comment for thread in threads for comment in thread),
        key=lambda objection: (objection.is_open, objection.rounds),
        default=None,
    )
    return _with_dispute(item, task, disputed) if disputed and disputed.rounds else item


def _with_dispute(item: Item, task: Task, disputed: Objection) -> Item:
    """Add what the design says of an item over which two stages disagree."""
    limit = task.project.config.dispute_rounds_to_human
    is_stuck = disputed.is_open and disputed.rounds >= limit and task.status == Status.DISPUTED
    return Item(
        item.comments, item.issue, disputed.rounds, tuple(disputed.agents),
        "needs-human-review" if is_stuck else "", disputed.flag if is_stuck else "",
    )  # fmt: skip


def _inside(artifact: str, target: str) -> str:
    """Return what a target names within its artifact; empty if it names the artifact itself."""
    inside = target.removeprefix(f"{artifact}::") if artifact else target
    return "" if inside == artifact else inside


def _target(artifact: str, inside: str) -> str:
    if not artifact or artifact_of(inside) == artifact:
        return inside
    return f"{artifact}::{inside}" if inside else artifact


@transaction.atomic
def import_comments(task: Task, text: str, *, artifact: str, actor: Actor) -> list[str]:
    """Add the comments of a file to the task, each once, and update status and resolution of known ones.

    What the file says about rounds and flags is ignored, because that is computed from the comments. Imported
    comments move nothing. Returns a line about what changed, in a list that is empty if nothing did. Raises
    FaultyFile; then nothing is changed.
    """
    comments = read_meta(text)
    locked_task(task.pk)
    known = {_key(each.by_label, each.at.isoformat(), each.body): each for each in task.comments.all()}
    by_id: dict[str, Comment] = {}
    added = changed = 0
    for one in comments:
        key = _key(one.author, one.timestamp.isoformat(), one.content)
        found = known.get(key)
        if found is None:
            found = known[key] = Comment.objects.create(
                project=task.project, task=task, parent=by_id.get(one.parent), body=one.content,
                target=_target(artifact, one.target)[:300] if not one.parent else by_id[one.parent].target,
                by_label=one.author, by_kind=BY_KIND, status=one.status, resolution=one.resolution,
                at=one.timestamp,
            )  # fmt: skip
            added += 1
        elif (found.status, found.resolution) != (one.status, one.resolution):
            Comment.objects.filter(pk=found.pk).update(status=one.status, resolution=one.resolution)
            changed += 1
        by_id[one.id] = found
    if added or changed:
        note = f"{artifact or task.ref}: {added} added, {changed} changed"
        record(task.project, "comments_imported", actor=actor, task=task, note=note)
    told = f"{task.ref}: {counted(added, 'comment')} added, {changed} changed."
    return [told] if added or changed else []


def _key(author: str, at: str, body: str) -> tuple[str, str, str]:
    return author, at, body.strip()
