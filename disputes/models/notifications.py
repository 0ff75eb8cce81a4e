"""Where people and machines are told, and every message that was or will be sent."""

import uuid

from django.db import models
from django.db.models import Q

from disputes.models.dispute import Dispute
from tasks.models import Event, Project
from tasks.models.moments import MomentField
from tasks.models.person import person


class Channel(models.Model):
    """A way to reach one person (in all their projects or in one), or a whole project.

    Addresses contain tokens and passwords: they are kept sealed and never shown again.
    """

    class Kind(models.TextChoices):
        PEOPLE = "people", "Mail, chat and other services"
        WEBHOOK = "webhook", "Signed JSON webhook"

    user = person(on_delete=models.CASCADE, related_name="channels")
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="channels",
        help_text="Only what happens there; empty means all of the person's projects.",
    )  # fmt: skip
    name = models.CharField(max_length=60)
    kind = models.CharField(max_length=7, choices=Kind, default=Kind.PEOPLE)
    service = models.CharField(max_length=40, blank=True, editable=False, help_text="slack, mailto, https")
    sealed_address = models.TextField(editable=False)
    sealed_secret = models.TextField(
        blank=True, editable=False, help_text="Signs a webhook's body; while it is exchanged, there are two."
    )
    wants = models.JSONField(default=list, blank=True, help_text="What it is told of; empty means all.")
    digest_at = models.TimeField(
        null=True, blank=True, help_text="One message a day at this time, instead of one for each event."
    )
    quiet_from = models.TimeField(null=True, blank=True, help_text="Nothing is sent from then on.")
    quiet_until = models.TimeField(null=True, blank=True, help_text="CRITICAL is sent anyway.")
    timezone = models.CharField(max_length=60, default="UTC")
    is_active = models.BooleanField("active", default=True)
    created_at = MomentField(editable=False)

    class Meta:
        ordering = ["user", "project", "name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(user__isnull=False) | Q(project__isnull=False), name="channel_reaches_somebody"
            ),
            models.CheckConstraint(
                condition=Q(quiet_from__isnull=True, quiet_until__isnull=True)
                | Q(quiet_from__isnull=False, quiet_until__isnull=False),
                name="channel_quiet_hours_have_two_ends",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """One message that is owed to a channel: sent at least once under a stable id, or visibly failed."""

    event = models.ForeignKey(Event, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    topic = models.CharField(max_length=20)
    is_urgent = models.BooleanField(
        "urgent", default=False, help_text="Critical: waits for no digest and no quiet hours."
    )
    due_at = MomentField()
    tries = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True, help_text="Given up.")
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["event", "channel"], name="delivery_once"),
            models.CheckConstraint(
                condition=Q(sent_at__isnull=True) | Q(failed_at__isnull=True),
                name="delivery_not_sent_and_failed",
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at"],
                name="delivery_due",
                condition=Q(sent_at__isnull=True, failed_at__isnull=True),
            ),
            models.Index(
                fields=["channel", "-id"], name="delivery_unsent", condition=Q(sent_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.topic} to {self.channel_id}"


class Reminder(models.Model):
    """Who is reminded next, and when, if nobody has ruled on a dispute by then. It decides nothing."""

    class Step(models.TextChoices):
        NUDGE = "nudge", "To who holds it"
        LEAD = "lead", "To whoever is on call and leads"
        STALE = "stale", "As the project says"

    dispute = models.OneToOneField(
        Dispute, on_delete=models.CASCADE, primary_key=True, related_name="reminder"
    )
    since = models.DateTimeField(help_text="When it began to wait.")
    step = models.CharField(max_length=5, choices=Step, default=Step.NUDGE)
    due_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["due_at"]

    def __str__(self) -> str:
        return f"{self.step} of D-{self.dispute_id}"
