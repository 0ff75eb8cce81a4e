"""Signing in with the team's OpenID Connect provider. Imported only if STEROIDS_OIDC_ISSUER is set.

A person who signed in before gets the same account. Otherwise, an invitation that was just opened makes one,
or a verified e-mail address that exactly one account has joins the two, or a group in STEROIDS_OIDC_GROUPS
makes one. Everybody else is refused: there is no open sign-up.
"""

import time
from contextlib import suppress
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base import AuthError
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView, OAuth2View
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME, get_user_model
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.utils.http import urlencode
from requests import PreparedRequest, RequestException, Response, Session
from requests.adapters import HTTPAdapter

from disputes.web.view_helpers import next_url, refusal_page
from steroidsweb import audit
from steroidsweb.accounts import invitations
from steroidsweb.accounts.names import is_free
from steroidsweb.env import ROLES, is_open_on_the_way
from steroidsweb.models import AuditEntry
from tasks.access import may_enter
from tasks.errors import Refused
from tasks.models import Membership, Project
from tasks.text.unseen import plain

User = get_user_model()

ANSWER_MAX = 1024 * 1024  # bytes of what the provider says at once
SECONDS = 15.0  # in which it has to have said it
SKEW = 120  # seconds by which its clock may be ahead of ours
NONCE, NONCE_LENGTH = "single-sign-on-nonce", 32  # where the session keeps what its tokens have to hold
UID_MAX = 191  # characters
EMAIL_MAX = 254
NAMES = ("preferred_username", "name", "given_name", "family_name")


AT_ONCE = Refused(
    "at_once", "Your account was made a moment ago, perhaps by a sign-in in another tab.",
    "Sign in once more.", status=409,
)  # fmt: skip


class _Bounded(HTTPAdapter):
    """Asks only where nobody listens, and reads an answer whole, but neither without end nor for ever."""

    def send(self, request: PreparedRequest, *words: Any, **more: Any) -> Response:
        if is_open_on_the_way(request.url or ""):
            raise RequestException("It names an address that does not begin with https://.")
        request.headers["Accept-Encoding"] = "identity"  # what is packed can be endless and say nothing
        deadline = time.monotonic() + SECONDS
        answer = super().send(request, *words, **more | {"stream": True})
        said = bytearray()
        while piece := answer.raw.read1(ANSWER_MAX, decode_content=False):
            said += piece
            if len(said) > ANSWER_MAX or time.monotonic() > deadline:
                answer.close()
                raise RequestException(f"It said more than {ANSWER_MAX} bytes, or took over {SECONDS:g} s.")
        answer._content = bytes(said)
        with suppress(ValueError):  # a form, or a signed text
            if not isinstance(answer.json(), dict):
                raise RequestException("It did not answer with an object of JSON.")
        return answer


class _Claims(OpenIDConnectOAuth2Adapter):
    """Takes of what the provider says of itself and of a person only what can be meant."""

    @property
    def openid_config(self) -> dict[str, Any]:
        """Return its configuration. Raises RequestException if it is that of another issuer."""
        config: dict[str, Any] = super().openid_config
        if (named := str(config["issuer"]).rstrip("/")) != settings.OIDC.issuer:
            raise RequestException(f"It calls itself {named}, and STEROIDS_OIDC_ISSUER says otherwise.")
        return config

    def _fetch_user_info(self, access_token: str) -> dict[str, Any]:
        return sound(super()._fetch_user_info(access_token))

    def complete_login(self, request: HttpRequest, app: Any, token: Any, **more: Any) -> Any:
        """Read what it says of the person. Raises RequestException without an id_token."""
        if not more["response"].get("id_token"):
            raise RequestException("It sent no id_token.")
        return super().complete_login(request, app, token, **more)

    def _decode_id_token(self, app: Any, id_token: str) -> dict[str, Any]:
        token = meant_for(app.client_id, sound(super()._decode_id_token(app, id_token)))
        if token.get("nonce") != self.request.session.get(NONCE):
            raise RequestException("Its token answers another sign-in: see nonce.")
        return token


def meant_for(client: str, token: dict[str, Any]) -> dict[str, Any]:
    """Return the token if it is for this client now. Raises RequestException otherwise.

    The library looks at iss, at aud, and at exp if there is one. If there are several audiences, azp has to
    say that the token was issued to us (OpenID Connect Core 1.0, 3.1.3.7).
    """
    begins = max(int(token["iat"]), int(token.get("nbf", 0)))
    if "exp" not in token or begins > time.time() + SKEW:
        raise RequestException("Its token is of another time: see exp, iat and nbf, and both clocks.")
    others = [name for name in token["aud"] if name != client] if isinstance(token["aud"], list) else []
    if token.get("azp", client) != client or (others and "azp" not in token):
        raise RequestException("Its token is for another client: see aud and azp.")
    return token


def sound(claims: dict[str, Any]) -> dict[str, Any]:
    """Return the claims without names and addresses that are none. Raises RequestException without a person.

    A name loses what nobody sees; an address with such characters is not the one that it looks like.
    """
    who = str(claims["sub"]) if type(claims["sub"]) is int else claims["sub"]
    if not isinstance(who, str) or not who or plain(who) != who or len(who) > UID_MAX:
        raise RequestException("It did not say who that is: sub is no text of 1 to 191 characters.")
    texts = {name: plain(claims[name]) for name in NAMES if isinstance(claims.get(name), str)} | {"sub": who}
    email = claims.get("email")
    if isinstance(email, str) and plain(email) == email and len(email.strip()) <= EMAIL_MAX:
        texts["email"] = email
    return {name: value for name, value in claims.items() if name not in {*NAMES, "email"}} | texts


class SingleSignOn(DefaultSocialAccountAdapter):
    def get_requests_session(self) -> Session:
        """Return the way in which the provider is asked."""
        session: Session = super().get_requests_session()
        for scheme in ("https://", "http://"):
            session.mount(scheme, _Bounded())
        return session

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Find or make the account for the sign-in, or end the sign-in with a page that says why not."""
        claims = claims_of(sociallogin)
        try:
            with transaction.atomic():
                user = account_for(request, sociallogin, claims)
                give_roles(user, claims)
        except (Refused, IntegrityError) as error:
            refused = error if isinstance(error, Refused) else AT_ONCE
            note = f"{settings.OIDC.name}: {refused.message}"
            audit.note(AuditEntry.Kind.REFUSED, None, request, about=email_of(claims), note=note)
            to = str(sociallogin.state.get(REDIRECT_FIELD_NAME) or "")
            raise ImmediateHttpResponse(_page(request, refused, to)) from error

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Any = None,
        extra_context: Any = None,
    ) -> None:
        state = (extra_context or {}).get("state") or {}
        to = str(state.get(REDIRECT_FIELD_NAME) or "")
        if error == AuthError.CANCELLED:
            refused = Refused(
                "cancelled", f"Signing in with {settings.OIDC.name} was cancelled.",
                "You can sign in again whenever you like.", status=403,
            )  # fmt: skip
            raise ImmediateHttpResponse(_page(request, refused, to))
        said = str(exception or error or "It did not say why.")
        raise ImmediateHttpResponse(_failed(request, said, to))


def begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Send the browser to the provider. Of the address only what comes after the sign-in counts."""
    to = request.GET.get(REDIRECT_FIELD_NAME)
    nonce = request.session.setdefault(NONCE, get_random_string(NONCE_LENGTH))  # one for all its tabs
    asked = {"auth_params": urlencode({"nonce": nonce})} | ({REDIRECT_FIELD_NAME: to} if to else {})
    request.GET = QueryDict(urlencode(asked))  # type: ignore[assignment]
    return _by_way_of(OAuth2LoginView, request, provider_id)


def end(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Take the browser back from the provider."""
    return _by_way_of(OAuth2CallbackView, request, provider_id)


def _by_way_of(view: type[OAuth2View], request: HttpRequest, provider_id: str) -> HttpResponse:
    if provider_id not in {app["provider_id"] for app in settings.OIDC.apps}:
        raise Http404
    try:
        return view.adapter_view(_Claims(request, provider_id))(request)
    except RequestException as error:
        return _failed(request, str(error), next_url(request, ""))
    except LookupError as error:  # the library takes what the provider says as it comes
        return _failed(request, f"It did not say everything: {error} is missing.", next_url(request, ""))
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        return _failed(request, f"It said something that cannot be meant: {error}", next_url(request, ""))


def _failed(request: HttpRequest, said: str, to: str) -> HttpResponse:
    audit.note(AuditEntry.Kind.REFUSED, None, request, note=f"{settings.OIDC.name}: {said}")
    refused = Refused(
        "not_signed_in",
        f"Signing in with {settings.OIDC.name} failed.",
        "Try again; if it fails again, ask whoever runs this installation: the audit says why.",
        status=403,
    )
    return _page(request, refused, to)


def _page(request: HttpRequest, refused: Refused, to: str) -> HttpResponse:
    """Show why the sign-in failed; the way back still leads to the page that was asked for."""
    back = reverse("account_login") + (f"?{urlencode({REDIRECT_FIELD_NAME: to})}" if to else "")
    return refusal_page(request, "Not signed in", refused, back=back, back_word="Back to the sign-in")


def claims_of(sociallogin: Any) -> dict[str, Any]:
    """Return what the provider says of the person; its userinfo takes precedence over the token.

    Only whoever names an address says whether it is verified.
    """
    said = sociallogin.account.extra_data
    parts = said.get("id_token") or {}, said.get("userinfo") or {}
    claims = {**parts[0], **parts[1]}
    by_address = [part for part in parts if part.get("email") == claims.get("email")]
    said_so = [part["email_verified"] for part in by_address if "email_verified" in part]
    return claims | {"email_verified": said_so[-1:] == [True]}


def email_of(claims: dict[str, Any]) -> str:
    return folded(str(claims.get("email") or "").strip())


def folded(email: str) -> str:
    """Return the address in small letters; one of other letters than ASCII's stays, for a Kelvin is no k."""
    return email.lower() if email.isascii() else email


def account_for(request: HttpRequest, sociallogin: Any, claims: dict[str, Any]) -> Any:
    """Return the account that this sign-in is for. Raises Refused if there is none."""
    email, said = email_of(claims), sociallogin.account.extra_data
    if said["userinfo"]["sub"] != said["id_token"]["sub"]:
        raise Refused(
            "two_people", f"{settings.OIDC.name} spoke of two people at once.",
            "Try again; if it fails again, ask whoever runs this installation.", status=403,
        )  # fmt: skip
    domains, is_verified = settings.OIDC.domains, claims["email_verified"]
    if domains and not (is_verified and email.rpartition("@")[2] in domains):
        raise Refused(
            "wrong_domain", f"Only verified addresses of {', '.join(domains)} may sign in here.",
            "Use the account that your team gave you.", status=403,
        )  # fmt: skip
    if not sociallogin.is_existing:
        user = (
            _invited(request, claims)
            or (_known_by(email) if is_verified else None)
            or (_new_account(claims) if roles_by_groups(claims) else None)
        )
        if user is None:
            raise Refused(
                "unknown_person", "Nobody here has this address, and nobody invited you.",
                "Ask for an invitation, open its link, and sign in from there.", status=403,
            )  # fmt: skip
        sociallogin.connect(request, user)
    if not may_enter(sociallogin.user):
        raise Refused(
            "no_entry", "This account may not sign in.", "Ask whoever runs this installation.", status=403
        )
    return sociallogin.user


def _known_by(email: str) -> Any:
    """Return the one account with that e-mail address; None if there is none or several."""
    rows = User.objects.filter(email__iexact=email) if email else []
    found = [user for user in rows if folded(user.email) == email]
    return found[0] if len(found) == 1 else None


def _invited(request: HttpRequest, claims: dict[str, Any]) -> Any:
    """Make an account by the invitation that this browser has opened; None if it has none open."""
    invitation = invitations.opened(request)
    if invitation is None:
        return None
    user = _new_account(claims)
    invitations.take(invitation, user, request)
    return user


def _new_account(claims: dict[str, Any]) -> Any:
    """Make an account without a password, with the provider's user name or the next free one like it."""
    wanted = str(claims.get("preferred_username") or email_of(claims).partition("@")[0] or "person")
    wanted = "".join(letter for letter in wanted if letter.isalnum() or letter in "@.+-_")[:140] or "person"
    name, number = wanted, 1
    while not is_free(name):
        number += 1
        name = f"{wanted}{number}"
    first, last = (str(claims.get(each) or "") for each in ("given_name", "family_name"))
    if not first and not last:
        *others, last = str(claims.get("name") or "").split() or [""]
        first, last = (" ".join(others), last) if others else (last, "")
    if not is_free(f"{first} {last}"):
        first = last = ""  # the user name tells the two apart
    user = User(
        username=name, email=email_of(claims), is_staff=True,
        first_name=first[:150], last_name=last[:150],
    )  # fmt: skip
    user.set_unusable_password()
    user.save()
    audit.note(AuditEntry.Kind.ADDED, user, about=f"user {name}", note=f"By {settings.OIDC.name}.")
    return user


# --- Groups of the provider ---------------------------------------------------------------------------------


def roles_by_groups(claims: dict[str, Any]) -> dict[str, str]:
    """Return the role by the slug of each project, or by * for all; of several groups the highest counts."""
    said = claims.get(settings.OIDC.claim) or []
    groups = {str(value) for value in (said if isinstance(said, list) else [said])}
    roles: dict[str, str] = {}
    for group, project, role in settings.OIDC.groups:
        if group in groups and ROLES.index(role) >= ROLES.index(roles.get(project, ROLES[0])):
            roles[project] = role
    return roles


def give_roles(user: Any, claims: dict[str, Any]) -> None:
    """Set the user's roles in the projects that STEROIDS_OIDC_GROUPS names, which only the groups decide."""
    named = {project for _, project, _ in settings.OIDC.groups}
    if not named:
        return
    roles = roles_by_groups(claims)
    projects = Project.objects.all() if "*" in named else Project.objects.filter(slug__in=named)
    for project in projects.order_by("pk"):
        offered = [role for role in (roles.get(project.slug), roles.get("*")) if role]
        role = max(offered, key=ROLES.index, default="")
        current = Membership.objects.filter(project=project, user=user).first()
        if (current.role if current else "") == role:
            continue
        if role:
            Membership.objects.update_or_create(project=project, user=user, defaults={"role": role})
        elif current:
            current.delete()
        note = f"{role or 'no role'}, by the groups of {settings.OIDC.name}"
        audit.note(AuditEntry.Kind.CHANGED, user, about=f"membership {user} in {project.slug}", note=note)
