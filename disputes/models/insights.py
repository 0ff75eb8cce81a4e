"""Daily sums for the insights page. All of it can be made anew from the rows it was counted from."""

from django.db import models

from tasks.models import Project


class Tally(models.Model):
    """How often something happened on one day in one project, and its sum where it has a size."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="tallies")
    day = models.DateField(help_text="In UTC.")
    measure = models.CharField(max_length=30)
    key = models.CharField(max_length=200, blank=True, help_text="The coder, model, category it is about.")
    n = models.PositiveIntegerField(default=0)
    total = models.FloatField(default=0)
    buckets = models.JSONField(default=dict, blank=True, help_text="How many of which size, for quantiles.")

    class Meta:
        verbose_name_plural = "tallies"
        ordering = ["project", "day", "measure", "key"]
        constraints = [
            models.UniqueConstraint(fields=["project", "day", "measure", "key"], name="tally_once")
        ]
        indexes = [models.Index(fields=["measure", "day"], name="tally_by_measure")]

    def __str__(self) -> str:
        return f"{self.measure} {self.key} on {self.day}: {self.n}"
