"""What requests to the API may say: optional texts, severities in any case, and the filters of a list."""

from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from django_filters.fields import ChoiceField
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from tasks.errors import Invalid
from tasks.models import SEVERITY_CHOICES
from tasks.text.counting import enumerated

DONE = "What was done, in a sentence."  # the help_text of each reply's message

PAGE = "page"


class ListFilter(DjangoFilterBackend):
    """Filters a list, and refuses what it does not know: a misspelt filter would answer with everything."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        """Return the rows that the request asks for. Raises Refused("invalid")."""
        if view.action == "list":
            filters = self.get_filterset_class(view, queryset)
            known = [*(filters.base_filters if filters else ()), PAGE]
            if unknown := sorted(set(request.query_params) - set(known)):
                reason = f"There is no such filter. There are: {enumerated(known)}."
                raise Invalid(
                    "invalid", "The list cannot be filtered by that.", "Correct the address and ask again.",
                    details=[{"field": name[:80], "reason": reason} for name in unknown[:5]],
                )  # fmt: skip
        return super().filter_queryset(request, queryset, view)

    def get_filterset(self, request: Request, queryset: QuerySet[Any], view: Any) -> Any:
        """Return the filters, each of which names its choices where it refuses a value."""
        filters = super().get_filterset(request, queryset, view)
        for field in filters.form.fields.values() if filters else ():
            if isinstance(field, forms.ChoiceField) and not isinstance(field, forms.ModelChoiceField):
                known = enumerated([str(value) for value, _ in field.choices if value])
                field.error_messages["invalid_choice"] = f"There is no such choice. There are: {known}."
        return filters


@extend_schema_field({"type": "integer", "minimum": 1})
class NewestFilter(django_filters.Filter):
    """Only so many of the newest rows. It has to be the last of its filters, since it cuts the list."""

    field_class = forms.IntegerField

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=1, max_value=1_000_000, **kwargs)

    def filter(self, queryset: QuerySet[Any], value: int | None) -> QuerySet[Any]:
        return queryset if value is None else queryset.order_by("-pk")[:value]


def _as_we_write_it(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


class OptionalText(serializers.CharField):
    """A text in a request's body that may be empty or left out."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, allow_blank=True, default="", **kwargs)


class OptionalFlag(serializers.BooleanField):
    """A yes in a request's body; left out, it is a no."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, default=False, **kwargs)


class TextList(serializers.ListField):
    """A list of texts, in a request's body or in a reply."""

    child = serializers.CharField()


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
