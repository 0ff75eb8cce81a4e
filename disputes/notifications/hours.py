"""When a message may go out: quiet hours and the daily digest, in the person's own time zone."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from disputes.models import Channel


def due_at(channel: Channel, now: datetime, *, is_urgent: bool = False) -> datetime:
    """The first moment from `now` on at which the channel takes a message. Urgent ones never wait.

    A digest goes out at its own time, whatever the quiet hours say: the person chose both.
    """
    if is_urgent:
        return now
    zone = zone_of(channel)
    if channel.digest_at is not None:
        return _next(now, channel.digest_at, zone)
    if channel.quiet_from is None or channel.quiet_until is None:
        return now
    local = now.astimezone(zone).time()
    is_quiet = within(local, channel.quiet_from, channel.quiet_until)
    return _next(now, channel.quiet_until, zone) if is_quiet else now


def zone_of(channel: Channel) -> ZoneInfo:
    """The channel's time zone; UTC where this machine does not know it any more."""
    try:
        return ZoneInfo(channel.timezone)
    except (OSError, ValueError, KeyError):
        return ZoneInfo("UTC")


def within(moment: time, start: time, end: time) -> bool:
    """Whether a time of day lies in a span that may go over midnight. The end is outside."""
    return start <= moment < end if start <= end else moment >= start or moment < end


def _next(now: datetime, at: time, zone: ZoneInfo) -> datetime:
    """When the clock on the wall shows that time next. On days that skip it, when it would have been."""
    today = now.astimezone(zone).date()
    days = (datetime.combine(today + timedelta(days=day), at, zone).astimezone(UTC) for day in (0, 1))
    return next(moment for moment in days if moment > now)
