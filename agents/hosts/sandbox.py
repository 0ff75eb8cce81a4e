"""The sandbox of a run: what it may see, reach and take in the room that bubblewrap makes for each step.

Inside, paths are the same as outside, but nothing is there except the system's programs, this host's
toolchains (read-only) and the run's own clone, home, cache and reports. It sees only its own processes, and
its network ends at its gate (agents/inside/gate.py). If the host runs as root, each project and role has a
user of its own.
"""

import contextlib
import functools
import glob
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.hosts import processes
from agents.inside import first_process, gate
from agents.models.host import Tier
from agents.verification import caches, commands
from tasks.text.regex import regex

OFF, REQUIRED = "off", "required"  # with any other value, the sandbox is used if it works
FIRST_PROCESS = Path(first_process.__file__)
PORT = 27081  # inside the sandbox, for the API and the proxy
GATE = "/run/steroids/gate"
CACHE = "/run/steroids/cache"  # in every sandbox, because some caches, such as Go's, hold only at one path
FIRST_USER, USERS_OF_A_PROJECT = 2_000_000, 16
RUNS_OF_A_USER = 16  # at a time
ROLES = ("coder", "reviewer", "judge", "mediator", "verifier", "check")
COPIED_MAX = 4 * 1024**2  # bytes of a file that is copied because others may not read it
TMP_MAX = 1024**3  # bytes of /tmp and of /dev/shm, which take memory
WRITABLE = ("clone", "home", "tmp", "cache", "env", "reports")
READABLE = ("bin", "prompt.md", "context.json")
SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# The parts of /etc that programs ask for, and nothing that is this machine's own.
HOST_ETC = "/etc"
ETC = (
    "alternatives", "ca-certificates*", "crypto-policies", "debian_version", "dotnet", "fonts", "gnutls",
    "host.conf", "hosts", "inputrc", "java*", "*-openjdk", "ld.so.cache", "ld.so.conf*", "localtime",
    "lsb-release", "magic*", "maven", "mime.types", "mke2fs.conf", "networks", "nsswitch.conf", "os-release",
    "perl", "php*", "pki", "protocols", "python*", "resolv.conf", "rpc", "services", "shells", "ssl/certs",
    "ssl/openssl.cnf", "terminfo", "timezone", "ImageMagick-*",
    # Compilers and the like that find their own libraries only by these.
    "R", "common-lisp", "dmd.conf", "emacs", "fpc*.cfg", "groovy", "ldc2.conf", "luarocks", "mono", "nim",
    "racket", "sbclrc", "sgml", "texmf", "xml",
)  # fmt: skip
TOO_MUCH = {"/", "/etc", "/tmp", "/home", "/var", "/run"}  # noqa: S108
OF_THIS_MACHINE = regex(r"(127\.0\.0\.1|localhost|\[::1\]):\d+")
AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
UPSTREAM = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")


class HostUnfit(Exception):
    """This host may not hold runs; the text says why, and what to do."""


class SandboxMissing(HostUnfit):
    """The host must sandbox its runs and cannot; the text says what to do."""


@functools.cache
def why_not() -> str:
    """Return why runs cannot be sandboxed on this host; empty if they can. This is tried once a process."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed (the program bwrap; the package is called bubblewrap)."
    if _gives_users() and shutil.which("setpriv") is None:
        return "setpriv is not installed (the package is called util-linux)."
    user, seen, python = _user(0, "check"), toolchains(), commands.base_python()
    binds = [word for path in seen for word in ("--ro-bind", str(path), str(path))]
    argv = [*_walls(user), *_folders_above(seen), *binds, "--remount-ro", "/", "--", *_drop(user)]
    try:
        done = subprocess.run(
            [*argv, python, "-I", "-S", "-c", ""], env={"PATH": os.defpath}, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=20, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here: {error}"
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()[-200:]
        return f"{python} cannot be started in it: {said or f'it ended with {done.returncode}'}"
    return ""


def tier() -> int:
    """Return how well this host sandboxes its runs. Raises SandboxMissing if it must and cannot."""
    if settings.SANDBOX == OFF:
        return Tier.OPEN
    if why := why_not():
        if settings.SANDBOX == REQUIRED:
            raise SandboxMissing(f"STEROIDS_SANDBOX=required, but {why} Install it, or choose another value.")
        return Tier.OPEN
    return Tier.ENCLOSED


def is_on() -> bool:
    """Whether this host sandboxes its runs. Raises SandboxMissing."""
    return tier() == Tier.ENCLOSED


def standing() -> dict[str, Any]:
    """Return what the host's row says about its sandbox, by column. Raises SandboxMissing."""
    if is_on():
        return {"tier": Tier.ENCLOSED, "why_open": "", "toolchains": [str(path) for path in toolchains()]}
    why = "STEROIDS_SANDBOX=off" if settings.SANDBOX == OFF else why_not()
    return {"tier": Tier.OPEN, "why_open": why[:300], "toolchains": []}


# --- One run ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reach:
    """The hosts that a run reaches through its gate; `*` is any public one, and `trusted` may be private.

    With `api` and the token in its folder, the run reaches the API too.
    """

    hosts: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    api: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """The room in which one run is enclosed."""

    folder: Path
    project: int  # 0 for none
    role: str
    borrowed: tuple[Path, ...]  # the mirrors' objects that its clone uses without having a copy
    reach: Reach

    def enclose(self, steps: list[dict[str, Any]]) -> dict[str, Any]:
        """Put each step into the room and hand its folders over; return what else the shim must be told."""
        user = _user(self.project, self.role)
        (self.folder / "env").mkdir(mode=0o700, exist_ok=True)
        _write_people(self.folder, user)
        binds = [*self._binds(steps, user)]
        trusted = [*settings.SANDBOX_HOSTS, *self.reach.trusted]
        here = ",".join(name.lower() for name in trusted if OF_THIS_MACHINE.fullmatch(name.lower()))
        for step in steps:
            step["env"] = _through_the_gate(
                {
                    name: value.replace(str(self.folder / caches.NAME), CACHE)
                    for name, value in step["env"].items()
                }
            )
            step["argv"] = [
                *_walls(user), *binds, "--remount-ro", "/", "--chdir", "/", "--", *_drop(user),
                commands.base_python(), "-I", "-S", str(FIRST_PROCESS), "{ready}", str(PORT), GATE,
                here, str(_processes(user)), str(settings.RUN_DISK_MAX_BYTES), step["cwd"], "--",
                *step["argv"],
            ]  # fmt: skip
            step["enclosed"] = True
        if user is not None:
            _hand_over([*self._own(), *self._fixed()], user)
        rules = {
            "hosts": list(self.reach.hosts), "trusted": trusted,
            "upstream": _upstream(), "api": self.reach.api, "user": -1 if user is None else user,
            "certificates": _certificates(),
        }  # fmt: skip
        return {"gate": rules}

    def _own(self) -> list[Path]:
        """Return the folders that the run writes to."""
        return [path for name in WRITABLE if (path := self.folder / name).exists()]

    def _copied(self, path: Path, number: int, user: int) -> Path:
        """Return a copy for the run's user of a file that the operator named and only the host may read.

        If the file cannot be copied, return the file itself.
        """
        copy = self.folder / "seen" / str(number)
        copy.parent.mkdir(mode=0o755, exist_ok=True)
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_size <= COPIED_MAX:
                shutil.copy(path, copy)
                os.chown(copy, user, user)
                return copy
        return path

    def _fixed(self) -> list[Path]:
        """Return what the run may read in its own folder but not change."""
        return [path for name in READABLE if (path := self.folder / name).exists()]

    def _binds(self, steps: list[dict[str, Any]], user: int | None) -> Iterator[str]:
        own = self._own()
        seen = [*toolchains(), *_asked_for(steps, self.folder)]
        fixed = self._fixed()
        readable = _outermost(path for path in seen if _may_be_seen(path))
        yield from _folders_above([*readable, *own, *fixed, *self.borrowed, Path(GATE)])
        for number, path in enumerate(readable):
            seen = path if user is None or _is_open(path) else self._copied(path, number, user)
            yield from ("--ro-bind", str(seen), str(path))
        for path in [*self.borrowed, *fixed]:
            yield from ("--ro-bind", str(path), str(path))
        for path in own:
            yield from ("--bind", str(path), CACHE if path.name == caches.NAME else str(path))
        for name in ("passwd", "group"):
            yield from ("--ro-bind", str(self.folder / name), f"/etc/{name}")
        yield from ("--ro-bind", str(self.folder / gate.SOCKET), GATE)


def upload_pack(clone: Path, mirror: Path, project: int, role: str) -> str:
    """Return the command by which git's trusted side fetches from a clone that an agent could write to.

    It reads the clone's settings, links and borrowed folders in a room that contains nothing else. Without a
    sandbox it is git's own command.
    """
    if not is_on():
        return "git-upload-pack"
    user = _user(project, role)
    seen = [clone, mirror / "objects"]
    binds = [word for path in seen for word in ("--ro-bind", str(path), str(path))]
    refused, open_file = _call_filter(clone.parent)
    argv = [
        *_walls(user), *refused, *_folders_above(seen), *binds, "--remount-ro", "/", "--", *_drop(user),
        "git-upload-pack",
    ]  # fmt: skip
    return shlex.join(argv) + open_file


def _call_filter(folder: Path) -> tuple[list[str], str]:
    """Return what forbids user namespaces and keys in a room that no first process of ours sets up.

    These are the arguments for bubblewrap, and the file that the shell must open for them; git runs its
    command in a shell.
    """
    words = first_process.call_filter(os.uname().machine)
    if not words:
        return [], ""
    file = folder / "filter"
    processes.write_whole(file, words)
    return ["--seccomp", "9"], f" 9<{shlex.quote(str(file))}"


def _walls(user: int | None) -> list[str]:
    """Return the arguments for an empty room: only the system's programs can be read, and nothing written.

    It has a process table and a network of its own, and /tmp and /dev/shm in memory.
    """
    own_user = (
        ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        if user is not None
        else ["--unshare-user", "--disable-userns", "--cap-drop", "ALL"]
    )
    walls = [
        shutil.which("bwrap") or "bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
        "--unshare-cgroup-try", "--unshare-net", "--die-with-parent", *own_user, "--hostname", "sandbox",
        "--proc", "/proc", "--dev", "/dev", "--ro-bind", "/usr", "/usr",
    ]  # fmt: skip
    for place in ("/tmp", "/dev/shm"):  # noqa: S108  (inside, of the run alone)
        walls += ["--size", str(TMP_MAX), "--perms", "1777", "--tmpfs", place]
    return [*walls, "--remount-ro", "/dev", *_system()]  # whoever owns it could fill memory there


@functools.cache
def _system() -> tuple[str, ...]:
    words: list[str] = []
    for name in SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    words += ["--perms", "0755", "--dir", "/etc", "--perms", "0755", "--dir", "/etc/ssl"]
    found = {name for pattern in ETC for name in glob.glob(pattern, root_dir=HOST_ETC)}
    for name in sorted(found):
        words += ["--ro-bind", os.path.realpath(f"{HOST_ETC}/{name}"), f"/etc/{name}"]
    store = Path("/nix/store")
    return (*words, *(("--ro-bind", str(store), str(store)) if store.is_dir() else ()))


def _folders_above(paths: Iterable[Path]) -> list[str]:
    """Create the folders above these paths so that every user may enter them: bubblewrap's own are closed."""
    above = {parent for path in paths for parent in path.parents}
    made = [parent for parent in above if parent != Path("/") and not parent.is_relative_to("/usr")]
    return [word for path in sorted(made) for word in ("--perms", "0755", "--dir", str(path))]


# --- The run's user ---------------------------------------------------------------------------------------


def _gives_users() -> bool:
    """Whether this host's runs have users of their own: it is root, and other users exist."""
    return os.geteuid() == 0 and _users()[1] > 0


def _user(project: int, role: str) -> int | None:
    """Return the user of a project's runs in one role, who owns nothing else; None if runs have no users."""
    if not _gives_users():
        return None
    number = project * USERS_OF_A_PROJECT + ROLES.index(role)
    first, count = _users()
    return first + number % count


@functools.cache
def _users() -> tuple[int, int]:
    """Return the first user for runs and how many there are, among those that this machine or container has.

    There are 0 in a namespace that has no other user than its root.
    """
    try:
        ranges = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
        known = max(int(first) + int(count) for first, _, count in ranges)
    except (OSError, ValueError):
        known = 2**32
    if known > FIRST_USER + 1_000_000:
        return FIRST_USER, 1_000_000
    return (known - 4_000, 3_000) if known > 4_000 else (0, 0)


def _processes(user: int | None) -> int:
    """Return how many processes the kernel lets a run have.

    It counts them by user. If runs share one, there is room for all of them: a run that forks without end
    would otherwise leave none to the others before it exceeds its own limit.
    """
    return settings.RUN_PROCESSES_MAX * (1 if user is None else RUNS_OF_A_USER)


def _drop(user: int | None) -> list[str]:
    if user is None:
        return []
    return [
        shutil.which("setpriv") or "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups",
        "--inh-caps=-all", "--no-new-privs",
    ]  # fmt: skip


def _hand_over(paths: Iterable[Path], user: int) -> None:
    """Make everything in these paths belong to that user. Links are never followed."""
    others = [str(path) for path in paths if path.lstat().st_uid != user]
    if others:
        subprocess.run(
            ["chown", "--recursive", "--no-dereference", "-P", f"{user}:{user}", "--", *others],
            check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=600,
        )  # fmt: skip


def _write_people(folder: Path, user: int | None) -> None:
    """Write the only users that exist inside, none of them from this machine."""
    number, group = (os.getuid(), os.getgid()) if user is None else (user, user)
    home = folder / "home"
    (folder / "passwd").write_text(
        f"root:x:0:0::/nonexistent:/bin/sh\nagent:x:{number}:{group}::{home}:/bin/sh\n"
        "nobody:x:65534:65534::/nonexistent:/bin/sh\n"
    )
    (folder / "group").write_text(f"root:x:0:\nagent:x:{group}:\nnogroup:x:65534:\n")
    for name in ("passwd", "group"):
        (folder / name).chmod(0o644)


# --- What is seen of the host -----------------------------------------------------------------------------


def toolchains() -> list[Path]:
    """Return the folders, beyond the system's, that runs may read: programs, and what these need."""
    kept = tuple(commands.toolchain_folders().values())
    return list(_toolchains(commands.system_path(), (*kept, *settings.SANDBOX_PATHS)))


@functools.cache  # toolchains do not change while a host runs
def _toolchains(path: str, kept: tuple[str, ...]) -> tuple[Path, ...]:
    words = [Path(word) for word in path.split(os.pathsep)]
    prefixes = [Path(sys.prefix), Path(sys.base_prefix), Path(settings.BASE_DIR) / "agents"]
    found = [*(each for word in words for each in _beside(word)), *map(Path, kept), *prefixes]
    return tuple(_outermost(path for path in found if _may_be_seen(path)))


def _beside(word: Path) -> Iterator[Path]:
    """Yield a folder of programs, the libraries beside it, and what its links point to."""
    if not os.path.isdir(word) or not _may_be_seen(word):
        return
    yield word
    if word.name in {"bin", "sbin"}:
        yield from (word.parent / name for name in ("lib", "lib64", "libexec", "include"))
    yield from _of_go(word)
    for entry in list(os.scandir(word))[:1000]:
        if entry.is_symlink():
            yield from _program(Path(entry.path))


def _program(path: Path) -> Iterator[Path]:
    """Yield a program, where its links lead, and the packages or the environment that it is part of."""
    yield path
    real = Path(os.path.realpath(path))
    yield real
    parts = real.parts
    if "node_modules" in parts:
        yield Path(*parts[: parts.index("node_modules") + 1])
    for place in (path, real):
        if (place.parent.parent / "pyvenv.cfg").is_file():
            yield place.parent.parent
            yield from _base_of(place.parent.parent / "pyvenv.cfg")
    if real.parent.name == "bin" and (real.parent.parent / "lib").is_dir():
        yield real.parent.parent / "lib"
        yield real.parent
    yield from _of_go(real.parent)


def _of_go(programs: Path) -> Iterator[Path]:
    """Yield the root of a Go compiler in this folder, which reads its library's source and its own tools."""
    if (programs / "go").exists() and (programs.parent / "src" / "runtime").is_dir():
        yield programs.parent


def _base_of(configuration: Path) -> Iterator[Path]:
    """Yield the folders of the Python from which an environment was made."""
    for line in configuration.read_text(errors="replace").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "home":
            home = Path(value.strip())
            yield from (home, home.parent / "lib")
            yield from _program_of_link(home / "python3")


def _program_of_link(path: Path) -> Iterator[Path]:
    real = Path(os.path.realpath(path))
    if real != path and real.parent.name == "bin":
        yield from (real.parent, real.parent.parent / "lib")


def _asked_for(steps: list[dict[str, Any]], folder: Path) -> Iterator[Path]:
    """Yield what the agent's words and the steps' variables name: programs, scripts, certificate files.

    What prepares, builds and tests is not asked: a repository, or a coder, may have written those commands.
    Nor is anything in the run's own folder, where either may have left a link.
    """
    for step in steps:
        own = [] if step["name"] in commands.OF_THE_PROJECT else step["argv"]
        for word in [*own, *step["env"].values()]:
            if word.startswith("/") and ":" not in word and "\n" not in word and len(word) < 1024:
                path = Path(word)
                if not path.is_relative_to(folder) and path.exists():
                    yield from _program(path)
                    yield from _interpreter(path)


def _interpreter(path: Path) -> Iterator[Path]:
    """Yield the program that the first line of a script names."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        first = file.readline(256)
    if found := re.match(rb"#!\s*(/[^\s]+)", first):
        yield from _program(Path(os.fsdecode(found[1])))


def _is_open(path: Path) -> bool:
    """Whether every user may read it and, if it is a folder or a program, enter or run it."""
    wanted = 0o5 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o4
    return path.stat().st_mode & wanted == wanted


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that do not lie inside another one of them."""
    kept: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(each) for each in kept):
            kept.append(path)
    return kept


def _may_be_seen(path: Path) -> bool:
    """Whether runs may see this path.

    They never see the data folder or anything in it, a whole home, or a folder that contains one of these.
    """
    if not os.path.exists(path) or path.parts[1:2] == () or path.parts[1] in {"usr", "proc", "dev", *SYSTEM}:
        return False
    real = Path(os.path.realpath(path))
    closed = [Path(os.path.realpath(each)) for each in (settings.HOME, Path.home(), settings.BASE_DIR)]
    if any(each.is_relative_to(real) for each in closed):
        return False
    return not real.is_relative_to(closed[0]) and str(real) not in TOO_MUCH


# --- The way out ------------------------------------------------------------------------------------------


def address() -> str:
    """Return the URL at which the API answers inside the sandbox."""
    return f"http://127.0.0.1:{PORT}"


def write_address(folder: Path, url: str) -> None:
    """Tell the run's gate where the API answers on this host."""
    processes.write_whole(folder / gate.ADDRESS, url.encode())


def knows(folder: Path) -> bool:
    """Whether the run in this folder reaches the API by a gate."""
    return (folder / gate.ADDRESS).is_file()


def reached(folder: Path) -> list[str]:
    """Return the hosts that the run reached through its gate."""
    return sorted(_lines(folder / gate.REACHED))


def unreached(folder: Path) -> dict[str, str]:
    """Return the hosts that the run could not reach, each with one of gate.REASONS."""
    lines = [line.partition(" ") for line in sorted(_lines(folder / gate.UNREACHED))]
    return {host: why for host, _, why in lines if why in gate.REASONS}


def _lines(file: Path) -> set[str]:
    try:
        return set(file.read_text().splitlines())
    except OSError:
        return set()


def _through_the_gate(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the variables by which programs find the way out."""
    proxy = address()
    java = " ".join(f"-D{kind}.proxyHost=127.0.0.1 -D{kind}.proxyPort={PORT}" for kind in ("http", "https"))
    return {
        **environment,
        **dict.fromkeys(PROXIES, proxy),
        "NO_PROXY": "127.0.0.1,localhost,::1",
        "no_proxy": "127.0.0.1,localhost,::1",
        "NODE_USE_ENV_PROXY": "1",
        "JAVA_TOOL_OPTIONS": f"{environment.get('JAVA_TOOL_OPTIONS', '')} {java}".strip(),
    }


def _upstream() -> str:
    """Return the URL of the proxy that this host itself must use; empty if there is none."""
    return next((os.environ[name] for name in UPSTREAM if os.environ.get(name)), "")


def _certificates() -> dict[str, str]:
    """Return the variables that name this host's certificate authorities; empty if it uses the system's."""
    return {name: os.path.abspath(os.environ[name]) for name in AUTHORITIES if os.environ.get(name)}
