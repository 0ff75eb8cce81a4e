"""Spans and moments as people read them. Pure but for the time zone."""

from datetime import datetime

from django.utils import timezone

MINUTE, HOUR, DAY = 60, 60 * 60, 24 * 60 * 60


def duration(seconds: float | None) -> str:
    """Two units at most: 8 s, 12 m, 2 h 11 m, 2 d 1 h."""
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
    """The time of day in the installation's zone; with the day where that is not today's."""
    local, today = timezone.localtime(moment), timezone.localtime(now).date()
    return f"{local:%H:%M}" if local.date() == today else f"{local.day} {local:%b %H:%M}"


def since(moment: datetime, now: datetime) -> str:
    """08:31 (2 h 11 m)."""
    return f"{clock(moment, now)} ({duration((now - moment).total_seconds())})"
