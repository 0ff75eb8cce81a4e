"""Core: plain git by subprocess, with nothing of the operator's configuration and no program of an agent's.

No command here runs in a folder whose `.git` an agent could have written; commits of agents are fetched into
the trusted mirror first.
"""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tasks.text.regex import regex
from tasks.text.repository_urls import redact

SHA = regex(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
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
OUTPUT_MAX = 64 * 1024 * 1024  # bytes that one command may print; the rest is never read
WORDS_MAX = 16 * 1024  # of its last words
# What git's own check refuses, and full names of refs, which it takes for branches of that name.
BRANCH = regex(
    r"(?!HEAD$|@$|-|refs/|/)(?!.*(\.\.|//|/\.|@\{|\.lock(/|$)))(?!\.)[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])"
)
CHUNK = 64 * 1024
# What git says of this machine's own disk, permissions and repository; a remote's words begin with its name.
DISK = r"No space left on device|Disk quota exceeded|Read-only file system|Input/output error"
OWN_TROUBLE = regex(
    DISK + r"|unable to write"
    r"|insufficient permission|\.lock': |cannot lock ref|not a git repository: |corrupt|bad object"
    r"|object file|packfile \S+ |to be a packfile|invalid sha1 pointer|unable to read (tree|sha1)"
    r"|missing (blob|tree|commit)|valid object|broken ref"
)
OF_REMOTE = regex(r"remote: |\s*!")


class GitError(Exception):
    """A git command failed. `text` is the end of its output, for people, with passwords removed."""

    def __init__(self, what: str, text: str, *, code: int | None = None) -> None:
        words = redact(text.strip()[-WORDS_MAX:])
        self.what, self.text, self.code = what, words[-600:], code
        super().__init__(f"{what}: {self.text}" if self.text else what)

    def is_of_host(self) -> bool:
        """Whether this host's own disk or repository stood in the way."""
        lines = (line for line in self.text.splitlines() if not OF_REMOTE.match(line))
        return any(OWN_TROUBLE.search(line) for line in lines)

    def is_of_disk(self) -> bool:
        """Whether this host's disk took or gave nothing, which says nothing about the work."""
        return re.search(DISK, self.text) is not None


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


def options_of(config: dict[str, str]) -> list[str]:
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
    argv = ["git", *options_of(SAFE_CONFIG), "-C", str(folder), *arguments]
    call = Call(verb_of(arguments), argv, stdin, environment)
    return call.finish(timeout, ok, limit, may_cut)


class Call:
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


def verb_of(arguments: Sequence[str]) -> str:
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
