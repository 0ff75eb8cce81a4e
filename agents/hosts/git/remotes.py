"""Core: calls to remotes, which may hang, refuse or be away; a host that is stopping ends them."""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agents.hosts.git import commands
from tasks.text.regex import regex
from tasks.text.repository_urls import host_of, redact

OWN = regex(r"https?://[\w.:\[\]-]+")  # a host as it may stand in the name of a setting of git's
LISTED_MAX = 4 * 1024 * 1024  # bytes of what a remote lists
# The kernel tells this shell when its parent has ended, however it ended. Then it kills its whole group: git,
# and what that started. If the parent ended before, git is never begun. A file that would get larger than
# allowed is an error of git's.
ON_A_LEASH = (
    """trap 'kill -9 0' TERM; [ "$PPID" = "$0" ] || exit 0; trap '' XFSZ; ulimit -f "$1" 2>&-; shift; """
    """exec 3<&0; "$@" <&3 3<&- & wait $!"""
)
BLOCK = 512  # bytes, in which a shell counts


class Unreachable(commands.GitError):
    """The remote cannot be reached, does not exist, or refuses access. `blame` says so in a few words."""

    blame = "cannot be reached"


class HostTrouble(Unreachable):
    """This host's own disk or mirror is in the way; the remote has nothing to do with it."""

    blame = "cannot be worked on by this host"


class NoBranch(Unreachable):
    """The remote answers, but the target branch is not there any more."""

    blame = "has no such branch"


class Unfit(Unreachable):
    """The remote answers, but it is of a kind from which git cannot fetch into a mirror."""

    blame = "cannot be used"


class Interrupted(Unreachable):
    """This host is stopping and ended its calls to remotes; that says nothing about the remote."""


class NoDefaultBranch(commands.GitError):
    """The remote answers, but its HEAD names no existing branch. The text says which branches there are."""


class NoBranches(NoDefaultBranch):
    """The remote answers, but has no branch at all."""


@dataclass(frozen=True, slots=True)
class Network:
    """How fetch and push may reach a remote; nothing else sees the operator's credentials."""

    protocols: tuple[str, ...] = ("https", "ssh", "file")
    timeout: float = 120.0
    credentials: Path | None = None  # a file of `git credential-store`, mode 0600
    environment: dict[str, str] = field(default_factory=dict)  # HOME and SSH_AUTH_SOCK of the operator


class _Calls:
    """The calls to remotes that this process has under way. They may hang; a stopping host ends them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.live: set[commands.Call] = set()
        self.are_over = False

    @contextlib.contextmanager
    def one(
        self, folder: Path, verb: str, argv: list[str], stdin: bytes | None, environment: dict[str, str]
    ) -> Iterator[commands.Call]:
        """Start a call that `end` can kill, and yield it. Raises Interrupted if `end` was called before."""
        with self.lock:
            if self.are_over:
                raise Interrupted(f"git {verb}", "was not begun, because this host stops")
            call = commands.Call(folder, verb, argv, stdin, environment)
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
    """End every call to a remote and refuse new ones until `allow_calls`, because this host is stopping."""
    _calls.end()


def allow_calls() -> None:
    """Allow calls to remotes again."""
    _calls.are_over = False


def over_network(
    folder: Path, network: Network, url: str, *arguments: str,
    stdin: bytes | None = None, limit: int = commands.OUTPUT_MAX, may_cut: bool = False,
    environment: dict[str, str] | None = None,
) -> commands.Done:  # fmt: skip
    """Call a remote; the call dies with this process. Raises Unreachable with a sentence for people.

    The operator's passwords are used only on the host of `url`, wherever the remote redirects git to.
    """
    config = dict(commands.SAFE_CONFIG)
    own = f"{url.partition('://')[0].lower()}://{host_of(url)}"
    if OWN.fullmatch(own) and network.credentials and network.credentials.exists():
        config[f"credential.{own}.helper"] = f"store --file={network.credentials}"
    environment = {
        "GIT_ALLOW_PROTOCOL": ":".join(network.protocols),
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=15",
        **network.environment,
        **(environment or {}),
    }
    told = [setpriv, "--pdeathsig", "TERM"] if (setpriv := shutil.which("setpriv")) else []
    leash = [*told, "sh", "-c", ON_A_LEASH, str(os.getpid()), str(largest_file(folder) // BLOCK)]
    argv = [*leash, "git", *commands.options_of(config), "-C", str(folder), *arguments]
    try:
        with _calls.one(folder, commands.verb_of(arguments), argv, stdin, environment) as call:
            return call.finish(network.timeout, (0,), limit, may_cut)
    except Interrupted:
        raise
    except commands.GitError as error:
        if _calls.are_over:
            raise Interrupted(error.what, "was ended, because this host stops") from error
        kind = HostTrouble if error.is_of_host() else Unreachable
        raise kind(error.what, error.text, code=error.code) from error


def largest_file(folder: Path) -> int:
    """Return how many bytes a file may get that a remote sends: half of the room left on the disk."""
    with contextlib.suppress(OSError):
        disk = os.statvfs(folder)
        return disk.f_bavail * disk.f_frsize // 2
    return 0


def default_branch(url: str, network: Network) -> str:
    """Return the branch that the remote's HEAD names.

    Raises Unreachable, and NoDefaultBranch if the repository is empty or has only tags, or if its HEAD
    names a branch that does not exist.
    """
    ref = head = ""
    for what, name in listed(url, network, "--symref", "HEAD"):
        if name == "HEAD" and what.startswith("ref: "):
            ref = what.removeprefix("ref: refs/heads/")
        elif name == "HEAD":
            head = what
    if ref and head:
        return commands.check_branch(ref)
    branches = sorted(
        name.removeprefix("refs/heads/") for _, name in listed(url, network, "--heads", "refs/heads/*")
    )
    if not branches and (head or listed(url, network, "--tags", "refs/tags/*")):
        raise NoBranches(
            redact(url), "has commits, but no branch to land on. Push one to it, then try again."
        )
    if not branches:
        raise NoBranches(redact(url), "is empty. Push a first commit to it, then try again.")
    there = ", ".join(branches[:10]) + (", …" if len(branches) > 10 else "")
    raise NoDefaultBranch(
        redact(url), f"has no default branch: its HEAD names none that exists. Name one yourself: {there}."
    )


def has_branch(url: str, branch: str, network: Network) -> bool:
    """Whether the remote has this branch. Raises Unreachable."""
    wanted = f"refs/heads/{commands.check_branch(branch)}"
    return any(name == wanted for _, name in listed(url, network, "--heads", wanted))


def listed(url: str, network: Network, option: str, pattern: str) -> list[tuple[str, str]]:
    """Return what the remote lists, as pairs of a hash (or "ref: …") and a name; a very long list is cut."""
    done = over_network(
        Path("/"), network, url, "ls-remote", "--quiet", option, "--end-of-options", url, pattern,
        limit=LISTED_MAX, may_cut=True, environment={"GIT_DIR": "/dev/null"},
    )  # fmt: skip
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    return [(what, name) for what, tab, name in (line.partition("\t") for line in lines) if tab]
