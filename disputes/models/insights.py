"""Sums for the insights page, all of which can be rebuilt from the rows that were counted."""

from django.db import models
from django.db.models import Q

from tasks.models import Project

DAY = 1


class Tally(models.Model):
    """How often something happened in one project within `span` days, the last of which is `day`.

    Sums of single days are kept for good. Those of longer spans, which end at the last counted day, save the
    page from adding up thousands of days and keys.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="tallies", db_index=False)
    span = models.PositiveSmallIntegerField(default=DAY, help_text="How many days.")
    day = models.DateField(help_text="The last of them, in UTC.")
    measure = models.CharField(max_length=30)
    key = models.CharField(max_length=200, blank=True, help_text="The coder, model, category it is about.")
    n = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name_plural = "tallies"
        ordering = ["project", "span", "day", "measure", "key"]
        constraints = [
            models.UniqueConstraint(fields=["project", "span", "day", "measure", "key"], name="tally_once"),
            models.CheckConstraint(condition=Q(span__gte=DAY), name="tally_of_some_days"),
        ]

    def __str__(self) -> str:
        return f"{self.measure} {self.key} on {self.day}: {self.n}"


class CountedUntil(models.Model):
    """The day up to which everything in a project is counted; a project never counted has no row."""

    project = models.OneToOneField(
        Project, on_delete=models.CASCADE, primary_key=True, related_name="counted_until"
    )
    day = models.DateField(help_text="In UTC.")

    class Meta:
        verbose_name_plural = "counted until"

    def __str__(self) -> str:
        return f"{self.project} is counted up to {self.day}"
