"""Bells that nobody hears: most tests need no loop."""

from django.apps import AppConfig

from tasks import hooks


def silent(project_pk: int, kind: str = "") -> None:
    """Do nothing."""


class Silence(AppConfig):
    """Fills the slots after the program did."""

    name = "tests"

    def ready(self) -> None:
        hooks.ring_loop.fill(silent)
        hooks.ring_notices.fill(silent)
