"""Repositories from archives, and what counts: what `make test-repositories` needs, without a registry."""

import io
import subprocess
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.real_repositories import sources
from tests.real_repositories.driving import Outcome, judge
from tests.real_repositories.packages import PACKAGES, Package

AUTUMN = datetime(2023, 10, 1, 12, tzinfo=UTC)


def archive(path: Path, top: str, files: dict[str, str], at: datetime = AUTUMN) -> Path:
    with tarfile.open(path, "w:gz") as opened:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size, member.mtime = len(text), int(at.timestamp())
            opened.addfile(member, io.BytesIO(text.encode()))
    return path


def asked(remote: Path, *words: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(remote), *words], capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def test_each_published_archive_is_a_commit_of_its_own_date_with_its_tag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {"a.py": "1", "gone.py": "", "PKG-INFO": "", "src/a.egg-info/SOURCES.txt": ""}
    new = {"a.py": "2", ".gitignore": "version.py\n", "version.py": "", "Cargo.toml": "packed"}
    releases = [
        ("1.0", archive(tmp_path / "a-1.0.tar.gz", "a-1.0", old), None),
        ("1.1", archive(tmp_path / "a-1.1.tar.gz", "a-1.1", new | {"Cargo.toml.orig": "written"}), AUTUMN),
    ]
    for name in ("FOLDER", "ARCHIVES", "REMOTES"):
        monkeypatch.setattr(sources, name, tmp_path / "made" / name)
    monkeypatch.setitem(sources.TAKE, "pypi", lambda package, folder: releases)
    package = Package("Python", "pypi", "a", ("1.0", "1.1"))
    remote = sources.remote_of(package)
    assert asked(remote, "log", "--format=%s %aI %cI") == [
        f"Release {version} 2023-10-01T12:00:00+00:00 2023-10-01T12:00:00+00:00" for version in ("1.1", "1.0")
    ]
    assert asked(remote, "tag", "--points-at", "HEAD~1") == ["1.0"]
    assert asked(remote, "describe") == ["1.1"]
    assert asked(remote, "ls-tree", "-r", "--name-only", "1.0") == ["a.py", "gone.py"]
    assert asked(remote, "ls-tree", "-r", "--name-only", "1.1") == [".gitignore", "Cargo.toml", "a.py"]
    assert subprocess.check_output(["git", "-C", str(remote), "show", "main:Cargo.toml"]) == b"written"
    releases.clear()
    assert sources.remote_of(package) == remote, "made once"


def test_a_list_of_packages_becomes_one_of_sources() -> None:
    old = "# here\ndeb [by=/k.gpg] http://a.example/debian stable main\ndeb-src http://b.example x main\n"
    assert sources.as_sources(old).splitlines()[1:] == [
        "deb-src [by=/k.gpg] http://a.example/debian stable main", "deb-src http://b.example x main",
    ]  # fmt: skip
    new = "Types: deb\nURIs: http://a.example/debian\nSuites: stable\n\nTypes: deb deb-src\nURIs: b\n"
    assert sources.as_sources(new).count("Types: deb-src\n") == 2
    assert "URIs: http://a.example/debian" in sources.as_sources(new)


def test_only_a_clean_landing_and_a_card_before_any_coder_count() -> None:
    cases = [
        ("landed", "tests", {"landed_seconds": 5.0, "coder_runs": 1, "recipe": {"test": "make check"}}),
        ("failed", "tests", {"landed_seconds": 5.0, "coder_runs": 2, "recipe": {"test": "make check"}}),
        (
            "failed",
            "tests",
            {"landed_seconds": 5.0, "coder_runs": 1, "recipe": {"build": "make", "test": ""}},
        ),
        (
            "landed",
            "build",
            {"landed_seconds": 5.0, "coder_runs": 1, "recipe": {"build": "make", "test": ""}},
        ),
        ("failed", "build", {"landed_seconds": 5.0, "coder_runs": 1}),
        ("landed", "nothing", {"landed_seconds": 5.0, "coder_runs": 1}),
        ("card", "tests", {"cards": ["main is red: tests ended with 1"]}),
        ("failed", "tests", {"cards": ["main is red: tests ended with 1"], "coder_runs": 1}),
        ("failed", "tests", {"cards": ["one", "another"]}),
        ("failed", "tests", {}),
    ]
    for ended, has, facts in cases:
        outcome = Outcome("pypi-a", "Python", **facts)
        judge(outcome, has)
        assert outcome.ended == ended, (has, facts)


def test_the_packages_are_many_and_of_many_kinds() -> None:
    assert len({package.slug for package in PACKAGES}) == len(PACKAGES) >= 24
    assert len({package.ecosystem for package in PACKAGES}) >= 6
    assert sum(bool(package.lacks) for package in PACKAGES) <= 0.15 * len(PACKAGES)
