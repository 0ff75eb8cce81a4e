"""The read-only admin of disputes, conflicts and opinions; people rule in the queue."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from unfold.decorators import display

from disputes.admin.rulings import ruling_in_words
from disputes.models import Conflict, Decision, Dispute, Opinion
from tasks.admin import base


def linked(name: str, row: Any, words: str) -> SafeString:
    """Return a link to the row's page in the admin."""
    return format_html(
        '<a class="text-link" href="{}">{}</a>', reverse(f"admin:{name}_change", args=[row.pk]), words
    )


class ConflictInline(base.ReadOnlyAdmin, base.ScopedInline):
    model = Conflict
    fields = ("link", "kind", "severity", "question", "status", "followed")
    readonly_fields = ("link",)

    @display(description="conflict")
    def link(self, conflict: Conflict) -> SafeString:
        return linked("disputes_conflict", conflict, conflict.ref)


@admin.register(Dispute)
class DisputeAdmin(base.ReadOnlyAdmin, base.ProjectScopedAdmin):
    list_display = (
        base.related("ref", "dispute", "pk"), base.severity_label, base.shortened("question"), base.task_ref,
        "status", base.related("blocks_words", "blocks", "blocks"), "opened_at",
    )  # fmt: skip
    list_display_links = ("ref", "question")
    list_filter = (base.ProjectFilter, "status", "severity")
    list_select_related = ("project", "task__project")
    search_fields = ("question", "task__title", "project__slug")
    inlines = (ConflictInline,)
    date_hierarchy = "opened_at"

    def view_on_site(self, dispute: Dispute) -> str:
        """Return the path of the dispute's page in the queue."""
        return f"/queue/{dispute.ref}/"


class DecisionInline(base.ReadOnlyAdmin, base.ScopedInline):
    model = Decision
    fields = ("link", "text", "rationale", "user", "authority", "at", "revoked_at")
    readonly_fields = ("link",)

    @display(description="ruling")
    def link(self, decision: Decision) -> SafeString:
        return linked("disputes_decision", decision, ruling_in_words(decision))

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("user")


@admin.register(Conflict)
class ConflictAdmin(base.ReadOnlyAdmin, base.ProjectScopedAdmin):
    project_path = "dispute__project"
    list_display = (
        base.related("ref", "conflict", "pk"), base.severity_label, base.shortened("question"),
        base.related("dispute.task.ref", "task", "dispute__task"), "kind", "origin", "status", "followed",
    )  # fmt: skip
    list_display_links = ("ref", "question")
    list_filter = (base.ProjectFilter, "status", "kind", "severity", "origin", "reason", "followed")
    list_select_related = ("dispute__task__project",)
    search_fields = ("question", "finding__code", "dispute__task__title")
    inlines = (DecisionInline,)
    ordering = ("-pk",)

    def view_on_site(self, conflict: Conflict) -> str:
        """Return the path of the page of the conflict's dispute in the queue."""
        return f"/queue/{conflict.dispute.ref}/"


@admin.register(Opinion)
class OpinionAdmin(base.ReadOnlyAdmin, base.ProjectScopedAdmin):
    """What judges and mediators were asked, and what they answered."""

    project_path = "conflict__dispute__project"
    list_display = ("about", "kind", "verdict", "state", "by_agent", "by_vendor", "asked_at", "given_at")
    list_filter = (base.ProjectFilter, "kind", "state", "verdict")
    list_select_related = ("conflict__dispute__project",)
    search_fields = ("conflict__question", "by_agent", "reasons")
    ordering = ("-pk",)

    @display(description="conflict", ordering="conflict")
    def about(self, opinion: Opinion) -> str:
        return Truncator(str(opinion.conflict)).chars(80)
