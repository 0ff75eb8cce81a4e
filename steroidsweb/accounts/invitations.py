"""Invitations: signed links, each of which makes one account with the roles that it names."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import BaseUserCreationForm
from django.core.signing import BadSignature, Signer
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from unfold.widgets import BASE_INPUT_CLASSES

from disputes.web.view_helpers import NO_FRAME, page, refuses
from steroidsweb import audit
from steroidsweb.accounts.names import OwnNameForm
from steroidsweb.accounts.sign_in import by_provider, enter
from steroidsweb.models import AuditEntry, Invitation, InvitedRole
from tasks.database.clock import estimated_time
from tasks.database.locking import locked
from tasks.errors import Refused
from tasks.models import Membership, Project

User = get_user_model()
DAYS = 7
IN_SESSION = "invitation"


def invite(by: Any, roles: dict[Project, str], *, whom: str = "", days: int = DAYS) -> Invitation:
    """Create an invitation for one person, valid for so many days; `roles` by project may be empty."""
    with transaction.atomic():
        made = Invitation.objects.create(whom=whom, by=by, expires_at=estimated_time() + timedelta(days=days))
        InvitedRole.objects.bulk_create(
            InvitedRole(invitation=made, project=project, role=role) for project, role in roles.items()
        )
        note_made(made)
    return made


def note_made(made: Invitation, request: HttpRequest | None = None) -> None:
    """Write into the audit who invites whom to what."""
    to = ", ".join(f"{each.role} in {each.project.slug}" for each in made.roles.select_related("project"))
    audit.note(AuditEntry.Kind.INVITED, made.by, request, about=f"{made}", note=to or "no project")


def link(invitation: Invitation, base: str) -> str:
    """Return the URL to send to the invited person; `base` is the URL at which people reach the pages."""
    signed = signer().sign(str(invitation.pk))
    return base.rstrip("/") + reverse("invited", args=[signed])


def signer() -> Signer:
    return Signer(salt="steroidsweb.invitation")


def _over() -> Refused:
    return Refused(
        "invitation_over", "This invitation was used, is over, or was taken back.",
        "Ask whoever invited you for a new one.", status=404,
    )  # fmt: skip


def read(signed: str) -> Invitation:
    """Return the invitation of a link. Raises Refused if the link is forged, used, expired or taken back."""
    try:
        pk = signer().unsign(signed)
    except BadSignature as error:
        raise _over() from error
    found = Invitation.objects.open().filter(pk=pk).first()
    if found is None:
        raise _over()
    return found


def opened(request: HttpRequest) -> Invitation | None:
    """Return the invitation that this browser has open, for a sign-in that leads by way of another host."""
    pk = request.session.get(IN_SESSION)
    return Invitation.objects.open().filter(pk=pk).first() if pk else None


def take(invitation: Invitation, user: Any, request: HttpRequest) -> None:
    """Use the invitation for this account, which gets its roles. Raises Refused if it is no longer open."""
    with transaction.atomic():
        locked(Invitation.objects).filter(pk=invitation.pk).first()  # the conditions on `by` are asked once
        if (
            not Invitation.objects.open()
            .filter(pk=invitation.pk)
            .update(used_at=estimated_time(), used_by=user)
        ):
            raise _over()
        for each in invitation.roles.all():
            Membership.objects.get_or_create(
                project_id=each.project_id, user=user, defaults={"role": each.role}
            )
        audit.note(
            AuditEntry.Kind.JOINED, user, request, about=f"{invitation}", note=f"Invited by {invitation.by}."
        )
    request.session.pop(IN_SESSION, None)


class JoinForm(OwnNameForm, BaseUserCreationForm):
    """A name and a password for the new account."""

    class Meta:
        model = User
        fields = ("username", "first_name", "last_name")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = " ".join(BASE_INPUT_CLASSES)

    def save(self, commit: bool = True) -> Any:
        self.instance.is_staff = True
        return super().save(commit)


@never_cache
@refuses
@require_http_methods(["GET", "HEAD", "POST"])
def invited(request: HttpRequest, signed: str) -> HttpResponse:
    """Show the page of an invitation, and create the account from a name and a password.

    The page also offers the team's single sign-on, if there is one.
    """
    invitation = read(signed)
    form = JoinForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            with transaction.atomic():
                user = form.save()
                take(invitation, user, request)
            return enter(request, user, reverse("admin:index"))
        except IntegrityError:
            form.add_error("username", "Somebody took this name a moment ago. Choose another one.")
    context: dict[str, Any] = {
        "title": "You are invited", "layout": NO_FRAME, "is_nav_sidebar_enabled": False, "form": form,
        "invitation": invitation,
        "roles": invitation.roles.select_related("project").order_by("project__name"),
        **by_provider(reverse("admin:index")),
    }  # fmt: skip
    if settings.OIDC:
        request.session[IN_SESSION] = invitation.pk
    return page(request, "admin/invited.html", context)
