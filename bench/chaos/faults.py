"""The faults: how each strikes, how it ends, and what may be seen of it afterwards."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from agents.hosts import processes
from bench.chaos.servers import wait_until
from bench.chaos.site import RESTART, Batch, Site
from tests.end_to_end.installation import ROOT
from tests.end_to_end.loop import git

SHORT = 6.0  # seconds that most faults last
LET_IN = 30.0  # seconds after which a second host that still runs counts as let in
VICTIM = 60.0  # seconds within which there has to be something to hit
SQLITE, SERVERS = "SQLite", "PostgreSQL + Redis"
BOTH = (SQLITE, SERVERS)


@dataclass
class Scene:
    """Where and when a fault strikes."""

    site: Site
    batch: Batch
    rng: Random
    held: float = 0.0  # seconds that the fault lasted, in which nothing could be done

    def last(self, seconds: float) -> None:
        """Let the fault go on for so long."""
        time.sleep(seconds)
        self.held += seconds

    def moment(self, most: int = 3) -> None:
        """Wait for a moment in the middle of the batch, chosen by the seed."""
        after = self.rng.randint(1, most)
        wait_until(lambda: self.site.handed_in(self.batch) >= after, "the middle of the work", VICTIM)
        time.sleep(self.rng.uniform(0, 0.5))

    def one_of(self, find: Callable[[], list[processes.Identity]], what: str) -> processes.Identity:
        return self.rng.choice(wait_until(find, what, VICTIM))


def kill(*these: processes.Identity) -> None:
    processes.signal_all(these, signal.SIGKILL)


# --- Killed processes -------------------------------------------------------------------------------------


def kill_server(name: str, generation: int) -> Callable[[Scene], None]:
    """Kill the server's main process (0), one of its children (1), or one of theirs (2)."""

    def strike(scene: Scene) -> None:
        scene.moment()
        kill(one_of_server(scene, name, generation))

    return strike


def one_of_server(scene: Scene, name: str, generation: int) -> processes.Identity:
    def find() -> list[processes.Identity]:
        found = scene.site.top_of(name)
        for _ in range(generation):
            found = scene.site.below(found, name)
        return found

    return scene.one_of(find, name)


def kill_supervisor(scene: Scene) -> None:
    scene.moment()
    end_supervisor(scene)


def end_supervisor(scene: Scene) -> None:
    """Kill the supervisor; the second until it is started again does not count as the program's."""
    supervisor = scene.site.supervisor
    if supervisor is not None:
        scene.site.killed.add(supervisor.pid)
        supervisor.kill()
        scene.held = RESTART


def kill_shim(scene: Scene) -> None:
    kill(scene.one_of(scene.site.shims, "a shim at work"))


def kill_agent(scene: Scene) -> None:
    kill(scene.one_of(scene.site.agents, "an agent at work"))


def kill_everything(scene: Scene) -> None:
    """Kill everything, as when the machine loses power, except that the disk loses nothing."""
    scene.moment()
    end_supervisor(scene)
    kill(*scene.site.all_at_once())


def freeze_loop(scene: Scene) -> None:
    """Stop the loop for some of its turns without killing anything."""
    scene.moment()
    loop = scene.site.top_of("loop")
    processes.signal_all(loop, signal.SIGSTOP)
    try:
        scene.last(SHORT)
    finally:
        processes.signal_all(loop, signal.SIGCONT)


def lose_answers(scene: Scene) -> None:
    """Make agents send what they hand in, never hear the answer, and send it again with the same key."""
    flag = scene.site.ledger_folder / "lose-answers"
    flag.touch()
    try:
        lost = lambda: [one for one in scene.site.ledger()[before:] if one["kind"] == "answer lost"]  # noqa: E731
        before = len(scene.site.ledger())
        wait_until(lambda: len(lost()) >= 3, "lost answers", VICTIM)
    finally:
        flag.unlink()


# --- The remote -------------------------------------------------------------------------------------------


@contextmanager
def held(scene: Scene, word: str) -> Iterator[None]:
    """Hold a push before (or after) the remote has taken it, until the block ends."""
    hold, there = (scene.site.folder / f"{prefix}-{word}" for prefix in ("hold", "at"))
    there.unlink(missing_ok=True)
    hold.touch()
    try:
        wait_until(there.exists, "a push", VICTIM)
        yield
    finally:
        hold.unlink()


def kill_push_before(scene: Scene) -> None:
    with held(scene, "before"):
        kill(scene.one_of(scene.site.pushes, "git push"), *scene.site.receivers())


def kill_push_after(scene: Scene) -> None:
    """Kill the push and the loop once the remote has the commit; then a colleague pushes on top."""
    with held(scene, "after"):
        kill(*scene.site.top_of("loop"), *scene.site.pushes())
    push_something(scene, "on top")


def push_something(scene: Scene, what: str, drop: int = 0) -> None:
    """Push a colleague's commit; with `drop`, by force in place of so many of the last ones."""
    with tempfile.TemporaryDirectory(dir=scene.site.folder) as folder:
        clone = Path(folder)
        subprocess.run(["git", "clone", "-q", str(scene.site.remote), str(clone)], check=True)
        if drop:
            git(clone, "reset", "--hard", "-q", f"HEAD~{drop}")
        name = f"colleague-{scene.batch.name.split()[-1]}.txt"
        (clone / name).write_text(f"{what}\n")
        git(clone, "add", "-A")
        git(clone, "commit", "-q", "-m", f"colleague: {what}")
        for _ in range(20):  # landings go on meanwhile
            with contextlib.suppress(subprocess.CalledProcessError):
                git(clone, "push", "-q", *(["--force"] if drop else []), "origin", "HEAD:main")
                return
            git(clone, "pull", "-q", "--rebase")
        raise TimeoutError("The colleague could not push.")


def pushes_of_others(scene: Scene) -> None:
    for number in range(3):
        scene.moment()
        push_something(scene, f"number {number}")


def force_push(scene: Scene) -> None:
    """Let a colleague rewrite the branch and drop the commit that landed last."""
    landed = "SELECT title FROM tasks_task WHERE landed_sha = '{}'"
    titles = set(scene.batch.titles)

    def last() -> str:
        rows = scene.site.rows(landed.format(scene.site.head()))
        return str(rows[0][0]) if rows and rows[0][0] in titles else ""

    title = wait_until(last, "a landing on top of the branch", VICTIM)
    number = int(title.split()[1].partition(".")[0])
    scene.site.batches[number - 1].dropped.add(title)
    push_something(scene, "by force", drop=scene.batch.plan_of(title)[2])


def hang_remote(scene: Scene) -> None:
    """Make the repository hang for whoever opens it: its HEAD is a pipe that nobody writes to."""
    scene.moment()
    head = scene.site.remote / "HEAD"
    kept = head.with_name("HEAD.kept")
    head.rename(kept)
    os.mkfifo(head)
    try:
        scene.last(SHORT)
    finally:
        kept.rename(head.with_name("HEAD.next"))
        pipe = os.open(head, os.O_RDWR | os.O_NONBLOCK)  # whoever waits reads an empty file
        head.with_name("HEAD.next").replace(head)
        time.sleep(0.1)
        os.close(pipe)


def delete_remote(scene: Scene) -> None:
    scene.moment()
    remote = scene.site.remote
    away = remote.with_name("away.git")
    remote.rename(away)
    try:
        scene.last(SHORT)
    finally:
        away.rename(remote)


def leave_locks(scene: Scene) -> None:
    """Leave the lock files that git leaves in the mirror if it is killed at the wrong moment."""
    mirror = next((scene.site.home / "mirrors").glob("[1-9]*.git"))
    scene.moment()
    for name in ("packed-refs.lock", "HEAD.lock", "refs/steroids/target/main.lock"):
        (mirror / name).touch()


# --- Disk, database, clock --------------------------------------------------------------------------------


def fill_disk(scene: Scene) -> None:
    scene.moment()
    ballast = scene.site.home / "ballast"
    try:
        end = time.monotonic() + SHORT
        with ballast.open("ab", buffering=0) as file:
            while time.monotonic() < end:  # space that is freed meanwhile is filled again
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"x" * 65536)
                with contextlib.suppress(OSError):
                    file.write(b"x" * 512)
                time.sleep(0.05)
    finally:
        ballast.unlink()
        scene.held = SHORT


def lock_database(scene: Scene) -> None:
    """Hold a write lock for longer than anybody waits for it."""
    scene.moment()
    seconds = 24.0 if not scene.site.postgres else SHORT
    if scene.site.postgres:
        with scene.site.connected() as rows, rows.transaction():
            rows.execute("LOCK TABLE tasks_task, agents_run, tasks_event IN ACCESS EXCLUSIVE MODE")
            scene.last(seconds)
        return
    words = (
        "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None);"
        " c.execute('BEGIN IMMEDIATE'); time.sleep(float(sys.argv[2])); c.execute('ROLLBACK')"
    )
    file = scene.site.home / "steroids.sqlite3"
    subprocess.run([sys.executable, "-c", words, str(file), str(seconds)], check=True)
    scene.held = seconds


def restart_redis(scene: Scene) -> None:
    scene.moment()
    redis = scene.site.redis
    assert redis is not None
    redis.kill()
    scene.last(SHORT)
    redis.start()


def restart_postgres(scene: Scene) -> None:
    scene.moment()
    postgres = scene.site.postgres
    assert postgres is not None
    postgres.stop()
    scene.last(SHORT)
    postgres.start()


def cut(*, forgets: bool) -> Callable[[Scene], None]:
    def strike(scene: Scene) -> None:
        scene.moment()
        wires = scene.site.wires
        assert wires is not None
        wires.cut()
        try:
            scene.last(SHORT)
        finally:
            wires.mend(forgets=forgets)

    return strike


def step_clock(seconds: int) -> Callable[[Scene], None]:
    """Step the clock while an agent is at work and a process of the cluster dies.

    Leases, and the waits of the cluster's guard, end at a time of day.
    """

    def strike(scene: Scene) -> None:
        agent = scene.one_of(scene.site.agents, "an agent at work")
        processes.signal_all([agent], signal.SIGSTOP)
        try:
            scene.site.step_clock(seconds)
            kill(one_of_server(scene, "cluster", 2))
            scene.last(SHORT)
        finally:
            processes.signal_all([agent], signal.SIGCONT)

    return strike


def start_twin(scene: Scene) -> None:
    """Start another installation with this name on this database, and a second one on this folder."""
    scene.moment()
    site = scene.site
    twin = site.folder / f"twin-{len(site.batches)}"
    twin.mkdir(mode=0o700)
    database = site.environment.get("DATABASE_URL", f"sqlite:///{site.home / 'steroids.sqlite3'}")
    environment = site.environment | {"STEROIDS_HOME": str(twin), "DATABASE_URL": database}
    words = [sys.executable, "manage.py", "run_orchestrator", "--no-web", "--quiet"]
    options: dict[str, Any] = {"cwd": ROOT, "capture_output": True, "text": True, "check": False}
    try:
        done = subprocess.run(words, env=environment, timeout=LET_IN, **options)
        if "belongs to" not in done.stderr:
            site.remarks.append(f"The twin ended with {done.returncode}, not told that its name is taken.")
    except subprocess.TimeoutExpired:
        site.remarks.append("A second host of the same name was let in.")
    second = subprocess.run(words, env=site.environment, timeout=60, **options)
    if second.returncode or "Steroids Web answers on" not in second.stdout:
        site.remarks.append(f"A second start here ended with {second.returncode}: {second.stdout[-200:]}")


# --- The table --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A row of the table.

    `lost` is how many runs it may lose, and `again` says whether work may have to be done again.
    """

    name: str
    how: str
    ends: str
    strike: Callable[[Scene], None]
    on: tuple[str, ...] = BOTH
    lost: int = 0
    failed: int = 0  # runs that may end without a result
    again: bool = False
    cards: tuple[str, ...] = ()  # the origins of the cards that people must see
    why_not: Callable[[Site], str] = lambda site: ""


def needs_compiler(site: Site | None = None) -> str:
    return "" if shutil.which("cc") else "the clock that can be set needs a C compiler"


def needs_disk(site: Site) -> str:
    return "" if site.home.is_mount() else "a small disk can only be mounted by root"


KILLED = "SIGKILL"
FAULTS = [
    Fault("web server", f"{KILLED} to gunicorn's main process", "forked again", kill_server("web", 0)),
    Fault("web worker", f"{KILLED} to one that answers requests", "replaced", kill_server("web", 1)),
    Fault("supervisor", f"{KILLED} to run_orchestrator; its servers end with it", "started again after 1 s",
          kill_supervisor),
    Fault("loop", f"{KILLED} to the loop alone", "forked again", kill_server("loop", 0)),
    Fault("cluster", f"{KILLED} to qcluster's main process", "forked again", kill_server("cluster", 0)),
    Fault("cluster's sentinel", KILLED, "the cluster is forked again", kill_server("cluster", 1)),
    Fault("cluster's worker", f"{KILLED} to a worker, the pusher or the monitor", "replaced",
          kill_server("cluster", 2)),
    Fault("shim", f"{KILLED} to one that holds a coder or reviewer", "its run is begun again", kill_shim,
          lost=1),
    Fault("agent", f"{KILLED} to a coder or reviewer", "its run is begun again", kill_agent, failed=1),
    Fault("everything", f"{KILLED} to all processes at once, shims and agents too", "started again after 1 s",
          kill_everything, lost=4, failed=4),
    Fault("frozen loop", "SIGSTOP to the loop", f"SIGCONT after {SHORT:g} s", freeze_loop),
    Fault("lost answers", "agents never read the answer to a hand-in", "they send it again", lose_answers),
    Fault("push, before", f"{KILLED} to git push before the remote took it", "pushed again",
          kill_push_before),
    Fault("push, after", f"{KILLED} to git push and the loop once the remote took it; others push on top",
          "the loop is forked again", kill_push_after),
    Fault("others push", "a colleague pushes three times meanwhile", "-", pushes_of_others),
    Fault("force-push", "a colleague drops what landed last from the branch", "people are told", force_push,
          cards=("rewritten",), again=True),
    Fault("hung remote", "whoever opens the repository waits", f"after {SHORT:g} s", hang_remote),
    Fault("deleted remote", "the repository is renamed", f"back after {SHORT:g} s", delete_remote),
    Fault("left locks", "lock files of a killed git in the mirror", "never", leave_locks),
    Fault("disk full", "the data folder's disk is filled up", f"room after {SHORT:g} s",
          fill_disk, why_not=needs_disk, lost=4, failed=4),
    Fault("locked database", "somebody else holds the lock for writing",
          f"after 24 s; {SHORT:g} s on PostgreSQL", lock_database),
    Fault("Redis away", f"{KILLED} to Redis", f"a new, empty one after {SHORT:g} s", restart_redis,
          on=(SERVERS,)),
    Fault("PostgreSQL away", "stopped at once, without a goodbye", f"started after {SHORT:g} s",
          restart_postgres, on=(SERVERS,)),
    Fault("partition", "nothing passes between host and servers", f"goes on after {SHORT:g} s",
          cut(forgets=False), on=(SERVERS,)),
    Fault("partition, forgotten", "the same; connections of before are reset", f"after {SHORT:g} s",
          cut(forgets=True), on=(SERVERS,)),
    Fault("clock + 1 h", "the clock of the host and the database's steps while an agent works and one of the "
          f"cluster gets {KILLED}", f"the agent goes on after {SHORT:g} s", step_clock(3600),
          why_not=needs_compiler),
    Fault("clock - 1 h", "it steps back; the same", "the same", step_clock(-3600), why_not=needs_compiler),
    Fault("twins", "a second host of the same name on the same database", "refused", start_twin),
]  # fmt: skip
