"""The settings of a project as form fields: one for each key of the schema, with its help and default."""

import json
from functools import partial
from typing import Any

import yaml
from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold import widgets

from tasks.admin.base import SharedForm
from tasks.configuration import schema
from tasks.configuration.changing import refuse_stranding
from tasks.configuration.policy import (
    DEFAULTS,
    GROUPS,
    SETTINGS,
    SHELL_COMMANDS,
    ProjectSettings,
    SettingsError,
    default_of,
    in_words,
)
from tasks.configuration.reading import FaultyFile, read_value
from tasks.configuration.stages import Stages
from tasks.models import Project

COMMANDS_LOCKED = "Only a superuser changes it: hosts run it with their own rights."


class LinesField(forms.CharField):
    """A command, which may have several lines and is kept as it was typed."""

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")


class YamlField(forms.CharField):
    """A setting that is written in YAML; an error names its line."""

    kind: schema.Kind
    key: str

    def to_python(self, value: Any) -> Any:
        if isinstance(value, dict | list):
            return value
        text = super().to_python(value)
        try:
            return self.kind.plain(read_value(self.kind, text, self.key)) if text.strip() else self.empty()
        except FaultyFile as error:
            raise ValidationError(
                [f"Line {fault.line}: {fault.message}" for fault in error.faults]
            ) from error

    def empty(self) -> Any:
        """Return the value of a field in which nothing is written."""
        return None

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.to_python(initial or "") != self.to_python(data))
        except ValidationError:
            return True


class LaddersField(YamlField):
    """Ladders written in YAML."""

    kind, key = schema.Ladders(), "model_ladder"

    def empty(self) -> Any:
        return {}

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value  # as it was typed
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True) if value else ""


class StagesField(YamlField):
    """The stages as JSON; YAML and the name of a preset are also read."""

    kind, key = Stages(), "stages"

    def prepare_value(self, value: Any) -> Any:
        return json.dumps(value, indent=2, ensure_ascii=False) if isinstance(value, list) else value


class SeveritiesWidget(forms.MultiWidget):
    """One small field for each severity, side by side, each labelled."""

    def decompress(self, value: Any) -> list[Any]:
        return list(value.values()) if value else [None] * len(self.widgets)

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        parts = self.get_context(name, value, attrs)["widget"]["subwidgets"]
        cells = (
            (part["attrs"]["aria-label"], self._render(part["template_name"], {"widget": part}, renderer))
            for part in parts
        )
        rows = format_html_join("", '<label class="setting-cell"><span>{}</span>{}</label>', cells)
        return format_html('<div class="setting-cells">{}</div>', rows)


class HiddenSeverities(forms.MultiWidget):
    """What the fields of the severities showed at first."""

    decompress = SeveritiesWidget.decompress


class SeveritiesField(forms.MultiValueField):
    """A value for each severity; those that are fixed cannot be chosen."""

    def __init__(self, kind: schema.PerSeverity, default: dict[str, Any], **options: Any) -> None:
        self.default, self.fixed = default, dict(kind.fixed)
        parts = [_field(kind.each, name, name in self.fixed) for name in default]
        widget = SeveritiesWidget([part.widget for part in parts])
        super().__init__(parts, widget=widget, require_all_fields=False, **options)
        hidden = [forms.HiddenInput({"disabled": True} if name in self.fixed else {}) for name in default]
        self.hidden_widget = partial(HiddenSeverities, hidden)

    def compress(self, data_list: list[Any]) -> dict[str, Any]:
        given = dict(zip(self.default, data_list or [None] * len(self.default), strict=True))
        chosen = {name: self.default[name] if value in (None, "") else value for name, value in given.items()}
        return chosen | self.fixed


# The fields of settings that are written as a text, and how many lines each shows.
TEXTS: dict[type[schema.Kind], tuple[type[forms.CharField], int]] = {
    schema.Ladders: (LaddersField, 8), Stages: (StagesField, 10), schema.Text: (LinesField, 2),
}  # fmt: skip


def _number_attrs(kind: schema.Whole | schema.Number) -> dict[str, Any]:
    return {"min": kind.low, "max": kind.high, "step": 1 if isinstance(kind, schema.Whole) else "any"}


def _field(kind: schema.Kind, name: str = "", fixed: bool = False, **options: Any) -> forms.Field:
    """Return the form field for values of this kind; `name` labels it for screen readers."""
    attrs: dict[str, Any] = ({"aria-label": name} if name else {}) | ({"disabled": True} if fixed else {})
    match kind:
        case schema.Flag():
            return forms.BooleanField(
                widget=widgets.UnfoldBooleanSwitchWidget(attrs), required=False, **options
            )
        case schema.Whole():
            widget = widgets.UnfoldAdminDecimalFieldWidget(attrs | _number_attrs(kind))
            return forms.IntegerField(widget=widget, required=False, **options)
        case schema.Number():
            widget = widgets.UnfoldAdminDecimalFieldWidget(attrs | _number_attrs(kind))
            return forms.FloatField(widget=widget, required=False, **options)
        case schema.Choice(words=words):
            choices = [(word, word.replace("_", " ")) for word in words]
            select = widgets.UnfoldAdminSelectWidget(attrs)
            return forms.ChoiceField(choices=choices, widget=select, required=False, **options)
        case schema.Words(words=words):
            boxes = widgets.UnfoldAdminCheckboxSelectMultipleWidget()
            choices = [(word, word) for word in words]
            return forms.MultipleChoiceField(choices=choices, widget=boxes, required=False, **options)
    written, rows = next(field for known, field in TEXTS.items() if isinstance(kind, known))
    area = widgets.UnfoldAdminTextareaWidget(
        attrs | {"rows": rows, "class": "setting-code", "spellcheck": "false"}
    )
    return written(widget=area, required=False, strip=False, **options)


def _check(key: str, value: Any) -> None:
    try:
        SETTINGS[key].kind.check(key, value)
    except SettingsError as error:
        raise ValidationError(str(error)) from error


def setting_field(key: str, entry: schema.Setting) -> forms.Field:
    """Return the form field for one setting."""
    options: dict[str, Any] = {
        "label": key.replace("_", " ").capitalize(),
        "help_text": format_html(
            '{} <span class="setting-default">Default: {}.</span> <code>{}</code>',
            entry.help, default_of(key), entry.path or key,
        ),
        "validators": [partial(_check, key)],
    }  # fmt: skip
    if isinstance(entry.kind, schema.PerSeverity):
        return SeveritiesField(entry.kind, DEFAULTS.plain(key), required=False, **options)
    return _field(entry.kind, **options)


def lock_commands(form: forms.BaseForm) -> None:
    """Show the shell commands to a user who may not set them, and accept no changes to them."""
    for key in SHELL_COMMANDS:
        field = form.fields[key]
        field.disabled = True
        field.help_text = format_html("{} <b>{}</b>", field.help_text, COMMANDS_LOCKED)


def _tidy(value: Any) -> Any:
    """Return a whole float as an int, so that a field shows 10 and not 10.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class SettingsForm(SharedForm):
    """A project with its settings. A setting that is left empty gets its default."""

    may_set_commands = True  # whether the user of this form may

    class Meta:
        model = Project
        fields = ("name",)  # the admin names the others

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = self.instance.config.to_json()
        self.initial = {key: _tidy(value) for key, value in stored.items()} | self.initial
        if not self.may_set_commands:
            lock_commands(self)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        values = {key: data[key] for key in SETTINGS if key in data}
        defaults = DEFAULTS.to_json()
        for key, value in values.items():
            if value is None or (value == "" and isinstance(SETTINGS[key].kind, schema.Choice)):
                data[key] = values[key] = defaults[key]
        if len(values) == len(SETTINGS):
            try:
                settings = ProjectSettings.from_json(values)
            except SettingsError as error:
                self.add_error(error.key.partition(".")[0] or None, str(error))
            else:
                if "stages" in self.changed_data:
                    self._check_stages(settings)
        return data

    def _check_stages(self, settings: ProjectSettings) -> None:
        try:
            refuse_stranding(self.instance, settings)
        except SettingsError as error:
            self.add_error("stages", str(error))

    def setting_changes(self) -> dict[str, Any]:
        """Return the settings that the user changed on the page."""
        return {key: self.cleaned_data[key] for key in self.changed_data if key in SETTINGS}


# The fields are made from the schema, so the class is too.
ProjectForm = type(
    "ProjectForm", (SettingsForm,), {key: setting_field(key, entry) for key, entry in SETTINGS.items()}
)
SETTING_FIELDSETS = tuple(
    (
        group,
        {
            "classes": ("tab",),
            "fields": tuple(key for key, entry in SETTINGS.items() if entry.group == group),
        },
    )
    for group in GROUPS
)


def settings_table(settings: ProjectSettings) -> SafeString:
    """Return a table of the settings for those who may only read them."""
    told = settings.to_json()
    rows = (
        (key, in_words(key, told[key]), "" if told[key] == DEFAULTS.plain(key) else "changed", entry.help)
        for key, entry in SETTINGS.items()
    )
    cells = "<tr><th><code>{}</code></th><td>{} <b>{}</b></td><td>{}</td></tr>"
    return format_html('<table class="setting-table">{}</table>', format_html_join("", cells, rows))
