"""The audit of the whole installation: signing in and out, and every change in the admin."""

from typing import Any

from django.conf import settings
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.contrib.sessions.models import Session
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.http import HttpRequest

from steroidsweb.models import AuditEntry, SignedIn
from tasks.addresses import address_of

Kind = AuditEntry.Kind
OF_THE_ADMIN = {ADDITION: Kind.ADDED, CHANGE: Kind.CHANGED, DELETION: Kind.DELETED}
BROWSER_MAX = 200


def note(kind: str, who: Any, request: HttpRequest | None = None, *, about: str = "", note: str = "") -> None:
    """Write an entry; `who` is a user, or None."""
    AuditEntry.objects.create(
        kind=kind, who=who.get_username() if who else "", about=about[:300], note=note[:500],
        address=address_of(request) if request else "",
    )  # fmt: skip


@receiver(user_logged_in)
def _signed_in(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    note(Kind.SIGNED_IN, user, request, note=", ".join(_ways(request)))
    if not request.session.session_key:  # another user was signed in before, so Django flushed the session
        request.session.create()
    SignedIn.objects.get_or_create(
        session_id=request.session.session_key,
        defaults={
            "user": user, "address": address_of(request),
            "browser": request.META.get("HTTP_USER_AGENT", "")[:BROWSER_MAX],
        },
    )  # fmt: skip


def _ways(request: HttpRequest) -> list[str]:
    """Return how the user proved who they are, if django-allauth recorded it."""
    ways = [each["method"] for each in request.session.get("account_authentication_methods", [])]
    words = {
        "password": "password",
        "socialaccount": settings.OIDC.name if settings.OIDC else "",
        "mfa": "code",
    }
    return [words.get(way, way) for way in ways]


@receiver(user_logged_out)
def _signed_out(sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
    if user:
        note(Kind.SIGNED_OUT, user, request)


@receiver(user_login_failed)
def _refused(sender: Any, credentials: dict[str, Any], request: HttpRequest, **kwargs: Any) -> None:
    """Write down a refused sign-in, with the user name only if it exists.

    People also type passwords into the field for the name.
    """
    named = get_user_model().objects.filter(username=credentials.get("username") or "").first()
    note(Kind.REFUSED, named, request, note="" if named else "Nobody has that name.")


@receiver(post_save, sender=get_user_model())
def _new_password(sender: Any, instance: Any, **kwargs: Any) -> None:
    """End the user's sessions. Django keeps the one in which the password was changed, under a new key."""
    if instance._password is not None:
        Session.objects.filter(signed_in__user=instance).delete()


@receiver(post_save, sender=LogEntry)
def _changed(sender: Any, instance: LogEntry, created: bool, **kwargs: Any) -> None:
    """Write down every change in the admin: users, members, tokens, agents, hosts, settings."""
    if not created:
        return
    model = instance.content_type.name if instance.content_type else ""
    named = instance.object_repr
    about = named if named.startswith(f"{model} ") else f"{model} {named}"
    note(OF_THE_ADMIN[instance.action_flag], instance.user, about=about, note=instance.get_change_message())
