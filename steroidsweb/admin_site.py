"""The site object of the admin."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.core.paginator import InvalidPage
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from unfold.sites import UnfoldAdminSite


class AdminSite(UnfoldAdminSite):
    """An admin site that builds the list of all models only on the pages that show it."""

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:
        """Wrap the view as Django does, and say to whoever sent a form signed out that nothing was done."""
        wrapped = super().admin_view(view, cacheable)

        @wraps(wrapped)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            from disputes.web.view_helpers import SIGNED_OUT

            is_lost = request.method == "POST" and not self.has_permission(request)
            response: HttpResponse = wrapped(request, *args, **kwargs)
            if is_lost and response.status_code == 302:
                messages.info(request, SIGNED_OUT)
            return response

        return answer

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        made = super().get_app_list
        return SimpleLazyObject(lambda: made(request, app_label))

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Return the sidebar's groups as our own template shows them."""
        from steroidsweb.sidebar import groups_for

        return groups_for(request)

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        try:
            return super().search(request, extra_context)
        except InvalidPage as error:
            raise Http404("The results have no such page.") from error

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Change the person's own password, write that into the audit, and keep this session in the list."""
        from django.contrib.auth.views import PasswordChangeView

        from steroidsweb import audit
        from steroidsweb.accounts.sessions import stays_listed
        from steroidsweb.accounts.sign_in import OwnPasswordForm
        from steroidsweb.models import AuditEntry

        made = PasswordChangeView.as_view(
            form_class=OwnPasswordForm, success_url=reverse("admin:password_change_done"),
            extra_context=self.each_context(request) | (extra_context or {}),
        )  # fmt: skip
        response: HttpResponse = stays_listed(request, lambda: made(request))
        if response.status_code == 302:
            audit.note(
                AuditEntry.Kind.CHANGED, request.user, request, about=f"user {request.user}",
                note="Changed their password.",
            )  # fmt: skip
        return response
