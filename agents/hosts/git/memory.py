"""Core: what this process knows about repositories without asking git again."""

import os
from dataclasses import dataclass
from pathlib import Path

FACTS_MAX = 50_000
LOGS_MAX = 64
FILES_MAX, FILE_MAX = 64, 64 * 1024  # small files that are remembered; characters of one of them


@dataclass(frozen=True, slots=True)
class Size:
    """How many files a checkout has, and how many bytes are in them; `unfit` is one that no disk can hold."""

    files: int
    bytes: int
    unfit: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """The newest commits of a branch, each with who made it and why, and how many there are in all."""

    commits: list[dict[str, str]]
    count: int


class Memory:
    """What is known of commits and repositories.

    Where the histories of two commits part never changes, nor does whether one contains the other, nor what
    is in a commit or leads to it. What was taken stays until a repository is mended or packed again.
    """

    def __init__(self) -> None:
        self.forks: dict[tuple[str, str], str] = {}
        self.sizes: dict[str, Size] = {}
        self.files: dict[tuple[str, str, int], tuple[str | None]] = {}
        self.logs: dict[tuple[str, str], Log] = {}
        self.present: dict[tuple[Path, int], set[str]] = {}

    def fork(self, one: str, other: str) -> str | None:
        """Return the last commit that both contain: "" if there is none, None if it is not known."""
        return one if one == other else self.forks.get((min(one, other), max(one, other)))

    def note_fork(self, one: str, other: str, fork: str) -> None:
        """Remember the fork of the two commits. Each of them contains it, so two more pairs are known."""
        if len(self.forks) >= FACTS_MAX:
            self.forks.clear()
        self.forks[min(one, other), max(one, other)] = fork
        for each in {one, other} - {fork} if fork else ():
            self.forks[min(each, fork), max(each, fork)] = fork

    def note_size(self, sha: str, size: Size) -> None:
        """Remember how large the commit is."""
        if len(self.sizes) >= FACTS_MAX:
            self.sizes.clear()
        self.sizes[sha] = size

    def note_file(self, sha: str, path: str, limit: int, read: str | None) -> None:
        """Remember the text of a small file in a commit, or that there is no such file."""
        if len(self.files) >= FILES_MAX:
            self.files.clear()
        if len(read or "") <= FILE_MAX:
            self.files[sha, path, limit] = (read,)

    def note_log(self, base: str, sha: str, log: Log) -> None:
        """Remember which commits `sha` has and `base` lacks."""
        if len(self.logs) >= LOGS_MAX:
            self.logs.clear()
        self.logs[base, sha] = log

    def present_in(self, repository: Path) -> set[str]:
        """Return the commits that were seen there; a new repository in the same place has a younger HEAD."""
        known = self.present.setdefault((repository, os.stat(repository / "HEAD").st_mtime_ns), set())
        if len(known) >= FACTS_MAX:
            known.clear()
        return known

    def forget(self, repository: Path) -> None:
        """Forget what is known about this repository, so that git is asked again."""
        self.present = {key: value for key, value in self.present.items() if key[0] != repository}
        self.forks.clear()  # of all repositories: they are not kept apart, and a lost commit contains nothing
        self.files.clear()
        self.logs.clear()


memory = Memory()
