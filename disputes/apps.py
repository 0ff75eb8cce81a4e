from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

SCHEDULES = [  # name, function, interval in minutes
    ("wake", "disputes.jobs.wake", 1),
    ("tell", "disputes.notifications.jobs.tell", 1),
    ("tidy deliveries", "disputes.notifications.jobs.tidy", 24 * 60),
    ("count days", "disputes.tallies.count_days", 10),
    ("statistics", "tasks.database.statistics.refresh", 60),
    ("seal", "tasks.sealing.seal_all", 60),
]


def schedule_jobs(**kwargs: Any) -> None:
    """Schedule the jobs that run at intervals without any request."""
    from django_q.models import Schedule

    for name, func, minutes in SCHEDULES:
        values = {"func": func, "schedule_type": Schedule.MINUTES, "minutes": minutes, "repeats": -1}
        Schedule.objects.update_or_create(name=name, defaults=values)


class DisputesConfig(AppConfig):
    name = "disputes"
    verbose_name = "Disputes"

    def ready(self) -> None:
        post_migrate.connect(schedule_jobs, sender=self)
