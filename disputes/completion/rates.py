"""A coder that declines too much: asked once to justify it, then a card for a human (RL-1 to RL-3)."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Expression, QuerySet

from disputes import opening
from disputes.models import Conflict
from disputes.protocol.responses.rates import (
    Action,
    Rated,
    alert_lines,
    check_rates,
    justify_lines,
    tally,
)
from disputes.protocol.responses.response import ReadResponse
from disputes.protocol.text.documents import scan
from tasks.configuration.policy import HOLD, LOG
from tasks.database.prepared import Prepared
from tasks.errors import Invalid
from tasks.events import Actor
from tasks.models import Answer, Finding, Submission, Task
from tasks.states import Severity
from tasks.text.regex import regex

JUSTIFICATION = regex(r"justification\b", re.IGNORECASE)


def demand_justification(
    task: Task, response: ReadResponse, due: list[Finding], known: Mapping[str, Finding]
) -> None:
    """Refuse more DISAGREE blocks than the limit once, unless the response justifies them (RL-1).

    Raises Refused("too_many_disagreements").
    """
    declined = {known[block.code].origin.pk for block in response.disagreements}
    rated = [_rated(finding, finding.severity, finding.origin.pk in declined) for finding in due]
    current = tally(task.round, rated)
    lines = justify_lines(check_rates(current, [], task.project.config), rated)
    if not lines or _is_justified(response.text):
        return
    raise Invalid(
        "too_many_disagreements", lines[0],
        f"{lines[1]} Put the evidence under a heading `## Justification`.",
        details=[
            {"line": block.line, "reason": f"{block.code}: withdraw the disagreement, or justify it"}
            for block in response.disagreements
        ],
    )  # fmt: skip


def _is_justified(text: str) -> bool:
    headings = (line.heading for line in scan(text))
    return any(heading and JUSTIFICATION.match(heading[1]) for heading in headings)


def check(submission: Submission, *, actor: Actor) -> Conflict | None:
    """Open or update the alert, and return it, if the coder's disagreements exceed a limit; else None."""
    task = submission.task
    by_round = rated_rounds(task)
    if submission.round not in by_round:
        return None
    rated = by_round.pop(submission.round)
    earlier = [tally(number, by_round[number]) for number in sorted(by_round) if number < submission.round]
    rates = check_rates(tally(submission.round, rated), earlier, task.project.config)
    if rates.action is Action.ALLOW:
        return None
    told: dict[str, Any] = {
        "question": rates.hits[0].message,
        "submission": submission,
        "effect": HOLD if rates.action is Action.BLOCK_ROUND else LOG,
        "evidence": [line for line in alert_lines(rates, rated) if line],
    }
    waiting = _open_alerts(task).first()
    if waiting is None:
        return opening.open_conflict(
            task, kind=Conflict.Kind.ALERT, origin=Conflict.Origin.RATE, opened_as="system",
            severity=Severity.HIGH, actor=actor, **told,
        )  # fmt: skip
    if waiting.submission and waiting.submission.round > submission.round:
        return waiting
    for name, value in told.items():
        setattr(waiting, name, value)
    waiting.save(update_fields=list(told))
    opening.refresh(waiting.dispute)
    return waiting


def take_anew(task: Task, *, actor: Actor, since: datetime | None = None) -> list[Conflict]:
    """Update the task's open alerts, or close those whose limits are kept again (RL-6). Return all of them.

    Alerts opened at or after `since` are closed in any case, because what opened them is taken back.
    """
    alerts = list(
        _open_alerts(task).select_related("dispute__project", "dispute__task", "submission__task__project")
    )
    for alert in alerts:
        is_undone = since is not None and alert.opened_at >= since
        if is_undone or (alert.submission and check(alert.submission, actor=actor) is None):
            alert.drop("what opened it is taken back" if is_undone else "the limits are kept", actor=actor)
            opening.refresh(alert.dispute)
    return alerts


def _open_alerts(task: Task) -> QuerySet[Conflict]:
    return Conflict.objects.of(task).open().filter(origin=Conflict.Origin.RATE)


def rated_rounds(task: Task) -> dict[int, list[Rated]]:
    """Return how each round answered the findings it had to answer; the last attempt of a round counts."""
    kinds: dict[int, dict[int, str]] = {}
    for round_, finding, kind in _answered.rows(task.pk):
        kinds.setdefault(round_, {})[finding] = kind
    raised: dict[int, list[Finding]] = {}
    for finding in _raised.found(task.pk):
        raised.setdefault(finding.origin.pk, []).append(finding)
    converted = set(_converted.rows(task.pk))
    for finding, round_ in converted:  # even if nothing at all was said about the finding
        if round_ in kinds:
            kinds[round_].setdefault(finding, Answer.Kind.SILENT)
    return {
        round_: [
            _rated(
                raised[pk][0], _severity(raised[pk], round_), kind == Answer.Kind.DECLINED,
                converted=(pk, round_) in converted,
            )
            for pk, kind in answered.items()
            if pk in raised
        ]
        for round_, answered in kinds.items()
    }  # fmt: skip


def _answers_of(task: Expression) -> QuerySet[Answer, Any]:
    answers = Answer.objects.standing().filter(submission__task=task).fetched()
    in_order = answers.order_by("submission__round", "submission__attempt", "pk")
    return in_order.values_list("submission__round", "finding", "kind")


def _findings_of(task: Expression) -> QuerySet[Finding]:
    return Finding.objects.standing().filter(task=task).select_related("first").order_by("pk")


def _converted_of(task: Expression) -> QuerySet[Conflict, Any]:
    converted = Conflict.objects.of(task).filter(origin=Conflict.Origin.CONVERTED).not_moot()
    return converted.order_by().values_list("finding", "submission__round")


_answered, _raised, _converted = Prepared(_answers_of), Prepared(_findings_of), Prepared(_converted_of)


def _severity(raised: list[Finding], round_: int) -> Severity:
    """Return the severity that the point had when that round answered it."""
    before = [finding.severity for finding in raised if finding.round < round_]
    return Severity([raised[0].severity, *before][-1])


def _rated(finding: Finding, severity: str, disagreed: bool, *, converted: bool = False) -> Rated:
    """Rate one answer: a DISAGREE counts at any severity (RL-1), unless a person lowered it to optional."""
    is_none = finding.lowered_by_id is not None and not finding.mandatory
    return Rated(
        finding.code, finding.title, Severity(severity), disagreed=disagreed and not is_none,
        converted=converted,
    )  # fmt: skip
