"""Checking that hand-ins do not argue again what a human has decided (DEC-2 to DEC-4)."""

from collections.abc import Iterable

from django.db.models import Expression, QuerySet

from disputes.models import NOT_STATED, Conflict
from disputes.protocol.responses.response import ReadResponse
from disputes.protocol.rulings.options import Option
from disputes.protocol.rulings.rearguing import (
    RE_ARGUED_CONFLICT,
    StandingDecision,
    reargued,
    repeated_positions,
)
from tasks.database.prepared import Prepared
from tasks.errors import Invalid
from tasks.events import Actor
from tasks.models import Finding, Submission, Task
from tasks.models.event import record

LINES_MAX = 20


def refuse_rearguing(response: ReadResponse, decided: list[StandingDecision]) -> None:
    """Raise Refused(RE_ARGUED_CONFLICT) with each line that argues about a decided finding (DEC-2, DEC-3)."""
    problems = reargued(response.disagreements, response.answers, decided)
    if not problems:
        return
    lines = {problem.reason.partition(" ")[0]: problem.line for problem in problems}
    raise Invalid(
        RE_ARGUED_CONFLICT,
        f"{', '.join(lines)} was decided by a human and cannot be argued again.",
        "Carry the ruling out. Trouble that it causes is a new finding: describe it in the response.",
        details=[{"line": line, "reason": f"{code} is decided"} for code, line in lines.items()],
    )


def note_repeated(submission: Submission, decided: list[StandingDecision], *, actor: Actor) -> None:
    """Record that the response proposes again what a ruling has set aside; nothing is refused (DEC-4)."""
    task = submission.task
    problems = repeated_positions(submission.response, decided)[:LINES_MAX]
    if problems:
        record(
            task.project, "position_repeated", task=task, actor=actor,
            note="; ".join(f"line {problem.line} {problem.reason}" for problem in problems)[:500],
        )  # fmt: skip


def standing(task: Task, known: dict[str, Finding], settled: Iterable[Conflict]) -> list[StandingDecision]:
    """Return what is decided about the task's findings, each under all the codes that it has had."""
    codes: dict[int, set[str]] = {}
    for code, finding in known.items():
        codes.setdefault(finding.origin.pk, set()).add(code)
    return [_standing(conflict, codes) for conflict in {*_decided.found(task.pk), *settled}]


def _decided_of(task: Expression) -> QuerySet[Conflict]:
    on_findings = Conflict.objects.of(task).ruled().filter(finding__isnull=False)
    return on_findings.exclude(kind=Conflict.Kind.SILENCE).prefetch_related("decisions").order_by()


_decided = Prepared(_decided_of)


def _standing(conflict: Conflict, codes: dict[int, set[str]]) -> StandingDecision:
    """Return the conflict's ruling or waiver; a logged conflict counts as a ruling for the coder."""
    decision = conflict.standing_decision()
    position = conflict.coder_position
    return StandingDecision(
        codes=frozenset(codes.get(conflict.finding_id or 0, ())),
        option=Option(decision.option) if decision else Option.UPHOLD_CODER,
        text=decision.text if decision else "",
        coder_position="" if position == NOT_STATED else position,
        expects_change=decision.expects_change if decision else False,
    )
