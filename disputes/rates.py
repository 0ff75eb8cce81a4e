"""A coder that declines too much: asked once to justify it, then a card for a human (§12)."""

import re

from disputes import cases
from disputes.models import Conflict
from disputes.protocol.documents import scan
from disputes.protocol.rates import (
    Action,
    Rated,
    RateSettings,
    Tally,
    alert_lines,
    check_rates,
    justify_lines,
    tally,
)
from disputes.protocol.responses import ReadResponse
from disputes.protocol.settings import part_of
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Answer, Finding, Submission, Task
from tasks.policy import HOLD, LOG
from tasks.states import Severity

JUSTIFICATION = re.compile(r"justification\b", re.IGNORECASE)


def demand_justification(task: Task, response: ReadResponse, due: list[Finding]) -> None:
    """Refuse more DISAGREE blocks than the limit once, unless the response justifies them (RL-1).

    Raises Refused: too_many_disagreements.
    """
    declined = {block.code for block in response.disagreements}
    rated = [_rated(finding, finding.code in declined) for finding in due]
    current = tally(task.round, rated)
    lines = justify_lines(check_rates(current, [], _settings(task)), rated)
    if not lines or _is_justified(response.text):
        return
    raise Refused(
        "too_many_disagreements", lines[0],
        f"{lines[1]} Put the evidence under a heading `## Justification`.", status=422,
        details=[
            {"line": block.line, "reason": f"{block.code} is declined"} for block in response.disagreements
        ],
    )  # fmt: skip


def _is_justified(text: str) -> bool:
    headings = (line.heading for line in scan(text))
    return any(heading and JUSTIFICATION.match(heading[1]) for heading in headings)


def watch(submission: Submission, *, actor: Actor) -> Conflict | None:
    """Open a card where the coder's disagreements pass a limit; at most one waits for a task."""
    task = submission.task
    by_round = _rounds(task)
    if submission.round not in by_round:
        return None
    rated = by_round.pop(submission.round)
    earlier = [tally(number, by_round[number]) for number in sorted(by_round) if number < submission.round]
    rates = check_rates(tally(submission.round, rated), earlier, _settings(task))
    waiting = Conflict.objects.filter(
        dispute__task=task, origin=Conflict.Origin.RATE, status=Conflict.Status.OPEN
    )
    if rates.action is Action.ALLOW or waiting.exists():
        return None
    return cases.open_conflict(
        task, kind=Conflict.Kind.ALERT, origin=Conflict.Origin.RATE, opened_as="system",
        question=rates.hits[0].message, submission=submission, severity=Severity.HIGH, actor=actor,
        effect=HOLD if rates.action is Action.BLOCK_ROUND else LOG,
        evidence=_told(alert_lines(rates, rated)),
    )  # fmt: skip


def _told(lines: list[str]) -> list[str]:
    """The card's text without its title and its options, which the page shows as such."""
    return [line for line in lines[1 : lines.index("Options:")] if line]


def tallies(task: Task) -> list[Tally]:
    """Each round of the task that answered a review, in numbers, oldest first."""
    return [tally(number, rated) for number, rated in sorted(_rounds(task).items())]


def _rounds(task: Task) -> dict[int, list[Rated]]:
    """What each round made of the findings that it had to answer; the last attempt of a round counts."""
    answers = (
        Answer.objects.filter(submission__task=task, submission__rolled_back__isnull=True)
        .exclude(submission__state=Submission.State.LOST)
        .select_related("finding")
        .order_by("submission__round", "submission__attempt", "pk")
        .values_list("submission__round", "finding", "kind")
    )
    kinds: dict[int, dict[int, str]] = {}
    for round_, finding, kind in answers:
        kinds.setdefault(round_, {})[finding] = kind
    findings = {finding.pk: finding for finding in Finding.objects.filter(task=task, first__isnull=True)}
    converted = set(
        Conflict.objects.filter(dispute__task=task, origin=Conflict.Origin.CONVERTED)
        .exclude(status=Conflict.Status.MOOT)
        .values_list("finding", flat=True)
    )
    return {
        round_: [
            _rated(findings[pk], kind == Answer.Kind.DECLINED, converted=pk in converted)
            for pk, kind in answered.items()
            if pk in findings
        ]
        for round_, answered in kinds.items()
    }


def _rated(finding: Finding, disagreed: bool, *, converted: bool = False) -> Rated:
    """Below the mandatory severities a finding is no conflict, so its disagreement does not count."""
    return Rated(
        finding.code, finding.title, Severity(finding.severity),
        disagreed=disagreed and finding.mandatory, converted=converted,
    )  # fmt: skip


def _settings(task: Task) -> RateSettings:
    return part_of(task.project.config, RateSettings)
