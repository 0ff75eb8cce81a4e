"""The column for a person who did something, or who may do something."""

from typing import Any

from django.conf import settings
from django.db import models


def person(**options: Any) -> "models.ForeignKey[Any, Any]":
    """Return the column, which is empty where it was nobody or where the account is gone."""
    usual = {"null": True, "blank": True, "on_delete": models.SET_NULL, "related_name": "+"}
    return models.ForeignKey(settings.AUTH_USER_MODEL, **usual | options)
