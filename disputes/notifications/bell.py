"""Ringing the job that tells people: after each event with a notice, at most one waits in the queue."""

from tasks import broker

WAITING = "steroids-tell-waiting"


def ring(project_pk: int = 0) -> None:
    """One job in the queue unless one waits already."""
    broker.ask_once(WAITING, "disputes.notifications.jobs.tell", group="tell")


def answered() -> None:
    """The job begins: whatever is noted from here on needs another."""
    broker.begin(WAITING)
