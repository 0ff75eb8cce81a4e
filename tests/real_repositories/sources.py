"""Published source archives, and git repositories made of them.

What is true of a repository made here: each commit holds exactly what one published archive holds, without
what its own .gitignore leaves out and the metadata that the packing wrote. Its tag is the published
version. Its date is that of the newest file in the archive (some build tools write a constant there), or
for npm, whose archives are dateless, the day of publication that the registry tells. A second commit with
Debian's changes has the author and the date of the topmost entry in its changelog. Who wrote a release is
not in an archive: those commits are the archive's. Branches are called `main`, for Debian `master`: both
are about.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from tests.real_repositories.packages import Package

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "var" / "repositories"
ARCHIVES, REMOTES = FOLDER / "archives", FOLDER / "remotes"
SECONDS = 600  # for one call of a registry's client
MAX_BYTES = 64 * 1024 * 1024  # of one archive
WRITTEN_BY_PACKING = re.compile(
    r"PKG-INFO|.+\.egg-info|\.pc|\.cargo_vcs_info\.json|metadata\.yml|checksums\.yaml\.gz"
)
SIZES = re.compile(r"\.tar\.(gz|bz2|xz)$|\.tgz$")


class NotToBeHad(Exception):
    """A registry does not give us this package; the message is the last thing that its client said."""


def remote_of(package: Package) -> Path:
    """The bare repository of this package, made at the first call. Raises NotToBeHad."""
    words = (package.slug, *package.versions, *(["packaging"] if package.packaging else []))
    remote = REMOTES / f"{'-'.join(words)}.git"
    if remote.exists():
        return remote
    folder = ARCHIVES / package.slug
    folder.mkdir(parents=True, exist_ok=True)
    releases = TAKE[package.registry](package, folder)
    work = FOLDER / "work" / package.slug
    shutil.rmtree(work, ignore_errors=True)
    branch = "master" if package.registry == "debian" else "main"
    subprocess.run(["git", "init", "-q", "-b", branch, str(work)], check=True)
    for version, archive, date in releases:
        tag = {"pypi": version, "npm": f"v{version}", "debian": f"upstream/{version}"}[package.registry]
        replace_files(work, archive)
        commit(work, f"Release {version}", date or newest(archive), tag)
    if package.packaging:
        commit_packaging(package, folder, work)
    REMOTES.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(work), f"{remote}.new"], check=True)
    shutil.rmtree(work)
    Path(f"{remote}.new").rename(remote)
    return remote


Release = tuple[str, Path, datetime | None]


def from_pypi(package: Package, folder: Path) -> list[Release]:
    """The source distribution of each version."""
    releases: list[Release] = []
    for version in package.versions:
        words = (
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-binary",
            ":all:",
        )
        archive = _archive(folder, f"*-{version}.tar.gz") or _asked(
            [sys.executable, "-m", *words, "--dest", str(folder), f"{package.name}=={version}"],
            folder, f"*-{version}.tar.gz",
        )  # fmt: skip
        releases.append((version, archive, None))
    return releases


def from_npm(package: Package, folder: Path) -> list[Release]:
    """The archive of each version, and when it was published."""
    releases: list[Release] = []
    times = json.loads(_said(["npm", "view", "--json", package.name, "time"], folder) or "{}")
    for version in package.versions:
        archive = _archive(folder, f"*-{version}.tgz") or _asked(
            ["npm", "pack", "--silent", "--pack-destination", str(folder), f"{package.name}@{version}"],
            folder, f"*-{version}.tgz",
        )  # fmt: skip
        published = times.get(version)
        releases.append((version, archive, datetime.fromisoformat(published) if published else None))
    return releases


def from_debian(package: Package, folder: Path) -> list[Release]:
    """The upstream archive that Debian's source package has, in the version of this machine's release."""
    pattern = f"{package.name}_*.orig.tar.*[!c]"  # .asc is its signature
    archive = _archive(folder, pattern) or _asked(
        ["apt-get", *_source_lists(), "source", "--quiet=2", "--download-only", "--tar-only", package.name],
        folder, pattern,
    )  # fmt: skip
    found = re.match(r"[^_]+_(.+)\.orig\.tar", archive.name)
    assert found, archive
    return [(found[1].replace("~", "_"), archive, None)]  # no tag may hold a ~


TAKE = {"pypi": from_pypi, "npm": from_npm, "debian": from_debian}


def _archive(folder: Path, pattern: str) -> Path | None:
    found = sorted(path for path in folder.glob(pattern) if SIZES.search(path.name))
    if found and found[0].stat().st_size > MAX_BYTES:
        raise NotToBeHad(f"{found[0].name} is larger than {MAX_BYTES} bytes")
    return found[0] if found else None


def _asked(argv: list[str], folder: Path, pattern: str) -> Path:
    """The archive that this command brings. A registry may be away for a moment: asked twice."""
    for _ in range(2):
        _said(argv, folder)
        if archive := _archive(folder, pattern):
            return archive
    raise NotToBeHad((folder / "said").read_text(errors="replace").strip()[-400:])


def _said(argv: list[str], folder: Path) -> str:
    with (folder / "said").open("w") as errors:
        try:
            done = subprocess.run(
                argv,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ""
    return done.stdout


@cache
def _source_lists() -> tuple[str, ...]:
    """Options for apt-get that know the sources of what this machine's lists know, in a folder of our own.

    The machine's own lists stay as they are.
    """
    own = FOLDER / "apt"
    lists, parts, kept = own / "lists", own / "sources.list.d", own / "cache"
    for folder in (lists / "partial", parts, kept / "archives" / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    machine = Path("/etc/apt")
    for path in (machine / "sources.list", *sorted((machine / "sources.list.d").glob("*"))):
        if path.suffix in {".list", ".sources"} and path.is_file():
            (parts / path.name).write_text(as_sources(path.read_text()))
    options = {
        "Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": str(parts),
        "Dir::State::lists": str(lists), "Dir::Cache": str(kept), "APT::Sandbox::User": "root",
    }  # fmt: skip
    words = tuple(word for name, value in options.items() for word in ("-o", f"{name}={value}"))
    _said(["apt-get", *words, "--quiet=2", "update"], own)
    return words


def as_sources(text: str) -> str:
    """A list of Debian's, of either format, that names the sources instead of the packages."""
    text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
    return re.sub(r"^deb(?=\s)", "deb-src", text, flags=re.MULTILINE)


def newest(archive: Path) -> datetime:
    """The date of the newest file in it."""
    with tarfile.open(archive) as opened:
        return datetime.fromtimestamp(max(int(member.mtime) for member in opened), UTC)


def replace_files(work: Path, archive: Path) -> None:
    """The work tree holds what is in the archive, and nothing else."""
    _empty(work)
    unpacked = work.with_name(f"{work.name}.unpacked")
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    subprocess.run(
        ["tar", "--extract", "--no-same-owner", "--file", archive, "--directory", unpacked], check=True
    )
    inner = list(unpacked.iterdir())
    top = inner[0] if len(inner) == 1 and inner[0].is_dir() else unpacked
    _move(top.iterdir(), work)
    shutil.rmtree(unpacked)


def _empty(work: Path) -> None:
    for path in work.iterdir():
        if path.name == ".git":
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _move(paths: Iterable[Path], work: Path) -> None:
    for path in list(paths):
        if path.name != ".git" and not WRITTEN_BY_PACKING.fullmatch(path.name):
            shutil.move(path, work / path.name)
    for path in list(work.glob("*/*.egg-info")):  # of a package below src
        shutil.rmtree(path)
    if (written := work / "Cargo.toml.orig").exists():  # cargo packs one of its own in its place
        written.replace(work / "Cargo.toml")


def commit_packaging(package: Package, folder: Path, work: Path) -> None:
    """Debian's changes to that release as a commit: author, date and version are the changelog's."""
    if not list(folder.glob("*.dsc")):
        argv = ["apt-get", *_source_lists(), "source", "--quiet=2", "--download-only", package.name]
        _said(argv, folder)
    descriptions = list(folder.glob("*.dsc"))
    patched = work.with_name(f"{work.name}.patched")
    shutil.rmtree(patched, ignore_errors=True)
    if (
        not descriptions
        or subprocess.run(
            ["dpkg-source", "--no-check", "-x", str(descriptions[0]), str(patched)],
            capture_output=True,
            check=False,
        ).returncode
    ):
        raise NotToBeHad(f"{package.name}: its packaging is not to be had")
    _empty(work)
    _move(patched.iterdir(), work)
    shutil.rmtree(patched)
    said = _said(["dpkg-parsechangelog", "-l", str(work / "debian" / "changelog")], folder)
    fields = dict(line.split(": ", 1) for line in said.splitlines() if re.match(r"[A-Z][a-z]+: ", line))
    version = re.sub(r"[~:]", "_", fields["Version"])
    date = datetime.strptime(fields["Date"], "%a, %d %b %Y %H:%M:%S %z")
    commit(work, f"Debian release {fields['Version']}", date, f"debian/{version}", fields["Maintainer"])


def commit(work: Path, message: str, date: datetime, tag: str, author: str = "") -> None:
    """All files of the work tree as a commit of that date, and an annotated tag on it."""
    name, _, address = (author or "The published archive <archive@example.org>").rstrip(">").partition(" <")
    when = date.isoformat()
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(FOLDER), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": address, "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": address, "GIT_COMMITTER_DATE": when,
    }  # fmt: skip
    for words in (
        ("add", "--all"),
        ("commit", "--quiet", "--allow-empty", "-m", message),
        ("tag", "-a", "-m", message, tag),
    ):
        subprocess.run(["git", "-C", str(work), *words], env=environment, check=True)
