from django.db import models


class Tier(models.IntegerChoices):
    """How well a host isolates what it runs."""

    OPEN = 1, "not sandboxed"
    ENCLOSED = 3, "sandboxed"


class Host(models.Model):
    """A machine that holds agents."""

    name = models.CharField(max_length=120, unique=True)
    slots = models.PositiveSmallIntegerField(default=4)
    tier = models.PositiveSmallIntegerField("isolation", choices=Tier, default=Tier.OPEN)
    why_open = models.CharField(
        "why it is open", max_length=300, blank=True, help_text="Why its runs are not sandboxed."
    )
    toolchains = models.JSONField(default=list, blank=True, help_text="Folders that its runs may read.")
    boot_id = models.CharField(max_length=64, blank=True)
    version = models.CharField(max_length=40, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)
    is_draining = models.BooleanField("draining", default=False, help_text="Takes no new runs.")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
