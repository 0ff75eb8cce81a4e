"""What a browser sends for the settings on a project's page."""

from typing import Any

from django.forms import MultiWidget

from tasks.admin.settings_form import ProjectForm
from tasks.configuration.policy import SETTINGS
from tasks.models import Project


def setting_inputs(project: Project) -> dict[str, Any]:
    """Every input with the value that the page shows; a box without a tick sends nothing."""
    form: Any = ProjectForm(instance=project)
    inputs: dict[str, Any] = {}
    for key in SETTINGS:
        bound = form[key]
        widget, value = bound.field.widget, bound.value()
        if isinstance(widget, MultiWidget):
            parts = dict(enumerate(widget.decompress(value)))
            inputs |= {f"{first}{key}_{at}": part for at, part in parts.items() for first in ("", "initial-")}
        else:
            inputs |= {key: value, f"initial-{key}": value}
    return {name: value for name, value in inputs.items() if value is not None and value is not False}
