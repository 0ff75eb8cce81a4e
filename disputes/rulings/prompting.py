"""Which rulings the next prompt begins with."""

from django.utils import timezone

from disputes.models import Conflict, Decision
from disputes.protocol.options import NOT_FOR_THE_CODER, Option
from disputes.protocol.quotes import one_line
from disputes.protocol.wording import ruling_lines
from disputes.rulings.offers import ruling_of
from tasks.models import Answer, Task

LINE_MAX, REASON_MAX = 300, 300


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


def lines_for_coder(decisions: list[Decision]) -> list[str]:
    """The section of rulings that a coder's prompt begins with; empty where none concerns the coder."""
    told = [decision for decision in decisions if decision.option not in NOT_FOR_THE_CODER]
    return ruling_lines(ruling_of(decision) for decision in told)


def settled_lines(task: Task) -> list[str]:
    """What the reviewer is told not to raise again, a line each, with the reason (DEC-5)."""
    lines = []
    for conflict in (
        Conflict.objects.filter(dispute__task=task, submission__rolled_back__isnull=True)
        .exclude(status__in=[Conflict.Status.OPEN, Conflict.Status.MOOT])
        .exclude(followed=Conflict.Followed.REOPENED)
        .select_related("finding", "dispute__task__project")
        .prefetch_related("decisions")
        .order_by("pk")
    ):
        decision = next((each for each in conflict.decisions.all() if each.stands), None)
        if word := _settled_as(conflict, decision):
            lines.append(f"- {conflict.name}: {one_line(conflict.question, LINE_MAX)} ({word})")
    late = task.findings.filter(is_follow_up=True, rolled_back__isnull=True).order_by("pk")
    lines += [f"- {one.code}: {one_line(one.title, LINE_MAX)} (noted as a follow-up)" for one in late]
    put_off = (
        Answer.objects.filter(
            submission__task=task, submission__rolled_back__isnull=True, kind=Answer.Kind.DEFERRED,
            finding__mandatory=False,
        )
        .select_related("finding")
        .order_by("pk")
    )  # fmt: skip
    deferred = {answer.finding.code: answer for answer in put_off}
    lines += [
        f"- {code}: {one_line(answer.finding.title, LINE_MAX)} (put off: {one_line(answer.text, REASON_MAX)})"
        for code, answer in deferred.items()
    ]
    return lines


def _settled_as(conflict: Conflict, decision: Decision | None) -> str:
    """The words behind a settled point; empty for what is not settled."""
    if conflict.kind == Conflict.Kind.DISAGREEMENT:
        if decision is None:
            return "logged, the coder's way stands"
        return "" if decision.expects_change else f"{decision.letter}, {decision.option}"
    if conflict.kind == Conflict.Kind.SILENCE and decision and decision.option == Option.WAIVE:
        return f"waived: {one_line(decision.text, REASON_MAX)}"
    return ""


def mark_used(decisions: list[Decision], run_number: int | None) -> int:
    """From here on these rulings can only be reopened. Returns how many were marked."""
    pks = [decision.pk for decision in decisions]
    return (
        Decision.objects.standing()
        .unused()
        .filter(pk__in=pks)
        .update(used_at=timezone.now(), used_by_run=run_number)
    )
