from django.conf import settings
from django.db import models
from django.utils import timezone

from tasks.models.project import Project
from tasks.models.task import Task


class Event(models.Model):
    """Something changed: who, what, from, to, why. Append-only, by triggers of the database."""

    class ActorKind(models.TextChoices):
        PERSON = "person"
        RUN = "run"
        AGENT = "agent"
        SYSTEM = "system"
        POLICY = "policy"

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="events")
    task = models.ForeignKey(Task, null=True, blank=True, on_delete=models.PROTECT, related_name="events")
    kind = models.CharField(max_length=40)
    from_status = models.CharField(max_length=20, blank=True)
    to_status = models.CharField(max_length=20, blank=True)
    actor_kind = models.CharField(max_length=8, choices=ActorKind)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    run_number = models.PositiveBigIntegerField(null=True, blank=True)
    label = models.CharField(max_length=120)
    note = models.TextField(blank=True)
    data = models.JSONField(default=dict, blank=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["task", "-id"], name="event_by_task"),
            models.Index(fields=["project", "-id"], name="event_by_project"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.label}"


class Notice(models.Model):
    """An event of which people are still to be told; written with it, gone once the messages are due."""

    event = models.OneToOneField(Event, on_delete=models.CASCADE, primary_key=True, related_name="notice")

    def __str__(self) -> str:
        return f"notice of {self.event_id}"
