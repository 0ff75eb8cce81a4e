from django.db import models

from tasks.models.moments import MomentField


class Idempotency(models.Model):
    """The stored reply to a request that must have one effect, however often it is sent."""

    actor = models.CharField(max_length=80)
    key = models.CharField(max_length=80)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    reply = models.JSONField()
    at = MomentField()

    class Meta:
        verbose_name_plural = "idempotency keys"
        constraints = [models.UniqueConstraint(fields=["actor", "key"], name="idempotency_key_once")]

    def __str__(self) -> str:
        return f"{self.actor} {self.key}"
