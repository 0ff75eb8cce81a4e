"""When a message may go out: quiet hours and the daily digest, in the person's own time zone."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from disputes.models import Channel


def due_at(channel: Channel, now: datetime, *, is_urgent: bool = False) -> datetime:
    """Return the first moment from `now` on at which the channel takes a message. Urgent ones never wait.

    A digest goes out at its own time even in quiet hours, because the person chose both.
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
    return _next(now, channel.quiet_until, zone, twice=True) if is_quiet else now


def zone_of(channel: Channel) -> ZoneInfo:
    """Return the channel's time zone, or UTC if this machine does not know it."""
    try:
        return ZoneInfo(channel.timezone)
    except (OSError, ValueError, KeyError):
        return ZoneInfo("UTC")


def within(moment: time, start: time, end: time) -> bool:
    """Whether a time of day lies in a span that may cross midnight. The end is not part of the span."""
    return start <= moment < end if start <= end else moment >= start or moment < end


def _next(now: datetime, at: time, zone: ZoneInfo, *, twice: bool = False) -> datetime:
    """Return when the local clock next shows that time; on days that skip it, when it would have been.

    On the day on which the clock is put back it may show it `twice`; otherwise only the first time counts.
    """
    today = now.astimezone(zone).date()
    shown = [(today, 0), *([(today, 1)] if twice else []), (today + timedelta(days=1), 0)]
    moments = (datetime.combine(day, at.replace(fold=fold), zone).astimezone(UTC) for day, fold in shown)
    return next(moment for moment in moments if moment > now)
