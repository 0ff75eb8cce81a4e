"""Ringing the job that tells people: after each event with a notice, at most one waits in the queue."""

from disputes.models import Channel
from tasks import broker
from tasks.models.prepared import Prepared

WAITING = "steroids-tell-waiting"


def ring(project_pk: int = 0) -> None:
    """One job in the queue unless one waits already. Where nobody has a channel, once a minute is enough."""
    if not _any_channel.rows():
        return
    broker.ask_once(WAITING, "disputes.notifications.jobs.tell", group="tell")


_any_channel = Prepared(lambda: Channel.objects.order_by().values_list("pk")[:1])


def answered() -> None:
    """The job begins: whatever is noted from here on needs another."""
    broker.begin(WAITING)
