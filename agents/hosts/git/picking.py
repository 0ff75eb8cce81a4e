"""Core: commits put onto another one by merging each of them, without a work tree."""

from dataclasses import dataclass
from pathlib import Path

from agents.hosts.git.commands import EMAIL, NAME, GitError, run
from tasks.text.regex import regex

PICKED_MAX = 20  # commits; each takes git two processes
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
        """Who and when, where the commit says no more than any does: no other encoding, no signature."""
        lines = [line for line in self.headers.split(b"\n") if not line.startswith((b"tree ", b"parent "))]
        found = AUTHOR.fullmatch(lines[0]) if len(lines) == 2 else None  # the other is who committed it
        return (found[1], found[2]) if found else None


def pick(repository: Path, sha: str, onto: str, fork: str) -> str:
    """Put the commits after `fork` onto another one as `git rebase` does; the name of the last one.

    `fork` is the last commit that both contain. Empty where that is not done here: they are many or branch,
    one of them comes to nothing or does not apply, is unlike others, or git is older than 2.38. Raises
    GitError where they cannot be read.
    """
    start, *commits = _read(repository, onto, sha, fork)
    if not commits:
        return ""
    tree, picked, before = start.tree, onto, ""
    for commit in commits:
        author = commit.author
        if author is None:
            return ""
        # What was picked so far stands on the commit's own parent: from there the merge starts.
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
    """`onto`, then the commits from `fork` to `sha`; none of these where they are many or branch."""
    names = [onto, sha, *(f"{sha}~{number}" for number in range(1, PICKED_MAX))]
    raw = run(repository, "cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode()).stdout
    found: list[Commit] = []
    while raw:
        first, _, raw = raw.partition(b"\n")
        words = first.decode("utf-8", "replace").split()
        if words[1:2] != ["commit"]:
            if len(found) < 2:
                raise GitError("git cat-file", f"bad object {names[len(found)]}")
            break  # before the first commit of all
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
    named = [line.split() for line in headers.decode("utf-8", "replace").splitlines()]
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
