"""Core: plain git by subprocess, with nothing of the operator's configuration and no program of an agent's.

No command here runs in a folder whose `.git` an agent could have written; commits of agents are fetched into
the trusted mirror first.
"""

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
SAFE_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "credential.helper": "",
    "fetch.fsckObjects": "true",
    "gc.auto": "0",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
    "protocol.version": "2",
    "submodule.recurse": "false",
    "advice.detachedHead": "false",
    "core.quotePath": "false",
}
NAME, EMAIL = "Steroids", "steroids@localhost"
SALVAGED_FILE_MAX = 32 * 1024 * 1024  # bytes


class GitError(Exception):
    """Git said no. `text` is its last words, for people."""

    def __init__(self, what: str, text: str, *, code: int | None = None) -> None:
        self.what, self.text, self.code = what, text.strip()[-600:], code
        super().__init__(f"{what}: {self.text}" if self.text else what)


class Unreachable(GitError):
    """The remote cannot be reached, does not exist, or lets us not in."""


@dataclass(frozen=True, slots=True)
class Network:
    """How fetch and push may reach a remote; nothing else sees the operator's credentials."""

    protocols: tuple[str, ...] = ("https", "ssh", "file")
    timeout: float = 120.0
    credentials: Path | None = None  # a file of `git credential-store`, mode 0600
    environment: dict[str, str] = field(default_factory=dict)  # HOME and SSH_AUTH_SOCK of the operator


def base_environment() -> dict[str, str]:
    """An environment from nothing for git itself."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/true",
        "GIT_ALLOW_PROTOCOL": "file",
        "GIT_AUTHOR_NAME": NAME,
        "GIT_AUTHOR_EMAIL": EMAIL,
        "GIT_COMMITTER_NAME": NAME,
        "GIT_COMMITTER_EMAIL": EMAIL,
    }


def _command(arguments: Sequence[str], config: dict[str, str]) -> list[str]:
    words = ["git"]
    for name, value in config.items():
        words += ["-c", f"{name}={value}"]
    return [*words, *arguments]


def run(
    folder: Path | str,
    *arguments: str,
    timeout: float = 60.0,
    stdin: bytes | None = None,
    environment: dict[str, str] | None = None,
    ok: Sequence[int] = (0,),
) -> subprocess.CompletedProcess[bytes]:
    """One git command in `folder`, bounded in time. Raises GitError with git's own words."""
    return _run(_command(["-C", str(folder), *arguments], SAFE_CONFIG), timeout, stdin, environment, ok)


def _run(
    argv: list[str],
    timeout: float,
    stdin: bytes | None,
    environment: dict[str, str] | None,
    ok: Sequence[int],
) -> subprocess.CompletedProcess[bytes]:
    what = f"git {_verb(argv)}"
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=base_environment() | (environment or {}),
            start_new_session=True,
        )
    except OSError as error:
        raise GitError(what, f"cannot be run: {error.strerror}") from error
    try:
        out, err = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise GitError(what, f"took longer than {timeout:g} s") from error
    finally:
        if process.poll() is None:  # its helpers (ssh, git-remote-https) are in its group
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode not in ok:
        words = [err.decode("utf-8", "replace"), out.decode("utf-8", "replace")]
        raise GitError(what, "\n".join(filter(None, map(_without_hints, words))), code=process.returncode)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def _verb(argv: list[str]) -> str:
    """Git's own command in the argument list: the first word that is no option and no option's value."""
    words = iter(argv[1:])
    for word in words:
        if word in {"-c", "-C"}:
            next(words, None)
        else:
            return word
    return ""


def _without_hints(text: str) -> str:
    """Git's words without its advice on what to type next."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("hint:"))


def text(folder: Path | str, *arguments: str, timeout: float = 60.0) -> str:
    """Standard output of one git command, stripped."""
    return run(folder, *arguments, timeout=timeout).stdout.decode("utf-8", "replace").strip()


def check_branch(name: str) -> str:
    """The name, if it is one that a branch may have. Raises GitError."""
    try:
        run("/", "check-ref-format", "--branch", name)
    except GitError as error:
        raise GitError("target branch", f"{name!r} is no name of a branch") from error
    if name.startswith("refs/"):
        raise GitError("target branch", f"{name!r} is no name of a branch")
    return name


def over_network(folder: Path, network: Network, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """A fetch or a push. Raises Unreachable with a sentence for people."""
    config = dict(SAFE_CONFIG)
    if network.credentials and network.credentials.exists():
        config["credential.helper"] = f"store --file={network.credentials}"
    environment = {
        "GIT_ALLOW_PROTOCOL": ":".join(network.protocols),
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=15",
        **network.environment,
    }
    try:
        return _run(
            _command(["-C", str(folder), *arguments], config), network.timeout, None, environment, (0,)
        )
    except GitError as error:
        raise Unreachable(error.what, error.text, code=error.code) from error


def default_branch(url: str, network: Network) -> str:
    """The branch that the remote calls its default. Raises Unreachable, and GitError where it names none."""
    done = over_network(Path("/"), network, "ls-remote", "--symref", "--end-of-options", url, "HEAD")
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        if line.startswith("ref: refs/heads/"):
            return check_branch(line.removeprefix("ref: refs/heads/").partition("\t")[0])
    raise GitError(url, "names no default branch; it may be empty. Push a first commit, or name a branch")


class Mirror:
    """The trusted repository of one project on this host. No agent can write here."""

    def __init__(self, path: Path, url: str, branch: str, network: Network) -> None:
        self.path, self.url, self.network = path, url, network
        self.branch = check_branch(branch)
        self.target_ref = f"refs/steroids/target/{branch}"

    def ensure(self) -> None:
        """Make the repository where there is none."""
        if not (self.path / "HEAD").exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            run(self.path.parent, "init", "--quiet", "--bare", str(self.path))

    def fetch_target(self) -> str:
        """The present head of the target branch on the remote. Raises Unreachable."""
        self.ensure()
        with self.one_at_a_time():
            over_network(
                self.path, self.network, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules",
                "--no-write-fetch-head", "--end-of-options", self.url,
                f"+refs/heads/{self.branch}:{self.target_ref}",
            )  # fmt: skip
            return self.resolve(self.target_ref)

    @contextlib.contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Two fetches of one branch would fight for its ref; the lock goes with the process."""
        with open(self.path / "steroids.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def push(self, sha: str) -> None:
        """Push exactly this commit onto the target branch, never forced. Raises Unreachable."""
        over_network(
            self.path, self.network, "push", "--quiet", "--no-verify", "--porcelain",
            "--end-of-options", self.url, f"{sha}:refs/heads/{self.branch}",
        )  # fmt: skip

    def resolve(self, name: str) -> str:
        """The commit that a name means. Raises GitError."""
        return text(self.path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")

    def has(self, sha: str) -> bool:
        if not (self.path / "HEAD").exists():
            return False
        return run(self.path, "cat-file", "-e", f"{sha}^{{commit}}", ok=(0, 1, 128)).returncode == 0

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether `new` contains `old`. Raises GitError where one of them is unknown."""
        return run(self.path, "merge-base", "--is-ancestor", old, new, ok=(0, 1)).returncode == 0

    def merge_base(self, one: str, other: str) -> str:
        return text(self.path, "merge-base", one, other)

    def take(self, source: Path, sha: str, ref: str) -> None:
        """Fetch one commit out of an agent's clone and keep it under `ref`. Raises GitError."""
        run(
            self.path, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
            "--end-of-options", str(source), f"+{sha}:{ref}",
        )  # fmt: skip

    def keep(self, sha: str, ref: str) -> None:
        run(self.path, "update-ref", ref, sha)

    def bundle(self, ref: str, base: str) -> bytes:
        """The commits of `ref` that `base` lacks, as a thin bundle."""
        return run(self.path, "bundle", "create", "--quiet", "-", ref, f"^{base}", timeout=120).stdout

    def unbundle(self, data: bytes, ref: str) -> None:
        """Take the commits of a bundle that another host made."""
        file = self.path / f"incoming-{uuid.uuid4().hex}.bundle"
        file.write_bytes(data)
        try:
            run(
                self.path,
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                str(file),
                f"+{ref}:{ref}",
            )
        finally:
            file.unlink(missing_ok=True)

    def diff(self, base: str, sha: str, context: int = 3) -> str:
        """What changed, with so many unchanged lines around it."""
        raw = run(
            self.path, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames",
            f"--unified={context}", base, sha,
        ).stdout  # fmt: skip
        return raw.decode("utf-8", "replace")

    def changed(self, base: str, sha: str) -> list[tuple[str, int, int]]:
        """Path, lines added and lines removed; binary files count 0."""
        raw = run(self.path, "diff", "--no-ext-diff", "--no-renames", "--numstat", "-z", base, sha).stdout
        rows = []
        for entry in raw.decode("utf-8", "replace").split("\0"):
            if entry:
                added, removed, path = entry.split("\t", 2)
                rows.append((path, int(added) if added != "-" else 0, int(removed) if removed != "-" else 0))
        return rows

    def patch_id(self, base: str, sha: str) -> str:
        """A hash of the change itself, the same before and after a clean rebase."""
        raw = run(self.path, "diff", "--no-ext-diff", "--no-textconv", "--no-color", base, sha).stdout
        done = run(self.path, "patch-id", "--stable", stdin=raw)
        return (done.stdout.decode().split() or [""])[0]

    def read(self, sha: str, path: str, limit: int) -> str | None:
        """A file as it is in a commit; None where there is none. Links in the repository stay inert."""
        if path.startswith("/") or ".." in path.split("/"):
            return None
        done = run(self.path, "cat-file", "blob", f"{sha}:{path}", ok=(0, 128))
        return done.stdout[:limit].decode("utf-8", "replace") if done.returncode == 0 else None

    def names(self, sha: str) -> list[str]:
        """The paths at the top of a commit's tree."""
        return text(self.path, "ls-tree", "--name-only", sha).splitlines()

    def tree(self, sha: str, most: int) -> list[str]:
        """The paths of all files in a commit's tree, the first `most` of them."""
        raw = run(self.path, "ls-tree", "-r", "-z", "--name-only", sha).stdout
        return [path.decode("utf-8", "replace") for path in raw.split(b"\0", most)[:most] if path]

    def checkout(self, folder: Path, sha: str, branch: str = "") -> None:
        """A fresh private clone at `sha`, borrowing the mirror's objects, with no remote."""
        run(folder.parent, "init", "--quiet", str(folder))
        alternates = folder / ".git" / "objects" / "info" / "alternates"
        alternates.write_text(f"{self.path / 'objects'}\n")
        arguments = ["-b", branch] if branch else ["--detach"]
        run(folder, "checkout", "--quiet", *arguments, sha, timeout=120)

    def rebase(self, folder: Path, sha: str, onto: str) -> str:
        """The commit after a rebase in a clone of our own; the same one whoever does it, whenever.

        Raises GitError where it does not apply.
        """
        self.checkout(folder, sha)
        run(
            folder, "rebase", "--quiet", "--committer-date-is-author-date", onto, timeout=120,
            environment={"GIT_EDITOR": "true"},
        )  # fmt: skip
        return text(folder, "rev-parse", "HEAD")

    def commit_tree_of(self, folder: Path, parent: str, message: str) -> str | None:
        """A commit of everything in an agent's work tree, made with an index and a git folder of our own.

        None where nothing differs from `parent`.
        """
        index = self.path / f"salvage-{uuid.uuid4().hex}.index"
        environment = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder), "GIT_DIR": str(self.path)}
        try:
            run(self.path, "read-tree", parent, environment=environment)
            left_out = [*_repositories_in(folder), *_too_large_in(folder)]
            paths = "\0".join([".", *(f":(exclude,top,literal){path}" for path in left_out)])
            run(
                folder, "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul",
                stdin=paths.encode("utf-8", "surrogateescape"), environment=environment, timeout=120,
            )  # fmt: skip
            tree = run(self.path, "write-tree", environment=environment).stdout.decode().strip()
        finally:
            index.unlink(missing_ok=True)
        if tree == text(self.path, "rev-parse", f"{parent}^{{tree}}"):
            return None
        return text(self.path, "commit-tree", tree, "-p", parent, "-m", message)


def _repositories_in(folder: Path) -> list[str]:
    """Repositories inside of a work tree: git would run in them with the settings they bring along."""
    found = []
    for name, folders, files in os.walk(folder):
        if Path(name) != folder and (".git" in folders or ".git" in files):
            found.append(os.path.relpath(name, folder))
            folders.clear()
        elif ".git" in folders:
            folders.remove(".git")
    return found


def _too_large_in(folder: Path) -> Iterator[str]:
    """Files that are more likely a core dump than work; each would be read, packed and kept."""
    for name, folders, files in os.walk(folder):
        if ".git" in folders:
            folders.remove(".git")
        for file in files:
            path = os.path.join(name, file)
            with contextlib.suppress(OSError):
                if os.lstat(path).st_size > SALVAGED_FILE_MAX:
                    yield os.path.relpath(path, folder)
