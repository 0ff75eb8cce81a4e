"""The jobs of the disputes app that django-q2 calls: short, idempotent, run at least once, in any order."""

from disputes import triage


def wake() -> str:
    """Wake disputes whose time has come, and take from people what they may not rule on any more."""
    return f"woke {triage.wake_due()}, released {triage.release_left()}"
