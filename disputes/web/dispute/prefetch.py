"""The rows that a dispute's page reads, in as many queries for a long history as for a short one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils.functional import cached_property

from disputes.closed_findings import settled_among
from disputes.models import Conflict, Dispute, Flag, Follow, Opinion
from disputes.models.decision import with_their_cited
from disputes.rulings.blocking import still_blocking
from tasks.database.prepared import Prepared
from tasks.models import Answer, Finding, Review, Submission, Task

FLAG = ("level", "heuristics", "overlap")  # what a conflict's page shows about its newest flag


def with_people(disputes: models.QuerySet[Dispute], user: Any) -> models.QuerySet[Dispute]:
    """Add task, project and holders to the disputes, with `is_followed` and `last_round`.

    With each further join PostgreSQL plans for twice as long, so what is seldom shown is not joined. The two
    columns say whether the person follows the dispute, and which round was reviewed last.
    """
    reviews = Review.objects.standing().filter(submission__task=models.OuterRef("task"))
    return disputes.select_related("project", "task__section", "claimed_by", "assignee").annotate(
        last_round=models.Subquery(reviews.order_by("-submission__round").values("submission__round")[:1]),
        is_followed=models.Exists(Follow.objects.filter(dispute=models.OuterRef("pk"), user=user.pk)),
    )


def conflicts_around(dispute: Dispute) -> list[Conflict]:
    """Return all conflicts of the dispute's task, including those of its earlier disputes, oldest first.

    That takes one query, and one more each for opinions, for what the rulings cite and for the people whose
    policies ruled, if there are any.
    Each conflict has its finding, how that was `answered` in each round, what its submission answered to it
    (`answer_kind`, `answer_text`), its standing rulings as `rulings`, its opinions, and what its newest flag
    says (`flag_level`, `flag_heuristics`, `flag_overlap`).
    """
    about = _conflicts_of_task if dispute.task_id else _conflicts_of_dispute
    found: list[Any] = about.found(dispute.task_id or dispute.pk)
    for conflict in found:
        conflict.rulings = [conflict.ruling] if hasattr(conflict, "ruling") else []
        if conflict.dispute_id == dispute.pk:
            conflict.dispute = dispute
    asked = Opinion.objects.select_related("asked_by").order_by("pk")
    if not any(conflict.has_opinions for conflict in found):
        asked = asked.none()
    models.prefetch_related_objects(found, models.Prefetch("opinions", queryset=asked))
    rulings = [ruling for each in found for ruling in each.rulings]
    models.prefetch_related_objects(rulings, with_their_cited(), "policy_set_by")
    return found


class KindsByRound(models.Subquery):
    """The kinds of answers by the number of their round, or None if there are none."""

    template = "(SELECT JSON_GROUP_OBJECT(number, kind) FROM (%(subquery)s) AS answered)"
    output_field = models.JSONField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Return what makes the same of the rows on PostgreSQL."""
        template = self.template.replace("JSON_GROUP_OBJECT", "JSONB_OBJECT_AGG")
        return self.as_sql(compiler, connection, template=template, **context)


def _conflicts(about: models.Q) -> models.QuerySet[Any]:
    standing = models.Q(decisions__revoked_at__isnull=True, decisions__archived_by__isnull=True)
    flags = Flag.objects.filter(conflict=models.OuterRef("pk")).order_by("-pk")
    answers = Answer.objects.standing().filter(finding=models.OuterRef("finding")).order_by("pk")
    of_it = Answer.objects.given().filter(
        finding=models.OuterRef("finding"), submission=models.OuterRef("submission")
    )
    # By constraint a conflict has at most one standing ruling, so no row comes twice.
    rows = Conflict.objects.filter(about).annotate(
        ruling=models.FilteredRelation("decisions", condition=standing),
        has_opinions=models.Exists(Opinion.objects.filter(conflict=models.OuterRef("pk"))),
        answered=KindsByRound(answers.values("kind", number=models.F("submission__round"))),
        answer_kind=models.Subquery(of_it.values("kind")[:1]),
        answer_text=models.Subquery(of_it.values("text")[:1]),
        **{f"flag_{name}": models.Subquery(flags.values(name)[:1]) for name in FLAG},
    )
    shown = ("finding", "raised_as", "proposal", "ruling__user")
    return rows.select_related(*shown).order_by("pk")


_conflicts_of_task = Prepared(lambda task: _conflicts(models.Q(dispute__task=task)))
_conflicts_of_dispute = Prepared(lambda dispute: _conflicts(models.Q(dispute=dispute)))


def _findings_of(task: Any, submission: Any, finding: Any) -> models.QuerySet[Finding]:
    """Return the task's findings that the page needs.

    They are those of the submission's last review, all occurrences of the finding, and those that a person
    has to compare.
    """
    reviews = Review.objects.filter(submission=submission).order_by("-pk")
    wanted = models.Q(possibly__isnull=False) | models.Q(review__in=reviews.values("pk")[:1])
    wanted |= models.Q(review__submission=submission, review__turn__in=reviews.values("turn")[:1])
    wanted |= models.Q(pk=finding) | models.Q(first=finding)
    findings = Finding.objects.filter(wanted, task=task).select_related("review", "possibly", "first")
    return findings.defer("review__text").order_by("pk")


def _submissions_of(task: Any, disputed: Any, reviewed: Any) -> models.QuerySet[Any]:
    """Return the disputed submission, the reviewed one and the newest of the task."""
    newest = Submission.objects.standing().filter(task=task).newest_first().values("pk")[:1]
    reviews = Review.objects.filter(submission=models.OuterRef("pk")).order_by("-pk")
    wanted = models.Q(pk=disputed) | models.Q(pk=reviewed) | models.Q(pk__in=newest)
    rows = Submission.objects.filter(wanted, task=task).defer("since_last_round")
    return rows.annotate(
        newest_review=models.Subquery(reviews.values("pk")[:1]),
        newest_turn=models.Subquery(reviews.values("turn")[:1]),
        newest=models.Subquery(newest),
    ).order_by("pk")


# In both, the key 0, which no row has, stands for none.
_findings_around, _submissions_around = Prepared(_findings_of), Prepared(_submissions_of)


@dataclass
class Rows:
    """The findings and submissions around one conflict, in two queries."""

    conflict: Conflict
    task: Task | None

    @cached_property
    def _findings(self) -> list[Finding]:
        if self.task is None:
            return []
        conflict = self.conflict
        found: list[Finding] = _findings_around.found(
            self.task.pk, conflict.submission_id or 0, conflict.finding_id or 0
        )
        for finding in found:
            finding.task = self.task
        return found

    @cached_property
    def raised(self) -> list[Finding]:
        """Each occurrence of the finding, oldest first."""
        about = self.conflict.finding_id
        return [each for each in self._findings if about and about in {each.pk, each.first_id}]

    @property
    def compared(self) -> list[Finding]:
        """The task's findings that a person has to compare with earlier ones."""
        asked = [each for each in self._findings if each.possibly_id and not each.is_withdrawn]
        return [each for each in asked if each.rolled_back_id is None]

    @cached_property
    def _last_raised(self) -> Finding | None:
        shown = self.conflict.raised_as_id or self.conflict.finding_id
        return next((one for one in self.raised if one.pk == shown), None)

    @cached_property
    def finding(self) -> Finding | None:
        """The finding as it was last raised before the conflict was opened, with the submission reviewed."""
        finding = self._last_raised
        if finding and (reviewed := self.submissions.get(finding.review.submission_id)):
            finding.review.submission = reviewed
        return finding

    @cached_property
    def submissions(self) -> dict[int, Any]:
        """The disputed submission, the reviewed one and the newest of the task, by their keys.

        Each knows the key of its own newest review, and of the `newest` submission.
        """
        if self.task is None:
            return {}
        reviewed = self._last_raised.review.submission_id if self._last_raised else 0
        found = _submissions_around.found(self.task.pk, self.conflict.submission_id or 0, reviewed)
        for submission in found:
            submission.task = self.task
        return {submission.pk: submission for submission in found}

    @property
    def newest(self) -> Submission | None:
        """The newest submission of the rounds that were not rolled back, or None."""
        return next((row for row in self.submissions.values() if row.pk == row.newest), None)

    def code_now(self) -> list[Submission]:
        """Return what `rulings.shown_hash` reads: the disputed submission and the newest one."""
        shown = {self.conflict.submission_id, self.newest.pk if self.newest else None}
        return [row for pk, row in self.submissions.items() if pk in shown]

    def blockers(self, around: Iterable[Conflict]) -> set[int] | None:
        """Return `rulings.blockers_of` for the disputed submission, from rows that were read anyway."""
        disputed = self.submissions.get(self.conflict.submission_id or 0)
        if disputed is None:
            return None
        newest = (disputed.newest_review, disputed.newest_turn) if disputed.newest_review else None
        raised = [each for each in self._findings if each.review.submission_id == disputed.pk]
        settled = settled_among((each, next(iter(each.rulings), None)) for each in around)
        return still_blocking(disputed, newest, raised, settled)
