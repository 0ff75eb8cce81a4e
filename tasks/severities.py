"""Severities in API requests: read in any case, returned in lower case."""

from typing import Any

import django_filters
from django_filters.fields import ChoiceField
from rest_framework import serializers

from tasks.models import SEVERITY_CHOICES


def _as_we_write_it(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


class SeverityField(serializers.ChoiceField):
    """A severity in a request's body."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=SEVERITY_CHOICES, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        return super().to_internal_value(_as_we_write_it(data))


class _Choice(ChoiceField):
    def to_python(self, value: Any) -> Any:
        return super().to_python(_as_we_write_it(value))


class SeverityFilter(django_filters.ChoiceFilter):
    """A severity in a request's query string."""

    field_class = _Choice

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=SEVERITY_CHOICES, **kwargs)
