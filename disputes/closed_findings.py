"""Findings that were ruled for the coder or only logged, which the reviewer may not raise again."""

from collections.abc import Iterable

from django.db.models import QuerySet

from disputes.models import Conflict, Decision
from disputes.protocol.rulings.options import Option
from tasks.database.prepared import Prepared
from tasks.models import Task


def settled_findings(task: Task) -> dict[int, Conflict]:
    """Return the findings, as first raised, that may not be raised again, each with the settling conflict."""
    return settled_among((each, each.standing_decision()) for each in _settled_of_one.found(task.pk))


def settled_by_task(tasks: Iterable[int]) -> dict[int, dict[int, Conflict]]:
    """Return the same as `settled_findings` for many tasks, by their keys, in two queries."""
    by_task: dict[int, list[tuple[Conflict, Decision | None]]] = {}
    for conflict in _settled().filter(dispute__task__in=tasks):
        pair = (conflict, conflict.standing_decision())
        by_task.setdefault(conflict.dispute.task_id, []).append(pair)
    return {task: settled_among(pairs) for task, pairs in by_task.items()}


def _settled() -> QuerySet[Conflict]:
    """Return the settled conflicts about findings, oldest first."""
    settled = Conflict.objects.filter(finding__isnull=False).settled()
    return settled.select_related("dispute").prefetch_related("decisions").order_by("pk")


_settled_of_one = Prepared(lambda task: _settled().filter(dispute__task=task))


def settled_among(conflicts: Iterable[tuple[Conflict, Decision | None]]) -> dict[int, Conflict]:
    """Return the settled findings among a task's conflicts, which come oldest first with their rulings."""
    settled: dict[int, Conflict] = {}
    for conflict, decision in conflicts:
        if conflict.finding_id is None or not conflict.is_settled:
            continue
        if decision and conflict.kind == Conflict.Kind.SILENCE and decision.option != Option.WAIVE:
            continue
        if conflict.is_logged or (decision and not decision.expects_change):
            settled[conflict.finding_id] = conflict
        else:
            settled.pop(conflict.finding_id, None)
    return settled
