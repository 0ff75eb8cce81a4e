"""Which rulings the next prompt begins with, and what the reviewer is told of them."""

from collections.abc import Iterable

from django.db.models import Expression, Q, QuerySet
from django.db.models.functions import Now

from disputes.models import Conflict, Decision
from disputes.protocol.rulings.options import Option
from disputes.protocol.text.quotes import one_line
from disputes.ruling_stages import told_at
from tasks.database.prepared import Prepared
from tasks.models import Answer, Finding, Landing, Task

LINE_MAX, REASON_MAX = 300, 300


def rulings_for_prompt(task: Task) -> list[Decision]:
    """Return the rulings that the next coder's prompt begins with (DEC-1): in force, not yet carried out.

    In a session, the rulings on its gaps are among them. If the commit that carried them out did not fit onto
    the branch, they are told again, since it is made anew there.
    """
    if not task.is_session and not _any_decision.rows(task.pk):
        return []
    about = Decision.objects.of(task)
    if task.is_session:
        about |= Decision.objects.filter(conflict__dispute__task__in=task.project.tasks.gaps())
    return list(
        about.standing()
        .filter(_due(task))
        .filter(effective_at__lte=Now())
        .filter(told_at(task))
        .select_related(
            "conflict__finding",
            "conflict__raised_as",
            "conflict__dispute__task__project",
        )
        .with_cited()
        .order_by("pk")
    )


def _due(task: Task) -> Q:
    """Return a filter for the rulings that are still to be carried out, or have to be once more."""
    due = Q(conflict__followed=Conflict.Followed.WAITING)
    landings = _landings.found(task.pk)
    if not landings or landings[0][0] != Landing.Status.CONFLICT:
        return due
    carried_out = [Conflict.Followed.APPLIED, Conflict.Followed.CANNOT_TELL]
    again = Q(expects_change=True, conflict__followed__in=carried_out)
    if landed := max((at for _, at in landings if at), default=None):
        again &= Q(used_at__gt=landed)
    return due | again


def _landings_of(task: Expression) -> QuerySet[Landing]:
    return Landing.objects.filter(task=task).order_by("-pk").values_list("status", "landed_at")


_landings = Prepared(_landings_of)
_any_decision = Prepared(lambda task: Decision.objects.of(task).order_by().values_list("pk")[:1])
_any_conflict = Prepared(lambda task: Conflict.objects.of(task).order_by().values_list("pk")[:1])
_any_finding = Prepared(lambda task: Finding.objects.filter(task=task).order_by().values_list("pk")[:1])


def settled_lines(task: Task) -> list[str]:
    """Return what the reviewer may not raise again, a line for each point, with the reason (DEC-5)."""
    if not _any_conflict.rows(task.pk) and not _any_finding.rows(task.pk):
        return []
    lines: dict[int | None, str] = {}
    conflicts = (
        Conflict.objects.of(task)
        .standing()
        .settled()
        .select_related("finding", "dispute__task__project")
        .prefetch_related("decisions")
        .order_by("pk")
    )
    for conflict in conflicts:
        decision = conflict.standing_decision()
        if word := _settled_as(conflict, decision):
            key = conflict.finding_id or -conflict.pk
            lines[key] = _line(conflict.name, conflict.question, word)
    for finding, word in [*_lowered(task), *_noted(task), *_put_off(task)]:
        lines.setdefault(finding.origin.pk, _line(finding.code, finding.title, word))
    return list(lines.values())


def _line(name: str, title: str, word: str) -> str:
    return f"- {name}: {one_line(title, LINE_MAX)} ({word})"


def _settled_as(conflict: Conflict, decision: Decision | None) -> str:
    """Return how a point was settled, in words, or "" if it is not settled."""
    if conflict.is_logged:
        return "logged, the coder's way stands"
    if decision is None:
        return ""
    if conflict.kind == Conflict.Kind.DISAGREEMENT and not decision.expects_change:
        return f"{decision.letter}, {decision.option}"
    if conflict.kind == Conflict.Kind.SILENCE and decision.option == Option.WAIVE:
        return f"waived: {one_line(decision.text, REASON_MAX)}"
    return ""


def _standing(task: Task) -> QuerySet[Finding]:
    return task.findings.standing().filter(is_withdrawn=False).select_related("first").order_by("pk")


def _lowered(task: Task) -> Iterable[tuple[Finding, str]]:
    """Yield the findings that a person made optional, with the reason (SEV-7)."""
    for finding in _standing(task).filter(first__isnull=True, mandatory=False).exclude(first_severity=""):
        reason = one_line(finding.lowered_reason, REASON_MAX)
        yield finding, f"a human made it {finding.severity.upper()}: {reason}"


def _noted(task: Task) -> Iterable[tuple[Finding, str]]:
    """Yield the findings on lines that were already there in the last review (STK-4)."""
    for finding in _standing(task).filter(is_follow_up=True):
        yield finding, "noted as a follow-up"


def _put_off(task: Task) -> Iterable[tuple[Finding, str]]:
    """Yield the optional findings that the coder deferred and has not taken up since."""
    answers = (
        Answer.objects.standing()
        .filter(submission__task=task, finding__mandatory=False, finding__is_withdrawn=False)
        .fetched()
        .given()
        .select_related("finding__first")
        .order_by("submission__round", "submission__attempt", "pk")
    )
    last = {answer.finding_id: answer for answer in answers}
    for answer in last.values():
        if answer.kind == Answer.Kind.DEFERRED:
            yield answer.finding, f"put off: {one_line(answer.text, REASON_MAX)}"


def mark_used(decisions: list[Decision], run_number: int | None) -> int:
    """Mark these rulings as used, so that they can only be reopened. Return how many were marked."""
    if not decisions:
        return 0
    pks = [decision.pk for decision in decisions]
    return (
        Decision.objects.standing().unused().filter(pk__in=pks).update(used_at=Now(), used_by_run=run_number)
    )
