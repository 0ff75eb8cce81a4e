"""Searches for a part of a word, which no index finds: the text of every row is read."""

from typing import TypeVar

from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)

FEW = 200


def read_once(found: QuerySet[Row]) -> QuerySet[Row]:
    """The same rows, by their keys where there are few: counting and listing them reads no text again.

    Where there are many, reading on in the order of the list until a page is full is less work.
    """
    keys = list(found.order_by().values_list("pk", flat=True)[: FEW + 1])
    return found.filter(pk__in=keys) if len(keys) <= FEW else found
