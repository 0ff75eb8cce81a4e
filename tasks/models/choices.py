"""Choices that several tables share, derived from the core."""

from typing import Any

from django.core.validators import RegexValidator
from django.db import models

from tasks.states import MEANINGS, Severity, Status

STATUS_CHOICES = [(status.value, MEANINGS[status].label) for status in Status]
SEVERITY_CHOICES = [(severity.value, severity.value.capitalize()) for severity in Severity]

SHA = r"^([0-9a-f]{40}|[0-9a-f]{64})$"
validate_sha = RegexValidator(SHA, "A commit is named by its full hash of 40 or 64 hexadecimal digits.")


class NameField(models.CharField):
    """A name from one of the program's own tables. Migrations leave the names out: a new one needs none."""

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, _, args, kwargs = super().deconstruct()
        kwargs.pop("choices", None)
        return name, "django.db.models.CharField", list(args), kwargs
