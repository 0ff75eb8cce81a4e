"""How a team shares the queue: who follows, who is on call, saved views, and bulk actions."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from disputes.models.dispute import Dispute
from tasks.models import Project
from tasks.models.moments import MomentField


class Follow(models.Model):
    """A person who wants to be told of everything that happens to a dispute."""

    dispute = models.ForeignKey(Dispute, on_delete=models.CASCADE, related_name="follows", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="follows")
    at = MomentField()

    class Meta:
        verbose_name_plural = "follows"
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["dispute", "user"], name="follow_once")]

    def __str__(self) -> str:
        return f"{self.user} follows {self.dispute_id}"


class SavedView(models.Model):
    """A tab of the queue with filters, under a name that the person chose."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views", db_index=False
    )
    name = models.CharField(max_length=60)
    tab = models.CharField(max_length=20)
    query = models.CharField(max_length=1000, blank=True, help_text="The filters, as in the page's address.")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="saved_view_name_once")]

    def __str__(self) -> str:
        return self.name


class OnCall(models.Model):
    """Who looks after a project's queue on these days. If nobody is on call, all triagers are told."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="on_call", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="on_call")
    first_day = models.DateField()
    last_day = models.DateField()

    class Meta:
        verbose_name = "on-call days"
        verbose_name_plural = "on-call rota"
        ordering = ["project", "first_day", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(last_day__gte=F("first_day")), name="on_call_ends_after_start"
            ),
            models.UniqueConstraint(fields=["project", "user", "first_day"], name="on_call_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.project}: {self.first_day} to {self.last_day}"


class Bulk(models.Model):
    """One action on many disputes, with what was done to each, so that it can be shown and undone as one."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="bulks")
    verb = models.CharField(max_length=20)
    note = models.TextField(blank=True)
    results = models.JSONField(default=list, help_text="One entry an item: its name, and what came of it.")
    at = MomentField()
    undone_at = models.DateTimeField(null=True, blank=True)
    undo_results = models.JSONField(default=list, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.verb} of {len(self.results)} by {self.user}"
