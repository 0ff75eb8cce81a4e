from collections.abc import Iterable
from typing import Any

from django.db import models
from django.db.models import Q

from tasks.models.choices import SEVERITY_CHOICES
from tasks.models.moments import MomentField
from tasks.models.person import person
from tasks.models.project import Project
from tasks.models.submission import Rollback, RoundQuerySet, Submission
from tasks.models.task import Task
from tasks.text.places import location_of


class ReviewQuerySet(RoundQuerySet["Review"]):
    path = "submission__"

    def of_turn(self, submission: Any, turn: Any) -> "ReviewQuerySet":
        """Return the reviews by all reviewers of the submission in this turn of its task."""
        return self.filter(submission=submission, turn=turn)


class Review(models.Model):
    """One reviewer's verdict on one submission."""

    class Verdict(models.TextChoices):
        APPROVED = "APPROVED"
        APPROVED_WITH_CONDITIONS = "APPROVED_WITH_CONDITIONS"
        NEEDS_REVISION = "NEEDS_REVISION"

    submission = models.ForeignKey(
        Submission, on_delete=models.PROTECT, related_name="reviews", db_index=False
    )
    version = models.PositiveSmallIntegerField(default=1)
    verdict = models.CharField(max_length=24, choices=Verdict)
    raw_verdict = models.CharField(max_length=80, blank=True)
    text = models.TextField(blank=True)
    by_agent = models.CharField(max_length=120)
    by_model = models.CharField(max_length=120, blank=True)
    by_vendor = models.CharField(max_length=60, blank=True)
    by_user = person()
    turn = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="The task's turn; the reviews of one turn count together."
    )
    origin_path = models.CharField(max_length=300, blank=True, help_text="The file it was imported from.")
    content_sha256 = models.CharField(max_length=64, blank=True)
    superseded_by = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="supersedes"
    )
    at = MomentField()

    objects = ReviewQuerySet.as_manager()

    class Meta:
        ordering = ["-at"]
        constraints = [
            models.UniqueConstraint(fields=["submission", "by_agent", "version"], name="review_version_once")
        ]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.by_agent}"

    def of_its_turn(self) -> "ReviewQuerySet":
        """Return this review and the others of the same submission in the same turn of the task."""
        if self.turn is None:
            return Review.objects.filter(pk=self.pk)
        return Review.objects.of_turn(self.submission_id, self.turn)


class FindingQuerySet(RoundQuerySet["Finding"]):
    def of_points(self, origins: Iterable[Any]) -> "FindingQuerySet":
        """Return every finding that raises one of these points, named by the keys of their first findings."""
        return self.filter(Q(pk__in=origins) | Q(first__in=origins))


class Finding(models.Model):
    """One point of a review.

    `first` refers to the finding that first raised the same point; rulings are attached to that one.
    """

    review = models.ForeignKey(Review, on_delete=models.PROTECT, related_name="findings", db_index=False)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="findings", db_index=False)
    ordinal = models.PositiveSmallIntegerField()
    round = models.PositiveSmallIntegerField()
    code = models.CharField(max_length=24)
    raw_code = models.CharField(max_length=60, blank=True, help_text="What the reviewer printed.")
    severity = models.CharField(max_length=8, choices=SEVERITY_CHOICES)
    raw_severity = models.CharField(max_length=40, blank=True)
    mandatory = models.BooleanField()
    title = models.CharField(max_length=500)
    path = models.CharField(max_length=300, blank=True)
    line = models.PositiveIntegerField(null=True, blank=True)
    impact = models.TextField(blank=True)
    suggestion = models.TextField(blank=True)
    text = models.TextField(blank=True, help_text="The finding as the reviewer wrote it.")
    excerpt = models.TextField(blank=True, help_text="The code at its place, in the reviewed commit.")
    excerpt_start = models.PositiveIntegerField(null=True, blank=True)
    is_follow_up = models.BooleanField(
        default=False, help_text="New on lines that the last review had before it; it does not block."
    )
    is_withdrawn = models.BooleanField(default=False)
    first_severity = models.CharField(max_length=8, blank=True, help_text="Before a person changed it.")
    lowered_by = person()
    lowered_reason = models.TextField(blank=True)
    rolled_back = models.ForeignKey(
        Rollback, null=True, blank=True, editable=False, on_delete=models.PROTECT, related_name="findings"
    )
    same_as_score = models.FloatField(
        null=True, blank=True, help_text="How like the first one it reads, 0 to 1; empty: the same code."
    )
    possibly = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="+",
        help_text="An earlier finding that reads alike; a person says whether it is the same.",
    )  # fmt: skip
    first = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="repeats")
    gap = models.ForeignKey(
        Task, null=True, blank=True, on_delete=models.SET_NULL, related_name="gap_findings",
        help_text="The gap that it is about, where its task is a session.",
    )  # fmt: skip

    objects = FindingQuerySet.as_manager()

    class Meta:
        ordering = ["review", "ordinal"]
        constraints = [
            models.UniqueConstraint(fields=["review", "ordinal"], name="finding_ordinal_once"),
            models.UniqueConstraint(
                fields=["task", "code"], condition=Q(rolled_back__isnull=True), name="finding_code_once"
            ),
        ]
        indexes = [models.Index(fields=["task", "first"], name="finding_by_first")]

    def __str__(self) -> str:
        return f"{self.code} {self.title}"

    @property
    def origin(self) -> "Finding":
        """The finding that first raised this point; itself if it is the first."""
        return self.first or self

    def chain(self) -> FindingQuerySet:
        """Return every finding that raised this point, including those of rounds that were rolled back."""
        return Finding.objects.of_points([self.origin.pk])

    def newest(self) -> "Finding | None":
        """Return this point as it was last raised in rounds that were not rolled back, or None."""
        return self.chain().standing().order_by("pk").last()

    @property
    def location(self) -> str:
        return location_of(self.path, self.line)


class AnswerQuerySet(RoundQuerySet["Answer"]):
    path = "submission__"

    def given(self) -> "AnswerQuerySet":
        """Return the answers that a coder gave, without those that record a finding passed over."""
        return self.exclude(kind=Answer.Kind.SILENT)


class Answer(models.Model):
    """How a submission responds to a finding."""

    class Kind(models.TextChoices):
        ADDRESSED = "addressed"
        DECLINED = "declined"
        DISCARDED = "discarded"
        DEFERRED = "deferred"
        PARTLY = "partly"
        USER_DECISION = "user_decision", "Left to a person"
        MOOTED = "mooted", "Mooted by a redesign"
        ACCEPTED_AS_IS = "accepted_as_is", "Accepted as it is"
        SILENT = "silent"

    submission = models.ForeignKey(
        Submission, on_delete=models.PROTECT, related_name="answers", db_index=False
    )
    finding = models.ForeignKey(Finding, on_delete=models.PROTECT, related_name="answers")
    kind = models.CharField(max_length=14, choices=Kind)
    text = models.TextField(blank=True)
    line = models.PositiveIntegerField(null=True, blank=True)
    place = models.CharField(
        max_length=20, blank=True, help_text="Where in the response it stands: a row, a block, a sentence."
    )

    objects = AnswerQuerySet.as_manager()

    class Meta:
        ordering = ["submission", "pk"]
        constraints = [models.UniqueConstraint(fields=["submission", "finding"], name="answer_once")]

    def __str__(self) -> str:
        return f"{self.finding_id}: {self.kind}"


class Comment(models.Model):
    """A remark on a task; it may point at a place and reply to another remark."""

    class Status(models.TextChoices):
        OPEN = "open"
        RESOLVED = "resolved"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="comments")
    task = models.ForeignKey(Task, null=True, blank=True, on_delete=models.CASCADE, related_name="comments")
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="replies"
    )
    target = models.CharField(max_length=300, blank=True, help_text="An artifact, a test, a section.")
    body = models.TextField()
    by_label = models.CharField(max_length=120)
    by_kind = models.CharField(max_length=8)
    by_user = person()
    status = models.CharField(max_length=8, choices=Status, default=Status.OPEN)
    resolution = models.CharField(
        max_length=8, blank=True, choices=[("accepted", "Accepted"), ("rejected", "Rejected")]
    )
    stage = models.CharField(max_length=40, blank=True, help_text="Where its writer worked.")
    sends = models.CharField(
        max_length=7, blank=True, choices=[("back", "Sent back"), ("forward", "Disagreed")],
        help_text="How the task moved with it.",
    )  # fmt: skip
    at = MomentField()

    class Meta:
        ordering = ["at"]
        constraints = [
            models.CheckConstraint(condition=~Q(body=""), name="comment_says_something"),
        ]

    def __str__(self) -> str:
        return self.body[:60]
