"""The background jobs of this host."""

from typing import Any

from django_q.management.commands import qcluster

from steroidsweb.preloading import load_everything


class Command(qcluster.Command):  # type: ignore[misc]
    """django-q2's, which forks its processes one from the other."""

    requires_system_checks = ("steroids",)

    def handle(self, *args: Any, **options: Any) -> None:
        load_everything()
        super().handle(*args, **options)
