"""The admin of what machines wrote about the work, such as submissions and events. Nobody edits it."""

from operator import itemgetter
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Length
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.safestring import SafeString
from unfold.decorators import display

from tasks.admin.base import (
    BaseAdmin,
    ProjectFilter,
    ProjectScopedAdmin,
    ReadOnlyAdmin,
    SuperuserAdmin,
    labelled,
    preformatted,
    related,
    severity_label,
    short_sha,
    shortened,
    task_ref,
)
from tasks.events import words
from tasks.models import (
    Answer,
    Bundle,
    Checkpoint,
    Event,
    Finding,
    Idempotency,
    Landing,
    Review,
    Rollback,
    Submission,
    Verification,
)

SUBMISSION_LABELS = {
    "received": "neutral", "kept": "neutral", "verified": "success", "red": "danger", "lost": "danger",
}  # fmt: skip
LANDING_LABELS = dict.fromkeys(Landing.Status, "neutral") | {
    "landed": "success", "conflict": "warning", "stuck": "danger",
}  # fmt: skip


class RecordAdmin(ReadOnlyAdmin, ProjectScopedAdmin):
    """A read-only row of a project."""


class StandingFilter(admin.SimpleListFilter):
    """A filter by whether a row's round stands or was taken back."""

    title = "round"
    parameter_name = "back"
    path = "rolled_back"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("no", "Stands"), ("yes", "Taken back")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in {"no", "yes"}:
            return queryset
        return queryset.filter(**{f"{self.path}__isnull": self.value() == "no"})


@admin.register(Rollback)
class RollbackAdmin(RecordAdmin):
    """Which rounds of a task were taken back, and why."""

    project_path = "task__project"
    list_display = (task_ref, "from_round", "to_round", shortened("reason"), "by_label", "at")
    list_filter = (ProjectFilter,)
    list_select_related = ("task__project",)
    search_fields = ("reason", "task__title", "by_label")


@admin.register(Checkpoint)
class CheckpointAdmin(RecordAdmin):
    """The turns of a project: what was resolved, what came up, and whether the project converges."""

    list_display = (
        "project",
        "number",
        "resolved",
        "opened",
        "net",
        "weighted_net",
        labelled("state", {"CONVERGING": "success", "FLAT": "neutral", "DIVERGENCE_WARNING": "warning"}),
        "flat",
        "at",
    )
    list_filter = (ProjectFilter, "state")
    list_select_related = ("project",)


@admin.register(Submission)
class SubmissionAdmin(RecordAdmin):
    project_path = "task__project"
    list_display = (
        short_sha, task_ref, "round", "attempt", labelled("state", SUBMISSION_LABELS), "stands", "by_agent",
        "by_model", "at",
    )  # fmt: skip
    list_filter = (ProjectFilter, "state", StandingFilter)
    list_select_related = ("task__project",)
    search_fields = ("sha", "task__title", "by_agent", "by_model")
    exclude = ("diff", "patch_id")
    readonly_fields = ("diff_text",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Submission]:
        return super().get_queryset(request).defer("diff", "specification", "response")

    @display(description="stands", boolean=True)
    def stands(self, submission: Submission) -> bool:
        return submission.rolled_back_id is None

    @display(description="diff")
    def diff_text(self, submission: Submission) -> SafeString:
        return preformatted(submission.diff)


@admin.register(Bundle)
class BundleAdmin(RecordAdmin):
    project_path = "submission__task__project"
    list_display = ("submission", related("submission.task.ref", "task", "submission__task"), "size")
    list_filter = (ProjectFilter,)
    list_select_related = ("submission__task__project",)
    readonly_fields = ("size",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Bundle]:
        return super().get_queryset(request).defer("data").annotate(bytes=Length("data"))

    @display(description="size", ordering="bytes")
    def size(self, bundle: Any) -> str:
        return filesizeformat(bundle.bytes)


@admin.register(Verification)
class VerificationAdmin(RecordAdmin):
    list_display = (short_sha, "project", "green", "step", "exit_code", "seconds", "tier", "at")
    list_filter = (ProjectFilter, "green", "tier")
    list_select_related = ("project",)
    search_fields = ("sha", "step")
    exclude = ("tail",)
    readonly_fields = ("output",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Verification]:
        return super().get_queryset(request).defer("tail")

    @display(description="end of the output")
    def output(self, verification: Verification) -> SafeString:
        return preformatted(verification.tail)


@admin.register(Landing)
class LandingAdmin(RecordAdmin):
    list_display = (
        short_sha, task_ref, "target", labelled("status", LANDING_LABELS), "attempts", shortened("problem"),
        "at",
    )  # fmt: skip
    list_filter = (ProjectFilter, "status")
    list_select_related = ("task__project",)
    search_fields = ("sha", "task__title", "problem")


@admin.register(Review)
class ReviewAdmin(RecordAdmin):
    project_path = "submission__task__project"
    list_display = (
        "verdict", related("submission.task.ref", "task", "submission__task"),
        related("submission.round", "round", "submission__round"), "submission", "by_agent", "by_model", "at",
    )  # fmt: skip
    list_filter = (ProjectFilter, "verdict")
    list_select_related = ("submission__task__project",)
    search_fields = ("text", "by_agent", "submission__task__title")
    exclude = ("text",)
    readonly_fields = ("words",)

    @display(description="text")
    def words(self, review: Review) -> SafeString:
        return preformatted(review.text)


@admin.register(Finding)
class FindingAdmin(RecordAdmin):
    project_path = "task__project"
    list_display = (
        "code", severity_label, shortened("title"), task_ref, "round", "mandatory",
        related("location", "place", "path"),
    )  # fmt: skip
    list_display_links = ("code", "title")
    list_filter = (ProjectFilter, "severity", "mandatory", StandingFilter)
    list_select_related = ("task__project",)
    search_fields = ("code", "title", "path", "task__title")
    exclude = ("excerpt",)
    readonly_fields = ("code_at_its_place",)
    ordering = ("-pk",)

    @display(description="code at its place")
    def code_at_its_place(self, finding: Finding) -> SafeString:
        return preformatted(finding.excerpt)


@admin.register(Answer)
class AnswerAdmin(RecordAdmin):
    project_path = "submission__task__project"
    list_display = (
        related("finding.code", "finding", "finding__code"),
        related("submission.task.ref", "task", "submission__task"), "kind", shortened("text"), "submission",
    )  # fmt: skip
    list_filter = (ProjectFilter, "kind")
    list_select_related = ("submission__task__project", "finding")
    search_fields = ("text", "finding__code", "submission__task__title")
    ordering = ("-pk",)


class KindFilter(admin.SimpleListFilter):
    """A filter by the kinds of the latest events; to collect the kinds of all events would take seconds."""

    title = parameter_name = "kind"
    lately = 5000

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        latest = model_admin.get_queryset(request).order_by("-pk").values_list("kind", flat=True)
        return sorted(((kind, words(kind)) for kind in set(latest[: self.lately])), key=itemgetter(1))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(kind=self.value()) if self.value() else queryset


@admin.register(Event)
class EventAdmin(RecordAdmin):
    list_display = ("at", "what", "about", "move", "label", "actor_kind", shortened("note"))
    list_filter = (ProjectFilter, "actor_kind", KindFilter)
    list_select_related = ("project", "task__project")
    search_fields = ("note", "label")

    @display(description="kind")
    def what(self, event: Event) -> str:
        return words(event.kind)

    @display(description="task or project")
    def about(self, event: Event) -> str:
        return event.task.ref if event.task else event.project.slug

    @display(description="from \N{RIGHTWARDS ARROW} to")
    def move(self, event: Event) -> str:
        old, new = (status.replace("_", " ") for status in (event.from_status, event.to_status))
        return f"{old or 'new'} \N{RIGHTWARDS ARROW} {new}" if new and new != old else new or "-"


@admin.register(Idempotency)
class IdempotencyAdmin(ReadOnlyAdmin, SuperuserAdmin, BaseAdmin):
    list_display = ("actor", "key", "status", "at")
    list_filter = ("status",)
    search_fields = ("actor", "key")
    date_hierarchy = "at"
