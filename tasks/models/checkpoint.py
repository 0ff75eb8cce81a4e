from django.db import models

from tasks.models.moments import MomentField
from tasks.models.project import Project
from tasks.models.submission import Rollback, RoundQuerySet


class Checkpoint(models.Model):
    """One turn of a whole project: what was resolved and what came up since the last one (CONV-6).

    It closes once every task that was under way at the last checkpoint has finished a round or is no longer
    under way.
    """

    class State(models.TextChoices):
        CONVERGING = "CONVERGING", "Converging"
        FLAT = "FLAT", "Flat"
        DIVERGENCE_WARNING = "DIVERGENCE_WARNING", "Diverging"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="checkpoints")
    number = models.PositiveIntegerField()
    opened = models.PositiveIntegerField(default=0, help_text="Tasks that came up.")
    resolved = models.PositiveIntegerField(default=0, help_text="Tasks completed or cancelled.")
    opened_weight = models.PositiveIntegerField(default=0)
    resolved_weight = models.PositiveIntegerField(default=0)
    net = models.IntegerField(default=0)
    weighted_net = models.IntegerField(default=0)
    state = models.CharField(max_length=20, choices=State, default=State.CONVERGING)
    flat = models.PositiveSmallIntegerField(default=0, help_text="Rounds without progress, in a row.")
    under_way = models.JSONField(
        default=dict, help_text="Tasks in progress or review when it closed, each with its round."
    )
    rolled_back = models.ForeignKey(
        Rollback, null=True, blank=True, editable=False, on_delete=models.PROTECT, related_name="checkpoints"
    )
    at = MomentField()

    objects = RoundQuerySet.as_manager()

    class Meta:
        ordering = ["project", "-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "number"],
                condition=models.Q(rolled_back__isnull=True),
                name="checkpoint_number_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.project.slug} checkpoint {self.number}"
