"""How django-allauth behaves here: nobody can sign up alone, and it shows few messages."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest

PAGES = "/account/"
SILENT = "account/messages/logged_in.txt"  # whoever signed in can see it anyway


def frame(request: HttpRequest) -> dict[str, Any]:
    """Put the pages of django-allauth into the frame of the sign-in page (context processor)."""
    if not request.path.startswith(PAGES):
        return {}
    request.has_no_sidebar = True  # type: ignore[attr-defined]
    return {**admin.site.each_context(request), "is_nav_sidebar_enabled": False, "mfa": settings.MFA}


class Accounts(DefaultAccountAdapter):
    error_messages = DefaultAccountAdapter.error_messages | {
        "incorrect_password": "That is not your password. Capitals count in it."
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def add_message(
        self, request: HttpRequest, level: int, message_template: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        if message_template != SILENT:
            super().add_message(request, level, message_template, *args, **kwargs)
