"""Which rulings the next prompt begins with."""

from django.utils import timezone

from disputes.models import Conflict, Decision
from tasks.models import Task


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
