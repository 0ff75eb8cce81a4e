"""Where a user is signed in, and ending a session that is no longer theirs."""

from django.conf import settings
from django.contrib import messages
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from disputes.web.view_helpers import page, staff_only
from steroidsweb import audit
from steroidsweb.models import AuditEntry, SignedIn


@staff_only
@require_safe
def sessions(request: HttpRequest) -> HttpResponse:
    """Show the user's own sessions, with the current one first."""
    mine = SignedIn.objects.filter(user=request.user.pk, session__expire_date__gt=timezone.now())
    rows = sorted(mine, key=lambda row: (row.session_id != request.session.session_key, -row.at.timestamp()))
    here = request.session.session_key
    return page(
        request,
        "admin/sessions.html",
        {"title": "Your sessions", "rows": rows, "here": here, "mfa": settings.MFA},
    )


@staff_only
@require_POST
def end(request: HttpRequest, pk: int) -> HttpResponse:
    """End one of the user's own sessions; whoever has it open must sign in again."""
    row = get_object_or_404(SignedIn, pk=pk, user=request.user.pk)
    audit.note(AuditEntry.Kind.ENDED, request.user, request, about=f"{row.address} {row.browser}".strip())
    if row.session_id == request.session.session_key:
        request.session.flush()
        return redirect("admin:login")
    Session.objects.filter(pk=row.session_id).delete()
    messages.success(request, "That session has ended.")
    return redirect("sessions")
