"""Where a user is signed in, and ending a session that is no longer theirs."""

from collections.abc import Callable

from django.conf import settings
from django.contrib import messages
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from disputes.web.view_helpers import page, staff_get, staff_post
from steroidsweb import audit
from steroidsweb.models import AuditEntry, SignedIn
from tasks.database.clock import estimated_time
from tasks.errors import Refused
from tasks.text.counting import counted


@staff_get
def sessions(request: HttpRequest) -> HttpResponse:
    """Show the user's own sessions, with the current one first."""
    mine = SignedIn.objects.filter(user=request.user.pk, session__expire_date__gt=estimated_time())
    rows = sorted(mine, key=lambda row: (row.session_id != request.session.session_key, -row.at.timestamp()))
    here = request.session.session_key
    return page(
        request,
        "admin/sessions.html",
        {"title": "Your sessions", "rows": rows, "here": here, "mfa": settings.MFA},
    )


@staff_post
def end(request: HttpRequest, pk: int) -> HttpResponse:
    """End one of the user's own sessions; whoever has it open must sign in again."""
    row = SignedIn.objects.filter(pk=pk, user=request.user.pk).first()
    if row is None:
        raise Refused(
            "session_over", "That session is not open any more.",
            "Look at the list of your sessions again.", status=404,
        )  # fmt: skip
    _end(request, row)
    if row.session_id == request.session.session_key:
        request.session.flush()
        return redirect("admin:login")
    messages.success(request, "That session has ended.")
    return redirect("sessions")


@staff_post
def end_others(request: HttpRequest) -> HttpResponse:
    """End all of the user's sessions but this one."""
    others = SignedIn.objects.filter(user=request.user.pk).exclude(session=request.session.session_key)
    ended = [_end(request, row) for row in others]
    has = "has" if len(ended) == 1 else "have"
    messages.success(request, f"{counted(len(ended), 'other session')} {has} ended.")
    return redirect("sessions")


def _end(request: HttpRequest, row: SignedIn) -> None:
    audit.note(AuditEntry.Kind.ENDED, request.user, request, about=f"{row.address} {row.browser}".strip())
    Session.objects.filter(pk=row.session_id).delete()


def stays_listed(request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
    """Answer with the view, and list this session under its new key if the view gave it one."""
    row = SignedIn.objects.filter(session=request.session.session_key).first()
    response = view()
    if row and request.session.session_key != row.session_id:
        row.pk, row.session_id = None, request.session.session_key
        row.save(force_insert=True)
    return response
