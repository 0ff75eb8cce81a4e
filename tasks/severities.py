"""A severity in a call: read in any case, answered in one form."""

from typing import Any

import django_filters
from django_filters.fields import ChoiceField
from rest_framework import serializers

from tasks.models import SEVERITY_CHOICES


def _as_we_write_it(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


class SeverityField(serializers.ChoiceField):
    """In a body."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=SEVERITY_CHOICES, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        return super().to_internal_value(_as_we_write_it(data))


class _Choice(ChoiceField):
    def to_python(self, value: Any) -> Any:
        return super().to_python(_as_we_write_it(value))


class SeverityFilter(django_filters.ChoiceFilter):
    """In a query."""

    field_class = _Choice

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=SEVERITY_CHOICES, **kwargs)
