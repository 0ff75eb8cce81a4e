"""Core: a remote's tags, from which `git describe` and setuptools_scm derive the name of a commit."""

import contextlib
import os
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from agents.hosts.git.commands import SHA, GitError, run
from agents.hosts.git.remotes import Network, listed, over_network
from tasks.text.regex import regex

TAGS_MAX = 5000
TAGS_EVERY = 60.0  # seconds after which tags are looked at again, even if the branch has not moved
TAG = regex(
    r"refs/tags/(?!HEAD$|steroids/)(?!.*(\.\.|//|@\{|/[.-]|\.lock(/|$)))"
    r"[^\x00-\x20\x7f~^:?*\[\\\ufffd]{1,200}(?<![/.])"
)


class Tags:
    """The remote's tags on commits that are here, kept in a file beside the repository's own files.

    They are not kept as refs, so that whatever a remote calls its tags collides with nothing.
    """

    def __init__(self, repository: Path, url: str, network: Network) -> None:
        self.repository, self.url, self.network = repository, url, network
        self.file = repository / "steroids.tags"

    def fetch(self, head: str) -> None:
        """Learn the tags and fetch annotated ones, if the branch has moved or a while has passed."""
        with contextlib.suppress(OSError), self.file.open(encoding="utf-8") as known:
            is_old = time.time() - os.fstat(known.fileno()).st_mtime > TAGS_EVERY
            if known.readline().rstrip("\n") == head and not is_old:
                return
        try:
            tags = self._remote()
        except GitError:
            tags = dict(self.known())
        self._write(head, tags)

    def move(self, before: str, head: str) -> None:
        """Note that our own push moved the branch but no tag, so that what is known of tags stays valid."""
        asked_at = self.file.stat().st_mtime
        with self.file.open(encoding="utf-8") as known:
            is_of_before = known.readline().rstrip("\n") == before
        if is_of_before:
            self._write(head, dict(self.known()))
            os.utime(self.file, (asked_at, asked_at))

    def _write(self, head: str, tags: dict[str, str]) -> None:
        temporary = self.file.with_name(f"{self.file.name}.{uuid.uuid4().hex}")
        lines = [head, *(f"{sha} {name}" for name, sha in tags.items())]
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        temporary.replace(self.file)

    def _remote(self) -> dict[str, str]:
        """Return each tag's full name and the hash it names: an annotated tag's own object, or a commit."""
        found: dict[str, list[str]] = {}
        for sha, name in listed(self.url, self.network, "--tags", "refs/tags/*"):
            name = name.removesuffix("^{}")
            if SHA.match(sha) and TAG.fullmatch(name) and name.isprintable():
                found.setdefault(name, []).append(sha)
        types = self._types([sha for shas in found.values() for sha in shas])
        here = {name: shas for name, shas in found.items() if types.get(shas[-1]) == "commit"}
        chosen = dict(sorted(here.items(), key=lambda tag: _by_numbers(tag[0]))[-TAGS_MAX:])
        new = {shas[0]: name for name, shas in chosen.items() if shas[0] not in types}
        if new:
            specs = "".join(f"+{name}:refs/steroids/tags/{sha}\n" for sha, name in new.items())
            with contextlib.suppress(GitError):  # git's checks may refuse a tag
                over_network(
                    self.repository, self.network, self.url,
                    "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
                    "--stdin", "--end-of-options", self.url, stdin=specs.encode(),
                )  # fmt: skip
            types |= self._types(list(new))
        return {name: shas[0] for name, shas in chosen.items() if shas[0] in types}

    def _types(self, shas: list[str]) -> dict[str, str]:
        """Return the type of each of these objects; those that are not here are left out."""
        asked = "".join(f"{sha}\n" for sha in shas).encode()
        done = run(self.repository, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
        rows = (line.split(" ") for line in done.stdout.decode().splitlines())
        return {row[0]: row[1] for row in rows if len(row) == 2 and row[1] != "missing"}

    def known(self) -> Iterator[tuple[str, str]]:
        """Yield the full name of each tag that is known here, and the hash it names."""
        with contextlib.suppress(OSError), self.file.open(encoding="utf-8") as file:
            next(file, "")
            for line in file:
                sha, _, name = line.rstrip("\n").partition(" ")
                yield name, sha


def _by_numbers(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which v1.10 comes after v1.9."""
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"([0-9]{1,18})", name)]
