"""Decisions: the rulings on conflicts."""

from operator import attrgetter
from typing import Any

from django.db import models
from django.db.models import Exists, OuterRef, Q

from disputes.models.conflict import Conflict
from disputes.protocol.rulings import options
from tasks.database.triggers import Trigger, no_change, no_change_of, no_deletion
from tasks.events import Actor
from tasks.models import Rollback
from tasks.models.choices import NameField
from tasks.models.moments import MomentField
from tasks.models.person import person

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
        """Return the rulings in force: neither taken back nor archived with their round (DEC-8)."""
        return self.filter(revoked_at__isnull=True, archived_by__isnull=True)

    def of(self, task: Any) -> "DecisionQuerySet":
        """Return the rulings on the conflicts of one task, given as a row or a key."""
        return self.filter(conflict__dispute__task=task)

    def with_cited(self) -> "DecisionQuerySet":
        """Fetch the precedents that each ruling cites, in one more query."""
        return self.prefetch_related(with_their_cited())

    def awaited(self) -> "DecisionQuerySet":
        """Return the rulings that are still to be carried out."""
        return self.filter(conflict__followed=Conflict.Followed.WAITING)

    def unused(self) -> "DecisionQuerySet":
        """Return the rulings that no prompt has used, which may be undone."""
        return self.filter(used_at__isnull=True)

    def precedents(self) -> "DecisionQuerySet":
        """Return the rulings between two sides in force that no later ruling on the point has replaced."""
        later = Decision.objects.standing().filter(conflict=OuterRef("pk"), pk__gt=OuterRef(OuterRef("pk")))
        ruled_later = Conflict.objects.filter(Exists(later))
        following = ruled_later.filter(previous=OuterRef("conflict"))
        same_finding = ruled_later.filter(
            finding=OuterRef("conflict__finding"), kind=OuterRef("conflict__kind")
        )
        # Two subqueries, each answered by an index: with a single one SQLite would read all conflicts.
        return (
            self.standing()
            .filter(conflict__kind__in=Conflict.BETWEEN_TWO)
            .exclude(conflict__followed=Conflict.Followed.REOPENED)
            .exclude(Exists(following))
            .exclude(Exists(same_finding))
        )


class Decision(models.Model):
    """The ruling on one conflict. Its words never change; `used_at` and `revoked_at` are set only once."""

    class Authority(models.TextChoices):
        PERSON = "person"
        POLICY = "policy"

    conflict = models.ForeignKey(Conflict, on_delete=models.PROTECT, related_name="decisions")
    option = NameField(max_length=16, choices=[(o.value, o.value) for o in options.Option])
    text = models.TextField(blank=True)
    rationale = models.TextField(blank=True)
    constraints_text = models.TextField("constraints", blank=True)
    action = models.CharField(
        max_length=8, help_text="revise, review, accept, wait, retry, defer, cancel, finish"
    )
    before = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="The task before it moved, so that undo can restore it.",
    )
    expects_change = models.BooleanField()
    user = person(on_delete=models.PROTECT, related_name="decisions")
    authority = models.CharField(max_length=6, choices=Authority, default=Authority.PERSON)
    policy_set_by = person(
        on_delete=models.PROTECT, help_text="Who set the policy by which the program ruled."
    )
    shown_hash = models.CharField(max_length=64, blank=True)
    at = MomentField()
    effective_at = MomentField()
    used_at = models.DateTimeField(null=True, blank=True)
    used_by_run = models.PositiveBigIntegerField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = person(on_delete=models.PROTECT)
    revoked_reason = models.CharField(max_length=300, blank=True)
    seconds = models.FloatField(
        null=True, blank=True, editable=False, help_text="How long the person had the card before them."
    )
    bulk = models.ForeignKey(
        "disputes.Bulk", null=True, blank=True, editable=False, on_delete=models.PROTECT,
        related_name="decisions",
    )  # fmt: skip
    cites = models.ManyToManyField(
        "self", symmetrical=False, blank=True, editable=False, related_name="cited_by",
        help_text="The earlier rulings that it follows.",
    )  # fmt: skip
    retired_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Since when nobody is shown it as a precedent."
    )
    retired_by = person(editable=False, on_delete=models.PROTECT)
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
        no_change("disputes_decision_cites"),
        no_deletion("disputes_decision_cites"),
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
            models.CheckConstraint(
                condition=Q(retired_at__isnull=True, retired_by__isnull=True)
                | Q(retired_at__isnull=False, retired_by__isnull=False),
                name="decision_retired_by_somebody",
            ),
        ]
        indexes = [models.Index(fields=["at"], name="decision_by_day")]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.drafted_cites: list[Decision] = []  # saved once the ruling itself is

    def __str__(self) -> str:
        return f"{self.option} on {self.conflict_id}"

    @property
    def letter(self) -> str:
        """The letter or digit that stands for the chosen option on its card."""
        choice = self.conflict.choice(self.option)
        return choice.letter if choice else options.letter(self.option)

    @property
    def word(self) -> str:
        """What was ruled, in a word: A, B, C or D, or such as Retry if a card asked for help."""
        return self.letter if self.letter.isalpha() else self.option.replace("_", " ").capitalize()

    @property
    def by(self) -> str:
        """Who ruled, in words; for a policy, whose policy it is."""
        person = self.user or self.policy_set_by
        name = Actor.person(person).label if person else ""
        return name if self.user else f"{name}\u2019s policy" if name else "the policy"

    @property
    def cited(self) -> "list[Decision]":
        """The precedents that the ruling cites, oldest first; for a draft, those that it would cite."""
        return self.drafted_cites if self.pk is None else sorted(self.cites.all(), key=attrgetter("pk"))

    @property
    def citation(self) -> str:
        """A sentence that names the precedents the ruling cites, or "" if there are none."""
        refs = list(dict.fromkeys(each.as_cited for each in self.cited))
        return f"As ruled on {' and '.join(filter(None, [', '.join(refs[:-1]), refs[-1]]))}." if refs else ""

    @property
    def as_cited(self) -> str:
        """Its dispute, as a ruling that cites it names it, and whether it is still in force."""
        ref = self.conflict.dispute.ref
        if self.stands:
            return f"{ref} (reopened since)" if self.conflict.followed == Conflict.Followed.REOPENED else ref
        return f"{ref} (taken back since)"

    @property
    def stands(self) -> bool:
        return self.revoked_at is None and self.archived_by_id is None

    @property
    def may_be_undone(self) -> bool:
        return self.used_at is None and self.stands


def with_their_cited() -> "models.Prefetch[Any]":
    """Return the prefetch that loads the precedents cited by rulings."""
    return models.Prefetch("cites", queryset=Decision.objects.select_related("conflict__dispute"))


class PrecedentManager(models.Manager.from_queryset(DecisionQuerySet)):  # type: ignore[misc]
    def get_queryset(self) -> DecisionQuerySet:
        found: DecisionQuerySet = super().get_queryset().precedents()
        return found


class Precedent(Decision):
    """A ruling that later ones may cite, until it expires or somebody retires it."""

    objects = PrecedentManager()

    class Meta:
        proxy = True
        ordering = ["-at"]
