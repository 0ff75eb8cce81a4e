from django.db import models
from django.db.models import Q

from disputes.protocol.rulings.synthesis import Source
from tasks.models.moments import MomentField

BY_MAX = 120


class Proposal(models.Model):
    """A synthesis on a conflict, found by a rule or handed in by somebody (OPT-2, OPT-3).

    It is never changed: a better one is another row. The conflict's `proposal` is what it offers as option C.
    """

    conflict = models.ForeignKey(
        "disputes.Conflict", on_delete=models.PROTECT, related_name="proposals",
        help_text="On which it was made; those that go on with it keep it.",
    )  # fmt: skip
    source = models.CharField(max_length=8, choices=[(source.value, source.value) for source in Source])
    by_label = models.CharField(max_length=BY_MAX, help_text="Who wrote it, or what the rule looked at.")
    text = models.TextField(help_text="What both sides could live with.")
    trade_off = models.TextField(blank=True)
    covers_both = models.BooleanField(default=False)
    at = MomentField()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(condition=~Q(text=""), name="proposal_says_something"),
            models.CheckConstraint(
                condition=Q(source__in=["rule", "judge", "mediator", "human"]), name="proposal_source_known"
            ),
        ]

    def __str__(self) -> str:
        return f"option C by {self.by}"

    @property
    def by(self) -> str:
        """Whose proposal it is, in words."""
        return f"rule on {self.by_label}" if self.source == Source.RULE else f"{self.source} {self.by_label}"
