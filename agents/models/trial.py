from django.db import models
from django.db.models import Q

from agents.models.host import Host
from tasks.models import Project
from tasks.models.moments import MomentField


class Trial(models.Model):
    """One trial of a recipe on an untouched commit of the target branch."""

    class Why(models.TextChoices):
        SEARCH = "search", "Looking for commands"
        CONFIGURED = "configured", "The project's own commands"

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        ENDED = "ended"

    class Outcome(models.TextChoices):
        GREEN = "green"
        RED = "red"
        BROKEN = "broken", "Cannot be run here"
        SKIPPED = "skipped", "Not needed"
        STOPPED = "stopped"

    LIVE = (Status.QUEUED, Status.RUNNING)

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="trials")
    why = models.CharField(max_length=10, choices=Why)
    sha = models.CharField(max_length=64)
    ordinal = models.PositiveSmallIntegerField(default=0, help_text="Its place among those of one search.")
    source = models.CharField(max_length=300, blank=True, help_text="Where the recipe was read.")
    prepare = models.TextField(blank=True)
    build = models.TextField(blank=True)
    test = models.TextField(blank=True)
    status = models.CharField(max_length=7, choices=Status, default=Status.QUEUED)
    outcome = models.CharField(max_length=7, choices=Outcome, blank=True)
    problem = models.CharField(max_length=500, blank=True, help_text="What is red or missing, in a sentence.")
    step = models.CharField(max_length=40, blank=True, help_text="The step that ended it.")
    exit_code = models.IntegerField(null=True, blank=True)
    steps = models.JSONField(default=list, blank=True, help_text="Name, exit code and seconds of each.")
    failed = models.JSONField(default=list, blank=True, help_text="Names of the tests that failed.")
    failed_count = models.PositiveIntegerField(null=True, blank=True)
    total = models.PositiveIntegerField(null=True, blank=True)
    broke_off = models.BooleanField(default=False, help_text="Not all of its tests ran.")
    flaky = models.JSONField(default=list, blank=True)
    hosts = models.JSONField(default=list, blank=True, help_text="What it reached from inside the sandbox.")
    tail = models.TextField(blank=True, help_text="The end of the output, renewed while it runs.")
    is_kept = models.BooleanField(default=False, help_text="Its commands became the project's.")
    host = models.ForeignKey(Host, null=True, blank=True, on_delete=models.PROTECT, related_name="trials")
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    queued_at = MomentField()
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["project"], condition=Q(status="running"), name="trial_one_running_per_project"
            ),
            models.CheckConstraint(
                condition=Q(status="ended", ended_at__isnull=False) & ~Q(outcome="")
                | ~Q(status="ended") & Q(ended_at__isnull=True, outcome=""),
                name="trial_ended_has_an_outcome",
            ),
        ]
        indexes = [
            models.Index(fields=["status"], name="trial_live", condition=Q(status__in=["queued", "running"]))
        ]

    def __str__(self) -> str:
        return f"{self.source or 'own commands'} on {self.sha[:8]}"

    @property
    def seconds(self) -> float:
        """How many seconds its steps took together."""
        return float(sum(step.get("seconds", 0) for step in self.steps))

    def is_part_of(self, other: "Trial") -> bool:
        """Whether the other one runs these tests and those of another language or package besides."""
        return bool(self.test) and f"({self.test})" in other.test

    @property
    def commands(self) -> list[tuple[str, str]]:
        """The names and commands of its steps, without empty ones."""
        pairs = (("prepare", self.prepare), ("build", self.build), ("test", self.test))
        return [(name, command) for name, command in pairs if command]
