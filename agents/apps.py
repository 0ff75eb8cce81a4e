from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def schedule_tick(**kwargs: Any) -> None:
    """The loop turns each minute even if nobody ever rings."""
    from django_q.models import Schedule

    from agents.loop.bell import TICK_TIMEOUT

    Schedule.objects.update_or_create(
        name="tick",
        defaults={
            "func": "agents.jobs.tick", "schedule_type": Schedule.MINUTES, "minutes": 1, "repeats": -1,
            "kwargs": repr({"q_options": {"timeout": TICK_TIMEOUT}}),
        },
    )  # fmt: skip


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = "Agents"

    def ready(self) -> None:
        post_migrate.connect(schedule_tick, sender=self)
