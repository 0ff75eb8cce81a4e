"""Core: plain git by subprocess, with none of the operator's configuration and none of an agent's programs.

No command here runs in a folder whose `.git` an agent could have written; agents' commits are first fetched
into the trusted mirror.
"""

import contextlib
import fcntl
import os
import re
import resource
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from tasks.text.branches import is_branch_name
from tasks.text.regex import regex
from tasks.text.repository_urls import redact
from tasks.text.storable import storable

SHA = regex(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
# What git's check of objects forgives, because old importers and mail clients wrote it into many histories
# that nobody can mend. Each is about how an author, a date or a mode is spelled. Whatever could lead git
# astray is still refused: names like `.git`, `..` or with a slash, duplicate or unsorted entries, a null
# commit, a `.gitmodules` that is a link or names an option, texts that continue after a NUL.
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
    "core.sharedRepository": "0644",  # users of runs borrow objects; nobody else can reach the folder
}
NAME, EMAIL = "Steroids", "steroids@localhost"
OUTPUT_MAX = 64 * 1024 * 1024  # bytes that one command may print; the rest is never read
WORDS_MAX = 16 * 1024  # bytes of what git says last
TOLD_MAX, FIRST_MAX = 450, 300  # characters of it that people are told, which fit a row; of its first line
CHUNK = 64 * 1024
# Bytes that one process of git may take: a commit of a few kilobytes can stand for more than any machine has.
MEMORY_MAX = max(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4, 1024**3)
# What git says about this machine's own disk, permissions and repository; a remote's lines have a prefix.
DISK = r"No space left on|Out of diskspace|Disk quota exceeded|Read-only file system|Input/output error"
OWN_TROUBLE = regex(
    DISK + r"|unable to write"
    r"|insufficient permission|\.lock': |cannot lock ref|not a git repository: |corrupt|bad object"
    r"|object file|packfile \S+ |to be a packfile|invalid sha1 pointer|unable to read (tree|sha1)"
    r"|missing (blob|tree|commit)|valid object|broken ref"
)
OUT_OF_MEMORY = regex(r"(?im)^(?!remote: ).*(out of memory|unable to create thread)")
TOO_LARGE = regex(r"(?m)^(?!remote: ).*File too large")
OF_REMOTE = regex(r"remote: |\s*!")


class GitError(Exception):
    """A git command failed, and `text` is the end of its output, for people, with passwords removed.

    For what we find out ourselves, `what` and `text` are the beginning and the end of a sentence.
    """

    def __init__(self, what: str, text: str, *, code: int | None = None) -> None:
        words = redact(storable(text).strip()[-WORDS_MAX:])
        self.what, self.text, self.code = what, words[-600:], code
        colon = ":" if what.startswith("git ") else ""
        super().__init__(f"{what}{colon} {_told(words)}" if words else what)

    def is_of_host(self) -> bool:
        """Whether the cause was this host's own disk or repository."""
        lines = (line for line in self.text.splitlines() if not OF_REMOTE.match(line))
        return any(OWN_TROUBLE.search(line) for line in lines)

    def is_of_disk(self) -> bool:
        """Whether this host's disk failed to read or write, which says nothing about the work."""
        return re.search(DISK, self.text) is not None


def _told(words: str) -> str:
    """Return what people are told of git's words: its own first line, and as many of the last as fit.

    What git itself finds wrong stands in the first, before its advice; why a remote refuses, in the last.
    """
    lines = [line.rstrip() for line in words.splitlines()]
    told = "\n".join(lines)
    if len(told) <= TOLD_MAX:
        return told
    first = f"{lines[0][:FIRST_MAX]}\n" if lines[0].startswith(("error: ", "fatal: ")) else ""
    cut = told[len(first) - TOLD_MAX :]
    return f"{first}… {(cut.partition(chr(10))[2] or cut).lstrip()}"


def base_environment() -> dict[str, str]:
    """Return the environment for git itself, built from scratch."""
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


def options_of(config: dict[str, str]) -> list[str]:
    return [word for name, value in config.items() for word in ("-c", f"{name}={value}")]


@dataclass(frozen=True, slots=True)
class Done:
    """How one git command ended."""

    returncode: int
    stdout: bytes
    is_cut: bool = False  # it was ended because it would have printed more
    stderr: bytes = b""


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
    """Run one git command in `folder`, with limits on its time and its output.

    At `limit` bytes of output git is ended: with `may_cut` the output so far is kept, otherwise that is an
    error. Raises GitError with git's own words.
    """
    argv = ["git", *options_of(SAFE_CONFIG), "-C", str(folder), *arguments]
    call = Call(folder, verb_of(arguments), argv, stdin, environment)
    return call.finish(timeout, ok, limit, may_cut)


@lru_cache(maxsize=8)
def _found(program: str, path: str) -> str:
    """Return where the program is; otherwise each call would try it in every folder of `path`."""
    return shutil.which(program, path=path) or program


class Call:
    """A running git command. The helpers that it starts (ssh, git-remote-https) are in its process group."""

    def __init__(
        self, folder: Path | str, verb: str, argv: list[str], stdin: bytes | BinaryIO | None,
        environment: dict[str, str] | None,
    ) -> None:  # fmt: skip
        environment = base_environment() | (environment or {})
        self.what, self.repository = f"git {verb}", Path(environment.get("GIT_DIR", folder))
        self.given = stdin if isinstance(stdin, bytes) else b""
        try:
            self.process = subprocess.Popen(
                argv,
                executable=_found(argv[0], environment["PATH"]),
                stdin=subprocess.PIPE if isinstance(stdin, bytes) else stdin or subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(self.what, f"cannot be run: {error.strerror}") from error
        self._limit_memory()

    def _limit_memory(self) -> None:
        """Limit what the command and what it starts may take; files that it maps do not count."""
        if hasattr(resource, "prlimit"):  # Linux
            with contextlib.suppress(OSError, ValueError):  # it has ended, or may take less already
                resource.prlimit(self.process.pid, resource.RLIMIT_DATA, (MEMORY_MAX, MEMORY_MAX))

    def finish(self, timeout: float, ok: Sequence[int], limit: int, may_cut: bool) -> Done:
        """Wait for the command to end, and return how it ended. Raises GitError."""
        try:
            return self._finish(timeout, ok, limit, may_cut)
        except GitError:
            remove_partial_objects(self.repository, patience=2.0)
            raise

    def _finish(self, timeout: float, ok: Sequence[int], limit: int, may_cut: bool) -> Done:
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
            said = err.decode("utf-8", "replace")
            if OUT_OF_MEMORY.search(said):
                raise GitError(self.what, f"needs more than {MEMORY_MAX // 1024**2} MiB of memory")
            if TOO_LARGE.search(said):
                raise GitError(self.what, "needs more than half of the room that is left on the disk")
            words = [said, out[-WORDS_MAX:].decode("utf-8", "replace")]
            text = "\n".join(filter(None, map(_without_hints, words)))
            raise GitError(self.what, text, code=process.returncode)
        return Done(process.returncode, out, stderr=err)

    def kill(self) -> None:
        """Kill the whole process group, unless the command has ended by itself."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def _talk(self, deadline: float, limit: int) -> tuple[bytes, bytes, bool]:
        """Feed the command its input and read its output up to the limit. Raises TimeoutError.

        Return standard output, the end of standard error, and whether the output was cut.
        """
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


def remove_partial_objects(repository: Path, patience: float = 0.0) -> None:
    """Remove the packs and objects of a bare repository that a git which was ended left half written.

    Git itself never looks for them. Those that somebody writes stay; a git that was just killed is given
    `patience` seconds to be gone.
    """
    deadline = time.monotonic() + patience
    for path in repository.glob("objects/*/tmp_*"):
        while not _is_left(path) and time.monotonic() < deadline:
            time.sleep(0.02)
        if _is_left(path):
            path.unlink(missing_ok=True)


def _is_left(path: Path) -> bool:
    """Whether no process has the file open, for only then does the kernel grant a lease for writing."""
    try:
        with path.open("rb") as file:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except (OSError, AttributeError):  # only Linux has leases
        return False
    return True


def verb_of(arguments: Sequence[str]) -> str:
    """Return git's subcommand: the first argument that is neither an option nor an option's value."""
    words = iter(arguments)
    for word in words:
        if word == "-c":
            next(words, None)
        else:
            return word
    return ""


def _without_hints(text: str) -> str:
    """Return git's output without its advice on what to type next."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("hint:"))


def text(folder: Path | str, *arguments: str, timeout: float = 60.0) -> str:
    """Return the standard output of one git command, stripped. Raises GitError."""
    return run(folder, *arguments, timeout=timeout).stdout.decode("utf-8", "replace").strip()


def next_object(raw: bytes) -> tuple[str, bytes, bytes]:
    """Return kind and content of the first object that `cat-file --batch` printed, and what follows it."""
    first, _, rest = raw.partition(b"\n")
    words = first.rsplit(b" ", 2)
    if len(words) < 3 or not words[2].isdigit():  # it says that there is no such object
        return "", b"", rest
    size = int(words[2])
    return words[1].decode("ascii", "replace"), rest[:size], rest[size + 1 :]


def version() -> str:
    """Return the version of git. Raises GitError."""
    return text("/", "version").removeprefix("git version ")


def check_branch(name: str) -> str:
    """Return the name if git allows it for a branch and it is not a ref's full name. Raises GitError."""
    if not is_branch_name(name):
        raise GitError("target branch", f"{name!r} is no name of a branch")
    return name
