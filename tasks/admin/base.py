"""What all admins of this program share: who sees which rows, and which columns a form may write."""

import json
from collections.abc import Callable
from datetime import datetime
from functools import partial, reduce
from itertools import chain
from operator import or_
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin import helpers
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.forms.fields import InvalidJSONInput
from django.http import Http404, HttpRequest
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from unfold.admin import ModelAdmin, TabularInline, checkbox
from unfold.decorators import display

from tasks.access import MAINTAIN, READ, RULE, is_superuser, project_ids, projects_for, tasks_for
from tasks.database.clock import estimated_time
from tasks.events import Actor
from tasks.models import Project, Task
from tasks.models.event import record
from tasks.states import Severity, Status
from tasks.text.unseen import plain, visible

ASKED_FROM = 10  # rows that one action is about; fewer are seen at once
SLUG_SAYS = "Only the letters A to Z, large or small, digits, hyphens and underscores; no spaces."
SEVERITY_LABELS = {
    Severity.CRITICAL: "danger",
    Severity.HIGH: "warning",
    Severity.MEDIUM: "neutral",
    Severity.LOW: "neutral",
}
STATUS_LABELS = dict.fromkeys(Status, "neutral") | {
    Status.COMPLETED: "success",
    Status.FAILED: "danger",
    Status.DISPUTED: "warning",
}


def labelled(field: str, labels: dict[Any, str]) -> Callable[[Any], tuple[str, str]]:
    """Return a column that shows a choice as a label, in the colour that belongs to its value."""

    @display(description=field, ordering=field, label=labels)
    def column(row: Any) -> tuple[str, str]:
        return getattr(row, field), getattr(row, f"get_{field}_display")()

    column.__name__ = f"{field}_label"
    return column


def related(path: str, name: str, ordering: str) -> Callable[[Any], Any]:
    """Return a column that shows what a path such as submission.task.ref leads to; "-" if it ends early."""

    @display(description=name, ordering=ordering)
    def column(row: Any) -> Any:
        found = reduce(lambda row, step: getattr(row, step, None), path.split("."), row)
        return "-" if found is None else found

    column.__name__ = path.rpartition(".")[2]
    return column


severity_label = labelled("severity", SEVERITY_LABELS)


@display(description="task", ordering="task")
def task_ref(row: Any) -> str:
    return row.task.ref if row.task else "-"


@display(description="commit", ordering="sha")
def short_sha(row: Any) -> str:
    return row.sha[:10] or "no commit"  # such as a proposal about documents: the row's link needs words


def shortened(field: str) -> Callable[[Any], str]:
    """Return a column that shows the beginning of a long text."""

    @display(description=field.replace("_", " "), ordering=field)
    def column(row: Any) -> str:
        return Truncator(getattr(row, field)).chars(80)

    column.__name__ = field
    return column


def preformatted(text: str) -> SafeString:
    """Return text whose line ends and columns matter, such as a log, in a box that keys can scroll."""
    box = '<pre class="preformatted" tabindex="0">{}</pre>'
    return format_html(box, visible(text)) if text else SafeString("-")


def in_full(field: str, name: str) -> Callable[[Any], SafeString]:
    """Return a read-only field that shows a long text whole; `name` is what people read beside it."""

    @display(description=name)
    def shown(row: Any) -> SafeString:
        return preformatted(getattr(row, field))

    shown.__name__ = f"{field}_in_full"
    return shown


class JSONText(forms.JSONField):
    """Indented JSON. If left empty, it is the column's default, and never null."""

    def __init__(self, *, when_empty: Callable[[], Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.when_empty = when_empty

    def to_python(self, value: Any) -> Any:
        value = super().to_python(value)
        return self.when_empty() if value is None else value

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, InvalidJSONInput):
            return value
        return json.dumps(value, ensure_ascii=False, indent=2)


def choices_for(request: HttpRequest, model: type[models.Model], roles: frozenset[str]) -> QuerySet[Any]:
    """Return the rows of `model` that a form may refer to: those of projects in which the user has a role."""
    rows: QuerySet[Any] = model._default_manager.all()
    path = getattr(admin.site._registry.get(model), "project_path", None)
    if path is None or is_superuser(request):
        return rows
    return rows.filter(**{f"{path}__in": projects_for(request.user, roles)})


def leads_to(goal: int, keys: set[int], model: type[models.Model], source: str, target: str) -> bool:
    """Whether the links from `source` to `target` in the rows of `model` lead from `keys` to `goal`."""
    seen: set[int] = set()
    while keys:
        if goal in keys:
            return True
        seen |= keys
        rows = model._default_manager.filter(**{f"{source}__in": keys, f"{target}__isnull": False})
        keys = set(rows.values_list(target, flat=True)) - seen
    return False


def rows_touched(formset: Any) -> list[str]:
    """Return in words which inline rows were added, changed and removed."""
    return [
        *(f"added {row}" for row in formset.new_objects),
        *(f"changed {row}" for row, _ in formset.changed_objects),
        *(f"removed {row}" for row in formset.deleted_objects),
    ]


MEANWHILE = (
    "Somebody changed this while you had the page open. It now says: {} Nothing was saved; save again to put "
    "yours in its place."
)


def quoted(value: Any) -> str:
    """Return what a form's field holds as a quotation for people."""
    if isinstance(value, dict):
        value = [f"{key}: {part}" for key, part in value.items()]
    shown = ", ".join(map(str, value)) if isinstance(value, list | QuerySet) else str(value)
    return f"“{Truncator(shown).chars(300)}”." if shown not in ("", "None") else "nothing."


class EveryAdmin:
    """What the admins of our models and those of Django's share.

    A row that is not there is told of in words. A mass deletion logs each row with its own save, so that
    signal handlers hear of it.
    """

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        obj = super().get_object(request, object_id, from_field or None)  # type: ignore[misc]
        if obj is None:
            raise Http404(f"There is no such {self.opts.verbose_name} that you may see.")  # type: ignore[attr-defined]
        return obj

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            super().log_deletions(request, [row])  # type: ignore[misc]

    @display(description="select")
    def action_checkbox(self, obj: Any) -> str:
        """Return the box that selects the row, named by it; unfold calls each of them "Select record"."""
        named = {"aria-label": f"Select {plain(str(obj))}"}
        return checkbox.render(helpers.ACTION_CHECKBOX_NAME, str(obj.pk), named)


class SharedForm(forms.ModelForm):
    """A form that several people may have open at once, none of whom undoes what another one saves.

    The page sends back what each field showed at first. A field that its user left alone keeps what is
    stored by now; one that somebody else changed, too, is asked about.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items() if self.instance.pk else ():
            field.show_hidden_initial = not field.disabled and (not self.is_bound or self._sent_back(name))

    def _sent_back(self, name: str) -> bool:
        first = self.add_initial_prefix(name)
        return any(key == first or key.startswith(f"{first}_") for key in self.data)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for bound in self:
            field, name = bound.field, bound.name
            if not field.show_hidden_initial or field.disabled or name not in data:
                continue
            hidden = field.hidden_widget()
            shown = hidden.value_from_datadict(self.data, self.files, bound.html_initial_name)
            if not field.has_changed(bound.initial, shown):
                continue
            stored = field.prepare_value(bound.initial)
            if isinstance(hidden, forms.MultiWidget):
                stored = hidden.decompress(stored)
            if name not in self.changed_data:
                data[name] = field.clean(stored)
            elif field.has_changed(bound.initial, bound.data):
                self._show_first(bound.html_initial_name, hidden, stored)
                self.add_error(name, MEANWHILE.format(quoted(field.clean(stored))))
        return data

    def _show_first(self, name: str, hidden: forms.Widget, stored: Any) -> None:
        """Count the stored value as seen, so that whoever saves again replaces it."""
        self.data = self.data.copy()
        if isinstance(hidden, forms.MultiWidget):
            self.data |= {f"{name}_{number}": value for number, value in enumerate(stored)}
        elif isinstance(hidden, forms.MultipleHiddenInput):
            self.data.setlist(name, stored)
        else:
            self.data[name] = "" if stored is None else stored


class BaseAdmin(EveryAdmin, ModelAdmin):
    """Unfold's admin with the defaults of this program."""

    form = SharedForm
    list_per_page = 50
    warn_unsaved_form = True

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Whether a list may be filtered by this: only by what it offers.

        Django allows every column, and what is left over tells a hidden one letter by letter.
        """
        offered = [self.date_hierarchy] if self.date_hierarchy else []
        for each in self.list_filter if request is None else self.get_list_filter(request):
            name = each[0] if isinstance(each, tuple) else getattr(each, "parameter_name", each)
            offered.append(str(name))
        return any(lookup == name or lookup.startswith(f"{name}__") for name in offered)

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Ask first if an action is about many rows: whoever ticks the head of a list may not have seen them.

        Deleting asks by itself, whatever the number.
        """
        name = next(iter(request.POST.getlist("action")), "")
        is_all = request.POST.get("select_across") == "1"
        picked = request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
        known = self.get_actions(request).get(name)
        if known is None or name == "delete_selected" or "confirmed" in request.POST:
            return super().response_action(request, queryset)
        number = queryset.count() if is_all else len(picked)
        if number < ASKED_FROM:
            return super().response_action(request, queryset)
        sent = [each for each in request.POST.lists() if each[0] != "csrfmiddlewaretoken"]
        context = {
            "title": f"{known[2]}?",
            "action": known[2],
            "opts": self.opts,
            "number": number,
            "sent": sent,
        } | self.admin_site.each_context(request)
        return TemplateResponse(request, "admin/action_confirmation.html", context)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Find a task by its name, such as ledger-214, and what is about it where its title is searched."""
        ways = [field for field in self.get_search_fields(request) if field.endswith("task__title")]
        about = ["pk"] if self.model is Task else [field.removesuffix("__title") for field in ways]
        named = (
            list(tasks_for(request.user).searched(search_term).values_list("pk", flat=True)) if about else []
        )
        if not named:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(reduce(or_, (Q((f"{field}__in", named)) for field in about))), False

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> Any:
        """Return the columns that lead to the row; Django compares them by name, and a column may be none."""
        named = super().get_list_display_links(request, list_display)
        return named and [each for each in list_display if getattr(each, "__name__", each) in named]

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if isinstance(db_field, models.JSONField):
            kwargs["form_class"] = partial(JSONText, when_empty=db_field.get_default)
        elif isinstance(db_field, models.SlugField):
            kwargs["error_messages"] = {"invalid": SLUG_SAYS}
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write only the columns that the user changed, because machines may write the others meanwhile."""
        if change:
            columns = {field.name for field in obj._meta.concrete_fields}
            obj.save(update_fields=columns & set(form.changed_data))
        else:
            obj.save()


class ExpiringAdmin:
    """A mixin for rows that are valid until `expires_at`: a time that has passed is refused."""

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)  # type: ignore[misc]
        if db_field.name == "expires_at" and field is not None:
            field.validators = [*field.validators, _lies_ahead]
        return field


def _lies_ahead(at: datetime) -> None:
    if at <= estimated_time():
        raise ValidationError("That time has passed. Choose a later one.", code="over")


class MadeByAdmin:
    """A mixin that stores on each new row who added it."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            obj.by = request.user
        super().save_model(request, obj, form, change)  # type: ignore[misc]


class DeletableAdmin:
    """A mixin for rows of a project that whoever may change them may delete, which is recorded."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)  # type: ignore[attr-defined]

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.record(request, obj, "deleted", str(obj))  # type: ignore[attr-defined]
        super().delete_model(request, obj)  # type: ignore[misc]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset.select_related(*self.list_select_related):  # type: ignore[attr-defined]
            self.delete_model(request, row)


class ReadOnlyAdmin:
    """A mixin for rows that machines write and people only read."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission


class AllowedAdmin:
    """A mixin that asks `allowed` instead of Django's model permissions."""

    change_roles = MAINTAIN

    def allowed(self, request: HttpRequest, roles: frozenset[str], obj: Any = None) -> bool:
        """Whether the user has one of the roles for this row; without a row, for any."""
        raise NotImplementedError

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.allowed(request, READ)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.allowed(request, READ, obj)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.allowed(request, self.change_roles, obj)

    has_change_permission = has_delete_permission = has_add_permission


class SuperuserAdmin(AllowedAdmin, EveryAdmin):
    """A mixin for rows that concern the whole installation."""

    def allowed(self, request: HttpRequest, roles: frozenset[str], obj: Any = None) -> bool:
        return is_superuser(request)


class ScopedAdmin(AllowedAdmin):
    """A mixin for rows of projects, which cannot refer to rows that the user may not see."""

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs.setdefault("queryset", choices_for(request, db_field.related_model, self.change_roles))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]


class ProjectScopedAdmin(ScopedAdmin, BaseAdmin):
    """Rows that belong to a project. Memberships, not Django's permissions, say who may do what.

    A user who is not a member learns nothing, not even that a row exists.
    """

    project_path = "project"

    def project_id(self, obj: Any) -> int:
        """Return the key of the project that this row belongs to."""
        if self.project_path == "pk":
            return obj.pk
        *steps, last = self.project_path.split("__")
        return getattr(reduce(getattr, steps, obj), f"{last}_id")

    def allowed(self, request: HttpRequest, roles: frozenset[str], obj: Any = None) -> bool:
        """Whether the user has one of the roles in the row's project; without a row, in any project."""
        if is_superuser(request):
            return True
        mine = project_ids(request, roles)
        return bool(mine) if obj is None else self.project_id(obj) in mine

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_rule_permission(self, request: HttpRequest) -> bool:
        """Whether the user may use the actions that only those who may rule are offered."""
        return self.allowed(request, RULE)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        if is_superuser(request):
            return rows
        # EXISTS, because with IN, SQLite would fetch and sort all rows of the projects to show the newest 50.
        return rows.filter(Exists(projects_for(request.user).filter(pk=OuterRef(self.project_path))))

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs.setdefault("queryset", choices_for(request, db_field.related_model, self.change_roles))
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Record an event for whatever the user edited, which also rings the loop."""
        super().save_related(request, form, formsets, change)
        fields = self.touched(form)
        touched = [*fields, *chain.from_iterable(map(rows_touched, formsets))]
        if touched or not change:
            what = "edited" if change else "added"
            self.record(request, form.instance, what, ", ".join(touched), {"fields": fields})

    def touched(self, form: Any) -> list[str]:
        """Return the changed fields that the event is to name."""
        return [*form.changed_data]

    def record(
        self, request: HttpRequest, obj: Any, what: str, note: str, data: dict[str, Any] | None = None
    ) -> None:
        """Record an event such as `task_edited` or `section_added` in the user's name."""
        record(
            Project.objects.get(pk=self.project_id(obj)),
            f"{self.opts.model_name}_{what}",
            actor=Actor.person(request.user),
            task=obj if isinstance(obj, Task) else getattr(obj, "task", None),
            note=note,
            data=data,
        )


class NamedInline(TabularInline):
    """Inline rows whose fields have labels for screen readers."""

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Name and explain the field: screen readers do not connect it with the head of its column."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None:
            inner = getattr(field.widget, "widget", field.widget)  # inside the links to add and change
            named = {"aria-label": str(field.label)} | ({"title": field.help_text} if field.help_text else {})
            inner.attrs |= named
            field.widget.attrs |= named
        return field


class ScopedInline(ScopedAdmin, NamedInline):
    """Inline rows on the page of a project's row, subject to the same memberships."""

    extra = 0
    hide_title = True

    def allowed(self, request: HttpRequest, roles: frozenset[str], obj: Any = None) -> bool:
        return self.admin_site.get_model_admin(self.parent_model).allowed(request, roles, obj)


class ProjectFilter(admin.SimpleListFilter):
    """A filter by the user's projects, which shows no other project's name."""

    title = "project"
    parameter_name = "of"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        self.path = model_admin.project_path
        return [(slug, name) for slug, name in projects_for(request.user).values_list("slug", "name")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{f"{self.path}__slug": self.value()}) if self.value() else queryset
