"""Letting a person say whether a finding repeats an earlier one (ID-6)."""

from typing import Any

from django.db import transaction

from disputes import opening, searching
from disputes.closed_findings import settled_findings
from disputes.completion import stuck
from disputes.models import Conflict, Dispute, Flag
from disputes.rulings.effects import go_on
from tasks.access import RULE, require
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Answer, Finding, Task
from tasks.models.event import record
from tasks.models.task import locked_task


def confirm_same(finding: Finding, *, user: Any, same: bool) -> Finding:
    """Record whether a finding is the same as the earlier one that it resembles.

    If it is, its answers, flags and conflicts move to that point; if a ruling has already settled the point,
    nothing about it waits any longer. Raises Refused: "no_right", "unchanged" if the finding is compared with
    no other, or "already_open" if both are in dispute.
    """
    require(user, finding.task.project, RULE, "rule")
    with transaction.atomic():
        task = locked_task(finding.task_id)
        finding = Finding.objects.select_related("possibly__first", "review", "task").get(pk=finding.pk)
        earlier = finding.possibly
        if earlier is None:
            raise Refused("unchanged", f"{finding.code} is compared with no other.", "Reload the page.")
        actor = Actor.person(user)
        finding.possibly = None
        finding.save(update_fields=["possibly"])
        word = "the same as" if same else "another than"
        record(
            task.project, "findings_compared", actor=actor, task=task,
            note=f"{finding.code} is {word} {earlier.code}.",
        )  # fmt: skip
        if same:
            _join(finding, earlier.origin, task, actor)
    return finding


def _join(finding: Finding, origin: Finding, task: Task, actor: Actor) -> None:
    """Make the finding, with all its rows, another occurrence of the point."""
    disputed = Conflict.objects.open().disagreements().filter(finding__in=[finding, origin])
    if disputed.count() > 1:
        refs = " and ".join(conflict.ref for conflict in disputed)
        raise Refused("already_open", f"Both are in dispute: {refs}.", "Rule on one of them first.")
    is_settled = origin.pk in settled_findings(task)
    last = Conflict.objects.about(origin).order_by("-pk").first()
    Finding.objects.filter(first=finding).update(first=origin)
    finding.first = origin
    if origin.first_severity:  # the severity that a person set is final (SEV-7)
        finding.first_severity = finding.first_severity or finding.severity
        finding.severity, finding.mandatory = origin.severity, origin.mandatory
    finding.save(update_fields=["first", "first_severity", "severity", "mandatory"])
    _move_rows(finding, origin)
    moved = Conflict.objects.filter(finding=finding)
    moved.filter(previous__isnull=True).update(previous=last)
    moved.update(finding=origin)
    searching.renew(Dispute.objects.filter(conflicts__finding=origin).distinct())
    if is_settled or (origin.first_severity and not finding.mandatory):
        _close(origin, finding, task, actor)
    else:
        stuck.look_again(finding.review)


def _move_rows(finding: Finding, origin: Finding) -> None:
    """Move answers and flags to the point, unless it already has one from the same submission."""
    for rows in (Answer.objects.all(), Flag.objects.all()):
        known = rows.filter(finding=origin).values("submission")
        rows.filter(finding=finding).exclude(submission__in=known).update(finding=origin)


def _close(origin: Finding, finding: Finding, task: Task, actor: Actor) -> None:
    """Drop the point's open conflicts and flags, because it was settled before."""
    opened = list(
        Conflict.objects.about(origin)
        .open()
        .select_related("dispute__project", "dispute__task", "submission")
    )
    note = f"{finding.code} was settled as {origin.code}."
    for conflict in opened:
        conflict.drop(note, actor=actor)
    Flag.objects.filter(finding=origin).open().drop()
    for conflict in opened:
        conflict.dispute.refresh_from_db()
        opening.refresh(conflict.dispute)
    if opened:
        go_on(task, opened[0].submission, actor=actor, note=note)
