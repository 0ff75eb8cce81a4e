"""Ringing the job that tells people: after each event with a notice, at most one job waits in the queue."""

from disputes.models import Channel
from tasks import broker
from tasks.database.prepared import Prepared

WAITING = "steroids-tell-waiting"


def ring(project_pk: int = 0) -> None:
    """Queue the job unless one is waiting or nobody has a channel; it runs every minute in any case."""
    if not _any_channel.rows():
        return
    broker.ask_once(WAITING, "disputes.notifications.jobs.tell", group="tell")


_any_channel = Prepared(lambda: Channel.objects.order_by().values_list("pk")[:1])


def answered() -> None:
    """Note that the job begins, so that whatever is recorded from here on needs another one."""
    broker.begin(WAITING)
