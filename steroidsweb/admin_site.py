"""The admin's site."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from unfold.sites import UnfoldAdminSite


class AdminSite(UnfoldAdminSite):
    """Every page is given the list of all models; it is made where one shows it."""

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        made = super().get_app_list
        return SimpleLazyObject(lambda: made(request, app_label))
