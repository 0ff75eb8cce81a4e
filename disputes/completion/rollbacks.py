"""Taking rounds of a task back, and repeating rulings made in them (RB-2, RB-3). Nothing is deleted.

The numbers, codes and attempts of the rounds are used again, so whoever wants a task's present state must ask
for what is `standing()`.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, Q, QuerySet

from disputes import opening, precedents, rulings
from disputes.models import Conflict, Decision, Dispute, Flag
from disputes.protocol.rulings import options
from disputes.sessions.gaps import session_of
from tasks.access import MAINTAIN, RULE, require
from tasks.adding import create_last
from tasks.database.locking import locked
from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.models import Checkpoint, Finding, Landing, Project, Rollback, Task
from tasks.models.event import record
from tasks.models.task import locked_task
from tasks.states import MOVES
from tasks.text.counting import counted

TEXT_MAX = 20_000
NOTE = "(re-applied from"
PUSHED = (Landing.Status.PUSHING, Landing.Status.LANDED)
# The states of a flag that a rollback drops; a false alarm stays one.
UNDER_WAY = (Flag.Status.OPEN, Flag.Status.ASKED, Flag.Status.CONVERTED, Flag.Status.WAIVED)
JUDGED = (Conflict.Followed.APPLIED, Conflict.Followed.NOT_HONOURED, Conflict.Followed.CANNOT_TELL)


# --- What may be taken back -------------------------------------------------------------------------------


def last_round(task: Task) -> int:
    """Return the newest round with a submission that was not rolled back; 0 if there is none."""
    return task.submissions.standing().aggregate(last=Max("round"))["last"] or 0


def choices(task: Task) -> list[int]:
    """Return the rounds after which the task may begin again, newest first (RB-4)."""
    last = last_round(task)
    return [*range(last - 1, max(last - task.project.config.backup_rounds, 0) - 1, -1)]


def left(task: Task) -> int:
    """Return how many rollbacks the task's budget still allows (RB-5)."""
    return max(task.project.config.max_rollbacks_session - task.rollbacks.count(), 0)


def times_taken_back(task: Task, round_: int) -> int:
    """Return how often this round of the task has been rolled back (RB-6)."""
    return task.rollbacks.filter(to_round__lt=round_, from_round__gte=round_).count()


def landed_in(task: Task, to_round: int) -> Landing | None:
    """Return the newest landing of a later round that is being pushed or is on the target branch, or None."""
    later = task.landings.filter(submission__round__gt=to_round, submission__rolled_back__isnull=True)
    return later.filter(status__in=PUSHED).order_by("-pk").first()


def _check(task: Task, to_round: int, user: Any, reason: str) -> None:
    """Raise Refused, with what to do instead, if the rounds after `to_round` cannot be taken back."""
    require(user, task.project, MAINTAIN, "take rounds back")
    if task.is_gap:
        session = session_of(task.project)
        raise Invalid(
            "of_its_session", f"{task.ref} is a gap: its rounds are those of its session.",
            f"Take rounds of {session.ref} back; its gaps go back with them." if session
            else "No round has begun yet.",
        )  # fmt: skip
    if not reason.strip():
        raise Invalid(
            "text_missing", "A reason is needed to take rounds back.",
            "Say what went wrong in them; the next prompt begins with it.",
        )  # fmt: skip
    if task.status not in MOVES["rollback"].sources:
        raise Refused(
            "wrong_status", f"{task.ref} is {task.status}; no round of it can be taken back.",
            "Reopen or resume it first.", status_now=task.status,
        )  # fmt: skip
    last = last_round(task)
    if not 0 <= to_round < last:
        raise Invalid(
            "nothing_to_roll_back", f"{task.ref} has nothing handed in after round {to_round}.",
            f"Rounds with submissions: 1 to {last}." if last else "Nothing was handed in yet.",
        )  # fmt: skip
    if task.landed_at or landed_in(task, to_round):
        raise Refused(
            "landed", f"{task.ref}: something of it has landed.", "A task that reverts it can be made."
        )
    if not left(task):
        used = counted(task.rollbacks.count(), "rollback")
        raise Refused(
            "budget_spent", f"{task.ref} has used its {used}.",
            "Rule on what is left, cancel the task, or rewrite it.",
        )  # fmt: skip
    if to_round not in choices(task):
        most = counted(task.project.config.backup_rounds, "round")
        raise Invalid(
            "too_deep", f"At most {most} can be taken back at once.",
            "Choose a later round, or raise backup_rounds in the project's settings.",
        )  # fmt: skip


# --- Taking back ------------------------------------------------------------------------------------------


@transaction.atomic
def roll_back(task: Task, to_round: int, *, user: Any, reason: str, version: int | None = None) -> Rollback:
    """Take the task back to the end of `to_round`; the round after it begins again.

    What was handed in, raised, disputed and ruled since then is marked and kept (RB-2). The task's runs end,
    because the task moves on to a new turn. `version` is the turn that the person saw; None skips that check.
    Raises Refused: "no_right", "text_missing", "wrong_status", "landed", "nothing_to_roll_back", "too_deep",
    "budget_spent", "stale_view".
    """
    if task.is_session:  # its gaps move too, and the project is locked before tasks
        locked(Project.objects).get(pk=task.project_id)
    task = locked_task(task.pk)
    _check(task, to_round, user, reason)
    if version is not None and version != task.version:
        raise Refused(
            "stale_view", f"{task.ref} has moved on: it is {task.status} in round {task.round} now.",
            "What you typed is kept. Look at the rounds again.",
        )  # fmt: skip
    actor, reason = Actor.person(user), reason.strip()[:TEXT_MAX]
    back = Rollback.objects.create(
        task=task, from_round=last_round(task), to_round=to_round, reason=reason, by_label=actor.label[:120],
        by_user=user,
    )  # fmt: skip
    began = _began(task, to_round + 1)
    task.submissions.standing().filter(round__gt=to_round).update(rolled_back=back)
    Finding.objects.filter(review__submission__rolled_back=back).update(rolled_back=back)
    _archive_conflicts(task, back, began, actor)
    task.rollback(to_round, actor=actor, note=reason)
    if task.is_session:
        _restore_gaps(task, back, actor)
        _take_back_checkpoints(task, back)
    _await_anew(task, actor)
    for dispute in Dispute.objects.live().filter(task=task):
        opening.refresh(dispute)
    return back


def _restore_gaps(session: Task, back: Rollback, actor: Actor) -> None:
    """Restore the gaps as they were at the end of the round that stays, except those that people have moved.

    Gaps that came up since are cancelled, because no remaining document mentions them. What has landed is of
    an earlier session, whose rounds have the same numbers.
    """
    since = session.events.filter(kind="round_judged", data__round=back.to_round).order_by("-pk").first()
    moved_by = {"start", "submit", "reject", "approve", "restore"}
    for gap in session.project.tasks.gaps().filter(landed_at__isnull=True).exclude(gap=""):
        gap.project = session.project
        gap.submissions.standing().filter(round__gt=back.to_round, kind="document").update(rolled_back=back)
        later = gap.events.exclude(to_status="").exclude(kind__in=["created", "task_added"]).order_by("pk")
        later = later.filter(pk__gt=since.pk) if since else later
        first, last = later.first(), later.last()
        if first is None or last.kind not in {*moved_by, "gap_found"}:
            continue
        note = f"Round {back.to_round + 1} begins again."
        if later.filter(kind="gap_found").exists():
            gap.cancel(actor=actor, note=note)
        elif first.from_status != gap.status:
            gap.restore(first.from_status, back.to_round, actor=actor, note=note)


def _take_back_checkpoints(session: Task, back: Rollback) -> None:
    """Mark the checkpoints of the rounds taken back, so that the last one is that of the round that stays."""
    later = [
        checkpoint.pk
        for checkpoint in session.project.checkpoints.standing()
        if checkpoint.under_way.get(str(session.pk), 0) > back.to_round + 1
    ]
    Checkpoint.objects.filter(pk__in=later).update(rolled_back=back)


def _began(task: Task, round_: int) -> datetime | None:
    """Return when this round, as it is now, began: the last move that led to it from an earlier round."""
    began, before = None, 0
    moves = task.events.filter(kind__in=MOVES).order_by("pk")
    for number, at in moves.values_list("data__round", "at"):
        if isinstance(number, int):
            if before < round_ <= number:
                began = at
            before = number
    return began


def _archive_conflicts(task: Task, back: Rollback, began: datetime | None, actor: Actor) -> None:
    """Make the conflicts and flags of the rounds taken back moot, and archive their rulings."""
    later = Q(submission__rolled_back=back) | Q(finding__rolled_back=back)
    if back.to_round == 0:
        later |= Q(submission__isnull=True)
    if began:
        later |= Q(opened_at__gte=began)
    of_task = Conflict.objects.of(task).not_moot()
    conflicts = list(of_task.filter(later).select_related("dispute__project", "dispute__task"))
    Decision.objects.standing().filter(conflict__in=conflicts).update(archived_by=back)
    before = of_task.filter(pk__in=[conflict.previous_id for conflict in conflicts])
    _stand_again(before.exclude(pk__in=[conflict.pk for conflict in conflicts]), actor)
    for conflict in conflicts:
        conflict.archive(f"Round {back.to_round + 1} begins again.", actor=actor)
    Flag.objects.filter(submission__rolled_back=back, status__in=UNDER_WAY).drop()


def _stand_again(conflicts: QuerySet[Conflict], actor: Actor) -> None:
    """Let rulings of earlier rounds that were reopened in the rounds taken back be in force as before."""
    overtaken = (Conflict.Followed.REOPENED, Conflict.Followed.NOT_HONOURED)
    for conflict in conflicts.filter(followed__in=overtaken):
        conflict.await_again("What reopened it was taken back.", actor=actor)


def _await_anew(task: Task, actor: Actor) -> None:
    """Put rulings whose carrying out was taken back into the next prompt again."""
    judged = Conflict.objects.of(task).filter(followed__in=JUDGED)
    for conflict in judged:
        ruling = conflict.standing_decision()
        if ruling is None or not (ruling.expects_change or options.asks(ruling.option)):
            continue
        reviewed = task.submissions.standing().filter(at__gt=ruling.at, reviews__isnull=False)
        if not reviewed.exists():
            conflict.await_again("What carried it out was taken back.", actor=actor)


# --- Ruling again -----------------------------------------------------------------------------------------


def archived(task: Task) -> QuerySet[Decision]:
    """Return the rulings that rollbacks archived, newest first."""
    return (
        Decision.objects.of(task)
        .filter(archived_by__isnull=False)
        .select_related("conflict__finding", "conflict__dispute__task__project", "archived_by", "user")
        .order_by("-pk")
    )


def applied_again(decisions: Iterable[Decision]) -> dict[int, Decision]:
    """Return the standing rulings that repeat these archived ones, by the keys of the archived ones."""
    olds = {decision.conflict_id: decision.pk for decision in decisions}
    again = Decision.objects.standing().filter(conflict__previous__in=olds)
    return {olds[decision.conflict.previous_id]: decision for decision in again.select_related("conflict")}


@transaction.atomic
def reapply(decision: Decision, *, user: Any, text: str | None = None) -> Decision:
    """Repeat an archived ruling, as it was or with other words (RB-3).

    The ruling is made on a new conflict that names the old one, and the next prompt begins with it. Raises
    Refused: "no_right", "not_archived", "not_a_ruling", "already_applied", "already_open", "wrong_status".
    """
    old = decision.conflict
    task = locked_task(old.task.pk)
    require(user, task.project, RULE, "rule")
    back = Decision.objects.select_related("archived_by").get(pk=decision.pk).archived_by
    _check_again(task, decision, back)
    actor = Actor.person(user)
    note = f"{NOTE} rolled-back round {_round_of(decision, back)})"
    conflict = opening.ask_again(
        decision, origin=Conflict.Origin.REOPENED, opened_as="human", why=note, actor=actor,
        submission=task.last_submission(),
    )  # fmt: skip
    conflict.dispute.refresh_from_db()
    cites = [each.conflict.ref for each in decision.cited if precedents.may_be_cited(each)]
    return rulings.decide(
        conflict, decision.option, user=user, text=decision.text if text is None else text,
        rationale=f"{decision.rationale.partition(NOTE)[0].strip()} {note}".strip(),
        constraints=decision.constraints_text, expects_change=decision.expects_change, undo_seconds=0,
        cites=",".join(cites),
    )  # fmt: skip


def _round_of(decision: Decision, back: Rollback) -> int:
    """Return the round in which the point was disputed."""
    submission = decision.conflict.submission
    return submission.round if submission else back.to_round + 1


def _check_again(task: Task, decision: Decision, back: Rollback | None) -> None:
    old = decision.conflict
    if back is None or decision.revoked_at is not None:
        raise Refused(
            "not_archived", f"The ruling on {old.ref} was not archived by a rollback.",
            "Reopen it with a reason.",
        )  # fmt: skip
    if old.kind != Conflict.Kind.DISAGREEMENT:
        raise Invalid(
            "not_a_ruling", f"{old.ref} asked for a hand; what was chosen there is not made again.",
            "Rule on the card that is open now, if there is one.",
        )  # fmt: skip
    if again := applied_again([decision]).get(decision.pk):
        raise Refused(
            "already_applied", f"{old.ref} was ruled again as {again.conflict.ref}.",
            "Reopen that one if it is wrong.",
        )  # fmt: skip
    asked = (
        Conflict.objects.of(task)
        .open()
        .filter(Q(previous=old) | Q(finding__isnull=False, finding=old.finding_id))
    )
    if open_one := asked.first():
        raise Refused("already_open", f"{open_one.ref} asks for the same point now.", "Rule on that one.")
    if task.status not in {*MOVES["rollback"].sources}:
        raise Refused(
            "wrong_status", f"{task.ref} is {task.status}; no ruling of it is made again.",
            "Reopen or resume it first.", status_now=task.status,
        )  # fmt: skip


# --- What has landed --------------------------------------------------------------------------------------


@transaction.atomic
def make_revert_task(task: Task, *, user: Any, reason: str) -> Task:
    """Add a task that reverts what landed for this one, and return it (RB-8).

    Raises Refused: "no_right", "text_missing", "not_landed".
    """
    require(user, task.project, MAINTAIN, "add tasks")
    if not reason.strip():
        raise Invalid("text_missing", "A reason is needed to revert.", "Say what it broke.")
    landing = task.landings.filter(status=Landing.Status.LANDED).order_by("-pk").first()
    sha = landing.sha if landing else task.landed_sha
    if not sha:
        raise Refused("not_landed", f"Nothing of {task.ref} has landed.", "Take its rounds back instead.")
    project = locked(Project.objects).get(pk=task.project_id)
    made = create_last(
        project, section=task.section, severity=task.severity, tags=task.tags, source=task.source,
        title=f"Revert {task.ref}: {task.title}"[:300],
        body=f"Take back what landed for {task.ref} on {project.target_branch}: `git revert {sha}`, then "
        f"mend what the revert breaks.\n\nWhy:\n\n{reason.strip()[:TEXT_MAX]}",
    )  # fmt: skip
    actor = Actor.person(user)
    record(project, "task_added", actor=actor, task=made, note=reason, data={"reverts": task.ref, "sha": sha})
    record(project, "revert_asked", actor=actor, task=task, note=reason, data={"by": made.ref})
    return made
