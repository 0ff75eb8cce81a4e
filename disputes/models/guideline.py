"""Guidelines: what a project has settled for good, shown in the prompts of coders and reviewers."""

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.http import urlencode

from disputes.models.decision import Decision
from tasks.database.clock import estimated_time
from tasks.models import Project, Task
from tasks.models.moments import MomentField
from tasks.models.person import person

GUIDELINE_DAYS = 180  # the default when somebody writes one; after that it has to be renewed
TEXT_MAX = 2_000


class GuidelineQuerySet(models.QuerySet["Guideline"]):
    def for_task(self, task: Task) -> "GuidelineQuerySet":
        """Return the guidelines in force that are about this task, oldest first."""
        now = estimated_time()
        holding = self.filter(Q(expires_at=None) | Q(expires_at__gt=now), project=task.project_id)
        return holding.filter(tag__in=["", *task.tags]).order_by("pk")


class Guideline(models.Model):
    """A rule of the project, mostly taken from a ruling."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="guidelines")
    text = models.TextField(max_length=TEXT_MAX, help_text="Coders and reviewers read it in every prompt.")
    tag = models.CharField(
        max_length=60, blank=True, help_text="Only tasks with this tag are told; empty: all of the project."
    )
    decision = models.ForeignKey(
        Decision, null=True, blank=True, on_delete=models.PROTECT, related_name="guidelines",
        verbose_name="ruling", help_text="The ruling that it comes from.",
    )  # fmt: skip
    by = person(blank=False, editable=False)
    at = MomentField("since", editable=False)
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="Nobody is told of it from then on; empty: never."
    )

    objects = GuidelineQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.text[:80]

    def clean(self) -> None:
        if self.decision and self.project_id != self.decision.conflict.dispute.project_id:
            raise ValidationError({"decision": "This ruling is of another project."})

    @property
    def source(self) -> str:
        """The ref of the card that the guideline comes from, or "" if somebody just wrote it."""
        return self.decision.conflict.ref if self.decision else ""


def url_to_add(ruling: Decision) -> str:
    """Return the path of the form for a standing guideline, filled with the ruling's words."""
    words = ruling.text or ruling.conflict.question
    said = f"{words.strip()} {ruling.rationale.strip()}".strip()[:TEXT_MAX]
    about = {"project": ruling.conflict.dispute.project_id, "decision": ruling.pk, "text": said}
    return f"{reverse('admin:disputes_guideline_add')}?{urlencode(about)}"
