"""What is disputed: one finding, or one question about the whole task."""

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q
from django.utils import timezone

from disputes.models.dispute import Dispute
from disputes.protocol.rulings import options
from tasks.models import SEVERITY_CHOICES, Finding, Submission, Task

if TYPE_CHECKING:
    from disputes.models.decision import Decision

NOT_STATED = "not stated"


class Conflict(models.Model):
    """One finding, or one question about the whole task: two positions, options, one decision."""

    class Kind(models.TextChoices):
        DISAGREEMENT = options.Kind.DISAGREEMENT.value
        SILENCE = options.Kind.SILENCE.value
        ALERT = options.Kind.ALERT.value
        HANDS = options.Kind.HANDS.value

    class Origin(models.TextChoices):
        DISAGREE = "disagree", "Coder declined"
        CLI = "cli", "Dispute opened"
        MINOR = "minor", "Minor, logged"
        REOPENED = "reopened", "Reopened"
        NOT_HONOURED = "not_honoured", "Ruling not honoured"
        REJECTIONS = "rejections", "Rejection limit"
        EMPTY_RUNS = "empty_runs", "Runs without result"
        BLOCKED = "blocked", "Coder is blocked"
        LANDING = "landing", "Landing is stuck"
        REVIEW = "review", "Review raises only settled points"
        REPEATED = "repeated", "Raised again after it was declined"
        CONVERTED = "converted", "Converted from silence"
        FLAGGED = "flagged", "Findings without an answer"
        UNANSWERED = "unanswered", "Raised again, nothing was done"
        OSCILLATION = "oscillation", "Goes back and forth"
        ROUNDS = "rounds", "Raised again and again"
        RATE = "rate", "Too much is declined"
        DIVERGENCE = "divergence", "More comes up than gets done"
        STALL = "stall", "No progress"
        LADDER = "ladder", "Every model of the ladder failed"
        PING_PONG = "ping_pong", "Agents disagree over and over"
        BUDGET = "budget", "A cap of money or tokens"
        BASE = "base", "The target branch is red"
        VERIFYING = "verifying", "Build or tests"

    class Status(models.TextChoices):
        OPEN = "open"
        DECIDED = "decided"
        LOGGED = "logged"
        MOOT = "moot"

    class Followed(models.TextChoices):
        WAITING = "waiting"
        APPLIED = "applied"
        NOT_HONOURED = "not_honoured", "Not honoured"
        CANNOT_TELL = "cannot_tell", "Cannot tell"
        REOPENED = "reopened", "Reopened"

    class Reason(models.TextChoices):
        ARCHITECTURE = "architecture_disagreement", "Architecture"
        SPECIFICATION = "specification_ambiguity", "Specification"
        GUIDELINE = "guideline_conflict", "Guideline"
        SECURITY = "security_concern", "Security"
        SCOPE = "scope_disagreement", "Scope"
        OTHER = "other", "Other"

    dispute = models.ForeignKey(Dispute, on_delete=models.PROTECT, related_name="conflicts")
    kind = models.CharField(max_length=12, choices=Kind)
    origin = models.CharField(max_length=12, choices=Origin)
    opened_as = models.CharField(
        max_length=8,
        choices=[(word, word.capitalize()) for word in ("coder", "reviewer", "minor", "system", "human")],
    )
    reason = models.CharField(max_length=30, choices=Reason, default=Reason.OTHER)
    finding = models.ForeignKey(
        Finding, null=True, blank=True, on_delete=models.PROTECT, related_name="conflicts",
        help_text="As it was raised first.",
    )  # fmt: skip
    submission = models.ForeignKey(
        Submission, null=True, blank=True, on_delete=models.PROTECT, related_name="conflicts",
        help_text="What is disputed.",
    )  # fmt: skip
    stage = models.CharField(max_length=40, blank=True, help_text="Where it came up; empty: the only stage.")
    thread = models.ForeignKey(
        "tasks.Comment", null=True, blank=True, on_delete=models.PROTECT, related_name="conflicts",
        help_text="The comment that began it, where two stages disagree.",
    )  # fmt: skip
    severity = models.CharField(max_length=8, choices=SEVERITY_CHOICES)
    effect = models.CharField(max_length=4, choices=[(w, w) for w in ("hold", "ship", "log")])
    question = models.CharField(max_length=500)
    reviewer_position = models.TextField(blank=True)
    reviewer_label = models.CharField(max_length=120, blank=True)
    coder_position = models.TextField(blank=True)
    coder_rationale = models.TextField(blank=True)
    coder_label = models.CharField(max_length=120, blank=True)
    alternative = models.TextField(blank=True)
    synthesis = models.TextField(blank=True, help_text="What both sides could live with (option C).")
    synthesis_by = models.CharField(max_length=120, blank=True, help_text="The rule, agent or person.")
    synthesis_trade_off = models.TextField(blank=True)
    synthesis_covers_both = models.BooleanField(default=False)
    evidence = models.JSONField(default=list, blank=True, help_text="Facts that the card shows, a line each.")
    status = models.CharField(max_length=7, choices=Status, default=Status.OPEN)
    followed = models.CharField(max_length=12, choices=Followed, blank=True)
    previous = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="reopened_as"
    )
    opened_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["dispute", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["finding"],
                condition=Q(status="open", kind="disagreement"),
                name="conflict_one_open_per_finding",
            ),
            models.CheckConstraint(
                condition=~Q(kind="disagreement") | (~Q(reviewer_position="") & ~Q(coder_position="")),
                name="conflict_has_both_positions",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["open", "decided", "logged", "moot"]), name="conflict_status_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.ref} {self.question}"

    @property
    def ref(self) -> str:
        """The name that people and the command use: C-9."""
        return f"C-{self.pk}"

    @property
    def task(self) -> Task:
        """The task in dispute. Raises ValueError for a card of a whole project."""
        if self.dispute.task is None:
            raise ValueError(f"{self.ref} belongs to a project, not to a task.")
        return self.dispute.task

    @property
    def name(self) -> str:
        """What prompts and people call it: the finding's code, or the task, or the project."""
        if self.finding:
            return self.finding.code
        task = self.dispute.task
        return f"Task {task.ref}" if task else f"Project {self.dispute.project.slug}"

    def standing_decision(self) -> "Decision | None":
        return self.decisions.standing().first()
