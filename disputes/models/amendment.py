"""What rulings add to the specification of their project."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from disputes.models.decision import Decision
from tasks.models import Task
from tasks.models.moments import MomentField
from tasks.models.person import person


class AmendmentQuerySet(models.QuerySet["Amendment"]):
    def live(self) -> "AmendmentQuerySet":
        """Return the amendments that were neither dropped nor failed to be drafted."""
        return self.filter(state__in=Amendment.LIVE)


class Amendment(models.Model):
    """A ruling on its way into the specification: a host drafts it, a person approves, a task lands it."""

    class State(models.TextChoices):
        ASKED = "asked", "Being drafted"
        DRAFTED = "drafted", "Waits for approval"
        APPROVED = "approved", "Approved"
        DROPPED = "dropped", "Dropped"
        FAILED = "failed", "Cannot be drafted"

    LIVE = (State.ASKED, State.DRAFTED, State.APPROVED)

    decision = models.ForeignKey(Decision, on_delete=models.PROTECT, related_name="amendments")
    path = models.CharField(max_length=300, help_text="The specification, as a path in the repository.")
    words = models.TextField(help_text="What is added to it.")
    state = models.CharField(max_length=8, choices=State, default=State.ASKED)
    version = models.PositiveIntegerField(default=0, help_text="Counts its moves.")
    section = models.CharField(max_length=300, blank=True, help_text="Where it stands in the specification.")
    base_sha = models.CharField(max_length=64, blank=True)
    sha = models.CharField(max_length=64, blank=True, help_text="The commit that was drafted.")
    diff = models.TextField(blank=True)
    problem = models.CharField(max_length=500, blank=True)
    task = models.OneToOneField(
        Task, null=True, blank=True, on_delete=models.PROTECT, related_name="amendment",
        help_text="It carries the approved commit to the target branch.",
    )  # fmt: skip
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    asked_at = MomentField()
    settled_by = person(on_delete=models.PROTECT, help_text="Who approved or dropped it.")
    settled_at = models.DateTimeField(null=True, blank=True)

    objects = AmendmentQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["decision"],
                condition=Q(state__in=["asked", "drafted", "approved"]),
                name="amendment_one_live_per_ruling",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["drafted", "approved"]) | ~Q(sha=""),
                name="amendment_drafted_has_a_commit",
            ),
            models.CheckConstraint(
                condition=~Q(state="approved") | Q(settled_by__isnull=False, task__isnull=False),
                name="amendment_approved_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return f"Amendment {self.pk} of {self.path}"

    @property
    def stands_in(self) -> str:
        """The amendment's state in a word or two."""
        if self.state == self.State.APPROVED and self.task and self.task.landed_at:
            return "Landed"
        return self.get_state_display()
