"""Who works, on which host, and every run of an agent."""

import secrets
from hashlib import sha256

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone

from tasks.models import Project, Review, Submission, Task

TOKEN_PREFIX = "stx_"  # noqa: S105  (a public prefix, so that scanners recognise a leaked token)


def new_token() -> str:
    """256 random bits; shown once and kept as a hash only."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()


class Agent(models.Model):
    """A configured command that takes work in one role."""

    class Role(models.TextChoices):
        CODER = "coder"
        REVIEWER = "reviewer"
        JUDGE = "judge"

    class Provider(models.TextChoices):
        COMMAND = "command", "Any command"
        REPLAY = "replay", "Recorded cassette"

    name = models.SlugField(max_length=60, unique=True)
    role = models.CharField(
        max_length=8, choices=Role, help_text="A judge is kept for the arbitration; it gets no runs yet."
    )
    kind = models.CharField(
        "type", max_length=60, blank=True, help_text="What sort of agent it is: dev-agent, test-architect."
    )
    provider = models.CharField(max_length=10, choices=Provider, default=Provider.COMMAND)
    model = models.CharField(max_length=120, blank=True)
    instructions = models.TextField(blank=True, help_text="Added to every prompt of this agent.")
    projects = models.ManyToManyField(
        Project, blank=True, related_name="agents", help_text="Where it works; empty means everywhere."
    )
    domains = models.JSONField(
        default=list, blank=True, help_text='Tags it works on: ["backend"]. Empty means any.'
    )
    focus = models.CharField(max_length=200, blank=True, help_text="What a reviewer looks at first.")
    priority = models.SmallIntegerField(default=0, help_text="Higher ones are chosen first.")
    slots = models.PositiveSmallIntegerField(default=1, help_text="Runs of this agent at a time.")
    settings = models.JSONField(
        default=dict, blank=True,
        help_text='Provider "command": {"argv": ["my-agent", "{prompt}"], "pass": ["MY_AGENT_KEY"]}; '
        'provider "replay": {"cassettes": "/path"}.',
    )  # fmt: skip
    is_active = models.BooleanField("active", default=True)

    class Meta:
        ordering = ["role", "-priority", "name"]
        constraints = [
            models.CheckConstraint(condition=Q(slots__gt=0), name="agent_has_a_slot"),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        from agents.providers.registry import ProviderError, provider_for

        if not isinstance(self.domains, list) or not all(isinstance(word, str) for word in self.domains):
            raise ValidationError({"domains": 'A list of tags is needed: ["backend", "api"].'})
        try:
            provider_for(self).check(self.settings)
        except ProviderError as error:
            raise ValidationError({"settings": str(error)}) from error


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


class RunQuerySet(models.QuerySet["Run"]):
    def live(self) -> "RunQuerySet":
        """Not ended."""
        return self.exclude(status=Run.Status.ENDED)

    def on_host(self) -> "RunQuerySet":
        """Held by some host: a process may exist."""
        return self.filter(status__in=Run.HELD)


class Run(models.Model):
    """One agent process, or one verification, on one task in one seat."""

    class Role(models.TextChoices):
        CODER = "coder"
        REVIEWER = "reviewer"
        VERIFIER = "verifier"

    class Status(models.TextChoices):
        QUEUED = "queued"
        STARTING = "starting"
        RUNNING = "running"
        CLOSING = "closing"  # handed in; its process has a moment to end
        ENDED = "ended"

    class Outcome(models.TextChoices):
        HANDED_IN = "handed_in", "Handed in"
        NOTHING = "nothing", "Nothing handed in"
        NOT_TAKEN = "not_taken", "Every hand-in was refused"
        LOST = "lost"
        SILENT = "silent", "Went silent"
        WALL = "wall", "Ran too long"
        BYTES = "bytes", "Wrote too much"
        REFUSED = "refused", "Could not start"
        STOPPED = "stopped"
        CRASH = "crash"

    HELD = (Status.STARTING, Status.RUNNING, Status.CLOSING)
    SEATED = (Status.QUEUED, Status.STARTING, Status.RUNNING)

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="runs")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="runs")
    role = models.CharField(max_length=8, choices=Role)
    seat = models.CharField(max_length=120)
    round = models.PositiveSmallIntegerField()
    agent = models.ForeignKey(Agent, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs")
    agent_label = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=120, blank=True)
    host = models.ForeignKey(Host, null=True, blank=True, on_delete=models.PROTECT, related_name="runs")
    sha = models.CharField(max_length=64, blank=True, help_text="What is reviewed or verified.")
    base_sha = models.CharField(max_length=64, blank=True, help_text="Where the clone started.")
    salvage_sha = models.CharField(max_length=64, blank=True, help_text="Work that was never handed in.")
    status = models.CharField(max_length=8, choices=Status, default=Status.QUEUED)
    outcome = models.CharField(max_length=10, choices=Outcome, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    is_counted = models.BooleanField("counts as a failure", default=False)
    task_version = models.PositiveBigIntegerField()
    fence = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    token_hash = models.CharField(max_length=64, null=True, blank=True, unique=True)
    spent_hash = models.CharField(
        max_length=64, blank=True, db_index=True, help_text="Only to tell a late caller that its run is over."
    )
    prompt_hash = models.CharField(max_length=64, blank=True)
    tier = models.PositiveSmallIntegerField(default=1)
    submission = models.OneToOneField(
        Submission, null=True, blank=True, on_delete=models.PROTECT, related_name="run"
    )
    review = models.OneToOneField(Review, null=True, blank=True, on_delete=models.PROTECT, related_name="run")
    refusals = models.PositiveIntegerField(default=0, help_text="Hand-ins that were not taken.")
    refusal = models.JSONField(default=list, blank=True, help_text="Lines and reasons of the last of them.")
    stop_requested = models.BooleanField(default=False)
    queued_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    last_output_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["task", "seat"],
                condition=Q(status__in=["queued", "starting", "running"]),
                name="run_one_live_per_seat",
            ),
            models.CheckConstraint(
                condition=Q(status="ended", ended_at__isnull=False)
                | (~Q(status="ended") & Q(ended_at__isnull=True)),
                name="run_ended_has_a_time",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=["closing", "ended"]) | Q(token_hash__isnull=True),
                name="run_token_dies_with_it",
            ),
        ]
        indexes = [
            models.Index(fields=["host"], name="run_live_by_host", condition=~Q(status="ended")),
            models.Index(fields=["project"], name="run_live_by_project", condition=~Q(status="ended")),
            models.Index(
                fields=["lease_until"],
                name="run_by_lease",
                condition=Q(status__in=["starting", "running", "closing"]),
            ),
            models.Index(fields=["status"], name="run_queued", condition=Q(status="queued")),
            models.Index(
                fields=["project", "ended_at"], name="run_ended_by_day", condition=Q(status="ended")
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} {self.role} {self.status}"


class Prompt(models.Model):
    """Exactly what the agent was told."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="prompt")
    text = models.TextField()

    def __str__(self) -> str:
        return f"prompt of run {self.run_id}"


class Output(models.Model):
    """A piece of a run's log, as the host copied it."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="outputs")
    seq = models.PositiveIntegerField()
    text = models.TextField()

    class Meta:
        ordering = ["run", "seq"]
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="output_seq_once")]

    def __str__(self) -> str:
        return f"output {self.seq} of run {self.run_id}"


class Token(models.Model):
    """A person's token for scripts and the command. Only its hash is kept."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["user", "name"]

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"

    @classmethod
    def mint(cls, user: settings.AUTH_USER_MODEL, name: str) -> tuple["Token", str]:  # type: ignore[valid-type]
        """The row and the token in clear, which is shown once."""
        secret = new_token()
        return cls.objects.create(user=user, name=name, hash=token_hash(secret)), secret
