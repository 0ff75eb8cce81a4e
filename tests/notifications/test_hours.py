"""When a message may go out: quiet hours over midnight, time zones, the daily digest."""

from datetime import UTC, datetime, time
from typing import Any

from disputes.models import Channel
from disputes.notifications.hours import due_at
from tests.cases import for_each

NIGHT = {"quiet_from": time(22), "quiet_until": time(7)}
LATE = {"quiet_from": time(22), "quiet_until": time(2, 30), "timezone": "Europe/Berlin"}
NOON = {"quiet_from": time(12), "quiet_until": time(13, 30)}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@for_each(
    ("channel", "now", "due"),
    [
        ({}, "2026-11-22T03:00", "2026-11-22T03:00"),
        (NIGHT, "2026-11-22T21:59", "2026-11-22T21:59"),
        (NIGHT, "2026-11-22T22:00", "2026-11-23T07:00"),
        (NIGHT, "2026-11-23T00:30", "2026-11-23T07:00"),
        (NIGHT, "2026-11-23T07:00", "2026-11-23T07:00"),
        (NOON, "2026-11-22T12:45", "2026-11-22T13:30"),
        (NOON, "2026-11-22T23:00", "2026-11-22T23:00"),
        (NIGHT | {"timezone": "Asia/Tokyo"}, "2026-11-22T14:00", "2026-11-22T22:00"),  # 23:00 there
        (NIGHT | {"timezone": "America/New_York"}, "2026-11-22T14:00", "2026-11-22T14:00"),  # 9:00 there
        (NIGHT | {"timezone": "Gone/Away"}, "2026-11-22T23:00", "2026-11-23T07:00"),  # as UTC
        ({"digest_at": time(8, 30)}, "2026-11-22T08:29", "2026-11-22T08:30"),
        ({"digest_at": time(8, 30)}, "2026-11-22T08:30", "2026-11-23T08:30"),
        ({"digest_at": time(8), "timezone": "Europe/Berlin"}, "2026-11-22T08:00", "2026-11-23T07:00"),
        (NIGHT | {"digest_at": time(6)}, "2026-11-22T23:00", "2026-11-23T06:00"),  # both were chosen
        # On 29 March 2026 Berlin's clocks go from 2:00 to 3:00, on 25 October from 3:00 to 2:00.
        ({"digest_at": time(8), "timezone": "Europe/Berlin"}, "2026-03-28T12:00", "2026-03-29T06:00"),
        ({"digest_at": time(2, 30), "timezone": "Europe/Berlin"}, "2026-03-29T00:00", "2026-03-29T01:30"),
        ({"digest_at": time(8), "timezone": "Europe/Berlin"}, "2026-10-24T12:00", "2026-10-25T07:00"),
        # Quiet until 2:30, which Berlin's clocks show twice that night.
        (LATE, "2026-10-25T00:20", "2026-10-25T00:30"),
        (LATE, "2026-10-25T01:10", "2026-10-25T01:30"),
        (LATE, "2026-10-25T01:30", "2026-10-25T01:30"),
        (LATE, "2026-03-29T00:50", "2026-03-29T01:30"),
        ({"digest_at": time(2, 30), "timezone": "Europe/Berlin"}, "2026-10-25T01:10", "2026-10-26T01:30"),
    ],
)
def test_a_message_is_due_when_the_channel_takes_it(channel: dict[str, Any], now: str, due: str) -> None:
    assert due_at(Channel(**channel), at(now)) == at(due)


@for_each("channel", [NIGHT, {"digest_at": time(8)}, NIGHT | {"digest_at": time(8)}])
def test_what_is_critical_waits_for_nothing(channel: dict[str, Any]) -> None:
    assert due_at(Channel(**channel), at("2026-11-22T23:00"), is_urgent=True) == at("2026-11-22T23:00")
