from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q

from agents.models.agent import Agent
from agents.models.host import Host, Tier
from disputes.models import Opinion
from tasks.models import Project, Review, Submission, Task
from tasks.models.moments import MomentField


class RunQuerySet(models.QuerySet["Run"]):
    def live(self) -> "RunQuerySet":
        """Return the runs that have not ended."""
        return self.exclude(status=Run.Status.ENDED)

    def on_host(self) -> "RunQuerySet":
        """Return the runs that a host holds, so that a process of theirs may exist."""
        return self.filter(status__in=Run.HELD)

    def needed(self, since: datetime | None = None) -> "RunQuerySet":
        """Return the runs that are live, whose hand-in nobody has fetched yet, or that ended `since`."""
        needed = ~Q(status=Run.Status.ENDED) | Q(submission__state=Submission.State.RECEIVED)
        return self.filter(needed | Q(ended_at__gt=since) if since else needed)


class Run(models.Model):
    """One agent process, or one verification, on one task in one seat."""

    class Role(models.TextChoices):
        CODER = "coder"
        REVIEWER = "reviewer"
        JUDGE = "judge"
        MEDIATOR = "mediator"
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
        LIMITS = "limits", "Took too much of its host"
        COST = "cost", "Reached its cap"
        PROVIDER = "provider", "Trouble with its provider"
        REFUSED = "refused", "Could not start"
        STOPPED = "stopped"
        CRASH = "crash"

    WORKING = (Status.STARTING, Status.RUNNING)
    HELD = (*WORKING, Status.CLOSING)
    SEATED = (Status.QUEUED, *WORKING)
    # These stand beside the task's own work: they speak about a conflict, and the task goes on without them.
    OPINION_ROLES = (Role.JUDGE, Role.MEDIATOR)

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="runs")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="runs")
    role = models.CharField(max_length=8, choices=Role)
    seat = models.CharField(max_length=120)
    round = models.PositiveSmallIntegerField()
    stage = models.CharField(max_length=40, blank=True)
    step = models.CharField(
        max_length=120, blank=True, help_text="The step of the ladder that chose its model: 2-3: sonnet."
    )
    choice = models.CharField(
        max_length=300, blank=True, help_text="Why this agent, where that is not plain: no domain fits."
    )
    agent = models.ForeignKey(Agent, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs")
    agent_label = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=120, blank=True)
    host = models.ForeignKey(Host, null=True, blank=True, on_delete=models.PROTECT, related_name="runs")
    sha = models.CharField(max_length=64, blank=True, help_text="What is reviewed or verified.")
    base_sha = models.CharField(max_length=64, blank=True, help_text="Where the clone started.")
    commands_hash = models.CharField(
        max_length=64, blank=True, help_text="Of a verification: which commands it was started with."
    )
    salvage_sha = models.CharField(max_length=64, blank=True, help_text="Work that was never handed in.")
    status = models.CharField(max_length=8, choices=Status, default=Status.QUEUED)
    outcome = models.CharField(max_length=10, choices=Outcome, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    is_counted = models.BooleanField("counts as a failure", default=False)
    task_version = models.PositiveBigIntegerField()
    fence = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    is_overdue = models.BooleanField(default=False, help_text="Its lease was found over once.")
    token_hash = models.CharField(max_length=64, null=True, blank=True, unique=True)
    spent_hash = models.CharField(
        max_length=64, blank=True, db_index=True, help_text="Only to tell a late caller that its run is over."
    )
    prompt_hash = models.CharField(max_length=64, blank=True)
    prompt_text = models.ForeignKey(
        "agents.PromptText", null=True, blank=True, on_delete=models.PROTECT, related_name="runs",
        help_text="The project's own text of the prompt; empty: the program's.",
    )  # fmt: skip
    template_hash = models.CharField(max_length=64, blank=True, help_text="Of the text before it was filled.")
    example = models.CharField(
        max_length=10, blank=True, help_text="Where the example in its prompt came from: canonical, session."
    )
    tier = models.PositiveSmallIntegerField("isolation", choices=Tier, default=Tier.OPEN)
    submission = models.OneToOneField(
        Submission, null=True, blank=True, on_delete=models.PROTECT, related_name="run"
    )
    review = models.OneToOneField(Review, null=True, blank=True, on_delete=models.PROTECT, related_name="run")
    opinion = models.ForeignKey(
        Opinion, null=True, blank=True, on_delete=models.PROTECT, related_name="runs",
        help_text="What a judge or mediator was asked for.",
    )  # fmt: skip
    error_class = models.CharField(
        max_length=12, blank=True, help_text="What went wrong at the provider: quota, rate, sign_in, network."
    )
    tokens_in = models.PositiveBigIntegerField(default=0, help_text="Without those read from a cache.")
    tokens_cached = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, blank=True, help_text="US dollars; empty: nobody knows."
    )
    cost_from = models.CharField(
        max_length=8,
        blank=True,
        choices=[
            ("agent", "Said by the agent"),
            ("prices", "From the price list"),
            ("bounded", "Less than it reported, which its time does not allow"),
        ],
    )
    session_id = models.CharField(max_length=200, blank=True, help_text="The command's own name for it.")
    is_pulled = models.BooleanField(
        default=False, help_text="Claimed by an agent elsewhere; no host holds it."
    )
    refusals = models.PositiveIntegerField(default=0, help_text="Hand-ins that were not taken.")
    refusal = models.JSONField(default=list, blank=True, help_text="Lines and reasons of the last of them.")
    stop_requested = models.BooleanField(default=False)
    queued_at = MomentField()
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
            # A project's cap is checked while runs stream: the sum of the costs comes from this index alone.
            models.Index(
                fields=["project", "cost"], name="run_cost_by_project", condition=Q(cost__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} {self.role} {self.status}"

    @property
    def how_to_end(self) -> str:
        """What its agent is told to do once nothing more is taken from the run."""
        if self.is_pulled:
            return "End your work and claim again. What you have done is on your machine only."
        if self.outcome == self.Outcome.LOST:
            return "End your work. Others go on from what was handed in."
        return "End your work. What lies in the clone is saved."

    @property
    def beaten_at(self) -> datetime | None:
        """When the pulled agent of this run was last heard of; None for any other run."""
        if not self.is_pulled or self.host_id or self.lease_until is None:
            return None
        return self.lease_until - timedelta(seconds=settings.DURATIONS["pull_lease"])


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
