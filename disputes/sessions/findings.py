"""What the reviews of a session ask for, gap by gap, and what its engineer has not answered yet."""

from collections.abc import Mapping

from disputes.closed_findings import settled_findings
from disputes.models import Conflict
from disputes.sessions import gaps
from tasks.models import Answer, Finding, Task
from tasks.models.submission import SubmissionQuerySet
from tasks.states import severity_rank


def by_printed_code(session: Task) -> dict[str, Finding]:
    """Return the findings by their codes, and by those that their reviewers printed; newer ones prevail."""
    rows = session.findings.standing().select_related("first", "review", "gap").order_by("pk")
    found = {finding.code.upper(): finding for finding in rows}
    return found | {finding.raw_code.upper(): finding for finding in rows if finding.raw_code}


def unanswered(session: Task) -> list[Finding]:
    """Return the points that no document has answered since they were last raised, gravest first.

    Points that people have decided, or are asked about, need no answer.
    """
    rows = session.findings.standing().filter(is_withdrawn=False, is_follow_up=False)
    newest = {row.origin.pk: row for row in rows.select_related("first", "review", "gap").order_by("pk")}
    conflicts = Conflict.objects.of(session).disagreements().filter(finding__isnull=False)
    asked = {*(conflicts.open() | conflicts.awaited()).values_list("finding", flat=True)}
    closed = answered(newest, session.submissions.standing()) | asked | set(settled_findings(session))
    left = [row for pk, row in newest.items() if pk not in closed]
    return sorted(left, key=lambda row: (-severity_rank(row.severity), row.pk))


def answered(newest: Mapping[int, Finding], documents: SubmissionQuerySet) -> set[int]:
    """Return which points these documents have answered since the points were last raised.

    `newest` holds each point as it was last raised, by its key when it was first raised.
    """
    answers = Answer.objects.standing().filter(submission__in=documents.taken()).given()
    return {
        pk
        for pk, at in answers.values_list("finding", "submission__at")
        if pk in newest and at > newest[pk].review.at
    }


def to_answer(session: Task) -> list[Finding]:
    """Return the unanswered findings on gaps that are given out, or on no gap; the others wait (SIL-6)."""
    given = {gap.pk for gap in gaps.assigned(session)}
    return [row for row in unanswered(session) if row.gap_id is None or row.gap_id in given]


def waiting(session: Task) -> list[Finding]:
    """Return the unanswered findings whose gap nobody is working on."""
    due = {row.pk for row in to_answer(session)}
    return [row for row in unanswered(session) if row.pk not in due]
