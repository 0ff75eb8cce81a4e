"""Flags of suspected silent disagreement, and how reliable each heuristic has been."""

from django.db import models

from disputes.models.conflict import Conflict
from tasks.models import Finding, Project, Submission
from tasks.models.moments import MomentField
from tasks.models.submission import RoundQuerySet


class FlagQuerySet(RoundQuerySet["Flag"]):
    path = "submission__"

    def open(self) -> "FlagQuerySet":
        """Return the flags that nobody has dealt with."""
        return self.filter(status=Flag.Status.OPEN)

    def unsettled(self) -> "FlagQuerySet":
        """Return the open flags, and those about which the coder was asked and has not answered."""
        return self.filter(status__in=[Flag.Status.OPEN, Flag.Status.ASKED])

    def settle_asked(self, *, is_answered: bool) -> None:
        """Settle the flags about which the coder was asked: it answered, or nobody waits for it any more."""
        status = Flag.Status.ANSWERED if is_answered else Flag.Status.MOOT
        self.filter(status=Flag.Status.ASKED).update(status=status)

    def drop(self) -> int:
        """Make these flags moot, as nobody has to deal with them any more. Return how many there were."""
        return self.update(status=Flag.Status.MOOT)


class Flag(models.Model):
    """Suspected silent disagreement on one finding: evidence and a level, never a verdict (SIL-10)."""

    class Level(models.TextChoices):
        LOG = "log"
        WARN = "warn"
        BLOCK = "block"
        REVIEW = "review"
        SYSTEMATIC = "systematic"

    class Status(models.TextChoices):
        OPEN = "open"
        ANSWERED = "answered"  # a later submission treats the finding
        ASKED = "asked"
        CONVERTED = "converted"
        WAIVED = "waived"
        FALSE_POSITIVE = "false_positive", "False alarm"
        MOOT = "moot"

    finding = models.ForeignKey(
        Finding,
        on_delete=models.PROTECT,
        related_name="flags",
        help_text="As it was raised first.",
        db_index=False,
    )
    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="flags")
    heuristics = models.JSONField(default=list)
    confidence = models.CharField(max_length=8, blank=True)
    level = models.CharField(max_length=10, choices=Level)
    evidence = models.JSONField(default=list, blank=True)
    overlap = models.FloatField(null=True, blank=True)
    status = models.CharField(max_length=14, choices=Status, default=Status.OPEN)
    conflict = models.ForeignKey(
        Conflict, null=True, blank=True, on_delete=models.PROTECT, related_name="flags"
    )
    at = MomentField()

    objects = FlagQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["finding", "submission"], name="flag_once")]
        indexes = [models.Index(fields=["at"], name="flag_by_day")]

    def __str__(self) -> str:
        return f"{', '.join(self.heuristics)} on {self.finding_id}"


class HeuristicScore(models.Model):
    """How often people confirmed and how often they refused what one heuristic flagged (SIL-14)."""

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="heuristic_scores", db_index=False
    )
    heuristic = models.CharField(max_length=4)
    confirmed = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["project", "heuristic"]
        constraints = [models.UniqueConstraint(fields=["project", "heuristic"], name="heuristic_score_once")]

    def __str__(self) -> str:
        return f"{self.heuristic} in {self.project.slug}"
