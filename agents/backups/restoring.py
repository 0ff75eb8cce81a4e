"""Restores a backup into an empty installation, which goes on where it was; what was live has ended."""

import contextlib
import gzip
import io
import json
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone
from django_q.models import OrmQ

from agents.backups import databases, making
from agents.hosts import paths, processes, submissions
from agents.hosts.git import commands as git
from agents.hosts.naming import host_name
from agents.loop import run_ends
from agents.models import Host, Run, Token, Trial
from tasks.models import Landing, Project, Submission
from tasks.models.event import record
from tasks.text.counting import counted
from tasks.text.regex import regex

Say = Callable[[str], None]
MEMBER = regex(
    r"manifest\.json|database\.(sqlite3|pgdump)|mirrors/[1-9][0-9]{0,17}\.(bundle|tags)"
    r"|files/(secret-key|git-credentials|prices\.yaml|seals\.jsonl)"
)
FETCH_TIMEOUT = 3600.0
PIECE = 1 << 20  # bytes that are read at a time


class NotRestored(Exception):
    """Raised before anything is changed; the text says why, and what to do."""


def restore(source: Path, say: Say) -> None:
    """Restore the backup into this installation. Raises NotRestored, NoCopy, GitError and OSError."""
    _refuse_damaged(source)
    with _alone(), tempfile.TemporaryDirectory(prefix=".restore-", dir=paths.folder()) as name:
        folder = Path(name)
        try:
            with tarfile.open(source, "r:gz") as archive:
                about = _manifest(archive)
                _refuse_misfit(about)
                _refuse_living()
                _take_out(archive, folder)
        except (OSError, EOFError, tarfile.TarError) as error:
            raise NotRestored(f"{source} cannot be unpacked: {error}") from error
        databases.load(folder / databases.FILES[about["database"]])
        call_command("migrate", verbosity=0, interactive=False)
        made_at = datetime.fromisoformat(about["made_at"])
        say(f"The database is as it was on {made_at:%Y-%m-%d at %H:%M} UTC.")
        _keep_files(folder / "files", about, say)
        for bundle in sorted((folder / "mirrors").glob("*.bundle")):
            _bring_mirror(bundle)
        for line in end_what_was_live(made_at):
            say(line)


def _refuse_damaged(source: Path) -> None:
    """Raise NotRestored unless the whole file can be read, and fits the checksum at its end."""
    try:
        with gzip.open(source) as whole:
            while whole.read(PIECE):
                pass
    except OSError as error:
        raise NotRestored(f"{source} cannot be read: {error.strerror or error}.") from error
    except (EOFError, zlib.error) as error:
        raise NotRestored(f"{source} is damaged or cut off: {error}.") from error
    if not tarfile.is_tarfile(source):
        raise NotRestored(f"{source} is no archive.")


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Keep the program from starting on this data folder meanwhile. Raises NotRestored if it is running."""
    with contextlib.ExitStack() as stack:
        for file in (paths.folder("host") / "resident.lock", paths.host_lock()):
            lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
            stack.callback(os.close, lock)
            if not processes.took(lock):
                raise NotRestored(f"The program runs on {settings.HOME}. End it first.")
        yield


def _take_out(archive: tarfile.TarFile, folder: Path) -> None:
    """Write the files of the backup into the folder, and nothing else that an archive may hold."""
    for member in archive.getmembers():
        given = archive.extractfile(member) if member.isreg() and MEMBER.fullmatch(member.name) else None
        if given:
            to = folder / member.name
            to.parent.mkdir(mode=0o700, exist_ok=True)
            with given, open(to, "wb") as file:
                shutil.copyfileobj(given, file)


def _manifest(archive: tarfile.TarFile) -> dict[str, Any]:
    """Return what the backup says of itself. Raises NotRestored if that is not what `backup` writes."""
    try:
        about = json.load(archive.extractfile(making.MANIFEST) or io.BytesIO())
        is_ours = about["format"] == making.FORMAT and about["database"] in databases.NAMES
        is_ours &= all(isinstance(name, str) for name in about["migrations"])
        is_ours &= {"version", "key", "key_is_in_it"} <= set(about)
        datetime.fromisoformat(about["made_at"])
    except (LookupError, TypeError, ValueError, RecursionError):
        is_ours = False
    if not is_ours:
        raise NotRestored("That is no backup of `manage.py backup`, or one of a later version.")
    return about  # type: ignore[no-any-return]


def _refuse_misfit(about: dict[str, Any]) -> None:
    """Raise NotRestored if this program or this database cannot take the backup."""
    if about["database"] != connection.vendor:
        was, here = databases.NAMES[about["database"]], databases.NAMES[connection.vendor]
        raise NotRestored(f"The backup is of {was}, and DATABASE_URL names {here}: it goes back into {was}.")
    on_disk, made = MigrationLoader(None).disk_migrations, {*about["migrations"]}
    known = {".".join(key) for key in on_disk}
    for each in on_disk.values():
        replaced = {".".join(key) for key in each.replaces}
        known |= replaced if replaced <= made else set()  # only where all of them were applied
    if unknown := sorted(made - known):
        raise NotRestored(
            f"The backup is of version {about['version']}, which knows {unknown[0]}; this version does not. "
            "Install that version or a later one, and restore there."
        )


def _refuse_living() -> None:
    """Raise NotRestored if anything here would be lost."""
    try:
        there = {"project": Project.objects.count(), "account": get_user_model().objects.count()}
    except DatabaseError:  # no tables yet
        there = {}
    there["mirror"] = len([*(Path(settings.HOME) / "mirrors").glob("[1-9]*.git")])
    if found := [counted(count, what) for what, count in there.items() if count]:
        raise NotRestored(
            f"This installation has {' and '.join(found)}; a backup goes into an empty installation only. "
            "Choose an empty STEROIDS_HOME and an empty database."
        )


def _keep_files(folder: Path, about: dict[str, Any], say: Say) -> None:
    places = making.small_files()
    for file in sorted(folder.glob("*")):
        os.chmod(file, 0o600)
        file.replace(places[file.name])
    if making.fingerprint(settings.SECRET_KEY) == about["key"]:
        return
    if not about["key_is_in_it"]:
        say(
            "SECRET_KEY is another one than when the backup was made, and is not in it: set the former one, "
            "or people enter the addresses of their notifications again."
        )
    elif "SECRET_KEY" in os.environ or "SECRET_KEY_FILE" in os.environ:
        say("SECRET_KEY of the environment is another one than the backup's, which lies in secret-key now.")


def _bring_mirror(bundle: Path) -> None:
    project = Project.objects.filter(pk=int(bundle.stem)).first()
    if project is None:
        return
    mirror = paths.mirror(project)
    mirror.ensure()
    git.run(
        mirror.path, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", str(bundle),
        "+refs/*:refs/*", timeout=FETCH_TIMEOUT,
    )  # fmt: skip
    if (tags := bundle.with_suffix(".tags")).exists():
        tags.replace(mirror.path / "steroids.tags")


def end_what_was_live(made_at: datetime) -> Iterator[str]:
    """End the runs, claims and sessions that were live in the backup; yield a line for each thing done."""
    held = list(Run.objects.on_host().select_related("task", "project"))
    for run in held:
        handed_in = run.status == Run.Status.CLOSING
        outcome = Run.Outcome.HANDED_IN if handed_in else Run.Outcome.LOST
        run_ends.end(run, outcome, reason="It was live when the backup was made that was restored.")
    # A host that takes an old name is no twin, and a host that does not come back is given up in time.
    Host.objects.update(seen_at=Now() - timedelta(seconds=settings.DURATIONS["lease"]))
    _take_over_what_is_here()
    Trial.objects.filter(status=Trial.Status.RUNNING).update(lease_until=timezone.now())
    Landing.objects.filter(status__in=Landing.LIVE).update(claimed_until=None, fence=F("fence") + 1)
    yield f"{counted(len(held), 'live run')} ended; no token of a run is good any more."
    gone = Submission.objects.standing().filter(state=Submission.State.RECEIVED, run__is_pulled=False)
    for submission in gone.select_related("task__project"):
        submissions.send_back(submission, "Its commits were on the machine that this backup replaces.")
    Session.objects.all().delete()
    OrmQ.objects.all().delete()  # the queue is not needed: rows say what is to be done
    yield "Everybody signs in again."
    if tokens := Token.objects.count():
        yield (
            "Tokens of people and of agents elsewhere that are valid again, even if deleted since: "
            f"{tokens}. Look through Tokens in the admin."
        )
    for project in Project.objects.all():
        record(project, "restored", note=f"From the backup of {made_at:%Y-%m-%d %H:%M} UTC.")


def _take_over_what_is_here() -> None:
    """Assign commits that were too large for a bundle to this host, if its mirror has them."""
    kept = [Submission.State.KEPT, Submission.State.VERIFIED]
    large = Submission.objects.filter(state__in=kept, task__landed_at__isnull=True).exclude(only_on="")
    for submission in large.select_related("task__project"):
        if paths.mirror(submission.task.project).has(submission.sha):
            Submission.objects.filter(pk=submission.pk).update(only_on=host_name())
