"""Makes a backup: first the database, then the mirrors, so that they have every commit it names."""

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from agents.backups import databases
from agents.cli import VERSION
from agents.hosts import paths
from agents.hosts.git import commands as git
from agents.hosts.git.commands import GitError
from agents.models import Run
from tasks.models import Project, Task

FORMAT = 1
MANIFEST = "manifest.json"
BUNDLE_TIMEOUT = 3600.0  # seconds for one mirror


def small_files() -> dict[str, Path]:
    """Return the files to back up beside the database, by name: keys, credentials, prices, seals."""
    home = Path(settings.HOME)
    kept = {name: home / name for name in ("secret-key", "git-credentials", "seals.jsonl")}
    return kept | {"prices.yaml": Path(settings.PRICES)}


def fingerprint(key: str) -> str:
    """Return a hash by which a key can be recognised but not found out."""
    return hashlib.sha256(f"steroids backup {key}".encode()).hexdigest()[:16]


def make(target: Path) -> dict[str, Any]:
    """Write the backup, readable by its owner only, and return its manifest with its size in bytes.

    Raises NoCopy, GitError and OSError; an existing file is never overwritten.
    """
    target = target.absolute()
    if target.exists():
        raise FileExistsError(f"{target} exists already; a backup overwrites nothing.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}.")
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=target.parent) as name:
        folder = Path(name)
        about = _about()
        files = _small_files(folder)  # copied before the database, which then has every seal that they name
        members = [databases.dump(folder), *_mirrors(folder), *files]
        about["mirrors"] = sorted(path.name for path in members if path.suffix == ".bundle")
        (folder / MANIFEST).write_text(json.dumps(about, indent=2))
        whole = folder / "whole.tar.gz"
        with tarfile.open(whole, "w:gz", compresslevel=3) as archive:
            archive.add(folder / MANIFEST, MANIFEST)
            for path in members:
                archive.add(path, path.relative_to(folder).as_posix())
        whole.chmod(0o600)
        with whole.open("rb") as written:
            os.fsync(written.fileno())
        os.link(whole, target)  # complete or not at all, and never over an existing file
    return about | {"bytes": target.stat().st_size}


def _about() -> dict[str, Any]:
    applied = MigrationRecorder(connection).applied_migrations()
    in_file = (Path(settings.HOME) / "secret-key").is_file()
    return {
        "format": FORMAT, "version": VERSION, "made_at": timezone.now().isoformat(),
        "database": connection.vendor, "migrations": sorted(f"{app}.{name}" for app, name in applied),
        "key": fingerprint(settings.SECRET_KEY), "key_is_in_it": in_file,
        "projects": Project.objects.count(), "tasks": Task.objects.count(),
        "live_runs": Run.objects.live().count(),
    }  # fmt: skip


def _small_files(folder: Path) -> list[Path]:
    (folder / "files").mkdir()
    there = {name: path for name, path in small_files().items() if path.is_file()}
    return [Path(shutil.copyfile(path, folder / "files" / name)) for name, path in there.items()]


def _mirrors(folder: Path) -> list[Path]:
    """Write a bundle of each mirror of this host, and the names of its tags. Returns the files."""
    made: list[Path] = []
    (folder / "mirrors").mkdir()
    for project in Project.objects.order_by("pk"):
        mirror = Path(settings.HOME) / "mirrors" / f"{project.pk}.git"
        if not (mirror / "HEAD").exists() or not git.text(mirror, "for-each-ref", "--count=1"):
            continue
        bundle = folder / "mirrors" / f"{project.pk}.bundle"
        with paths.mirror(project).one_at_a_time():
            try:
                git.run(mirror, "bundle", "create", "--quiet", str(bundle), "--all", timeout=BUNDLE_TIMEOUT)
            except GitError as error:
                raise GitError(f"the mirror of {project.slug}", f"cannot be copied. {error}") from error
            made.append(bundle)
            if (tags := mirror / "steroids.tags").is_file():
                made.append(Path(shutil.copyfile(tags, bundle.with_suffix(".tags"))))
    return made
