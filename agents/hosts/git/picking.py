"""Core: putting commits onto another one by merging each of them, without a work tree."""

from dataclasses import dataclass
from pathlib import Path

from agents.hosts.git.commands import EMAIL, NAME, GitError, run
from tasks.text.regex import regex

PICKED_MAX = 20  # commits; each takes two or three git processes
AUTHOR = regex(rb"author ([^<>\n]*<[^<>\n]*>) ([0-9]+ [+-][0-9]{4})")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as git stores it."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    headers: bytes
    message: bytes

    @property
    def author(self) -> tuple[bytes, bytes] | None:
        """The author and the date; None if there are unusual headers, such as an encoding or a signature."""
        lines = [line for line in self.headers.split(b"\n") if not line.startswith((b"tree ", b"parent "))]
        found = AUTHOR.fullmatch(lines[0]) if len(lines) == 2 else None  # the other line is the committer
        return (found[1], found[2]) if found else None


def pick(repository: Path, sha: str, onto: str, fork: str) -> str:
    """Put the commits after `fork` onto another one, as `git rebase` does, and return the last one's hash.

    `fork` is the last commit that both contain. Return "" if that cannot be done here: there are too many
    commits, they branch, one of them changes nothing, does not apply or has unusual headers, or git is older
    than 2.38. Raises GitError if they cannot be read.
    """
    start, *commits = _read(repository, onto, sha, fork)
    if not commits:
        return ""
    tree, picked, before = start.tree, onto, ""
    for commit in commits:
        author = commit.author
        if author is None:
            return ""
        # The merge must start from the commit's own parent, so what was picked so far is put on top of that.
        ours = _write(repository, tree, before, author, b"") if before else onto
        merged = run(
            repository, "merge-tree", "--write-tree", "--no-messages", ours, commit.sha, ok=(0, 1, 129)
        )
        made = merged.stdout.decode("utf-8", "replace").strip()
        if merged.returncode or made == tree:
            return ""
        tree, before = made, commit.sha
        picked = _write(repository, tree, picked, author, commit.message)
    return picked


def _read(repository: Path, onto: str, sha: str, fork: str) -> list[Commit]:
    """Return `onto`, then the commits from `fork` to `sha`; only `onto` if they are too many or branch."""
    names = [onto, sha, *(f"{sha}~{number}" for number in range(1, PICKED_MAX))]
    raw = run(repository, "cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode()).stdout
    found: list[Commit] = []
    while raw:
        first, _, raw = raw.partition(b"\n")
        words = first.decode("utf-8", "replace").split()
        if words[1:2] != ["commit"]:
            if len(found) < 2:
                raise GitError("git cat-file", f"bad object {names[len(found)]}")
            break  # the history begins here
        size = int(words[2])
        found.append(_parsed(words[0], raw[:size]))
        raw = raw[size + 1 :]
        if len(found) > 1 and len(found[-1].parents) != 1:
            break
        if found[-1].parents == (fork,) and len(found) > 1:
            return [found[0], *reversed(found[1:])]
    return found[:1]


def _parsed(sha: str, raw: bytes) -> Commit:
    headers, _, message = raw.partition(b"\n\n")
    named = [line.split() for line in headers.decode("utf-8", "replace").split("\n")]
    trees = [words[1] for words in named if words[:1] == ["tree"]]
    parents = tuple(words[1] for words in named if words[:1] == ["parent"])
    return Commit(sha, trees[0], parents, headers, message)


def _write(repository: Path, tree: str, parent: str, author: tuple[bytes, bytes], message: bytes) -> str:
    who, when = author
    lines = [
        b"tree " + tree.encode(),
        b"parent " + parent.encode(),
        b"author " + who + b" " + when,
        f"committer {NAME} <{EMAIL}> ".encode() + when,
    ]
    whole = b"\n".join(lines) + b"\n\n" + message
    return (
        run(repository, "hash-object", "-t", "commit", "-w", "--stdin", stdin=whole).stdout.decode().strip()
    )
