"""Looking for silent disagreement in what was handed in, once the program knows what it changed (§13)."""

from collections.abc import Iterator

from django.db import transaction

from disputes import cases, flags, stuck
from disputes.intake import settled_findings
from disputes.models import Conflict, Flag
from disputes.protocol.compliance import place_changed
from disputes.protocol.diffs import Changes, read_diff
from disputes.protocol.disagree import Disagreement
from disputes.protocol.kinds import AnswerKind
from disputes.protocol.locations import read_place
from disputes.protocol.responses import Answered, ReadResponse
from disputes.protocol.settings import part_of
from disputes.protocol.silence import SilenceSettings, Suspicion, Watched, judge_silence
from tasks.events import SYSTEM
from tasks.models import Answer, Finding, Review, Submission, Task
from tasks.policy import HOLD
from tasks.states import MOVES, Severity


@transaction.atomic
def look_for_silence(submission: Submission) -> list[Flag]:
    """Flag the findings that this submission seems to pass over; hold the task where two are critical.

    Returns the new flags; a second call finds none.
    """
    task = Task.objects.select_for_update().select_related("project").get(pk=submission.task_id)
    review = reviewed_before(submission)
    if review is None:
        return []
    findings = [finding for finding in review.findings.select_related("first", "review") if finding.mandatory]
    found = list(suspicions(submission, task, findings))
    raised = flags.raise_flags(submission, found, actor=SYSTEM)
    holds = [conflict for conflict in cases.open_conflicts(task) if conflict.effect == HOLD]
    if raised and holds and task.status in MOVES["hold"].sources:
        codes = ", ".join(flag.finding.code for flag in raised)
        task.hold(actor=SYSTEM, note=f"{codes}: nothing was done about it, and nothing said."[:500])
    return raised


def reviewed_before(submission: Submission) -> Review | None:
    """The review that this submission answers."""
    before = Review.objects.filter(
        submission__task=submission.task_id, submission__rolled_back__isnull=True,
        submission__round__lt=submission.round,
    )  # fmt: skip
    return before.order_by("-pk").first()


def suspicions(
    submission: Submission, task: Task, findings: list[Finding]
) -> Iterator[tuple[Finding, Suspicion]]:
    """What the heuristics say of each finding that had to be answered."""
    by_code = {finding.code: finding for finding in findings}
    text = submission.since_last_round
    changes = read_diff(text, is_cut=len(text) >= stuck.CUT_AT) if text else None
    settled = settled_findings(task)
    disputed = set(
        Conflict.objects.filter(dispute__task=task, status=Conflict.Status.OPEN).values_list(
            "finding", flat=True
        )
    )
    watched = [
        _watched(finding, changes, is_settled=finding.origin.pk in {*settled, *disputed})
        for finding in findings
    ]
    settings = part_of(task.project.config, SilenceSettings)
    judgement = judge_silence(watched, _as_read(submission, findings), submission.response, settings=settings)
    for suspicion in judgement.flags:
        yield by_code[suspicion.code], suspicion


def _watched(finding: Finding, changes: Changes | None, *, is_settled: bool) -> Watched:
    silent = Flag.objects.filter(finding=finding.origin).exclude(status=Flag.Status.FALSE_POSITIVE)
    return Watched(
        code=finding.code,
        ordinal=finding.ordinal,
        severity=Severity(finding.severity),
        title=finding.title,
        location=finding.location,
        impact=finding.impact,
        text=finding.text,
        is_settled=is_settled,
        silent_rounds=tuple(sorted(set(silent.values_list("submission__round", flat=True)))),
        touched=place_changed(read_place(finding.location), changes),
    )


def _as_read(submission: Submission, findings: list[Finding]) -> ReadResponse:
    """The answers as they were taken, under the codes of the last review."""
    codes = {finding.origin.pk: finding.code for finding in findings}
    given = [
        (codes[answer.finding_id], answer)
        for answer in submission.answers.exclude(kind=Answer.Kind.SILENT)
        if answer.finding_id in codes
    ]
    return ReadResponse(
        answers=tuple(
            Answered(code, AnswerKind(answer.kind), answer.text, answer.line or 0) for code, answer in given
        ),
        disagreements=tuple(
            Disagreement(code, answer.text, "", "", "", answer.line or 0)
            for code, answer in given
            if answer.kind == Answer.Kind.DECLINED
        ),
        text=submission.response,
    )
