"""Deciding a conflict, undoing it, and what a ruling does to the task."""

import json
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from disputes import cases
from disputes.intake import settled_findings
from disputes.models import Conflict, Decision
from disputes.protocol import options
from disputes.protocol.gate import Outcome, Point, gate
from disputes.protocol.options import Option
from disputes.protocol.wording import Ruling, ruling_lines
from tasks.access import RULE, may
from tasks.errors import Refused
from tasks.events import Actor, record
from tasks.models import Review, Submission, Task
from tasks.policy import HOLD, SHIP
from tasks.states import MOVES, Status

TEXT_MAX = 20_000


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


def options_of(conflict: Conflict) -> list[OptionView]:
    """What may be chosen on this conflict, with the consequence in words."""
    task = conflict.task
    clean = conflict.submission is not None and reviewed_clean(conflict.submission)
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
    task = conflict.task
    shown = [
        conflict.pk, conflict.reviewer_position, conflict.coder_position, conflict.coder_rationale,
        conflict.alternative, conflict.question, conflict.severity, task.title, task.body,
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
    conflict: Conflict, option: str, *, text: str, rationale: str, constraints: str, expects_change: bool
) -> list[str]:
    """Exactly the lines that the next engineer prompt would begin with."""
    draft = Decision(
        conflict=conflict, option=option, text=text, rationale=rationale, constraints_text=constraints,
        expects_change=expects_change,
    )  # fmt: skip
    return ruling_lines([ruling_of(draft)])


def reviewed_clean(submission: Submission) -> bool:
    """Green, and reviewed without a mandatory finding that is still unsettled (MODELS 25)."""
    review = submission.reviews.order_by("-pk").first()
    if review is None or submission.state != Submission.State.VERIFIED:
        return False
    settled = settled_findings(submission.task)
    findings = list(review.findings.select_related("first"))
    explicit = review.verdict == Review.Verdict.NEEDS_REVISION and any(
        finding.origin.pk not in settled for finding in findings
    )
    points = [Point(f.origin.pk, f.mandatory, f.origin.pk in settled) for f in findings]
    return not explicit and gate(points, []) is Outcome.PASS


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
        offered = ", ".join(f"{c.letter} {c.option}" for c in options.OPTIONS[options.Kind(conflict.kind)])
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
    text = text.strip()[:TEXT_MAX] or text_of(conflict, option)
    if choice.needs_text and not text:
        raise Refused(
            "text_missing", "Your own words are missing.", "Write what the coder must do.", status=422
        )
    changes = choice.expects_change if expects_change is None else expects_change
    if option in {Option.UPHOLD_REVIEWER, Option.UPHOLD_CODER}:
        changes = choice.expects_change
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
            decision = Decision.objects.create(
                conflict=conflict, option=option, text=text, rationale=rationale.strip()[:TEXT_MAX],
                constraints_text=constraints.strip()[:TEXT_MAX], expects_change=changes, user=user,
                shown_hash=shown, at=now, effective_at=now + timedelta(seconds=wait), action="wait",
            )  # fmt: skip
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
    moved_from, moved_round = task.status, task.round
    action = _hands(task, decision, actor, note) if conflict.kind == Conflict.Kind.HANDS else ""
    action = action or _ruled(task, decision, actor, note)
    decision.action = action
    if action != "wait":
        decision.moved_from, decision.moved_round = moved_from, moved_round
    decision.save(update_fields=["action", "moved_from", "moved_round"])
    conflict.refresh_from_db()
    conflict.dispute.refresh_from_db()


def _hands(task: Task, decision: Decision, actor: Actor, note: str) -> str:
    match Option(decision.option):
        case Option.RETRY:
            conflict = decision.conflict
            if conflict.origin == Conflict.Origin.LANDING and conflict.submission:
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


def _ruled(task: Task, decision: Decision, actor: Actor, note: str) -> str:
    if any(conflict.effect == HOLD for conflict in cases.open_conflicts(task)):
        return "wait"
    waiting = Decision.objects.standing().filter(
        conflict__dispute__task=task, conflict__followed=Conflict.Followed.WAITING
    )
    effective = decision.effective_at
    if any(ruling.expects_change for ruling in waiting):
        if task.status not in MOVES["rule_revise"].sources or (
            task.status == Status.COMPLETED and task.landed_at
        ):
            return "wait"
        task.rule_revise(actor=actor, note=note, not_before=effective)
        return "revise"
    if task.status != Status.DISPUTED:
        return "wait"
    submission = decision.conflict.submission or task.last_submission()
    if submission is not None and reviewed_clean(submission):
        task.rule_accept(submission, actor=actor, note=note, not_before=effective)
        return "accept"
    if submission is None:
        task.rule_revise(actor=actor, note=note, not_before=effective)
        return "revise"
    task.rule_review(actor=actor, note=note, not_before=effective)
    return "review"


def undo(decision: Decision, *, user: Any) -> Conflict:
    """Take a ruling back while no prompt has used it. Raises Refused: no_right, used, moved_on."""
    conflict = decision.conflict
    task = conflict.task
    if not may(user, task.project, RULE):
        raise Refused("no_right", f"You may not rule in {task.project.name}.", status=403)
    with transaction.atomic():
        task = Task.objects.select_for_update().select_related("project", "section").get(pk=task.pk)
        revoked = Decision.objects.filter(pk=decision.pk, revoked_at__isnull=True, used_at__isnull=True)
        if not revoked.update(revoked_at=timezone.now(), revoked_by=user, revoked_reason="undone"):
            raise Refused(
                "used", "A prompt has already used this ruling.",
                "Reopen the conflict with a reason: that opens a new one which names this.",
            )  # fmt: skip
        if decision.moved_from and task.status != decision.moved_from:
            if task.landed_at or task.landings.filter(status="pushing").exists():
                raise Refused("moved_on", f"{task.ref} has landed; the ruling can't be undone.", "Reopen it.")
            was_accepted = conflict.effect == SHIP or decision.moved_from == Status.COMPLETED
            accepted = (conflict.submission or task.last_submission()) if was_accepted else None
            task.move(
                "undo", to=decision.moved_from, actor=Actor.person(user), note=conflict.ref,
                round=decision.moved_round, accepted=accepted, not_before=None,
            )  # fmt: skip
        Conflict.objects.filter(pk=conflict.pk).update(status=Conflict.Status.OPEN, followed="")
        record(task.project, "ruling_undone", actor=Actor.person(user), task=task, note=conflict.ref)
        conflict.refresh_from_db()
        cases.refresh(conflict.dispute)
    return conflict


def reopen(decision: Decision, *, user: Any, reason: str) -> Conflict:
    """Open a new conflict that names the ruled one (MODELS 29). Raises Refused: no_right, text_missing."""
    old = decision.conflict
    task = old.task
    if not may(user, task.project, RULE):
        raise Refused("no_right", f"You may not rule in {task.project.name}.", status=403)
    if not reason.strip():
        raise Refused("text_missing", "A reason is needed to reopen a ruling.", status=422)
    with transaction.atomic():
        actor = Actor.person(user)
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
