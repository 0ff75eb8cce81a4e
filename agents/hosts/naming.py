"""The name of this host, which it alone may have: under another's name it would destroy that one's work."""

import contextlib
import platform
import shutil
import socket
import uuid
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from agents.cli import VERSION
from agents.hosts import paths, processes, sandbox
from agents.hosts.git import commands as git
from agents.hosts.sandbox import HostUnfit
from agents.models import Host
from tasks.locking import locked
from tasks.text.regex import regex

ID = regex(r"[0-9a-f]{32}")


class NameTaken(HostUnfit):
    """Another installation works under this host's name. The text names it, and says what to set."""


def host_name() -> str:
    """The name under which this machine takes runs."""
    return settings.HOST_NAME or socket.gethostname()


def installation() -> str:
    """The name of this data folder, made when it is asked for first; only a copied folder has the same."""
    path = paths.folder("host") / "id"
    with contextlib.suppress(OSError):
        if ID.fullmatch(known := path.read_text().strip()):
            return known
    processes.write_whole(path, uuid.uuid4().hex.encode(), onto_disk=True)
    return path.read_text()


def place() -> str:
    """Where this installation is, for people."""
    return f"{socket.gethostname()}:{settings.HOME}"[:300]


def register() -> Host:
    """Take the name. Raises NameTaken where another installation reported under it a moment ago.

    Raises SandboxMissing where the host has to enclose its runs and cannot.
    """
    now = {
        "boot_id": processes.boot_id(), "version": VERSION, "installation": installation(), "place": place(),
        "tools": _tools(), "is_removed": False, "seen_at": Now(), "labels": settings.HOST_LABELS,
        **sandbox.standing(),
    }  # fmt: skip
    with transaction.atomic():
        Host.objects.get_or_create(name=host_name(), defaults={"slots": settings.HOST_SLOTS})
        row = locked(Host.objects).annotate(age=Now() - F("seen_at")).get(name=host_name())
        if _is_anothers(row, row.age):
            raise taken(row)
        Host.objects.filter(pk=row.pk).update(**now)
    return Host.objects.get(pk=row.pk)


def _is_anothers(row: Host, age: timedelta | None) -> bool:
    """Whether somebody else works under this name now.

    Another data folder is somebody else; so is a copy of this one that reported from another machine since
    this machine was started. The age is by the database's clock alone.
    """
    if age is None or age.total_seconds() > settings.DURATIONS["lease"]:
        return False
    if not row.installation:  # its last one stopped with nothing left to do
        return False
    if row.installation != installation():
        return True
    return row.boot_id != processes.boot_id() and age.total_seconds() < processes.boottime()


def taken(row: Host) -> NameTaken:
    """What to say to whoever finds another installation under its name."""
    wait, row = settings.DURATIONS["lease"], Host.objects.filter(pk=row.pk).first() or row
    return NameTaken(
        f"The host name {row.name} belongs to {row.place or 'another installation'}, which reported less "
        f"than {wait:.0f} seconds ago. Two hosts of one name destroy each other's work: set "
        f"STEROIDS_HOST_NAME to a name of its own here. If that one is gone for good, start again in "
        f"{wait:.0f} seconds."
    )


def still_ours(row: Host) -> bool:
    """Report that this host lives; False where another installation has taken the name meanwhile."""
    mine = Host.objects.filter(pk=row.pk, installation=row.installation, boot_id=row.boot_id)
    with contextlib.suppress(OSError):
        return bool(mine.update(seen_at=Now(), disk_free=shutil.disk_usage(settings.HOME).free))
    return bool(mine.update(seen_at=Now()))


def let_go(row: Host) -> None:
    """This host has stopped, and nothing is left on it: whoever comes next may have the name."""
    mine = Host.objects.filter(pk=row.pk, installation=row.installation, boot_id=row.boot_id)
    mine.update(installation="", boot_id="")


def note_tick() -> None:
    """A background job of this host turns the loop."""
    if not Host.objects.filter(name=host_name()).update(ticked_at=Now()):
        Host.objects.get_or_create(
            name=host_name(), defaults={"slots": settings.HOST_SLOTS, "ticked_at": Now()}
        )


def _tools() -> str:
    """Versions of what runs and builds here, for people who look for a difference between hosts."""
    python, system = platform.python_version(), f"{platform.system()} {platform.release()}"
    return f"git {git.version()}, Python {python}, {system}"[:200]
