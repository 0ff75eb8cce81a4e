"""A person changes the severity of a finding: only people may lower it (SEV-3), and finally (SEV-7)."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from disputes import cases
from disputes.models import Conflict
from disputes.rulings.effects import go_on
from tasks.access import RULE, may
from tasks.errors import Refused
from tasks.events import Actor, record
from tasks.models import Finding, Task
from tasks.states import Severity


def change_severity(finding: Finding, severity: str, *, user: Any, reason: str) -> Finding:
    """Give a finding another severity. Where it need not be settled any more its conflict is none (§12).

    Raises Refused: no_right, text_missing, unknown_severity, unchanged, decided.
    """
    task = finding.task
    if not may(user, task.project, RULE):
        raise Refused("no_right", f"You may not rule in {task.project.name}.", status=403)
    if severity not in set(Severity):
        names = ", ".join(Severity)
        raise Refused("unknown_severity", f"{severity} is no severity.", f"Choose {names}.", status=422)
    if not reason.strip():
        raise Refused("text_missing", "Say why the severity changes.", "A sentence is enough.", status=422)
    actor = Actor.person(user)
    with transaction.atomic():
        task = Task.objects.select_for_update().select_related("project", "section").get(pk=task.pk)
        finding = Finding.objects.select_related("first", "review").get(pk=finding.pk)
        if finding.severity == severity:
            raise Refused("unchanged", f"{finding.code} is {severity} already.", "Choose another one.")
        ruled = Conflict.objects.filter(finding=finding.origin, status=Conflict.Status.DECIDED)
        if ruled.exclude(followed=Conflict.Followed.REOPENED).exists():
            raise Refused("decided", f"{finding.code} has been ruled on.", "Reopen that ruling instead.")
        old, mandatory = finding.severity, severity in task.project.config.mandatory
        chain = Finding.objects.filter(pk=finding.origin.pk) | Finding.objects.filter(first=finding.origin)
        for one in chain:
            one.first_severity = one.first_severity or one.severity
            one.severity, one.mandatory = severity, mandatory and not one.is_follow_up
            one.lowered_by, one.lowered_reason = user, reason.strip()
            one.save(
                update_fields=["severity", "mandatory", "first_severity", "lowered_by", "lowered_reason"]
            )
        record(
            task.project, "severity_changed", actor=actor, task=task, note=reason.strip(),
            data={"finding": finding.code, "from": old, "to": severity},
        )  # fmt: skip
        _settle(finding, severity, task, actor, is_conflict=mandatory)
    finding.refresh_from_db()
    return finding


def _settle(finding: Finding, severity: str, task: Task, actor: Actor, *, is_conflict: bool) -> None:
    """The open cards on the finding: closed where it need not be settled, else as severe as it is now."""
    opened = Conflict.objects.filter(
        finding=finding.origin, status=Conflict.Status.OPEN,
        kind__in=[Conflict.Kind.DISAGREEMENT, Conflict.Kind.SILENCE],
    )  # fmt: skip
    disputes = {conflict.dispute for conflict in opened.select_related("dispute")}
    submission = next((conflict.submission for conflict in opened.select_related("submission")), None)
    if is_conflict:
        opened.update(severity=severity)
    else:
        opened.update(status=Conflict.Status.MOOT)
    for dispute in disputes:
        cases.refresh(dispute)
    if disputes and not is_conflict:
        note = f"{finding.code} need not be settled: {severity} now."
        go_on(task, submission, actor=actor, note=note, not_before=timezone.now())
