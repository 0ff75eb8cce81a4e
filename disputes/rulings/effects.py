"""What a decision does to the task (GATE-2)."""

from datetime import datetime
from typing import Any

from django.db.models import Expression, QuerySet

from disputes import alerts, opening, stage_objections
from disputes.completion import rates
from disputes.models import Conflict, Decision
from disputes.protocol.completion import budget
from disputes.protocol.rulings import options
from disputes.protocol.rulings.options import Kind, Option
from disputes.ruling_stages import objection_overruled, place_of
from disputes.rulings.blocking import blockers_of, is_held
from disputes.silence import flags
from tasks import snapshots
from tasks.database.prepared import Prepared
from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.models import Landing, Submission, Task
from tasks.models.task import locked_task
from tasks.states import MOVES, Status


def act(decision: Decision, actor: Actor) -> None:
    """Carry out what the option says, and move the task once its last blocking conflict is ruled on."""
    conflict = decision.conflict
    if conflict.dispute.task_id is None:
        alerts.carry_out(decision, actor=actor)
        decision.action = "apply"
        decision.save(update_fields=["action"])
        _followed(conflict, actor)
        return
    task = locked_task(conflict.dispute.task_id)
    note = f"{conflict.ref}: {decision.word}"
    before = snapshots.take(task)
    match Kind(conflict.kind):
        case Kind.HELP:
            action = _help(task, decision, actor, note)
        case Kind.SILENCE:
            action = _silence(task, decision, actor)
        case Kind.ALERT:
            action = _rate_alert(decision, actor)
        case _:
            action = ""
            stage_objections.settle(decision, actor=actor)
    decision.action = action or go_on(
        task, conflict.submission, actor=actor, note=note, not_before=decision.effective_at
    )
    if decision.action != "wait":
        decision.before = before | {"turn": task.version}  # the turn to which the task moved
    decision.save(update_fields=["action", "before"])
    conflict.refresh_from_db()  # and its dispute, which is looked up anew


def _followed(conflict: Conflict, actor: Actor) -> None:
    """Mark the ruling as applied if it was waiting, because nobody has to do anything more for it."""
    if conflict.followed == Conflict.Followed.WAITING:
        conflict.mark(Conflict.Followed.APPLIED, actor=actor)


def _silence(task: Task, decision: Decision, actor: Actor) -> str:
    """Carry out a ruling on a silence (SIL-12). A converted one becomes a conflict that holds the task."""
    conflict = decision.conflict
    flags.settle(conflict, decision.option)
    match Option(decision.option):
        case Option.CONVERT:
            _followed(conflict, actor)
            made = flags.convert(conflict, actor=actor)
            if made.submission and made.previous_id == conflict.pk:  # it counts from now on (RL-4)
                rates.check(made.submission, actor=actor)
            if task.status in MOVES["hold"].sources:
                task.hold(actor=actor, note=f"{conflict.ref} became a conflict.")
                return "hold"
        case Option.FALSE_POSITIVE:
            _followed(conflict, actor)
    return ""


def _rate_alert(decision: Decision, actor: Actor) -> str:
    """Carry out a ruling on a coder that declines too much (RL-5). Raises Refused("landed")."""
    conflict, task = decision.conflict, decision.conflict.task
    if decision.option == Option.REDUCE:
        if task.landed_at or task.landings.filter(status=Landing.Status.PUSHING).exists():
            raise Refused(
                "landed", f"{task.ref} has landed; its coder is not asked again.",
                "Rule on each conflict instead.",
            )  # fmt: skip
        opening.withdraw(conflict, actor=actor)
    if not options.asks(decision.option):
        _followed(conflict, actor)
    return ""


def _help(task: Task, decision: Decision, actor: Actor, note: str) -> str:
    option = Option(decision.option)
    if option is Option.RAISE:
        _check_amount(decision)
    if option in {Option.VERIFY, Option.RAISE}:
        _followed(decision.conflict, actor)
    if again := AGAIN.get(option):
        return "wait" if is_held(task) else again(task, decision, actor, note)
    if option in {Option.DEFER, Option.CANCEL, Option.FINISH}:
        getattr(task, option)(actor=actor, note=note)
        _followed(decision.conflict, actor)
        return option.value
    return ""


def _start_again(task: Task, decision: Decision, actor: Actor, note: str) -> str:
    """Send the task back to the coder, or to review if a cap of money or tokens stopped a review."""
    last, after = task.last_submission(), decision.effective_at
    reviewable = {Submission.State.KEPT, Submission.State.VERIFIED}
    is_budget = decision.conflict.origin == Conflict.Origin.BUDGET
    if is_budget and last and last.round == task.round and last.state in reviewable:
        _followed(decision.conflict, actor)
        task.rule_review(actor=actor, note=note, not_before=after)
        return "review"
    if decision.conflict.origin == Conflict.Origin.LANDING and last:
        last.give_up_landing()
    started = task.submissions.standing().exists()
    to = Status.IN_PROGRESS if started else Status.PENDING
    task.retry(to, actor=actor, note=note, not_before=after)
    return "retry"


def _verify_again(task: Task, decision: Decision, actor: Actor, note: str) -> str:
    """Build and test the newest commit once more. Raises Refused("no_commit") if there is none."""
    last = task.last_submission()
    if last is None or not last.sha:
        raise Refused(
            "no_commit", f"Nothing was handed in for {task.ref} that could be verified.",
            "Retry, defer or cancel the task instead.",
        )  # fmt: skip
    Submission.objects.filter(pk=last.pk, state=Submission.State.RED).update(
        state=Submission.State.KEPT, problem=""
    )
    task.rule_review(actor=actor, note=note, not_before=decision.effective_at)
    return "review"


def _check_amount(decision: Decision) -> None:
    """Raise Refused("amount_missing") if the text does not begin with the amount by which a cap is raised."""
    cap = budget.cap_of(decision.conflict.evidence)
    if cap is None or budget.amount_of(decision.text, cap) is None:
        unit = "dollars: 5 or 2.50" if cap is None or cap.is_money else "tokens: 200000 or 200k"
        raise Invalid("amount_missing", "By how much is the cap raised?", f"Begin with an amount of {unit}.")


def _land_again(task: Task, decision: Decision, actor: Actor, note: str) -> str:
    """Bring the approved commit onto the target branch now, whether or not it is still being tried."""
    submission = decision.conflict.submission
    if submission is None:
        return _start_again(task, decision, actor, note)
    after = decision.effective_at
    submission.landings.filter(status__in=Landing.LIVE).update(not_before=after)
    if opening.open_conflicts(task):
        Task.objects.filter(pk=task.pk).update(accepted=submission)
        return "wait"
    task.rule_accept(submission, actor=actor, note=note, not_before=after)
    return "accept"


AGAIN = {
    Option.RETRY: _start_again,
    Option.RAISE: _start_again,
    Option.VERIFY: _verify_again,
    Option.LAND: _land_again,
}


def go_on(
    task: Task, disputed: Submission | None, *, actor: Actor, note: str, not_before: datetime | None = None
) -> str:
    """Move the task on, not before a time if one is given, if nothing holds it; return what was done.

    That is "revise", "review", "accept" or "advance", or "wait" if the task stays where it is.
    """
    if is_held(task):
        return "wait"
    waiting_for_others = opening.open_conflicts(task)
    move = {"actor": actor, "note": note, "not_before": not_before}
    if due := _to_act_on(task):
        return _revise(task, place_of(task, due), move)
    if task.status == Status.DISPUTED and (place := objection_overruled(task)):
        return _revise(task, place, move)
    shipped = waiting_for_others and (task.accepted_id or task.landed_at)
    if task.status != Status.DISPUTED or shipped:
        return "wait"
    submission = task.last_submission() or disputed
    if submission is None or submission.kind == Submission.Kind.DOCUMENT:  # there is no commit
        return _revise(task, {}, move)
    return _finish(task, submission, bool(waiting_for_others), move)


def _revise(task: Task, place: dict[str, Any], move: dict[str, Any]) -> str:
    """Send the task back to the coder, unless it is at work or cancelled; `place` is another stage."""
    if task.status not in MOVES["rule_revise"].sources:
        return "wait"
    if task.status == Status.IN_PROGRESS and not place:
        return "wait"  # the next prompt begins with the ruling
    task.rule_revise(**place, **move)
    return "revise"


def _finish(task: Task, submission: Submission, is_awaited: bool, move: dict[str, Any]) -> str:
    """Accept the commit if nothing else is open on it, else have it reviewed."""
    if is_awaited or blockers_of(submission) != set():
        task.rule_review(**move)
        return "review"
    is_last = task.next_stage() is None
    task.rule_accept(submission, **move)
    return "accept" if is_last else "advance"


def _to_act_on(task: Task) -> list[Decision]:
    """Return the rulings that ask for a change or an answer that no submission since can have delivered.

    Work that has landed, or is being pushed, comes back for a change but not for an answer.
    """
    is_landing = task.landed_at or task.landings.filter(status=Landing.Status.PUSHING).exists()
    return [
        ruling
        for ruling in _waiting.found(task.pk)
        if ruling.expects_change or (options.asks(ruling.option) and not is_landing)
        if ruling.used_at is None or not task.submissions.standing().filter(at__gt=ruling.used_at).exists()
    ]


def _awaited(task: Expression) -> QuerySet[Decision]:
    return Decision.objects.of(task).standing().awaited().select_related("conflict__thread")


_waiting = Prepared(_awaited)
