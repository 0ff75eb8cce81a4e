"""Hints at silent disagreement: written, shown as cards, and settled by a human (§13)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F

from disputes import cases
from disputes.models import NOT_STATED, Conflict, Flag, HeuristicScore
from disputes.protocol.options import Option
from tasks.events import SYSTEM, Actor, record
from tasks.models import Finding, Submission
from tasks.policy import HOLD, LOG

if TYPE_CHECKING:
    from disputes.protocol.silence import Suspicion

# Levels that ask a human; the others are listed and ask nobody.
EFFECTS = {
    Flag.Level.WARN: LOG,
    Flag.Level.REVIEW: LOG,
    Flag.Level.BLOCK: HOLD,
    Flag.Level.SYSTEMATIC: HOLD,
}
SETTLED_AS = {
    Option.ASK: Flag.Status.ASKED,
    Option.ASK_DISAGREE: Flag.Status.ASKED,
    Option.CONVERT: Flag.Status.CONVERTED,
    Option.WAIVE: Flag.Status.WAIVED,
    Option.FALSE_POSITIVE: Flag.Status.FALSE_POSITIVE,
}


@transaction.atomic
def raise_flags(
    submission: Submission, found: Iterable[tuple[Finding, "Suspicion"]], *, actor: Actor = SYSTEM
) -> list[Flag]:
    """Write a flag for each suspicion, and a card where its level asks a human. Idempotent."""
    flags = []
    for finding, suspicion in found:
        flag, is_new = Flag.objects.get_or_create(
            finding=finding.origin,
            submission=submission,
            defaults={
                "heuristics": list(suspicion.heuristics),
                "confidence": suspicion.confidence,
                "level": suspicion.level,
                "evidence": list(suspicion.evidence),
                "overlap": suspicion.overlap,
            },
        )
        if is_new:
            flags.append(flag)
            _card(flag, finding, actor)
    if flags:
        names = ", ".join(flag.finding.code for flag in flags)
        record(submission.task.project, "flagged", task=submission.task, actor=actor, note=names)
    return flags


def _card(flag: Flag, finding: Finding, actor: Actor) -> None:
    """One open card for each finding carries its flags; a new silence names the card before it."""
    effect = EFFECTS.get(Flag.Level(flag.level))
    if effect is None:
        return
    cards = Conflict.objects.filter(finding=flag.finding, kind=Conflict.Kind.SILENCE)
    if Conflict.objects.filter(finding=flag.finding, status=Conflict.Status.OPEN).exists():
        flag.conflict = cards.filter(status=Conflict.Status.OPEN).first()
    else:
        task = flag.submission.task
        flag.conflict = cases.open_conflict(
            task, kind=Conflict.Kind.SILENCE, origin=Conflict.Origin.FLAGGED, opened_as="system",
            question=finding.title, finding=flag.finding, submission=flag.submission, effect=effect,
            severity=finding.severity, reviewer_position=finding.suggestion or finding.text or finding.title,
            reviewer_label=finding.review.by_agent, coder_position=NOT_STATED,
            coder_label=flag.submission.by_agent, evidence=flag.evidence, actor=actor,
            previous=cards.order_by("-pk").first(),
        )  # fmt: skip
    flag.save(update_fields=["conflict"])


def settle(conflict: Conflict, option: str) -> None:
    """What a ruling on a card makes of its flags; a false alarm counts against its heuristics (A5)."""
    for flag in conflict.flags.filter(status=Flag.Status.OPEN):
        _count(flag, refused=option == Option.FALSE_POSITIVE, by=1)
        flag.status = SETTLED_AS[Option(option)]
        flag.save(update_fields=["status"])


def unsettle(conflict: Conflict, option: str) -> None:
    """The ruling was taken back: the flags are open again, and the scores as they were."""
    for flag in conflict.flags.filter(status=SETTLED_AS[Option(option)]):
        _count(flag, refused=option == Option.FALSE_POSITIVE, by=-1)
        flag.status = Flag.Status.OPEN
        flag.save(update_fields=["status"])


def _count(flag: Flag, *, refused: bool, by: int) -> None:
    column = "refused" if refused else "confirmed"
    for name in flag.heuristics:
        score, _ = HeuristicScore.objects.get_or_create(project=flag.submission.task.project, heuristic=name)
        HeuristicScore.objects.filter(pk=score.pk).update(**{column: F(column) + by})


def convert(conflict: Conflict, *, actor: Actor) -> Conflict:
    """A silent finding becomes a conflict that a human rules on; the coder's side is not stated (A2)."""
    finding = conflict.finding
    if finding is None:
        raise ValueError(f"{conflict.ref} is about no finding.")
    return cases.open_conflict(
        conflict.task, kind=Conflict.Kind.DISAGREEMENT, origin=Conflict.Origin.CONVERTED, opened_as="system",
        question=conflict.question, finding=finding, submission=conflict.submission,
        severity=conflict.severity, reviewer_position=conflict.reviewer_position,
        reviewer_label=conflict.reviewer_label, coder_position=NOT_STATED, coder_label=conflict.coder_label,
        evidence=conflict.evidence, previous=conflict, actor=actor,
    )  # fmt: skip


def answered(submission: Submission, findings: Iterable[int], *, actor: Actor) -> None:
    """A later submission treats these findings, as first raised: hints about them wait for nobody."""
    for flag in Flag.objects.filter(finding__in=findings, finding__task=submission.task_id).exclude(
        submission=submission
    ):
        if flag.status in {Flag.Status.OPEN, Flag.Status.ASKED}:
            flag.status = Flag.Status.ANSWERED
            flag.save(update_fields=["status"])
        card = flag.conflict
        if card is None:
            continue
        if card.status == Conflict.Status.OPEN:
            Conflict.objects.filter(pk=card.pk).update(status=Conflict.Status.MOOT)
        asked = Conflict.objects.filter(pk=card.pk, followed=Conflict.Followed.WAITING)
        if card.status == Conflict.Status.OPEN or asked.update(followed=Conflict.Followed.APPLIED):
            card.dispute.refresh_from_db()
            cases.refresh(card.dispute)
