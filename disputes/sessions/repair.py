"""Whether a round whose document never passed the gate begins again by itself (RB-7)."""

from collections.abc import Iterable

from disputes.completion import rollbacks
from disputes.protocol.rounds.patterns import Expected, patterns_in
from disputes.protocol.text.documents import DocumentError
from disputes.sessions import gaps
from tasks.models import Event, Submission, Task
from tasks.models.event import record

REPAIRED = "round_repaired"


def repaired(session: Task) -> Iterable[Event]:
    """Return the events that record when a round of the session began again by itself."""
    return session.events.filter(kind=REPAIRED).order_by("pk")


def may_repair(session: Task) -> bool:
    """Whether the present round begins again without asking people: once, in mode auto_retry (RB-1, RB-7)."""
    if session.project.config.rollback_mode != "auto_retry":
        return False
    round_ = max(session.round, 1)
    before = [event.data.get("round") for event in repaired(session)]
    return (
        round_ not in before
        and not rollbacks.times_taken_back(session, round_)
        and len(before) < rollbacks.left(session)
    )


def repair(session: Task, why: str) -> None:
    """Begin the round again: its failed runs no longer count, and its next prompt says what to change."""
    Task.objects.filter(pk=session.pk).update(
        counts_since=record(
            session.project, REPAIRED, task=session, note=why[:500], data={"round": max(session.round, 1)}
        ).at,
        not_before=None,
    )


def adjustments_for(session: Task) -> str:
    """Return what to change, by the patterns of the round's rolled-back document (RB-6); "" without one."""
    taken_back = session.submissions.filter(rolled_back__isnull=False, round=session.round).exclude(
        response=""
    )
    last: Submission | None = taken_back.order_by("-pk").first()
    if last is None:
        return ""
    expected = Expected(
        assigned=tuple(gap.gap for gap in gaps.assigned(session)), known=tuple(gaps.by_code(session.project))
    )
    try:
        seen = patterns_in(last.response, expected)
    except DocumentError:
        return ""
    return "\n".join(f"- {line}" for line in dict.fromkeys(each.adjustment for each in seen))
