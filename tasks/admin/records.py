"""The admin of what machines wrote about the work, such as submissions and events. Nobody edits it."""

from operator import itemgetter
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Length
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from unfold.decorators import display

from tasks import models
from tasks.admin import base
from tasks.events import words

SUBMISSION_LABELS = {
    "received": "neutral", "kept": "neutral", "verified": "success", "red": "danger", "lost": "danger",
}  # fmt: skip
LANDING_LABELS = dict.fromkeys(models.Landing.Status, "neutral") | {
    "landed": "success", "conflict": "warning", "stuck": "danger",
}  # fmt: skip


class RecordAdmin(base.ReadOnlyAdmin, base.ProjectScopedAdmin):
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


@admin.register(models.Rollback)
class RollbackAdmin(RecordAdmin):
    """Which rounds of a task were taken back, and why."""

    project_path = "task__project"
    list_display = (base.task_ref, "from_round", "to_round", base.shortened("reason"), "by_label", "at")
    list_filter = (base.ProjectFilter,)
    list_select_related = ("task__project",)
    search_fields = ("reason", "task__title", "by_label")


@admin.register(models.Checkpoint)
class CheckpointAdmin(RecordAdmin):
    """The turns of a project: what was resolved, what came up, and whether the project converges."""

    list_display = (
        "project",
        "number",
        "resolved",
        "opened",
        "net",
        "weighted_net",
        base.labelled("state", {"CONVERGING": "success", "FLAT": "neutral", "DIVERGENCE_WARNING": "warning"}),
        "flat",
        "at",
    )
    list_filter = (base.ProjectFilter, "state")
    list_select_related = ("project",)


@admin.register(models.Submission)
class SubmissionAdmin(RecordAdmin):
    project_path = "task__project"
    list_display = (
        base.short_sha, base.task_ref, "round", "attempt", base.labelled("state", SUBMISSION_LABELS),
        "stands", "by_agent", "by_model", "at",
    )  # fmt: skip
    list_filter = (base.ProjectFilter, "state", StandingFilter)
    list_select_related = ("task__project",)
    search_fields = ("sha", "task__title", "by_agent", "by_model")
    exclude = ("diff", "patch_id")
    readonly_fields = (base.in_full("diff", "diff"),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[models.Submission]:
        return super().get_queryset(request).defer("diff", "specification", "response")

    @display(description="stands", boolean=True)
    def stands(self, submission: models.Submission) -> bool:
        return submission.rolled_back_id is None


@admin.register(models.Bundle)
class BundleAdmin(RecordAdmin):
    project_path = "submission__task__project"
    list_display = ("submission", base.related("submission.task.ref", "task", "submission__task"), "size")
    list_filter = (base.ProjectFilter,)
    list_select_related = ("submission__task__project",)
    readonly_fields = ("size",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[models.Bundle]:
        return super().get_queryset(request).defer("data").annotate(bytes=Length("data"))

    @display(description="size", ordering="bytes")
    def size(self, bundle: Any) -> str:
        return filesizeformat(bundle.bytes)


@admin.register(models.Verification)
class VerificationAdmin(RecordAdmin):
    list_display = (base.short_sha, "project", "green", "step", "exit_code", "seconds", "tier", "at")
    list_filter = (base.ProjectFilter, "green", "tier")
    list_select_related = ("project",)
    search_fields = ("sha", "step")
    exclude = ("tail",)
    readonly_fields = (base.in_full("tail", "end of the output"),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[models.Verification]:
        return super().get_queryset(request).defer("tail")


@admin.register(models.Landing)
class LandingAdmin(RecordAdmin):
    list_display = (
        base.short_sha, base.task_ref, "target", base.labelled("status", LANDING_LABELS), "attempts",
        base.shortened("problem"), "at",
    )  # fmt: skip
    list_filter = (base.ProjectFilter, "status")
    list_select_related = ("task__project",)
    search_fields = ("sha", "task__title", "problem")


@admin.register(models.Review)
class ReviewAdmin(RecordAdmin):
    project_path = "submission__task__project"
    list_display = (
        "verdict", base.related("submission.task.ref", "task", "submission__task"),
        base.related("submission.round", "round", "submission__round"), "submission", "by_agent",
        "by_model", "at",
    )  # fmt: skip
    list_filter = (base.ProjectFilter, "verdict")
    list_select_related = ("submission__task__project",)
    search_fields = ("text", "by_agent", "submission__task__title")
    exclude = ("text",)
    readonly_fields = (base.in_full("text", "text"),)


@admin.register(models.Finding)
class FindingAdmin(RecordAdmin):
    project_path = "task__project"
    list_display = (
        "code", base.severity_label, base.shortened("title"), base.task_ref, "round", "mandatory",
        base.related("location", "place", "path"),
    )  # fmt: skip
    list_display_links = ("code", "title")
    list_filter = (base.ProjectFilter, "severity", "mandatory", StandingFilter)
    list_select_related = ("task__project",)
    search_fields = ("code", "title", "path", "task__title")
    exclude = ("excerpt",)
    readonly_fields = (base.in_full("excerpt", "code at its place"),)
    ordering = ("-pk",)


@admin.register(models.Answer)
class AnswerAdmin(RecordAdmin):
    project_path = "submission__task__project"
    list_display = (
        base.related("finding.code", "finding", "finding__code"),
        base.related("submission.task.ref", "task", "submission__task"), "kind", base.shortened("text"),
        "submission",
    )  # fmt: skip
    list_filter = (base.ProjectFilter, "kind")
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


@admin.register(models.Event)
class EventAdmin(RecordAdmin):
    list_display = ("at", "what", "about", "move", "label", "actor_kind", base.shortened("note"))
    list_filter = (base.ProjectFilter, "actor_kind", KindFilter)
    list_select_related = ("project", "task__project")
    search_fields = ("note", "label", "task__title")

    @display(description="kind")
    def what(self, event: models.Event) -> str:
        return words(event.kind)

    @display(description="task or project")
    def about(self, event: models.Event) -> str:
        return event.task.ref if event.task else event.project.slug

    @display(description="from \N{RIGHTWARDS ARROW} to")
    def move(self, event: models.Event) -> str:
        old, new = (status.replace("_", " ") for status in (event.from_status, event.to_status))
        return f"{old or 'new'} \N{RIGHTWARDS ARROW} {new}" if new and new != old else new or "-"


@admin.register(models.Idempotency)
class IdempotencyAdmin(base.ReadOnlyAdmin, base.SuperuserAdmin, base.BaseAdmin):
    list_display = ("actor", "key", "status", "at")
    list_filter = ("status",)
    search_fields = ("actor", "key")
    date_hierarchy = "at"
