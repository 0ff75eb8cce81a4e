"""Objections between stages: sending back, disagreeing, agreeing, and a human to end it (ITM-2 to ITM-4).

"You are wrong" is an objection and is counted here, by thread. "I cannot" is an escalation, with a count and
a queue of its own. The callers hold the transaction and the lock of the task.
"""

from disputes import opening
from disputes.models import Conflict, Decision
from tasks.configuration import stages
from tasks.database.prepared import Prepared
from tasks.errors import Invalid
from tasks.events import Actor
from tasks.models import Comment, Task
from tasks.models.event import record
from tasks.remarks import objections
from tasks.remarks.comments import add_comment
from tasks.remarks.objections import BACK, FORWARD, Objection

ACCEPTED, REJECTED = "accepted", "rejected"
POSITION_MAX = 60_000


# --- What agents do ---------------------------------------------------------------------------------------


def send_back(
    task: Task, body: str, *, target: str, parent: Comment | None, actor: Actor
) -> tuple[Comment, Conflict | None]:
    """Object to an earlier stage's work: the task goes there, or to a human after too many rounds.

    Return the comment and the conflict, if one was opened. Raises Refused (422): "target_missing",
    "no_stage_before", "not_an_objection", "RE_ARGUED_CONFLICT", or what `add_comment` raises.
    """
    task.stage_before()
    known = objections.objections_of(task)
    objection = _thread_of(parent, known) if parent else _same_target(task, target, known)
    if objection is not None and objection.stage != task.stage:
        raise Invalid(
            "not_an_objection", f"Comment {objection.root.pk} is an objection of {objection.stage}.",
            "Disagree with --disagree, or agree and hand in the fix.",
        )  # fmt: skip
    target = objection.root.target if objection else target.strip()
    if not target:
        raise Invalid(
            "target_missing", "What is wrong? An objection names its artifact, test or section.",
            "Add --target, as in `--target tests/test_ledger.py::test_sum`.",
        )  # fmt: skip
    _refuse_ruled(task, target)
    made = _say(task, body, BACK, target, objection, actor)
    if objection is None:
        objection = Objection(made, [made], [made])
    _mark(objection.root, Comment.Status.OPEN, "")
    if conflict := _break_off(task, objection, too_often=_backs(task) >= task.project.config.rejections_max):
        return made, conflict
    task.backflow(actor=actor, note=_note(objection.root, body))
    return made, None


def disagree(
    task: Task, body: str, *, parent: Comment | None, actor: Actor
) -> tuple[Comment, Conflict | None]:
    """Reply that the objection is wrong: the task goes forward to where it came from, or to a human.

    Return the comment and the conflict, if one was opened. Raises Refused (422): "not_sent_back",
    "not_an_objection".
    """
    known = objections.objections_of(task)
    objection = _thread_of(parent, known) if parent else _waiting(task, known)
    if objection is None or not objection.waits_for_answer or objection.stage != task.home_stage:
        raise Invalid(
            "not_sent_back", f"No objection to {task.stage} waits for an answer on {task.ref}.",
            "Name the objection with --parent.",
        )  # fmt: skip
    made = _say(task, body, FORWARD, objection.root.target, objection, actor)
    _mark(objection.root, Comment.Status.OPEN, REJECTED)
    Comment.objects.filter(pk=made.pk).update(resolution=REJECTED)
    if conflict := _break_off(task, objection):
        return made, conflict
    task.forward(actor=actor, note=_note(objection.root, body))
    return made, None


def agree(task: Task, comment: Comment, *, actor: Actor) -> None:
    """Mark the objection as accepted; its fix will be handed in.

    Raises Refused (422): "not_sent_back", or "not_an_objection" if the comment belongs to none.
    """
    objection = _thread_of(comment, objections.objections_of(task))
    if objection is None or not objection.is_open or objection.stage != task.home_stage:
        raise Invalid(
            "not_sent_back", f"Comment {comment.pk} is no objection that waits for {task.stage}.",
            "See the open ones: `steroids tasks show`.",
        )  # fmt: skip
    _resolve(task, objection.root, ACCEPTED, actor)


_any_moved = Prepared(
    lambda task: Comment.objects.filter(task=task).exclude(sends="").order_by().values_list("pk")[:1]
)


def handed_in(task: Task, *, actor: Actor) -> None:
    """End arguments by a submission: it accepts objections to its stage, and drops those its stage made."""
    if not _any_moved.rows(task.pk):
        return
    for objection in objections.objections_of(task):
        if not objection.is_open:
            continue
        if objection.waits_for_answer and objection.stage == task.home_stage:
            _resolve(task, objection.root, ACCEPTED, actor)
        elif not objection.waits_for_answer and objection.stage == task.stage:
            _resolve(task, objection.root, REJECTED, actor)


def _say(
    task: Task, body: str, sends: str, target: str, objection: Objection | None, actor: Actor
) -> Comment:
    made = add_comment(
        task.project, body, actor=actor, task=task, parent=objection.root if objection else None,
        target=target, stage=task.stage, sends=sends,
    )  # fmt: skip
    if objection:
        objection.moves.append(made)
        objection.said.append(made)
    return made


def _note(root: Comment, body: str) -> str:
    return f"{root.target}: {body.strip()}"[:500]


def _thread_of(parent: Comment, known: list[Objection]) -> Objection:
    for objection in known:
        if parent.pk in {comment.pk for comment in objection.said}:
            return objection
    raise Invalid(
        "not_an_objection", f"Comment {parent.pk} has sent nothing back.",
        "Begin an objection without --parent, with a --target.",
    )  # fmt: skip


def _same_target(task: Task, target: str, known: list[Objection]) -> Objection | None:
    """Return this stage's objection to the same target, which is the same argument in whatever words."""
    plain = " ".join(target.split()).casefold()
    same = [each for each in known if each.stage == task.stage]
    return next((each for each in same if " ".join(each.root.target.split()).casefold() == plain), None)


def _waiting(task: Task, known: list[Objection]) -> Objection | None:
    waiting = [each for each in known if each.waits_for_answer and each.stage == task.home_stage]
    return waiting[0] if len(waiting) == 1 else None


def _refuse_ruled(task: Task, target: str) -> None:
    ruled = Conflict.objects.of(task).ruled().filter(thread__target__iexact=target)
    if conflict := ruled.order_by("-pk").first():
        raise Invalid(
            "RE_ARGUED_CONFLICT", f"{target} was decided by a human in {conflict.ref}.",
            "Carry the ruling out, or put it before a human: `steroids dispute create`.",
        )  # fmt: skip


def _mark(root: Comment, status: str, resolution: str) -> None:
    Comment.objects.filter(pk=root.pk).update(status=status, resolution=resolution)
    root.status, root.resolution = status, resolution


def _resolve(task: Task, root: Comment, resolution: str, actor: Actor) -> None:
    _mark(root, Comment.Status.RESOLVED, resolution)
    record(
        task.project, "comment_resolved", actor=actor, task=task, note=root.body[:500],
        data={"comment": root.pk, "resolution": resolution},
    )  # fmt: skip


def _backs(task: Task) -> int:
    """Return how often the task was sent back, for any reason, since a human last ruled on an objection."""
    backs = task.comments.filter(sends=BACK)
    ruled = Decision.objects.of(task).filter(conflict__thread__isnull=False)
    last = ruled.order_by("-at").values_list("at", flat=True).first()
    return backs.filter(at__gt=last).count() if last else backs.count()


# --- The human --------------------------------------------------------------------------------------------


def _break_off(task: Task, objection: Objection, *, too_often: bool = False) -> Conflict | None:
    """Stop the task and open a conflict after too many rounds (ITM-3); return None if it is not that far."""
    if objection.rounds < task.project.config.dispute_rounds_to_human and not too_often:
        return None
    before = stages.previous_stage(task.project.config, objection.stage)
    root = objection.root
    objecting, standing = objection.side(BACK), objection.side(FORWARD)
    task.stop_for_help(note=f"{objection.flag}: {root.target}"[:500])
    return opening.open_conflict(
        task, kind=Conflict.Kind.DISAGREEMENT, origin=Conflict.Origin.PING_PONG, opened_as="system",
        question=f"{objection.flag}: {root.target}", submission=task.last_submission(),
        severity=task.severity, thread=root, stage=before.name if before else task.stage,
        reviewer_position=_position(objecting), reviewer_label=root.by_label,
        coder_position=_position(standing), coder_label=standing[-1].by_label if standing else "",
        evidence=[
            objection.flag, f"Rounds: {objection.rounds}", f"Agents: {', '.join(objection.agents)}",
            f"{objection.stage} objects to {root.target}, which {before.name if before else 'a stage'} made.",
        ],
    )  # fmt: skip


def _position(comments: list[Comment]) -> str:
    """Return what one side said, verbatim, numbered if it is more than one comment."""
    if len(comments) == 1:
        return comments[0].body
    numbered = (f"{number}. {comment.body}" for number, comment in enumerate(comments, 1))
    return "\n\n".join(numbered)[:POSITION_MAX]


def settle(decision: Decision, *, actor: Actor) -> None:
    """End the thread of an objection that was ruled on."""
    conflict = decision.conflict
    if conflict.thread is not None and conflict.dispute.task is not None:
        resolution = ACCEPTED if decision.expects_change else REJECTED
        _resolve(conflict.dispute.task, conflict.thread, resolution, actor)


def unsettle(conflict: Conflict) -> None:
    """Open the thread of an objection again, because its ruling was taken back."""
    if conflict.thread is not None:
        _mark(conflict.thread, Comment.Status.OPEN, "")
