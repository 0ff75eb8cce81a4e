"""Letting a person change a finding's severity: only people may lower it (SEV-3), and finally (SEV-7)."""

from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from disputes import opening
from disputes.completion import rates
from disputes.models import NOT_STATED, Conflict, Flag
from disputes.protocol.rulings.options import Option
from disputes.rulings.blocking import is_held
from disputes.rulings.effects import go_on
from disputes.rulings.offers import is_of_security
from tasks.access import RULE, require
from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.models import Finding, Submission, Task
from tasks.models.event import record
from tasks.models.task import locked_task
from tasks.states import MOVES, Severity

REASON_MAX = 2_000


def change_severity(finding: Finding, severity: str, *, user: Any, reason: str) -> Finding:
    """Change a finding's severity; if it need not be settled any more, its conflict is dropped (RL-6).

    Raises Refused: "no_right", "text_missing" without a reason, "unknown_severity", "unchanged", or "decided"
    if the finding has been ruled on.
    """
    task = finding.task
    require(user, task.project, RULE, "rule")
    if severity not in set(Severity):
        names = ", ".join(Severity)
        raise Invalid("unknown_severity", f"{severity} is no severity.", f"Choose {names}.")
    if not reason.strip():
        raise Invalid("text_missing", "Say why the severity changes.", "A sentence is enough.")
    actor = Actor.person(user)
    with transaction.atomic():
        task = locked_task(task.pk)
        finding = Finding.objects.select_related("first", "review").get(pk=finding.pk)
        if finding.severity == severity:
            raise Refused("unchanged", f"{finding.code} is {severity} already.", "Choose another one.")
        if _is_ruled(finding.origin):
            raise Refused("decided", f"{finding.code} has been ruled on.", "Reopen that ruling instead.")
        old, was_mandatory = finding.severity, finding.mandatory
        for one in finding.chain():
            one.first_severity = one.first_severity or one.severity
            one.severity = severity
            one.mandatory = task.project.config.is_mandatory(severity) and not one.is_follow_up
            one.lowered_by, one.lowered_reason = user, reason.strip()[:REASON_MAX]
            one.save(
                update_fields=["severity", "mandatory", "first_severity", "lowered_by", "lowered_reason"]
            )
        record(
            task.project, "severity_changed", actor=actor, task=task, note=reason.strip(),
            data={"finding": finding.code, "from": old, "to": severity},
        )  # fmt: skip
        finding.refresh_from_db()
        if was_mandatory and not finding.mandatory:
            _drop(finding, task, actor)
        else:
            _weigh_anew(finding, task, actor)
    return finding


def _is_ruled(origin: Finding) -> bool:
    """Whether a ruling on the finding itself is in force and no newer card asks again."""
    about = Conflict.objects.about(origin).on_findings()
    if about.open().disagreements().exists():
        return False
    return (
        about.ruled()
        .filter(Q(kind=Conflict.Kind.DISAGREEMENT) | Q(decisions__option=Option.WAIVE))
        .filter(decisions__revoked_at__isnull=True, decisions__archived_by__isnull=True)
        .exists()
    )


def _open_on(finding: Finding) -> QuerySet[Conflict]:
    opened = Conflict.objects.about(finding).open().on_findings()
    return opened.select_related("dispute__project", "dispute__task", "submission")


def _drop(finding: Finding, task: Task, actor: Actor) -> None:
    """Drop the conflicts and flags of a finding that need not be settled, update the rates, and move on."""
    dropped = list(_open_on(finding))
    note = f"{finding.code} need not be settled: {finding.severity} now."
    for conflict in dropped:
        conflict.drop(note, actor=actor)
    Flag.objects.filter(finding=finding.origin).open().drop()
    alerts = rates.take_anew(task, actor=actor)
    for dispute in {conflict.dispute for conflict in [*dropped, *alerts]}:
        dispute.refresh_from_db()
        opening.refresh(dispute)
    if dropped or alerts:
        submission: Submission | None = next((c.submission for c in dropped if c.submission), None)
        go_on(task, submission, actor=actor, note=note)


def _weigh_anew(finding: Finding, task: Task, actor: Actor) -> None:
    """Give the open cards the finding's new severity, and hold the task if that requires it."""
    opened = list(_open_on(finding))
    for conflict in opened:
        conflict.severity = finding.severity
        if conflict.kind == Conflict.Kind.DISAGREEMENT:
            conflict.effect = opening.effect_of(
                task.project, severity=finding.severity, reason=conflict.reason,
                opened_as=conflict.opened_as,
                heard=NOT_STATED not in {conflict.reviewer_position, conflict.coder_position},
                about_security=is_of_security(conflict),
            )  # fmt: skip
        conflict.save(update_fields=["severity", "effect"])
        conflict.dispute.refresh_from_db()
        opening.refresh(conflict.dispute)
    if not opened:
        return
    note = f"{finding.code} is {finding.severity} now."
    if is_held(task) and task.status in MOVES["hold"].sources:
        task.hold(actor=actor, note=note)
    else:
        go_on(task, opened[0].submission, actor=actor, note=note)
