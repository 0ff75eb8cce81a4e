"""The queue: one dispute for everything about a task, or a whole project, that waits for a human."""

from django.db import models
from django.db.models import Case, Q, Value, When

from tasks import base
from tasks.models import SEVERITY_CHOICES, Project, Task
from tasks.models.moments import MomentField
from tasks.models.person import person
from tasks.states import SEVERITY_RANK, Severity
from tasks.text.counting import counted

# What may wake a snoozed dispute besides a time.
SNOOZE_CONDITIONS = [
    ("submission", "Something new is handed in"),
    ("comment", "Somebody comments"),
    ("landing", "A task it waits for has landed"),
]


class DisputeQuerySet(models.QuerySet["Dispute"]):
    def open(self) -> "DisputeQuerySet":
        """Return the disputes in which something is not ruled on."""
        return self.filter(status=Dispute.Status.OPEN)

    def waiting(self) -> "DisputeQuerySet":
        """Return the open disputes that wait for a human: in a project that has ended, nothing does."""
        return self.open().of_what_goes_on()

    def of_what_goes_on(self) -> "DisputeQuerySet":
        """Leave out the disputes of ended projects, without a join, so that an order stays cheap."""
        return self.exclude(project__in=Project.objects.filter(status=Project.Status.FINISHED))

    def live(self) -> "DisputeQuerySet":
        """Return the disputes that are not closed: waiting for a human, or ruled and not carried out yet."""
        return self.exclude(status=Dispute.Status.CLOSED)

    def in_order(self) -> "DisputeQuerySet":
        """Sort in the queue's order: severity, number of tasks blocked, age (OPT-8)."""
        return self.order_by("-severity_rank", "-blocks", "opened_at", "pk")


class Dispute(models.Model):
    """The queue's entry for one task or project: everything about it that waits for a human."""

    class Status(models.TextChoices):
        OPEN = "open"
        RULED = "ruled"
        CLOSED = "closed"

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="disputes", db_index=False)
    task = models.ForeignKey(Task, null=True, blank=True, on_delete=models.PROTECT, related_name="disputes")
    status = models.CharField(max_length=6, choices=Status, default=Status.OPEN)
    severity = models.CharField(max_length=8, choices=SEVERITY_CHOICES)
    severity_rank = models.GeneratedField(
        expression=Case(
            *(When(severity=each.value, then=Value(rank)) for each, rank in SEVERITY_RANK.items()),
            default=Value(SEVERITY_RANK[Severity.MEDIUM]),
        ),
        output_field=models.PositiveSmallIntegerField(),
        db_persist=True,
    )
    blocks = models.PositiveIntegerField(default=0, help_text="Unfinished tasks that wait for this one.")
    question = models.CharField(max_length=500)
    search_text = models.TextField(
        blank=True, default="", editable=False, help_text="What a search of the queue reads."
    )
    opened_at = MomentField()
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_reason = models.CharField(max_length=40, blank=True)
    claimed_by = person(help_text="Who looks at it now; keeps nobody from ruling.")
    claimed_until = models.DateTimeField(null=True, blank=True)
    assignee = person(related_name="assigned_disputes")
    snoozed_at = models.DateTimeField(null=True, blank=True)
    snoozed_by = person()
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
            # Over all projects, for the queue, which walks an index in order until the page is full.
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

    @property
    def ref(self) -> str:
        """The name that people and the command use, such as D-7."""
        return f"D-{self.pk}"

    @property
    def blocks_project(self) -> bool:
        """Whether the whole project waits for the dispute, as nobody may begin on the branch it is about."""
        return self.task_id is None and self.status == self.Status.OPEN and base.holds_back(self.project)

    @property
    def blocks_words(self) -> str:
        """What waits for the dispute, such as "3 tasks" or "the project"; empty if nothing does."""
        if self.blocks_project:
            return "the project"
        return counted(self.blocks, "task") if self.blocks else ""
