"""The admin of channels, deliveries, the on-call rota, saved views and bulk acts."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import action

from disputes.models import Bulk, Channel, Delivery, OnCall, SavedView
from disputes.notifications import sending
from tasks.access import MAINTAIN, RULE, may, projects_for, who_may_enter
from tasks.admin import base


@admin.register(Channel)
class ChannelAdmin(base.ReadOnlyAdmin, base.SuperuserAdmin, base.BaseAdmin):
    """The channels through which people are told. Addresses stay sealed; people edit their own elsewhere."""

    list_display = ("name", "user", "project", "kind", "service", "is_active", "created_at")
    list_filter = ("kind", "is_active")
    list_select_related = ("user", "project")
    search_fields = ("name", "user__username", "project__slug")
    fields = (
        ("name", "service"), ("user", "project"), ("kind", "is_active"), "wants",
        ("digest_at", "quiet_from", "quiet_until", "timezone"),
    )  # fmt: skip


@admin.register(Delivery)
class DeliveryAdmin(base.ReadOnlyAdmin, base.SuperuserAdmin, base.BaseAdmin):
    """What was sent, what is still waiting and what was given up, over all channels."""

    list_display = (
        "uid", "topic", "channel", "event", "due_at", "tries", "sent_at", "failed_at",
        base.shortened("error"),
    )  # fmt: skip
    list_filter = (
        "topic",
        ("failed_at", admin.EmptyFieldListFilter),
        ("sent_at", admin.EmptyFieldListFilter),
    )
    list_select_related = ("channel", "event")
    search_fields = ("=uid", "channel__name", "error")
    actions = ("try_again",)

    @action(description="Try again what was given up")
    def try_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        tried = sum(sending.again(delivery) for delivery in queryset)
        self.message_user(request, f"{tried} deliveries are tried again within a minute.", messages.SUCCESS)


class OnCallForm(base.SharedForm):
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
class OnCallAdmin(base.DeletableAdmin, base.ProjectScopedAdmin):
    """The on-call rota of each project. All triagers are told when nobody is on call."""

    form = OnCallForm
    list_display = ("user", "project", "first_day", "last_day")
    list_filter = (base.ProjectFilter,)
    list_select_related = ("user", "project")
    search_fields = ("user__username", "user__first_name", "user__last_name")
    fields = (("project", "user"), ("first_day", "last_day"))
    ordering = ("-last_day", "project")

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "user":  # only people who may rule in a project that this person maintains
            memberships = {
                "memberships__project__in": projects_for(request.user, MAINTAIN),
                "memberships__role__in": RULE,
            }
            people = get_user_model().objects.filter(who_may_enter(), **memberships)
            kwargs["queryset"] = people.distinct().order_by("username")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


@admin.register(SavedView)
class SavedViewAdmin(base.ReadOnlyAdmin, base.SuperuserAdmin, base.BaseAdmin):
    """The queue filters that people saved. Everybody saves and deletes their own in the queue itself."""

    list_display = ("name", "user", "tab", "query")
    list_select_related = ("user",)
    search_fields = ("name", "user__username")


@admin.register(Bulk)
class BulkAdmin(base.ReadOnlyAdmin, base.SuperuserAdmin, base.BaseAdmin):
    """What was done to many disputes at once, and what came of each."""

    list_display = ("verb", "user", "at", "undone_at")
    list_filter = ("verb",)
    list_select_related = ("user",)
    search_fields = ("user__username", "note")
    date_hierarchy = "at"
