"""Taking rulings back, and reopening them."""

from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from disputes import opening, stage_objections
from disputes.completion import rates
from disputes.models import Conflict, Decision
from disputes.protocol.rulings.options import Option
from disputes.rulings.blocking import is_held
from disputes.rulings.effects import go_on
from disputes.silence import flags
from tasks.access import RULE, require
from tasks.configuration.policy import HOLD
from tasks.database.clock import estimated_time
from tasks.dependencies import recount, recount_dependants
from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.models import Task
from tasks.models.task import locked_task
from tasks.states import MOVES, Status


def undo(decision: Decision, *, user: Any) -> Conflict:
    """Take a ruling back while no prompt has used it, and return its conflict (DEC-10).

    Raises Refused: "no_right", "used", "moved_on", "already_open" if a newer card asks the same, "ended" if
    the task is over, or "archived" if the ruling's round was taken back.
    """
    conflict = decision.conflict
    task = _task_of(conflict)
    require(user, task.project, RULE, "rule")
    if not _may_undo(user, decision, task):
        raise Refused(
            "no_right", "Only who ruled, or a lead of the project, takes a ruling back.",
            "Reopen it with a reason.", status=403,
        )  # fmt: skip
    _refuse_archived(decision)
    actor = Actor.person(user)
    with transaction.atomic():
        task = locked_task(task.pk)
        revoked = Decision.objects.standing().unused().filter(pk=decision.pk)
        if not revoked.update(revoked_at=estimated_time(), revoked_by=user, revoked_reason="undone"):
            raise _too_late(decision)
        _refuse_answered(decision, task)
        conflict.refresh_from_db(fields=["status", "followed"])
        if decision.option == Option.CONVERT:
            flags.unconvert(conflict, actor=actor)
        newer = opening.live_dispute(task)
        stale = newer is not None and newer.pk != conflict.dispute_id
        waits = _newer(conflict).open().exists()
        if stale or waits or conflict.followed == Conflict.Followed.REOPENED:
            raise Refused("already_open", f"A newer card asks for {conflict.ref}.", "Rule on that one.")
        if conflict.kind == Conflict.Kind.SILENCE:
            flags.unsettle(conflict, decision.option)
        if moved := _that_moved(task, decision):
            _restore(task, moved, actor)
        _refuse_ended(task)
        conflict.undo(actor=actor)
        stage_objections.unsettle(conflict)
        if decision.option == Option.REDUCE:
            for declined in opening.withdrawn_by(conflict):
                declined.restore(f"The ruling on {conflict.ref} was taken back.", actor=actor)
        if decision.option == Option.CONVERT:
            rates.take_anew(task, actor=actor, since=decision.at)
        _hold_or_let_go(task, decision, actor)
        conflict.refresh_from_db()
        opening.refresh(conflict.dispute)
    return conflict


def _task_of(conflict: Conflict) -> Task:
    """Return the task in dispute. Raises Refused("used") if the card is about a whole project."""
    if conflict.dispute.task is None:
        raise Refused(
            "used", f"{conflict.ref} is about a whole project and was carried out at once.",
            "The next checkpoint asks again.",
        )  # fmt: skip
    return conflict.dispute.task


def _too_late(decision: Decision) -> Refused:
    """Return why the ruling cannot be taken back: somebody did so before, or a prompt has used it."""
    gone = Decision.objects.filter(pk=decision.pk, revoked_at__isnull=False).select_related("revoked_by")
    if (found := gone.first()) is None:
        return Refused(
            "used", "A prompt has already used this ruling.",
            "Reopen the conflict with a reason: that opens a new one which names this.",
        )  # fmt: skip
    by = Actor.person(found.revoked_by).label if found.revoked_by else "Somebody"
    newer = decision.conflict.standing_decision()
    since = f", and {newer.by} ruled {newer.letter} since" if newer else ""
    ref = decision.conflict.ref
    return Refused(
        "used", f"{by} has already taken back the ruling on {ref}{since}.", "There is nothing left to undo."
    )


def _refuse_answered(decision: Decision, task: Task) -> None:
    """Raise Refused if the coder has already answered what the ruling asked.

    No prompt uses a ruling on a silence or an alert; it can be taken back until the next submission.
    """
    conflict = decision.conflict
    is_unprompted = conflict.kind in {Conflict.Kind.SILENCE, Conflict.Kind.ALERT}
    if is_unprompted and task.submissions.standing().filter(at__gt=decision.at).exists():
        raise Refused(
            "moved_on", f"The coder has handed in since {conflict.ref} was ruled on.",
            "Reopen it with a reason.",
        )  # fmt: skip
    if decision.option == Option.REDUCE:
        again = opening.withdrawn_by(conflict).values("finding")
        if Conflict.objects.open().filter(finding__in=again).exists():
            raise Refused("already_open", "A newer card asks about what was declined.", "Rule on that one.")


def _hold_or_let_go(task: Task, decision: Decision, actor: Actor) -> None:
    """Hold the task if an open conflict demands it; else let go of a task that the ruling had held."""
    conflict = decision.conflict
    note = f"The ruling on {conflict.ref} was taken back."
    if is_held(task) and task.status in MOVES["hold"].sources:
        task.hold(actor=actor, note=note)
    elif decision.option == Option.CONVERT and task.status == Status.DISPUTED:
        go_on(task, conflict.submission, actor=actor, note=note)


def _refuse_archived(decision: Decision) -> None:
    """Raise Refused if the ruling's round was rolled back: it is made again, not taken back (RB-3)."""
    if decision.archived_by_id is not None:
        raise Refused(
            "archived", f"The round in which {decision.conflict.ref} was ruled on was taken back.",
            "The ruling can be made again on the page of the rollback.",
        )  # fmt: skip


def _refuse_ended(task: Task) -> None:
    """Raise Refused("ended") if the task is over: a card on it would be closed at the next tick."""
    if task.is_over:
        how = "was cancelled" if task.status == Status.CANCELLED else "was finished without a landing"
        raise Refused(
            "ended", f"{task.ref} {how}, so nobody has to rule on it.", "Reopen the task first.",
            status_now=task.status,
        )  # fmt: skip


def _may_undo(user: Any, decision: Decision, task: Task) -> bool:
    """Whether the person ruled or leads the project; anybody who may rule may undo a policy's ruling."""
    if decision.authority == Decision.Authority.POLICY:
        return True
    lead = task.project.memberships.filter(user=user.pk, is_lead=True).exists()
    return bool(decision.user_id == user.pk or lead or user.is_superuser)


def _that_moved(task: Task, decision: Decision) -> Decision | None:
    """Return the ruling that moved the task: this one, or a later one that waited for it; else None."""
    if decision.before or decision.conflict.effect != HOLD:
        return decision if decision.before else None
    unused = Decision.objects.of(task).standing().unused()
    later = unused.filter(before__isnull=False, pk__gt=decision.pk)
    return later.order_by("-pk").first()


def _restore(task: Task, decision: Decision, actor: Actor) -> None:
    """Restore the task as it was before the ruling moved it. Raises Refused("moved_on")."""
    before = decision.before
    if task.version != before["turn"]:
        raise Refused(
            "moved_on", f"{task.ref} has moved on since: it is {task.status} now.",
            "Reopen the conflict with a reason.", status_now=task.status,
        )  # fmt: skip
    if (task.landed_at and not before["landed_at"]) or task.landings.filter(status="pushing").exists():
        raise Refused("moved_on", f"{task.ref} has landed; the ruling cannot be undone.", "Reopen it.")
    task.put_back(before, actor=actor, note=decision.conflict.ref)
    recount([task])
    recount_dependants(task)


def _hold(task: Task, actor: Actor, note: str) -> None:
    """Take the task out of the loop until somebody rules, even if it has not begun or begins again."""
    if task.status in MOVES["hold"].sources:
        task.hold(actor=actor, note=note)
    elif task.status == Status.PENDING:
        task.stop_for_help(actor=actor, note=note)


def _newer(conflict: Conflict) -> QuerySet[Conflict]:
    """Return later cards on the same point that wait for a ruling or have one."""
    same = Q(previous=conflict)
    if conflict.finding_id:
        kinds = {Conflict.Kind.DISAGREEMENT, Conflict.Kind(conflict.kind)}
        same |= Q(finding=conflict.finding_id, kind__in=kinds)
    counted = (Conflict.Status.OPEN, Conflict.Status.DECIDED)
    return Conflict.objects.filter(same, pk__gt=conflict.pk, status__in=counted)


def reopen(decision: Decision, *, user: Any, reason: str) -> Conflict:
    """Open a new conflict that names the ruled one, and return it (DEC-9).

    Raises Refused: "no_right", "text_missing" without a reason, "not_open" if the ruling was taken back,
    "already_open" if it was reopened before, "ended" if the task is over, "used" on a card about a
    whole project, or "archived" if the ruling's round was taken back.
    """
    old = decision.conflict
    task = _task_of(old)
    require(user, task.project, RULE, "rule")
    if not reason.strip():
        raise Invalid("text_missing", "A reason is needed to reopen a ruling.", "Give one.")
    _refuse_archived(decision)
    with transaction.atomic():
        actor = Actor.person(user)
        _refuse_ended(locked_task(task.pk))
        decision.refresh_from_db(fields=["revoked_at"])  # somebody may have taken it back, and ruled anew
        if decision.revoked_at is not None:
            raise Refused(
                "not_open", f"That ruling on {old.ref} was taken back; it does not stand.", "Reload."
            )
        old.refresh_from_db()
        if old.followed == Conflict.Followed.REOPENED or _newer(old).exists():
            raise Refused("already_open", f"{old.ref} was reopened already.", "Go on with the newer card.")
        old.reopen(reason.strip(), actor=actor)
        conflict = opening.ask_again(
            decision, origin=Conflict.Origin.REOPENED, opened_as="human", actor=actor,
            why=f"Reopened by {actor.label}: {reason}", submission=task.last_submission(),
            effect=old.effect if old.kind in {Conflict.Kind.SILENCE, Conflict.Kind.ALERT} else "",
            stage=old.stage, thread=old.thread,
        )  # fmt: skip
        if old.kind == Conflict.Kind.SILENCE:
            flags.carry_over(old, decision.option, conflict)
        task.refresh_from_db()
        if conflict.effect == HOLD:
            _hold(task, actor, f"{old.ref} was reopened: {reason.strip()}"[:500])
    return conflict
