"""Core: the trusted repository of one project on one host, kept in step with its remote."""

import contextlib
import fcntl
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from agents.hosts.git.commands import SHA, GitError, check_branch, options_of, run
from agents.hosts.git.picking import pick
from agents.hosts.git.remotes import HostTrouble, Network, NoBranch, Unfit, Unreachable, over_network
from agents.hosts.git.repository import AS_STORED, Repository
from agents.hosts.git.tags import Tags

CLONE_CONFIG = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
MOVED_MEANWHILE, NOT_THERE = "cannot lock ref", "couldn't find remote ref"
UNFIT = {
    "mismatched algorithms": "names its commits by SHA-256, which is not supported; convert it to SHA-1",
    "from promisor remote": "is a partial clone, which lacks files; name the one that it was made from, or "
    "complete it with `git fetch --refetch --no-filter`",
}
SHA1_LENGTH = 40
FETCH = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")

# Where each branch was when this process last heard of it, and when that was.
_heads: dict[tuple[Path, str, str], tuple[float, str]] = {}


class Mirror(Repository):
    """A repository that follows one branch of one remote."""

    def __init__(self, path: Path, url: str, branch: str, network: Network) -> None:
        super().__init__(path)
        self.url, self.network = url, network
        self.tags = Tags(path, url, network)
        self.branch = check_branch(branch)
        self.target_ref = f"refs/steroids/target/{branch}"

    def ensure(self) -> None:
        """Create the repository if it does not exist; of several callers, one does and the others wait."""
        if self.is_there():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.one_at_a_time():
            if not self.is_there():
                run(self.path.parent, "init", "--quiet", "--bare", str(self.path))

    def fetch_target(self) -> str:
        """Fetch the target branch and return its head. Raises Unreachable."""
        self.ensure()
        with self.one_at_a_time():
            self._fetch()
            try:
                head = self.resolve(self.target_ref)
            except GitError as error:
                said = (
                    "is a shallow clone, from which git fetches nothing; name the one that it was made from, "
                    "or complete it with `git fetch --unshallow`"
                )
                raise Unfit("The repository", said) from error
            with contextlib.suppress(GitError, OSError):  # tags only name versions; nothing waits for them
                self.tags.fetch(head)
            self._note_head(head)
            return head

    def _fetch(self) -> None:
        refs = f"+refs/heads/{self.branch}:{self.target_ref}"
        try:
            self.fetch_refs(refs)
        except (HostTrouble, Unreachable) as error:
            if said := next((said for sign, said in UNFIT.items() if sign in error.text), ""):
                raise Unfit("The repository", said) from error
            if MOVED_MEANWHILE in error.text:  # a push of our own was faster
                self.fetch_refs(refs)
                return
            if NOT_THERE not in error.text:
                raise
            said = "is not there; bring it back, or name another branch in the project's settings"
            raise NoBranch(f"branch {self.branch}", said) from error

    def target(self, seconds: float) -> str:
        """Return the head of the target branch as it was at most `seconds` ago. Raises Unreachable.

        Use it only if a slightly old head does no harm: the remote refuses a push that is based on one.
        """
        at, head = _heads.get(self._key, (0.0, ""))
        if head and time.monotonic() - at <= seconds and self.is_there():
            return head
        return self.fetch_target()

    @property
    def _key(self) -> tuple[Path, str, str]:
        return self.path, self.url, self.branch

    def _note_head(self, head: str) -> None:
        _heads[self._key] = time.monotonic(), head

    @contextlib.contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Hold the mirror's lock, since two fetches of one branch would fight over its ref.

        The lock is released if the process dies.
        """
        with self.lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @property
    def lock(self) -> Path:
        """The path of the file that is locked."""
        return self.path.with_name(f"{self.path.name}.lock")

    def forget(self) -> None:
        """Forget what this process knew about this repository and its branch, so that git is asked again."""
        super().forget()
        for key in [key for key in _heads if key[0] == self.path]:
            del _heads[key]

    def resolve(self, name: str) -> str:
        """Return the commit that a name means. Raises GitError."""
        if name == self.target_ref and self.is_there():
            with contextlib.suppress(OSError):  # as git writes it, unless it was packed
                sha = (self.path / name).read_text().rstrip("\n")
                if SHA.match(sha):
                    return sha
        return super().resolve(name)

    def push(self, sha: str) -> None:
        """Push exactly this commit onto the target branch, never forced. Raises Unreachable.

        Once the remote has taken the commit, git notes here that the branch is there. It only warns if
        another process's lock prevents that; then the branch is fetched.
        """
        before = ""
        with contextlib.suppress(GitError):  # it may be a new branch
            before = self.resolve(self.target_ref)
        followed = f"+refs/heads/{self.branch}:{self.target_ref}"
        named = options_of({"remote.target.url": self.url, "remote.target.fetch": followed})
        over_network(
            self.path, self.network, self.url, *named, "push", "--quiet", "--no-verify", "--porcelain",
            "--end-of-options", "target", f"{sha}:refs/heads/{self.branch}",
        )  # fmt: skip
        if self.resolve(self.target_ref) != sha:
            self.fetch_target()
            return
        self._note_head(sha)
        with contextlib.suppress(OSError):
            self.tags.move(before, sha)

    def take(self, source: Path, sha: str, ref: str, upload_pack: str = "git-upload-pack") -> None:
        """Fetch one commit out of a clone and keep it under `ref`. Raises GitError.

        `upload_pack` is the command that reads the clone; for an agent's clone it runs inside a sandbox.
        """
        run(
            self.path, *FETCH,
            f"--upload-pack={upload_pack}", "--end-of-options", str(source), f"+{sha}:{ref}",
        )  # fmt: skip
        self.note(sha)

    def fetch_commit(self, sha: str, ref: str) -> None:
        """Fetch one commit from any branch of the remote and keep it under `ref`. Raises Unreachable."""
        with self.one_at_a_time():
            self.fetch_refs(f"+{sha}:{ref}")

    def fetch_refs(self, refs: str) -> None:
        """Fetch what a refspec names; the caller holds the mirror's lock. Raises GitError."""
        words = (*FETCH, "--end-of-options", self.url, refs)
        over_network(self.path, self.network, self.url, *words)

    def bundle(self, sha: str, ref: str, base: str, limit: int) -> bytes | None:
        """Return the commits up to `sha` that `base` lacks, as a thin bundle that names the last one `ref`.

        Return None if it would be larger than `limit` bytes. It has the format of `git bundle`, which would
        only start another process to do the packing.
        """
        form = "# v2 git bundle\n" if len(sha) == SHA1_LENGTH else "# v3 git bundle\n@object-format=sha256\n"
        done = run(
            self.path, "pack-objects", "--stdout", "--revs", "--thin", "--delta-base-offset", "--quiet",
            stdin=f"{sha}\n^{base}\n".encode(), timeout=120, limit=limit, may_cut=True,
        )  # fmt: skip
        return None if done.is_cut else f"{form}-{base}\n{sha} {ref}\n\n".encode() + done.stdout

    def unbundle(self, data: bytes, ref: str) -> None:
        """Take the commits of a bundle that another host made. Raises GitError."""
        file = self.path / f"incoming-{uuid.uuid4().hex}.bundle"
        file.write_bytes(data)
        try:
            run(self.path, *FETCH, str(file), f"+{ref}:{ref}")
        finally:
            file.unlink(missing_ok=True)

    def checkout(self, folder: Path, sha: str, branch: str = "") -> None:
        """Make a fresh private clone at `sha`, which borrows the mirror's objects and has no remote."""
        _init(folder, self.path / "objects")
        tags = "".join(f"{sha} {name}\n" for name, sha in self.tags.known() if name != f"refs/tags/{branch}")
        (folder / ".git" / "packed-refs").write_text(tags, encoding="utf-8")
        arguments = ["-b", branch] if branch else ["--detach"]
        run(folder, "checkout", "--quiet", *arguments, sha, timeout=120)

    def rebase(self, sha: str, onto: str, ref: str, *, since: str = "") -> str:
        """Put the commits that `onto` lacks onto it, keep the last one under `ref`, and return its hash.

        The result is the same on every host, at any time. With `since`, only the commits after that one are
        taken. Raises GitError if the commits do not apply.
        """
        picked = pick(self.path, sha, onto, "" if since else self.merge_base(onto, sha), since)
        self.keep(picked, ref)
        self.note(picked)
        self.note_descent(onto, picked)
        return picked


def _init(folder: Path, objects: Path) -> None:
    """Create what `git init` would, borrowing those objects and without upkeep, as it is thrown away soon."""
    git = folder / ".git"
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (git / name).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(CLONE_CONFIG)
    (git / "info" / "attributes").write_text(AS_STORED)
    (git / "objects" / "info" / "alternates").write_text(f"{objects}\n")
