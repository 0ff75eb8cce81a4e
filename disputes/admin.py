"""The admin of disputes: to look things up. People rule in the queue."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.decorators import display

from disputes.models import Conflict, Decision, Dispute
from tasks.admin.base import (
    ProjectFilter,
    ProjectScopedAdmin,
    ReadOnlyAdmin,
    ScopedInline,
    severity_label,
    shortened,
    task_ref,
)


class ConflictInline(ReadOnlyAdmin, ScopedInline):
    model = Conflict
    fields = ("kind", "severity", "question", "status", "followed")
    show_change_link = True
    tab = False


@admin.register(Dispute)
class DisputeAdmin(ReadOnlyAdmin, ProjectScopedAdmin):
    list_display = ("ref", severity_label, shortened("question"), task_ref, "status", "blocks", "opened_at")
    list_display_links = ("ref", "question")
    list_filter = (ProjectFilter, "status", "severity")
    list_select_related = ("task__project",)
    search_fields = ("question", "task__title", "project__slug")
    inlines = (ConflictInline,)
    date_hierarchy = "opened_at"

    @display(description="dispute", ordering="pk")
    def ref(self, dispute: Dispute) -> str:
        return dispute.ref

    def view_on_site(self, dispute: Dispute) -> str:
        """Its page in the queue."""
        return f"/queue/{dispute.ref}/"


class DecisionInline(ReadOnlyAdmin, ScopedInline):
    model = Decision
    fields = ("option", "text", "rationale", "user", "authority", "at", "revoked_at")
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("user")


@admin.register(Conflict)
class ConflictAdmin(ReadOnlyAdmin, ProjectScopedAdmin):
    project_path = "dispute__project"
    list_display = (
        "ref", severity_label, shortened("question"), "task", "kind", "origin", "status", "followed",
    )  # fmt: skip
    list_display_links = ("ref", "question")
    list_filter = (ProjectFilter, "status", "kind", "severity", "origin", "reason", "followed")
    list_select_related = ("dispute__task__project",)
    search_fields = ("question", "finding__code", "dispute__task__title")
    inlines = (DecisionInline,)
    ordering = ("-pk",)

    @display(description="conflict", ordering="pk")
    def ref(self, conflict: Conflict) -> str:
        return conflict.ref

    @display(description="task", ordering="dispute__task")
    def task(self, conflict: Conflict) -> str:
        return conflict.dispute.task.ref if conflict.dispute.task else "-"

    def view_on_site(self, conflict: Conflict) -> str:
        """The page of its dispute in the queue."""
        return f"/queue/{conflict.dispute.ref}/"


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin, ProjectScopedAdmin):
    project_path = "conflict__dispute__project"
    list_display = ("ruling", "question", "task", "user", "authority", "at", "used_at", "revoked_at")
    list_display_links = ("ruling", "question")
    list_filter = (ProjectFilter, "option", "authority")
    list_select_related = ("conflict__dispute__task__project", "user")
    search_fields = ("text", "rationale", "conflict__question", "user__username")
    date_hierarchy = "at"

    @display(description="ruling", ordering="option")
    def ruling(self, decision: Decision) -> str:
        return f"{decision.letter} {decision.get_option_display()}"

    @display(description="question", ordering="conflict__question")
    def question(self, decision: Decision) -> str:
        return shortened("question")(decision.conflict)

    @display(description="task", ordering="conflict__dispute__task")
    def task(self, decision: Decision) -> str:
        task = decision.conflict.dispute.task
        return task.ref if task else "-"
