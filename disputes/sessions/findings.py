"""What the reviews of a session ask for, by gap, and what its engineer still owes an answer."""

from disputes.closed_findings import settled_findings
from disputes.models import Conflict
from disputes.sessions import gaps
from tasks.models import Answer, Finding, Task
from tasks.states import severity_rank


def by_printed_code(session: Task) -> dict[str, Finding]:
    """The findings under their codes, and under what their reviewers printed, the newest last."""
    rows = session.findings.standing().select_related("first", "review", "gap").order_by("pk")
    found = {finding.code.upper(): finding for finding in rows}
    return found | {finding.raw_code.upper(): finding for finding in rows if finding.raw_code}


def unanswered(session: Task) -> list[Finding]:
    """The points that no document has answered since they were raised, the gravest first.

    What people decided, or are asked about, waits for no answer.
    """
    rows = session.findings.standing().filter(is_withdrawn=False, is_follow_up=False)
    newest = {row.origin.pk: row for row in rows.select_related("first", "review", "gap").order_by("pk")}
    answers = Answer.objects.standing().filter(submission__task=session).given().taken()
    answered = {
        pk
        for pk, at in answers.values_list("finding", "submission__at")
        if pk in newest and at > newest[pk].review.at
    }
    conflicts = Conflict.objects.of(session).disagreements().filter(finding__isnull=False)
    asked = {*(conflicts.open() | conflicts.awaited()).values_list("finding", flat=True)}
    closed = answered | asked | set(settled_findings(session))
    left = [row for pk, row in newest.items() if pk not in closed]
    return sorted(left, key=lambda row: (-severity_rank(row.severity), row.pk))


def to_answer(session: Task) -> list[Finding]:
    """Those on the gaps that are given out, or on no gap; the others wait for theirs (SIL-6)."""
    given = {gap.pk for gap in gaps.assigned(session)}
    return [row for row in unanswered(session) if row.gap_id is None or row.gap_id in given]


def waiting(session: Task) -> list[Finding]:
    """Those whose gap nobody works on now."""
    due = {row.pk for row in to_answer(session)}
    return [row for row in unanswered(session) if row.pk not in due]
