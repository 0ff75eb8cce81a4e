"""The admin of projects, their members and their sections."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.dataclasses import UnfoldAction
from unfold.decorators import action, display
from unfold.forms import PaginationInlineFormSet

from tasks.access import MAINTAIN, is_superuser, may_set_commands, project_ids
from tasks.admin import base
from tasks.admin.settings_form import SETTING_FIELDSETS, ProjectForm, settings_table
from tasks.base import try_again
from tasks.configuration.changing import configure
from tasks.configuration.policy import SETTINGS
from tasks.dependencies import recount
from tasks.events import Actor
from tasks.models import FormerName, Membership, Project, Section, Task
from tasks.states import Status

STATUS_LABELS = {"active": "success", "paused": "warning", "finished": "neutral"}
LANDED = Q(tasks__landed_at__isnull=False)
OWN_ROLE = "Only another maintainer or a superuser can change your own role."
WANTED = ~Q(tasks__status=Status.CANCELLED)


@display(description="landed")
def landed_of_all(row: Any) -> str:
    return f"{row.landed_count} of {row.task_count}"


def with_progress(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate projects or sections with their number of wanted tasks, and of those that landed."""
    return rows.annotate(task_count=Count("tasks", WANTED), landed_count=Count("tasks", LANDED & WANTED))


class MembershipFormSet(PaginationInlineFormSet):
    """The roles in a project. No maintainer takes away their own."""

    person: Any = None  # who edits

    def clean(self) -> None:
        super().clean()
        for form in self.initial_forms:
            is_own = form.initial["user"] == self.person.pk and not self.person.is_superuser
            if is_own and form in self.deleted_forms:
                raise ValidationError(OWN_ROLE)
            if is_own and {"user", "role"} & {*form.changed_data}:
                form.add_error("role", OWN_ROLE)


class MembershipInline(base.ScopedInline):
    model = Membership
    formset = MembershipFormSet
    fields = ("user", "role", "is_lead")

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset = super().get_formset(request, obj, **kwargs)
        formset.person = request.user
        return formset

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return super().get_queryset(request).select_related("user", "project")

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if db_field.name == "user":
            field.queryset = get_user_model().objects.filter(is_active=True).order_by("username")
            field.choices = list(field.choices)  # read once, not once per row
        return field


@admin.register(Project)
class ProjectAdmin(base.ProjectScopedAdmin):
    """Projects, which are never deleted; a status says that one is over. Superusers add them."""

    project_path = "pk"
    list_display = (
        "overview", "slug", base.labelled("status", STATUS_LABELS), "base_label", landed_of_all,
        "settings_link",
    )  # fmt: skip
    list_display_links = ("settings_link",)
    list_filter = ("status",)
    search_fields = ("name", "slug")
    ordering = ("name", "pk")  # repeated: counting tasks makes Django drop the model's own
    prepopulated_fields = {"slug": ("name",)}
    inlines = (MembershipInline,)
    form = ProjectForm
    actions_detail = (
        "end_page",
        {"title": "Download", "icon": "download", "items": ["disputes_file", "decisions_file"]},
    )
    fieldsets = (
        (None, {"fields": (("name", "slug"), ("status", "trouble_now"))}),
        ("Repository", {"fields": (("repo_url", "target_branch"),)}),
        ("Work", {"fields": (("kind", "max_parallel"), "brief")}),
    )

    add_fieldsets = ((None, {"fields": ("name", "slug", "repo_url", "target_branch", "kind")}),)

    class Media:
        css = {"all": ("steroids/settings.css",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Project]:
        return with_progress(super().get_queryset(request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Let only superusers edit the slug and the repository: hosts fetch it with their own rights."""
        always = ("trouble_now", "settings_now")
        if obj and obj.checkpoints.exists():  # its work has begun, so its kind is fixed
            always = (*always, "kind")
        if obj and obj.status == Project.Status.FINISHED:  # ended and resumed on another page
            always = (*always, "status")
        return always if self.has_add_permission(request) else (*always, "slug", "repository")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return five fields for a new project, whose other values have defaults.

        For an existing one, whoever may change it gets a field for each setting, and others get a table of
        settings.
        """
        if obj is None:
            return self.add_fieldsets
        may_change = self.has_change_permission(request, obj)
        settings = SETTING_FIELDSETS if may_change else (("Settings", {"fields": ("settings_now",)}),)
        address = "repo_url" if self.has_add_permission(request) else "repository"
        names, _, work = self.fieldsets
        return (names, ("Repository", {"fields": ((address, "target_branch"),)}), work, *settings)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"target_branch": ""} | super().get_changeform_initial_data(request)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if obj is None:
            kwargs["form"] = forms.ModelForm
        form = super().get_form(request, obj, change=change, **kwargs)
        form.may_set_commands = may_set_commands(request.user)  # a class made for this request
        return form

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj else ()

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Let only superusers search the URL: whoever can search it can guess what is masked in it."""
        return (*self.search_fields, "repo_url") if self.has_add_permission(request) else self.search_fields

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> Any:
        project = self.get_object(request, unquote(object_id))
        if request.method == "GET" and self.has_change_permission(request, project):
            for fault in project.setting_faults:
                self.message_user(request, f"Not used: {fault} Save the page to drop it.", messages.WARNING)
        return super().change_view(request, object_id, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Project, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and "slug" in form.changed_data:
            FormerName.objects.update_or_create(slug=form.initial["slug"], defaults={"project": obj})
        if change and (form.setting_changes() or obj.setting_faults):
            configure(obj, form.setting_changes(), actor=Actor.person(request.user))
        if change and {"repo_url", "target_branch"} & set(form.changed_data):
            try_again(obj, actor=Actor.person(request.user), why="The repository is another one.")

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Make the creator of a project its maintainer and lead."""
        super().save_related(request, form, formsets, change)
        if not change:
            Membership.objects.update_or_create(
                project=form.instance, user=request.user,
                defaults={"role": Membership.Role.MAINTAINER, "is_lead": True},
            )  # fmt: skip

    def response_add(
        self, request: HttpRequest, obj: Project, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Redirect to the page that shows what is found in the repository."""
        if {"_continue", "_addanother", "_popup"} & set(request.POST):
            return super().response_add(request, obj, post_url_continue)
        self.message_user(
            request, f"{obj.name} is added. Its repository is being looked at.", messages.SUCCESS
        )
        return redirect("project-setup", obj.slug)

    def get_actions_detail(self, request: HttpRequest, object_id: int) -> list[UnfoldAction]:
        """Offer to end the project only to those who may."""
        actions = super().get_actions_detail(request, object_id)
        if str(object_id) in map(str, project_ids(request, MAINTAIN)):
            return actions
        return [action for action in actions if getattr(action, "path", "") != "end"]

    def touched(self, form: Any) -> list[str]:
        """Leave out the settings, whose changes are recorded as an event of their own."""
        return [name for name in form.changed_data if name not in SETTINGS]

    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> dict[str, Any]:
        return {} if obj else super().get_prepopulated_fields(request, obj)

    @display(description="name", ordering="name")
    def overview(self, project: Project) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("project", args=[project.slug]), project.name)

    @display(description="")
    def settings_link(self, project: Project) -> str:
        return "Settings"

    @display(
        description="target branch",
        ordering="base_state",
        label={
            "green": "success", "nothing": "neutral", "accepted": "neutral", "unknown": "neutral",
            "trying": "neutral", "red": "danger", "broken": "danger",
        },
    )  # fmt: skip
    def base_label(self, project: Project) -> tuple[str, str]:
        return project.base_state, f"{project.branch}: {project.get_base_state_display().lower()}"

    def formfield_for_choice_field(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "status":
            kwargs["choices"] = [
                choice for choice in Project.Status.choices if choice[0] != Project.Status.FINISHED
            ]
        return super().formfield_for_choice_field(db_field, request, **kwargs)

    @action(description="End the project", url_path="end", icon="flag")
    def end_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Redirect to the page on which a project is ended and resumed."""
        return redirect("project-end", self.get_object(request, object_id).slug)

    # The files are made in the room of disputes; this room only knows their URLs.
    @action(description="dispute.md", url_path="dispute-record")
    def disputes_file(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return redirect("project-dispute.md", self.get_object(request, object_id).slug)

    @action(description="decisions.md", url_path="decisions-record")
    def decisions_file(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return redirect("project-decisions.md", self.get_object(request, object_id).slug)

    @display(description="repository")
    def repository(self, project: Project) -> str:
        return project.address

    @display(description="trouble")
    def trouble_now(self, project: Project) -> str:
        return project.trouble or "none"

    @display(description="settings")
    def settings_now(self, project: Project) -> SafeString:
        return settings_table(project.config)


@admin.register(Membership)
class MembershipAdmin(base.ReadOnlyAdmin, base.ProjectScopedAdmin):
    """Who is a member of which project. Memberships are edited on the project's page."""

    list_display = ("user", "project", "role", "is_lead")
    list_filter = (base.ProjectFilter, "role")
    list_select_related = ("user", "project")
    search_fields = ("user__username", "project__name")


class SectionForm(base.SharedForm):
    def clean(self) -> dict[str, Any]:
        """Refuse links to sections of other projects, and circles of nesting or of order."""
        data = super().clean() or {}
        project_id = data["project"].pk if data.get("project") else self.instance.project_id
        parent, needed = data.get("parent"), list(data.get("depends_on") or [])
        if any(other.project_id != project_id for other in [*needed, *filter(None, [parent])]):
            raise ValidationError("The parent and the sections to wait for belong to the same project.")
        if self.instance.pk:
            if parent and base.leads_to(self.instance.pk, {parent.pk}, Section, "pk", "parent"):
                self.add_error("parent", "The section would lie inside itself.")
            keys = {other.pk for other in needed}
            ways = ("depends_on", "parent", "children")
            if any(base.leads_to(self.instance.pk, keys, Section, "pk", way) for way in ways):
                self.add_error("depends_on", "The section would wait for itself.")
        return data


@admin.register(Section)
class SectionAdmin(base.DeletableAdmin, base.ProjectScopedAdmin):
    """Sections; Django itself refuses to delete one that has tasks."""

    form = SectionForm
    list_display = ("title", "project", "parent", "rank", landed_of_all, "is_stopped")
    list_filter = (base.ProjectFilter, "is_stopped")
    list_select_related = ("project", "parent")
    search_fields = ("title", "project__slug")
    ordering = ("project__name", "rank", "pk")
    autocomplete_fields = ("parent", "depends_on")
    fields = ("project", "title", "body", ("parent", "rank"), "depends_on", "is_stopped")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Section]:
        return with_progress(super().get_queryset(request))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("project",) if obj else ()

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if {"parent", "depends_on"} & set(form.changed_data):
            waiting = Task.objects.filter(project=form.instance.project, status=Status.PENDING)
            recount(waiting.select_related("section__parent"))
