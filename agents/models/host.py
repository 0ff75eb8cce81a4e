from django.db import models


class Host(models.Model):
    """A machine that holds agents."""

    name = models.CharField(max_length=120, unique=True)
    slots = models.PositiveSmallIntegerField(default=4)
    tier = models.PositiveSmallIntegerField(default=1, help_text="How well it isolates agents; 1 is hardly.")
    boot_id = models.CharField(max_length=64, blank=True)
    version = models.CharField(max_length=40, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)
    is_draining = models.BooleanField("draining", default=False, help_text="Takes no new runs.")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
