from typing import Self, TypeVar

from django.db import models
from django.db.models import F, Q

from tasks.models.choices import SHA, validate_sha
from tasks.models.moments import MomentField
from tasks.models.person import person
from tasks.models.project import Project
from tasks.models.task import Task

Row = TypeVar("Row", bound=models.Model)

FILES_TOLD = 500  # changed files that `diff_stat` names


class Rollback(models.Model):
    """A person's decision to take a task back to the end of an earlier round.

    Nothing of the rounds that are taken back is deleted (RB-2).
    """

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="rollbacks")
    from_round = models.PositiveSmallIntegerField()
    to_round = models.PositiveSmallIntegerField(help_text="The task begins again after this round.")
    reason = models.TextField()
    by_label = models.CharField(max_length=120)
    by_user = person()
    at = MomentField()

    class Meta:
        ordering = ["-at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(to_round__lt=models.F("from_round")), name="rollback_goes_back"
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="rollback_has_a_reason"),
        ]

    def __str__(self) -> str:
        return f"round {self.from_round} back to {self.to_round}"


class RoundQuerySet(models.QuerySet[Row]):
    """Rows of rounds, such as submissions, or rows about a submission, to which the lookup `path` leads."""

    path = ""

    def standing(self) -> Self:
        """Leave out the rows of rounds that were rolled back."""
        return self.filter((f"{self.path}rolled_back__isnull", True))

    def fetched(self) -> Self:
        """Leave out the submissions that could not be fetched."""
        return self.exclude((f"{self.path}state", Submission.State.LOST))

    def taken(self) -> Self:
        """Return the submissions that are neither lost nor red; one of those two has answered no finding."""
        return self.exclude((f"{self.path}state__in", Submission.UNTAKEN))


class SubmissionQuerySet(RoundQuerySet["Submission"]):
    def newest_first(self) -> "SubmissionQuerySet":
        return self.order_by("-round", "-attempt")


class Submission(models.Model):
    """What a coder hands in for a round: a commit, a response, and one answer per finding."""

    class Kind(models.TextChoices):
        COMMITS = "commits"
        DOCUMENT = "document"  # imported: a response without a commit

    class State(models.TextChoices):
        RECEIVED = "received"  # named by the coder, not fetched yet
        KEPT = "kept"  # in the trusted repository and in its bundle
        VERIFIED = "verified"  # build and tests green
        RED = "red"
        LOST = "lost"  # could not be fetched, or not a descendant of its base

    UNTAKEN = (State.LOST, State.RED)

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="submissions")
    round = models.PositiveSmallIntegerField()
    attempt = models.PositiveSmallIntegerField()
    stage = models.CharField(max_length=40, blank=True, help_text="Whose work it is; empty: the only stage.")
    kind = models.CharField(max_length=9, choices=Kind, default=Kind.COMMITS)
    sha = models.CharField(max_length=64, blank=True, validators=[validate_sha])
    base_sha = models.CharField(max_length=64, blank=True, validators=[validate_sha])
    response = models.TextField(blank=True)
    by_agent = models.CharField(max_length=120)
    by_model = models.CharField(max_length=120, blank=True)
    by_vendor = models.CharField(max_length=60, blank=True)
    by_user = person()
    state = models.CharField(max_length=8, choices=State, default=State.RECEIVED)
    problem = models.CharField(max_length=500, blank=True, help_text="Why it is red or lost.")
    only_on = models.CharField(
        max_length=120, blank=True, help_text="The one host that has its commits: too large for a bundle."
    )
    diff = models.TextField(blank=True)
    diff_stat = models.JSONField(default=dict, blank=True)
    since_last_round = models.TextField(
        blank=True, help_text="What changed since the submission of the round before, without context."
    )
    specification = models.TextField(
        blank=True, help_text="What the task names as its source, as it was before this work."
    )
    patch_id = models.CharField(max_length=64, blank=True)
    rebased_from = models.CharField(
        max_length=64, blank=True, help_text="The commit that was handed in and approved, before its rebase."
    )
    aside_branch = models.CharField(
        max_length=200,
        blank=True,
        help_text="The branch that it was pushed to while it is disputed.",
    )
    aside_at = models.DateTimeField(null=True, blank=True, help_text="When that was last tried.")
    aside_problem = models.CharField(max_length=500, blank=True, help_text="Why the remote did not take it.")
    origin_path = models.CharField(max_length=300, blank=True, help_text="The file it was imported from.")
    content_sha256 = models.CharField(max_length=64, blank=True)
    rolled_back = models.ForeignKey(
        Rollback, null=True, blank=True, editable=False, on_delete=models.PROTECT, related_name="submissions"
    )
    at = MomentField()

    objects = SubmissionQuerySet.as_manager()

    class Meta:
        ordering = ["task", "round", "attempt"]
        constraints = [
            models.UniqueConstraint(
                fields=["task", "round", "attempt"],
                condition=Q(rolled_back__isnull=True),
                name="submission_attempt_once",
            ),
            models.CheckConstraint(
                condition=Q(kind="document", sha="") | (Q(sha__regex=SHA) & Q(base_sha__regex=SHA)),
                name="submission_names_commits",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["received", "kept", "verified", "red", "lost"]),
                name="submission_state_known",
            ),
        ]
        indexes = [
            models.Index(fields=["task"], name="submission_received", condition=Q(state="received")),
            models.Index(fields=["at"], name="submission_by_day"),
        ]

    def __str__(self) -> str:
        return f"{self.sha[:8] or 'document'} (round {self.round})"

    def give_up_landing(self) -> None:
        """Take it that it does not get onto the target branch, so that its coder begins on that branch."""
        untaken, over = self.landings.exclude(status=Landing.Status.LANDED), Landing.Status.CONFLICT
        untaken.update(status=over, fence=F("fence") + 1)


class Bundle(models.Model):
    """The commits of a submission as a git bundle, so that they do not die with the host that has them."""

    submission = models.OneToOneField(Submission, on_delete=models.CASCADE, related_name="bundle")
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"bundle of {self.submission_id}"


class Verification(models.Model):
    """The result of build and tests for one commit under one set of commands."""

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="verifications", db_index=False
    )
    sha = models.CharField(max_length=64)
    commands_hash = models.CharField(max_length=64)
    green = models.BooleanField()
    step = models.CharField(max_length=40, blank=True, help_text="The step that ended it.")
    exit_code = models.IntegerField(null=True, blank=True)
    seconds = models.FloatField(default=0)
    problem = models.CharField(max_length=500, blank=True, help_text="Why it is red, in a sentence.")
    failed = models.JSONField(default=list, blank=True, help_text="Names of the tests that failed.")
    failed_count = models.PositiveIntegerField(null=True, blank=True, help_text="As the runner told it.")
    total = models.PositiveIntegerField(null=True, blank=True, help_text="Tests that ran.")
    newly_red = models.JSONField(default=list, blank=True, help_text="Those that the base did not fail.")
    flaky = models.JSONField(default=list, blank=True, help_text="Failed, and passed when tried once more.")
    fault = models.CharField(
        max_length=300, blank=True,
        help_text="What of the surroundings failed. Such a result counts for nothing.",
    )  # fmt: skip
    tail = models.TextField(blank=True)
    tier = models.PositiveSmallIntegerField(default=1, help_text="How isolated it ran.")
    at = MomentField()

    class Meta:
        ordering = ["-at"]
        constraints = [
            models.UniqueConstraint(fields=["project", "sha", "commands_hash"], name="verification_once")
        ]

    def __str__(self) -> str:
        return f"{self.sha[:8]} {'green' if self.green else 'red'}"

    @property
    def ran_nothing(self) -> bool:
        """Whether there was nothing to build or test: whatever runs takes a while."""
        return self.green and not self.seconds


class Landing(models.Model):
    """One attempt to bring a submission onto the target branch of the remote."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        CHECKING = "checking"  # rebased, or the commands were changed; its build and tests run
        PUSHING = "pushing"
        LANDED = "landed"
        CONFLICT = "conflict"
        SUPERSEDED = "superseded"
        STUCK = "stuck"

    LIVE = (Status.QUEUED, Status.CHECKING, Status.PUSHING)

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="landings")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="landings")
    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="landings")
    sha = models.CharField(max_length=64, validators=[validate_sha], help_text="What is pushed.")
    rebased_from = models.CharField(max_length=64, blank=True)
    target = models.CharField(max_length=200)
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    problem = models.CharField(max_length=500, blank=True)
    claimed_by = models.CharField(max_length=120, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(null=True, blank=True)
    landed_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was proven to be on the branch."
    )
    gone_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was noticed that the branch has lost it again."
    )
    seen_head = models.CharField(max_length=64, blank=True)
    checked_at = MomentField(help_text="A verification of the rebased commit before this does not count.")
    at = MomentField()

    class Meta:
        ordering = ["-at"]
        constraints = [
            models.UniqueConstraint(
                fields=["submission"],
                condition=Q(status__in=["queued", "checking", "pushing"]),
                name="landing_one_live_per_submission",
            ),
            models.UniqueConstraint(
                fields=["project", "target"],
                condition=Q(status="pushing"),
                name="landing_one_push_per_target",
            ),
        ]
        indexes = [
            models.Index(
                fields=["project", "landed_at"], name="landing_by_time", condition=Q(status="landed")
            ),
            models.Index(fields=["project"], name="landing_clashed", condition=Q(status="conflict")),
        ]

    def __str__(self) -> str:
        return f"{self.sha[:8]} {self.status}"
