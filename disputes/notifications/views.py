"""The pages of notifications: a person's channels, a project's, the deliveries, and the count for the tab."""

from typing import Any

from django.contrib import messages
from django.core.cache import cache
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from disputes.models import Channel, Dispute
from disputes.notifications import channels, sending
from disputes.notifications.forms import ChannelForm
from disputes.notifications.messages import link
from disputes.web.queue import listing
from disputes.web.view_helpers import page, project_of, staff_form, staff_get, staff_post
from tasks.access import MAINTAIN, projects_for, require
from tasks.errors import Refused
from tasks.models import Project
from tasks.text.unseen import plain

PER_PAGE = 50
COUNT_SECONDS = 5
RECENT = 500


def _channel(request: HttpRequest, pk: int) -> Channel:
    """Return a channel that the person may use.

    Raises Http404, or Refused if the person may see the channel's project but not change its channels.
    """
    channel = get_object_or_404(Channel.objects.select_related("project", "user"), pk=pk)
    try:
        channels.check_right(channel, request.user)
    except Refused as refused:
        if refused.status == 404:
            raise Http404(refused.message) from None
        raise
    return channel


def _home(channel: Channel) -> HttpResponse:
    """Redirect to the list that contains the channel."""
    if channel.user_id is None and channel.project is not None:
        return redirect("notifications-project", channel.project.slug)
    return redirect("notifications")


@staff_get
def overview(request: HttpRequest) -> HttpResponse:
    """Show a person's own channels, with links to those of the projects they maintain."""
    rows = list(channels.own(request.user))
    context = {
        "title": "Notifications", "rows": rows, "project": None,
        "maintained": projects_for(request.user, MAINTAIN).order_by("name"),
        "given_up": channels.given_up(request.user)[:100].count(), "has_links": bool(link("/")),
    }  # fmt: skip
    return page(request, "notifications/overview.html", context)


@staff_get
def of_project(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the channels of a project to its maintainers."""
    project = project_of(request, slug)
    require(request.user, project, MAINTAIN, channels.SET_UP)
    rows = list(channels.of_project(project))
    return page(
        request,
        "notifications/overview.html",
        {"title": f"Notifications of {plain(project.name)}", "rows": rows, "project": project},
    )


@staff_form
def add(request: HttpRequest) -> HttpResponse:
    """Add a channel of one's own, or one of a project with ?of=slug."""
    project: Project | None = None
    if "of" in request.GET:
        project = project_of(request, request.GET["of"])
        require(request.user, project, MAINTAIN, channels.SET_UP)
    user: Any = None if project else request.user
    return _edited(request, Channel(user=user, project=project))


@staff_form
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Change a channel; its address changes only if a new one is typed."""
    return _edited(request, _channel(request, pk))


def _edited(request: HttpRequest, channel: Channel) -> HttpResponse:
    form = ChannelForm(
        request.POST if request.method == "POST" else None, instance=channel, user=request.user
    )
    is_new = channel.pk is None
    if form.is_valid():
        try:
            secret = channels.save(form.save(commit=False), form.found, user=request.user)
        except Refused as refused:
            form.add_error(None, f"{refused.message} {refused.hint}")
        else:
            if secret:
                return _secret(request, channel, secret)
            messages.success(request, f"{plain(channel.name)} is {'added' if is_new else 'saved'}.")
            return _home(channel)
    title = "Add a channel" if is_new else plain(channel.name)
    context = {"title": title, "form": form, "channel": channel, "is_new": is_new, "project": channel.project}
    return page(request, "notifications/channel.html", context, 422 if form.errors else 200)


def _secret(request: HttpRequest, channel: Channel, secret: str) -> HttpResponse:
    """Show a webhook's secret on the only page that ever does; it is not stored in clear."""
    context = {"title": f"Secret of {plain(channel.name)}", "channel": channel, "secret": secret}
    shown = page(request, "notifications/secret.html", context)
    shown.leads_to = reverse("notifications-edit", args=[channel.pk])  # type: ignore[attr-defined]
    return shown


@staff_post
def act(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Test, pause, resume or remove a channel, or give a webhook a new secret."""
    channel = _channel(request, pk)
    name = plain(channel.name)
    try:
        match verb:
            case "test":
                outcome = channels.try_out(channel, user=request.user)
                if outcome.ok:
                    messages.success(request, f"A message went out to {name}.")
                else:
                    messages.error(request, f"{name} did not take it: {outcome.error}")
            case "pause" | "resume":
                channels.set_active(channel, verb == "resume", user=request.user)
                messages.success(request, f"{name} is {verb}d.")
            case "delete":
                home = _home(channel)
                channels.remove(channel, user=request.user)
                messages.success(request, f"{name} is removed.")
                return home
            case "secret":
                return _secret(request, channel, channels.new_secret(channel, user=request.user))
    except Refused as refused:
        messages.error(request, f"{refused.message} {refused.hint}")
    return _home(channel)


@staff_get
def deliveries(request: HttpRequest) -> HttpResponse:
    """List what was sent and what was not, newest first."""
    rows = channels.deliveries_for(request.user).order_by("-pk")
    only_failed = "failed" in request.GET
    if only_failed:
        rows = rows.filter(sent_at=None, failed_at__isnull=False)
    shown = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    context = {"title": "Deliveries", "page": shown, "only_failed": only_failed}
    return page(request, "notifications/deliveries.html", context)


@staff_post
def again(request: HttpRequest, pk: int) -> HttpResponse:
    """Send again what was given up."""
    row = get_object_or_404(channels.deliveries_for(request.user), pk=pk)
    if sending.again(row):
        messages.success(request, "It is tried again within a minute.")
    else:
        messages.error(request, "It was not given up; nothing was changed.")
    return redirect("notifications-deliveries")


@require_safe
def count(request: HttpRequest) -> JsonResponse:
    """Return how much waits for the person, and the newest card; every page asks each half minute."""
    user: Any = request.user
    if not user.is_authenticated:
        return JsonResponse({"code": "signed_out"}, status=403)
    told = cache.get_or_set(f"tab-{user.pk}", lambda: _waiting(user), COUNT_SECONDS)
    answer = JsonResponse(told)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _waiting(user: Any) -> dict[str, Any]:
    """Return the count and the newest card, sought only among recent disputes to avoid sorting old ones."""
    last = Dispute.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    recent = listing.disputes_in(listing.MINE, user).filter(pk__gt=last - RECENT)
    newest = recent.order_by("-pk").first()
    card = None
    if newest is not None:
        card = {"id": newest.pk, "title": plain(newest.question)[:120], "url": f"/queue/{newest.ref}/"}
    return {"count": listing.count_of(listing.MINE, user), "newest": card}
