"""The admin of a project's own prompts: maintainers write versions, all members read them."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from agents.models import PromptText, Run
from agents.prompts import compose, templates, texts
from agents.prompts.texts import BadText
from tasks.access import MAINTAIN, role_in
from tasks.admin.base import ProjectFilter, ProjectScopedAdmin, SharedForm, in_full, preformatted
from tasks.text.counting import counted

WORDS = in_full("text", "text")
NAMES = [(name, name) for name in templates.SHAPES]


def programs_text(name: str) -> str:
    """Return the program's own text, with which a new version begins."""
    return templates.own_source(name if name in templates.SHAPES else "coder").strip() + "\n"


class PromptTextForm(SharedForm):
    """The form for a new version; it checks the text, so that each fault is shown with its line."""

    name = forms.ChoiceField(
        choices=NAMES, widget=UnfoldAdminSelectWidget(), label="Prompt",
        help_text="Whose prompt it is. Rulings, findings, the rule to keep hands off and the form of the "
        "hand-in are added by the program and cannot be taken away.",
    )  # fmt: skip
    text = forms.CharField(
        max_length=templates.TEXT_MAX, strip=False,
        widget=UnfoldAdminTextareaWidget({"rows": 30, "class": "setting-code", "spellcheck": "false"}),
    )  # fmt: skip

    class Meta:
        model = PromptText
        fields = ("project", "name", "text", "is_active")

    def _get_validation_exclusions(self) -> set[str]:
        """Exclude the constraints: `texts.write` numbers the versions and keeps at most one in use."""
        return super()._get_validation_exclusions() | {"project", "name"}

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("name") and data.get("text"):
            text = data["text"].replace("\r\n", "\n")
            if faults := templates.check(data["name"], text):
                raise ValidationError({"text": [str(fault) for fault in faults]})
        return data


def help_with_variables() -> str:
    """Return the variables of each prompt, for the help text of the form."""
    return " ".join(f"{name}: {', '.join(sorted(shape))}." for name, shape in templates.SHAPES.items())


@admin.register(PromptText)
class PromptTextAdmin(ProjectScopedAdmin):
    """Versions are never changed or deleted: write another one, or use an earlier one again."""

    list_display = ("version_label", "project", "is_active", "runs_told", "by_user", "at")
    list_filter = (ProjectFilter, "name", "is_active")
    list_select_related = ("project", "by_user")
    search_fields = ("name", "text")
    actions = ("use_it", "use_the_programs")
    form = PromptTextForm

    def get_queryset(self, request: HttpRequest) -> QuerySet[PromptText]:
        return super().get_queryset(request).annotate(told=Count("runs"))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[Any, ...]:
        if obj is None:
            return ("project", "name", "text", "is_active")
        return ("project", "name", "version", "is_active", "by_user", "at", "hash", WORDS, "preview")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[Any, ...]:
        return () if obj is None else self.get_fields(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Forbid changes to a version, but let maintainers choose one with the actions of the list."""
        return obj is None and super().has_change_permission(request)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        asked = super().get_changeform_initial_data(request)
        name = str(asked.get("name", "coder"))
        return {"name": name, "text": programs_text(name), "is_active": True} | asked

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        if obj is None:
            form.base_fields[
                "text"
            ].help_text = f"Markdown with {{{{ variables }}}} and {{% if %}}. {help_with_variables()}"
            form.base_fields["is_active"].help_text = "Without this it is kept, and can be looked at first."
        return form

    def save_model(self, request: HttpRequest, obj: PromptText, form: Any, change: bool) -> None:
        made = texts.write(obj.project, obj.name, obj.text, user=request.user, is_active=obj.is_active)
        obj.pk, obj.version, obj.hash, obj.text = made.pk, made.version, made.hash, made.text
        obj._state.adding = False

    # --- What is shown ---

    @display(description="prompt", ordering="name")
    def version_label(self, text: PromptText) -> str:
        return f"{text.name}, version {text.version}"

    @display(description="runs told", ordering="told")
    def runs_told(self, text: Any) -> int:
        return text.told

    @display(description="as the last run would be told")
    def preview(self, text: PromptText) -> SafeString:
        return preformatted(preview_of(text))

    # --- What is done ---

    @admin.action(description="Use this version")
    def use_it(self, request: HttpRequest, rows: QuerySet[PromptText]) -> None:
        chosen = [text for text in rows.select_related("project") if self._may(request, text)]
        for text in chosen:
            try:
                texts.use(text, user=request.user)
            except BadText as error:
                self.message_user(request, f"{text}: {error}", messages.ERROR)
                return
        self._tell(request, len(chosen), "now used")

    @admin.action(description="Use the program's text instead")
    def use_the_programs(self, request: HttpRequest, rows: QuerySet[PromptText]) -> None:
        chosen = [text for text in rows.select_related("project") if self._may(request, text)]
        for text in chosen:
            texts.use_the_programs(text, user=request.user)
        self._tell(request, len(chosen), "no longer used; the program's text is")

    def _may(self, request: HttpRequest, text: PromptText) -> bool:
        return role_in(request, text.project_id) in MAINTAIN

    def _tell(self, request: HttpRequest, count: int, words: str) -> None:
        if count:
            self.message_user(request, f"{counted(count, 'text')}: {words}.", messages.SUCCESS)
        else:
            self.message_user(request, "Only maintainers of the project choose its texts.", messages.WARNING)


def preview_of(text: PromptText) -> str:
    """Return the prompt of the project's newest run in that role, as it would be with this text.

    Nothing is saved, and what only the repository contains is left out. If there is no such run, the return
    value is a sentence that says so.
    """
    run = (
        Run.objects.filter(compose.runs_told_by(text.name), project=text.project_id)
        .select_related("task__project", "agent", "opinion")
        .order_by("-pk")
        .first()
    )
    if run is None:
        return f"No {text.name} has run in this project yet; there is nothing to show it with."
    if run.role in Run.OPINION_ROLES and run.opinion_id is None:
        return "The last run was asked for no opinion; there is nothing to show it with."
    material = compose.Material(source_name=run.task.source)
    return compose.compose_with(run, material, [], text).text
