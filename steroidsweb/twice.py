"""A form that a page sends twice takes effect once, and both answers lead to the same place (C18).

Somebody presses twice on a slow line, goes back and sends again, or has no scripts, which pass over a second
press. A form is known by its CSRF token, which each page that is made has anew, and by what it holds.
"""

import hashlib
import time
from datetime import timedelta
from functools import partial
from math import ceil

from django.contrib import messages
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from disputes.web.view_helpers import fields_in, here_or_form, refusal_page, wants_page
from steroidsweb.security import API, GetResponse
from tasks.database.clock import estimated_time
from tasks.database.locking import attempted, repeated
from tasks.errors import Refused
from tasks.models import Idempotency

REMEMBERED = timedelta(minutes=1)
PATIENCE, PAUSE = 10.0, 0.1  # seconds
UNDER_WAY = 0  # the status of a form that is not answered yet


def once(get_response: GetResponse) -> GetResponse:
    """Middleware, after those that know who asks."""

    def middleware(request: HttpRequest) -> HttpResponse:
        form = _form_in(request)
        if not form or not request.user.is_authenticated:
            return get_response(request)
        session = hashlib.sha256((request.session.session_key or "").encode()).hexdigest()
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            row, is_first = _claimed(f"form-{session}", form)
            if is_first:
                response = get_response(request)
                attempted(partial(_keep_answer, row, response))
                return response
            if row.status != UNDER_WAY:
                messages.info(request, "The form came twice. It took effect once.")
                return redirect(row.reply["to"])
            time.sleep(PAUSE)
        return refusal_page(request, "Not done yet", _under_way(row), back=here_or_form(request))

    return middleware


def _under_way(row: Idempotency) -> Refused:
    """Return what is told to whoever waited in vain: the server that worked on the form may have died."""
    seconds = max(1, ceil((row.at + REMEMBERED - estimated_time()).total_seconds()))
    return Refused(
        "under_way", "What you sent a moment ago is still being worked on, unless the server was restarted.",
        f"Go back and reload the page. If nothing has changed there, send it again in {seconds} seconds.",
        status=409,
    )  # fmt: skip


def _form_in(request: HttpRequest) -> str:
    """Return by what a form is known when it comes again, or "" if the request brings none of a page."""
    fields = [] if request.path.startswith(API) or not wants_page(request) else fields_in(request)
    if not any(name == "csrfmiddlewaretoken" for name, _ in fields):
        return ""
    files = [(name, each.name, each.size) for name, each in request.FILES.items()]
    return hashlib.sha256(repr((request.get_full_path(), sorted(fields), files)).encode()).hexdigest()


@repeated
@transaction.atomic
def _claimed(session: str, key: str) -> tuple[Idempotency, bool]:
    """Return the form's row, and whether it came now for the first time.

    Of what a session sent and was answered, only the last counts: an undo in between makes the same form new.
    """
    mine = Idempotency.objects.filter(actor=session)
    over = Q(at__lt=estimated_time() - REMEMBERED) | ~Q(key=key) & ~Q(status=UNDER_WAY)
    mine.filter(over).delete()
    return mine.get_or_create(
        key=key, defaults={"actor": session, "request_hash": key, "status": UNDER_WAY, "reply": {}}
    )


def _keep_answer(form: Idempotency, response: HttpResponse) -> None:
    """Keep where the answer leads, or a page that is shown only once; what was refused may come again."""
    to = response.headers["Location"] if response.status_code == 302 else getattr(response, "leads_to", "")
    if to:
        form.status, form.reply = response.status_code, {"to": to}
        form.save(update_fields=["status", "reply"])
    else:
        form.delete()
