"""The admin of tasks, their dependencies and comments. Only the model's verbs change a status."""

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.db.models import QuerySet
from django.forms import BaseInlineFormSet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from unfold.decorators import action, display
from unfold.forms import ActionForm
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from tasks.access import MAINTAIN, RULE, tasks_for
from tasks.adding import place_last
from tasks.admin import base
from tasks.dependencies import recount, recount_dependants
from tasks.errors import Refused
from tasks.events import Actor
from tasks.hooks import retitled, waiting_line
from tasks.models import Comment, Dependency, Section, StaleTask, Task
from tasks.remarks.comments import BODY_MAX, add_comment
from tasks.states import IllegalMove, Status
from tasks.text.numbers import whole_number

VERBS = {  # by verb: what the action is called, what its tasks are afterwards, and which roles may use it
    "defer": ("Defer", "deferred", RULE),
    "resume": ("Resume", "resumed", RULE),
    "cancel": ("Cancel", "cancelled", MAINTAIN),
    "finish": ("Finish by hand", "finished", MAINTAIN),
    "reopen": ("Reopen", "reopened", MAINTAIN),
}


def action_of(verb: str) -> Callable[..., None]:
    """Return the action of the list of tasks that applies this verb."""
    label, _, roles = VERBS[verb]

    @admin.action(description=label, permissions=["rule" if roles == RULE else "maintain"])
    def act(tasks: "TaskAdmin", request: HttpRequest, queryset: Any) -> None:
        tasks.apply(verb, request, queryset)

    act.__name__ = verb
    return act


class WordsField(forms.CharField):
    """A list of words, written with commas between them."""

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]
        if isinstance(value, list):
            return value
        return [word.strip() for word in (value or "").split(",") if word.strip()]

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(map(str, value)) if isinstance(value, list) else value

    def validate(self, value: Any) -> None:
        """Accept any words, and none."""

    def run_validators(self, value: Any) -> None:
        """Skip the field's validators, which limit the length of a text and not of a list."""


NO_SECTION = (
    'A task stands in a section, and there is none yet: <a href="{}">add one</a> first, or import a list of '
    "tasks on the page of the project, which makes its sections."
)


class SectionChoice(forms.ModelChoiceField):
    """A choice of sections, shown with their projects because titles repeat from project to project."""

    def label_from_instance(self, section: Any) -> str:
        return f"{section.project} \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} {section.title}"


class TaskForm(base.SharedForm):
    tags = WordsField(
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Separated by commas. They choose the agent.",
    )


class VerbForm(ActionForm):
    """The action and the reason for it, which is kept with the event."""

    note = forms.CharField(
        required=False,
        label="",
        max_length=2000,
        widget=UnfoldAdminTextInputWidget(
            attrs={"placeholder": "Why", "aria-label": "Why", "x-show": "action"}
        ),
    )


def too_late_for(task: Task, changed: set[str], *, waits: bool) -> str:
    """Return whom a change to a task that has begun does not reach any more, or "".

    `changed` names the fields, `waits` says whether the task is to wait for others from now on.
    """
    said = []
    if not task.round or task.status in {Status.PENDING, Status.CANCELLED}:
        return ""
    if changed & Task.ASKED_FOR.keys():
        if task.landed_at:
            said.append(f"{task.ref} has landed as it was asked for before; reopen it to have the rest done.")
        elif task.accepted_id:
            said.append(
                f"{task.ref} was approved by its former words and lands so; reopen it if the new ones matter."
            )
        elif task.status in {Status.IN_PROGRESS, Status.REVIEW}:
            said.append(
                "Whoever is at work on it was told the former words; the next prompt holds the new ones."
            )
    if waits:
        said.append(f"{task.ref} has begun: a task waits for others only before that.")
    return " ".join(said)


class DependencyRows(BaseInlineFormSet):
    def clean(self) -> None:
        """Refuse dependencies on tasks of other projects, and circles."""
        super().clean()
        for form in self.extra_forms:
            on = form.cleaned_data.get("on") if form.is_valid() and form.has_changed() else None
            if on is None or form.cleaned_data.get("DELETE"):
                continue
            if self.instance.project_id and on.project_id != self.instance.project_id:
                raise ValidationError(f"{on.ref} belongs to another project.")
            if self.instance.pk and base.leads_to(self.instance.pk, {on.pk}, Dependency, "task", "on"):
                raise ValidationError(f"{on.ref} waits for this task already.")


class DependencyInline(base.ScopedInline):
    """Dependencies, which are added and removed but never changed."""

    model = Dependency
    formset = DependencyRows
    fk_name = "task"
    autocomplete_fields = ("on",)
    verbose_name, verbose_name_plural = "task to wait for", "waits for"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Dependency]:
        return super().get_queryset(request).select_related("on__project")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Task)
class TaskAdmin(base.ProjectScopedAdmin):
    form = TaskForm
    action_form = VerbForm
    actions = tuple(map(action_of, VERBS))
    actions_detail = ("rounds_page",)
    inlines = (DependencyInline,)
    list_display = (
        "ref", "title_begin", base.labelled("status", base.STATUS_LABELS), base.severity_label, "section",
        "round", "waits_for", "status_at",
    )  # fmt: skip
    list_display_links = ("ref", "title_begin")
    list_filter = (base.ProjectFilter, "status", "severity", "origin")
    list_select_related = ("project", "section")
    search_fields = ("title", "source", "project__slug")
    search_help_text = "Title, specification, or a name such as ledger-214"
    facts = (
        "why",
        ("status", "stage"),
        ("round", "rejections"),
        ("waits_for", "not_before"),
        ("accepted", "origin"),
        ("landed_at", "landed_sha"),
        ("created_at", "status_at"),
    )
    readonly_fields = ("why", *(name for row in facts[1:] for name in row))
    words = ("title", "body", ("source", "tags"), ("severity", "section"))

    # --- Reading -------------------------------------------------------------------------------------------

    @display(description="task", ordering="number")
    def ref(self, task: Task) -> str:
        return task.ref

    @display(description="why it is not moving")
    def why(self, task: Task) -> str:
        return waiting_line(task)

    title_begin = staticmethod(base.shortened("title"))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ((None, {"fields": self.words}),)
        return (
            (None, {"fields": (*self.words, "rank")}),
            ("Where it stands", {"fields": self.facts}),
        )

    # --- Writing -------------------------------------------------------------------------------------------

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "section":
            kwargs |= {"form_class": SectionChoice, "widget": UnfoldAdminSelectWidget()}
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if db_field.name == "section":
            field.queryset = field.queryset.select_related("project").order_by("project__name", "rank")
        return field

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Choose the section in advance if there is only one."""
        sections = list(base.choices_for(request, Section, self.change_roles)[:2])
        only = {"section": sections[0].pk} if len(sections) == 1 else {}
        return only | super().get_changeform_initial_data(request)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        if (section := form.base_fields.get("section")) is not None:
            if obj:
                section.queryset = section.queryset.filter(project=obj.project_id)
            elif not section.queryset.exists():
                section.help_text = format_html(NO_SECTION, reverse("admin:tasks_section_add"))
        return form

    def save_model(self, request: HttpRequest, obj: Task, form: Any, change: bool) -> None:
        """Give a new task the next number and the last rank of its project."""
        if not change:
            place_last(obj)
        super().save_model(request, obj, form, change)
        if change and "title" in form.changed_data:
            retitled(obj)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Recount what this task waits for, and what waits for its old and its new section."""
        super().save_related(request, form, formsets, change)
        task = form.instance
        recount([task])
        waits = any(isinstance(row, Dependency) for formset in formsets for row in formset.new_objects)
        if change and (said := too_late_for(task, {*form.changed_data}, waits=waits)):
            self.message_user(request, said, messages.WARNING)
        if "section" in form.changed_data:
            keys = {task.section_id, form.initial.get("section")} - {None}
            for section in Section.objects.filter(pk__in=keys):
                moved = copy.copy(task)
                moved.section = section
                recount_dependants(moved)

    def view_on_site(self, task: Task) -> str:
        """Return the URL of the task's page for people, which is made in the room of agents."""
        return reverse("task", args=[task.ref])

    # --- Rounds ---------------------------------------------------------------------------------------------

    def has_rounds_permission(self, request: HttpRequest, object_id: Any) -> bool:
        """Whether the user may rule on the task. Raises Http404 if they may not even see it."""
        pk = whole_number(str(object_id))
        if not tasks_for(request.user).filter(pk=pk).exists():
            raise Http404("There is no such task that you may see.")
        return tasks_for(request.user, RULE).filter(pk=pk).exists()

    # The page is made in a room above this one; here only its URL is known.
    @action(description="Roll back", url_path="rounds", icon="history", permissions=["rounds"])
    def rounds_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Redirect to the page on which rounds are taken back."""
        return redirect("task-rollback", self.get_object(request, object_id).ref)

    # --- Verbs ---------------------------------------------------------------------------------------------

    def has_maintain_permission(self, request: HttpRequest) -> bool:
        return self.allowed(request, MAINTAIN)

    def apply(self, verb: str, request: HttpRequest, queryset: Any) -> None:
        """Call the verb on each task that allows it, and tell the user what became of them all."""
        _, past, roles = VERBS[verb]
        actor, note = Actor.person(request.user), request.POST.get("note", "").strip()
        if verb == "reopen" and not note:
            why = "Nothing reopened: write why into the field beside the action."
            self.message_user(request, why, messages.ERROR)
            return
        can = set(queryset.can(verb).values_list("pk", flat=True))
        done, skipped = 0, Counter[str]()
        for task in queryset.select_related("project"):
            if not self.allowed(request, roles, task):
                skipped["not yours to move"] += 1
            elif task.pk not in can:
                skipped[f"already {task.get_status_display().lower()}"] += 1
            else:
                try:
                    getattr(task, verb)(actor=actor, note=note)
                    done += 1
                except IllegalMove as refusal:
                    skipped[f"already {refusal.status}"] += 1
                except Refused as refusal:
                    skipped[refusal.message.removesuffix(".")] += 1
                except StaleTask:
                    skipped["moved on meanwhile"] += 1
        parts = [f"{done} {past}", *(f"{count} skipped ({why})" for why, count in skipped.items())]
        level = messages.SUCCESS if done else messages.WARNING
        self.message_user(request, f"{', '.join(parts)}.", level)


@admin.register(Dependency)
class DependencyAdmin(base.ReadOnlyAdmin, base.ProjectScopedAdmin):
    """Which task waits for which. Dependencies are edited on the task's page."""

    project_path = "task__project"
    list_display = ("task", "on")
    list_filter = (base.ProjectFilter,)
    list_select_related = ("task__project", "on__project")
    search_fields = ("task__title", "on__title")


@admin.register(Comment)
class CommentAdmin(base.ProjectScopedAdmin):
    """Comments, which whoever may rule may write. Of others' comments, only the status can be changed."""

    change_roles = RULE
    list_display = (base.shortened("body"), base.task_ref, "target", "by_label", "status", "resolution", "at")
    list_filter = (base.ProjectFilter, "status", "by_kind")
    list_select_related = ("project", "task__project")
    search_fields = ("body", "target", "by_label", "task__title")
    autocomplete_fields = ("task",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        if obj is None:
            return ("task", "target", "body")
        return ("task", "target", "body", "status", "resolution", "parent", "by_label", "at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        if obj is None:
            return ()
        fixed = ("task", "parent", "by_label", "at")
        return fixed if obj.by_user_id == request.user.pk else (*fixed, "target", "body")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        if "task" in form.base_fields:
            form.base_fields["task"].required = True
        if "body" in form.base_fields:
            form.base_fields["body"].validators.append(MaxLengthValidator(BODY_MAX))
        return form

    def save_model(self, request: HttpRequest, obj: Comment, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        made = add_comment(
            obj.task.project, obj.body, actor=Actor.person(request.user), task=obj.task, target=obj.target
        )
        obj.pk, obj.project, obj._state.adding = made.pk, made.project, False
