"""What people do with channels: add, change, test, pause, remove. Addresses are sealed when saved."""

from typing import Any
from uuid import uuid4

from django.core.cache import cache
from django.db import transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery

from disputes.models import Channel, Delivery
from disputes.notifications import messages, post, sending, signing
from disputes.notifications.addresses import Address
from disputes.notifications.sealing import Unreadable, seal, unseal
from tasks.access import MAINTAIN, READ, may, projects_for, require
from tasks.database.clock import estimated_time
from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.models.event import record

CHANNELS_MAX = 20  # per person, or per project
TEST_EVERY = 5  # seconds
SET_UP = "set up channels"  # the right to do so, in words


def own(user: Any) -> QuerySet[Channel]:
    """Return the person's channels."""
    return _with_state(Channel.objects.filter(user=user)).select_related("project")


def of_project(project: Any) -> QuerySet[Channel]:
    """Return the channels of the project itself."""
    return _with_state(Channel.objects.filter(user=None, project=project)).select_related("project")


def _with_state(channels: QuerySet[Channel]) -> QuerySet[Channel]:
    """Annotate the channels with when something was last sent, and with the error of the last failure."""
    sent = Delivery.objects.filter(channel=OuterRef("pk"), sent_at__isnull=False).order_by("-pk")
    lost = Delivery.objects.filter(channel=OuterRef("pk"), sent_at=None, tries__gt=0).exclude(error="")
    return channels.annotate(
        last_sent=Subquery(sent.values("sent_at")[:1]),
        last_error=Subquery(lost.order_by("-pk").values("error")[:1]),
    ).order_by("name", "pk")


def check_right(channel: Channel, user: Any) -> None:
    """Raise Refused unless the person owns the channel or maintains the project that owns it."""
    is_own = channel.user_id == user.pk
    if not is_own and (channel.user_id is not None or not may(user, channel.project, READ)):
        raise Refused("not_found", "There is no such channel.", "Choose one of those listed.", status=404)
    if is_own:
        return
    require(user, channel.project, MAINTAIN, SET_UP)


def save(channel: Channel, address: Address | None, *, user: Any) -> str:
    """Save the channel, with its new address if there is one. Return a new webhook's secret, else "".

    Raises Refused("too_many").
    """
    is_new, secret = channel.pk is None, ""
    if address is not None:
        channel.sealed_address, channel.service = seal(address.text), address.service
    if is_new:
        mates = Channel.objects.filter(user=channel.user_id)
        mates = mates if channel.user_id else mates.filter(project=channel.project_id)
        if mates.count() >= CHANNELS_MAX:
            raise Invalid("too_many", f"There are {CHANNELS_MAX} channels already.", "Remove one.")
        if channel.kind == Channel.Kind.WEBHOOK:
            secret = signing.new_secret()
            channel.sealed_secret = seal(signing.exchanged("", secret, estimated_time()))
    with transaction.atomic():
        channel.save()
        _note(channel, "added" if is_new else "changed", user)
    return secret


@transaction.atomic
def set_active(channel: Channel, active: bool, *, user: Any) -> None:
    """Pause or resume the channel. Messages that fall due while it is paused are not sent."""
    if Channel.objects.filter(pk=channel.pk).exclude(is_active=active).update(is_active=active):
        _note(channel, "resumed" if active else "paused", user)


@transaction.atomic
def remove(channel: Channel, *, user: Any) -> None:
    """Delete the channel, together with the messages that it was owed."""
    _note(channel, "removed", user)
    channel.delete()


@transaction.atomic
def new_secret(channel: Channel, *, user: Any) -> str:
    """Return a new secret for a webhook, to be shown once. The previous one also signs for another day.

    Raises Refused("no_secret") if the channel is no webhook.
    """
    if channel.kind != Channel.Kind.WEBHOOK:
        raise Invalid("no_secret", "Only webhooks are signed.", "This one needs no secret.")
    secret, now = signing.new_secret(), estimated_time()
    try:
        kept = unseal(channel.sealed_secret)
    except Unreadable:
        kept = ""
    channel.sealed_secret = seal(signing.exchanged(kept, secret, now))
    channel.save(update_fields=["sealed_secret"])
    _note(channel, "given a new secret", user)
    return secret


def try_out(channel: Channel, *, user: Any) -> post.SendOutcome:
    """Send one test message at once and return what came of it. Raises Refused("too_fast")."""
    if not cache.add(f"tell-test-{user.pk}", True, timeout=TEST_EVERY):
        raise Refused("too_fast", f"One try in {TEST_EVERY} seconds.", "Try again.", status=429)
    uid, now = str(uuid4()), estimated_time()
    link = messages.link("/notifications/")
    told = messages.Message("Steroids: a test message", ("This channel works.",), link)
    try:
        address = unseal(channel.sealed_address)
        if channel.kind == Channel.Kind.WEBHOOK:
            payload = {"id": uid, "type": "test", "timestamp": now.isoformat(), "data": {}}
            return post.carry(sending.webhook(channel, address, uid, payload, now))
        return post.carry(sending.people(channel, address, told, uid))
    except Unreadable as error:
        return post.SendOutcome(False, f"{error} Enter it again.", is_permanent=True)


def _note(channel: Channel, what: str, user: Any) -> None:
    """Record the change in the history of the project if the channel is the project's own."""
    if channel.user_id is None and channel.project is not None:
        record(
            channel.project, "channel", actor=Actor.person(user),
            note=f"{channel.name} ({channel.service}) was {what}.",
        )  # fmt: skip


# --- Deliveries -------------------------------------------------------------------------------------------


def deliveries_for(user: Any) -> QuerySet[Delivery]:
    """Return the deliveries to the person's channels and to those of projects they maintain."""
    mine = Channel.objects.filter(Q(user=user.pk) | Q(user=None, project__in=projects_for(user, MAINTAIN)))
    related = ("channel__project", "event__project", "event__task__project")
    return Delivery.objects.filter(channel__in=mine).select_related(*related)


def given_up(user: Any) -> QuerySet[Delivery]:
    """Return those deliveries that were given up after trying."""
    lost = deliveries_for(user).select_related(None)
    return lost.filter(sent_at=None, failed_at__isnull=False, tries__gt=0).order_by()
