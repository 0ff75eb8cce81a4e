"""Core: the submodules of a commit, which the trusted side fetches and puts into a clone.

What a repository says about its submodules is hostile, and so is what an agent committed: it could make a
host fetch, with the host's own rights, what the agent may not read. So only those URLs are fetched that the
target branch names for the very same path, and never by git's own recursion.
"""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agents.hosts.git.commands import GitError, run
from agents.hosts.git.memory import Size
from agents.hosts.git.mirror import Mirror
from agents.hosts.git.remotes import Interrupted, Network
from tasks.text.regex import regex
from tasks.text.repository_urls import host_of, redact

MODULES_MAX = 50  # of one commit, including those inside submodules
DEPTH_MAX = 3
FILE_MAX = 256 * 1024  # bytes of what a commit says about its submodules
TRIED_AGAIN = 600.0  # seconds until a submodule that could not be fetched is tried again
KEY = regex(r"submodule\.(?P<name>.{1,500})\.(?P<what>path|url)", re.DOTALL)
LINK = regex(r"160000 commit (?P<sha>[0-9a-f]{40}([0-9a-f]{24})?)\t(?P<path>.+)", re.DOTALL)
ADDRESS = regex(r"(?P<where>[a-z][a-z0-9+]*://[^/]*|[^/:]+:(?!//)|)(?P<path>.*)", re.IGNORECASE | re.DOTALL)


class SubmoduleUnavailable(GitError):
    """A submodule is missing from the clone. The text says which and why; a project may do without it."""


@dataclass(frozen=True, slots=True)
class Module:
    """What one commit says about one of its submodules."""

    path: str
    url: str
    sha: str


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """The mirrors' objects that the submodules of a clone borrow, and the submodules that are missing."""

    borrowed: tuple[Path, ...] = ()
    problems: tuple[SubmoduleUnavailable, ...] = ()


def check_out(mirror: Mirror, clone: Path, sha: str, closed: Path, most: Size) -> CheckedOut:
    """Put the submodules of the commit into its clone, and return what they borrow and what is missing.

    Nothing below `closed`, the data folder, is fetched, and none that is larger than `most` is checked out.
    Raises Interrupted; other trouble is in the result.
    """
    if not os.path.lexists(clone / ".gitmodules"):
        return CheckedOut()
    modules = list(_modules(mirror, sha))
    if not modules:
        return CheckedOut()
    work = _Work(closed, most)
    work.check_out(mirror, clone, modules, list(_modules(mirror, mirror.resolve(mirror.target_ref))))
    return CheckedOut(tuple(dict.fromkeys(work.borrowed)), tuple(work.problems))


class _Work:
    """The checkout of the submodules of one commit, including those inside submodules."""

    def __init__(self, closed: Path, most: Size) -> None:
        self.closed, self.most, self.count = closed, most, 0
        self.problems: list[SubmoduleUnavailable] = []
        self.borrowed: list[Path] = []

    def check_out(
        self, mirror: Mirror, clone: Path, modules: list[Module], trusted: list[Module], depth: int = 1
    ) -> None:
        known = {module.path: module for module in trusted}
        for module in modules:
            try:
                self.count += 1
                if self.count > MODULES_MAX or depth > DEPTH_MAX:
                    raise GitError(
                        f"the limit of {MODULES_MAX}", f"or of {DEPTH_MAX} within each other is passed"
                    )
                if module.path not in known or known[module.path].url != module.url:
                    raise GitError("address", "is not the one that the target branch names")
                inner = self.fetched(mirror, module)
                inner.check_size(module.sha, self.most)
                _check_out_at(inner, clone / module.path, module.sha)
                self.borrowed.append(inner.path / "objects")
            except Interrupted:
                raise
            except GitError as error:
                what = f"submodule {module.path} at {redact(module.url)[:200]}"
                self.problems.append(SubmoduleUnavailable(what, f"is not there: {error}"))
                continue
            if module.sha == known[module.path].sha:  # nobody has looked at what other commits name
                below = list(_modules(inner, module.sha))
                self.check_out(inner, clone / module.path, below, below, depth + 1)

    def fetched(self, outer: Mirror, module: Module) -> Mirror:
        """Return the submodule's own mirror once it contains the commit. Raises GitError."""
        url = address(module.url, outer.url)
        network = network_for(url, outer.url, outer.network, self.closed)
        folder = outer.path.parent if outer.path.parent.name == "modules" else outer.path.parent / "modules"
        name = hashlib.sha256(f"{url}\0{network.credentials}\0{network.environment}".encode()).hexdigest()[
            :32
        ]
        inner = Mirror(folder / f"{name}.git", url, "main", network)
        inner.ensure()
        with inner.one_at_a_time():
            if inner.has(module.sha):
                return inner
            failed = inner.path / f"failed-{module.sha}"
            if failed.exists() and time.time() - failed.stat().st_mtime < TRIED_AGAIN:
                raise GitError("git fetch", failed.read_text(encoding="utf-8"))
            try:
                _fetch(inner, module.sha)
            except Interrupted:
                raise
            except GitError as error:
                failed.write_text(error.text, encoding="utf-8")
                raise
        return inner


def _check_out_at(mirror: Mirror, folder: Path, sha: str) -> None:
    """Put a clone in the place of the empty folder, or leave it empty on failure. Raises GitError."""
    try:
        mirror.checkout(folder, sha)
    except GitError:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        raise


# --- What a commit says -----------------------------------------------------------------------------------


def nameless(mirror: Mirror, sha: str, links: list[str]) -> list[str]:
    """Return at which of these paths a commit has a repository of its own that .gitmodules does not name.

    Nobody gets the files of such a repository but who made it.
    """
    named = {module.path for module in _modules(mirror, sha)} if links else set()
    return [path for path in links if path not in named]


def _modules(mirror: Mirror, sha: str) -> Iterator[Module]:
    """Yield the submodules of a commit that have a URL and lie at an acceptable path."""
    said: dict[str, dict[str, str]] = {}
    listed = run(
        mirror.path, "config", "--null", f"--blob={sha}:.gitmodules", "--get-regexp", r"^submodule\.",
        ok=(0, 1, 128), limit=FILE_MAX, may_cut=True,
    )  # fmt: skip
    for entry in listed.stdout.decode("utf-8", "replace").split("\0"):
        key, _, value = entry.partition("\n")
        if found := KEY.fullmatch(key):
            said.setdefault(found["name"], {})[found["what"]] = value
    urls = {each["path"]: each["url"] for each in said.values() if {"path", "url"} <= each.keys()}
    paths = [path for path in urls if _is_place(path)]
    if not paths:
        return
    tree = run(mirror.path, "ls-tree", "-z", sha, "--", *paths[: 4 * MODULES_MAX]).stdout
    for entry in tree.decode("utf-8", "replace").split("\0"):
        if (link := LINK.fullmatch(entry)) and link["path"] in urls:
            yield Module(link["path"], urls[link["path"]], link["sha"])


def _is_place(path: str) -> bool:
    """Whether a submodule may lie at this path: inside the clone, and in no folder of git's own."""
    parts = path.split("/")
    return (
        path.isprintable()
        and len(path) <= 400
        and not path.startswith("-")
        and not any(part in {"", ".", ".."} or part.lower().startswith(".git") for part in parts)
        and "\\" not in path
    )


# --- Where it is fetched from -----------------------------------------------------------------------------


def address(url: str, base: str) -> str:
    """Return the complete URL of a submodule that the repository at `base` names. Raises GitError."""
    if not _is_fetched(url):
        raise GitError("address", "is none that is fetched")
    return _beside(url, base) if url.startswith(("./", "../")) else url


def _is_fetched(url: str) -> bool:
    if not url or url.startswith("-") or not url.isprintable() or " " in url or "::" in url:
        return False
    is_plain = "://" in url or url.startswith(("./", "../", "/"))
    return is_plain or re.match(r"[^/:]+@[^/:]+:[^:]", url) is not None


def _beside(url: str, base: str) -> str:
    """Resolve a relative URL against `base`. Raises GitError if it leads out of the host."""
    found = ADDRESS.fullmatch(base)
    where, path = (found["where"], found["path"]) if found else ("", base)
    root = "/" if path.startswith("/") else ""
    parts = path.strip("/").split("/")
    for part in url.split("/"):
        if part == ".." and not parts:
            raise GitError("address", "leads out of the host")
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return f"{where}{root}{'/'.join(parts)}"


def network_for(url: str, base: str, network: Network, closed: Path) -> Network:
    """Say how the URL may be reached: with the operator's credentials only on the same host as `base`.

    Paths of this machine may be fetched only by repositories that lie on it themselves, and never below
    `closed`. Raises GitError.
    """
    host = host_of(url)
    if not host and host_of(base):
        raise GitError("address", "is a path of this machine")
    if not host:
        if Path(re.sub("(?i)^file://", "", url)).resolve().is_relative_to(closed.resolve()):
            raise GitError("address", "is in the data folder")
        return network
    protocols = tuple(name for name in network.protocols if name != "file")
    if host == host_of(base):
        return replace(network, protocols=protocols)
    return replace(network, protocols=protocols, credentials=None, environment={"HOME": "/nonexistent"})


def _fetch(inner: Mirror, sha: str) -> None:
    """Fetch the commit by its hash, or failing that all branches. Raises GitError if it is in none."""
    try:
        inner.fetch_refs(f"+{sha}:refs/steroids/modules/{sha}")
    except Interrupted:
        raise
    except GitError:
        inner.fetch_refs("+refs/heads/*:refs/steroids/heads/*")
    if not inner.has(sha):
        raise GitError("git fetch", f"its commit {sha[:12]} is in none of its branches")
