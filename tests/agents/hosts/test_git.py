"""Plain git against real remotes, hung ones, and clones in which an agent planted programs."""

import contextlib
import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agents.hosts import processes
from agents.hosts.git import commands as plain
from agents.hosts.git import memory, picking, remotes
from agents.hosts.git import mirror as mirrors
from agents.hosts.git import repository as repositories
from agents.hosts.git.commands import GitError, check_branch
from agents.hosts.git.memory import Size
from agents.hosts.git.mirror import Mirror
from agents.hosts.git.picking import pick
from agents.hosts.git.pipes import refuse_pipes
from agents.hosts.git.remotes import HostTrouble, Interrupted, Network, NoBranch, Unfit, Unreachable
from tasks.text.branches import is_branch_name
from tasks.text.repository_urls import redact
from tests.agents.world import Files, Remote, at_once, commit, git, hook, write
from tests.cases import for_each

ROOT = Path(__file__).resolve().parents[3]
MARK = "STEROIDS_GIT_TEST"
MIB = 1024 * 1024


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path)


@pytest.fixture
def mirror(remote: Remote, tmp_path: Path) -> Mirror:
    return remote.mirror(tmp_path / "mirror.git")


def clone_of(mirror: Mirror, sha: str, name: str = "clone") -> Path:
    folder = mirror.path.parent / name
    mirror.checkout(folder, sha, "steroids/ledger-1")
    return folder


def taken(mirror: Mirror, files: Files, *, base: str = "", name: str = "clone", message: str = "Work") -> str:
    """A commit that an agent made in a clone of its own and that the mirror has taken."""
    clone = clone_of(mirror, base or mirror.resolve(mirror.target_ref), name)
    sha = commit(clone, files, message)
    mirror.take(clone, sha, f"refs/steroids/submissions/{name}")
    return sha


# --- Reaching the remote ----------------------------------------------------------------------------------


def test_many_that_need_it_at_once_make_it_once(remote: Remote, tmp_path: Path) -> None:
    for number in range(3):
        mirror = Mirror(tmp_path / f"{number}.git", str(remote.path), "main", Network(timeout=120.0))
        at_once(*[mirror.fetch_target] * 8)
        assert mirror.resolve(mirror.target_ref) == remote.first


def test_it_fetches_the_head_of_the_target(remote: Remote, mirror: Mirror) -> None:
    assert mirror.fetch_target() == remote.first
    later = remote.push({"more.py": "more\n"})
    assert mirror.fetch_target() == later
    assert mirror.is_ancestor(remote.first, later)


def test_one_question_tells_how_two_commits_and_their_last_common_one_are_related(
    remote: Remote, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = taken(mirror, {"mine.py": "mine\n"}, base=mirror.fetch_target())
    head = remote.push({"theirs.py": "theirs\n"})
    mirror.fetch_target()
    orphan = git(remote.path, "commit-tree", git(remote.path, "rev-parse", "main^{tree}"), "-m", "Alone")
    git(remote.path, "update-ref", "refs/heads/alone", orphan)
    mirror.fetch_commit(orphan, "refs/steroids/submissions/alone")
    asked: list[str] = []
    monkeypatch.setattr(
        repositories, "run", lambda *words, **more: asked.append(words[1]) or plain.run(*words, **more)
    )
    assert not mirror.is_ancestor(mine, head)
    assert not mirror.is_ancestor(head, mine)
    assert mirror.merge_base(head, mine) == mirror.merge_base(mine, head) == remote.first
    assert mirror.contains(head, remote.first)
    assert mirror.contains(mine, remote.first)
    assert not mirror.contains(remote.first, mine)
    assert asked == ["merge-base"]
    assert not mirror.contains(head, orphan)
    with pytest.raises(GitError, match="no commit in common"):
        mirror.merge_base(orphan, head)
    mirror.forget()
    assert not mirror.contains(head, "b" * 40), "nobody knows it"
    with pytest.raises(GitError, match="Not a valid commit name"):
        mirror.is_ancestor(head, "b" * 40)


def old_history(remote: Remote) -> dict[str, str]:
    """A branch for each fault that old importers left in histories, made as they made it: byte by byte."""
    tree = git(remote.path, "rev-parse", "main^{tree}")
    readme = bytes.fromhex(git(remote.path, "rev-parse", "main:README.md"))
    docs = bytes.fromhex(git(remote.path, "rev-parse", "main:docs"))
    padded = b"100644 README.md\0" + readme + b"040000 docs\0" + docs
    written = subprocess.run(
        ["git", "-C", str(remote.path), "hash-object", "-t", "tree", "-w", "--literally", "--stdin"],
        input=padded, capture_output=True, check=True,
    )  # fmt: skip
    who, date = "Ada <ada@example.org>", "1190000000 +0000"
    authors = {
        "badTimezone": f"{who} 1190000000 +051800",
        "badDate": f"{who} yesterday",
        "badDateOverflow": f"{who} 99999999999999999999 +0000",
        "zeroPaddedDate": f"{who} 01190000000 +0000",
        "missingSpaceBeforeDate": "Ada <ada@example.org>1190000000 +0000",
        "missingEmail": f"Ada {date}",
        "missingSpaceBeforeEmail": f"Ada<ada@example.org> {date}",
        "badEmail": f"Ada <ada@example.org {date}",
        "badName": f"Ada> <ada@example.org> {date}",
        "missingNameBeforeEmail": f"<ada@example.org> {date}",
        "multipleAuthors": f"{who} {date}\nauthor Eve <eve@example.org> {date}",
        "zeroPaddedFilemode": f"{who} {date}",
    }
    for kind, author in authors.items():
        of = written.stdout.decode().strip() if kind == "zeroPaddedFilemode" else tree
        text = f"tree {of}\nauthor {author}\ncommitter {who} {date}\n\nAn old import\n"
        sha = git(
            remote.path, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=text
        )  # fmt: skip
        git(remote.path, "update-ref", f"refs/heads/{kind}", sha)
    return authors


def test_a_history_with_the_harmless_faults_of_old_tools_is_taken(remote: Remote, tmp_path: Path) -> None:
    """Real histories have these, and nobody can mend them."""
    kinds = old_history(remote)
    assert set(kinds) == set(plain.FORGIVEN)
    grave = [word for kind in kinds for word in ("-c", f"fsck.{kind}=error")]
    with pytest.raises(AssertionError) as said:  # the faults are there, by git's own word
        git(remote.path, *grave, "fsck", "--no-dangling", "--strict")
    for kind in kinds:
        assert f": {kind}: " in str(said.value), kind
        mirror = Mirror(tmp_path / f"{kind}.git", str(remote.path), kind, Network())
        head = mirror.fetch_target()
        mirror.checkout(tmp_path / kind, head)
        assert (tmp_path / kind / "README.md").read_text() == "A ledger.\n"
        sha = commit(tmp_path / kind, {"new.py": "new\n"})
        mirror.take(tmp_path / kind, sha, "refs/steroids/submissions/1")
        mirror.push(sha)
        assert remote.head(kind) == sha


def test_no_commit_chooses_what_people_see_of_it(remote: Remote) -> None:
    """An encoding that the commit names, or a date that is none, hides neither its author nor its words."""
    tree, who = git(remote.path, "rev-parse", "main^{tree}"), "Eve <eve@x>"
    forms = (
        ("1700000000 -0000\nencoding UTF-7", f"{who}, 2023-11-14"),
        ("1700000000 -0000\nencoding UTF-16", f"{who}, 2023-11-14"),
        ("1700000000 -0000\ngpgsig -----\n author Bob <b@x> 1 +0000\n \n x", f"{who}, 2023-11-14"),
        (
            f"1700000000 +0000\nauthor Ada <a@x> {10**12} +9900",
            f"{who}, 2023-11-14; Ada <a@x> {10**12} +9900",
        ),
        (f"{'9' * 5000} +0000", f"{who} {'9' * 183}…"),
    )
    for author, shown in forms:
        text = (
            f"tree {tree}\nparent {remote.first}\nauthor +AAo-{who} {author}\n"
            f"committer {who} 1700000000 -0130\n\nHello+AAA-World\n\n    author Bob <b@x> 1 +0000\n"
        )
        sha = git(remote.path, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=text)
        (told,) = Mirror(remote.path, "", "main", Network()).log(remote.first, sha).commits
        assert told == {
            "sha": sha, "author": f"+AAo-{shown}", "committer": f"{who}, 2023-11-14",
            "message": "Hello+AAA-World\n\n    author Bob <b@x> 1 +0000",
        }, author  # fmt: skip


def test_a_commit_is_told_with_its_whole_name_wherever_the_rest_is_left_out(
    remote: Remote, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = taken(mirror, {"a.py": "1\n"})
    new = taken(mirror, {"a.py": "2\n"}, base=old, name="again")
    shown = len(plain.run(mirror.path, "log", "--parents", "--format=raw", f"{old}..{new}").stdout)
    for left in (*range(1, 10), 60, 100, 200):
        monkeypatch.setattr(repositories, "LOG_MAX", shown + left)
        mirror.forget()
        log = mirror.log(remote.first, new)
        assert [each["sha"] for each in log.commits] == [new, old][: 1 + (left > 90)], left
        assert log.count == 2


def test_only_what_git_takes_for_a_parent_shows_that_a_commit_was_made_on_another(remote: Remote) -> None:
    mirror = Mirror(remote.path, "", "main", Network())
    tree, signed = git(remote.path, "rev-parse", "main^{tree}"), "Eve <eve@x> 1700000000 +0000"
    parent, said = f"parent {remote.first}\n", f"author {signed}\ncommitter {signed}\n"
    for header, is_child in ((f"{parent}{said}", True), (f"{said}{parent}", False), (said, False)):
        text = f"tree {tree}\n{header}\nWork\n\nparent {remote.first}\n"
        sha = git(remote.path, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=text)
        assert mirror.log(remote.first, sha).count == 1
        assert mirror.is_ancestor(remote.first, sha) == is_child, header


def test_a_history_that_could_lead_git_astray_is_refused(remote: Remote, tmp_path: Path) -> None:
    tree = git(remote.path, "rev-parse", "main^{tree}")
    blob = git(remote.path, "rev-parse", "main:README.md")
    option = git(
        remote.path, "hash-object", "-w", "--stdin", stdin='[submodule "x"]\n\tpath = x\n\turl = -x\n'
    )
    astray = git(
        remote.path, "hash-object", "-w", "--stdin", stdin='[submodule "../x"]\n\tpath = x\n\turl = /x\n'
    )
    refused = {
        "hasDotgit": f"100644 blob {blob}\t.GIT\n",
        "hasDotdot": f"040000 tree {tree}\t..\n",
        "nullSha1": f"160000 commit {'0' * 40}\tx\n",
        "gitmodulesUrl": f"100644 blob {option}\t.gitmodules\n",
        "gitmodulesName": f"100644 blob {astray}\t.gitmodules\n",
        "gitmodulesSymlink": f"120000 blob {blob}\t.gitmodules\n",
    }
    for kind, listing in refused.items():
        made = git(remote.path, "mktree", "--missing", stdin=listing)
        sha = git(remote.path, "commit-tree", made, "-m", "astray")
        git(remote.path, "update-ref", f"refs/heads/{kind}", sha)
        mirror = Mirror(tmp_path / f"{kind}.git", str(remote.path), kind, Network())
        with pytest.raises(Unreachable, match=kind):
            mirror.fetch_target()


def test_it_follows_a_target_that_somebody_forced_back(remote: Remote, mirror: Mirror) -> None:
    remote.push({"more.py": "more\n"})
    mirror.fetch_target()
    git(remote.path, "update-ref", "refs/heads/main", remote.first)
    assert mirror.fetch_target() == remote.first


def test_it_fetches_no_other_branch_and_no_tag_of_one(remote: Remote, mirror: Mirror) -> None:
    git(remote.path, "branch", "other", remote.first)
    elsewhere = git(remote.path, "commit-tree", "main^{tree}", "-m", "Elsewhere")
    git(remote.path, "tag", "--annotate", "--message", "Elsewhere", "v9", elsewhere)
    mirror.fetch_target()
    assert git(mirror.path, "for-each-ref", "--format=%(refname)") == "refs/steroids/target/main"
    assert list(mirror.tags.known()) == []


def test_a_clone_knows_the_tags_of_its_history(
    remote: Remote, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools read the version of what they build from them: git describe, setuptools_scm."""
    monkeypatch.setattr("agents.hosts.git.tags.TAGS_EVERY", -1.0)
    git(remote.path, "tag", "--annotate", "--message", "One", "v1.0", remote.first)
    head = remote.push({"more.py": "more\n"})
    git(remote.path, "tag", "light", head)
    mirror.fetch_target()
    clone = clone_of(mirror, head)
    assert git(clone, "describe") == f"v1.0-1-g{head[:7]}"
    assert git(clone, "describe", "--tags") == "light"
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "fsck", "--strict") == ""
    sha = commit(clone, {"a.py": "a\n"})
    mirror.take(clone, sha, "refs/steroids/submissions/1")
    mirror.push(sha)
    git(remote.path, "tag", "--delete", "light")
    git(remote.path, "tag", "--force", "--annotate", "--message", "Moved", "v1.0", sha)
    assert mirror.fetch_target() == sha
    assert git(clone_of(mirror, sha, "later"), "describe", "--tags") == "v1.0"
    assert [name for name, _ in mirror.tags.known()] == ["refs/tags/v1.0"]


def test_a_large_file_hides_no_other_that_is_read_with_it(remote: Remote, mirror: Mirror) -> None:
    for size in (10, 900, 5000):
        sha = remote.push({"AGENTS.md": "x" * size, "SPEC.md": f"Rule {size}\n"})
        mirror.fetch_target()
        found = mirror.read_all(sha, ["AGENTS.md", "none.md", "../out.md", "/etc/passwd", "./SPEC.md"], 300)
        assert found == {"AGENTS.md": "x" * min(size, 300), "SPEC.md": f"Rule {size}\n"}


def test_what_a_small_file_of_a_commit_says_is_asked_once(
    remote: Remote, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.fetch_target()
    first = remote.push({"small.md": "Small\n", "large.md": "x" * (memory.FILE_MAX + 1)})
    asked: list[str] = []
    monkeypatch.setattr(
        repositories, "run", lambda *words, **more: asked.append(words[3]) or plain.run(*words, **more)
    )
    assert mirror.read(first, "small.md", 100) is None, "the commit is not here yet"
    mirror.fetch_target()
    assert mirror.has(first)
    asked.clear()
    for _ in range(2):
        assert mirror.read(first, "small.md", 100) == "Small\n"
        assert mirror.read(first, "small.md", 2) == "Sm"
        assert mirror.read(first, "none.md", 100) is None
        assert len(mirror.read(first, "large.md", 10**6) or "") == memory.FILE_MAX + 1
        assert mirror.read(mirror.target_ref, "small.md", 100) == "Small\n"
    later = remote.push({"small.md": "Other\n"})
    mirror.fetch_target()
    assert mirror.read(mirror.target_ref, "small.md", 100) == mirror.read(later, "small.md", 100) == "Other\n"
    of_first = [name.partition(":")[2] for name in asked if name.startswith(first)]
    assert sorted(of_first) == ["large.md", "large.md", "none.md", "small.md", "small.md"]
    mirror.forget()
    mirror.read(first, "none.md", 100)
    assert len(asked) == len(of_first) + 5


def test_tags_are_asked_for_when_the_branch_has_moved_or_after_a_while(
    remote: Remote, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.fetch_target()
    git(remote.path, "tag", "v1", remote.first)
    mirror.fetch_target()
    assert list(mirror.tags.known()) == []
    monkeypatch.setattr("agents.hosts.git.tags.TAGS_EVERY", -1.0)
    mirror.fetch_target()
    assert list(mirror.tags.known()) == [("refs/tags/v1", remote.first)]
    monkeypatch.setattr("agents.hosts.git.remotes.LISTED_MAX", 10)  # the remote lists more than anybody reads
    mirror.fetch_target()
    assert list(mirror.tags.known()) == []


def test_tags_of_a_hostile_remote_change_nothing_but_names(
    remote: Remote, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.hosts.git.tags.TAGS_MAX", 3)
    head = remote.push({"more.py": "more\n"})
    broken = f"object {head}\ntype commit\ntag broken\ntagger Ada <ada@example.org> yesterday\n\nx\n"
    broken = git(remote.path, "hash-object", "-t", "tag", "-w", "--literally", "--stdin", stdin=broken)
    nulled = f"object {head}\ntype commit\n\nx\n"
    nulled = git(remote.path, "hash-object", "-t", "tag", "-w", "--literally", "--stdin", stdin=nulled)
    names = {
        "refs/tags/v1.9": head, "refs/tags/v1.10": broken, "refs/tags/v1.8": head, "refs/tags/v1.7": head,
        "refs/tags/a/-x": head, "refs/tags/--upload-pack=x": head, "refs/tags/HEAD": head,
        "refs/tags/steroids/ledger-1": head, "refs/tags/refs/steroids/target/main": remote.first,
        "refs/tags/.hidden": head, "refs/tags/a..b": head, "refs/tags/x.lock": head,
        "refs/tags/\u202ev": head,
        "refs/tags/nulled": nulled, "refs/tags/tree": git(remote.path, "rev-parse", "main^{tree}"),
    }  # fmt: skip
    (remote.path / "packed-refs").write_text("".join(f"{sha} {name}\n" for name, sha in names.items()))
    assert mirror.fetch_target() == head
    assert [name for name, _ in mirror.tags.known()] == [
        "refs/tags/v1.8",
        "refs/tags/v1.9",
        "refs/tags/v1.10",
    ]
    assert git(clone_of(mirror, head), "rev-parse", "--abbrev-ref", "HEAD") == "steroids/ledger-1"


# --- Its default branch -----------------------------------------------------------------------------------


def test_the_remote_says_which_branch_is_its_default(remote: Remote, tmp_path: Path) -> None:
    url, network = str(remote.path), Network()
    assert remotes.default_branch(url, network) == "main"
    git(remote.path, "branch", "develop/next", "main")
    git(remote.path, "branch", "x/HEAD", "main")
    git(remote.path, "symbolic-ref", "HEAD", "refs/heads/develop/next")
    assert remotes.default_branch(url, network) == "develop/next"
    git(remote.path, "symbolic-ref", "HEAD", "refs/heads/gone")
    with pytest.raises(remotes.NoDefaultBranch, match=r"Name one yourself: develop/next, main, x/HEAD\."):
        remotes.default_branch(url, network)
    (remote.path / "HEAD").write_text(f"{remote.first}\n")
    with pytest.raises(remotes.NoDefaultBranch, match="names none that exists"):
        remotes.default_branch(url, network)
    git(remote.path, "tag", "v1", remote.first)
    for head in (remote.first, "ref: refs/heads/gone"):  # as a mirror of releases is
        (remote.path / "HEAD").write_text(f"{head}\n")
        for branch in git(remote.path, "for-each-ref", "--format=%(refname)", "refs/heads").split():
            git(remote.path, "update-ref", "--no-deref", "-d", branch)
        with pytest.raises(remotes.NoBranches, match="has commits, but no branch to land on"):
            remotes.default_branch(url, network)
    git(tmp_path, "init", "--quiet", "--bare", "empty.git")
    with pytest.raises(remotes.NoBranches, match=r"empty\.git is empty\. Push a first commit"):
        remotes.default_branch(str(tmp_path / "empty.git"), network)
    for url in ("/nonexistent/x.git", "https://127.0.0.1:9/x.git", f"ext::touch {tmp_path}/x", "--help"):
        with pytest.raises(Unreachable):
            remotes.default_branch(url, network)
    assert not (tmp_path / "x").exists()


def test_it_pushes_exactly_the_commit_it_was_given(remote: Remote, mirror: Mirror) -> None:
    clone = clone_of(mirror, remote.first)
    chosen = commit(clone, {"a.py": "a\n"})
    later = commit(clone, {"b.py": "b\n"})
    mirror.take(clone, later, "refs/steroids/submissions/1")
    mirror.push(chosen)
    assert remote.head() == chosen


def test_it_pushes_the_same_commit_twice_without_harm(remote: Remote, mirror: Mirror) -> None:
    sha = taken(mirror, {"a.py": "a\n"})
    mirror.push(sha)
    mirror.push(sha)
    assert remote.head() == sha


def test_it_never_forces(remote: Remote, mirror: Mirror) -> None:
    sha = taken(mirror, {"a.py": "a\n"})
    theirs = remote.push({"b.py": "b\n"})
    with pytest.raises(Unreachable, match="rejected|fetch first|non-fast-forward"):
        mirror.push(sha)
    assert remote.head() == theirs


def test_a_push_runs_the_remotes_hooks_and_passes_on_their_words(remote: Remote, mirror: Mirror) -> None:
    hook(remote.path, "pre-receive", "echo 'no pushes on Fridays' >&2; exit 1")
    with pytest.raises(Unreachable, match="no pushes on Fridays"):
        mirror.push(taken(mirror, {"a.py": "a\n"}))
    assert remote.head() == remote.first


@pytest.mark.parametrize("url", ["/nonexistent/remote.git", "https://127.0.0.1:9/remote.git"])
def test_a_remote_that_is_not_there_is_unreachable(tmp_path: Path, url: str) -> None:
    mirror = Mirror(tmp_path / "mirror.git", url, "main", Network(timeout=60.0))
    with pytest.raises(Unreachable):
        mirror.fetch_target()


def test_a_target_that_is_not_there_is_unreachable(remote: Remote, tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "mirror.git", str(remote.path), "release", Network())
    with pytest.raises(NoBranch, match="branch release is not there; bring it back, or name another branch"):
        mirror.fetch_target()


def test_a_repository_that_it_cannot_work_with_is_refused_in_words(remote: Remote, tmp_path: Path) -> None:
    shallow, partial, other = (tmp_path / f"{name}.git" for name in ("shallow", "partial", "other"))
    remote.push({"a": "b"})
    git(remote.path, "config", "uploadpack.allowFilter", "true")
    for words in (
        ("clone", "--quiet", "--bare", "--depth", "1", f"file://{remote.path}", str(shallow)),
        ("clone", "--quiet", "--bare", "--filter=blob:none", f"file://{remote.path}", str(partial)),
        ("init", "--quiet", "--bare", "--object-format=sha256", str(other)),
    ):
        subprocess.run(["git", *words], check=True)
    tree = git(other, "hash-object", "-t", "tree", "-w", "/dev/null")
    git(other, "update-ref", "refs/heads/main", git(other, "commit-tree", "-m", "First", tree))
    for path, says in (
        (shallow, "The repository is a shallow clone, from which git fetches nothing"),
        (partial, "The repository is a partial clone, which lacks files; name the one that it was made from"),
        (other, "The repository names its commits by SHA-256"),
    ):
        with pytest.raises(Unfit) as caught:
            Mirror(tmp_path / f"mirror-{path.name}", str(path), "main", Network()).fetch_target()
        assert str(caught.value).startswith(says)

    # What git says of a damaged one ends with a NUL, which PostgreSQL does not take.
    git(partial, "config", "--remove-section", "remote.origin")
    for promise in partial.glob("objects/pack/*.promisor"):
        promise.unlink()
    with pytest.raises(GitError) as damaged:
        Mirror(tmp_path / "mirror-damaged", str(partial), "main", Network()).fetch_target()
    assert "corruption on the remote side." in str(damaged.value)
    assert "\0" not in str(damaged.value)


@pytest.fixture
def hung() -> Iterator[int]:
    """A port on loopback where somebody takes the call and never says a word."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.bind(("127.0.0.1", 0))
        server.listen(8)
        yield server.getsockname()[1]


@pytest.fixture
def hung_mirror(hung: int, tmp_path: Path) -> Iterator[Mirror]:
    mark = {MARK: str(tmp_path)}
    network = Network(protocols=("http",), timeout=0.5, environment=mark)
    yield Mirror(tmp_path / "mirror.git", f"http://127.0.0.1:{hung}/x.git", "main", network)
    assert processes.end_all(processes.marked(MARK, str(tmp_path)), 0)


def test_a_remote_that_never_answers_is_given_up(hung_mirror: Mirror) -> None:
    with pytest.raises(Unreachable, match=r"took longer than 0\.5 s"):
        hung_mirror.fetch_target()


def test_a_remote_that_sends_git_elsewhere_gets_no_password_of_the_other_host(tmp_path: Path) -> None:
    """The file holds the passwords of many hosts; a redirect may not choose among them."""
    asked: list[tuple[str, str | None]] = []

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host, port = self.server.server_address[:2]
            asked.append((str(host), self.headers.get("Authorization")))
            if self.path.startswith("/moved"):
                self.send_response(301)
                self.send_header("Location", f"http://127.0.0.2:{port}{self.path.removeprefix('/moved')}")
            else:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    here = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    port = here.server_address[1]
    there = ThreadingHTTPServer(("127.0.0.2", port), Door)
    file = tmp_path / "git-credentials"
    file.write_text(f"http://op:secret@127.0.0.2%3a{port}\nhttp://op:secret@127.0.0.1%3a{port}\n")
    network = Network(protocols=("http",), timeout=60.0, credentials=file)
    for server in (here, there):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for address in (f"http://127.0.0.1:{port}/moved/x.git", f"HTTP://me@127.0.0.1:{port}/moved/x.git"):
            with pytest.raises(Unreachable):
                Mirror(tmp_path / "mirror.git", address, "main", network).fetch_target()
        assert {host for host, _ in asked} == {"127.0.0.1", "127.0.0.2"}
        assert not any(password for host, password in asked if host == "127.0.0.2")
        with pytest.raises(Unreachable):
            remotes.default_branch(f"http://127.0.0.1:{port}/x.git", network)
        assert asked[-1][1], "its own host gets it"
        for odd in (
            f"http://127.0.0.1:{port}.helper=!touch {tmp_path}/owned;/x.git",
            f"http://[=!:{port}]/x",
        ):
            with pytest.raises(Unreachable):
                remotes.default_branch(odd, network)
        assert not (tmp_path / "owned").exists()
    finally:
        for server in (here, there):
            server.shutdown()
            server.server_close()


def test_an_endless_pack_ends_before_the_disk_is_full_and_nothing_of_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pkt(data: bytes) -> bytes:
        return b"%04x%s" % (len(data) + 4, data)

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if "?service=" not in self.path:
                self.send_error(404)
                return
            self._begin("advertisement")
            head = b"1" * 40 + b" refs/heads/main\0side-band-64k\n"
            self.wfile.write(pkt(b"# service=git-upload-pack\n") + b"0000" + pkt(head) + b"0000")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._begin("result")
            self.wfile.write(pkt(b"NAK\n") + pkt(b"\1PACK\0\0\0\2\0\1\0\0"))
            blob = pkt(b"\1\xb0\xd0\x0f" + zlib.compress(os.urandom(32_000), 0))
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(blob)

        def _begin(self, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", f"application/x-git-upload-pack-{kind}")
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/x.git"
        mirror = Mirror(tmp_path / "mirror.git", url, "main", Network(protocols=("http",), timeout=4.0))
        packs = mirror.path / "objects" / "pack"
        with pytest.raises(Unreachable, match="took longer than 4 s"):
            mirror.fetch_target()
        assert not [*packs.iterdir()]
        monkeypatch.setattr(remotes, "largest_file", lambda folder: MIB)
        mirror.network = replace(mirror.network, timeout=120.0)
        (packs / "tmp_pack_busy").write_text("busy")
        with (packs / "tmp_pack_busy").open("ab"):  # another git is at work on it
            with pytest.raises(Unreachable, match="more than half of the room that is left on the disk"):
                mirror.fetch_target()
            assert [path.name for path in packs.iterdir()] == ["tmp_pack_busy"]
        (packs.parent / "ab").mkdir()
        (packs.parent / "ab" / "tmp_obj_left").touch()
        with pytest.raises(GitError):  # as where an agent's unfinished work is saved on a full disk
            plain.run(tmp_path, "add", "nothing", environment={"GIT_DIR": str(mirror.path)})
        assert not [*packs.parent.glob("*/tmp_*")]
        server.shutdown()


def test_a_push_to_a_remote_that_never_answers_is_given_up(
    remote: Remote, mirror: Mirror, hung_mirror: Mirror
) -> None:
    mirror.url, mirror.network = hung_mirror.url, hung_mirror.network
    with pytest.raises(Unreachable, match=r"took longer than 0\.5 s"):
        mirror.push(remote.first)


def test_a_host_that_stops_ends_its_calls_to_remotes(hung_mirror: Mirror) -> None:
    """Ctrl+C must not wait for a remote that hangs."""
    hung_mirror.network = replace(hung_mirror.network, timeout=300.0)
    said: list[GitError] = []

    def fetch() -> None:
        with pytest.raises(Interrupted) as caught:
            hung_mirror.fetch_target()
        said.append(caught.value)

    caller = threading.Thread(target=fetch)
    caller.start()
    while not processes.marked(MARK, str(hung_mirror.path.parent)):
        time.sleep(0.01)
    try:
        remotes.end_calls()
        caller.join(60)
        assert "because this host stops" in str(said[0])
        with pytest.raises(Interrupted):
            hung_mirror.fetch_target()
    finally:
        remotes.allow_calls()


def test_a_killed_host_leaves_no_call_behind(hung: int, tmp_path: Path) -> None:
    """Also none of an ssh that hears nothing any more, not even that git has gone."""
    deaf = tmp_path / "deaf-ssh"
    deaf.write_text("#!/bin/sh\nexec sleep 600\n")
    deaf.chmod(0o755)
    code = (
        "import sys; from pathlib import Path; from agents.hosts.git.mirror import Mirror\n"
        "from agents.hosts.git.remotes import Network\n"
        f"more = {{'{MARK}': sys.argv[1], 'GIT_SSH_COMMAND': {str(deaf)!r}}}\n"
        "network = Network(protocols=('http', 'ssh'), timeout=300.0, environment=more)\n"
        "Mirror(Path(sys.argv[1]) / 'm.git', sys.argv[2], 'main', network).fetch_target()\n"
    )
    for url in (f"http://127.0.0.1:{hung}/x.git", "ssh://nobody@localhost/x.git"):
        words = [sys.executable, "-c", code, str(tmp_path), url]
        host = subprocess.Popen(words, cwd=ROOT)
        deadline = time.monotonic() + 120
        while len(processes.marked(MARK, str(tmp_path))) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        host.kill()
        host.wait()
        while processes.marked(MARK, str(tmp_path)):
            assert time.monotonic() < deadline, "git or a helper of it is still at it"
            time.sleep(0.01)


def test_nothing_of_a_call_that_was_given_up_lives_on(hung_mirror: Mirror) -> None:
    with pytest.raises(Unreachable):
        hung_mirror.fetch_target()
    deadline = time.monotonic() + 60
    while processes.marked(MARK, str(hung_mirror.path.parent)):
        assert time.monotonic() < deadline, "a helper of git is still at it"
        time.sleep(0.01)


def test_two_threads_may_fetch_the_target_at_once(remote: Remote, mirror: Mirror) -> None:
    """Two coders start after a landing: nobody may call the remote unreachable for that."""
    for turn in range(4):
        remote.push({"turn.py": f"{turn}\n"})
        at_once(*[mirror.fetch_target] * 4)


# --- Words that are no names ------------------------------------------------------------------------------

NO_BRANCHES = [
    "", "-", "-x", "--upload-pack=touch x", "a..b", "refs/heads/x", "@{-1}", "@{u}", "HEAD", "a b", "x:y",
    "*", "main\n", "x.lock", "a/../b", "/main", "main^", "main~1", "a\\b",
]  # fmt: skip


@for_each("name", NO_BRANCHES)
def test_it_refuses_what_is_no_name_of_a_branch(tmp_path: Path, name: str) -> None:
    with pytest.raises(GitError, match="is no name of a branch"):
        Mirror(tmp_path / "mirror.git", "/nowhere", name, Network())


def test_names_of_branches_are_judged_as_git_does(tmp_path: Path) -> None:
    parts = [
        "a",
        ".",
        "..",
        "/",
        "@",
        "{",
        "-",
        ".lock",
        "HEAD",
        " ",
        "~",
        "^",
        ":",
        "?",
        "*",
        "[",
        "\\",
        "\t",
    ]
    for name in {"".join(words) for words in itertools.product(parts, repeat=2)} - {"@"}:
        said = subprocess.run(
            ["git", "-C", str(tmp_path), "check-ref-format", "--branch", name],
            capture_output=True,
            check=False,
        )
        assert is_branch_name(name) == (said.stdout == f"{name}\n".encode()), name


@for_each("name", ["main", "release/1.2", "steroids/ledger-1", "grün"])
def test_it_takes_the_name_of_a_branch(name: str) -> None:
    assert check_branch(name) == name


@for_each(
    "url",
    [
        "--upload-pack=touch {marker}",
        "--receive-pack=touch {marker}",
        "-x",
        "ext::sh -c touch% {marker}",
        "fd::0",
        "ssh://-oProxyCommand=touch {marker}/x",
        "-oProxyCommand=touch {marker}:x",
        "file:///nowhere --upload-pack='touch {marker}'",
        "/nowhere; touch {marker}",
        "$(touch {marker})",
    ],
)
def test_a_url_is_a_url_and_never_an_option_or_a_program(remote: Remote, mirror: Mirror, url: str) -> None:
    marker = mirror.path.parent / "marker"
    mirror.url = url.format(marker=marker)
    with pytest.raises(Unreachable):
        mirror.fetch_target()
    with pytest.raises(Unreachable):
        mirror.push(remote.first)
    assert not marker.exists()


def test_only_the_named_schemes_are_used(remote: Remote, tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "mirror.git", str(remote.path), "main", Network(protocols=("https",)))
    with pytest.raises(Unreachable, match="transport 'file' not allowed"):
        mirror.fetch_target()


@pytest.mark.parametrize("sha", ["--output=x", "-p", "--upload-pack=touch x", "no such thing", "0" * 40])
def test_a_commit_that_is_none_is_a_problem_with_a_name(remote: Remote, mirror: Mirror, sha: str) -> None:
    with pytest.raises(GitError):
        mirror.resolve(sha)
    with pytest.raises(GitError):
        mirror.take(clone_of(mirror, remote.first), sha, "refs/steroids/submissions/1")


def test_a_problem_names_the_command_and_not_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a-folder"
    with pytest.raises(GitError) as caught:
        plain.run(folder, "cat-file", "-e", "HEAD")
    assert caught.value.what == "git cat-file"


# --- An environment from nothing --------------------------------------------------------------------------


def test_git_sees_nothing_of_the_servers_environment(
    remote: Remote, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "marker"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{marker}'\nexit 1\n")
    program.chmod(0o755)
    home = tmp_path / "home"
    write(
        home,
        {".gitconfig": f"[core]\n\thooksPath = {tmp_path}\n\tfsmonitor = {program}\n[user]\n\tname = Eve\n"},
    )
    planted = {
        "HOME": str(home), "XDG_CONFIG_HOME": str(home), "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_DIR": str(tmp_path / "elsewhere"), "GIT_WORK_TREE": str(tmp_path), "GIT_INDEX_FILE": "/dev/full",
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "objects"), "GIT_EXTERNAL_DIFF": str(program),
        "GIT_SSH_COMMAND": str(program), "GIT_PROXY_COMMAND": str(program), "GIT_EDITOR": str(program),
        "GIT_SEQUENCE_EDITOR": str(program), "GIT_PAGER": str(program), "GIT_TRACE": str(tmp_path / "trace"),
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": str(program),
        "GIT_AUTHOR_NAME": "Eve", "GIT_COMMITTER_NAME": "Eve", "GIT_NAMESPACE": "eve", "SECRET_KEY": "hush",
    }  # fmt: skip
    for name, value in planted.items():
        monkeypatch.setenv(name, value)
    clone = clone_of(mirror, remote.first)
    write(clone, {"left.py": "left\n"})
    saved = mirror.commit_tree_of(clone, remote.first, "Saved")
    theirs = remote.push({"b.py": "b\n"})
    assert saved is not None
    rebased = mirror.rebase(saved, mirror.fetch_target(), "refs/steroids/landings/1")
    assert mirror.diff(remote.first, saved).count("+left") == 1
    assert git(mirror.path, "log", "-1", "--format=%an %cn %P", rebased) == f"Steroids Steroids {theirs}"
    assert not marker.exists()
    assert not (tmp_path / "trace").exists()


def test_the_environment_of_git_is_short_and_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hush")
    names = set(plain.base_environment())
    assert "SECRET_KEY" not in names
    assert {name for name in names if not name.startswith("GIT_")} == {"PATH", "LC_ALL", "HOME"}


# --- Commits ----------------------------------------------------------------------------------------------


def test_it_takes_the_named_commit_and_nothing_after_it(remote: Remote, mirror: Mirror) -> None:
    clone = clone_of(mirror, remote.first)
    named = commit(clone, {"a.py": "a\n"})
    later = commit(clone, {"b.py": "b\n"})
    mirror.take(clone, named, "refs/steroids/submissions/1")
    assert mirror.resolve("refs/steroids/submissions/1") == named
    assert not mirror.has(later)


def test_a_commit_that_the_clone_does_not_have_cannot_be_taken(remote: Remote, mirror: Mirror) -> None:
    with pytest.raises(GitError):
        mirror.take(clone_of(mirror, remote.first), "1" * 40, "refs/steroids/submissions/1")


# Where the host's git waits at a pipe; {} is the commit's own object.
WAITS_AT = (
    "HEAD", "commondir", "config", "config.worktree", "packed-refs", "shallow", "info/grafts", "objects/{}",
    "objects/pack/multi-pack-index", "objects/info/alternates", "objects/info/commit-graph",
    "objects/info/commit-graphs/commit-graph-chain", "refs/heads", "refs/stash", "refs/tags/v1",
    "refs/tags/deep/er/v1",
)  # fmt: skip
OPENS_AT_A_DEVICE = ("commondir", "info/grafts", "objects/info/alternates", "refs/stash", "refs/tags/v1")
PASSES_BY = (
    "index", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "description", "info/exclude",
    "info/sparse-checkout", "logs/HEAD", "hooks/post-checkout", "worktrees/x/HEAD", "modules/x/config",
    "refs/heads/main", "refs/heads/steroids/ledger-1", "refs/replace/{}", "HEAD.lock",
    "../pipe", "../docs/pipe", "../.gitmodules", "../.mailmap",
)  # fmt: skip


def put(clone: Path, name: str, make: Callable[[Path], None]) -> None:
    path = clone / ".git" / name
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)


def test_git_is_never_left_waiting_at_a_pipe(
    remote: Remote, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "run", partial(plain.run, timeout=2))
    spoiled = [(name, os.mkfifo) for name in WAITS_AT]
    spoiled += [(name, lambda path: path.symlink_to("/dev/zero")) for name in OPENS_AT_A_DEVICE]

    def look(number: int, name: str, make: Callable[[Path], None]) -> None:
        clone = clone_of(mirror, remote.first, f"clone-{number}")
        git(clone, "config", "extensions.worktreeConfig", "true")
        sha = commit(clone, {"a.py": f"{number}\n"})
        put(clone, name.format(f"{sha[:2]}/{sha[2:]}"), make)
        with pytest.raises(GitError, match=f"{name.partition('{')[0]}.* is no file"):
            refuse_pipes(clone)
        with pytest.raises(GitError, match="took longer"):
            mirror.take(clone, sha, f"refs/steroids/submissions/{number}")

    at_once(*(partial(look, number, *row) for number, row in enumerate(spoiled)))


def test_a_pipe_that_git_passes_by_costs_nobody_their_work(
    remote: Remote, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = clone_of(mirror, remote.first)
    sha = commit(clone, {"docs/a.py": "a\n"})
    for name in PASSES_BY:
        put(clone, name.format(sha), os.mkfifo)
    with socket.socket(socket.AF_UNIX) as monitor, monkeypatch.context() as beside:
        beside.chdir(clone / ".git")  # the address of a socket has to be short
        monitor.bind("fsmonitor--daemon.ipc")
    (clone / ".git" / "refs" / "nowhere").symlink_to("nothing")
    (clone / ".gitignore").symlink_to("pipe")  # it follows no such links
    write(clone, {"b.py": "b\n"})
    refuse_pipes(clone)
    mirror.take(clone, sha, "refs/steroids/submissions/last")
    saved = mirror.commit_tree_of(clone, sha, "Saved")
    assert saved is not None
    assert mirror.read(saved, "b.py", 10) == "b\n"


def test_no_link_leads_out_of_a_clone_while_it_is_looked_through(remote: Remote, mirror: Mirror) -> None:
    """The host would walk through all of its disk, and tell which pipes lie there."""
    for number, name in enumerate((".git", "refs", "refs/tags", "objects", "objects/info", "objects/ab")):
        clone = clone_of(mirror, mirror.fetch_target(), f"linked-{number}")
        place = clone / ".git" / name if name != ".git" else clone / ".git"
        shutil.rmtree(place, ignore_errors=True)
        place.symlink_to("/")
        with pytest.raises(GitError, match=f"{name} is a link, where git makes a folder"):
            refuse_pipes(clone)


def test_a_work_tree_with_pipes_that_tell_git_what_to_do_is_not_looked_through(
    remote: Remote, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        repositories, "run", lambda *words, **more: plain.run(*words, **more | {"timeout": 2})
    )
    for name in (".gitignore", ".gitattributes", "docs/.gitignore", "docs/.gitattributes"):
        clone = clone_of(mirror, remote.first)
        write(clone, {"docs/a.py": "a\n"})
        put(clone, f"../{name}", os.mkfifo)
        with pytest.raises(GitError, match=f"{name} is no file"):
            mirror.commit_tree_of(clone, remote.first, "Saved")
        with monkeypatch.context() as without:
            without.setattr(repositories, "refuse_pipes_in_tree", lambda _: None)
            with pytest.raises(GitError, match="took longer"):
                mirror.commit_tree_of(clone, remote.first, "Saved")
        shutil.rmtree(clone)


def test_a_tree_that_would_write_into_dot_git_cannot_be_taken(remote: Remote, mirror: Mirror) -> None:
    """C7: git's own check of objects on the way in."""
    clone = clone_of(mirror, remote.first)
    blob = git(clone, "rev-parse", "HEAD:README.md")
    listing = f"100644 blob {blob}\t.git\n"
    tree = git(clone, "mktree", stdin=listing)
    sha = git(clone, "commit-tree", tree, "-p", "HEAD", "-m", "evil")
    with pytest.raises(GitError, match="hasDotgit"):
        mirror.take(clone, sha, "refs/steroids/submissions/1")


LANDED = "refs/steroids/landings/1"


def test_a_rebase_makes_the_same_commit_whoever_does_it_whenever(remote: Remote, tmp_path: Path) -> None:
    """Two hosts that both rebase land the same thing; and it says what was read, byte by byte."""
    one, other = remote.mirror(tmp_path / "one.git"), remote.mirror(tmp_path / "other.git")
    clone = clone_of(one, remote.first)
    message = "A subject \n\n  Its body,  with  gaps.  \n\n\n# no comment\n"
    commit(clone, {"a.py": "a\n", "deep/in/it.py": "1\n"}, message)
    commit(clone, {"a.py": "a\na\n"}, "Zwölf\n")
    sha = commit(clone, {"b.py": "b\n"}, "More", GIT_AUTHOR_DATE="2001-02-03T04:05:06+0300")
    tree = git(clone, "rev-parse", "HEAD^{tree}")
    head = remote.push({"c.py": "c\n"})
    who, now, signed = "Eve <eve@x>", "1700000000 -0130", "\ngpgsig -----BEGIN\n \n x\n -----END"
    told = {  # the author, and headers that go on and that do not
        f"{who} {now}": ("\nencoding UTF-7\nHG:extra x", f"{signed}\nmergetag object x\n \n author x"),
        f"{who} {now} ": ("\nencoding UTF-16", ""), f"{who} {'9' * 20} +0000": ("\nencoding bogus", ""),
        f"Eve {now}": ("", ""), f"{who} -5 +0000": ("", ""), who: ("", ""),
        f"{'E' * 100_000} <e@x> {now}\nauthor Ada <a@x> {now}": ("", signed),
    }  # fmt: skip
    made = [sha]
    for author, (kept, gone) in told.items():
        text = (
            f"tree {tree}\nparent {remote.first}\nauthor {author}\ncommitter {who} {now}{gone}{kept}\n\n"
            "H+AOk-llo +AAA-\x1b[2J\r\n\n# no comment"
        )
        made.append(git(clone, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=text))
    for each in made:
        for host in (one, other):
            host.take(clone, each, "refs/steroids/submissions/1")
            host.fetch_target()
        first = one.rebase(each, head, LANDED)
        time.sleep(1.1 if each == sha else 0)
        assert other.rebase(each, head, LANDED) == first
        assert first not in {each, head}
        if each == sha:
            for host in (one, other):
                assert git(host.path, "log", "-1", "--format=%an %cn %ai %ci", LANDED) == (
                    "Ada Steroids 2001-02-03 04:05:06 +0300 2001-02-03 04:05:06 +0300"
                )
    for (author, (kept, _)), each in zip(told.items(), made[1:], strict=True):
        raw = plain.run(one.path, "cat-file", "commit", one.rebase(each, head, LANDED)).stdout.decode()
        headers, _, words = raw.partition("\n\n")
        named, *others = author.split("\n")
        when = now if named.endswith(now) else "0 +0000"
        ends = "".join(f"\n{line}" for line in others) + kept
        assert headers.partition("\n")[2] == (
            f"parent {head}\nauthor {named}\ncommitter Steroids <steroids@localhost> {when}{ends}"
        )
        assert words == "H+AOk-llo +AAA-\x1b[2J\r\n\n# no comment"


def test_a_rebase_leaves_out_merges_and_what_is_there_already(remote: Remote, mirror: Mirror) -> None:
    clone = clone_of(mirror, remote.first)
    commit(clone, {"a.py": "a\n"}, "There already")
    mine = commit(clone, {"b.py": "b\n"}, "Mine")
    git(clone, "commit", "--quiet", "--allow-empty", "-m", "Only words")
    git(clone, "checkout", "--quiet", "-b", "side", remote.first)
    commit(clone, {"side.py": "side\n"}, "Beside")
    git(clone, "merge", "--quiet", "--no-ff", "-m", "Both", mine)
    git(clone, "checkout", "--quiet", "--orphan", "alone")
    git(clone, "rm", "-rf", "--quiet", ".")
    commit(clone, {"alone.py": "1\n"}, "Alone")
    git(clone, "checkout", "--quiet", "side")
    git(clone, "merge", "--quiet", "--allow-unrelated-histories", "-m", "All", "alone")
    branched = git(clone, "rev-parse", "HEAD")
    git(clone, "checkout", "--quiet", "--detach", remote.first)
    gone = commit(clone, {"gone.py": "gone\n"}, "Gone from the branch")
    many = [commit(clone, {"many.py": f"{number}\n"}, "Many") for number in range(22)][-1]
    for sha in (mine, branched, many):
        mirror.take(clone, sha, "refs/steroids/submissions/1")
    head = remote.push({"a.py": "a\n"})
    mirror.fetch_target()
    for sha, since, subjects in (
        (mine, "", ["Mine"]), (branched, "", ["Alone", "Beside", "Mine"]), (many, gone, ["Many"] * 22),
    ):  # fmt: skip
        rebased = mirror.rebase(sha, head, LANDED, since=since)
        made = git(mirror.path, "log", "--format=%s", f"{head}..{rebased}").splitlines()
        assert sorted(made) == subjects
        assert git(mirror.path, "log", "--merges", f"{head}..{rebased}") == ""
    assert "gone.py" not in mirror.names(rebased)


def test_a_commit_that_is_gone_is_an_error_of_git(mirror: Mirror, remote: Remote) -> None:
    mirror.fetch_target()
    with pytest.raises(GitError, match="bad object") as caught:
        pick(mirror.path, "b" * 40, remote.first, remote.first)
    assert caught.value.is_of_host(), "so that the mirror is mended"


def test_what_a_commit_says_is_put_elsewhere_as_a_whole_or_not_at_all(
    remote: Remote, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = taken(mirror, {"a.py": "a\n"}, message="x" * 4000)
    head = remote.push({".gitattributes": "*.md merge=union\n" * 1000})
    mirror.fetch_target()
    whole = pick(mirror.path, sha, head, remote.first)
    for limit, is_made in ((2000, False), (4000, False), (6000, True)):
        monkeypatch.setattr(picking, "run", partial(plain.run, limit=limit))
        if is_made:
            assert pick(mirror.path, sha, head, remote.first) == whole
        else:
            with pytest.raises(GitError, match="only the beginning") as caught:
                pick(mirror.path, sha, head, remote.first)
            assert not caught.value.is_of_host(), "so that nobody mends the mirror"


def test_the_patch_is_the_same_before_and_after_a_clean_rebase(remote: Remote, mirror: Mirror) -> None:
    """Whatever others changed around it. What does not merge by the branch's own attributes does not fit."""
    rows = [f"{number}\n" for number in range(20)]
    remote.push({
        ".gitattributes": "*.md merge=union\nlock -merge\ndriven merge=theirs\n", "driven": "".join(rows),
        "CHANGES.md": "# Changes\n\n- Old\n", "lock": "".join(rows), "end": "1\n2\n3",
    })  # fmt: skip
    base = mirror.fetch_target()

    def with_row(number: int) -> str:
        return "".join([*rows[:number], "new\n", *rows[number + 1 :]])

    mine: Files = {
        "a.py": "a\n", "ledger.py": "total = 0\n" * 19 + "total = 1\n", "driven": with_row(5) + "end",
        "CHANGES.md": "# Changes\n\n- Mine\n- Old\n", "end": "one\n2\n3",
    }  # fmt: skip
    sha, locked = taken(mirror, mine), taken(mirror, {"lock": with_row(2)}, name="locked")
    head = remote.push({
        "ledger.py": "# A ledger\n" + "total = 0\n" * 20, "lock": with_row(18), "driven": with_row(7),
        "CHANGES.md": "# Changes\n\n- Theirs\n- Old\n", "end": "1\n2\n3\n",
    })  # fmt: skip
    mirror.fetch_target()
    rebased = mirror.rebase(sha, head, LANDED)
    assert mirror.patch_id(head, rebased) == mirror.patch_id(base, sha) != ""
    assert mirror.is_ancestor(head, rebased)
    assert sorted((mirror.read(rebased, "CHANGES.md", 99) or "").split("\n")[2:5]) == [
        "- Mine",
        "- Old",
        "- Theirs",
    ]
    with pytest.raises(GitError, match="conflict in lock"):
        mirror.rebase(locked, head, LANDED)


def test_another_change_is_another_patch(remote: Remote, mirror: Mirror) -> None:
    one = taken(mirror, {"a.py": "a\n"}, name="one")
    other = taken(mirror, {"a.py": "b\n"}, name="other")
    assert mirror.patch_id(remote.first, one) != mirror.patch_id(remote.first, other)


def test_no_change_has_no_patch(remote: Remote, mirror: Mirror) -> None:
    assert mirror.patch_id(remote.first, remote.first) == ""


def test_a_change_that_does_not_apply_any_more_is_a_problem(remote: Remote, mirror: Mirror) -> None:
    sha = taken(mirror, {"README.md": "Mine.\n"})
    head = remote.push({"README.md": "Theirs.\n"})
    mirror.fetch_target()
    with pytest.raises(GitError, match="could not apply"):
        mirror.rebase(sha, head, LANDED)


def test_a_bundle_carries_the_commits_to_another_host(remote: Remote, mirror: Mirror, tmp_path: Path) -> None:
    sha = taken(mirror, {"a.py": "a\n"})
    ref = "refs/steroids/submissions/clone"
    data = mirror.bundle(sha, ref, remote.first, MIB) or b""
    other = remote.mirror(tmp_path / "other.git")
    assert not other.has(sha)
    other.unbundle(data, ref)
    assert other.resolve(ref) == sha
    assert other.diff(remote.first, sha) == mirror.diff(remote.first, sha)


def test_a_bundle_holds_nothing_that_the_target_has(remote: Remote, mirror: Mirror) -> None:
    noise = "".join(f"{n * 7919 % 1_000_003:x}" for n in range(20_000))
    base = remote.push({"large.bin": noise})
    mirror.fetch_target()
    sha = taken(mirror, {"a.py": "a\n"}, base=base)
    assert 0 < len(mirror.bundle(sha, "refs/steroids/submissions/clone", base, MIB) or b"") < 2_000
    assert mirror.bundle(sha, "refs/steroids/submissions/clone", base, 100) is None


def test_a_bundle_is_one_that_git_writes_itself(remote: Remote, mirror: Mirror) -> None:
    sha = taken(mirror, {"a.py": "a\n"})
    ref = "refs/steroids/submissions/clone"
    ours = mirror.bundle(sha, ref, remote.first, MIB) or b""
    theirs = plain.run(mirror.path, "bundle", "create", "--quiet", "-", ref, f"^{remote.first}").stdout
    head, pack = theirs.split(b"\n\n", 1)
    named = re.sub(rb"(?m)^(-[0-9a-f]+) .*", rb"\1", head)  # git adds the subject of what it stands on
    assert ours == named + b"\n\n" + pack


def test_a_damaged_bundle_is_a_problem(mirror: Mirror) -> None:
    with pytest.raises(GitError):
        mirror.unbundle(b"# v2 git bundle\nnonsense", "refs/steroids/submissions/1")
    assert not (mirror.path / "incoming.bundle").exists()


def test_a_fetch_during_which_our_own_push_moves_the_branch_is_made_again(
    remote: Remote, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coder of the demo was sent back: cannot lock ref, it is at … but expected …."""
    head, calls = remote.push({"more.py": "more\n"}), []

    def late(*words: Any, **more: Any) -> Any:
        calls.append(words)
        if len(calls) == 1:
            raise HostTrouble("git fetch", f"error: cannot lock ref '{mirror.target_ref}': is at {head}")
        return remotes.over_network(*words, **more)

    mirror.ensure()
    monkeypatch.setattr("agents.hosts.git.mirror.over_network", late)
    assert mirror.fetch_target() == head
    assert len(calls) == 2


def test_two_bundles_may_come_in_at_once(
    remote: Remote, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two landings of one project in two threads of a host that has neither commit."""
    bundles = {}
    for name in ("one", "other"):
        sha = taken(mirror, {f"{name}.py": "x\n"}, name=name)
        ref = f"refs/steroids/submissions/{name}"
        bundles[ref] = mirror.bundle(sha, ref, remote.first, MIB) or b""
    host = remote.mirror(tmp_path / "host.git")
    both, run = threading.Barrier(2, timeout=1), plain.run

    def together(*arguments: Any, **more: Any) -> Any:
        with contextlib.suppress(threading.BrokenBarrierError):  # one may well wait for the other
            both.wait()
        return run(*arguments, **more)

    monkeypatch.setattr("agents.hosts.git.mirror.run", together)
    at_once(*[partial(host.unbundle, data, ref) for ref, data in bundles.items()])


# --- Reading ----------------------------------------------------------------------------------------------


def test_it_reads_a_file_as_it_is_in_the_commit(remote: Remote, mirror: Mirror) -> None:
    later = remote.push({"README.md": "Changed.\n"})
    mirror.fetch_target()
    assert mirror.read(remote.first, "README.md", 100) == "A ledger.\n"
    assert mirror.read(later, "README.md", 100) == "Changed.\n"
    assert mirror.read(later, "README.md", 4) == "Chan"


NO_FILES = [
    "/etc/hostname", "../remote.git/HEAD", "docs/../README.md", "docs", "", ".", "./",
    "missing.md", ".git/config", "docs/missing", "README.md/x", ":README.md", "*.md", "-p", "--help",
]  # fmt: skip


def test_it_reads_nothing_that_is_no_file_of_the_commit(remote: Remote, mirror: Mirror) -> None:
    assert {path: mirror.read(remote.first, path, 100) for path in NO_FILES} == dict.fromkeys(NO_FILES)


def test_a_link_in_the_repository_is_only_text(remote: Remote, mirror: Mirror) -> None:
    secret = mirror.path.parent / "secret"
    secret.write_text("hush")
    clone = clone_of(mirror, remote.first)
    (clone / "link.md").symlink_to(secret)
    (clone / "folder").symlink_to("/etc")
    sha = commit(clone, {})
    mirror.take(clone, sha, "refs/steroids/submissions/1")
    assert mirror.read(sha, "link.md", 1000) == str(secret)
    assert mirror.read(sha, "folder/hostname", 1000) is None


def test_what_is_too_large_is_named_and_never_read(
    remote: Remote, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One commit with a large text file would take the host's memory and minutes of its time."""
    clone = clone_of(mirror, remote.first)
    (clone / "large.txt").write_text("a line of a large file\n" * 400_000)
    sha = commit(clone, {"a.py": "a\n" * 2000})
    mirror.take(clone, sha, "refs/steroids/submissions/1")
    diff = mirror.diff(remote.first, sha)
    assert "b/large.txt differ" in diff
    assert "a line of" not in diff
    assert diff.count("\n+a") == 2000
    assert ("large.txt", 0, 0) in mirror.changed(remote.first, sha).files
    told, patch_id = mirror.change(remote.first, sha, limit=MIB)
    assert (told, patch_id) == (diff, mirror.patch_id(remote.first, sha))
    cut = mirror.diff(remote.first, sha, limit=500)
    told, known = mirror.change(remote.first, sha, limit=500)  # read with longer names, so cut earlier
    assert known == patch_id
    assert told.endswith(cut[-60:])
    assert len(told) < len(cut)
    assert len(cut) < 600
    assert cut.endswith("\n+a\n\\ The rest is not shown: the change is too large.\n")
    assert mirror.read(sha, "large.txt", 10) == "a line of "
    with pytest.raises(GitError, match="git cat-file: printed more than 1000 bytes"):
        plain.run(mirror.path, "cat-file", "blob", f"{sha}:large.txt", limit=1000)
    (clone / "large.txt").write_text("another line of it\n" * 500_000)
    other = commit(clone, {})
    mirror.take(clone, other, "refs/steroids/submissions/2")
    ids = {mirror.patch_id(remote.first, one) for one in (sha, other)}
    assert len(ids) == 2
    assert max(map(len, ids)) <= 64


def bomb(repository: Path, parent: str) -> str:
    """Make a commit of a dozen small objects that would be ten thousand million files."""
    blob = git(repository, "hash-object", "-w", "--stdin", stdin="x\n")
    entries, name = f"100644 blob {blob}", "f"
    for _ in range(10):
        listed = "".join(f"{entries}\t{name}{number}\n" for number in range(10))
        tree = git(repository, "mktree", stdin=listed)
        entries, name = f"040000 tree {tree}", "d"
    return git(repository, "commit-tree", tree, "-p", parent, "-m", "Small")


def test_git_takes_no_more_memory_than_it_may(
    remote: Remote, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A diff of such a commit, which is only as large as an e-mail, took 300 MB more each second."""
    clone = clone_of(mirror, mirror.fetch_target())
    sha = bomb(clone, remote.first)
    mirror.take(clone, sha, "refs/steroids/submissions/1")
    monkeypatch.setattr(plain, "MEMORY_MAX", 64 * MIB)
    with pytest.raises(GitError, match="git diff: needs more than 64 MiB of memory"):
        mirror.changed(remote.first, sha)
    tree = git(clone, "rev-parse", "HEAD^{tree}")
    sha = git(clone, "commit-tree", tree, "-p", remote.first, stdin="long\n" * 14 * MIB)
    with pytest.raises(GitError, match="git fetch: needs more than 64 MiB of memory"):
        mirror.take(clone, sha, "refs/steroids/submissions/2")
    assert not mirror.has(sha)


def test_a_commit_is_measured_before_it_is_checked_out(remote: Remote, mirror: Mirror) -> None:
    """Its objects are small where many files are the same one, or where a file repeats itself."""
    clone = clone_of(mirror, mirror.fetch_target())
    sha = bomb(clone, remote.first)
    mirror.take(clone, sha, "refs/steroids/submissions/1")
    with pytest.raises(GitError, match="holds more than 5,000 files"):
        mirror.check_size(sha, Size(5000, 100 * MIB))
    many = commit(clone, {f"{number}.txt": "same\n" * 1000 for number in range(20)})
    mirror.take(clone, many, "refs/steroids/submissions/2")
    count = len(git(clone, "ls-files").splitlines())
    for most, said in (
        (Size(count, MIB), ""), (Size(count - 1, MIB), f"holds more than {count - 1} files"),
        (Size(count, 99_999), "holds more than 99,999 bytes"),
    ):  # fmt: skip
        with pytest.raises(GitError, match=said) if said else contextlib.nullcontext():
            mirror.check_size(many, most)


def test_a_large_repository_is_measured_as_a_whole(remote: Remote, mirror: Mirror) -> None:
    """Long names make a listing long, whatever the checkout would take."""
    clone = clone_of(mirror, mirror.fetch_target())
    blob = git(clone, "hash-object", "-w", "--stdin", stdin="")
    inner = git(clone, "mktree", stdin="".join(f"100644 blob {blob}\t{n:090}\n" for n in range(500)))
    outer = git(clone, "mktree", stdin="".join(f"040000 tree {inner}\t{n:090}\n" for n in range(600)))
    sha = git(clone, "commit-tree", outer, "-p", remote.first, "-m", "Large")
    mirror.take(clone, sha, "refs/steroids/submissions/1")
    mirror.check_size(sha, Size(300_000, MIB))
    with pytest.raises(GitError, match="holds more than 299,999 files"):
        mirror.check_size(sha, Size(299_999, MIB))


def test_a_change_is_told_the_same_however_it_is_read(remote: Remote, mirror: Mirror) -> None:
    """What a page shows and what an approval is for come from one reading."""
    text = "".join(f"line {number}\n" for number in range(40))
    base = remote.push({"old.py": text, "gone.py": "gone\n", "picture.bin": "\0one"})
    mirror.fetch_target()
    clone = clone_of(mirror, base)
    (clone / "old.py").rename(clone / "new.py")
    (clone / "gone.py").unlink()
    sha = commit(clone, {"picture.bin": "\0other", "index.md": "index 1234567890..abcdef1234567\n"})
    mirror.take(clone, sha, "refs/steroids/submissions/1")
    diff, patch_id = mirror.change(base, sha, limit=MIB)
    assert diff == mirror.diff(base, sha)
    assert patch_id == mirror.patch_id(base, sha)
    assert "+index 1234567890..abcdef1234567\n" in diff


def test_git_says_no_password(remote: Remote, tmp_path: Path) -> None:
    """Its words end in events, pages and logs."""
    secret = "hunter2"
    urls = {
        f"https://bot:{secret}@127.0.0.1:9/x.git": "https://bot:***@127.0.0.1:9/x.git",
        f"ftp://bot:pa/{secret}@127.0.0.1/x": "ftp://bot:***@127.0.0.1/x",
        f"foo+bar://:a@{secret}@h/x": "foo+bar://:***@h/x",
        f"https://127.0.0.1:9/x.git?private_token={secret}&a={secret}": "https://127.0.0.1:9/x.git?***",
        f"https://127.0.0.1:9/x.git#{secret}": "https://127.0.0.1:9/x.git#***",
        f"https://127.0.0.1:9/glpat-{secret}-{secret}-x/x.git": "https://127.0.0.1:9/***/x.git",
        f"https://127.0.0.1:9/ghp_{secret}{secret}99/x.git": "https://127.0.0.1:9/***/x.git",
    }
    for url, shown in urls.items():
        assert redact(f"fatal: '{url}' is gone") == f"fatal: '{shown}' is gone"
        mirror = Mirror(tmp_path / "secret.git", url, "main", Network(timeout=60.0))
        with pytest.raises(Unreachable) as caught:
            mirror.fetch_target()
        assert secret not in f"{caught.value} {caught.value.text} {caught.value.args}"
    for token in ("ghp_abcdefghijkl", "x" * 40):
        assert redact(f"see https://{token}@example.org/x.git") == "see https://***@example.org/x.git"
    harmless = (
        "git@h:x ssh://git@h:22/a@b https://me@h:8080/x@y https://h:80/x@y ssh://h:22 a@b 12:30 x:// why? # 1"
        " https://h/ghp_docs/glpat-notes.git https://h/commit/" + "0f" * 20
    )
    assert redact(harmless) == harmless
    began = time.monotonic()
    redact("a://b:" * 20_000 + "ghp_" * 20_000)
    assert time.monotonic() - began < 20


def test_broken_text_is_readable(remote: Remote, mirror: Mirror) -> None:
    clone = clone_of(mirror, remote.first)
    (clone / "latin.md").write_bytes(b"gr\xfcn\n")
    sha = commit(clone, {})
    mirror.take(clone, sha, "refs/steroids/submissions/1")
    assert mirror.read(sha, "latin.md", 100) == "gr\ufffdn\n"
    assert "+gr\ufffdn" in mirror.diff(remote.first, sha)


def test_it_counts_the_lines_of_each_file(remote: Remote, mirror: Mirror) -> None:
    clone = clone_of(mirror, remote.first)
    (clone / "logo.png").write_bytes(bytes(range(256)))
    sha = commit(clone, {"README.md": "One.\nTwo.\n", "docs/SPEC.md": None, "grün ß.py": "x\n"})
    mirror.take(clone, sha, "refs/steroids/submissions/1")
    assert sorted(mirror.changed(remote.first, sha).files) == [
        ("README.md", 2, 1), ("docs/SPEC.md", 0, 1), ("grün ß.py", 1, 0), ("logo.png", 0, 0),
    ]  # fmt: skip
    assert sorted(mirror.names(sha)) == ["README.md", "grün ß.py", "ledger.py", "logo.png"]


# --- Clones for agents ------------------------------------------------------------------------------------


def test_a_clone_has_no_remote_and_borrows_its_objects(remote: Remote, mirror: Mirror) -> None:
    clone = clone_of(mirror, remote.first)
    assert git(clone, "remote") == ""
    assert git(clone, "rev-parse", "--abbrev-ref", "HEAD") == "steroids/ledger-1"
    assert git(clone, "rev-parse", "HEAD") == remote.first
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "count-objects") == "0 objects, 0 kilobytes"
    assert str(remote.path) not in (clone / ".git" / "config").read_text()


def test_a_clone_without_a_branch_stands_on_the_commit(remote: Remote, mirror: Mirror) -> None:
    folder = mirror.path.parent / "review"
    mirror.checkout(folder, remote.first)
    assert git(folder, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
    assert git(folder, "rev-parse", "HEAD") == remote.first


def test_what_an_agent_deletes_in_its_clone_is_still_in_the_mirror(remote: Remote, mirror: Mirror) -> None:
    clone = clone_of(mirror, remote.first)
    commit(clone, {"a.py": "a\n"})
    git(clone, "update-ref", "-d", "HEAD")
    git(clone, "gc", "--quiet", "--prune=now")
    assert mirror.has(remote.first)
    assert git(mirror.path, "fsck", "--strict") == ""


def test_it_saves_everything_that_lies_in_a_clone(remote: Remote, mirror: Mirror) -> None:
    clone = clone_of(mirror, remote.first)
    write(clone, {"new.py": "new\n", "README.md": None, ".gitignore": "*.log\n", "noise.log": "noise\n"})
    saved = mirror.commit_tree_of(clone, remote.first, "Saved")
    assert saved is not None
    assert {path for path, _, _ in mirror.changed(remote.first, saved).files} == {
        "new.py",
        "README.md",
        ".gitignore",
    }
    assert git(clone, "status", "--porcelain").splitlines()  # the clone itself was left as it was


def test_no_converter_of_the_host_is_chosen_by_a_repository(remote: Remote, mirror: Mirror) -> None:
    wanted = "*.txt working-tree-encoding=UTF-16\n*.c ident\n"
    files: Files = {".gitattributes": wanted, "a.txt": "words\n", "a.c": "$Id$\n" * 9}
    first = remote.push(files)
    mirror.fetch_target()
    clone = clone_of(mirror, first)
    stored = {name: (clone / name).read_text() for name in ("a.txt", "a.c")}
    assert stored == {name: files[name] for name in stored}
    write(clone, {"b.txt": "more\n"})
    saved = mirror.commit_tree_of(clone, first, "Saved")
    assert saved is not None
    assert mirror.read(saved, "b.txt", 100) == "more\n"


def test_there_is_nothing_to_save_in_a_clean_clone(remote: Remote, mirror: Mirror) -> None:
    assert mirror.commit_tree_of(clone_of(mirror, remote.first), remote.first, "Saved") is None
    assert list(mirror.path.glob("*.index")) == []


def test_an_empty_repository_in_the_clone_does_not_cost_the_rest(remote: Remote, mirror: Mirror) -> None:
    clone = clone_of(mirror, remote.first)
    write(clone, {"new.py": "new\n"})
    git(clone, "init", "--quiet", "vendored")
    saved = mirror.commit_tree_of(clone, remote.first, "Saved")
    assert saved is not None
    assert [path for path, _, _ in mirror.changed(remote.first, saved).files] == ["new.py"]


# --- What an agent plants ---------------------------------------------------------------------------------

HOOKS = [
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit",
    "post-index-change", "post-merge", "post-rewrite", "pre-applypatch", "pre-auto-gc", "pre-commit",
    "pre-merge-commit", "pre-push", "pre-rebase", "prepare-commit-msg", "push-to-checkout",
    "reference-transaction", "sendemail-validate", "update", "pre-receive", "post-receive", "post-update",
]  # fmt: skip
PROGRAM_KEYS = [
    "core.fsmonitor", "core.sshCommand", "core.editor", "core.pager", "core.askPass", "core.gitProxy",
    "core.alternateRefsCommand", "sequence.editor", "diff.external", "diff.x.command",
    "diff.x.textconv", "merge.x.driver", "filter.x.clean", "filter.x.smudge", "filter.x.process",
    "uploadpack.packObjectsHook", "credential.helper", "gpg.program", "gpg.ssh.program",
    "interactive.diffFilter", "remote.origin.uploadpack", "remote.origin.receivepack",
    "remote.origin.vcs", "sendemail.smtpServer", "browser.x.cmd", "man.x.cmd", "trailer.x.command",
    "submodule.nested.update", "receive.procReceiveRefs", "http.proxy", "tar.x.command",
]  # fmt: skip
PLAIN_KEYS = {
    "commit.gpgSign": "true", "filter.x.required": "true", "gpg.format": "ssh", "protocol.allow": "always",
    "protocol.ext.allow": "always", "uploadpack.allowFilter": "true", "remote.origin.promisor": "true",
    "remote.origin.partialCloneFilter": "blob:none", "extensions.partialClone": "origin",
    "core.repositoryFormatVersion": "1", "pack.useBitmaps": "true",
}  # fmt: skip
COMMANDS = [
    "add",
    "commit-tree",
    "diff",
    "fetch",
    "pack-objects",
    "read-tree",
    "rev-parse",
    "upload-pack",
    "write-tree",
]


class Planted:
    """A clone in which every known lever of git points at a program that leaves a mark."""

    def __init__(self, clone: Path, *, plant: bool = True) -> None:
        self.clone, self.marks = clone, clone.parent / "marks"
        self.marks.mkdir()
        self.program = clone.parent / "planted"
        script = f'#!/bin/sh\ntouch \'{self.marks}\'/"$(basename "$0").$$"\ncat 2>/dev/null\nexit 0\n'
        self.program.write_text(script)
        self.program.chmod(0o755)
        if plant:
            self.into(clone)

    def into(self, repository: Path) -> None:
        """Plant it in this repository's hooks, config, attributes and alternates."""
        folder = repository / ".git"
        for name in HOOKS:
            target = folder / "hooks" / name
            target.parent.mkdir(exist_ok=True)
            target.unlink(missing_ok=True)
            target.symlink_to(self.program)
        settings = PLAIN_KEYS | dict.fromkeys(PROGRAM_KEYS, str(self.program))
        settings |= {f"alias.{name}": f"!{self.program}" for name in COMMANDS}
        settings |= {"core.hooksPath": str(folder / "hooks"), "core.attributesFile": str(folder / "all")}
        settings |= {
            "remote.origin.url": f"ext::{self.program}",
            "submodule.nested.url": f"ext::{self.program}",
        }
        settings |= {f"url.ext::{self.program}.insteadOf": "/", "include.path": str(folder / "more")}
        lines = [f"[core]\n\tsshCommand = {self.program}\n"]
        (folder / "more").write_text("".join(lines))
        for where in (folder / "all", folder / "info" / "attributes"):
            where.parent.mkdir(exist_ok=True)
            where.write_text("* filter=x diff=x merge=x\n")
        with (folder / "config").open("a") as file:
            for name, value in settings.items():
                section, _, key = name.rpartition(".")
                first, _, second = section.partition(".")
                head = f'[{first} "{second}"]' if second else f"[{first}]"
                file.write(f"{head}\n\t{key} = {value}\n")
        elsewhere = self.clone.parent / "elsewhere" / "objects"
        elsewhere.mkdir(parents=True, exist_ok=True)
        with (folder / "objects" / "info" / "alternates").open("a") as file:
            file.write(f"{elsewhere}\n| {self.program}\n")

    @property
    def ran(self) -> list[str]:
        return sorted(path.name for path in self.marks.iterdir())

    def clear(self) -> None:
        for path in self.marks.iterdir():
            path.unlink()


@pytest.fixture
def planted(remote: Remote, mirror: Mirror) -> tuple[Planted, str]:
    """The clone, and the commit with hostile attributes that its agent made before."""
    clone = clone_of(mirror, remote.first)
    sha = commit(
        clone, {".gitattributes": "* filter=x diff=x merge=x\n", "a.py": "a\n", "README.md": "Mine.\n"}
    )
    return Planted(clone), sha


def test_the_planted_programs_would_run(planted: tuple[Planted, str]) -> None:
    """The tests below have teeth: git in that very folder runs what was planted."""
    trap, _ = planted
    write(trap.clone, {"a.py": "changed\n"})
    subprocess.run(
        ["git", "-C", str(trap.clone), "status"], capture_output=True, check=False, timeout=300,
        env={"PATH": plain.base_environment()["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"},
    )  # fmt: skip
    assert trap.ran


def test_nothing_planted_runs_when_a_commit_is_taken_and_used(
    remote: Remote, mirror: Mirror, planted: tuple[Planted, str]
) -> None:
    trap, sha = planted
    mirror.take(trap.clone, sha, "refs/steroids/submissions/1")
    head = remote.push({"README.md": "A ledger.\nOf theirs.\n", "b.py": "b\n"})
    mirror.fetch_target()
    mirror.diff(remote.first, sha)
    mirror.changed(remote.first, sha)
    mirror.patch_id(remote.first, sha)
    mirror.read(sha, "a.py", 100)
    mirror.checkout(mirror.path.parent / "review", sha)
    with pytest.raises(GitError, match="could not apply"):
        mirror.rebase(sha, head, LANDED)
    bundle = mirror.bundle(sha, "refs/steroids/submissions/1", remote.first, MIB) or b""
    mirror.unbundle(bundle, "refs/steroids/submissions/1")
    assert trap.ran == []


def test_nothing_planted_runs_when_work_is_rebased_and_pushed(
    remote: Remote, mirror: Mirror, planted: tuple[Planted, str]
) -> None:
    trap, sha = planted
    mirror.take(trap.clone, sha, "refs/steroids/submissions/1")
    head = remote.push({"b.py": "b\n"})
    mirror.fetch_target()
    rebased = mirror.rebase(sha, head, LANDED)
    mirror.push(rebased)
    assert remote.head() == rebased
    assert trap.ran == []


def test_nothing_planted_runs_when_work_is_saved(mirror: Mirror, planted: tuple[Planted, str]) -> None:
    trap, sha = planted
    write(trap.clone, {"a.py": "b\n", "left.py": "left\n"})
    mirror.take(trap.clone, sha, "refs/steroids/salvage/1")
    saved = mirror.commit_tree_of(trap.clone, sha, "Saved")
    assert saved is not None
    assert mirror.read(saved, "left.py", 100) == "left\n"
    assert trap.ran == []


def test_nothing_planted_runs_in_a_repository_within_the_clone(
    mirror: Mirror, planted: tuple[Planted, str]
) -> None:
    trap, sha = planted
    nested = nested_in(trap)
    write(nested, {"n.py": "m\n"})
    mirror.take(trap.clone, sha, "refs/steroids/salvage/1")
    mirror.commit_tree_of(trap.clone, sha, "Saved")
    assert trap.ran == []


def nested_in(trap: Planted) -> Path:
    """Another repository in the work tree, with everything planted in it too."""
    nested = trap.clone / "nested"
    nested.mkdir()
    git(nested, "init", "--quiet")
    commit(nested, {"n.py": "n\n"})
    trap.into(nested)
    write(nested, {".gitattributes": "* filter=x\n"})
    return nested


def test_nothing_planted_runs_in_a_submodule_that_the_agent_committed(remote: Remote, mirror: Mirror) -> None:
    clone = clone_of(mirror, remote.first)
    (clone / "nested").mkdir()
    git(clone / "nested", "init", "--quiet")
    commit(clone / "nested", {"n.py": "n\n"})
    sha = commit(clone, {"a.py": "a\n"})  # `nested` is a commit of its own in this tree
    trap = Planted(clone)
    trap.into(clone / "nested")
    # As long as before, so that git must look into it, through the filter.
    write(clone / "nested", {".gitattributes": "* filter=x\n", "n.py": "m\n"})
    mirror.take(clone, sha, "refs/steroids/salvage/1")
    with contextlib.suppress(GitError):
        mirror.commit_tree_of(clone, sha, "Saved")
    assert trap.ran == []


def test_nothing_planted_runs_to_fill_in_a_missing_object(remote: Remote, mirror: Mirror) -> None:
    """A partial clone fetches what it lacks, with the program that its config names."""
    clone = clone_of(mirror, remote.first)
    sha = commit(clone, {"a.py": "a\n"})
    blob = git(clone, "rev-parse", "HEAD:a.py")
    (clone / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    trap = Planted(clone.with_name("elsewhere"), plant=False)
    for name, value in {
        "core.repositoryFormatVersion": "1", "extensions.partialClone": "origin",
        "remote.origin.promisor": "true", "remote.origin.url": str(remote.path),
        "remote.origin.uploadpack": str(trap.program),
    }.items():  # fmt: skip
        git(clone, "config", name, value)
    with pytest.raises(GitError):
        mirror.take(clone, sha, "refs/steroids/submissions/1")
    assert trap.ran == []


def test_a_clone_that_is_a_pointer_to_another_repository_gives_only_what_was_named(
    remote: Remote, mirror: Mirror, planted: tuple[Planted, str]
) -> None:
    trap, sha = planted
    trap.clone.rename(trap.clone.with_name("real"))
    trap.clone.mkdir()
    (trap.clone / ".git").write_text(f"gitdir: {trap.clone.with_name('real') / '.git'}\n")
    mirror.take(trap.clone, sha, "refs/steroids/submissions/1")
    assert mirror.resolve("refs/steroids/submissions/1") == sha
    assert trap.ran == []
