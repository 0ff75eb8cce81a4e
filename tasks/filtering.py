"""How the lists of the API are narrowed down: by the filters that each list names, and by nothing else."""

from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema_field
from rest_framework.request import Request

from tasks.errors import Refused
from tasks.text.counting import enumerated

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
                raise Refused(
                    "invalid", "The list cannot be filtered by that.", "Correct the address and ask again.",
                    status=422, details=[{"field": name[:80], "reason": reason} for name in unknown[:5]],
                )  # fmt: skip
        return super().filter_queryset(request, queryset, view)


@extend_schema_field({"type": "integer", "minimum": 1})
class NewestFilter(django_filters.Filter):
    """Only so many of the newest rows. It has to be the last of its filters, since it cuts the list."""

    field_class = forms.IntegerField

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=1, max_value=1_000_000, **kwargs)

    def filter(self, queryset: QuerySet[Any], value: int | None) -> QuerySet[Any]:
        return queryset if value is None else queryset.order_by("-pk")[:value]
