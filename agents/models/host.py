from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tasks.models import Project


class HostQuerySet(models.QuerySet["Host"]):
    def alive(self) -> "HostQuerySet":
        """Return the hosts that reported within a lease, by the database's clock, and did not stop since."""
        lease = timedelta(seconds=settings.DURATIONS["lease"])
        return self.exclude(boot_id="").filter(seen_at__gte=Now() - lease)

    def given_up(self, seconds: float) -> "HostQuerySet":
        """Return the hosts that are no longer waited for: silent for so many seconds, or removed."""
        long_ago = Now() - timedelta(seconds=seconds)
        return self.filter(Q(seen_at__lt=long_ago) | Q(is_removed=True))


ROOM_MIN = 16 * 1024 * 1024  # bytes that must be free on a host's disk for it to begin a run


class Tier(models.IntegerChoices):
    """How well a host isolates what it runs."""

    OPEN = 1, "not sandboxed"
    ENCLOSED = 3, "sandboxed"


class Host(models.Model):
    """A machine that starts and holds runs."""

    name = models.CharField(max_length=120, unique=True)
    slots = models.PositiveSmallIntegerField(default=4)
    tier = models.PositiveSmallIntegerField("isolation", choices=Tier, default=Tier.OPEN)
    why_open = models.CharField(
        "why it is open", max_length=300, blank=True, help_text="Why its runs are not sandboxed."
    )
    toolchains = models.JSONField(default=list, blank=True, help_text="Folders that its runs may read.")
    boot_id = models.CharField(max_length=64, blank=True)  # empty: it stopped, and no agent of it goes on
    version = models.CharField(max_length=40, blank=True)
    installation = models.CharField(
        max_length=32, blank=True, help_text="The data folder that runs under this name."
    )
    place = models.CharField(max_length=300, blank=True, help_text="The machine and its data folder.")
    tools = models.CharField(max_length=200, blank=True, help_text="Versions of what it works with.")
    disk_free = models.PositiveBigIntegerField(null=True, blank=True, help_text="Bytes, of its data folder.")
    ticked_at = models.DateTimeField(
        null=True, blank=True, help_text="When its background jobs last turned the loop."
    )
    seen_at = models.DateTimeField(null=True, blank=True)
    labels = models.JSONField(
        default=list, blank=True, help_text="What runs may ask for, from STEROIDS_HOST_LABELS."
    )
    is_draining = models.BooleanField("draining", default=False, help_text="Takes no new runs.")
    is_removed = models.BooleanField("removed", default=False, help_text="Gone for good; its runs keep it.")

    objects = HostQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def may_run(self, project: Project) -> bool:
        """Whether the host has the label that the project asks for, whose settings have to be valid."""
        return not project.setting_faults and project.config.host_label in {"", *self.labels}

    @property
    def takes_work(self) -> bool:
        """Whether the host begins new work. One without slots only serves pages and background jobs."""
        return self.slots > 0 and not self.is_draining

    @property
    def has_room(self) -> bool:
        """Whether its disk had room for another run when it last reported."""
        return self.disk_free is None or self.disk_free >= ROOM_MIN

    def state(self, *, is_alive: bool) -> str:
        """Return the state that people are shown. A host that is full or draining takes no new runs."""
        if self.is_removed:
            return "removed"
        if not is_alive:
            return "away"
        if self.is_draining:
            return "draining"
        return "alive" if self.has_room else "full"
