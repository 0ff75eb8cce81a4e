"""The jobs of the disputes app that django-q2 calls: short, idempotent, run at least once, in any order."""

from disputes import triage


def wake() -> str:
    """Record that snoozed disputes whose time has come are awake; the queue already shows them."""
    return f"woke {triage.wake_due()}"
