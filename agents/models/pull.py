from django.db import models

from agents.models.run import Run


class PullBundle(models.Model):
    """Commits in transit to or from a pulled agent. Deleted once its run is over and the hand-in is kept."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="pull_bundle")
    base = models.BinaryField(
        null=True, blank=True, help_text="Where it begins; empty where the remote has that commit."
    )
    work = models.BinaryField(null=True, blank=True, help_text="What it brought, unread.")
    tip = models.CharField(max_length=64, blank=True, help_text="The commit that the work ends with.")

    def __str__(self) -> str:
        return f"commits of run {self.run_id}"
