from django.db import models
from django.utils import timezone

from tasks.models.project import Project
from tasks.triggers import no_change, no_deletion


class Seal(models.Model):
    """The hash of a project's events up to one of them and of the seal before: changing the record breaks it.

    The table is append-only, which triggers of the database enforce.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="seals", db_index=False)
    number = models.PositiveIntegerField()
    upto = models.PositiveBigIntegerField(help_text="The last event that it covers.")
    count = models.PositiveIntegerField(help_text="Events since the seal before.")
    chain = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now)

    triggers = (no_change("tasks_seal"), no_deletion("tasks_seal"))

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="seal_number_once")]

    def __str__(self) -> str:
        return f"seal {self.number} of {self.project_id}"
