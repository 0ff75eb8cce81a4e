"""The name of this host, which must be unique: under another's name it would destroy that host's work."""

import contextlib
import platform
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
from tasks.database.locking import locked
from tasks.text.regex import regex

ID = regex(r"[0-9a-f]{32}")


class NameTaken(HostUnfit):
    """Another installation works under this host's name. The text names it and says what to set."""


def host_name() -> str:
    """Return the name under which this machine takes runs."""
    return settings.HOST_NAME or socket.gethostname()


def installation() -> str:
    """Return this data folder's id, made on first use; only a copy of the folder has the same id."""
    path = paths.folder("host") / "id"
    with contextlib.suppress(OSError):
        if ID.fullmatch(known := path.read_text().strip()):
            return known
    processes.write_whole(path, uuid.uuid4().hex.encode(), onto_disk=True)
    return path.read_text()


def place() -> str:
    """Say where this installation is, as "machine:folder", for people to read."""
    return f"{socket.gethostname()}:{settings.HOME}"[:300]


def register() -> Host:
    """Take the host's name and return its row.

    Raises NameTaken if another installation reported under the name less than a lease ago, and SandboxMissing
    if the host must sandbox its runs and cannot.
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
    """Whether another installation is working under this name.

    Another data folder is another installation. So is a copy of this one that has reported from another
    machine since this machine was started. `age` is the time since the row's last report, by the database's
    clock alone.
    """
    if age is None or age.total_seconds() > settings.DURATIONS["lease"]:
        return False
    if not row.installation:  # the last host of this name stopped with nothing left to do
        return False
    if row.installation != installation():
        return True
    return row.boot_id not in {"", processes.boot_id()} and age.total_seconds() < processes.boottime()


def taken(row: Host) -> NameTaken:
    """Return the error that tells people another installation holds this host's name."""
    wait, row = settings.DURATIONS["lease"], Host.objects.filter(pk=row.pk).first() or row
    return NameTaken(
        f"The host name {row.name} belongs to {row.place or 'another installation'}, which reported less "
        f"than {wait:.0f} seconds ago. Two hosts of one name destroy each other's work: set "
        f"STEROIDS_HOST_NAME to a name of its own here. If that one is gone for good, start again in "
        f"{wait:.0f} seconds."
    )


def still_ours(row: Host) -> bool:
    """Report that this host is alive; return False if another installation has taken its name."""
    mine = Host.objects.filter(pk=row.pk, installation=row.installation, boot_id=row.boot_id)
    with contextlib.suppress(OSError):
        return bool(mine.update(seen_at=Now(), disk_free=paths.room()))
    return bool(mine.update(seen_at=Now()))


def let_go(row: Host, *, is_empty: bool) -> None:
    """Record that this host has stopped; if nothing is left on it, another may take its name."""
    mine = Host.objects.filter(pk=row.pk, installation=row.installation, boot_id=row.boot_id)
    mine.update(installation="" if is_empty else row.installation, boot_id="")


def note_tick() -> None:
    """Record that a background job of this host has just run the loop."""
    if not Host.objects.filter(name=host_name()).update(ticked_at=Now()):
        Host.objects.get_or_create(
            name=host_name(), defaults={"slots": settings.HOST_SLOTS, "ticked_at": Now()}
        )


def _tools() -> str:
    """Return the versions of what runs and builds here, for people who compare hosts."""
    python, system = platform.python_version(), f"{platform.system()} {platform.release()}"
    return f"git {git.version()}, Python {python}, {system}"[:200]
