"""The admin of rulings and of what follows from them: precedents, guidelines and amendments."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from unfold.decorators import action, display

from disputes import precedents
from disputes.models import Amendment, Conflict, Decision, Guideline, Precedent
from disputes.models.guideline import GUIDELINE_DAYS, url_to_add
from tasks.access import RULE, projects_for
from tasks.admin.base import MadeByAdmin, ProjectFilter, ProjectScopedAdmin, ReadOnlyAdmin, related, shortened
from tasks.database.clock import estimated_time
from tasks.text.counting import counted
from tasks.text.unseen import plain


def ruling_in_words(decision: Decision) -> str:
    return f"{decision.letter} {decision.option.replace('_', ' ')}"


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin, ProjectScopedAdmin):
    project_path = "conflict__dispute__project"
    list_display = (
        "ruling", "question", related("conflict.dispute.task.ref", "task", "conflict__dispute__task"), "user",
        "authority", "at", "used_at", "revoked_at",
    )  # fmt: skip
    list_display_links = ("ruling", "question")
    list_filter = (ProjectFilter, "option", "authority")
    list_select_related = ("conflict__dispute__task__project", "user")
    search_fields = (
        "text", "rationale", "conflict__question", "conflict__dispute__task__title", "user__username",
        "user__first_name", "user__last_name",
    )  # fmt: skip
    date_hierarchy = "at"

    @display(description="ruling", ordering="option")
    def ruling(self, decision: Decision) -> str:
        return ruling_in_words(decision)

    @display(description="question", ordering="conflict__question")
    def question(self, decision: Decision) -> str:
        return shortened("question")(decision.conflict)


class HoldsFilter(admin.SimpleListFilter):
    """A filter of precedents by whether they are still suggested, have expired or were retired."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("suggested", "Suggested"), ("expired", "Expired"), ("retired", "Retired")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Precedent]) -> QuerySet[Precedent]:
        match self.value():
            case "suggested":
                return queryset.filter(retired_at=None).exclude(precedents.expired())
            case "expired":
                return queryset.filter(precedents.expired(), retired_at=None)
            case "retired":
                return queryset.filter(retired_at__isnull=False)
        return queryset


@admin.register(Precedent)
class PrecedentAdmin(ReadOnlyAdmin, ProjectScopedAdmin):
    """Rulings that later ones may cite, with how often they were cited and when they expire."""

    project_path = "conflict__dispute__project"
    list_display = (
        "card", "ruling", related("conflict.dispute.project.name", "project", "conflict__dispute__project"),
        "kind", "cited", "state", "expires", "guideline",
    )  # fmt: skip
    list_display_links = None
    list_filter = (
        ProjectFilter, HoldsFilter, "conflict__kind", "conflict__reason", "conflict__severity", "option",
    )  # fmt: skip
    list_select_related = ("conflict__dispute__task__project", "conflict__dispute__project")
    search_fields = ("conflict__question", "text", "rationale", "conflict__finding__title")
    date_hierarchy = "at"
    actions = ("retire", "restore")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Precedent]:
        guidelines = Guideline.objects.filter(decision=OuterRef("pk")).order_by("-pk").values("pk")[:1]
        citing = Decision.objects.standing().filter(cites=OuterRef("pk")).order_by().values("cites")
        ruled = projects_for(request.user, RULE).filter(pk=OuterRef(self.project_path))
        found: QuerySet[Precedent] = super().get_queryset(request)
        return found.annotate(
            citations=Coalesce(Subquery(citing.annotate(n=Count("pk")).values("n")), 0),
            guideline_pk=Subquery(guidelines),
            may_rule=Exists(ruled),
        )

    @display(description="question", ordering="conflict__question")
    def card(self, precedent: Precedent) -> SafeString:
        conflict = precedent.conflict
        return format_html(
            '<span><a class="text-link" href="{}">{}</a> {}</span>',
            f"{reverse('dispute', args=[conflict.dispute_id])}?conflict={conflict.ref}",
            conflict.dispute.ref, Truncator(plain(conflict.question)).chars(80),
        )  # fmt: skip

    @display(description="what was ruled", ordering="option")
    def ruling(self, precedent: Precedent) -> str:
        choice = precedent.conflict.choice(precedent.option)
        title = f"{choice.letter} {choice.title}" if choice else ruling_in_words(precedent)
        said = Truncator(plain(precedent.text)).chars(100)
        return f"{title}: {said}" if said else title

    @display(description="kind of finding", ordering="conflict__severity")
    def kind(self, precedent: Precedent) -> str:
        conflict = precedent.conflict
        about = conflict.get_reason_display() if conflict.reason != Conflict.Reason.OTHER else ""
        words = (conflict.get_severity_display(), about, conflict.get_kind_display())
        return ", ".join(filter(None, words))

    @display(description="cited", ordering="citations")
    def cited(self, precedent: Any) -> str:
        return counted(precedent.citations, "time") if precedent.citations else "never"

    @display(description="state", label={"Suggested": "success", "Expired": "neutral", "Retired": "neutral"})
    def state(self, precedent: Precedent) -> str:
        if precedent.retired_at:
            return "Retired"
        ends = precedents.expires_at(precedent)
        return "Expired" if ends and ends < estimated_time() else "Suggested"

    @display(description="expires", ordering="at")
    def expires(self, precedent: Precedent) -> str:
        ends = precedents.expires_at(precedent)
        return f"{ends:%-d %b %Y}" if ends else "never"

    @display(description="guideline")
    def guideline(self, precedent: Any) -> SafeString:
        if precedent.guideline_pk:
            url = reverse("admin:disputes_guideline_change", args=[precedent.guideline_pk])
            return format_html('<a class="text-link" href="{}">A standing guideline</a>', url)
        if not precedent.may_rule:
            return SafeString("-")
        words = "Make this a standing guideline"
        return format_html('<a class="text-link" href="{}">{}</a>', url_to_add(precedent), words)

    def _each(self, request: HttpRequest, rows: QuerySet[Precedent], act: Callable[..., bool]) -> int:
        """Apply the act to the rows in whose projects the person may rule, and return how many it changed."""
        mine = [row for row in rows if self.allowed(request, RULE, row)]
        return sum(act(row, user=request.user) for row in mine)

    @action(description="Retire: suggest and cite no more", permissions=["rule"])
    def retire(self, request: HttpRequest, queryset: QuerySet[Precedent]) -> None:
        done = self._each(request, queryset, precedents.retire)
        self.message_user(request, f"{done} retired: no further dispute shows them.", messages.SUCCESS)

    @action(description="Take up again", permissions=["rule"])
    def restore(self, request: HttpRequest, queryset: QuerySet[Precedent]) -> None:
        done = self._each(request, queryset, precedents.restore)
        self.message_user(request, f"{done} taken up again.", messages.SUCCESS)


@admin.register(Amendment)
class AmendmentAdmin(ReadOnlyAdmin, ProjectScopedAdmin):
    """What rulings add to specifications. People approve and drop amendments on separate pages."""

    project_path = "decision__conflict__dispute__project"
    list_display = (
        "about", "path", "section", related("stands_in", "state", "state"),
        related("task.ref", "task", "task"), "asked_by", "asked_at",
    )  # fmt: skip
    list_display_links = None
    list_filter = (ProjectFilter, "state")
    list_select_related = ("decision__conflict__dispute", "task__project", "asked_by")
    search_fields = ("path", "words", "decision__conflict__question")
    ordering = ("-pk",)

    @display(description="ruling", ordering="decision")
    def about(self, amendment: Amendment) -> SafeString:
        conflict = amendment.decision.conflict
        return format_html(
            '<span><a class="text-link" href="{}">{}</a> {}</span>',
            reverse("amendment", args=[amendment.pk]), conflict.dispute.ref,
            Truncator(plain(conflict.question)).chars(80),
        )  # fmt: skip

    def view_on_site(self, amendment: Amendment) -> str:
        """Return the path of the page where people approve the amendment."""
        return reverse("amendment", args=[amendment.pk])


@admin.register(Guideline)
class GuidelineAdmin(MadeByAdmin, ProjectScopedAdmin):
    """Guidelines, which appear in a project's prompts until they expire; people who may rule write them."""

    change_roles = RULE
    list_display = (shortened("text"), "project", "tag", "source_card", "by", "expires_at")
    list_filter = (ProjectFilter,)
    list_select_related = ("project", "by", "decision__conflict")
    search_fields = ("text", "tag")
    fields = ("project", "text", "tag", "expires_at", "decision")
    raw_id_fields = ("decision",)
    ordering = ("-pk",)
    actions = ("end_now",)

    @display(description="ruled on")
    def source_card(self, guideline: Guideline) -> str:
        return guideline.source or "-"

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        expires_at = estimated_time() + timedelta(days=GUIDELINE_DAYS)
        return {"expires_at": expires_at} | super().get_changeform_initial_data(request)

    @admin.action(description="End now", permissions=["rule"])
    def end_now(self, request: HttpRequest, queryset: QuerySet[Guideline]) -> None:
        ended = 0
        for guideline in queryset:
            if self.has_change_permission(request, guideline):
                Guideline.objects.filter(pk=guideline.pk).update(expires_at=estimated_time())
                self.record(request, guideline, "ended", str(guideline))
                ended += 1
        self.message_user(request, f"{ended} ended: no further prompt holds them.")
