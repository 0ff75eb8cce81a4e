"""Comments by people and agents beside the work, in threads, with @names of members."""

from django.db import transaction

from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.models import Comment, Membership, Project, Task
from tasks.models.event import record
from tasks.text.regex import regex

BODY_MAX = 20_000
NOTE_MAX = 500  # characters of the event's note
MENTIONS_MAX = 20

# A user name after an @ that does not follow a word, as the @ of an e-mail address does.
_NAME = regex(r"(?<![\w@.+/-])@([\w.@+-]{1,150})")


@transaction.atomic
def add_comment(
    project: Project,
    body: str,
    *,
    actor: Actor,
    task: Task | None = None,
    parent: Comment | None = None,
    target: str = "",
    dispute: str = "",
    stage: str = "",
    sends: str = "",
) -> Comment:
    """Write the comment and its event, which names the members whom a person mentions.

    `dispute` is the dispute beside which it was written (D-7), `stage` is where its writer works, and `sends`
    says how the task moves with it: back or forward. Raises Refused("text_missing") if it is empty,
    Refused("text_too_long") if it is too long.
    """
    body = body.strip()
    if not body:
        raise Invalid("text_missing", "The comment says nothing.", "Write something first.")
    if len(body) > BODY_MAX:
        raise Invalid(
            "text_too_long", f"The comment has {len(body)} characters; at most {BODY_MAX} are kept.",
            "Shorten it, or say it in several.",
        )  # fmt: skip
    made = Comment.objects.create(
        project=project, task=task, parent=parent, target=target, body=body, by_label=actor.label[:120],
        by_kind=actor.kind, by_user_id=actor.user_id, stage=stage, sends=sends,
    )  # fmt: skip
    people = mentioned(body, project, by=actor)
    about = {
        "dispute": dispute, "parent": parent.pk if parent else None, "mentions": people, "sends": sends,
    }  # fmt: skip
    told = {name: value for name, value in about.items() if value}
    record(
        project, "commented", actor=actor, task=task, note=body[:NOTE_MAX], data={"comment": made.pk, **told}
    )
    return made


def mentioned(body: str, project: Project, *, by: Actor) -> list[int]:
    """Return the keys of the members whom a person mentions, except that person; agents mention nobody."""
    if by.kind != "person" or "@" not in body:
        return []
    names = set()
    for found in _NAME.findall(body):
        names |= {found.casefold(), found.rstrip(".-+@").casefold()}
    members = Membership.objects.filter(project=project, user__is_active=True).exclude(user=by.user_id)
    rows = members.order_by("user").values_list("user", "user__username")
    return [pk for pk, username in rows if username.casefold() in names][:MENTIONS_MAX]


def settle(comment: Comment, *, actor: Actor, resolved: bool = True) -> None:
    """Mark what a thread asks for as done, or open it again.

    Raises Refused("unchanged") if that is its status already.
    """
    old, new = Comment.Status.OPEN, Comment.Status.RESOLVED
    if not resolved:
        old, new = new, old
    with transaction.atomic():
        if not Comment.objects.filter(pk=comment.pk, status=old).update(status=new):
            raise Refused("unchanged", f"The comment is {new} already.", "Reload the page.")
        kind = "comment_resolved" if resolved else "comment_reopened"
        record(
            comment.project, kind, actor=actor, task=comment.task, note=comment.body[:NOTE_MAX],
            data={"comment": comment.pk},
        )  # fmt: skip
    comment.status = new
