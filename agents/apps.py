from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

SCHEDULES = [  # name, function, minutes between two calls
    ("tick", "agents.jobs.tick", 1),
    ("prune", "agents.jobs.prune", 24 * 60),
]


def schedule_jobs(**kwargs: Any) -> None:
    """Schedule the regular jobs, so that the loop ticks every minute even if nobody rings."""
    from django_q.models import Schedule

    from agents.loop.bell import TICK_TIMEOUT

    for name, func, minutes in SCHEDULES:
        limits = {"kwargs": repr({"q_options": {"timeout": TICK_TIMEOUT}})} if name == "tick" else {}
        values = {"func": func, "schedule_type": Schedule.MINUTES, "minutes": minutes, "repeats": -1}
        Schedule.objects.update_or_create(name=name, defaults=values | limits)


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = "Agents"

    def ready(self) -> None:
        post_migrate.connect(schedule_jobs, sender=self)
