"""Core: plain git by subprocess, with nothing of the operator's configuration and no program of an agent's.

No command here runs in a folder whose `.git` an agent could have written; commits of agents are fetched into
the trusted mirror first.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from disputes.protocol.text.diffs import CUT
from tasks.repository_urls import redact

SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
# What git's check of objects forgives: old importers and mail clients wrote it into many histories, and
# nobody can mend those. Each is about how an author, a date or a mode is spelled. Whatever could lead git
# astray stays refused: names like `.git`, `..` or with a slash, entries twice or out of order, a null commit,
# `.gitmodules` that are a link or name an option, texts that go on behind a NUL.
FORGIVEN = (
    "badDate", "badDateOverflow", "badEmail", "badName", "badTimezone", "missingEmail",
    "missingNameBeforeEmail", "missingSpaceBeforeDate", "missingSpaceBeforeEmail", "multipleAuthors",
    "zeroPaddedDate", "zeroPaddedFilemode",
)  # fmt: skip
SAFE_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "credential.helper": "",
    "fetch.fsckObjects": "true",
    **{f"fetch.fsck.{kind}": "ignore" for kind in FORGIVEN},
    "gc.auto": "0",
    "maintenance.auto": "false",
    "core.bigFileThreshold": "8m",  # a larger file is named in a diff, not read into memory for it
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
    "protocol.version": "2",
    "submodule.recurse": "false",
    "advice.detachedHead": "false",
    "core.quotePath": "false",
    "core.sharedRepository": "0644",  # the users of runs borrow objects; nobody else gets as far as there
}
NAME, EMAIL = "Steroids", "steroids@localhost"
SALVAGED_FILE_MAX = 32 * 1024 * 1024  # bytes
OUTPUT_MAX = 64 * 1024 * 1024  # bytes that one command may print; the rest is never read
WORDS_MAX = 16 * 1024  # of its last words
LISTED_MAX = 4 * 1024 * 1024  # of what a remote lists
DIFF_MAX = 4 * 1024 * 1024  # of one diff
REPACK_SECONDS = 1800.0
LOOSE_MAX, PACKS_MAX = 2000, 20  # objects and packs, before a mirror is packed anew
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
TAGS_MAX = 5000
TAGS_EVERY = 60.0  # seconds after which tags are looked at again, though nobody else has moved the branch
TAG = re.compile(
    r"refs/tags/(?!HEAD$|steroids/)(?!.*(\.\.|//|@\{|/[.-]|\.lock(/|$)))"
    r"[^\x00-\x20\x7f~^:?*\[\\\ufffd]{1,200}(?<![/.])"
)
# What git's own check refuses, and full names of refs, which it takes for branches of that name.
BRANCH = re.compile(
    r"(?!HEAD$|@$|-|refs/|/)(?!.*(\.\.|//|/\.|@\{|\.lock(/|$)))(?!\.)[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])"
)
CHUNK = 64 * 1024
FACTS_MAX = 50_000
UNKNOWN_COMMIT = "Not a valid commit name"
# What git says of this machine's own disk, permissions and repository; a remote's words begin with its name.
OWN_TROUBLE = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Input/output error|unable to write"
    r"|insufficient permission|\.lock': |cannot lock ref|not a git repository: |corrupt|bad object"
    r"|object file|packfile \S+ |to be a packfile|invalid sha1 pointer|unable to read (tree|sha1)"
    r"|missing (blob|tree|commit)|valid object|broken ref"
)
OF_REMOTE = re.compile(r"remote: |\s*!")
LEASH = Path(__file__).with_name("parent_death.py")


class GitError(Exception):
    """A git command failed. `text` is the end of its output, for people, with passwords removed."""

    def __init__(self, what: str, text: str, *, code: int | None = None) -> None:
        words = redact(text.strip()[-WORDS_MAX:])
        self.what, self.text, self.code = what, words[-600:], code
        super().__init__(f"{what}: {self.text}" if self.text else what)


class Unreachable(GitError):
    """The remote cannot be reached, does not exist, or lets us not in. `blame` says so in a few words."""

    blame = "cannot be reached"


class HostTrouble(Unreachable):
    """This host's own disk or mirror stands in the way; the remote has nothing to do with it."""

    blame = "cannot be worked on by this host"


class Interrupted(Unreachable):
    """This host is stopping and ended its calls to remotes; that says nothing about the remote."""


class NoDefaultBranch(GitError):
    """The remote answers, but its HEAD names no branch that exists. The text says what there is."""


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


def _options(config: dict[str, str]) -> list[str]:
    return [word for name, value in config.items() for word in ("-c", f"{name}={value}")]


@dataclass(frozen=True, slots=True)
class Done:
    """How one command of git ended."""

    returncode: int
    stdout: bytes
    is_cut: bool = False  # it would have printed more, and was ended


def run(
    folder: Path | str,
    *arguments: str,
    timeout: float = 60.0,
    stdin: bytes | BinaryIO | None = None,
    environment: dict[str, str] | None = None,
    ok: Sequence[int] = (0,),
    limit: int = OUTPUT_MAX,
    may_cut: bool = False,
) -> Done:
    """One git command in `folder`, bounded in time and in what it prints.

    At `limit` bytes of output git is ended: with `may_cut` what was read is kept, else that is an error.
    Raises GitError with git's own words.
    """
    argv = ["git", *_options(SAFE_CONFIG), "-C", str(folder), *arguments]
    call = _Call(_verb(arguments), argv, stdin, environment)
    return call.finish(timeout, ok, limit, may_cut)


class _Call:
    """A command of git while it runs; the helpers that it starts (ssh, git-remote-https) are its group."""

    def __init__(
        self, verb: str, argv: list[str], stdin: bytes | BinaryIO | None, environment: dict[str, str] | None
    ) -> None:
        self.what = f"git {verb}"
        self.given = stdin if isinstance(stdin, bytes) else b""
        try:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if isinstance(stdin, bytes) else stdin or subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=base_environment() | (environment or {}),
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(self.what, f"cannot be run: {error.strerror}") from error

    def finish(self, timeout: float, ok: Sequence[int], limit: int, may_cut: bool) -> Done:
        """Wait for its end. Raises GitError."""
        deadline = time.monotonic() + timeout
        with self.process as process:
            try:
                out, err, is_cut = self._talk(deadline, limit)
                if not is_cut:
                    process.wait(max(deadline - time.monotonic(), 0.01))
            except (TimeoutError, subprocess.TimeoutExpired) as error:
                raise GitError(self.what, f"took longer than {timeout:g} s") from error
            finally:
                self.kill()
        if is_cut and may_cut:
            return Done(0, out, is_cut=True)
        if is_cut:
            raise GitError(self.what, f"printed more than {limit} bytes")
        if process.returncode not in ok:
            words = [err.decode("utf-8", "replace"), out[-WORDS_MAX:].decode("utf-8", "replace")]
            text = "\n".join(filter(None, map(_without_hints, words)))
            raise GitError(self.what, text, code=process.returncode)
        return Done(process.returncode, out)

    def kill(self) -> None:
        """End the whole group, where it has not ended by itself."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def _talk(self, deadline: float, limit: int) -> tuple[bytes, bytes, bool]:
        """Hand it its input and read what it prints, up to the limit. Raises TimeoutError."""
        process, given = self.process, memoryview(self.given)
        out, err = bytearray(), bytearray()
        with selectors.DefaultSelector() as ready:
            for stream, kept in ((process.stdout, out), (process.stderr, err)):
                ready.register(stream, selectors.EVENT_READ, kept)  # type: ignore[arg-type]
            if process.stdin is not None:
                os.set_blocking(process.stdin.fileno(), False)
                ready.register(process.stdin, selectors.EVENT_WRITE)
            while ready.get_map():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                for key, _ in ready.select(left):
                    if key.fileobj is process.stdin:
                        try:
                            given = given[os.write(key.fd, given[:CHUNK]) :]
                        except BrokenPipeError:  # it has read enough
                            given = given[:0]
                        if not given:
                            ready.unregister(key.fileobj)
                            process.stdin.close()
                        continue
                    chunk = os.read(key.fd, CHUNK)
                    key.data.extend(chunk)
                    if not chunk:
                        ready.unregister(key.fileobj)
                    elif key.data is err:
                        del err[:-WORDS_MAX]
                    elif len(out) > limit:
                        return bytes(out[:limit]), bytes(err), True
        return bytes(out), bytes(err), False


def _verb(arguments: Sequence[str]) -> str:
    """Git's own command among the arguments: the first word that is no option and no option's value."""
    words = iter(arguments)
    for word in words:
        if word == "-c":
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


def version() -> str:
    """Which git this is. Raises GitError."""
    return text("/", "version").removeprefix("git version ")


def check_branch(name: str) -> str:
    """The name, if git lets a branch have it and it is no full name of a ref. Raises GitError."""
    if not BRANCH.fullmatch(name):
        raise GitError("target branch", f"{name!r} is no name of a branch")
    return name


# --- Calls to remotes --------------------------------------------------------------------------------------


class _Calls:
    """The calls to remotes that this process has under way. They may hang; a host that stops ends them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.live: set[_Call] = set()
        self.are_over = False

    @contextlib.contextmanager
    def one(
        self, verb: str, argv: list[str], stdin: bytes | None, environment: dict[str, str]
    ) -> Iterator[_Call]:
        """A call that `end` ends. Raises Interrupted once that was called."""
        with self.lock:
            if self.are_over:
                raise Interrupted(f"git {verb}", "was not begun, because this host stops")
            call = _Call(verb, argv, stdin, environment)
            self.live.add(call)
        try:
            yield call
        finally:
            with self.lock:
                self.live.discard(call)

    def end(self) -> None:
        with self.lock:
            self.are_over = True
            for call in self.live:
                call.kill()


_calls = _Calls()


def end_calls() -> None:
    """End every call to a remote and let none begin, until `allow_calls`: this host stops."""
    _calls.end()


def allow_calls() -> None:
    """Remotes may be called, again."""
    _calls.are_over = False


def over_network(
    folder: Path, network: Network, *arguments: str,
    stdin: bytes | None = None, limit: int = OUTPUT_MAX, may_cut: bool = False,
    environment: dict[str, str] | None = None,
) -> Done:  # fmt: skip
    """A call to a remote; it dies with this process. Raises Unreachable with a sentence for people."""
    config = dict(SAFE_CONFIG)
    if network.credentials and network.credentials.exists():
        config["credential.helper"] = f"store --file={network.credentials}"
    environment = {
        "GIT_ALLOW_PROTOCOL": ":".join(network.protocols),
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=15",
        **network.environment,
        **(environment or {}),
    }
    argv = [
        sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), "--group",
        shutil.which("git") or "/usr/bin/git",
        *_options(config), "-C", str(folder), *arguments,
    ]  # fmt: skip
    try:
        with _calls.one(_verb(arguments), argv, stdin, environment) as call:
            return call.finish(network.timeout, (0,), limit, may_cut)
    except Interrupted:
        raise
    except GitError as error:
        if _calls.are_over:
            raise Interrupted(error.what, "was ended, because this host stops") from error
        is_ours = any(
            OWN_TROUBLE.search(line) for line in error.text.splitlines() if not OF_REMOTE.match(line)
        )
        kind = HostTrouble if is_ours else Unreachable
        raise kind(error.what, error.text, code=error.code) from error


def default_branch(url: str, network: Network) -> str:
    """The branch that the remote's HEAD names.

    Raises Unreachable, and NoDefaultBranch where the repository is empty or its HEAD names none that exists.
    """
    ref = head = ""
    for what, name in _listed(url, network, "--symref", "HEAD"):
        if name == "HEAD" and what.startswith("ref: "):
            ref = what.removeprefix("ref: refs/heads/")
        elif name == "HEAD":
            head = what
    if ref and head:
        return check_branch(ref)
    branches = sorted(
        name.removeprefix("refs/heads/") for _, name in _listed(url, network, "--heads", "refs/heads/*")
    )
    if not branches:
        raise NoDefaultBranch(redact(url), "is empty. Push a first commit to it, then try again.")
    there = ", ".join(branches[:10]) + (", …" if len(branches) > 10 else "")
    raise NoDefaultBranch(
        redact(url), f"has no default branch: its HEAD names none that exists. Name one yourself: {there}."
    )


def has_branch(url: str, branch: str, network: Network) -> bool:
    """Whether the remote has this branch. Raises Unreachable."""
    wanted = f"refs/heads/{check_branch(branch)}"
    return any(name == wanted for _, name in _listed(url, network, "--heads", wanted))


def _listed(url: str, network: Network, option: str, pattern: str) -> list[tuple[str, str]]:
    """What the remote lists, each as what it is and its name; the beginning of a very long list."""
    done = over_network(
        Path("/"), network, "ls-remote", "--quiet", option, "--end-of-options", url, pattern,
        limit=LISTED_MAX, may_cut=True, environment={"GIT_DIR": "/dev/null"},
    )  # fmt: skip
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    return [(what, name) for what, tab, name in (line.partition("\t") for line in lines) if tab]


class _Memory:
    """What this process knows of repositories without asking git again.

    Whether one commit contains another never changes. What was taken stays until a repository is mended or
    packed anew. Where a remote's branch is may change at any time; that is only as good as it is young.
    """

    def __init__(self) -> None:
        self.contained: dict[tuple[str, str], bool] = {}
        self.present: dict[tuple[Path, int], set[str]] = {}
        self.heads: dict[tuple[Path, str, str], tuple[float, str]] = {}

    def note_contained(self, old: str, new: str, answer: bool) -> None:
        if len(self.contained) >= FACTS_MAX:
            self.contained.clear()
        self.contained[old, new] = answer
        if answer and old != new:
            self.contained[new, old] = False

    def present_in(self, repository: Path) -> set[str]:
        """The commits that were seen there; another repository in its place has a younger HEAD."""
        known = self.present.setdefault((repository, os.stat(repository / "HEAD").st_mtime_ns), set())
        if len(known) >= FACTS_MAX:
            known.clear()
        return known

    def forget(self, repository: Path) -> None:
        """Something about this repository is to be asked anew."""
        self.present = {key: value for key, value in self.present.items() if key[0] != repository}
        self.heads = {key: value for key, value in self.heads.items() if key[0] != repository}


_memory = _Memory()


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
            head = self.resolve(self.target_ref)
            with contextlib.suppress(GitError, OSError):  # they only name versions; nothing waits for them
                self._fetch_tags(head)
            self._note_head(head)
            return head

    def target(self, seconds: float) -> str:
        """The head of the target branch as it was at most so long ago. Raises Unreachable.

        Only for what comes right with a head that is a little old: the remote refuses a push that is.
        """
        at, head = _memory.heads.get(self._key, (0.0, ""))
        if head and time.monotonic() - at <= seconds and (self.path / "HEAD").exists():
            return head
        return self.fetch_target()

    @property
    def _key(self) -> tuple[Path, str, str]:
        return self.path, self.url, self.branch

    def _note_head(self, head: str) -> None:
        _memory.heads[self._key] = time.monotonic(), head

    # --- Tags: `git describe` and setuptools_scm say which version a commit is ------------------------------

    def _fetch_tags(self, head: str) -> None:
        """Keep the names of the remote's tags on commits that are here, and the objects of annotated ones.

        They are kept in a file and not as refs: what a remote calls its tags can then collide with nothing.
        The remote is asked when the branch has moved, or after a while.
        """
        file = self.path / "steroids.tags"
        with contextlib.suppress(OSError), file.open(encoding="utf-8") as known:
            is_old = time.time() - os.fstat(known.fileno()).st_mtime > TAGS_EVERY
            if known.readline().rstrip("\n") == head and not is_old:
                return
        try:
            tags = self._remote_tags()
        except GitError:
            tags = dict(self.tags())
        self._write_tags(head, tags)

    def _move_tags(self, before: str, head: str) -> None:
        """Our own push moved the branch and no tag: what is known of them is as good as it was."""
        file = self.path / "steroids.tags"
        asked_at = file.stat().st_mtime
        with file.open(encoding="utf-8") as known:
            is_of_before = known.readline().rstrip("\n") == before
        if is_of_before:
            self._write_tags(head, dict(self.tags()))
            os.utime(file, (asked_at, asked_at))

    def _write_tags(self, head: str, tags: dict[str, str]) -> None:
        file = self.path / "steroids.tags"
        temporary = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
        lines = [head, *(f"{sha} {name}" for name, sha in tags.items())]
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        temporary.replace(file)

    def _remote_tags(self) -> dict[str, str]:
        """Each tag's full name and what it names, an annotated one's own object or a commit."""
        found: dict[str, list[str]] = {}
        for sha, name in _listed(self.url, self.network, "--tags", "refs/tags/*"):
            name = name.removesuffix("^{}")
            if SHA.match(sha) and TAG.fullmatch(name) and name.isprintable():
                found.setdefault(name, []).append(sha)
        types = self._types([sha for shas in found.values() for sha in shas])
        here = {name: shas for name, shas in found.items() if types.get(shas[-1]) == "commit"}
        chosen = dict(sorted(here.items(), key=lambda tag: _by_numbers(tag[0]))[-TAGS_MAX:])
        new = {shas[0]: name for name, shas in chosen.items() if shas[0] not in types}
        if new:
            specs = "".join(f"+{name}:refs/steroids/tags/{sha}\n" for sha, name in new.items())
            with contextlib.suppress(GitError):  # of a tag that git's checks refuse
                over_network(
                    self.path, self.network, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules",
                    "--no-write-fetch-head", "--stdin", "--end-of-options", self.url, stdin=specs.encode(),
                )  # fmt: skip
            types |= self._types(list(new))
        return {name: shas[0] for name, shas in chosen.items() if shas[0] in types}

    def _types(self, shas: list[str]) -> dict[str, str]:
        """What each of these objects is; those that are not here are left out."""
        asked = "".join(f"{sha}\n" for sha in shas).encode()
        done = run(self.path, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
        rows = (line.split(" ") for line in done.stdout.decode().splitlines())
        return {row[0]: row[1] for row in rows if len(row) == 2 and row[1] != "missing"}

    def tags(self) -> Iterator[tuple[str, str]]:
        """The full names of the tags that are known here, and what each names."""
        with contextlib.suppress(OSError), (self.path / "steroids.tags").open(encoding="utf-8") as file:
            next(file, "")
            for line in file:
                sha, _, name = line.rstrip("\n").partition(" ")
                yield name, sha

    @contextlib.contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Two fetches of one branch would fight for its ref; the lock goes with the process."""
        with open(self.path.with_name(f"{self.path.name}.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def push(self, sha: str) -> None:
        """Push exactly this commit onto the target branch, never forced. Raises Unreachable.

        Once the remote has taken it, that is where the branch is.
        """
        before = ""
        with contextlib.suppress(GitError):  # it may be a new branch
            before = self.resolve(self.target_ref)
        followed = f"+refs/heads/{self.branch}:{self.target_ref}"
        named = _options({"remote.target.url": self.url, "remote.target.fetch": followed})
        over_network(
            self.path, self.network, *named, "push", "--quiet", "--no-verify", "--porcelain",
            "--end-of-options", "target", f"{sha}:refs/heads/{self.branch}",
        )  # fmt: skip
        self._note_head(sha)
        with contextlib.suppress(OSError):
            self._move_tags(before, sha)

    def resolve(self, name: str) -> str:
        """The commit that a name means. Raises GitError."""
        if name == self.target_ref and (self.path / "HEAD").exists():
            with contextlib.suppress(OSError):  # as git writes it, unless it was packed
                sha = (self.path / name).read_text().rstrip("\n")
                if SHA.match(sha):
                    return sha
        return text(self.path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")

    def has(self, sha: str) -> bool:
        if not (self.path / "HEAD").exists():
            return False
        known = _memory.present_in(self.path)
        if sha in known:
            return True
        is_here = run(self.path, "cat-file", "-e", f"{sha}^{{commit}}", ok=(0, 1, 128)).returncode == 0
        if is_here and SHA.match(sha):
            known.add(sha)
        return is_here

    def forget(self) -> None:
        """Ask anew what this process knew of this repository: something may be gone from it."""
        _memory.forget(self.path)

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether `new` contains `old`. Raises GitError where one of them is unknown."""
        known = True if old == new else _memory.contained.get((old, new))
        if known is None:
            done = run(self.path, "merge-base", "--is-ancestor", old, new, ok=(0, 1))
            known = done.returncode == 0
            if SHA.match(old) and SHA.match(new):
                _memory.note_contained(old, new, known)
        return known

    def contains(self, new: str, old: str) -> bool:
        """The same, and no where one of them is unknown. Raises GitError where git fails otherwise."""
        try:
            return self.is_ancestor(old, new)
        except GitError as error:
            if UNKNOWN_COMMIT in error.text:
                return False
            raise

    def merge_base(self, one: str, other: str) -> str:
        if _memory.contained.get((one, other)):
            return one
        return text(self.path, "merge-base", one, other)

    def take(self, source: Path, sha: str, ref: str, upload_pack: str = "git-upload-pack") -> None:
        """Fetch one commit out of a clone and keep it under `ref`. Raises GitError.

        `upload_pack` is the command that reads the clone; of an agent's clone it reads from inside a sandbox.
        """
        run(
            self.path, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
            f"--upload-pack={upload_pack}", "--end-of-options", str(source), f"+{sha}:{ref}",
        )  # fmt: skip
        _memory.present_in(self.path).add(sha)

    def fetch_commit(self, sha: str, ref: str) -> None:
        """Fetch one commit of the remote, on whatever branch, and keep it under `ref`. Raises Unreachable."""
        with self.one_at_a_time():
            over_network(
                self.path, self.network, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules",
                "--no-write-fetch-head", "--end-of-options", self.url, f"+{sha}:{ref}",
            )  # fmt: skip

    def keep(self, sha: str, ref: str) -> None:
        run(self.path, "update-ref", ref, sha)

    def refs(self, below: str) -> list[str]:
        """The full names of the refs below a name such as refs/steroids/submissions/."""
        return text(self.path, "for-each-ref", "--format=%(refname)", below).splitlines()

    def drop(self, refs: Sequence[str]) -> None:
        """Forget these refs. Raises GitError."""
        run(self.path, "update-ref", "--stdin", stdin="".join(f"delete {ref}\n" for ref in refs).encode())

    def is_scattered(self) -> bool:
        """Whether it has come to consist of many files. Raises GitError."""
        lines = text(self.path, "count-objects", "-v").splitlines()
        counted = {name: int(number) for name, _, number in (line.partition(": ") for line in lines)}
        return counted["count"] >= LOOSE_MAX or counted["packs"] >= PACKS_MAX

    def repack(self, *, prune_days: float | None) -> None:
        """One pack of all there is. With `prune_days`, what no ref needs goes once it is older than that.

        That is only safe while no clone borrows objects from here. Raises GitError.
        """
        self.forget()
        run(self.path, "pack-refs", "--all")
        if prune_days is None:
            run(self.path, "repack", "-a", "-d", "-k", "--quiet", timeout=REPACK_SECONDS)
        else:
            old = f"--prune={max(prune_days, 1):.0f}.days.ago"
            run(self.path, "gc", "--quiet", old, timeout=REPACK_SECONDS)

    def bundle(self, ref: str, base: str, limit: int) -> bytes | None:
        """The commits of `ref` that `base` lacks, as a thin bundle; None where it is larger."""
        done = run(
            self.path, "bundle", "create", "--quiet", "-", ref, f"^{base}",
            timeout=120, limit=limit, may_cut=True,
        )  # fmt: skip
        return None if done.is_cut else done.stdout

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

    def diff(self, base: str, sha: str, context: int = 3, limit: int = DIFF_MAX) -> str:
        """What changed, with so many unchanged lines around it. Very large files are only named.

        A change of more than `limit` bytes is cut there, and its last line says so.
        """
        done = run(
            self.path, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames",
            f"--unified={context}", base, sha, limit=limit, may_cut=True,
        )  # fmt: skip
        text = done.stdout.decode("utf-8", "replace")
        return text[: text.rfind("\n") + 1] + CUT if done.is_cut else text

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
        """A hash of the change itself, the same before and after a clean rebase.

        The text of each change counts, and not where in its file it is; of binary and very large files the
        contents count by their names in git.
        """
        file = self.path / f"patch-{uuid.uuid4().hex}.diff"  # for it may be large
        try:
            run(
                self.path, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index",
                f"--output={file}", base, sha, timeout=120,
            )  # fmt: skip
            return _hash_of_change(file)
        finally:
            file.unlink(missing_ok=True)

    def read(self, sha: str, path: str, limit: int) -> str | None:
        """A file as it is in a commit; None where there is none. Links in the repository stay inert."""
        if path.startswith("/") or ".." in path.split("/"):
            return None
        done = run(
            self.path, "cat-file", "blob", f"{sha}:{path}", ok=(0, 128), limit=limit, may_cut=True,
        )  # fmt: skip
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None

    def names(self, sha: str) -> list[str]:
        """The paths at the top of a commit's tree."""
        return text(self.path, "ls-tree", "--name-only", sha).splitlines()

    def tree(self, sha: str, most: int) -> list[str]:
        """The paths of all files in a commit's tree, the first `most` of them."""
        raw = run(self.path, "ls-tree", "-r", "-z", "--name-only", sha).stdout
        return [path.decode("utf-8", "replace") for path in raw.split(b"\0", most)[:most] if path]

    def checkout(self, folder: Path, sha: str, branch: str = "") -> None:
        """A fresh private clone at `sha`, borrowing the mirror's objects, with no remote."""
        _init(folder, self.path / "objects")
        tags = "".join(f"{sha} {name}\n" for name, sha in self.tags() if name != f"refs/tags/{branch}")
        (folder / ".git" / "packed-refs").write_text(tags, encoding="utf-8")
        arguments = ["-b", branch] if branch else ["--detach"]
        run(folder, "checkout", "--quiet", *arguments, sha, timeout=120)

    def rebase(self, folder: Path, sha: str, onto: str, *, since: str = "") -> str:
        """Rebase in a clone of our own. Returns the commit, which is the same on every host, at any time.

        With `since`, only the commits after that one. Raises GitError where it does not apply.
        """
        self.checkout(folder, sha)
        where = ["--onto", onto, since] if since else [onto]
        run(
            folder, "rebase", "--quiet", "--committer-date-is-author-date", *where, timeout=120,
            environment={"GIT_EDITOR": "true"},
        )  # fmt: skip
        return text(folder, "rev-parse", "HEAD")

    def _links(self, environment: dict[str, str]) -> Iterator[str]:
        """The places of submodules in that index. Files that lie there are not the repository's own."""
        listed = run(self.path, "ls-files", "--stage", "-z", environment=environment).stdout
        for entry in listed.split(b"\0"):
            if entry.startswith(b"160000 "):
                yield os.fsdecode(entry.partition(b"\t")[2])

    def commit_tree_of(self, folder: Path, parent: str, message: str) -> str | None:
        """A commit of everything in an agent's work tree, made with an index and a git folder of our own.

        None where nothing differs from `parent`.
        """
        index = self.path / f"salvage-{uuid.uuid4().hex}.index"
        environment = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder), "GIT_DIR": str(self.path)}
        try:
            run(self.path, "read-tree", parent, environment=environment)
            left_out = [*self._links(environment), *_repositories_in(folder), *_too_large_in(folder)]
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

    def is_plain_file(self, sha: str, path: str) -> bool:
        """Whether the path is a file of a commit, and neither a link nor a program. Raises GitError."""
        done = run(self.path, "ls-tree", "-z", sha, "--", f":(top,literal){path}", ok=(0, 128))
        return done.returncode == 0 and done.stdout.startswith(b"100644 blob ")

    def commit_files(
        self, parent: str, below: str, files: Mapping[str, str], message: str, at: datetime | None = None
    ) -> str | None:
        """A commit on `parent` with these files, by their whole paths; `below` holds no others.

        It says that it was made `at` that time, so that it is the same on every host; None: now. None where
        nothing differs from `parent`. Raises GitError.
        """
        index = self.path / f"records-{uuid.uuid4().hex}.index"
        environment = {"GIT_INDEX_FILE": str(index), "GIT_DIR": str(self.path)}
        try:
            run(self.path, "read-tree", parent, environment=environment)
            old = run(self.path, "ls-files", "-z", "--", f":(top,literal){below}/", environment=environment)
            gone = [name for name in old.stdout.decode("utf-8", "surrogateescape").split("\0") if name]
            entries = [f"0 {'0' * 40}\t{name}" for name in gone if name not in files]
            for name, words in files.items():
                blob = run(self.path, "hash-object", "-w", "--stdin", stdin=words.encode("utf-8", "replace"))
                entries.append(f"100644 {blob.stdout.decode().strip()}\t{name}")
            run(
                self.path, "update-index", "-z", "--index-info", environment=environment,
                stdin="".join(f"{entry}\0" for entry in entries).encode("utf-8", "surrogateescape"),
            )  # fmt: skip
            tree = run(self.path, "write-tree", environment=environment).stdout.decode().strip()
        finally:
            index.unlink(missing_ok=True)
        if tree == text(self.path, "rev-parse", f"{parent}^{{tree}}"):
            return None
        date = f"{int(at.timestamp())} +0000" if at else ""
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if at else {}
        made = run(self.path, "commit-tree", tree, "-p", parent, "-m", message, environment=dates)
        return made.stdout.decode().strip()


def _init(folder: Path, objects: Path) -> None:
    """What `git init` makes, with those objects to borrow, and no upkeep: it is thrown away soon."""
    git = folder / ".git"
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (git / name).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(CLONE_CONFIG)
    (git / "objects" / "info" / "alternates").write_text(f"{objects}\n")


def _hash_of_change(patch: Path) -> str:
    """Empty for a patch without lines."""
    digest, index, is_empty = hashlib.sha256(), b"", True
    with patch.open("rb") as lines:
        for line in lines:
            is_empty = False
            if line.startswith(b"index "):
                index = line
            elif line.startswith(b"Binary files "):
                digest.update(index + line)
            elif not line.startswith((b"@@ ", b"similarity index ", b"dissimilarity index ")):
                digest.update(line)
    return "" if is_empty else digest.hexdigest()


def _by_numbers(name: str) -> list[tuple[int, str]]:
    """A key by which v1.10 comes after v1.9."""
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"([0-9]{1,18})", name)]


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
