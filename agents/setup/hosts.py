"""What people do with a host: drain it, let it take work again, or remove it."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q
from django.db.models.deletion import ProtectedError

from agents.loop import abandoned
from agents.models import Host, Run
from tasks.database.locking import locked
from tasks.errors import Refused
from tasks.models import Submission
from tasks.text.counting import counted


@dataclass(frozen=True, slots=True)
class Left:
    """What a host still has and what would be lost with it."""

    runs: int
    commits: int  # handed in but not fetched, or too large for a bundle

    def __bool__(self) -> bool:
        return bool(self.runs or self.commits)

    def __str__(self) -> str:
        runs = f"{counted(self.runs, 'run')} under way" if self.runs else ""
        commits = f"{counted(self.commits, 'submission')} that only it has" if self.commits else ""
        return " and ".join(filter(None, (runs, commits))) or "nothing"


def named(name: str) -> Host:
    """Return the host of this name. Raises Refused("unknown_host")."""
    host = Host.objects.filter(name=name, is_removed=False).first()
    if host is None:
        known = ", ".join(Host.objects.filter(is_removed=False).values_list("name", flat=True))
        raise Refused(
            "unknown_host", f"There is no host {name}.", f"There are: {known or 'none'}.", status=404
        )
    return host


def left_on(host: Host) -> Left:
    """Return the host's runs, and the commits of unlanded tasks that no other host has."""
    unfetched = Q(state=Submission.State.RECEIVED, run__host=host, run__is_pulled=False)
    kept = Q(state__in=[Submission.State.KEPT, Submission.State.VERIFIED], only_on=host.name)
    commits = Submission.objects.standing().filter(unfetched | kept, task__landed_at__isnull=True)
    return Left(Run.objects.on_host().filter(host=host).count(), commits.count())


def set_draining(host: Host, is_draining: bool) -> None:
    """Set whether the host begins no new work; what only it has is still brought to its end there."""
    Host.objects.filter(pk=host.pk).update(is_draining=is_draining)


def remove(host: Host) -> bool:
    """Remove a host that is gone for good, let its work be done again at once, and say whether its row went.

    The row of a host that ran anything is kept, so that its runs keep its name. Raises Refused("host_alive").
    """
    with transaction.atomic():
        locked(Host.objects).get(pk=host.pk)
        if Host.objects.alive().filter(pk=host.pk).exists():
            raise Refused(
                "host_alive", f"{host.name} reported a moment ago: it still works.",
                f"Let it run empty with `host drain {host.name}`, stop it, and try again in a minute.",
            )  # fmt: skip
        Host.objects.filter(pk=host.pk).update(is_removed=True, is_draining=False)
    abandoned.give_up()
    try:
        with transaction.atomic():
            host.delete()
    except ProtectedError:
        return False
    return True
