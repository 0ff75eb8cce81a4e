"""Deciding a conflict, undoing it, and what a ruling does to the task."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from disputes import cases
from disputes.intake import settled_findings
from disputes.models import Conflict, Decision
from disputes.protocol import options
from disputes.protocol.options import Option
from disputes.protocol.wording import Ruling, ruling_lines
from tasks.access import RULE, may
from tasks.dependencies import recount, recount_dependants
from tasks.errors import Refused
from tasks.events import Actor, record
from tasks.models import Landing, Submission, Task
from tasks.policy import HOLD
from tasks.states import MOVES, Status

TEXT_MAX = 20_000
# What a ruling may change on the task, and undo puts back.
RESTORED = (
    "status", "round", "rejections", "accepted_id", "landed_sha", "landed_at", "finished_by",
    "counts_since", "not_before",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OptionView:
    """One button of the dispute page."""

    letter: str
    option: str
    title: str
    text: str
    consequence: str
    expects_change: bool
    needs_text: bool


def text_of(conflict: Conflict, option: str) -> str:
    """The words that an option starts with; a human may edit them."""
    match Option(option):
        case Option.UPHOLD_REVIEWER:
            return conflict.reviewer_position
        case Option.UPHOLD_CODER:
            return conflict.coder_position
    return ""


def options_of(conflict: Conflict, blockers: dict[int, set[int] | None] | None = None) -> list[OptionView]:
    """What may be chosen on this conflict, with the consequence in words.

    `blockers` remembers, for a list of conflicts, what `blockers_of` said of each submission.
    """
    if conflict.dispute.task is None:
        return []
    task = conflict.task
    known: dict[int, set[int] | None] = {} if blockers is None else blockers
    if conflict.submission and conflict.submission_id not in known:
        known[conflict.submission.pk] = blockers_of(conflict.submission)
    found = known.get(conflict.submission_id or 0)
    clean = found is not None and found <= {conflict.finding_id}
    return [
        OptionView(
            letter=choice.letter,
            option=choice.option,
            title=choice.title,
            text=text_of(conflict, choice.option),
            consequence=options.consequence(
                choice.option,
                next_round=task.round + 1,
                dependants=conflict.dispute.blocks,
                was_reviewed_green=clean,
            ),
            expects_change=choice.expects_change,
            needs_text=choice.needs_text,
        )
        for choice in options.OPTIONS.get(options.Kind(conflict.kind), ())
    ]


def shown_hash(conflict: Conflict) -> str:
    """A hash of what the person sees; a ruling on anything else is refused."""
    task = conflict.dispute.task
    shown = [
        conflict.pk, conflict.reviewer_position, conflict.coder_position, conflict.coder_rationale,
        conflict.alternative, conflict.question, conflict.severity,
        (task.title, task.body) if task else "",
        conflict.submission.sha if conflict.submission else "",
    ]  # fmt: skip
    return sha256(json.dumps(shown).encode()).hexdigest()


def ruling_of(decision: Decision) -> Ruling:
    """The decision as prompts and the preview word it."""
    conflict = decision.conflict
    return Ruling(
        name=conflict.name,
        severity=conflict.severity,
        title=conflict.question,
        option=decision.option,
        text=decision.text,
        rationale=decision.rationale,
        constraints=decision.constraints_text,
        place=conflict.finding.location if conflict.finding else "",
        expects_change=decision.expects_change,
    )


def preview(
    conflict: Conflict,
    option: str,
    *,
    text: str,
    rationale: str,
    constraints: str,
    expects_change: bool | None,
) -> list[str]:
    """Exactly the lines that the next engineer prompt would begin with, if it were ruled so now."""
    return ruling_lines([ruling_of(_draft(conflict, option, text, rationale, constraints, expects_change))])


def _draft(
    conflict: Conflict, option: str, text: str, rationale: str, constraints: str, expects_change: bool | None
) -> Decision:
    """The decision as it would be stored: an empty text is the side's own, A always changes code, B never."""
    choice = options.choice(conflict.kind, option)
    changes = bool(choice and choice.expects_change)
    if option in {Option.OTHER, Option.COMPROMISE} and expects_change is not None:
        changes = expects_change
    return Decision(
        conflict=conflict,
        option=option,
        text=text.strip()[:TEXT_MAX] or text_of(conflict, option),
        rationale=rationale.strip()[:TEXT_MAX],
        constraints_text=constraints.strip()[:TEXT_MAX],
        expects_change=changes,
    )


def blockers_of(submission: Submission) -> set[int] | None:
    """The mandatory findings, as first raised, that keep a submission from landing.

    None where it is not green and reviewed (MODELS 25).
    """
    review = submission.reviews.order_by("-pk").first()
    if review is None or submission.state != Submission.State.VERIFIED:
        return None
    settled = settled_findings(submission.task)
    findings = review.findings.filter(mandatory=True).select_related("first")
    return {finding.origin.pk for finding in findings} - set(settled)


def _refuse_second(conflict: Conflict) -> Refused:
    """The loser of a race learns what was ruled, by whom and when."""
    decision = conflict.standing_decision()
    if decision is None:
        return Refused(
            "not_open",
            f"{conflict.ref} is {conflict.status}; there is nothing to rule on.",
            "Reload the queue.",
        )
    who = decision.user.get_full_name() or decision.user.get_username() if decision.user else "the policy"
    return Refused(
        "already_decided",
        f"{who} ruled {decision.letter} ({decision.option}) on {conflict.ref} "
        f"at {decision.at:%Y-%m-%d %H:%M:%S} UTC.",
        "Your text is kept. Reopen the conflict with a reason if the ruling is wrong.",
        decision={
            "option": decision.option, "letter": decision.letter, "by": who,
            "at": decision.at.isoformat(), "text": decision.text,
        },
    )  # fmt: skip


def decide(
    conflict: Conflict,
    option: str,
    *,
    user: Any,
    text: str = "",
    rationale: str = "",
    constraints: str = "",
    expects_change: bool | None = None,
    shown: str = "",
    undo_seconds: float | None = None,
) -> Decision:
    """Rule on a conflict: one conditional UPDATE, the decision, and the task's move, or nothing at all.

    `shown` is the hash of what the person saw; empty skips that check (REST). `undo_seconds` None takes the
    project's. Raises Refused: no_right, already_decided, not_open, stale_view, unknown_option, text_missing.
    """
    task = conflict.task
    if not may(user, task.project, RULE):
        raise Refused(
            "no_right", f"You may not rule in {task.project.name}.",
            "A maintainer can make you a triager.", status=403,
        )  # fmt: skip
    choice = options.choice(conflict.kind, option)
    if choice is None:
        choices = options.OPTIONS.get(options.Kind(conflict.kind), ())
        offered = ", ".join(f"{c.letter} {c.option}" for c in choices) or "none in this version"
        raise Refused(
            "unknown_option", f"{option} is no option of {conflict.ref}.", f"Offered are {offered}.",
            status=422,
        )  # fmt: skip
    if conflict.status != Conflict.Status.OPEN:
        raise _refuse_second(conflict)
    if shown and shown != shown_hash(conflict):
        raise Refused(
            "stale_view", f"{conflict.ref} has changed since you opened it.",
            "Your text is kept. Look at it again, then rule.",
        )  # fmt: skip
    decision = _draft(conflict, option, text, rationale, constraints, expects_change)
    if choice.needs_text and not decision.text:
        raise Refused(
            "text_missing", "Your own words are missing.", "Write what the coder must do.", status=422
        )
    wait = task.project.config.undo_seconds if undo_seconds is None else undo_seconds
    actor = Actor.person(user)
    now = timezone.now()
    try:
        with transaction.atomic():
            Task.objects.select_for_update().get(pk=task.pk)
            won = Conflict.objects.filter(pk=conflict.pk, status=Conflict.Status.OPEN).update(
                status=Conflict.Status.DECIDED, followed=Conflict.Followed.WAITING
            )
            if not won:
                raise _Lost
            decision.user, decision.shown_hash, decision.action = user, shown, "wait"
            decision.at, decision.effective_at = now, now + timedelta(seconds=wait)
            decision.save()
            record(
                task.project, "ruled", actor=actor, task=task, note=rationale or text,
                data={"conflict": conflict.ref, "option": option, "letter": decision.letter},
            )  # fmt: skip
            conflict.refresh_from_db()
            _act(decision, actor)
            cases.refresh(conflict.dispute)
    except (IntegrityError, _Lost):
        conflict.refresh_from_db()
        raise _refuse_second(conflict) from None
    return decision


class _Lost(Exception):
    """Somebody decided between our look and our UPDATE."""


def _act(decision: Decision, actor: Actor) -> None:
    """Move the task once its last blocking conflict is ruled (DESIGN §6)."""
    conflict = decision.conflict
    task = Task.objects.select_related("project", "section").get(pk=conflict.task.pk)
    note = f"{conflict.ref}: {decision.letter}, {decision.option}"
    before = {name: getattr(task, name) for name in RESTORED}
    action = _hands(task, decision, actor, note) if conflict.kind == Conflict.Kind.HANDS else ""
    action = action or _ruled(task, decision, actor, note)
    decision.action = action
    if action != "wait":
        decision.before = {name: _plain(value) for name, value in before.items()} | {"turn": task.version}
    decision.save(update_fields=["action", "before"])
    conflict.refresh_from_db()
    conflict.dispute.refresh_from_db()


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    return value.isoformat() if isinstance(value, datetime) else value


def _hands(task: Task, decision: Decision, actor: Actor, note: str) -> str:
    match Option(decision.option):
        case Option.RETRY:
            if any(other.effect == HOLD for other in cases.open_conflicts(task)):
                return "wait"
            conflict = decision.conflict
            if conflict.submission and _may_land_again(conflict):
                if cases.open_conflicts(task):
                    Task.objects.filter(pk=task.pk).update(accepted=conflict.submission)
                    return "wait"
                task.rule_accept(
                    conflict.submission, actor=actor, note=note, not_before=decision.effective_at
                )
                return "accept"
            started = task.submissions.exists()
            task.retry(
                Status.IN_PROGRESS if started else Status.PENDING, actor=actor, note=note,
                not_before=decision.effective_at,
            )  # fmt: skip
            return "retry"
        case Option.DEFER:
            task.defer(actor=actor, note=note)
            Conflict.objects.filter(pk=decision.conflict_id).update(followed=Conflict.Followed.APPLIED)
            return "defer"
        case Option.CANCEL:
            task.cancel(actor=actor, note=note)
            Conflict.objects.filter(pk=decision.conflict_id).update(followed=Conflict.Followed.APPLIED)
            return "cancel"
    return ""


def _may_land_again(conflict: Conflict) -> bool:
    """The remote refused the push, and the same commit may be pushed once more; a clash needs another one."""
    if conflict.origin != Conflict.Origin.LANDING or conflict.submission is None:
        return False
    last = conflict.submission.landings.order_by("-pk").first()
    return last is None or last.status != Landing.Status.CONFLICT


def _ruled(task: Task, decision: Decision, actor: Actor, note: str) -> str:
    waiting_for_others = cases.open_conflicts(task)
    if any(conflict.effect == HOLD for conflict in waiting_for_others):
        return "wait"
    effective = decision.effective_at
    if _code_must_change(task):
        landed = task.status == Status.COMPLETED and task.landed_at
        if task.status not in MOVES["rule_revise"].sources or landed:
            return "wait"
        task.rule_revise(actor=actor, note=note, not_before=effective)
        return "revise"
    shipped = waiting_for_others and (task.accepted_id or task.landed_at)
    if task.status != Status.DISPUTED or shipped:
        return "wait"
    submission = task.last_submission() or decision.conflict.submission
    if submission is None:
        task.rule_revise(actor=actor, note=note, not_before=effective)
        return "revise"
    if blockers_of(submission) == set() and not waiting_for_others:
        task.rule_accept(submission, actor=actor, note=note, not_before=effective)
        return "accept"
    task.rule_review(actor=actor, note=note, not_before=effective)
    return "review"


def _code_must_change(task: Task) -> bool:
    """Whether a ruling asks for a change that no submission since could have carried out."""
    waiting = Decision.objects.standing().filter(
        conflict__dispute__task=task, conflict__followed=Conflict.Followed.WAITING, expects_change=True
    )
    return any(
        ruling.used_at is None or not task.submissions.filter(at__gt=ruling.used_at).exists()
        for ruling in waiting
    )


def undo(decision: Decision, *, user: Any) -> Conflict:
    """Take a ruling back while no prompt has used it. Raises Refused: no_right, used, moved_on."""
    conflict = decision.conflict
    task = conflict.task
    if not may(user, task.project, RULE):
        raise Refused("no_right", f"You may not rule in {task.project.name}.", status=403)
    if not _may_undo(user, decision, task):
        raise Refused(
            "no_right", "Only who ruled, or a lead of the project, takes a ruling back.",
            "Reopen it with a reason.", status=403,
        )  # fmt: skip
    with transaction.atomic():
        task = Task.objects.select_for_update().select_related("project", "section").get(pk=task.pk)
        revoked = Decision.objects.filter(pk=decision.pk, revoked_at__isnull=True, used_at__isnull=True)
        if not revoked.update(revoked_at=timezone.now(), revoked_by=user, revoked_reason="undone"):
            raise Refused(
                "used", "A prompt has already used this ruling.",
                "Reopen the conflict with a reason: that opens a new one which names this.",
            )  # fmt: skip
        newer = cases.live_dispute(task)
        stale = newer is not None and newer.pk != conflict.dispute_id
        waits = _newer(conflict).filter(status=Conflict.Status.OPEN).exists()
        if stale or waits or conflict.followed == Conflict.Followed.REOPENED:
            raise Refused("already_open", f"A newer card asks for {conflict.ref}.", "Rule on that one.")
        if moved := _that_moved(task, decision):
            _restore(task, moved, Actor.person(user))
        elif conflict.effect == HOLD and task.status in MOVES["hold"].sources:
            task.hold(actor=Actor.person(user), note=f"The ruling on {conflict.ref} was taken back.")
        Conflict.objects.filter(pk=conflict.pk).update(status=Conflict.Status.OPEN, followed="")
        record(task.project, "ruling_undone", actor=Actor.person(user), task=task, note=conflict.ref)
        conflict.refresh_from_db()
        cases.refresh(conflict.dispute)
    return conflict


def _may_undo(user: Any, decision: Decision, task: Task) -> bool:
    """Who ruled, or a lead of the project."""
    lead = task.project.memberships.filter(user=user.pk, is_lead=True).exists()
    return bool(decision.user_id == user.pk or lead or user.is_superuser)


def _that_moved(task: Task, decision: Decision) -> Decision | None:
    """The ruling that moved the task: this one, or a later one that waited for it."""
    if decision.before or decision.conflict.effect != HOLD:
        return decision if decision.before else None
    later = (
        Decision.objects.standing()
        .unused()
        .filter(conflict__dispute__task=task, before__isnull=False, pk__gt=decision.pk)
    )
    return later.order_by("-pk").first()


def _restore(task: Task, decision: Decision, actor: Actor) -> None:
    """The task as it was before the ruling moved it."""
    before = dict(decision.before)
    status, turn = before.pop("status"), before.pop("turn")
    if task.version != turn:
        raise Refused(
            "moved_on", f"{task.ref} has moved on since: it is {task.status} now.",
            "Reopen the conflict with a reason.", status_now=task.status,
        )  # fmt: skip
    if (task.landed_at and not before["landed_at"]) or task.landings.filter(status="pushing").exists():
        raise Refused("moved_on", f"{task.ref} has landed; the ruling cannot be undone.", "Reopen it.")
    for name in ("landed_at", "counts_since", "not_before"):
        before[name] = parse_datetime(before[name]) if before[name] else None
    if task.status == status:
        Task.objects.filter(pk=task.pk).update(**before)
    else:
        task.move("undo", to=status, actor=actor, note=decision.conflict.ref, **before)
    recount([task])
    recount_dependants(task)
    if status == Status.FAILED:
        task.stop_sections()


def _newer(conflict: Conflict) -> QuerySet[Conflict]:
    """Later cards on the same point that wait for a ruling or have one."""
    same = Q(previous=conflict)
    if conflict.finding_id:
        same |= Q(finding=conflict.finding_id, kind=conflict.kind)
    counted = (Conflict.Status.OPEN, Conflict.Status.DECIDED)
    return Conflict.objects.filter(same, pk__gt=conflict.pk, status__in=counted)


def reopen(decision: Decision, *, user: Any, reason: str) -> Conflict:
    """Open a new conflict that names the ruled one (MODELS 29). Raises Refused: no_right, text_missing."""
    old = decision.conflict
    task = old.task
    if not may(user, task.project, RULE):
        raise Refused("no_right", f"You may not rule in {task.project.name}.", status=403)
    if not reason.strip():
        raise Refused("text_missing", "A reason is needed to reopen a ruling.", status=422)
    if decision.revoked_at is not None:
        raise Refused("not_open", f"That ruling on {old.ref} was taken back; it does not stand.", "Reload.")
    with transaction.atomic():
        actor = Actor.person(user)
        Task.objects.select_for_update().get(pk=task.pk)
        old.refresh_from_db()
        if old.followed == Conflict.Followed.REOPENED or _newer(old).exists():
            raise Refused("already_open", f"{old.ref} was reopened already.", "Go on with the newer card.")
        Conflict.objects.filter(pk=old.pk).update(followed=Conflict.Followed.REOPENED)
        conflict = cases.open_conflict(
            task, kind=old.kind, origin=Conflict.Origin.REOPENED, opened_as="human", question=old.question,
            finding=old.finding, submission=task.last_submission(), severity=old.severity, reason=old.reason,
            reviewer_position=old.reviewer_position, reviewer_label=old.reviewer_label,
            coder_position=old.coder_position, coder_rationale=old.coder_rationale,
            coder_label=old.coder_label, alternative=old.alternative, previous=old, actor=actor,
        )  # fmt: skip
        record(task.project, "ruling_reopened", actor=actor, task=task, note=reason.strip())
        task.refresh_from_db()
        if task.status in MOVES["hold"].sources and conflict.effect == HOLD:
            task.hold(actor=actor, note=f"{old.ref} was reopened: {reason.strip()}"[:500])
    return conflict


def rulings_for_prompt(task: Task) -> list[Decision]:
    """The rulings that the next engineer prompt begins with: standing, in force, not yet carried out."""
    return list(
        Decision.objects.standing()
        .filter(
            conflict__dispute__task=task,
            conflict__followed=Conflict.Followed.WAITING,
            effective_at__lte=timezone.now(),
        )
        .select_related("conflict__finding", "conflict__dispute__task__project")
        .order_by("pk")
    )


def mark_used(decisions: list[Decision], run_number: int | None) -> int:
    """From here on these rulings can only be reopened. Returns how many were marked."""
    pks = [decision.pk for decision in decisions]
    return (
        Decision.objects.standing()
        .unused()
        .filter(pk__in=pks)
        .update(used_at=timezone.now(), used_by_run=run_number)
    )
