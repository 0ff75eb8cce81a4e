"""The command that runs the background jobs of this host."""

from typing import Any

from django.db import connection
from django_q.management.commands import qcluster

from steroidsweb.preloading import load_everything
from tasks.management.program_command import check_database


class Command(qcluster.Command):  # type: ignore[misc]
    """The command of django-q2, which first loads everything that the processes it forks will share."""

    requires_system_checks = ("steroids",)

    def handle(self, *args: Any, **options: Any) -> None:
        check_database()
        connection.close()  # no process may share it with those that it forks
        load_everything()
        super().handle(*args, **options)
