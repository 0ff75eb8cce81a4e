"""The forms of a project's set-up page: its commands, and where its repository is."""

import json
from hashlib import sha256
from typing import Any

from django import forms
from django.core.validators import MaxLengthValidator

from tasks import base
from tasks.admin.settings_form import lock_commands, setting_field
from tasks.configuration.policy import DEFAULTS, SETTINGS, SHELL_COMMANDS
from tasks.models import Project

LIMITS = ("prepare_timeout", "build_timeout", "test_timeout")
COMMAND_MAX = 10_000  # characters


class CommandsForm(forms.Form):
    """The three commands and how long each may take; `mark` names the values that the page showed.

    If the project has no commands, those that got furthest are filled in; they count once they are saved.
    People who may not set commands may still save these, which the program found and tried itself, and the
    time limits.
    """

    mark = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)

    def __init__(self, project: Project, data: Any = None, *, may_set_commands: bool = False) -> None:
        told = project.config.to_json()
        self.now = {key: told[key] for key in (*SHELL_COMMANDS, *LIMITS)}
        self.shown = sha256(json.dumps(self.now).encode()).hexdigest()[:16]
        offered = {} if any(self.now[key] for key in SHELL_COMMANDS) else project.base_red.get("settings", {})
        self.is_offer = any(offered.get(key) for key in SHELL_COMMANDS)
        self.may_be_accepted = base.may_be_accepted(project)
        self.filled_in = {key: offered.get(key, value) for key, value in self.now.items()}
        initial = {key: f"{value:g}" if key in LIMITS else value for key, value in self.filled_in.items()}
        super().__init__(data, initial=initial | {"mark": self.shown})
        for key in (*SHELL_COMMANDS, *LIMITS):
            self.fields[key] = setting_field(key, SETTINGS[key])
            self.fields[key].widget.attrs["class"] = "field"
        for key in SHELL_COMMANDS:
            self.fields[key].validators.append(MaxLengthValidator(COMMAND_MAX))
        self.is_locked = not may_set_commands
        if self.is_locked:
            lock_commands(self)

    @property
    def rows(self) -> list[tuple[str, str, forms.BoundField, forms.BoundField]]:
        """For each command: what it does, when it is run, its field, and the field of its limit."""
        words = (
            ("Prepare", "brings the dependencies into a fresh environment"),
            ("Build", "what must pass before the tests"),
            ("Test", "what tells green from red"),
        )
        return [
            (word, hint, self[command], self[limit])
            for (word, hint), command, limit in zip(words, SHELL_COMMANDS, LIMITS, strict=True)
        ]

    @property
    def is_stale(self) -> bool:
        """Whether somebody changed the values since the page was made."""
        return bool(self.is_bound and self["mark"].data != self.shown)

    def renew(self) -> None:
        """Let the typed values be saved over the current ones."""
        self.data = self.data.copy()
        self.data["mark"] = self.shown

    @property
    def is_typed(self) -> bool:
        """Whether a valid form holds anything else than what the page had filled in."""
        return self.changes() != self.filled_in

    def changes(self) -> dict[str, Any]:
        """Return the settings to write; a limit that was left empty gets its default."""
        values = {key: self.cleaned_data[key] for key in (*SHELL_COMMANDS, *LIMITS)}
        return {key: DEFAULTS.plain(key) if value is None else value for key, value in values.items()}


class RepositoryForm(forms.ModelForm):
    """Where the repository is; only superusers change its URL, since hosts fetch with their own rights."""

    class Meta:
        model = Project
        fields = ("repo_url", "target_branch")

    def __init__(self, project: Project, data: Any = None, *, may_move: bool = False) -> None:
        shown = {} if may_move else {"repo_url": project.address}
        super().__init__(data, instance=project, initial=shown)
        self.fields["repo_url"].label = "Address"
        self.fields["repo_url"].disabled = not may_move
        for field in self.fields.values():
            field.show_hidden_initial = not field.disabled
            field.widget.attrs["class"] = "field"
            field.widget.attrs["spellcheck"] = "false"
