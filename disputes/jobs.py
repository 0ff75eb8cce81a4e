"""What django-q2 calls for disputes. Short and idempotent: at least once, in any order."""

from disputes import triage


def wake() -> str:
    """Say of snoozed disputes whose time has come that they are awake; the queue shows them already."""
    return f"woke {triage.wake_due()}"
