"""A second factor at sign-in: codes of an app, and recovery codes.

Imported only if STEROIDS_MFA is not off.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import ReauthenticateForm as PasswordForm
from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from allauth.account.views import reauthenticate
from allauth.core import context
from allauth.core.internal.cryptokit import normalize_user_code
from allauth.mfa import signals
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.base.views import authenticate
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import ViewRecoveryCodesView
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.auth import SECRET_SESSION_KEY
from allauth.mfa.totp.views import ActivateTOTPView
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache

from disputes.notifications import sealing
from disputes.web.view_helpers import here_or_form, next_url, refusal_page, wants_page
from steroidsweb import audit
from steroidsweb.accounts import brake
from steroidsweb.models import AuditEntry
from steroidsweb.security import API
from tasks.errors import Refused

Kind = AuditEntry.Kind
FOR_CODES = {"autofocus": True, "placeholder": "", "inputmode": "numeric", "autocapitalize": "none"}
# What a user who still has to set up a second factor may open.
OPEN = ("/account/", "/admin/logout/")
MISSING = Refused(
    "second_factor_missing", "This installation asks for a second factor.",
    "Sign in with your browser and set one up, or use a token.", status=403,
)  # fmt: skip


FACTORS = [Authenticator.Type.TOTP]  # recovery codes only stand in for one of these
TOO_LONG_AGO = Refused(
    "too_long_ago", "It is more than five minutes since you signed in.",
    "Sign out, sign in again, and come back within five minutes.", status=403,
)  # fmt: skip


class SecondFactors(DefaultMFAAdapter):
    """Seals the secrets in the database, as the addresses of notifications are sealed."""

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "That code is wrong, no longer valid, or used already. Wait for the app's "
        "next code, or take another recovery code.",
        "cannot_generate_recovery_codes": "Recovery codes stand in for an app. Set up an app first.",
    }

    def is_mfa_enabled(self, user: Any, types: Any = None) -> bool:
        return bool(super().is_mfa_enabled(user, FACTORS if types is None else types))

    def encrypt(self, text: str) -> str:
        return sealing.seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        return sealing.unseal(encrypted_text)


def only_once(user: Any, code: str) -> str:
    """Return the code. Raises ValidationError if it was used and is valid still.

    The library forgets that after one period, and with the process, while a code is valid for three.
    """
    valid_for = timedelta(seconds=settings.MFA_TOTP_PERIOD * (2 * settings.MFA_TOTP_TOLERANCE + 1))
    if not brake.use_once(user.pk, normalize_user_code(code), valid_for):
        raise SecondFactors().validation_error("incorrect_code")
    return code


class Braked:
    """A form for a code, behind the brake."""

    user: Any
    fields: dict[str, Any]
    cleaned_data: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs |= FOR_CODES

    def clean_code(self) -> str:
        check = super().clean_code  # type: ignore[misc]
        try:
            return brake.braked(self.user, "code", lambda: only_once(self.user, check()))
        except sealing.Unreadable as error:
            raise ValidationError(
                "Your second factor can no longer be read: the secret key of this installation has changed.",
                code="unreadable",
            ) from error


class CodeForm(Braked, AuthenticateForm):
    def save(self) -> None:
        super().save()
        if self.authenticator.type == Authenticator.Type.RECOVERY_CODES:
            self.authenticator.refresh_from_db()
            codes = self.authenticator.wrap()
            left, made = len(codes.get_unused_codes()), len(codes.generate_codes())
            messages.warning(
                context.request,
                f"You signed in with a recovery code. {left} of {made} are unused. "
                "You can make new ones under Sessions.",
            )


class CodeAgainForm(Braked, ReauthenticateForm):
    pass


class PasswordAgainForm(PasswordForm):
    def clean_password(self) -> str:
        return brake.braked(self.user, "password", super().clean_password)


class SetUpForm(ActivateTOTPForm):
    """Shows the same secret until it is used, also in another tab and after a reload."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        shown = context.request.session.get(SECRET_SESSION_KEY)
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs |= FOR_CODES
        if shown:
            self.secret = context.request.session[SECRET_SESSION_KEY] = shown

    def clean_code(self) -> str:
        try:
            return str(super().clean_code())
        except ValidationError as error:
            raise ValidationError(
                "That is not the code that an app with this secret shows now. Wait for its next code. "
                "If it stays wrong, set the clock of your phone right.",
                code="incorrect_code",
            ) from error


class SetUpView(ActivateTOTPView):
    """Sets up an app. Whoever has one, as after a double click, gets the page that says so."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if is_mfa_enabled(request.user):
            return redirect("mfa_index")
        return super().dispatch(request, *args, **kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        try:
            response: HttpResponse = super().form_valid(form)
        except IntegrityError:
            return redirect("mfa_index")
        return response

    def get_success_url(self) -> str:
        to = next_url(self.request, "")
        return super().get_success_url() + (f"?{urlencode({REDIRECT_FIELD_NAME: to})}" if to else "")


class CodesView(ViewRecoveryCodesView):
    """Shows the recovery codes, and after the set-up the way on to the page that was asked for."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | {"go_on_url": next_url(self.request, "")}


codes = never_cache(login_required(CodesView.as_view()))
set_up = never_cache(SetUpView.as_view())


def after_password(request: HttpRequest, user: Any, to: str) -> HttpResponse:
    """Go on after a correct password: to the question for a code, or to the page that was asked for."""
    record_authentication(request, user, method="password", reauthenticated=True)
    response: HttpResponse = perform_login(request, user, email_verification="none", redirect_url=to)
    if response.headers.get("Location") == reverse("mfa_authenticate"):
        return redirect(f"{response.headers['Location']}?{urlencode({REDIRECT_FIELD_NAME: to})}")
    return response


def ask_for_code(request: HttpRequest) -> HttpResponse:
    """Ask for a code after the password; whoever comes too late is told so and signs in again."""
    response: HttpResponse = authenticate(request)
    if response.headers.get("Location") != reverse("account_login"):
        return response
    messages.warning(request, "Your sign-in no longer waits for a code. Sign in again.")
    return redirect_to_login(next_url(request, reverse("admin:index")), reverse("account_login"))


def again(request: HttpRequest) -> HttpResponse:
    """Ask for the password again; whoever has neither password nor second factor has to sign in again."""
    if request.user.is_authenticated and not get_adapter().get_reauthentication_methods(request.user):
        return refusal_page(request, "Not done", TOO_LONG_AGO, back=reverse("sessions"), back_word="Sessions")
    response: HttpResponse = reauthenticate(request)
    return response


def required(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Make users without a second factor set one up first: the middleware of STEROIDS_MFA=required.

    Tokens do not sign anybody in, so requests with a token are not affected.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.path.startswith("/static/") or not request.user.is_authenticated:
            return get_response(request)
        lacks_it = not is_mfa_enabled(request.user)
        request.lacks_second_factor = lacks_it  # type: ignore[attr-defined]
        if request.path.startswith(OPEN) or not lacks_it:
            return get_response(request)
        if request.path.startswith(API) or not wants_page(request):
            return JsonResponse(MISSING.as_json(), status=MISSING.status)
        to = urlencode({REDIRECT_FIELD_NAME: here_or_form(request)})
        return redirect(f"{reverse('mfa_activate_totp')}?{to}")

    return middleware


def in_words(authenticator: Authenticator) -> str:
    return "app" if authenticator.type in FACTORS else "recovery codes"


@receiver(signals.authenticator_added)
@receiver(signals.authenticator_reset)
def _set_up(sender: Any, request: HttpRequest, user: Any, authenticator: Any, **kwargs: Any) -> None:
    audit.note(Kind.FACTOR_ON, user, request, about=in_words(authenticator))


@receiver(signals.authenticator_removed)
def _removed(sender: Any, request: HttpRequest, user: Any, authenticator: Any, **kwargs: Any) -> None:
    audit.note(Kind.FACTOR_OFF, user, request, about=in_words(authenticator))


@receiver(post_delete, sender=Authenticator)
def _gone(sender: Any, instance: Authenticator, **kwargs: Any) -> None:
    """Without its app, no recovery code is of use; a new app comes with new ones."""
    if instance.type in FACTORS:
        Authenticator.objects.filter(user=instance.user_id).exclude(type__in=FACTORS).delete()


@receiver(signals.authentication_failed)
def _wrong_code(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    audit.note(Kind.REFUSED, user, request, note="A wrong code.")
