"""The admin of disputes: to look things up. People rule in the queue."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from unfold.decorators import action, display

from disputes import precedents
from disputes.models import (
    Amendment,
    Bulk,
    Channel,
    Conflict,
    Decision,
    Delivery,
    Dispute,
    Flag,
    Guideline,
    HeuristicScore,
    OnCall,
    Opinion,
    Precedent,
    SavedView,
)
from disputes.notifications import sending
from disputes.protocol.silence.scores import Score, heuristic_weight
from disputes.protocol.silence.suspicion import SEEN_AS
from disputes.web.guidelines import url_to_add
from disputes.web.plain_text import plain
from tasks.access import MAINTAIN, RULE, may, projects_for
from tasks.admin.base import (
    BaseAdmin,
    ProjectFilter,
    ProjectScopedAdmin,
    ReadOnlyAdmin,
    ScopedInline,
    SuperuserAdmin,
    severity_label,
    shortened,
    task_ref,
)


def linked(name: str, row: Any, words: str) -> SafeString:
    """A link to the row's own page."""
    return format_html(
        '<a class="text-link" href="{}">{}</a>', reverse(f"admin:{name}_change", args=[row.pk]), words
    )


def ruling_in_words(decision: Decision) -> str:
    return f"{decision.letter} {decision.option.replace('_', ' ')}"


class ConflictInline(ReadOnlyAdmin, ScopedInline):
    model = Conflict
    fields = ("link", "kind", "severity", "question", "status", "followed")
    readonly_fields = ("link",)

    @display(description="conflict")
    def link(self, conflict: Conflict) -> SafeString:
        return linked("disputes_conflict", conflict, conflict.ref)


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
    fields = ("link", "text", "rationale", "user", "authority", "at", "revoked_at")
    readonly_fields = ("link",)

    @display(description="ruling")
    def link(self, decision: Decision) -> SafeString:
        return linked("disputes_decision", decision, ruling_in_words(decision))

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
        return ruling_in_words(decision)

    @display(description="question", ordering="conflict__question")
    def question(self, decision: Decision) -> str:
        return shortened("question")(decision.conflict)

    @display(description="task", ordering="conflict__dispute__task")
    def task(self, decision: Decision) -> str:
        task = decision.conflict.dispute.task
        return task.ref if task else "-"


class HoldsFilter(admin.SimpleListFilter):
    """Whether it is still shown beside disputes."""

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
    """Rulings that later ones may cite: how often that was done, and until when they hold."""

    project_path = "conflict__dispute__project"
    list_display = ("card", "ruling", "project", "kind", "cited", "state", "expires", "guideline")
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

    @display(description="project", ordering="conflict__dispute__project")
    def project(self, precedent: Precedent) -> str:
        return precedent.conflict.dispute.project.name

    @display(description="kind of finding", ordering="conflict__severity")
    def kind(self, precedent: Precedent) -> str:
        conflict = precedent.conflict
        about = conflict.get_reason_display() if conflict.reason != Conflict.Reason.OTHER else ""
        words = (conflict.get_severity_display(), about, conflict.get_kind_display())
        return ", ".join(filter(None, words))

    @display(description="cited", ordering="citations")
    def cited(self, precedent: Any) -> str:
        times = precedent.citations
        return f"{times} time{'s' * (times != 1)}" if times else "never"

    @display(description="state", label={"Suggested": "success", "Expired": "neutral", "Retired": "neutral"})
    def state(self, precedent: Precedent) -> str:
        if precedent.retired_at:
            return "Retired"
        ends = precedents.expires_at(precedent)
        return "Expired" if ends and ends < timezone.now() else "Suggested"

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

    def has_rule_permission(self, request: HttpRequest) -> bool:
        return self.allowed(request, RULE)

    def _each(self, request: HttpRequest, rows: QuerySet[Precedent], act: Callable[..., bool]) -> int:
        """Do it to those of projects in which the person may rule. How many it changed."""
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
    """What rulings add to specifications. People approve and drop them on their own pages."""

    project_path = "decision__conflict__dispute__project"
    list_display = ("about", "path", "section", "stands", "carried_by", "asked_by", "asked_at")
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

    @display(description="state", ordering="state")
    def stands(self, amendment: Amendment) -> str:
        return amendment.stands_in

    @display(description="task", ordering="task")
    def carried_by(self, amendment: Amendment) -> str:
        return amendment.task.ref if amendment.task else "-"

    def view_on_site(self, amendment: Amendment) -> str:
        """Its page, where people approve it."""
        return reverse("amendment", args=[amendment.pk])


@admin.register(Flag)
class FlagAdmin(ReadOnlyAdmin, ProjectScopedAdmin):
    """Hints at silent disagreement: what the rules saw, and what a person made of it."""

    project_path = "submission__task__project"
    list_display = ("finding", "task", "seen", "level", "confidence", "status", "at")
    list_filter = (ProjectFilter, "level", "status")
    list_select_related = ("finding", "submission__task__project")
    search_fields = ("finding__code", "finding__title", "submission__task__title")
    ordering = ("-pk",)

    @display(description="task", ordering="submission__task")
    def task(self, flag: Flag) -> str:
        return flag.submission.task.ref

    @display(description="what was seen")
    def seen(self, flag: Flag) -> str:
        return ", ".join(SEEN_AS.get(name, name) for name in flag.heuristics)


@admin.register(Opinion)
class OpinionAdmin(ReadOnlyAdmin, ProjectScopedAdmin):
    """What judges and mediators were asked, and what they said."""

    project_path = "conflict__dispute__project"
    list_display = ("about", "kind", "verdict", "state", "by_agent", "by_vendor", "asked_at", "given_at")
    list_filter = (ProjectFilter, "kind", "state", "verdict")
    list_select_related = ("conflict__dispute__project",)
    search_fields = ("conflict__question", "by_agent", "reasons")
    ordering = ("-pk",)

    @display(description="conflict", ordering="conflict")
    def about(self, opinion: Opinion) -> str:
        return Truncator(str(opinion.conflict)).chars(80)


@admin.register(HeuristicScore)
class HeuristicScoreAdmin(ReadOnlyAdmin, ProjectScopedAdmin):
    """How far each kind of hint may be trusted in a project."""

    list_display = ("seen", "project", "confirmed", "refused", "precision", "weight")
    list_filter = (ProjectFilter, "heuristic")
    list_select_related = ("project",)
    search_fields = ("heuristic",)

    @display(description="heuristic", ordering="heuristic")
    def seen(self, score: HeuristicScore) -> str:
        return SEEN_AS.get(score.heuristic, score.heuristic)

    @display(description="precision")
    def precision(self, score: HeuristicScore) -> str:
        """The share of its hints that people confirmed, with how many they judged."""
        judged = Score(score.confirmed, score.refused)
        return "-" if judged.precision is None else f"{judged.precision:.0%} of {judged.flags}"

    @display(description="weight")
    def weight(self, score: HeuristicScore) -> str:
        penalty = score.project.config.false_positive_penalty
        return f"{heuristic_weight(score.refused, penalty):.1f}"


@admin.register(Channel)
class ChannelAdmin(ReadOnlyAdmin, SuperuserAdmin, BaseAdmin):
    """Who is told through what. Addresses stay sealed; people change their channels on their own page."""

    list_display = ("name", "user", "project", "kind", "service", "is_active", "created_at")
    list_filter = ("kind", "is_active")
    list_select_related = ("user", "project")
    search_fields = ("name", "user__username", "project__slug")
    fields = (
        ("name", "service"), ("user", "project"), ("kind", "is_active"), "wants",
        ("digest_at", "quiet_from", "quiet_until", "timezone"),
    )  # fmt: skip


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin, SuperuserAdmin, BaseAdmin):
    """What was sent, what waits and what was given up, over all channels."""

    list_display = ("uid", "topic", "channel", "event", "due_at", "tries", "sent_at", "failed_at", "trouble")
    list_filter = (
        "topic",
        ("failed_at", admin.EmptyFieldListFilter),
        ("sent_at", admin.EmptyFieldListFilter),
    )
    list_select_related = ("channel", "event")
    search_fields = ("=uid", "channel__name", "error")
    actions = ("try_again",)

    @display(description="error", ordering="error")
    def trouble(self, delivery: Delivery) -> str:
        return shortened("error")(delivery)

    @action(description="Try again what was given up")
    def try_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        tried = sum(sending.again(delivery) for delivery in queryset)
        self.message_user(request, f"{tried} deliveries are tried again within a minute.", messages.SUCCESS)


@admin.register(Guideline)
class GuidelineAdmin(ProjectScopedAdmin):
    """What stands in a project's prompts until it expires. Who may rule writes it, mostly from a ruling."""

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

    def save_model(self, request: HttpRequest, obj: Guideline, form: Any, change: bool) -> None:
        if not change:
            obj.by = request.user
        super().save_model(request, obj, form, change)

    def has_rule_permission(self, request: HttpRequest) -> bool:
        return self.allowed(request, RULE)

    @admin.action(description="End now", permissions=["rule"])
    def end_now(self, request: HttpRequest, queryset: QuerySet[Guideline]) -> None:
        ended = 0
        for guideline in queryset:
            if self.has_change_permission(request, guideline):
                Guideline.objects.filter(pk=guideline.pk).update(expires_at=timezone.now())
                self.record(request, guideline, "ended", str(guideline))
                ended += 1
        self.message_user(request, f"{ended} ended: no further prompt holds them.")


class OnCallForm(forms.ModelForm):
    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        user, project = data.get("user"), data.get("project")
        if user and project and not may(user, project, RULE):
            self.add_error("user", f"{user} may not rule in {project.name}.")
        first, last = data.get("first_day"), data.get("last_day")
        if first and last and last < first:
            self.add_error("last_day", "It ends before it begins.")
        return data


@admin.register(OnCall)
class OnCallAdmin(ProjectScopedAdmin):
    """The rota: whose days they are in a project. Without anybody on call all triagers are told."""

    form = OnCallForm
    list_display = ("user", "project", "first_day", "last_day")
    list_filter = (ProjectFilter,)
    list_select_related = ("user", "project")
    search_fields = ("user__username", "user__first_name", "user__last_name")
    fields = (("project", "user"), ("first_day", "last_day"))
    ordering = ("-last_day", "project")

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "user":  # who may rule in a project that the person maintains
            memberships = {
                "memberships__project__in": projects_for(request.user, MAINTAIN),
                "memberships__role__in": RULE,
            }
            people = get_user_model().objects.filter(is_active=True, **memberships)
            kwargs["queryset"] = people.distinct().order_by("username")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)

    def delete_model(self, request: HttpRequest, obj: OnCall) -> None:
        self.record(request, obj, "deleted", str(obj))
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[OnCall]) -> None:
        for day in queryset.select_related("project", "user"):
            self.delete_model(request, day)


@admin.register(SavedView)
class SavedViewAdmin(ReadOnlyAdmin, SuperuserAdmin, BaseAdmin):
    """What people keep of the queue. Everybody keeps and deletes their own in the queue itself."""

    list_display = ("name", "user", "tab", "query")
    list_select_related = ("user",)
    search_fields = ("name", "user__username")


@admin.register(Bulk)
class BulkAdmin(ReadOnlyAdmin, SuperuserAdmin, BaseAdmin):
    """What was done to many disputes at once, and what came of each."""

    list_display = ("verb", "user", "at", "undone_at")
    list_filter = ("verb",)
    list_select_related = ("user",)
    search_fields = ("user__username", "note")
    date_hierarchy = "at"
