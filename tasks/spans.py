"""Durations and times as people read them. Pure, except that they use the configured time zone."""

from datetime import datetime

from django.utils import timezone

MINUTE, HOUR, DAY = 60, 60 * 60, 24 * 60 * 60


def duration(seconds: float | None) -> str:
    """Return a duration in at most two units, such as "8 s", "12 m" or "2 h 11 m"; empty for None."""
    if seconds is None:
        return ""
    whole = max(int(seconds), 0)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} m"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE:02} m"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"


def clock(moment: datetime, now: datetime) -> str:
    """Return the time of day in the installation's time zone, with the date unless it is today."""
    local, today = timezone.localtime(moment), timezone.localtime(now).date()
    return f"{local:%H:%M}" if local.date() == today else f"{local.day} {local:%b %H:%M}"


def since(moment: datetime, now: datetime) -> str:
    """Return a time with how long ago it was, such as "08:31 (2 h 11 m)"."""
    return f"{clock(moment, now)} ({duration((now - moment).total_seconds())})"
