"""Telling processes apart, with real ones."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.hosts import processes
from tests.cases import for_each

MARK = f"STEROIDS_PROCESS_TEST_{os.getpid()}"  # others may run these tests at this very moment
Start = Callable[..., subprocess.Popen[bytes]]

STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(60)
"""


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a process that is ended and collected with the test."""
    children: list[subprocess.Popen[bytes]] = []

    def run(*argv: str, mark: str = "", **more: object) -> subprocess.Popen[bytes]:
        environment = {"PATH": os.environ["PATH"]} | ({MARK: mark} if mark else {})
        child = subprocess.Popen(argv, env=environment, **more)  # type: ignore[call-overload]
        children.append(child)
        return child

    yield run
    for child in children:
        child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()


def stubborn(start: Start, mark: str = "") -> subprocess.Popen[bytes]:
    """A process that ignores TERM, and already does."""
    child = start(sys.executable, "-I", "-S", "-c", STUBBORN, mark=mark, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    return child


def test_it_knows_itself() -> None:
    me = processes.identity()
    assert me == processes.identity(os.getpid())
    assert me.boot_id
    assert me.start > 0
    assert processes.is_alive(me)


def test_a_process_lives_until_it_ends(start: Start) -> None:
    child = start("sleep", "60")
    who = processes.identity(child.pid)
    assert processes.is_alive(who)
    child.kill()
    child.wait()
    assert not processes.is_alive(who)


def test_a_zombie_does_not_live(start: Start) -> None:
    child = start("sleep", "60")
    who = processes.identity(child.pid)
    child.kill()
    deadline = time.monotonic() + 60
    while processes.is_alive(who) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert Path(f"/proc/{child.pid}").exists()  # nobody has collected it yet
    assert not processes.is_alive(who)


def test_the_same_number_with_another_start_is_a_stranger() -> None:
    me = processes.identity()
    assert not processes.is_alive(me._replace(start=me.start + 1))


def test_the_same_number_of_another_boot_is_a_stranger() -> None:
    assert not processes.is_alive(processes.identity()._replace(boot_id="another boot"))


def test_a_process_that_never_was_has_no_start() -> None:
    nobody = processes.identity(2**22 + 1)
    assert nobody.start == 0
    assert not processes.is_alive(nobody)


def test_a_program_with_a_misleading_name_is_told_apart(start: Start, tmp_path: Path) -> None:
    """The kernel prints the name between parentheses, in front of the fields we read."""
    program = tmp_path / "a) Z 1 (b"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    child = start(str(program), "60")
    who = processes.identity(child.pid)
    assert who.start >= processes.identity().start
    assert processes.is_alive(who)


def test_it_writes_who_it_is_and_reads_it_again(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    processes.write_identity(path, processes.identity())
    assert processes.read_identity(path) == processes.identity()
    assert path.stat().st_mode & 0o777 == 0o600


@for_each("text", ["", "{", "[]", "null", "12", '{"pid": 1}', '{"boot_id": "x", "pid": "one", "start": 2}'])
def test_a_damaged_file_names_nobody(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pid"
    path.write_text(text)
    assert processes.read_identity(path) is None


def test_a_missing_file_names_nobody(tmp_path: Path) -> None:
    assert processes.read_identity(tmp_path / "pid") is None


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "exit.json"
    processes.write_json(path, {"old": True})
    with pytest.raises(TypeError):
        processes.write_json(path, {"new": object()})
    assert path.read_text() == '{"old": true}'


def test_it_finds_processes_by_their_mark(start: Start) -> None:
    ours = {start("sleep", "60", mark="7").pid, start("sleep", "60", mark="7").pid}
    for other in ("77", "", "x7"):
        start("sleep", "60", mark=other)
    assert {who.pid for who in processes.marked(MARK, "7")} == ours


def test_it_never_finds_itself() -> None:
    name, value = Path("/proc/self/environ").read_bytes().split(b"\0")[0].decode().split("=", 1)
    assert os.getpid() not in {who.pid for who in processes.marked(name, value)}


def test_it_ends_a_process_that_listens(start: Start) -> None:
    child = start("sleep", "60")
    assert processes.end_all([processes.identity(child.pid)], grace=60.0)
    assert child.wait() == -signal.SIGTERM


def test_it_kills_a_process_that_does_not_listen(start: Start) -> None:
    child = stubborn(start)
    started = time.monotonic()
    assert processes.end_all([processes.identity(child.pid)], grace=0.2)
    assert time.monotonic() - started >= 0.2
    assert child.wait() == -signal.SIGKILL


def test_it_waits_no_longer_than_it_must(start: Start) -> None:
    children = [processes.identity(start("sleep", "60").pid) for _ in range(3)]
    started = time.monotonic()
    assert processes.end_all(children, grace=300.0)
    assert time.monotonic() - started < 300


def test_it_leaves_a_stranger_with_the_same_number_alone(start: Start) -> None:
    """F25: the number was given to somebody else since we wrote it down."""
    child = start("sleep", "60")
    gone = processes.identity(child.pid)._replace(start=1)
    assert processes.end_all([gone], grace=0.0)
    processes.signal_all([gone], signal.SIGKILL)
    assert processes.is_alive(processes.identity(child.pid))


def test_there_is_nothing_to_end_in_an_empty_list() -> None:
    assert processes.end_all([], grace=30.0)


def test_it_ends_what_it_found_by_the_mark(start: Start) -> None:
    stubborn(start, mark="crowd")
    start("sleep", "60", mark="crowd")
    until = time.monotonic() + 10  # a process shows its environment a moment after it has begun
    while len(processes.marked(MARK, "crowd")) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    assert processes.end_all(processes.marked(MARK, "crowd"), grace=0.2)
    assert processes.marked(MARK, "crowd") == []
