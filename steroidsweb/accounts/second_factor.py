"""A second factor at sign-in: codes of an app, and recovery codes.

Imported only if STEROIDS_MFA is not off.
"""

from collections.abc import Callable
from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.signals import (
    authentication_failed,
    authenticator_added,
    authenticator_removed,
    authenticator_reset,
)
from allauth.mfa.utils import is_mfa_enabled
from django.core.exceptions import ValidationError
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect

from disputes.notifications import sealing
from steroidsweb import audit
from steroidsweb.accounts.brake import begin_try, for_code, in_words, take_back
from steroidsweb.models import AuditEntry
from steroidsweb.security import API
from tasks.errors import Refused

Kind = AuditEntry.Kind
# What a user who still has to set up a second factor may open.
OPEN = ("/account/", "/admin/logout/", "/static/")
MISSING = Refused(
    "second_factor_missing", "This installation asks for a second factor.",
    "Sign in with your browser and set one up, or use a token.", status=403,
)  # fmt: skip


class SecondFactors(DefaultMFAAdapter):
    """Seals the secrets in the database, as the addresses of notifications are sealed."""

    def encrypt(self, text: str) -> str:
        return sealing.seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        return sealing.unseal(encrypted_text)


class Braked:
    """A form for a code, behind the brake on wrong passwords; tries count for the user, wherever they are."""

    user: Any
    cleaned_data: dict[str, Any]

    def clean_code(self) -> str:
        counted = for_code(self.user.pk)
        if wait := begin_try(counted):
            raise ValidationError(
                f"Too many tries. Wait {in_words(wait)}, then try again.", code="too_many_tries"
            )
        code: str = super().clean_code()  # type: ignore[misc]
        take_back(counted)
        return code


class CodeForm(Braked, AuthenticateForm):
    pass


class CodeAgainForm(Braked, ReauthenticateForm):
    pass


def after_password(request: HttpRequest, user: Any, to: str) -> HttpResponse:
    """Go on after a correct password: to the question for a code, or to the page that was asked for."""
    record_authentication(request, user, method="password", reauthenticated=True)
    response: HttpResponse = perform_login(request, user, email_verification="none", redirect_url=to)
    return response


def required(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Make users without a second factor set one up first: the middleware of STEROIDS_MFA=required.

    Tokens do not sign anybody in, so requests with a token are not affected.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path.startswith(OPEN) or not request.user.is_authenticated or is_mfa_enabled(request.user):
            return get_response(request)
        if request.path.startswith(API):
            return JsonResponse(MISSING.as_json(), status=MISSING.status)
        return redirect("mfa_activate_totp")

    return middleware


@receiver(authenticator_added)
@receiver(authenticator_reset)
def _set_up(sender: Any, request: HttpRequest, user: Any, authenticator: Any, **kwargs: Any) -> None:
    audit.note(Kind.FACTOR_ON, user, request, about=authenticator.get_type_display())


@receiver(authenticator_removed)
def _removed(sender: Any, request: HttpRequest, user: Any, authenticator: Any, **kwargs: Any) -> None:
    audit.note(Kind.FACTOR_OFF, user, request, about=authenticator.get_type_display())


@receiver(authentication_failed)
def _wrong_code(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    audit.note(Kind.REFUSED, user, request, note="A wrong code.")
