"""Flags of silent disagreement: written, shown as cards, and settled by a human (SIL-12)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Expression, F, QuerySet

from disputes import opening
from disputes.models import NOT_STATED, Conflict, Flag, HeuristicScore
from disputes.protocol.rulings.options import Option, asks
from disputes.protocol.silence.suspicion import Heuristic
from tasks.configuration.policy import HOLD, LOG
from tasks.database.prepared import Prepared
from tasks.events import SYSTEM, Actor
from tasks.models import Finding, Submission
from tasks.models.event import record

if TYPE_CHECKING:
    from disputes.protocol.silence.suspicion import Suspicion

# The levels that ask a human; flags of other levels are only listed.
EFFECTS = {
    Flag.Level.WARN: LOG,
    Flag.Level.REVIEW: LOG,
    Flag.Level.BLOCK: HOLD,
    Flag.Level.SYSTEMATIC: HOLD,
}
# The heuristics that say nothing was done; a phrase alone (SIL-5) only says how it was answered.
PASSED_OVER = {Heuristic.NO_REFERENCE, Heuristic.NO_CHANGE}
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
    """Write a flag for each suspicion, and a card if its level asks a human; return new flags. Idempotent."""
    flags = []
    for finding, suspicion in found:
        flag, is_new = Flag.objects.get_or_create(
            finding=finding.origin,
            submission=submission,
            defaults={
                "heuristics": list(suspicion.heuristics),
                "confidence": suspicion.confidence,
                "level": suspicion.level,
                "evidence": [*suspicion.evidence, *suspicion.signs],
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
    """Put the flag on the finding's open card, or open one; a new card names the one before it."""
    effect = EFFECTS.get(Flag.Level(flag.level))
    if effect is None:
        return
    about: list[Conflict] = _about.found(flag.finding.first_id or flag.finding_id)
    silences = [each for each in about if each.kind == Conflict.Kind.SILENCE]
    card = next((each for each in silences if each.is_open), None)
    if card:
        _strengthen(card, flag, effect)
        flag.conflict = card
    elif not any(each.is_open for each in about):
        task = flag.submission.task
        flag.conflict = opening.open_conflict(
            task, kind=Conflict.Kind.SILENCE, origin=Conflict.Origin.FLAGGED, opened_as="system",
            question=finding.title, finding=flag.finding, submission=flag.submission, effect=effect,
            severity=finding.severity, reviewer_position=opening.position_of(finding),
            reviewer_label=finding.review.by_agent, coder_position=NOT_STATED,
            coder_label=flag.submission.by_agent, evidence=flag.evidence, actor=actor,
            previous=silences[-1] if silences else None,
        )  # fmt: skip
    flag.save(update_fields=["conflict"])


_about = Prepared(lambda origin: Conflict.objects.about(origin).order_by("pk"))


def _strengthen(card: Conflict, flag: Flag, effect: str) -> None:
    """Add the flag's evidence to the card, which holds the task from the first flag that demands it."""
    card.evidence = [*card.evidence, *(line for line in flag.evidence if line not in card.evidence)]
    card.submission = flag.submission
    if effect == HOLD:
        card.effect = HOLD
    card.save(update_fields=["evidence", "submission", "effect"])


def settle(conflict: Conflict, option: str) -> None:
    """Settle the flags of a card by its ruling; a false alarm counts against its heuristics (SIL-14)."""
    for flag in conflict.flags.open():
        _count(flag, refused=option == Option.FALSE_POSITIVE, by=1)
        flag.status = SETTLED_AS[Option(option)]
        flag.save(update_fields=["status"])


def unsettle(conflict: Conflict, option: str) -> None:
    """Open the flags again and restore the scores, because the ruling was taken back."""
    ruled = (SETTLED_AS[Option(option)], Flag.Status.ANSWERED)  # an asked flag may be answered by now
    for flag in conflict.flags.filter(status__in=ruled):
        _count(flag, refused=option == Option.FALSE_POSITIVE, by=-1)
        flag.status = Flag.Status.OPEN
        flag.save(update_fields=["status"])


def _count(flag: Flag, *, refused: bool, by: int) -> None:
    column = "refused" if refused else "confirmed"
    for name in flag.heuristics:
        score, _ = HeuristicScore.objects.get_or_create(project=flag.submission.task.project, heuristic=name)
        HeuristicScore.objects.filter(pk=score.pk).update(**{column: F(column) + by})


def carry_over(old: Conflict, option: str, new: Conflict) -> None:
    """Open the flags again and move them to the new card, because the ruling on the old one was reopened."""
    unsettle(old, option)
    old.flags.open().update(conflict=new)


def convert(conflict: Conflict, *, actor: Actor) -> Conflict:
    """Turn a silence into a conflict that a human rules on, with the coder's side not stated (SIL-12).

    If the point is already in dispute, return that conflict. Raises ValueError if the card is about no
    finding.
    """
    finding = conflict.finding
    if finding is None:
        raise ValueError(f"{conflict.ref} is about no finding.")
    disputed = Conflict.objects.about(finding).open().disagreements().first()
    return disputed or opening.open_again(
        conflict.task, conflict, kind=Conflict.Kind.DISAGREEMENT, origin=Conflict.Origin.CONVERTED,
        opened_as="system", actor=actor, submission=conflict.submission, coder_position=NOT_STATED,
        evidence=conflict.evidence,
    )  # fmt: skip


def unconvert(conflict: Conflict, *, actor: Actor) -> None:
    """Drop the conflict that a card was converted into, unless somebody has ruled on it."""
    made = Conflict.objects.filter(previous=conflict, origin=Conflict.Origin.CONVERTED)
    for disputed in made.open():
        disputed.drop(f"The ruling on {conflict.ref} was taken back.", actor=actor)


def _silences_of(task: Expression) -> QuerySet[Conflict]:
    silences = Conflict.objects.silences().filter(finding__task=task).order_by("pk")
    return silences.select_related("dispute__project", "dispute__task")


_silences = Prepared(_silences_of)


def answered(submission: Submission, findings: Iterable[int], *, actor: Actor) -> None:
    """Mark flags about these findings, as first raised, as answered: a later submission treats them."""
    about = set(findings)
    unsettled = Flag.objects.unsettled().filter(finding__in=about, finding__task=submission.task_id)
    unsettled.exclude(submission=submission).update(status=Flag.Status.ANSWERED)
    for card in _silences.found(submission.task_id):
        if card.finding_id not in about:
            continue
        ruling = card.standing_decision()
        if card.is_open:
            card.drop("It was answered.", actor=actor)
        elif card.followed == Conflict.Followed.WAITING and ruling and asks(ruling.option):
            card.mark(Conflict.Followed.APPLIED, actor=actor, note="It was answered.")
        else:
            continue
        card.dispute.refresh_from_db()
        opening.refresh(card.dispute)
