"""Core: commits put onto another one by merging each of them, without a work tree."""

from dataclasses import dataclass
from pathlib import Path

from agents.hosts.git.commands import EMAIL, NAME, GitError, run
from tasks.text.regex import regex

PICKED_MAX = 20  # commits; each takes git three processes
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


def pick(repository: Path, sha: str, onto: str) -> str:
    """Put the commits that `onto` lacks onto it, one by one, as `git rebase` does; the name of the last one.

    Empty where that is not done here: they are many or branch, one of them comes to nothing or does not
    apply, is unlike others, or git is older than 2.38. Raises GitError where they cannot be read.
    """
    most = f"--max-count={PICKED_MAX + 1}"
    series = run(repository, "rev-list", "--reverse", most, f"{onto}..{sha}").stdout.decode().split()
    if not 0 < len(series) <= PICKED_MAX:
        return ""
    start, *commits = _read(repository, [onto, *series])
    tree, picked, before = start.tree, onto, ""
    for commit in commits:
        author = commit.author
        if author is None or len(commit.parents) != 1 or (before and commit.parents[0] != before):
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


def _read(repository: Path, shas: list[str]) -> list[Commit]:
    raw = run(repository, "cat-file", "--batch", stdin="".join(f"{sha}\n" for sha in shas).encode()).stdout
    found = []
    for sha in shas:
        first, _, raw = raw.partition(b"\n")
        if first.endswith(b" missing") or not first:
            raise GitError("git cat-file", f"bad object {sha}")
        size = int(first.split()[2])
        headers, _, message = raw[:size].partition(b"\n\n")
        named = [line.split() for line in headers.decode("utf-8", "replace").splitlines()]
        trees = [words[1] for words in named if words[:1] == ["tree"]]
        parents = tuple(words[1] for words in named if words[:1] == ["parent"])
        found.append(Commit(sha, trees[0], parents, headers, message))
        raw = raw[size + 1 :]
    return found


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
