"""Opening conflicts, and keeping each dispute consistent with the conflicts it holds."""

from typing import Any

from django.db import transaction
from django.db.models import Expression, Q, QuerySet

from disputes import searching, triage
from disputes.models import NOT_STATED, Conflict, Decision, Dispute, Flag
from disputes.models.conflict import ConflictQuerySet
from disputes.protocol.completion.stuck import is_security
from disputes.protocol.reviews.fields import asked_in
from disputes.protocol.rulings.gate import OpenConflict
from disputes.protocol.rulings.options import Option
from disputes.protocol.rulings.synthesis import Source, Views, handed_in, synthesise
from disputes.protocol.text.quotes import one_line
from tasks.configuration.policy import HOLD, LAND, LOG, SHIP
from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared
from tasks.dependencies import blocked_by
from tasks.events import SYSTEM, Actor
from tasks.models import Event, Finding, Project, Submission, Task
from tasks.models.event import record
from tasks.models.task import locked_task
from tasks.states import Severity, severity_rank, worst

RULED_MAX = 600  # characters of an earlier ruling that a card quotes
# What a conflict that goes on from an older one has of that one.
CARRIED_ON = (
    "kind", "question", "finding", "severity", "reason", "reviewer_position", "reviewer_label",
    "coder_position", "coder_rationale", "coder_label", "alternative", "proposal",
)  # fmt: skip
WITHDRAWN = "withdrawn"  # the name of the event
# The columns that `refresh` writes. People may meanwhile change others, such as who holds it or its snooze.
_FROM_CONFLICTS = ["status", "severity", "question", "closed_at", "closed_reason"]
# A task-level dispute without --severity takes it from its reason (DIS-4).
REASON_SEVERITY = {
    Conflict.Reason.SECURITY: Severity.HIGH,
    Conflict.Reason.ARCHITECTURE: Severity.HIGH,
    Conflict.Reason.SPECIFICATION: Severity.HIGH,
    Conflict.Reason.GUIDELINE: Severity.HIGH,
    Conflict.Reason.SCOPE: Severity.MEDIUM,
    Conflict.Reason.OTHER: Severity.MEDIUM,
}


def read_reason(words: str) -> Conflict.Reason:
    """Return one of the six reasons; unknown words are `other`, and the caller keeps them as text."""
    plain = words.strip().lower().replace("-", "_").replace(" ", "_")
    for reason in Conflict.Reason:
        if plain == reason or plain.startswith(reason.split("_")[0]):
            return reason
    return Conflict.Reason.OTHER


def effect_of(
    project: Project, *, severity: str, reason: str, opened_as: str, heard: bool, about_security: bool
) -> str:
    """Return hold, ship or log for a new conflict.

    A dispute by a reviewer, a security reason and an unheard side hold the task: a label must not be a way
    round the review (DIS-3). A reviewer's dispute does not hold if the project wants disputed work on the
    target branch: it is the coder's work that lands, whether the coder was heard or not, and the rest of the
    review continues.
    """
    config = project.config
    lands = config.disputed_work.get(severity) == LAND and not about_security
    if opened_as == "reviewer" and lands and reason != Conflict.Reason.SECURITY:
        return SHIP
    if opened_as in {"reviewer", "system"} or reason == Conflict.Reason.SECURITY or not heard:
        return HOLD
    effect = config.effect(severity)
    if effect == HOLD and lands:
        return SHIP
    return HOLD if opened_as == "human" and effect == LOG else effect


def is_about_security(*words: str | Finding | None) -> bool:
    """Whether any of the texts or findings speaks of security; if in doubt, it does."""
    texts: list[str] = []
    for each in filter(None, words):
        if isinstance(each, Finding):
            texts += [each.title, each.text, each.impact, each.suggestion]
        else:
            texts.append(each)
    return is_security("\n".join(texts))


def severity_of(reason: str, known: str) -> str:
    """Return a new conflict's severity; `known` is its finding's, if any. Security is never below HIGH."""
    severity = known or REASON_SEVERITY[Conflict.Reason(reason)]
    if reason == Conflict.Reason.SECURITY and severity_rank(severity) < severity_rank(Severity.HIGH):
        return Severity.HIGH
    return severity


def open_conflicts(task: Task) -> list[OpenConflict]:
    """Return the task's undecided conflicts for the gate, except logged ones; silences and alerts count."""
    return [
        OpenConflict(finding if kind == Conflict.Kind.DISAGREEMENT else None, effect)
        for finding, kind, effect in _undecided.rows(task.pk)
    ]


def _of_gate(task: Expression) -> QuerySet[Conflict]:
    rows = Conflict.objects.of(task).open().exclude(effect=LOG)
    return rows.values_list("finding", "kind", "effect")


_undecided = Prepared(_of_gate)


def live_dispute(task: Task) -> Dispute | None:
    """Return the task's dispute that is not closed, or None."""
    found: Dispute | None = _live.first(task.pk)
    return found


_live = Prepared(lambda task: Dispute.objects.live().filter(task=task)[:1])


@transaction.atomic
def open_conflict(
    task: Task,
    *,
    kind: str,
    origin: str,
    opened_as: str,
    question: str,
    actor: Actor = SYSTEM,
    finding: Finding | None = None,
    submission: Submission | None = None,
    severity: str = "",
    reason: str = Conflict.Reason.OTHER,
    reviewer_position: str = "",
    coder_position: str = "",
    effect: str = "",
    **more: Any,
) -> Conflict:
    """Open a conflict in the task's dispute, which is created if there is none (DIS-4).

    A disagreement that the project's policy only logs, or that its opener calls minor by `effect`, is
    recorded as logged and waits for nobody. Silences and alerts pass their own `effect`: hold, or log if they
    ask without holding anything.
    """
    locked_task(task.pk)
    severity = severity_of(reason, severity or (finding.severity if finding else ""))
    raised = _last_raised(finding)
    effect = effect or effect_of(
        task.project, severity=severity, reason=reason, opened_as=opened_as,
        heard=not {coder_position, reviewer_position} & {"", NOT_STATED},
        about_security=is_about_security(question, reviewer_position, coder_position, finding, raised),
    )  # fmt: skip
    is_disagreement = kind == Conflict.Kind.DISAGREEMENT
    unstated = NOT_STATED if is_disagreement else ""
    logged = effect == LOG and is_disagreement
    if is_disagreement and finding and not logged:
        more["evidence"] = [*more.get("evidence", []), *_absorb_silences(finding, opened_as, actor)]
    if "stage" not in more:
        more["stage"] = _stage_of(task, submission, finding)
    dispute = _dispute_for(task, question, severity, closed=logged)
    conflict = Conflict.begin(
        is_logged=logged,
        dispute=dispute,
        kind=kind,
        origin=origin,
        opened_as=opened_as,
        question=question[:500],
        finding=finding,
        raised_as=raised,
        submission=submission,
        severity=severity,
        effect=effect,
        reason=reason,
        reviewer_position=reviewer_position or unstated,
        coder_position=coder_position or unstated,
        **more,
    )
    if is_disagreement and conflict.proposal is None:
        _propose(conflict, Views(question, reviewer_position, coder_position, conflict.coder_rationale))
    if logged:
        searching.renew(Dispute.objects.filter(pk=dispute.pk))
    else:
        refresh(dispute)
        triage.wake(dispute, "conflict", actor=actor)
    record(
        task.project, "conflict_logged" if logged else "conflict_opened", actor=actor, task=task,
        note=question, data={"conflict": conflict.ref, "severity": severity, "effect": effect},
    )  # fmt: skip
    return conflict


def position_of(finding: Finding) -> str:
    """Return what the reviewer asks for, in its own words."""
    return finding.suggestion or asked_in(finding.text) or finding.title


def open_again(task: Task, old: Conflict, **changes: Any) -> Conflict:
    """Open a conflict of the task that goes on from an older one: the same, except for these changes."""
    return open_conflict(task, previous=old, **{name: getattr(old, name) for name in CARRIED_ON} | changes)


def ask_again(decision: Decision, *, opened_as: str, why: str, actor: Actor, **changes: Any) -> Conflict:
    """Open a card on a point that was ruled on: it names the old card, shows the ruling, and why it asks."""
    old = decision.conflict
    ruled = f"{old.ref} was ruled {decision.word} by {decision.by}"
    said = one_line(decision.text or decision.rationale, RULED_MAX)
    told = [one_line(why), f"{ruled}: {said}" if said else f"{ruled}."]
    evidence = old.evidence if opened_as == "human" else []
    if old.kind in Conflict.BETWEEN_TWO:
        evidence = [*told, *evidence]
    conflict = open_again(old.task, old, opened_as=opened_as, actor=actor, evidence=evidence, **changes)
    ruling = handed_in(decision.text, source=Source.HUMAN) if decision.option == Option.COMPROMISE else None
    if ruling and ruling.proposal != (old.proposal and old.proposal.text):
        conflict.propose(ruling, decision.by)
    return conflict


def _last_raised(finding: Finding | None) -> Finding | None:
    """Return the point as it was last raised in rounds that were not rolled back."""
    return finding and (_last.first(finding.first_id or finding.pk) or finding)


def _raised(origin: Expression) -> QuerySet[Finding]:
    of_point = Finding.objects.standing().filter(Q(pk=origin) | Q(first=origin))
    return of_point.order_by("-pk")[:1]


_last = Prepared(_raised)


def _propose(conflict: Conflict, views: Views) -> None:
    """Store a synthesis of both positions if a rule finds one."""
    if found := synthesise(views):
        conflict.propose(found, found.rule)


def _stage_of(task: Task, submission: Submission | None, finding: Finding | None) -> str:
    """Return the stage at which the conflict came up: that of the disputed work, else the task's."""
    raised = submission or (finding.review.submission if finding else None)
    return (raised.stage if raised else "") or task.stage


def withdraw(alert: Conflict, *, actor: Actor) -> None:
    """Drop the undecided disagreements of the alert's round, so that the coder has to answer again."""
    declined = (
        Conflict.objects.of(alert.dispute.task_id)
        .open()
        .filter(
            origin=Conflict.Origin.DISAGREE,
            submission__round=alert.submission.round if alert.submission else 0,
        )
    )
    dropped = list(declined.select_related("dispute__project", "dispute__task"))
    for conflict in dropped:
        conflict.drop(f"{alert.ref}: the coder is asked again", actor=actor)
    record(
        alert.dispute.project, WITHDRAWN, actor=actor, task=alert.dispute.task, note=alert.ref,
        data={"alert": alert.pk, "conflicts": [conflict.pk for conflict in dropped]},
    )  # fmt: skip


def withdrawn_by(alert: Conflict) -> QuerySet[Conflict]:
    """Return the conflicts that asking the coder to reduce has made moot.

    Those that became pointless because a person lowered the finding are left out.
    """
    told = Event.objects.filter(task=alert.dispute.task_id, kind=WITHDRAWN, data__alert=alert.pk)
    newest = told.order_by("-pk").values_list("data", flat=True).first() or {}
    dropped = Conflict.objects.filter(pk__in=newest.get("conflicts", []), status=Conflict.Status.MOOT)
    return dropped.standing().exclude(finding__mandatory=False, finding__lowered_by__isnull=False)


def _absorb_silences(finding: Finding, opened_as: str, actor: Actor) -> list[str]:
    """Close what else is asked about the point, which is now in dispute. Return what its open flags say."""
    origin = finding.first_id or finding.pk
    silences, cards = _silences.found(origin), _asked.found(origin)
    is_answer = opened_as == "coder"
    status = Flag.Status.ANSWERED if is_answer else Flag.Status.MOOT
    Flag.objects.filter(conflict__in=silences).open().update(status=status)
    why = "the point is in dispute"
    for card in cards:
        card.mark(
            Conflict.Followed.APPLIED if is_answer else Conflict.Followed.CANNOT_TELL, actor=actor, note=why
        )
    for silence in silences:
        silence.drop(why, actor=actor)
    return [line for silence in silences for line in silence.evidence]


def _about(origin: Expression) -> ConflictQuerySet:
    cards = Conflict.objects.about(origin).order_by("pk")
    return cards.select_related("dispute__project", "dispute__task")


def _asked_about(origin: Expression) -> QuerySet[Conflict]:
    asked = Decision.objects.standing().filter(option__in=[Option.ASK, Option.ASK_DISAGREE])
    return _about(origin).awaited().filter(decisions__in=asked.order_by())


_silences = Prepared(lambda origin: _about(origin).open().silences())
_asked = Prepared(_asked_about)


def _dispute_for(task: Task, question: str, severity: str, *, closed: bool) -> Dispute:
    if dispute := live_dispute(task):
        return dispute
    now = estimated_time()
    return Dispute.objects.create(
        project=task.project,
        task=task,
        question=question[:500],
        severity=severity,
        blocks=blocked_by(task),
        status=Dispute.Status.CLOSED if closed else Dispute.Status.OPEN,
        closed_at=now if closed else None,
        closed_reason="logged" if closed else "",
    )


def refresh(dispute: Dispute, *, moot: str = "moot") -> None:
    """Derive the dispute's status and the columns of the queue's order from its conflicts, and save them.

    `moot` is the reason with which the dispute closes if none of its conflicts was ruled on.
    """
    conflicts: list[Conflict] = _of_dispute.found(dispute.pk)
    waiting = [conflict for conflict in conflicts if conflict.is_open]
    if waiting:
        head = max(waiting, key=lambda conflict: (severity_rank(conflict.severity), -conflict.pk))
        dispute.status = Dispute.Status.OPEN
        dispute.severity = worst(conflict.severity for conflict in waiting)
        dispute.question = head.question
        dispute.closed_at, dispute.closed_reason = None, ""
    elif any(conflict.followed == Conflict.Followed.WAITING for conflict in conflicts):
        dispute.status = Dispute.Status.RULED
    elif dispute.status != Dispute.Status.CLOSED:
        decided = any(conflict.status == Conflict.Status.DECIDED for conflict in conflicts)
        close(dispute, "followed up" if decided else moot)
        return
    if dispute.task is not None:
        dispute.blocks = blocked_by(dispute.task)
    dispute.search_text = searching.text_of(dispute, conflicts)
    dispute.save(update_fields=[*_FROM_CONFLICTS, "blocks", "search_text"])


def _in_dispute(dispute: Expression) -> QuerySet[Conflict]:
    return Conflict.objects.filter(dispute=dispute).select_related("finding").order_by("pk")


_of_dispute = Prepared(_in_dispute)


def close(dispute: Dispute, reason: str) -> None:
    """Close the dispute, and drop its open conflicts and flags: nothing in it waits for anybody any more."""
    for conflict in dispute.conflicts.open():
        conflict.drop(reason)
    Flag.objects.filter(conflict__dispute=dispute).open().drop()
    dispute.status, dispute.closed_at, dispute.closed_reason = Dispute.Status.CLOSED, estimated_time(), reason
    dispute.blocks = 0
    dispute.save(update_fields=[*_FROM_CONFLICTS, "blocks"])
    record(dispute.project, "dispute_closed", task=dispute.task, note=reason, data={"dispute": dispute.ref})


def stop_for_help(
    task: Task, origin: str, question: str, *, actor: Actor = SYSTEM, detail: str = "", **more: Any
) -> Conflict:
    """Take the task out of the loop because only a person can help, and open a card that says why."""
    with transaction.atomic():
        task.stop_for_help(note=question, actor=actor)
        return ask_for_help(task, origin, question, actor=actor, detail=detail, **more)


def ask_for_help(
    task: Task, origin: str, question: str, *, actor: Actor = SYSTEM, detail: str = "", **more: Any
) -> Conflict:
    """Open a card that asks for help with a task that is already out of the loop."""
    return open_conflict(
        task, kind=Conflict.Kind.HELP, origin=origin, opened_as="system", question=question,
        severity=task.severity, actor=actor, coder_position=detail, submission=task.last_submission(),
        **more,
    )  # fmt: skip
