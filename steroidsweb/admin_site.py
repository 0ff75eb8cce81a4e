"""The site object of the admin."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from unfold.sites import UnfoldAdminSite


class AdminSite(UnfoldAdminSite):
    """An admin site that builds the list of all models only on the pages that show it."""

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        made = super().get_app_list
        return SimpleLazyObject(lambda: made(request, app_label))
