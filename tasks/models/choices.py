"""Choices that several tables share, derived from the core."""

from django.core.validators import RegexValidator

from tasks.states import MEANINGS, Severity, Status

STATUS_CHOICES = [(status.value, MEANINGS[status].label) for status in Status]
SEVERITY_CHOICES = [(severity.value, severity.value.capitalize()) for severity in Severity]

SHA = r"^([0-9a-f]{40}|[0-9a-f]{64})$"
validate_sha = RegexValidator(SHA, "A commit is named by its full hash of 40 or 64 hexadecimal digits.")
