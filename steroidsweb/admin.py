"""The admins of Django and of django-q2 in unfold's look, for superusers only.

A schedule names any Python function to call, so nobody can write one here.
"""

from datetime import timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django_q import admin as q2
from django_q.models import Failure, OrmQ, Schedule, Success
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from steroidsweb import audit
from steroidsweb.accounts import invitations
from steroidsweb.accounts.names import OwnNameForm
from steroidsweb.accounts.sessions import stays_listed
from steroidsweb.models import AuditEntry, Invitation, InvitedRole
from tasks.access import is_superuser
from tasks.admin.base import BaseAdmin, ExpiringAdmin, MadeByAdmin, NamedInline, ReadOnlyAdmin, SuperuserAdmin
from tasks.database.clock import estimated_time

WORDS_OF_RIGHTS = {
    "is_active": (
        "Active",
        "Without it the account is shut. Do that instead of deleting it: records name it.",
    ),
    "is_staff": (
        "May sign in",
        "Every page needs it. What somebody may see and do in a project, its memberships say: on the page of "
        "the project.",
    ),
    "is_superuser": ("Superuser", "Sees and may do everything, in all projects."),
}

for model in (User, Group, Schedule, Success, Failure, OrmQ):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class PersonForm(OwnNameForm, UserChangeForm):
    pass


class NewPersonForm(OwnNameForm, UserCreationForm):
    pass


@admin.register(User)
class UserAdmin(SuperuserAdmin, DjangoUserAdmin, ModelAdmin):
    """People. Nobody takes their own rights away, so one superuser always remains."""

    form = PersonForm
    add_form = NewPersonForm
    change_password_form = AdminPasswordChangeForm
    filter_horizontal = ()
    # Without Django's groups and permissions: memberships of projects say who may do what.
    fieldsets = (
        (None, {"fields": ("username", "password_link")}),
        ("Person", {"fields": (("first_name", "last_name"), "email")}),
        ("Rights", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": (("last_login", "date_joined"),)}),
    )
    readonly_fields = ("password_link", "last_login", "date_joined")
    list_filter = ("is_staff", "is_superuser", "is_active")
    list_display = (
        "username",
        "first_name",
        "last_name",
        "email",
        "is_active",
        "may_sign_in",
        "is_superuser",
    )
    add_fieldsets = (
        (None, {"fields": ("username", ("first_name", "last_name"), "email", "is_staff")}),
        ("Password", {"fields": ("usable_password", "password1", "password2")}),
    )

    @admin.display(description="password")
    def password_link(self, user: User) -> SafeString:
        word = "Change it" if user.has_usable_password() else "None is set. Set one"
        link = reverse("admin:auth_user_password_change", args=[user.pk])
        return format_html('<a href="{}">{}</a>', link, word)

    @admin.display(description="may sign in", boolean=True, ordering="is_staff")
    def may_sign_in(self, user: User) -> bool:
        return user.is_staff

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Let a new user sign in, whom Django's own default would keep out of every page."""
        return {"is_staff": True, **super().get_changeform_initial_data(request)}

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj != request.user:
            return super().get_fieldsets(request, obj)
        why = {"description": "Only another superuser can change your own rights."}
        return [(name, options | why if name == "Rights" else options) for name, options in self.fieldsets]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        own = WORDS_OF_RIGHTS if obj == request.user else ()
        return (*super().get_readonly_fields(request, obj), *own)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and obj != request.user

    def user_change_password(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        change = super().user_change_password
        return stays_listed(request, lambda: change(request, *args, **kwargs))

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        words = {
            "labels": {name: label for name, (label, _) in WORDS_OF_RIGHTS.items()},
            "help_texts": {name: help_text for name, (_, help_text) in WORDS_OF_RIGHTS.items()},
        }
        return super().get_form(request, obj, change=change, **words | kwargs)


@admin.register(Schedule)
class ScheduleAdmin(ReadOnlyAdmin, SuperuserAdmin, q2.ScheduleAdmin, ModelAdmin):
    """The schedules, which the program writes at set-up. A form for them could call any function."""

    actions = ()


@admin.register(Success)
class SuccessAdmin(ReadOnlyAdmin, SuperuserAdmin, q2.TaskAdmin, ModelAdmin):
    actions = ()


@admin.register(Failure)
class FailureAdmin(ReadOnlyAdmin, SuperuserAdmin, q2.FailAdmin, ModelAdmin):
    """Background jobs that failed, with an action to try them again."""


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin, SuperuserAdmin, BaseAdmin):
    """Who signed in and who changed what here. Rulings and settings of a project are its events instead."""

    list_display = ("at", "kind_label", "who", "about", "note", "address")
    list_filter = ("kind",)
    search_fields = ("who", "about", "note", "address")
    date_hierarchy = "at"

    @display(
        description="what",
        ordering="kind",
        label={"refused": "warning", "factor_off": "warning", "deleted": "danger", "signed_in": "success"},
    )
    def kind_label(self, entry: AuditEntry) -> tuple[str, str]:
        return entry.kind, entry.get_kind_display()


@admin.register(OrmQ)
class OrmQAdmin(ReadOnlyAdmin, SuperuserAdmin, q2.QueueAdmin, ModelAdmin):
    pass


class InvitedRoleInline(NamedInline):
    model = InvitedRole
    extra = 1


@admin.register(Invitation)
class InvitationAdmin(ExpiringAdmin, MadeByAdmin, SuperuserAdmin, BaseAdmin):
    """Links for new colleagues: the page of an open one shows its link, and deleting one takes it back."""

    list_display = ("__str__", "by", "at", "expires_at", "used_by")
    fields = ("whom", "expires_at")
    inlines = (InvitedRoleInline,)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and (obj is None or obj.used_at is None)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Invitation]:
        return super().get_queryset(request).select_related("by", "used_by")

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        expires_at = estimated_time() + timedelta(days=invitations.DAYS)
        return {"expires_at": expires_at} | super().get_changeform_initial_data(request)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        invitations.note_made(form.instance, request)

    def response_add(
        self, request: HttpRequest, obj: Invitation, post_url_continue: str | None = None
    ) -> HttpResponse:
        return redirect("admin:steroidsweb_invitation_change", obj.pk)

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        found = self.get_object(request, object_id)
        if request.method == "GET" and is_superuser(request) and found and found.is_open:
            link = invitations.link(found, settings.URL or request.build_absolute_uri("/"))
            messages.info(request, f"The link, for one person: {link}")
        return super().change_view(request, object_id, *args, **kwargs)


# --- Of django-allauth --------------------------------------------------------------------------------------

if apps.is_installed("allauth"):
    for registered in list(admin.site._registry):
        if registered.__module__.startswith("allauth."):  # how users sign in is not edited by hand
            admin.site.unregister(registered)

if apps.is_installed("allauth.mfa"):
    from allauth.mfa.models import Authenticator

    from steroidsweb.accounts import second_factor

    @admin.register(Authenticator)
    class AuthenticatorAdmin(ReadOnlyAdmin, SuperuserAdmin, BaseAdmin):
        """Second factors. Users who lost theirs sign in by password once it is deleted here."""

        list_display = ("user", "kind", "created_at", "last_used_at")
        fields = list_display
        search_fields = ("user__username",)

        @display(description="what")
        def kind(self, row: Authenticator) -> str:
            return second_factor.in_words(row)

        def log_deletions(self, request: HttpRequest, queryset: Any) -> None:
            """Write down whose second factor was removed, which the name of a row does not say."""
            for row in queryset:
                about = f"{second_factor.in_words(row)} of {row.user}"
                audit.note(AuditEntry.Kind.FACTOR_OFF, request.user, request, about=about)

        def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
            return is_superuser(request)
