"""Disputes, their conflicts and the decisions on them."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from disputes.protocol.rulings import options
from tasks.models import SEVERITY_CHOICES, Finding, Project, Rollback, Submission, Task
from tasks.states import severity_rank
from tasks.triggers import Trigger, no_change_of

NOT_STATED = "not stated"
# What may wake a snoozed dispute, beside a time.
SNOOZE_CONDITIONS = [
    ("submission", "Something new is handed in"),
    ("comment", "Somebody comments"),
    ("landing", "A task it waits for has landed"),
]


class DisputeQuerySet(models.QuerySet["Dispute"]):
    def open(self) -> "DisputeQuerySet":
        """Waiting for a human."""
        return self.filter(status=Dispute.Status.OPEN)

    def live(self) -> "DisputeQuerySet":
        """Not closed: waiting for a human, or ruled and not carried out yet."""
        return self.exclude(status=Dispute.Status.CLOSED)

    def in_order(self) -> "DisputeQuerySet":
        """The queue's order: severity, tasks blocked, age since opened (OPT-8)."""
        return self.order_by("-severity_rank", "-blocks", "opened_at", "pk")


class Dispute(models.Model):
    """The case of one task in the queue: everything about it that waits for a human."""

    class Status(models.TextChoices):
        OPEN = "open"
        RULED = "ruled"
        CLOSED = "closed"

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="disputes")
    task = models.ForeignKey(Task, null=True, blank=True, on_delete=models.PROTECT, related_name="disputes")
    status = models.CharField(max_length=6, choices=Status, default=Status.OPEN)
    severity = models.CharField(max_length=8, choices=SEVERITY_CHOICES)
    severity_rank = models.PositiveSmallIntegerField(editable=False)
    blocks = models.PositiveIntegerField(default=0, help_text="Unfinished tasks that wait for this one.")
    question = models.CharField(max_length=500)
    opened_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_reason = models.CharField(max_length=40, blank=True)
    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+",
        help_text="Who looks at it now; keeps nobody from ruling.",
    )  # fmt: skip
    claimed_until = models.DateTimeField(null=True, blank=True)
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL,
        related_name="assigned_disputes",
    )  # fmt: skip
    snoozed_at = models.DateTimeField(null=True, blank=True)
    snoozed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    snoozed_until = models.DateTimeField(null=True, blank=True)
    snoozed_for = models.CharField(max_length=12, blank=True, choices=SNOOZE_CONDITIONS)

    objects = DisputeQuerySet.as_manager()

    class Meta:
        ordering = ["-severity_rank", "-blocks", "opened_at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["task"],
                condition=Q(task__isnull=False) & ~Q(status="closed"),
                name="dispute_one_live_per_task",
            ),
            models.UniqueConstraint(
                fields=["project"],
                condition=Q(task__isnull=True) & ~Q(status="closed"),
                name="dispute_one_live_per_project",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["open", "ruled", "closed"]), name="dispute_status_known"
            ),
            models.CheckConstraint(
                condition=Q(snoozed_at__isnull=True, snoozed_until__isnull=True, snoozed_for="")
                | Q(snoozed_at__isnull=False, snoozed_until__isnull=False)
                | (Q(snoozed_at__isnull=False) & ~Q(snoozed_for="")),
                name="dispute_snoozed_until_something",
            ),
        ]
        indexes = [
            # Over all projects, for the queue: walked in order until the page is full.
            models.Index(
                fields=["-severity_rank", "-blocks", "opened_at", "id"],
                name="dispute_open_in_order",
                condition=Q(status="open"),
            ),
            models.Index(
                fields=["-severity_rank", "-blocks", "opened_at", "id"],
                name="dispute_ruled_in_order",
                condition=Q(status="ruled"),
            ),
            models.Index(
                fields=["-closed_at", "-id"], name="dispute_settled_in_order", condition=Q(status="closed")
            ),
            # Within one project.
            models.Index(
                fields=["project", "-severity_rank", "-blocks", "opened_at", "id"],
                name="dispute_queue",
                condition=Q(status="open"),
            ),
            models.Index(
                fields=["project", "-severity_rank", "-blocks", "opened_at", "id"],
                name="dispute_ruled",
                condition=Q(status="ruled"),
            ),
            models.Index(
                fields=["project", "-closed_at", "-id"], name="dispute_settled", condition=Q(status="closed")
            ),
            models.Index(
                fields=["project", "snoozed_until"],
                name="dispute_snoozed",
                condition=Q(status="open", snoozed_at__isnull=False),
            ),
            models.Index(fields=["assignee"], name="dispute_assigned", condition=Q(status="open")),
            models.Index(fields=["project", "opened_at"], name="dispute_by_day"),
        ]

    def __str__(self) -> str:
        return f"{self.ref} {self.question}"

    def save(self, *args: object, **kwargs: object) -> None:
        self.severity_rank = severity_rank(self.severity)
        super().save(*args, **kwargs)  # type: ignore[arg-type]

    @property
    def ref(self) -> str:
        """The name that people and the command use: D-7."""
        return f"D-{self.pk}"


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

    @property
    def choices(self) -> tuple[options.Choice, ...]:
        """What may be chosen on this card (OPT-1)."""
        return options.BETWEEN_STAGES if self.thread_id else options.offered(self.kind, self.origin)

    def choice(self, option: str) -> options.Choice | None:
        """The choice on this card, or None where the card does not offer it."""
        return next((each for each in self.choices if each.option == option), None)

    def standing_decision(self) -> "Decision | None":
        return self.decisions.standing().first()


# ARB-7
NO_POLICY_ON_CRITICAL = Trigger(
    "disputes_decision_policy",
    "disputes_decision",
    "INSERT",
    "no policy rules on a critical conflict",
    condition="NEW.authority = 'policy' AND EXISTS "
    "(SELECT 1 FROM disputes_conflict WHERE id = NEW.conflict_id AND severity = 'critical')",
)


class DecisionQuerySet(models.QuerySet["Decision"]):
    def standing(self) -> "DecisionQuerySet":
        """Rulings that hold: neither taken back nor archived with their round (DEC-8)."""
        return self.filter(revoked_at__isnull=True, archived_by__isnull=True)

    def unused(self) -> "DecisionQuerySet":
        """Rulings that no prompt has used: these may be undone."""
        return self.filter(used_at__isnull=True)


class Decision(models.Model):
    """The ruling on one conflict. Append-only but for the two one-way marks `used` and `revoked`."""

    class Authority(models.TextChoices):
        PERSON = "person"
        POLICY = "policy"

    conflict = models.ForeignKey(Conflict, on_delete=models.PROTECT, related_name="decisions")
    option = models.CharField(max_length=16, choices=[(o.value, o.value) for o in options.Option])
    text = models.TextField(blank=True)
    rationale = models.TextField(blank=True)
    constraints_text = models.TextField("constraints", blank=True)
    action = models.CharField(max_length=8, help_text="revise, review, accept, wait, retry, defer, cancel")
    before = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="The task before it moved, so that undo can restore it.",
    )
    expects_change = models.BooleanField()
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="decisions"
    )
    authority = models.CharField(max_length=6, choices=Authority, default=Authority.PERSON)
    policy_set_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+",
        help_text="Who set the policy by which the program ruled.",
    )  # fmt: skip
    shown_hash = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField(default=timezone.now)
    effective_at = models.DateTimeField(default=timezone.now)
    used_at = models.DateTimeField(null=True, blank=True)
    used_by_run = models.PositiveBigIntegerField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    revoked_reason = models.CharField(max_length=300, blank=True)
    seconds = models.FloatField(
        null=True, blank=True, editable=False, help_text="How long the person had the card before them."
    )
    bulk = models.ForeignKey(
        "disputes.Bulk", null=True, blank=True, editable=False, on_delete=models.PROTECT,
        related_name="decisions",
    )  # fmt: skip
    archived_by = models.ForeignKey(
        Rollback, null=True, blank=True, editable=False, on_delete=models.PROTECT, related_name="decisions",
        help_text="Its round was rolled back; it may be made again.",
    )  # fmt: skip

    objects = DecisionQuerySet.as_manager()
    triggers = (
        no_change_of(
            "disputes_decision",
            fixed=(
                "conflict_id", "option", "text", "rationale", "constraints_text", "expects_change",
                "user_id", "at", "authority", "policy_set_by_id",
            ),
            one_way=("used_at", "revoked_at", "archived_by_id"),
        ),
        NO_POLICY_ON_CRITICAL,
    )  # fmt: skip

    class Meta:
        ordering = ["-at"]
        constraints = [
            models.UniqueConstraint(
                fields=["conflict"],
                condition=Q(revoked_at__isnull=True, archived_by__isnull=True),
                name="decision_one_standing",
            ),
            models.CheckConstraint(
                condition=~Q(authority="person") | Q(user__isnull=False), name="decision_by_a_named_person"
            ),
            models.CheckConstraint(
                condition=~Q(authority="policy") | Q(user__isnull=True, policy_set_by__isnull=False),
                name="decision_policy_is_somebodys",
            ),
            models.CheckConstraint(
                condition=Q(used_at__isnull=True) | Q(revoked_at__isnull=True),
                name="decision_not_used_and_revoked",
            ),
        ]
        indexes = [models.Index(fields=["at"], name="decision_by_day")]

    def __str__(self) -> str:
        return f"{self.option} on {self.conflict_id}"

    @property
    def letter(self) -> str:
        """The key that chose it on its card."""
        choice = self.conflict.choice(self.option)
        return choice.letter if choice else options.letter(self.option)

    @property
    def by(self) -> str:
        """Who ruled, in words; of a policy whose it is."""
        person = self.user or self.policy_set_by
        name = person.get_full_name() or person.get_username() if person else ""
        return name if self.user else f"{name}\u2019s policy" if name else "the policy"

    @property
    def stands(self) -> bool:
        return self.revoked_at is None and self.archived_by_id is None

    @property
    def may_be_undone(self) -> bool:
        return self.used_at is None and self.stands


class Flag(models.Model):
    """Suspected silent disagreement on one finding: evidence and a level, never a verdict (SIL-10)."""

    class Level(models.TextChoices):
        LOG = "log"
        WARN = "warn"
        BLOCK = "block"
        REVIEW = "review"
        SYSTEMATIC = "systematic"

    class Status(models.TextChoices):
        OPEN = "open"
        ANSWERED = "answered"  # a later submission treats the finding
        ASKED = "asked"
        CONVERTED = "converted"
        WAIVED = "waived"
        FALSE_POSITIVE = "false_positive", "False alarm"
        MOOT = "moot"

    finding = models.ForeignKey(
        Finding, on_delete=models.PROTECT, related_name="flags", help_text="As it was raised first."
    )
    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="flags")
    heuristics = models.JSONField(default=list)
    confidence = models.CharField(max_length=8, blank=True)
    level = models.CharField(max_length=10, choices=Level)
    evidence = models.JSONField(default=list, blank=True)
    overlap = models.FloatField(null=True, blank=True)
    status = models.CharField(max_length=14, choices=Status, default=Status.OPEN)
    conflict = models.ForeignKey(
        Conflict, null=True, blank=True, on_delete=models.PROTECT, related_name="flags"
    )
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["finding", "submission"], name="flag_once")]
        indexes = [models.Index(fields=["at"], name="flag_by_day")]

    def __str__(self) -> str:
        return f"{', '.join(self.heuristics)} on {self.finding_id}"


class HeuristicScore(models.Model):
    """How often people confirmed and how often they refused what one heuristic flagged (SIL-14)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="heuristic_scores")
    heuristic = models.CharField(max_length=4)
    confirmed = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["project", "heuristic"]
        constraints = [models.UniqueConstraint(fields=["project", "heuristic"], name="heuristic_score_once")]

    def __str__(self) -> str:
        return f"{self.heuristic} in {self.project.slug}"
