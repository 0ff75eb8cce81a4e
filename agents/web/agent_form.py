"""The form of an agent in the admin, with one field for each setting of its provider."""

import re
import shlex
from functools import cached_property
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold import widgets

from agents.models import Agent
from agents.models.agent import provider_choices
from agents.providers.base import NAME
from agents.providers.registry import PROVIDERS
from tasks.admin.base import SharedForm
from tasks.admin.settings_form import LinesField
from tasks.configuration.stages import escalations_of, stages_of
from tasks.models import Project, Task
from tasks.text.regex import regex

# From the fields of the form to the places of their values in the agent's settings.
SETTINGS: dict[str, tuple[str, ...]] = {
    "command_line": ("argv",),
    "key": ("key",),
    "passes": ("pass",),
    "cassettes": ("cassettes",),
    "program": ("program",),
    "base_url": ("base_url",),
    "sign_in_file": ("sign_in_file",),
    "account": ("account",),
    "hosts": ("hosts",),
    "again": ("again",),
    "cost_input": ("cost", "input"),
    "cost_output": ("cost", "output"),
    "cost_cache_read": ("cost", "cache_read"),
    "limit_context": ("limit", "context"),
    "limit_output": ("limit", "output"),
}
FIELD_OF = {path[0]: name for name, path in reversed(SETTINGS.items())} | {"model": "model"}

TASKS_ASKED = 500  # the tags of this many newest tasks are offered
WORDS_OFFERED = 40
WORD = regex(r'"([^"]*)"|([^\s,]+)')


class ProviderCards(forms.RadioSelect):
    """One card for each provider; it lists the fields that fit, for a script that hides the others."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        option["about"] = PROVIDERS[str(value)].about
        option["fields"] = " ".join(fitting(str(value)))
        return option

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        return render_to_string("agents/parts/provider_cards.html", self.get_context(name, value, attrs))


class WordsWidget(widgets.UnfoldAdminTextInputWidget):
    """A line of words, with the known ones below it; a script turns those into buttons."""

    offered: tuple[str, ...] = ()

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        line = super().render(name, value, attrs, renderer)
        if not self.offered:
            return line
        words = format_html_join(
            " ", '<span class="agent-word">{}</span>', ((word,) for word in self.offered)
        )
        return format_html('{}<p class="agent-words" data-words="{}">Known: {}</p>', line, name, words)


class WordsField(forms.CharField):
    """A list of words separated by commas or spaces; a word that contains either is quoted."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, widget=WordsWidget(), **options)

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return ", ".join(f'"{word}"' if re.search(r"[\s,]", str(word)) else str(word) for word in value)

    def to_python(self, value: Any) -> list[str]:
        found = [quoted or plain for quoted, plain in WORD.findall(super().to_python(value))]
        return list(dict.fromkeys(found))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return self.to_python(self.prepare_value(initial or "")) != self.to_python(data)

    def run_validators(self, value: Any) -> None:
        """Skip all validators: the words are not checked here."""


class CommandField(forms.CharField):
    """A command as a shell would read it, stored as its words."""

    def prepare_value(self, value: Any) -> Any:
        return " ".join(_quoted(str(word)) for word in value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> list[str]:
        text = str(super().to_python(value)).replace("\r\n", "\n")
        try:
            return shlex.split(text)
        except ValueError:
            raise ValidationError("A quotation mark is opened and never closed.") from None

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return list(initial or []) != self.to_python(data)
        except ValidationError:
            return True

    def run_validators(self, value: Any) -> None:
        """Skip all validators: the provider checks the words."""


def _quoted(word: str) -> str:
    """Return the word quoted as a shell needs it, unless only its placeholders would need quotes.

    No shell reads the command, so a placeholder alone needs none.
    """
    bare = re.sub(r"[{}]", "", word)
    return word if bare and shlex.quote(bare) == bare else shlex.quote(word)


def _line(label: str, help_text: str = "", **attrs: Any) -> forms.CharField:
    widget = widgets.UnfoldAdminTextInputWidget(attrs | {"autocomplete": "off", "spellcheck": "false"})
    return forms.CharField(label=label, help_text=help_text, required=False, widget=widget)


def _amount(label: str, help_text: str = "") -> forms.FloatField:
    widget = widgets.UnfoldAdminDecimalFieldWidget({"min": 0, "step": "any"})
    return forms.FloatField(label=label, help_text=help_text, required=False, min_value=0, widget=widget)


class AgentForm(SharedForm):
    """The fields of the row, and those of its settings that its provider knows."""

    provider = forms.ChoiceField(
        label="What it is", choices=provider_choices, initial=next(iter(PROVIDERS)),
        widget=ProviderCards,
    )  # fmt: skip
    command_line = CommandField(
        label="Command line", required=False,
        widget=widgets.UnfoldAdminTextareaWidget({"rows": 2, "spellcheck": "false"}),
        help_text="As in a shell: my-agent --file {prompt}. {prompt} is the path of the prompt, which is "
        "also on standard input; {clone} and {model} may stand there too. Any command only.",
    )  # fmt: skip
    key = _line(
        "Key variable",
        "Name of the variable that holds the key where the orchestrator runs, if it is not the usual one. "
        "Never the key itself. The four known commands only.",
    )
    passes = WordsField(
        label="Variables to pass",
        help_text="Names of further variables of the orchestrator's environment that it may see: "
        "MY_AGENT_KEY, HTTPS_PROXY. Any command gets its key this way.",
    )
    hosts = WordsField(
        label="Hosts",
        help_text="What it may reach from inside the sandbox besides its vendor: api.example.org, "
        "127.0.0.1:11434, or * for everything public.",
    )  # fmt: skip
    again = WordsField(
        label="Try again after",
        help_text='Texts among its last lines that mean "try again later": ECONNREFUSED, "no capacity". '
        "Ending with 75 says the same. It then rests, and the task counts no failure. Any command only.",
    )
    cassettes = _line("Cassettes", "Path of the folder. Recorded cassette only.")
    domains = WordsField(label="Domains", help_text="Tags of the tasks that it works on; empty means any.")
    watches = WordsField(
        label="Watches", help_text="Columns that it takes work from; empty means the stages of its type."
    )
    projects = forms.ModelMultipleChoiceField(
        Project.objects.order_by("slug"), required=False,
        widget=widgets.UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Where it works; none ticked means everywhere.",
    )  # fmt: skip
    instructions = LinesField(
        label="Instructions", required=False, strip=False, widget=widgets.UnfoldAdminTextareaWidget,
        help_text="Added to every prompt of this agent.",
    )  # fmt: skip
    program = _line("Program", "Path or name of the command, where it is not found by its usual name.")
    base_url = _line("Server", "Address of another server than the vendor's: http://127.0.0.1:8080/v1.")
    sign_in_file = _line("Sign-in file", "Absolute path of a file that each run finds as its sign-in.")
    account = _line("Account", "Agents with the same account rest together when it is in trouble.")
    cost_input = _amount("Cost of input", "Dollars for a million tokens. opencode only, like those below.")
    cost_output = _amount("Cost of output")
    cost_cache_read = _amount("Cost of cached input")
    limit_context = _amount("Longest context", "Tokens.")
    limit_output = _amount("Longest answer", "Tokens.")

    class Meta:
        model = Agent
        fields = (
            "name", "role", "kind", "provider", "model", "vendor", "tier", "instructions", "projects",
            "domains", "watches", "focus", "priority", "slots", "is_active",
        )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stored = self.instance.settings if isinstance(self.instance.settings, dict) else {}
        self.provider_before = self.instance.provider if self.instance.pk else ""
        for name, path in SETTINGS.items():
            if (value := _at(self.stored, path)) is not None:
                self.initial[name] = value
        self.fields["domains"].widget.offered = known_domains()
        self.fields["watches"].widget.offered = known_columns()

    @cached_property
    def changed_data(self) -> list[str]:
        """The changed fields, with `settings` if a field of the settings changed.

        Whoever saves the agent writes the columns named here.
        """
        names = super().changed_data
        return [*names, "settings"] if {"provider", *SETTINGS} & set(names) else names

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if provider := data.get("provider"):
            self.instance.settings = self._settings(provider, data)
        return data

    def _settings(self, provider: str, data: dict[str, Any]) -> dict[str, Any]:
        """Return the stored settings with what was changed.

        If the provider has changed, they start from what was typed for the new one.
        """
        stays = provider == self.provider_before
        if stays and "settings" not in self.changed_data:
            return self.instance.settings
        fits = set(fitting(provider))
        made = {name: _copy(value) for name, value in self.stored.items()} if stays else {}
        for name, path in SETTINGS.items():
            value = data.get(name)
            if name in fits:
                if not stays or name in self.changed_data:
                    _put(made, path, value)
            elif name in self.changed_data and value not in (None, "", []):
                label = PROVIDERS[provider].title
                self.add_error(name, f"This does not fit {label}: leave it empty.")
        if "command_line" in fits and "command_line" not in self.errors and not made.get("argv"):
            self.add_error("command_line", "Give the command, the program first: my-agent --file {prompt}.")
        return made

    def add_error(self, field: str | None, error: Any) -> None:
        """Show what the agent says about its settings at the field of the setting concerned."""
        faults = getattr(error, "error_dict", {}).pop("settings", [])
        for fault in faults:
            name = FIELD_OF.get(fault.code, "provider")
            if name not in self.errors:
                says = str(fault.message)
                if says.startswith(f"{fault.code} "):  # replace the setting's name by the field's label
                    says = f"{self.fields[name].label}{says.removeprefix(fault.code)}"
                super().add_error(name, says)
        if not faults or error.error_dict:
            super().add_error(field, error)
        self._forget_keys()

    def _forget_keys(self) -> None:
        """Drop a key that was pasted where its variable's name belongs, so that no page shows it."""
        for name in ("key", "passes"):
            words = str(self.data.get(name, "")).replace(",", " ").split()
            if not all(map(NAME.match, words)):
                self.data = self.data.copy()
                self.data[name] = ", ".join(filter(NAME.match, words))

    def clean_passes(self) -> list[str]:
        names: list[str] = self.cleaned_data["passes"]
        if not all(map(NAME.match, names)) and "passes" in self.changed_data:
            raise ValidationError("Names of variables only, never their values: MY_AGENT_KEY.")
        return names


def fitting(provider: str) -> list[str]:
    """Return the fields whose settings this provider knows."""
    known = PROVIDERS[provider].settings if provider in PROVIDERS else frozenset()
    return [name for name, path in SETTINGS.items() if path[0] in known]


def known_domains() -> tuple[str, ...]:
    """Return the tags of the newest tasks and the domains of the agents, sorted."""
    tags = Task.objects.order_by("-pk").values_list("tags", flat=True)[:TASKS_ASKED]
    named = [*tags, *Agent.objects.values_list("domains", flat=True)[:TASKS_ASKED]]
    words = {word for words in named if isinstance(words, list) for word in words if isinstance(word, str)}
    return tuple(sorted(words)[:WORDS_OFFERED])


def known_columns() -> tuple[str, ...]:
    """Return the columns of all projects, in their order."""
    configs = [project.config for project in Project.objects.order_by("slug")]
    names = [stage.name for config in configs for stage in (*stages_of(config), *escalations_of(config))]
    return tuple(dict.fromkeys(names))[:WORDS_OFFERED]


def _at(settings: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = settings
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _put(settings: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set the value, or remove it if it is empty; a table that is left empty is removed too."""
    *above, last = path
    table = settings
    for key in above:
        table = settings.setdefault(key, {})
    if value in (None, "", []):
        table.pop(last, None)
    else:
        table[last] = value
    for key in above:
        if not settings[key]:
            del settings[key]


def _copy(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value
