from django.db import models
from django.db.models import OuterRef, Q

from disputes.models.conflict import Conflict
from tasks.models.moments import MomentField
from tasks.models.person import person


class OpinionQuerySet(models.QuerySet["Opinion"]):
    def asked(self) -> "OpinionQuerySet":
        """Return the opinions that were asked for and are neither given nor given up."""
        return self.filter(state=Opinion.State.ASKED)

    def judge_before_ruling(self) -> "OpinionQuerySet":
        """Return what a judge had said when the ruling of the outer query was made, newest first."""
        given = self.filter(kind=Opinion.Kind.JUDGE, state=Opinion.State.GIVEN)
        return given.filter(conflict=OuterRef("conflict"), given_at__lte=OuterRef("at")).order_by("-pk")

    def wanted(self) -> "OpinionQuerySet":
        """Return the opinions asked for on conflicts that still wait for a ruling."""
        return self.asked().filter(conflict__status=Conflict.Status.OPEN)


class Opinion(models.Model):
    """What a judge or a mediator was asked about a conflict and answered; it is never a ruling (ARB-7)."""

    class Kind(models.TextChoices):
        JUDGE = "judge"
        MEDIATOR = "mediator"

    class State(models.TextChoices):
        ASKED = "asked"
        GIVEN = "given"
        LATE = "late", "Given too late"  # the conflict was settled meanwhile
        FAILED = "failed", "Nobody gave it"

    class Verdict(models.TextChoices):
        ENFORCE = "enforce"  # the reviewer is right
        DISMISS = "dismiss"  # the coder is right
        ESCALATE = "escalate"  # a human has to say
        PROPOSE = "propose"  # a mediator's synthesis
        NONE = "none", "Nothing to propose"

    conflict = models.ForeignKey(Conflict, on_delete=models.PROTECT, related_name="opinions")
    kind = models.CharField(max_length=8, choices=Kind)
    state = models.CharField(max_length=6, choices=State, default=State.ASKED)
    asked_by = person(help_text="Empty: the project's policy asked.")
    asked_at = MomentField()
    verdict = models.CharField(max_length=8, blank=True, choices=Verdict)
    reasons = models.TextField(blank=True)
    text = models.TextField(blank=True, help_text="The hand-in as it came; of a mediator its proposal.")
    trade_off = models.TextField(blank=True)
    by_agent = models.CharField(max_length=120, blank=True)
    by_model = models.CharField(max_length=120, blank=True)
    by_vendor = models.CharField(max_length=60, blank=True)
    given_at = models.DateTimeField(null=True, blank=True)

    objects = OpinionQuerySet.as_manager()

    class Meta:
        ordering = ["conflict", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["conflict", "kind"], condition=Q(state="asked"), name="opinion_asked_once"
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["given", "late"]) | (~Q(verdict="") & Q(given_at__isnull=False)),
                name="opinion_given_says_something",
            ),
        ]
        indexes = [models.Index(fields=["asked_at"], name="opinion_asked", condition=Q(state="asked"))]

    def __str__(self) -> str:
        return f"{self.kind} on {self.conflict.ref}: {self.verdict or self.state}"
