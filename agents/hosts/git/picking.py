"""Core: putting commits onto another one by merging each of them, without a work tree."""

import contextlib
import hashlib
import os
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from agents.hosts.git.commands import EMAIL, NAME, GitError, next_object, options_of, run
from tasks.text.regex import regex

SECONDS = 120.0  # in which all of them have to be merged
ATTRIBUTES_MAX = 1024 * 1024  # bytes
CONFLICTS_MAX = 5  # that are told
DATE = regex(rb" ([0-9]{1,18} [+-][0-9]{4,5})\Z")
# What speaks of the commit as it was: its place, who put it there, and who signed it or what it merged.
OF_THE_OLD = (b"tree ", b"parent ", b"committer ", b"gpgsig ", b"gpgsig-sha256 ", b"mergetag ")
OURS = b"author x <x> 0 +0000"


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as git stores it; `kept` are the headers that hold wherever it is put, such as its author."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    kept: bytes
    message: bytes


def pick(repository: Path, sha: str, onto: str, fork: str, since: str = "") -> str:
    """Put the commits that `onto` lacks onto it, and return the hash of the last one.

    `fork` is the last commit that both contain, if there is one; with `since`, only commits after that one
    are taken. Merges and what would change nothing any more are left out, as `git rebase` does, but what the
    others say stays as it is stored, byte by byte: git would put it into words of another encoding. Raises
    GitError if they do not apply.
    """
    deadline = time.monotonic() + SECONDS
    limits = [f"^{each}" for each in (onto, since) if each]
    listed = run(repository, "rev-list", "--reverse", "--topo-order", "--no-merges", sha, *limits)
    names = listed.stdout.decode().split()
    known, merging = _read(repository, [onto, fork or onto, since or onto, *names], onto)
    tree, picked = known[onto].tree, onto
    with _attributes(merging) as attributes:
        for commit in (known[name] for name in names):
            if time.monotonic() > deadline:
                raise GitError("The rebase", f"took longer than {SECONDS:g} s")
            ours = onto if (picked, commit.parents) == (onto, (fork,)) else ""
            made = _merged(repository, tree, commit, ours, attributes)
            was_empty = any(known[each].tree == commit.tree for each in commit.parents if each in known)
            if made != tree or was_empty:
                tree, picked = made, _write(repository, made, (picked,), commit.kept, commit.message)
    return picked


@contextlib.contextmanager
def _attributes(said: bytes) -> Iterator[str]:
    """Yield the path of a file with these attributes, of which git looks for none without a work tree.

    Nothing that they name is run: the drivers that they may choose are in no configuration here.
    """
    with NamedTemporaryFile(prefix="attributes-") as file:
        file.write(said)
        file.flush()
        yield file.name


def _merged(repository: Path, tree: str, commit: Commit, ours: str, attributes: str) -> str:
    """Return the tree with the change of that commit. Raises GitError if there is a conflict.

    The merge must start from the commit's own parent, so the tree is put on top of that, unless `ours` is a
    commit that is there already.
    """
    ours = ours or _write(repository, tree, commit.parents, OURS, b"")
    words = ("--write-tree", "--allow-unrelated-histories", ours, commit.sha)
    known = options_of({"core.attributesFile": attributes})
    merged = run(repository, *known, "merge-tree", *words, ok=(0, 1))
    lines = merged.stdout.decode("utf-8", "replace").split("\n")
    if merged.returncode:
        told = [line for line in lines if line.startswith("CONFLICT ")][:CONFLICTS_MAX]
        raise GitError("The rebase", f"could not apply {commit.sha[:12]}. {' '.join(told)}")
    return lines[0]


def _read(repository: Path, names: Sequence[str], onto: str) -> tuple[dict[str, Commit], bytes]:
    """Return these commits by their hashes, and the attributes by which the branch at `onto` wants to merge.

    Raises GitError if a commit is not there, or if the commits are too large to be read.
    """
    asked = "".join(f"{name}\n" for name in (*names, f"{onto}:.gitattributes"))
    raw = run(repository, "cat-file", "--batch", stdin=asked.encode(), may_cut=True).stdout
    known = {}
    for name in names:
        kind, found, raw = next_object(raw)
        if kind != "commit":
            raise GitError("git cat-file", f"bad object {name}")
        if not raw:  # of what is asked for last, the end may be missing, but not of a commit
            raise GitError("git cat-file", f"printed only the beginning of {name}")
        known[name] = _parsed(name, found)
    kind, attributes, _ = next_object(raw)
    return known, attributes[:ATTRIBUTES_MAX] if kind == "blob" else b""


def _parsed(sha: str, raw: bytes) -> Commit:
    headers, _, message = raw.partition(b"\n\n")
    named = headers.replace(b"\n ", b"\0 ").split(b"\n")  # a header goes on in lines with a space
    trees, parents = (
        [line.split()[1].decode("ascii", "replace") for line in named if line.startswith(kind)]
        for kind in (b"tree ", b"parent ")
    )
    kept = b"\n".join(line for line in named if not line.startswith(OF_THE_OLD)).replace(b"\0 ", b"\n ")
    return Commit(sha, trees[0], tuple(parents), kept, message)


def _write(repository: Path, tree: str, parents: Sequence[str], kept: bytes, message: bytes) -> str:
    """Write a commit of ours that is dated as its author dated it, and return its hash.

    Nothing is checked: what git forgave when it was fetched is forgiven here, too.
    """
    author, *others = kept.split(b"\n")
    dated = DATE.search(author)
    when = dated[1] if dated else b"0 +0000"
    lines = [
        f"tree {tree}".encode(), *(f"parent {parent}".encode() for parent in parents), author,
        f"committer {NAME} <{EMAIL}> ".encode() + when, *others,
    ]  # fmt: skip
    return _store(repository, b"\n".join(lines) + b"\n\n" + message, is_to_last=kept != OURS)


def _store(repository: Path, commit: bytes, *, is_to_last: bool) -> str:
    """Write the commit as `git hash-object` would, which takes longer to start than a merge takes."""
    whole = b"commit %d\0%b" % (len(commit), commit)
    sha = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    path = repository / "objects" / sha[:2] / sha[2:]
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(exist_ok=True)
            path.parent.chmod(0o755)
        if not path.exists():
            with NamedTemporaryFile(dir=path.parent, prefix="tmp_obj_") as file:
                os.fchmod(file.fileno(), 0o444)
                file.write(zlib.compress(whole))
                file.flush()
                if is_to_last:
                    os.fsync(file.fileno())
                with contextlib.suppress(FileExistsError):
                    os.link(file.name, path)
    except OSError as error:
        raise GitError("The rebase", f"cannot be written: {error.strerror}") from error
    return sha
