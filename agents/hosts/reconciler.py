"""What one agent host does with the rows: claim and hold runs, read how they ended, keep and land commits.

One process per host does it at a time, by a lock on a file: the resident loop of `run_orchestrator` or, if
none runs, a tick of the cluster. All state is read from rows and run folders, so whoever takes over after a
crash adopts what is still alive.
"""

import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.db import close_old_connections, connections
from django.db.models import Exists, Expression, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Now

from agents import judging, retention
from agents.hosts import (
    api_server,
    landing,
    launching,
    naming,
    outcomes,
    paths,
    processes,
    sandbox,
    starting,
    submissions,
    tidying,
)
from agents.hosts.branches import amending, disputed_work, records, todo
from agents.hosts.git.commands import GitError
from agents.hosts.git.remotes import Unreachable
from agents.hosts.naming import host_name
from agents.hosts.slow_work import Guard, SlowWork, logged
from agents.loop import outlook, run_ends
from agents.models import Run
from agents.models.host import ROOM_MIN
from agents.money import metering
from agents.verification import trying
from agents.verification.unreachable import trouble
from disputes.completion import stuck
from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared, PreparedUpdate
from tasks.models import Finding, Landing, Project, Review, Submission
from tasks.text.regex import regex

log = logging.getLogger(__name__)

RUN_FOLDER = regex(r"[1-9][0-9]{0,17}")
MISSED_REVIEWS = 50  # recent reviews whose places a new loop looks up
# Seconds between the beginnings of two passes: for each run beside the first, and at most.
APART, APART_MAX = 0.01, 0.1
NO_WORD = "The disk of this host was full, so its shim could not say how it ended."
PULLED_AT_ONCE = 4  # runs of agents elsewhere that are prepared in one turn of the loop


class HostBusy(Exception):
    """Another process on this host holds its runs."""


@dataclass
class _Watched:
    """What this process remembers of a run that it holds: times by its own clock, and the API's URL."""

    copied: float = 0.0  # when its log was last copied
    closing: float = 0.0  # since when it has been closing, or 0
    url: str = ""  # under which it was told to reach the API


class Reconciler:
    """Holds this host's runs for as long as it is open.

    Raises HostBusy if another process does, and NameTaken if another installation has this host's name.
    """

    def __init__(self, *, threads: bool = False) -> None:
        self._slow = SlowWork(threads=threads)
        self._holds_runs = False
        self._guard = Guard()
        self._stack = contextlib.ExitStack()
        self._taken = False
        self._begun = self._beaten = self._polled = 0.0
        self._excerpted = 0  # the newest review whose places were looked up
        self._watched: dict[int, _Watched] = {}
        self._claimed: set[int] = set()  # runs that this process itself starts
        self._over = threading.Event()
        self._is_ours = True
        self._cleared: set[str] = set()  # folders of ended runs that have been cleared

    def __enter__(self) -> "Reconciler":
        if not self._taken:
            self.take()
        return self

    def take(self) -> None:
        """Become the process that holds this host's runs. Raises HostBusy and NameTaken."""
        lock = os.open(paths.host_lock(), os.O_RDWR | os.O_CREAT, 0o600)
        self._stack.callback(os.close, lock)
        if not processes.took(lock):
            self._stack.close()
            raise HostBusy(f"Another process on {host_name()} holds its runs.")
        try:
            self.row = naming.register()
        except BaseException:
            self._stack.close()
            raise
        self._bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._stack.callback(self._bell.close)
        path = paths.bell_socket()
        path.unlink(missing_ok=True)
        self._bell.bind(str(path))
        os.chmod(path, 0o600)
        self._stack.callback(lambda: path.unlink(missing_ok=True))
        self._taken = True
        if self._slow.has_threads:
            self._beat()
            self._beating = threading.Thread(target=self._keep_beating, name="beat", daemon=True)
            self._beating.start()

    def __exit__(self, *error: object) -> None:
        if self._slow.has_threads:
            self._slow.end()
            self._over.set()
            self._beating.join()
        self._stack.close()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the bell, for `seconds` or one turn of the loop at most; return whether it rang.

        The more runs are at work, the longer it goes on listening, so that one pass serves several of them.
        """
        self._bell.settimeout(settings.DURATIONS["loop"] if seconds is None else seconds)
        others = max(len(self._watched) - 1, 0)
        try:
            self._bell.recv(64)
            time.sleep(max(self._begun + min(others * APART, APART_MAX) - time.monotonic(), 0.0))
            self._bell.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    self._bell.recv(64)
        except TimeoutError:
            return False
        return True

    def held(self) -> list[Run]:
        """Return the runs that this host holds."""
        held = _held.found(self.row.pk)
        for run in held:
            run.host, run.project = self.row, run.task.project
        return held

    def has_live_runs(self) -> bool:
        """Whether this host holds anything, or could go on with something at once."""
        held = Run.objects.on_host().filter(host=self.row).exists()
        return held or self.is_slow() or bool(self._landings()) or trying.is_under_way(host=self.row)

    def is_slow(self) -> bool:
        """Whether git, or other work that takes a while, is under way."""
        return self._slow.is_any()

    def is_clearing_up(self) -> bool:
        """Whether all that is under way is work whose end may not ring the bell."""
        return self.is_slow() and not (self._holds_runs or self._claimed)

    def _landings(self) -> list[Landing]:
        """Return the landings that this host may go on with; without slots, only those that are its alone."""
        due = landing.due(self.row.name)
        return due if self.row.slots else [one for one in due if one.only_on]

    def _land(self, first: Landing) -> None:
        """Take one step of the landing and, each time one has landed, of the next in its branch's queue."""
        turn: Landing | None = first
        while turn and landing.advance(turn, self.row.name):
            turn = next((one for one in self._landings() if _queue_of(one) == _queue_of(first)), None)

    def step(self) -> bool:
        """Make one pass over everything; return whether anything is under way here. Raises NameTaken."""
        self._begun = time.monotonic()
        self._look_around()
        if not self._is_ours:
            raise naming.taken(self.row)
        self._slow.forget_done()
        there = outlook.at_host(self.row.pk)
        for one in self._landings() if there.lands else ():  # what others wait for comes first
            self._slow.do(f"landing-{_queue_of(one)}", lambda one=one: self._land(one))
        if there.received:
            self._keep_submissions()
        held = self.held() if there.holds_runs else []
        self._holds_runs = bool(held)
        self._watched = {run.pk: self._watched.get(run.pk) or _Watched() for run in held}
        self._claimed &= {*self._watched}
        metering.forget({*self._watched})
        for run in held:
            self._guard.work_on(f"run-{run.pk}", run, lambda run=run: self._reconcile(run), self._lose)
        if there.queued:
            self._claim(len([run for run in held if run.status in Run.HELD]))
        self._fill_excerpts(there.newest_review)
        self._look_after_branches(there)
        self._slow.forget_done()
        return bool(held) or self.is_slow() or (there.is_anything and self.has_live_runs())

    def _look_after_branches(self, there: outlook.AtHost) -> None:
        """Try commands on target branches, write to the other branches, and follow lists of tasks."""
        if not self._is_time_to_poll():
            if there.tries:
                trying.advance(self.row, self._slow.do)
            return
        may = outlook.now_and_then()
        if there.tries or may.tried:
            trying.advance(self.row, self._slow.do)
        if not self.row.slots:
            return
        for project in records.due() if may.recorded else ():
            self._slow.do(f"records-{project.pk}", lambda project=project: records.write(project))
        for one in disputed_work.due() if may.set_aside else ():
            self._slow.do(f"aside-{one.pk}", lambda one=one: disputed_work.push(one))
        for project in todo.due() if may.followed else ():
            self._slow.do(f"todo-{project.pk}", lambda project=project: todo.follow(project))
        for amendment in amending.due() if may.amended else ():
            self._slow.do(f"amendment-{amendment.pk}", lambda one=amendment: amending.advance(one))

    def _is_time_to_poll(self) -> bool:
        """Whether it is time to look at branches that nobody works on, which is done now and then."""
        now = processes.boottime()
        if now - self._polled < settings.DURATIONS["reap"]:
            return False
        self._polled = now
        return True

    # --- Leases -----------------------------------------------------------------------------------------

    def _look_around(self) -> None:
        """Once a beat, look for what is not ours and tidy up; renew leases too, if no thread of ours does."""
        now = processes.boottime()
        if now - self._beaten < settings.DURATIONS["beat"]:
            return
        self._beaten = now
        if not self._slow.has_threads:
            self._beat()
        self.row.refresh_from_db()
        if not self._is_ours:
            return
        self._end_strangers(set(Run.objects.on_host().filter(host=self.row).values_list("pk", flat=True)))
        if tidying.is_due():
            self._slow.do("tidy", lambda: _tell(retention.prune_host()))

    def _keep_beating(self) -> None:
        """Renew leases in a thread, however long a turn of the loop takes."""
        while not self._over.wait(settings.DURATIONS["beat"]):
            logged("A beat", self._beat)
            close_old_connections()
        connections.close_all()

    def _beat(self) -> None:
        """Renew the leases of this host's runs, and tell each shim that somebody still looks after it."""
        self._is_ours = naming.still_ours(self.row)
        if not self._is_ours:
            return
        lease = timedelta(seconds=settings.DURATIONS["lease"])
        mine = Run.objects.on_host().filter(host=self.row)
        mine.update(lease_until=Now() + lease, is_overdue=False)
        alive = list(mine.values_list("pk", flat=True))
        for pk in alive:
            with contextlib.suppress(OSError):  # a run that spoils its lease is ended by its shim
                starting.renew_lease(paths.run_folder(pk))
        trying.beat(self.row)
        if alive:
            api_server.touch()

    def _end_strangers(self, mine: set[int]) -> None:
        """Stop the shims of runs that are not this host's any more, and clear folders that nobody needs."""
        root = Path(settings.HOME) / "runs"
        folders = [
            folder for folder in (root.iterdir() if root.exists() else [])
            if folder.name not in self._cleared and RUN_FOLDER.fullmatch(folder.name)
            and int(folder.name) not in mine
        ]  # fmt: skip
        needed = set(Run.objects.needed().values_list("pk", flat=True)) if folders else set()
        for folder in folders:
            logged(f"Looking into {folder}", lambda folder=folder: self._end_stranger(folder, needed))

    def _end_stranger(self, folder: Path, needed: set[int]) -> None:
        if self._slow.is_under_way(f"run-{folder.name}"):
            return
        shim = processes.read_identity(folder / "pid")
        if shim and processes.is_alive(shim):
            _stop(folder)
        elif int(folder.name) not in needed:
            outcomes.remove_folder(Run(pk=int(folder.name)))
            self._cleared.add(folder.name)

    # --- Runs that are held -----------------------------------------------------------------------------

    def _reconcile(self, run: Run) -> None:
        folder = paths.run_folder(run.pk)
        if self._slow.is_under_way(f"run-{run.pk}"):
            if (folder / "exit.json").exists():
                self._slow.wait_for(f"run-{run.pk}")
            return
        shim, is_held, left = starting.hold_of(folder)
        if left is not None:
            if run.status == Run.Status.STARTING:
                Run.objects.filter(pk=run.pk, fence=run.fence).update(status=Run.Status.RUNNING)
            self._end(run, lambda: outcomes.finish(run, left))
            return
        if shim and is_held:
            if run.status == Run.Status.STARTING:
                _running.write(run.pk, run.fence, started_at=estimated_time())
            self._keep_going(run, shim)
            self._look_after(run, folder)
        elif shim:
            why = "Its shim was killed." if paths.room() >= ROOM_MIN else NO_WORD
            self._end(run, lambda: self._bury(run, why))
        elif self._nobody_starts(run, folder):
            if run.status == Run.Status.STARTING:
                why = f"Host {self.row.name} gave up while it was starting."
                self._end(run, lambda: self._bury(run, why, Run.Outcome.STOPPED))
            else:
                self._end(run, lambda: self._bury(run, "It never started, or its folder is damaged."))

    def _end(self, run: Run, work: Callable[[], None]) -> None:
        """Read what the run left and end it, which may take a while; its token is revoked at once."""
        paths.use_reserve()
        run_ends.end_token(run)
        self._work_on(run, lambda: self._guard.work_on(f"end-{run.pk}", run, work, self._lose))

    def _work_on(self, run: Run, work: Callable[[], None]) -> None:
        """Do one thing at a time for a run; what comes of it is an event, and that rings."""
        self._slow.do(f"run-{run.pk}", work, is_heard=True)

    def _nobody_starts(self, run: Run, folder: Path) -> bool:
        """Whether a run without a shim will never get one, as whoever was starting it died or failed."""
        is_ours = run.status == Run.Status.STARTING and run.pk in self._claimed
        if not is_ours and not processes.working_in(folder):
            return processes.read_identity(folder / "pid") is None  # it may just have written that, and ended
        since = run.started_at or run.queued_at
        return (estimated_time() - since).total_seconds() > settings.DURATIONS["starting"]

    def _keep_going(self, run: Run, shim: processes.Identity) -> None:
        """Wake a shim that its agent, having the same user, has stopped; kill it if the run is too old."""
        if not processes.is_stopped(shim):
            return
        longest = settings.DURATIONS["wall"] + settings.DURATIONS["orphan"]
        age = (estimated_time() - (run.started_at or run.queued_at)).total_seconds()
        processes.signal_all([shim], signal.SIGKILL if age > longest else signal.SIGCONT)

    def _look_after(self, run: Run, folder: Path) -> None:
        """Look after a live run: stop it when its time is up, and copy its log from time to time."""
        closing = run.status == Run.Status.CLOSING
        overtaken = not closing and judging.is_overtaken(run)
        if run.stop_requested or overtaken or (closing and self._closing_is_over(run, folder)):
            _stop(folder)
        metering.look(run)
        watched = self._watched[run.pk]
        watched.url = _renew_address(folder, watched.url)
        now = processes.boottime()
        if now - watched.copied >= settings.DURATIONS["output_copy"]:
            watched.copied = now
            outcomes.copy_output(run)

    def _closing_is_over(self, run: Run, folder: Path) -> bool:
        """Whether the hand-in was too long ago, by this process's own memory or a file of an earlier one."""
        now, longest = processes.boottime(), settings.DURATIONS["closing"]
        mark, watched = folder / "closing", self._watched[run.pk]
        watched.closing = watched.closing or now
        if now - watched.closing > longest:
            return True
        try:
            return not 0 <= now - processes.read_number(mark) <= longest
        except FileNotFoundError:
            processes.write_whole(mark, f"{now:.3f}".encode())
            return False
        except (OSError, ValueError):  # only its agent can have spoiled the file
            return True

    def _bury(self, run: Run, why: str, outcome: str = Run.Outcome.LOST) -> None:
        """End all processes of a run whose shim left no exit file, then record how the run ended."""
        folder = paths.run_folder(run.pk)
        left = processes.working_in(folder)
        if not processes.end_all(left, settings.DURATIONS["grace"]) or processes.working_in(folder):
            return  # the next pass ends what was started meanwhile
        run.refresh_from_db()
        outcomes.copy_rest(run)
        outcomes.keep_first(run)
        metering.finish(run)
        if run.status == Run.Status.CLOSING:
            run_ends.end(run, Run.Outcome.HANDED_IN, reason="Its shim was killed after the hand-in.")
        else:
            saved = submissions.salvage(run)
            run_ends.end(run, outcome, reason=why, salvage_sha=saved)
        outcomes.remove_folder(run)

    # --- Work that is taken -----------------------------------------------------------------------------

    def _claim(self, busy: int) -> None:
        if paths.room() < ROOM_MIN:
            return  # the host's page says so; another host may have room
        paths.keep_reserve()
        places = {self.row.name} if self.row.is_draining else {"", self.row.name}
        labels = {"", *self.row.labels}
        queued = _queued.found()
        for run in queued:
            run.project = run.task.project
        mine = [
            run for run in queued
            if run.only_on in places and self.row.may_run(run.project)
            and (run.agent is None or run.agent.host_label in labels)
        ]  # fmt: skip
        own = [run for run in mine if not run.is_pulled][: max(self.row.slots - busy, 0)]
        pulled = [run for run in mine if run.is_pulled][: PULLED_AT_ONCE if self.row.slots else 0]
        for run in [*pulled, *own]:
            taken = {
                "status": Run.Status.STARTING, "host": self.row, "fence": run.fence + 1,
                "started_at": estimated_time(), "tier": self.row.tier,
            }  # fmt: skip
            claiming = _claiming(settings.DURATIONS["lease"])
            if claiming.write(run.pk, run.fence, **taken):
                for name, value in taken.items():
                    setattr(run, name, value)
                self._claimed.add(run.pk)
                self._work_on(run, lambda run=run: self._start(run))

    def _start(self, run: Run) -> None:
        try:
            launching.launch(run)
        except Exception:
            self._claimed.discard(run.pk)  # nobody is starting it any more, so the next pass ends it
            raise

    def _keep_submissions(self) -> None:
        """Fetch what coders on this host and people handed in, before any clone is removed."""
        for submission in _received.found():
            run = getattr(submission, "run", None)
            if run is None:
                self._slow.do(f"pushed-{submission.pk}", lambda s=submission: self._keep_pushed(s))
            elif run.host_id == self.row.pk or (run.is_pulled and self.row.slots):
                run.task = submission.task
                self._work_on(run, lambda s=submission: self._keep(s))

    def _keep_pushed(self, submission: Submission) -> None:
        """Fetch what a person handed in from the remote."""
        project = submission.task.project
        try:
            submissions.keep(submission, None)
        except Unreachable as error:
            trouble(project, f"{project.address} {error.blame}: {error}")

    def _keep(self, submission: Submission) -> None:
        def give_up(run: Run, why: str) -> None:
            submissions.send_back(submission, f"The commit {submission.sha[:12]} cannot be taken: {why}")

        run = submission.run
        self._guard.work_on(f"keep-{run.pk}", run, lambda: submissions.keep(submission, run), give_up)

    def _fill_excerpts(self, newest: int) -> None:
        """Store the code at each new finding's place, for pages, and at first at those that were missed."""
        if newest == self._excerpted:
            return
        since, self._excerpted = (self._excerpted or newest - MISSED_REVIEWS), newest
        for review in _bare[self.row.slots > 0].found(self.row.pk, since, newest):
            self._slow.do(f"excerpts-{review.pk}", lambda review=review: self._fill_excerpts_of(review))

    def _fill_excerpts_of(self, review: Review) -> None:
        findings = list(review.findings.filter(excerpt_start__isnull=True))
        with contextlib.suppress(GitError):
            mirror = paths.mirror(review.submission.task.project)
            submissions.add_excerpts(findings, mirror, review.submission.sha)
            stuck.look_again(review)

    def _lose(self, run: Run, why: str) -> None:
        """Give up a run whose remains cannot be read, however often that is tried."""
        log.error("Run %s is given up: %s", run.pk, why)
        run_ends.end(run, Run.Outcome.LOST, reason=f"What it left could not be read. {why}")
        if not Run.objects.needed().filter(pk=run.pk).exists():
            outcomes.remove_folder(run)


def _without_excerpts(*, reads_pulled: bool) -> Prepared:
    """Return a query for the reviews that the host reads and whose findings name places without an excerpt.

    These are the reviews of its own runs; a host with slots also reads those of agents elsewhere.
    """
    bare = Finding.objects.filter(review=OuterRef("pk"), excerpt_start__isnull=True).exclude(path="")

    def reviews(host: Expression, since: Expression, newest: Expression) -> QuerySet[Review]:
        of_host = Q(run__host=host) | Q(run__is_pulled=True) if reads_pulled else Q(run__host=host)
        among = Review.objects.filter(of_host, pk__gt=since, pk__lte=newest)
        return among.filter(Exists(bare)).order_by()

    return Prepared(reviews)


_bare = {each: _without_excerpts(reads_pulled=each) for each in (True, False)}


def _on_host(host: Expression) -> QuerySet[Run]:
    rows = Run.objects.on_host().filter(host=host)
    return rows.select_related("task__project", "task__section", "agent")


def _to_begin() -> QuerySet[Run]:
    """Return the queued runs, with the only host that has the commit on which each begins as `only_on`."""
    queued = Run.objects.filter(status=Run.Status.QUEUED, project__status=Project.Status.ACTIVE)
    handed_in = Submission.objects.standing().fetched().filter(task=OuterRef("task")).newest_first()
    queued = queued.annotate(only_on=Coalesce(Subquery(handed_in.values("only_on")[:1]), Value("")))
    return queued.select_related("task__project", "task__section", "agent").order_by("pk")


def _to_keep() -> QuerySet[Submission]:
    """Return what runs handed in, and what people did for active projects that are not in trouble."""
    received = Submission.objects.filter(state=Submission.State.RECEIVED)
    rested = Q(task__project__trouble_until__isnull=True) | Q(task__project__trouble_until__lte=Now())
    by_people = Q(run__isnull=True, by_user__isnull=False, kind="commits")
    active = Q(task__project__status=Project.Status.ACTIVE)
    rows = received.filter(Q(run__isnull=False) | (by_people & active & rested))
    return rows.select_related("task__project", "task__section", "run")


_running = PreparedUpdate(
    lambda pk, fence: Run.objects.filter(pk=pk, fence=fence, status=Run.Status.STARTING), "started_at",
    status=Run.Status.RUNNING,
)  # fmt: skip


@lru_cache(maxsize=8)
def _claiming(lease: float) -> PreparedUpdate:
    return PreparedUpdate(
        lambda pk, fence: Run.objects.filter(pk=pk, fence=fence, status=Run.Status.QUEUED),
        "status", "host", "fence", "started_at", "tier", lease_until=Now() + timedelta(seconds=lease),
    )  # fmt: skip


_held, _queued, _received = Prepared(_on_host), Prepared(_to_begin), Prepared(_to_keep)


def _queue_of(landing: Landing) -> tuple[int, str]:
    """Return the branch in whose queue the landing stands, of which one goes on at a time."""
    return landing.project_id, landing.target


def _renew_address(folder: Path, told: str) -> str:
    """Return the API's URL as this run knows it, and tell it the present one if that is another.

    The agent reads it at each call, and it may differ after a crash.
    """
    with contextlib.suppress(OSError, ValueError, api_server.NoApiServer):
        url = api_server.address()
        if url == told:
            return told
        if sandbox.knows(folder):
            sandbox.write_address(folder, url)
        else:
            context = processes.read_json(folder / "context.json")
            if isinstance(context, dict) and context.get("url") != url:
                processes.write_json(folder / "context.json", context | {"url": url})
        return url
    return told


def _stop(folder: Path) -> None:
    """Tell this folder's shim to end its run; a word that already says why stays."""
    if not os.path.lexists(folder / "stop"):
        processes.write_whole(folder / "stop", b"")


def _tell(lines: list[str]) -> None:
    for line in lines:
        log.info(line)
