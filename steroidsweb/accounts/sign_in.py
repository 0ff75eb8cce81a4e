"""The sign-in page, behind the brake on wrong passwords."""

import logging
from datetime import timedelta
from math import ceil
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import REDIRECT_FIELD_NAME, login
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from unfold.forms import AdminOwnPasswordChangeForm, AuthenticationForm

from agents.setup.first_hour import forget_password, is_first_sign_in
from disputes.web.view_helpers import next_url
from steroidsweb.accounts.brake import begin_try, braked, counters, in_words, take_back, too_many
from tasks.access import may_enter
from tasks.addresses import address_of

log = logging.getLogger(__name__)


class OpenAccounts(ModelBackend):
    """The accounts of the database; of a session whose account was closed meanwhile, nobody is left."""

    def user_can_authenticate(self, user: Any) -> bool:
        return may_enter(user)


class SignInForm(AuthenticationForm):
    """Name and password, behind the brake. `wait` is set if the brake refused the try."""

    error_messages = AuthenticationForm.error_messages | {
        "invalid_login": "No account with this username and password may sign in. Capitals count in both.",
    }
    wait: timedelta | None = None

    def clean(self) -> dict[str, Any]:
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if not name or not password:
            return super().clean()  # nothing was tried
        counted = counters(name, address_of(self.request))
        if wait := begin_try(counted):
            self.wait = wait
            log.warning("A sign-in from %s has to wait %s.", address_of(self.request), in_words(wait))
            raise too_many(wait)
        cleaned = super().clean()
        take_back(counted)
        forget_password(password)
        return cleaned


class OwnPasswordForm(AdminOwnPasswordChangeForm):
    """The old password and the new one; whoever has only a session guesses the old one behind the brake."""

    def clean_old_password(self) -> str:
        return braked(self.user, "password", super().clean_old_password)


class SignInView(LoginView):
    """The admin's sign-in page. Users with a second factor are asked for it before anything is open."""

    authentication_form = SignInForm
    template_name = "admin/sign_in.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        site = admin.site.each_context(self.request)
        about: dict[str, Any] = {"title": "Sign in", "subtitle": None, "is_first": is_first_sign_in()}
        about["app_path"] = self.request.get_full_path()
        if not self.get_redirect_url():
            about[REDIRECT_FIELD_NAME] = reverse("admin:index")
        about |= by_provider(self.get_redirect_url() or reverse("admin:index"))
        return super().get_context_data(**kwargs) | site | about

    def form_valid(self, form: SignInForm) -> HttpResponse:
        return enter(self.request, form.get_user(), self.get_success_url())


def sign_in(request: HttpRequest) -> HttpResponse:
    """Show the sign-in page; a try that came too early gets 429 and Retry-After."""
    if request.method == "GET" and admin.site.has_permission(request):
        return redirect(next_url(request, reverse("admin:index")))  # signed in meanwhile, in another tab
    response = SignInView.as_view()(request)
    form = (getattr(response, "context_data", None) or {}).get("form")
    if wait := getattr(form, "wait", None):
        response.status_code = 429
        response.headers["Retry-After"] = str(ceil(wait.total_seconds()))
    return response


def by_provider(to: str) -> dict[str, Any]:
    """Return what a page shows of the team's single sign-on, which leads on to `to`; empty without one."""
    if not settings.OIDC:
        return {}
    wanted = urlencode({REDIRECT_FIELD_NAME: to})
    url = f"{reverse('openid_connect_login', args=['team'])}?{wanted}"
    return {"single_sign_on": settings.OIDC.name, "single_sign_on_url": url}


def enter(request: HttpRequest, user: Any, to: str) -> HttpResponse:
    """Sign in a user who has just given a password, by way of their second factor if there is one."""
    if settings.MFA == "off":
        login(request, user, backend=user.__dict__.get("backend", settings.AUTHENTICATION_BACKENDS[0]))
        return redirect(to)
    from steroidsweb.accounts import second_factor

    return second_factor.after_password(request, user, to)
