"""The sandbox, with real processes in it that do what a hostile agent would."""

import http.server
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from agents.doctor import machine
from agents.hosts import outcomes, paths, processes, sandbox, starting, submissions
from agents.hosts.agent_command import agent_step
from agents.hosts.git.commands import GitError
from agents.hosts.reconciler import Reconciler
from agents.hosts.sandbox import Reach
from agents.hosts.shims.nursery import NURSERY
from agents.inside import gate
from agents.inside.gate import is_named
from agents.providers.base import ProviderError
from agents.recipes.recipe import Recipe
from agents.verification import caches, commands, verdicts
from tasks.configuration.changing import configure
from tasks.events import SYSTEM
from tasks.models import Project
from tests.agents.world import World, git, make_world  # noqa: F401  (a fixture)
from tests.cases import for_each
from tests.factories import create_agent, create_host, create_run
from tests.notifications.receiver import certificate_for

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 60.0
CLOSED = Reach()
SECRET = "not-for-agents"
OWN = "stx_of-this-run"
# Each line tries one thing that nobody inside may do, and says so where it worked.
ESCAPES = """
import ctypes, glob, os, signal, socket, subprocess, sys, urllib.request

def tried(what, work):
    try:
        if work():
            print("ESCAPED:", what)
    except BaseException as error:
        print("held:", what, type(error).__name__)

def connects(family, target):
    with socket.socket(family) as line:
        line.settimeout(2)
        line.connect(target)
    return True

def appended(path):
    with open(path, "a") as file:
        file.write("x")
    return True

home, port = sys.argv[1], int(sys.argv[2])
for path in (f"{home}/secret-key", f"{home}/steroids.sqlite3", f"{home}/runs/8/context.json", "/etc/shadow",
             f"{home}/runs/7/job.json", f"{home}/runs/7/exit.json", f"{home}/host/api-server.json"):
    tried(f"reads {path}", lambda path=path: open(path).read())
for path in ("/usr/bin/env", f"{home}/mirrors/1.git/objects/x", "/etc/passwd", f"{home}/runs/7/context.json",
             "/x", "/etc/x", "/run/x"):
    tried(f"writes {path}", lambda path=path: appended(path))
tried("sees the operator's home", lambda: set(os.listdir(os.path.expanduser("~root"))) - {".pyenv", ".cargo"})
tried("sees other processes", lambda: len(glob.glob("/proc/[0-9]*")) > 8)
tried("reads an environment with secrets", lambda: any(
    b"SECRET_KEY" in open(path, "rb").read() for path in glob.glob("/proc/[0-9]*/environ")))
tried("signals its first process", lambda: os.kill(1, signal.SIGKILL) is None and False)
tried("reaches this machine", lambda: connects(socket.AF_INET, ("127.0.0.1", port)))
tried("asks this machine", lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5))
for path in ("mirrors/1.git/config", "runs/7/stop", "runs/7/exit.json", "runs/8/context.json", "planted"):
    try:
        os.makedirs(os.path.dirname(f"{home}/{path}"), exist_ok=True)
        open(f"{home}/{path}", "a").write("PLANTED")
    except OSError:
        pass
for place in ("/", "/dev", "/dev/pts", "/etc", "/proc", "/usr"):  # /dev is memory that nobody counts
    tried(f"writes to {place}", lambda: open(f"{place}/PLANTED", "w") and True)
tried("mounts", lambda: ctypes.CDLL(None).mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0)
tried("makes a device", lambda: os.mknod("disk", 0o60600, os.makedev(8, 0)) is None)
NEW_USER, CHILD_ENDS = 0x10000000, 17
unshare, clone, clone3 = {"x86_64": (272, 56, 435), "aarch64": (97, 220, 435)}[os.uname().machine]
asked = (ctypes.c_uint64 * 8)(NEW_USER, 0, 0, 0, CHILD_ENDS)
for what, number, *words in (
    ("is root of a namespace", unshare, ctypes.c_ulong(NEW_USER)),
    ("has a child that is", clone, ctypes.c_ulong(NEW_USER | CHILD_ENDS), 0, 0, 0, 0),
    ("has one by the newer call", clone3, asked, ctypes.c_ulong(64)),
):
    child = os.fork()  # whoever is in another namespace of users is of no use afterwards
    if child == 0:
        found = ctypes.CDLL(None).syscall(number, *words)
        os._exit(1 if found >= 0 else 0)
    print("ESCAPED:" if os.waitpid(child, 0)[1] else "held:", what)
add_key, keyctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
kept, libc = ctypes.create_string_buffer(4096), ctypes.CDLL(None)
tried("reads the keys of the operator's session", lambda: libc.syscall(keyctl, 11, -3, kept, 4096, 0) >= 0)
tried("leaves a key that outlives it", lambda: libc.syscall(add_key, b"user", b"left", b"x", 1, -4) >= 0)
shmget, large = {"x86_64": 29, "aarch64": 194}[os.uname().machine], ctypes.c_size_t
VSOCK, CRYPTO = 40, 38  # to whatever this machine runs on; a network of its own does not separate that
for family in (VSOCK, CRYPTO):
    tried(f"has a socket of family {family}", lambda: socket.socket(family, socket.SOCK_STREAM))
    tried(f"has another of family {family}", lambda: socket.socket(family, socket.SOCK_SEQPACKET))
open_files = {number: os.readlink(f"/proc/self/fd/{number}") for number in range(64)
              if os.path.lexists(f"/proc/self/fd/{number}")}
tried("holds a file of the host's", lambda: [each for each in open_files.values() if home in each])
tried("gives work to the kernel that no filter sees", lambda: libc.syscall(425, 8, kept) >= 0)
for size in (65537, 2**32, 2**32 + 1, 2**63):  # of which nobody would know how much there is
    tried(f"shares {size} bytes of memory", lambda: libc.syscall(shmget, 0, large(size), 0o1600) >= 0)
tried("becomes root", lambda: os.setuid(0) is None and sys.argv[3] == "apart")
print("user", os.getuid())
"""
ALLOWED = """
set -e
echo two > work.txt
git add --all
git -c user.name=a -c user.email=a@b commit --quiet --message work
git log --oneline | head -1
echo x > "$TMPDIR/x"; echo x > "$HOME/x"; echo x > /tmp/x; echo x > "$XDG_CACHE_HOME/x"
python3 - <<'PY'
import ctypes, getpass, multiprocessing, socket, tempfile
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 2)
multiprocessing.Lock()
socket.if_nameindex(), socket.socketpair(), socket.socket(socket.AF_INET6)
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
assert ctypes.CDLL(None).shmget(0, ctypes.c_size_t(65536), 0o1600) >= 0  # servers of databases do
print("well", getpass.getuser())
PY
"""

# Says so where a request passed that does not carry the token of its own run, or leaves the API.
ASKS = """
import http.client, json, socket, sys

port, own = int(sys.argv[1]), sys.argv[2]
line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)

def told(path, *headers):
    line.putrequest("GET", path)
    for name, value in headers:
        line.putheader(name, value)
    line.endheaders()
    answer = line.getresponse()
    return answer.status, answer.read()

mine, another = ("Authorization", "Bearer " + own), ("Authorization", "Bearer stx_of-another")
assert told("/api/v1/own/0", mine)[0] == 200
for headers in ((another,), (), (mine, another), (another, mine), (("Authorization", "Basic " + own),),
                (("Authorization", "Bearer " + own[:-1]),), (("Authorization", "Bearer"),),
                (("Cookie", "sessionid=stolen"),), (("X-Authorization", own),)):
    status, body = told("/api/v1/disputes/D-1/resolve/", *headers)
    assert status == 403, (headers, status)
    said = json.loads(body)
    assert "this run's own token only" in said["message"] and "STEROIDS_CONTEXT" in said["hint"], said
for path in ("/api/v1/../../admin/", "/api/v1/%2e%2e/%2E./admin/", "/api/v1/..%2fadmin", "/api/v1/x/.."):
    assert told(path, mine)[0] == 404, path
assert told("/api/v1/own/1", ("Authorization", "bearer  " + own), ("SCRIPT_NAME", "/api/v1"))[0] == 200
assert told("/api/v1/own/2", mine, ("Cookie", "sessionid=stolen"))[0] == 200

def raw(text):
    with socket.create_connection(("127.0.0.1", port), 20) as wire:
        wire.sendall(text.encode())
        return b"".join(iter(lambda: wire.recv(65536), b"")).decode()

def head(target, token):
    return f"GET {target} HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer {token}\\r\\n\\r\\n"

several = raw(head("/api/v1/own/3", own) + 2 * head("/api/v1/hosts/", "stx_of-another"))
assert several.count("HTTP/1.") == 1, several
split = raw(head("/api/v1/hosts/\\nAuthorization:Bearer\\tstx_of-another", own))
assert split.startswith("HTTP/1.1 400"), split
"""


class Held:
    """One run's folder in a data folder, and what a shim makes of scripts in it."""

    def __init__(self, world: World, settings: Any) -> None:
        self.settings, self.world = settings, world
        self.more: dict[str, str] = {}  # variables of the steps
        self.folder = Path(settings.HOME) / "runs" / "7"
        for path in (self.folder, Path(settings.HOME) / "runs" / "8"):
            path.mkdir(parents=True, mode=0o700)
        for name in ("secret-key", "steroids.sqlite3", "runs/8/context.json"):
            (Path(settings.HOME) / name).write_text(SECRET)
        self.borrowed = starting.check_out(world.mirror, self.folder, world.mirror.fetch_target(), "work")
        (self.folder / "context.json").write_text(json.dumps({"token": OWN}))

    def play(
        self,
        *scripts: str,
        reach: Reach = CLOSED,
        role: str = "coder",
        command: list[str] | None = None,
        recipe: Recipe | None = None,
        **limits: float,
    ) -> dict[str, Any]:
        """Run the scripts, or the command, as a shim would; what it left, with the log as `said`."""
        environment = commands.own_environment(self.world.project, self.folder, role) | self.more
        clone = self.folder / "clone"
        calls = [command] if command else [["/bin/sh", "-c", script] for script in scripts]
        steps = [
            commands.step(f"step {number}", argv, clone, environment, timeout=PATIENCE)
            for number, argv in enumerate(calls)
        ]
        if recipe is not None:
            most = commands.Limits(PATIENCE, PATIENCE, PATIENCE)
            steps = commands.verification_steps(recipe, self.folder, environment, most)
        room = sandbox.Room(self.folder, self.world.project.pk, role, self.borrowed, reach)
        for name in ("exit.json", "output.log"):
            (self.folder / name).unlink(missing_ok=True)
        starting.write_job(self.folder, "7", steps, room)
        job = json.loads((self.folder / "job.json").read_text())
        job["limits"] |= limits
        (self.folder / "job.json").write_text(json.dumps(job))
        starting.renew_lease(self.folder)
        NURSERY.start_shim(self.folder)
        deadline = time.monotonic() + PATIENCE
        while (left := starting.exit_of(self.folder)) is None:
            assert time.monotonic() < deadline, (self.folder / "output.log").read_text()
            starting.renew_lease(self.folder)
            time.sleep(0.02)
        return left | {"said": (self.folder / "output.log").read_text(errors="replace")}


@pytest.fixture(name="held")
def make_held(world: World, settings: Any) -> Held:
    settings.SANDBOX = "required"
    return Held(world, settings)


class Site:
    """A server of this machine that counts what arrives."""

    def __init__(self) -> None:
        asked: list[str] = []
        heads: list[Message] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(f"{self.command} {self.path}")
                heads.append(self.headers)
                self.rfile.read(int(self.headers["Content-Length"] or 0))
                body = b"hello from outside"
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *words: Any) -> None: ...

        self.asked, self.heads = asked, heads
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(name="site")
def make_site() -> Iterator[Site]:
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


def assert_gone(folder: Path) -> None:
    """Nothing of the run lives on; its shim has a moment to end."""
    deadline = time.monotonic() + PATIENCE
    while left := processes.working_in(folder):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


def test_no_settings_of_pytest_lie_above_a_clone(held: Held) -> None:
    (held.folder / "pytest.ini").touch()

    assert "pytest.ini" not in held.play("ls ..")["said"].split()


def test_a_command_that_the_sandbox_does_not_show_is_not_only_said_to_be_gone(held: Held) -> None:
    script = Path(held.settings.HOME) / "coder"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    left = held.play(command=[str(script)])

    assert left["steps"][0]["code"] == 127
    assert "No such file or directory in the sandbox, which shows neither the data folder" in left["said"]


def test_nothing_of_the_host_is_seen_changed_or_reached(
    held: Held, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = held.settings.HOME
    for is_root in (os.geteuid() == 0, False):
        monkeypatch.setattr(sandbox, "_gives_users", lambda is_root=is_root: is_root)
        sandbox.why_not.cache_clear()
        (held.folder / "home").mkdir(exist_ok=True)
        (held.folder / "clone" / "try.py").write_text(ESCAPES)
        who = "apart" if is_root else "same"
        left = held.play(
            f"python3 try.py {home} {site.port} {who}; rm try.py", role="reviewer" if is_root else "judge"
        )
        assert left["steps"][0]["code"] == 0, left
        assert "ESCAPED" not in left["said"], left["said"]
        assert left["said"].count("held:") > 15
        assert SECRET not in left["said"]
        if is_root:
            assert "user 0\n" not in left["said"]
        subprocess.run(["chown", "-R", f"{os.getuid()}", str(held.folder)], check=True)
    assert not site.asked
    found = subprocess.run(["grep", "-rl", "PLANTED", home], capture_output=True, text=True, check=False)
    assert found.stdout == ""
    assert sorted(path.name for path in (held.folder.parent / "8").iterdir()) == ["context.json"]
    sandbox.why_not.cache_clear()


def test_work_goes_on_inside_as_anywhere(held: Held) -> None:
    knows_where = 'grep -qxz "PWD=$(pwd)" /proc/$$/environ'  # bubblewrap says /
    left = held.play(ALLOWED, "test -f work.txt && python3 -c 'import pip'", knows_where)
    assert [step["code"] for step in left["steps"]] == [0, 0, 0], left["said"]
    assert "well agent" in left["said"]
    assert left["reason"] == ""


def test_compilers_find_in_etc_what_they_need_and_nothing_of_the_machine(
    held: Held, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = ("ldc2.conf", "racket/config.rktd", "nim/nim.cfg", "R/ldpaths", "fpc-3.2.2.cfg", "xml/catalog")
    kept = ("npmrc", "pip.conf", "environment", "ssh/ssh_config", "ssl/private/key", "xmls/key")
    for name in (*shown, *kept):
        file = tmp_path / "etc" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"[{name}]")
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o755)
    monkeypatch.setattr(sandbox, "HOST_ETC", str(tmp_path / "etc"))
    sandbox._system.cache_clear()
    try:
        left = held.play("cd /etc; cat " + " ".join(shown), "cd /etc; ls " + " ".join(kept))
    finally:
        sandbox._system.cache_clear()
    assert "".join(f"[{name}]" for name in shown) in left["said"]
    assert left["said"].count("cannot access") == len(kept)


def test_what_takes_too_much_is_ended_and_named(held: Held) -> None:
    wait = "\nimport time; time.sleep(60)"
    fill = f"f = open('big', 'wb')\nfor n in range(300): f.write(bytes(1 << 20)); f.flush(){wait}"
    many = "for n in range(10**7): open(f'f{n}', 'w').close()"
    hog = "import time\nkept = [bytearray(b'x' * (1 << 20)) for _ in range(400)]\ntime.sleep(60)"
    deep = f"import os\nfor n in range(40): os.mkdir('d' * 200); os.chdir('d' * 200)\n{fill}"
    memory = "import os\nf = os.memfd_create('x')\nfor _ in range(400): os.write(f, bytes(1 << 20))"
    shared = "import os\nf = open('/dev/shm/x', 'wb')\nfor _ in range(400): f.write(bytes(1 << 20))"
    # If its children forked, too, they would leave no processor to the tests beside it.
    bomb = "import os, time\nwhile os.fork(): pass\ntime.sleep(60)"
    mebi = 1024 * 1024
    cases = (
        (fill, {"disk": 30 * mebi}, "disk"),
        (many, {"files": 3000}, "files"),
        (hog, {"memory": 150 * mebi}, "memory"),
        (deep, {"disk": 30 * mebi}, "files"),
        (memory + wait, {"memory": 150 * mebi}, "memory"),
        (shared + wait, {"memory": 150 * mebi}, "memory"),
        (bomb, {"processes": 60}, "processes"),
    )
    for script, limits, reason in cases:
        begun = time.monotonic()
        script = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n{script}"
        left = held.play(f'git clean -fdxq; exec python3 -c "{script}"', grace=600.0, **limits)
        assert left["reason"] == reason, (reason, left)
        assert time.monotonic() - begun < 30
        assert_gone(held.folder)


def test_a_shim_comes_before_the_run_that_it_may_have_to_end_where_that_is_allowed(held: Held) -> None:
    first = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    is_allowed = subprocess.run([sys.executable, "-c", first], stderr=subprocess.DEVNULL).returncode == 0
    expected = os.SCHED_RR | os.SCHED_RESET_ON_FORK if is_allowed else os.SCHED_OTHER
    seen: list[int] = []

    def watch() -> None:
        while not seen:
            if (shim := processes.read_identity(held.folder / "pid")) is not None:
                seen.append(os.sched_getscheduler(shim.pid))
            time.sleep(0.01)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    left = held.play("python3 -c 'import os, time; print(os.sched_getscheduler(0)); time.sleep(1)'")
    watching.join(PATIENCE)
    assert (seen, left["said"]) == ([expected], f"{os.SCHED_OTHER}\n")


def test_a_run_that_fills_its_cache_is_ended_and_named(held: Held) -> None:
    """What it put there was charged to nobody, and filled the host's disk."""
    fill = "python3 -c \"f = open('$WHERE/big', 'wb')\nfor n in range(100): f.write(bytes(1 << 20))\""
    many = "python3 -c \"for n in range(10**7): open(f'$WHERE/f{n}', 'w').close()\""
    agents_own = {"XDG_CACHE_HOME": str(held.folder / "home" / ".cache")}  # as most agents' commands have it
    limits = {"disk": 30 * 1024 * 1024, "files": 3000}
    for more, cache in (({}, "$XDG_CACHE_HOME"), (agents_own, '$(dirname "$PIP_CACHE_DIR")')):
        held.more = more
        for script, reason in ((f"{fill}; sleep 20", "disk"), (many, "files")):
            left = held.play(f"WHERE={cache}; {script}", **limits)
            assert left["reason"] == reason, left
            paths.remove(held.folder / "cache")
        assert_gone(held.folder)


def verified(world: World, how: str, files: dict[str, str | None]) -> str:
    """What the tests of a task's commit print where a host runs them, in a sandbox or not."""
    world.settings.SANDBOX = "off"  # the tests' own coder is no run of a sandbox
    submission = world.kept(files)
    world.settings.SANDBOX = how
    given = {"status": "starting", "sha": submission.sha, "host": create_host()}
    run = create_run(submission.task, "verifier", **given)
    starting.start(run)
    folder, deadline = paths.run_folder(run.pk), time.monotonic() + PATIENCE
    while starting.exit_of(folder) is None:
        assert time.monotonic() < deadline
        starting.renew_lease(folder)
        time.sleep(0.02)
    said = (folder / "output.log").read_text()
    outcomes.remove_folder(run)
    return said


def tried(world: World) -> Project:
    """The project, once a host has tried its branch and found it green."""
    Project.objects.update(base_state="unknown")
    deadline = time.monotonic() + PATIENCE
    with Reconciler() as host:
        while (project := Project.objects.get()).base_state != "green":
            assert time.monotonic() < deadline, list(project.trials.values())
            host.step()
            time.sleep(0.02)
    return project


@pytest.mark.parametrize("how", ["required", "off"])
def test_no_run_reads_what_the_commit_of_another_task_left_in_a_cache(
    world: World, settings: Any, how: str
) -> None:
    """Its tests could leave a changed wheel there, with which the next task's tests passed."""
    places = '"$PIP_CACHE_DIR" "$GOCACHE" "$npm_config_cache" "$XDG_CACHE_HOME"'
    each = "mkdir -p $place; cat $place/wheel; cat of-* >> $place/wheel"
    configure(world.project, {"test_command": f"for place in {places}; do {each}; done"}, actor=SYSTEM)
    verified(world, how, {"of-one": "poison\n"})
    assert "poison" not in verified(world, how, {"of-two": "well\n"})
    world.remote.push({"of-all": "landed\n"})
    tried(world)
    for number in range(2):  # each begins with what the branch left, and changes only its own
        said = verified(world, how, {f"of-{number}": f"poison {number}\n"})
        assert said.split() == ["landed"] * 4, said
    caches.kept_of(world.project.pk).chmod(0)  # as the tests of the branch may leave it
    for role, is_warm in (("coder", True), ("verifier", True), ("reviewer", False), ("judge", False)):
        own = caches.prepare(world.project.pk, paths.folder("runs", f"9{role}"), role)
        assert (own / "pip" / "wheel").exists() == is_warm, role
        assert own.stat().st_mode & 0o777 == 0o700, role
    settings.RUN_FILES_MAX = 8 * 7  # the copy is four files in three folders
    for more, is_kept in (((), True), (("one",), False)):
        for name in more:
            (own.parents[1] / "9coder" / "cache" / name).touch()
        caches.keep(world.project.pk, own.parents[1] / "9coder")
        assert caches.kept_of(world.project.pk).is_dir() == is_kept, more
        caches.prepare(world.project.pk, paths.folder("runs", "9coder"), "coder")


def test_the_agent_hears_that_it_is_to_end_and_its_daemons_do_not_live_on(held: Held) -> None:
    script = """
    trap 'echo heard; exit 3' TERM
    setsid python3 -c 'import time; time.sleep(600)' &
    echo begun; sleep 600 & wait
    """
    stopper = threading.Timer(1.0, lambda: (held.folder / "stop").write_text(""))
    stopper.start()
    left = held.play(script, grace=10.0)
    assert left["reason"] == "stopped"
    assert "heard" in left["said"]
    assert_gone(held.folder)


def test_the_way_out_leads_to_the_api_and_to_named_hosts(held: Held, site: Site) -> None:
    ask = "curl -sS -m 20 -o - -w ' %{http_code}\\n' "
    api = sandbox.address()
    own = f"-H 'Authorization: Bearer {OWN}' "
    sandbox.write_address(held.folder, f"http://127.0.0.1:{site.port}")
    outside = f"http://127.0.0.1:{site.port}"
    proxied = ask + f"--noproxy '' -x {api} "
    script = "\n".join(
        [
            ask + own + f"{api}/api/v1/tasks/",
            ask + own + f"-d x=1 {api}/api/v1/tasks/",
            ask + f"{api}/admin/login/",
            ask + f"{api}/../api/v1/../../admin/ --path-as-is",
            ask + own + f"-H 'Transfer-Encoding: chunked' -d x {api}/api/v1/tasks/",
            proxied + f"{outside}/plain",
            proxied + f"-p {outside}/tunnel",
            ask + f"{outside}/direct",
            proxied + "http://10.1.2.3/ ; " + proxied + "-p https://example.invalid/",
        ]
    )
    left = held.play(script, reach=Reach(trusted=(f"127.0.0.1:{site.port}",), api=True))
    lines = left["said"].splitlines()
    assert [line[-3:] for line in lines if line[-3:].isdigit()][:8] == [
        "200", "200", "404", "404", "411", "200", "200", "200",
    ], lines  # fmt: skip
    assert site.asked == ["GET /api/v1/tasks/", "POST /api/v1/tasks/", "GET /plain", "GET /tunnel",
                          "GET /direct"]  # fmt: skip
    assert left["said"].count("[sandbox] The sandbox lets nothing through to example.invalid.") == 1
    assert sandbox.reached(held.folder) == [f"127.0.0.1:{site.port}"]
    assert sandbox.unreached(held.folder) == {"10.1.2.3": "private", "example.invalid": "unnamed"}
    assert verdicts.read(held.folder, {"reason": "x"}).problem.endswith(
        "The sandbox lets nothing through to example.invalid; the project's allowed_hosts would name them. "
        "The sandbox lets nothing through to 10.1.2.3, on this machine or in a private network. "
        "allowed_hosts cannot open that; the operator can, in STEROIDS_SANDBOX_HOSTS."
    )


def test_only_the_token_of_the_run_itself_passes_to_the_api(held: Held, site: Site) -> None:
    sandbox.write_address(held.folder, f"http://127.0.0.1:{site.port}")
    own = f"Authorization: Bearer {OWN}"
    (held.folder / "clone" / "ask.py").write_text(ASKS)
    script = f"python3 ask.py {sandbox.PORT} {OWN}"
    left = held.play(script, reach=Reach(api=True))
    assert left["steps"][0]["code"] == 0, left["said"]
    assert site.asked == [f"GET /api/v1/own/{number}" for number in range(4)], left["said"]
    assert {head["Authorization"] for head in site.heads} <= {own.partition(": ")[2], f"bearer  {OWN}"}
    assert not any(head.get("SCRIPT_NAME") or head.get("Cookie") for head in site.heads)
    assert (
        left["said"].count("[sandbox] The sandbox lets requests to the API through with this run's own") == 1
    )
    (held.folder / "context.json").unlink()
    left = held.play(f"curl -sS -H '{own}' {sandbox.address()}/api/v1/x", reach=Reach(api=True))
    assert "This run has no token, so it reaches no API." in left["said"]
    assert len(site.asked) == 4


def test_an_api_behind_tls_and_below_a_path_is_reached_under_its_own_name(
    held: Held, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_for("localhost", tmp_path))
    site.server.socket = context.wrap_socket(site.server.socket, server_side=True)
    sandbox.write_address(held.folder, f"https://localhost:{site.port}/base/")
    url = f"{sandbox.address()}/api/v1/tasks/"
    ask = f"curl -sS -m 20 -H 'Authorization: Bearer {OWN}' "
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    left = held.play(ask + url, reach=Reach(api=True))
    assert "The certificate of the API's server localhost is not trusted here" in left["said"]
    assert site.asked == []
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.pem"))
    left = held.play(ask + f"{url}1 {url}2 -d @$0", reach=Reach(api=True))
    assert site.asked == [f"POST /base/api/v1/tasks/{number}" for number in (1, 2)], left["said"]
    assert {head["Host"] for head in site.heads} == {f"localhost:{site.port}"}
    assert left["said"].count("hello from outside") == 2


def test_what_is_public_is_no_address_of_this_machine(held: Held, site: Site) -> None:
    script = f"curl -sS -m 20 --noproxy '' -x {sandbox.address()} http://127.0.0.1:{site.port}/ http://localhost:80/"
    left = held.play(script, reach=Reach(hosts=("*", "*:" + str(site.port), "localhost")))
    assert "lies on this machine or in a private network" in left["said"]
    assert left["said"].count("Only the operator opens it: to every run by STEROIDS_SANDBOX_HOSTS") == 4
    assert not site.asked
    assert not sandbox.reached(held.folder)
    assert sandbox.unreached(held.folder) == {f"127.0.0.1:{site.port}": "private", "localhost": "private"}


def test_a_host_that_is_away_is_no_host_that_the_sandbox_refuses(held: Held, site: Site) -> None:
    ask = f"curl -sS -m 20 --noproxy '' -x {sandbox.address()} -o /dev/null"
    script = f"{ask} https://nothing.invalid/; {ask} http://127.0.0.1:9/; exit 1"
    left = held.play(script, reach=Reach(hosts=("*",), trusted=("127.0.0.1:9",)))
    assert sandbox.unreached(held.folder) == {"nothing.invalid": "away", "127.0.0.1:9": "away"}
    assert left["said"].count("[sandbox] This host itself does not reach nothing.invalid.\n") == 1
    with (held.folder / gate.UNREACHED).open("a") as hosts:
        hosts.write("index.example shut\n")
    told = (
        "This host itself does not reach 127.0.0.1:9, nothing.invalid. "
        "This host's proxy lets nothing through to index.example."
    )
    (step,) = left["steps"]
    for name, fault in (("prepare", UNREACHED), ("tests", "")):
        step["name"] = name
        verdict = verdicts.read(held.folder, left)
        assert (verdict.fault, told in verdict.problem) == (fault, bool(fault))


def test_a_server_that_speaks_first_is_heard_behind_the_hosts_own_proxy(tmp_path: Path) -> None:
    """Its greeting may come in one piece with the proxy's answer."""
    (tmp_path / "output.log").touch()
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def answer() -> None:
            there, _ = proxy.accept()
            with there:
                there.recv(4096)
                there.sendall(b"HTTP/1.1 200 OK\r\n\r\nSSH-2.0-server\r\n")
                there.recv(4096)

        threading.Thread(target=answer, daemon=True).start()
        upstream = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        rules = {"hosts": ["git.example:22"], "trusted": [], "upstream": upstream, "api": False}
        here, inside = socket.socketpair()
        served = threading.Thread(
            target=gate.Gate(tmp_path, rules).one, args=(here, threading.Semaphore()), daemon=True
        )
        with inside:
            served.start()
            inside.settimeout(20)
            inside.sendall(b"CONNECT git.example:22 HTTP/1.1\r\nHost: git.example\r\n\r\n")
            heard = b""
            while not heard.endswith(b"server\r\n"):
                heard += inside.recv(4096)
        served.join(20)
    assert heard.endswith(b"\r\n\r\nSSH-2.0-server\r\n")


def test_a_proxy_of_the_host_that_refuses_is_told_from_one_that_reaches_nobody(tmp_path: Path) -> None:
    (tmp_path / "output.log").touch()
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def answer_three() -> None:
            for status in ("403 Forbidden", "407 Proxy Authentication Required", "504 Gateway Timeout"):
                there, _ = proxy.accept()
                with there:
                    there.recv(4096)
                    there.sendall(f"HTTP/1.1 {status}\r\n\r\n".encode())

        threading.Thread(target=answer_three, daemon=True).start()
        upstream = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        door = gate.Gate(tmp_path, {"hosts": ["*"], "trusted": [], "upstream": upstream, "api": False})
        for host in ("a.invalid", "b.invalid", "c.invalid"):
            with pytest.raises(gate.Refused, match=f"This host's proxy lets nothing through to {host}"):
                door.connect(f"{host}:443")
    assert sandbox.unreached(tmp_path) == {"a.invalid": "shut", "b.invalid": "shut", "c.invalid": "away"}
    said = (tmp_path / "output.log").read_text()
    assert "[sandbox] This host's proxy lets nothing through to a.invalid.\n" in said
    assert "[sandbox] This host itself does not reach c.invalid.\n" in said


def test_a_proxy_of_the_host_reaches_no_private_address_for_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It often runs on this machine or within the firewall, and looks names up itself."""
    (tmp_path / "output.log").touch()
    known = {
        "inside.example": "10.0.0.9", "outside.example": "93.184.216.34", "localhost": "127.0.0.1",
        "::1": "::1",
    }  # fmt: skip

    def look_up(host: str, port: int, *more: Any, **named: Any) -> list[Any]:
        if host not in known and not host[0].isdigit():
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        number = known.get(host) or socket.inet_ntoa(socket.inet_aton(host))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, port))]

    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as proxy, socket.create_server(("127.0.0.1", 0)) as model:
        port = model.getsockname()[1]
        rules = {
            "hosts": ["*"], "trusted": [f"127.0.0.1:{port}"], "api": False,
            "upstream": f"http://127.0.0.1:{proxy.getsockname()[1]}",
        }  # fmt: skip
        door = gate.Gate(tmp_path, rules)

        def answer_three() -> None:
            for _ in range(3):
                there, _ = proxy.accept()
                with there:
                    asked.append(there.recv(4096).decode().partition("\r\n")[0])
                    there.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

        answering = threading.Thread(target=answer_three, daemon=True)
        answering.start()
        door.connect(f"127.0.0.1:{port}")[0].close()
        monkeypatch.setattr(gate.socket, "getaddrinfo", look_up)
        for host in (
            "127.0.0.1", "10.0.0.9", "169.254.169.254", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1",
            "localhost", "a.localhost", "inside.example", "[::1]",
        ):  # fmt: skip
            with pytest.raises(gate.Refused, match="lies on this machine or in a private network"):
                door.connect(f"{host}:443")
        assert asked == []
        for host in ("outside.example", "known-to-the-proxy.example"):
            door.connect(f"{host}:443")[0].close()
        here, inside = socket.socketpair()
        with inside:
            inside.sendall(b"GET http://a\\b@outside.example/x?y HTTP/1.1\r\nHost: outside.example\r\n\r\n")
            door.one(here, threading.Semaphore(0))
        answering.join(20)
    assert asked == [
        "CONNECT outside.example:443 HTTP/1.1", "CONNECT known-to-the-proxy.example:443 HTTP/1.1",
        "GET http://outside.example/x?y HTTP/1.1",
    ]  # fmt: skip


def test_a_name_that_the_run_may_not_reach_is_not_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks names up for a run carries out what they spell."""
    (tmp_path / "output.log").touch()
    rules = {"hosts": ["example.org"], "trusted": [], "upstream": "", "api": False}
    monkeypatch.setattr(gate.socket, "getaddrinfo", lambda *words, **more: pytest.fail(str(words)))
    with pytest.raises(gate.Refused, match="allowed_hosts"):
        gate.Gate(tmp_path, rules).connect("secret.localhost:443")
    assert sandbox.unreached(tmp_path) == {"secret.localhost": "unnamed"}


NONE_FOUND = "ERROR: No matching distribution found for pytest"
UNREACHED = "A package registry or another server could not be reached."


@for_each(
    ("step", "printed", "reached", "fault"),
    [
        ("prepare", NONE_FOUND, "", UNREACHED),
        ("tests", NONE_FOUND, "", UNREACHED),
        ("prepare", NONE_FOUND, "pypi.example", "The package registry does not have pytest."),
        ("prepare", "npm error code E403", "", UNREACHED),
        ("build", "npm error code E403", "", UNREACHED),
        ("build", "npm error code E403", "registry.example", ""),
        ("tests", "1 of 4 failed", "", ""),
        ("prepare", "No space left on device", "", "The disk of this host is full."),
    ],
)
def test_no_registry_is_said_to_have_answered_where_the_gate_was_shut(
    tmp_path: Path, step: str, printed: str, reached: str, fault: str
) -> None:
    (tmp_path / gate.UNREACHED).write_text("index.example private\n")
    (tmp_path / gate.REACHED).write_text(f"{reached}\n" if reached else "")
    (tmp_path / "output.log").write_text(printed)
    left = {"steps": [{"name": step, "code": 1, "log": [0, len(printed)]}]}
    verdict = verdicts.read(tmp_path, left)
    assert verdict.fault == fault
    assert (
        f"{verdict.fault or f'{step} ended with 1: {printed}.'} The sandbox lets nothing" in verdict.problem
    )
    assert "the operator can, in STEROIDS_SANDBOX_HOSTS." in verdict.problem


def test_who_asks_for_an_unreachable_host_without_an_end_hears_nothing_any_more(tmp_path: Path) -> None:
    (tmp_path / "output.log").touch()
    for hosts, host, status in (((), "unnamed.example", "403"), (("*",), "nothing.invalid", "502")):
        door = gate.Gate(tmp_path, {"hosts": hosts, "trusted": [], "upstream": "", "api": False})
        answers = []
        for _ in range(gate.ANSWERED_MAX + 3):
            here, inside = socket.socketpair()
            with inside:
                inside.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                door.one(here, threading.Semaphore())
                answers.append(inside.recv(4096).decode()[9:12])
        assert answers == [status] * gate.ANSWERED_MAX + [""] * 3
    assert sandbox.unreached(tmp_path) == {"unnamed.example": "unnamed", "nothing.invalid": "away"}


def test_who_asks_for_ever_other_hosts_fills_no_memory_of_the_gate(tmp_path: Path) -> None:
    """It stands outside of the sandbox, where nobody counts what it takes for the run."""
    (tmp_path / "output.log").touch()
    door = gate.Gate(tmp_path, {"hosts": (), "trusted": [], "upstream": "", "api": False})
    answers = []
    for number in range(gate.NAMED_MAX + 3):
        for name in (f"x{number}.example", "y" * 254 + f".{number}"):
            here, inside = socket.socketpair()
            with inside:
                inside.sendall(f"CONNECT {name}:443 HTTP/1.1\r\n\r\n".encode())
                door.one(here, threading.Semaphore())
                answers.append(inside.recv(4096).decode()[9:12])
    assert answers == ["403", "400"] * gate.NAMED_MAX + ["", "400"] * 3
    assert len(door.unreached) == gate.NAMED_MAX


def test_names_of_hosts_stand_for_hosts_and_ports() -> None:
    cases = (
        ("example.org", 443, ["example.org"], True), ("example.org", 80, ["EXAMPLE.org"], True),
        ("example.org", 22, ["example.org"], False), ("example.org", 22, ["example.org:22"], True),
        ("example.org", 443, ["example.org:22"], False), ("a.example.org", 443, ["example.org"], False),
        ("a.example.org", 443, ["*.example.org"], True), ("example.org", 443, ["*.example.org"], False),
        ("badexample.org", 443, ["*.example.org"], False), ("x.y", 443, ["*"], True),
        ("x.y", 25, ["*"], False), ("::1", 443, ["[::1]"], True), ("x.y", 443, [], False),
    )  # fmt: skip
    for host, port, names, expected in cases:
        assert is_named(host, port, names) is expected, (host, port, names)


def test_a_clone_cannot_lend_itself_the_objects_of_another_project(world: World, settings: Any) -> None:
    settings.SANDBOX = "required"
    other = world.mirror.path.with_name("99.git")
    shutil.copytree(world.mirror.path, other)
    blob = git(other, "hash-object", "-w", "--stdin", stdin=SECRET)
    run = world.coder()
    clone = paths.clone_of(run)
    tree = git(other, "mktree", stdin=f"100644 blob {blob}\tstolen.txt\n")
    stolen = git(other, "commit-tree", tree, "-p", run.base_sha or world.remote.first, "-m", "not mine")
    alternates = clone / ".git" / "objects" / "info" / "alternates"
    alternates.write_text(f"{world.mirror.path / 'objects'}\n{other / 'objects'}\n")
    git(clone, "update-ref", "refs/heads/other", stolen)
    subprocess.run(
        ["chown", "-R", str(sandbox._user(world.project.pk, "coder") or os.getuid()), clone], check=True
    )
    with pytest.raises(GitError):
        submissions.take(run, world.mirror, stolen, "refs/steroids/test")
    settings.SANDBOX = "off"
    subprocess.run(["chown", "-R", str(os.getuid()), clone], check=True)
    submissions.take(run, world.mirror, stolen, "refs/steroids/test")


def test_what_reads_a_clone_makes_no_user_namespace(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    clone, mirror = held.folder / "clone", held.world.mirror
    for is_root in {os.geteuid() == 0, False}:
        monkeypatch.setattr(sandbox, "_gives_users", lambda is_root=is_root: is_root)
        command = sandbox.upload_pack(clone, mirror.path, held.world.project.pk, "coder")
        mirror.take(clone, git(clone, "rev-parse", "HEAD"), "refs/steroids/test", command)
        said = []
        for words in ("echo inside", "unshare --user echo inside"):
            tried = command.replace("git-upload-pack", words)
            done = subprocess.run(["/bin/sh", "-c", tried], capture_output=True, text=True, check=False)
            said.append(done.stdout + done.stderr)
        assert said[0] == "inside\n"
        assert "No space left on device" in said[1], said


def test_a_host_without_bubblewrap_refuses_or_says_its_tier(
    settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.why_not.cache_clear()
    settings.SANDBOX = "wanted"
    assert sandbox.standing()["tier"] == 1
    assert "bubblewrap is not installed" in sandbox.standing()["why_open"]
    (told,) = machine.sandboxed()
    assert "bubblewrap is not installed" in told.says
    settings.SANDBOX = "required"
    with pytest.raises(sandbox.SandboxMissing, match="bubblewrap is not installed"):
        sandbox.tier()
    sandbox.why_not.cache_clear()


def test_root_of_a_namespace_without_other_users_encloses_as_who_is_not_root() -> None:
    asks = "from agents.hosts import sandbox; print([sandbox.why_not(), sandbox._user(1, 'coder')])"
    done = subprocess.run(
        ["unshare", "--map-root-user", sys.executable, "-c", f"import django; django.setup(); {asks}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "['', None]\n", done.stderr


def test_a_folder_of_programs_that_cannot_be_looked_at_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unseen = "/" + "x" * 300  # not even root may look at it
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{unseen}")
    monkeypatch.setenv("PYENV_ROOT", unseen)
    assert Path(sys.prefix) in sandbox.toolchains()


def test_toolchains_are_found_where_their_managers_keep_them_and_only_read(
    held: Held, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tools, home = tmp_path / "tools", tmp_path / "somebody"
    needed = {
        "PYENV_ROOT": tools / "pyenv" / "versions" / "3.9" / "lib" / "os.py",
        "NVM_DIR": tools / "nvm" / "versions" / "node" / "lib" / "npm.js",
        "RUSTUP_HOME": home / ".rustup" / "toolchains" / "stable" / "rustc",  # where it is by itself
    }
    cargo, go, linked = (tools / name / "bin" for name in ("cargo", "go", "linked"))
    node = tools / "node"
    files = [
        *needed.values(), cargo / "cargo", go / "go", go.parent / "src" / "runtime" / "panic.go",
        go.parent / "pkg" / "tool" / "link", node / "bin" / "node", node / "lib" / "fs.js",
        home / ".ssh" / "key", tools / "other" / "file",
    ]  # fmt: skip
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n")
    linked.mkdir(parents=True)
    (linked / "node").symlink_to(node / "bin" / "node")
    for path in (tools, home, *tools.rglob("*"), *home.rglob("*")):
        path.chmod(0o755)  # as they are installed
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PYENV_ROOT", str(tools / "pyenv"))
    monkeypatch.setenv("NVM_DIR", str(tools / "nvm"))
    monkeypatch.delenv("RUSTUP_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{cargo}:{go}:{linked}:{os.environ['PATH']}")
    planted = {"cargo/bin", "go", "linked/bin", "node/bin", "node/lib", "nvm", "pyenv", "../somebody/.rustup"}
    found = {path for path in sandbox.toolchains() if path.is_relative_to(tmp_path)}
    assert found == {Path(os.path.normpath(tools / name)) for name in planted}
    room = sandbox.Room(held.folder, held.world.project.pk, "coder", held.borrowed, CLOSED)
    words = list(room._binds([], None))
    assert {words[words.index(str(path)) - 1] for path in found} == {"--ro-bind"}
    seen = " ".join(str(file) for file in files[:-2])
    left = held.play(
        f"cat {seen} >/dev/null && echo all seen",
        f"for file in {seen}; do ! echo x >> $file || echo changed $file; done",
        f"! cat {files[-2]} {files[-1]}",
    )
    assert "all seen" in left["said"]
    assert "changed" not in left["said"]
    assert [step["code"] for step in left["steps"]] == [0, 0, 0], left["said"]
    assert {file.read_text() for file in files} == {"#!/bin/sh\n"}


def test_no_command_of_a_repository_opens_a_file_of_the_host(held: Held, tmp_path: Path) -> None:
    """Its own steroids.yaml, or a commit of a task that is to find the commands, names what is run.

    Nor does a link that its trial left where a variable of the next run points to.
    """
    kept = caches.kept_of(held.world.project.pk)
    kept.mkdir(parents=True)
    secret = tmp_path / "id_ed25519"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    (kept / "pip").symlink_to(secret)
    for recipe in (
        Recipe(build=f"cat {secret} $PIP_CACHE_DIR || true", test=str(secret)),
        Recipe(prepare=str(tmp_path), build=str(secret), test=f"ls {tmp_path}"),
        Recipe(prepare=f"cat {secret}; true", build="true", test=str(secret)),
    ):
        left = held.play(recipe=recipe, role="verifier")
        assert SECRET not in left["said"], recipe
        assert left["steps"][-1]["code"], recipe
    own = commands.own_environment(held.world.project, held.folder, "coder")
    with pytest.raises(ProviderError, match="is a path"):  # which a project's ladder names for its model
        agent_step(create_agent("coder"), str(secret), held.folder, own)


def test_neither_secrets_nor_homes_are_among_what_is_seen(settings: Any, tmp_path: Path) -> None:
    settings.HOME = tmp_path / "data"
    (tmp_path / "data" / "mirrors").mkdir(parents=True)
    refused = [
        settings.HOME,
        settings.HOME / "mirrors",
        tmp_path,
        Path.home(),
        Path("/"),
        Path("/etc"),
        settings.BASE_DIR,
    ]
    assert not [path for path in refused if sandbox._may_be_seen(path)]
    assert Path(sys.prefix) in sandbox.toolchains()


def test_what_the_untouched_branch_reached_is_what_builds_may_reach_from_then_on(
    world: World, site: Site, settings: Any
) -> None:
    named = f"127.0.0.1:{site.port}"
    settings.SANDBOX, settings.SANDBOX_HOSTS = "required", [named]
    fetch = f"curl -fsS --noproxy '' -x $HTTP_PROXY http://{named}/index"
    configure(world.project, {"prepare_command": fetch, "test_command": "true"}, actor=SYSTEM)
    project = tried(world)
    assert site.asked == ["GET /index"]
    assert project.config.allowed_hosts == named
    assert starting.reach_of_builds(project) == Reach(hosts=(named,))
    assert project.trials.get().hosts == [named]
    setup = world.task(origin="setup")
    assert starting.reach_of_builds(project, setup) == Reach(hosts=("*",))


def test_a_host_that_has_to_enclose_and_cannot_holds_nothing(
    world: World, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.SANDBOX = "required"
    (tmp_path / "git").symlink_to(shutil.which("git") or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.why_not.cache_clear()
    with pytest.raises(sandbox.SandboxMissing, match="Install it, or choose another value"), Reconciler():
        pass
    monkeypatch.undo()
    sandbox.why_not.cache_clear()
