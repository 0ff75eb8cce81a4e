"""What one agent host does with the rows: take runs, hold them, read their ends, keep and land commits.

One process per host does it at a time, by a lock on a file: the resident loop of `run_orchestrator`, or,
where none runs, a tick of the cluster. Everything is read anew from rows and run folders, so whoever takes
over after a crash adopts what still lives.
"""

import contextlib
import fcntl
import json
import logging
import os
import signal
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import close_old_connections
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from agents import judging, metering, runs
from agents.models import Host as HostRow
from agents.models import Run
from agents.providers.base import NotSignedIn, ProviderError
from agents.runtime import (
    door,
    ends,
    handing,
    keeping,
    landing,
    paths,
    processes,
    results,
    starting,
    trying,
)
from agents.runtime.git import GitError, Unreachable
from agents.runtime.unreachable import trouble
from disputes import stuck
from steroidsweb import __version__
from tasks.models import Landing, Project, Review, StaleTask, Submission

log = logging.getLogger(__name__)

SLOW_THREADS = 4
LAST_ACT = 0.5  # seconds between a shim's exit.json and its end; where it lives on, somebody else wrote it
PULLED_AT_ONCE = 4  # runs of agents elsewhere that are made ready in one turn of the loop


class HostBusy(Exception):
    """Another process of this host holds its runs."""


def host_name() -> str:
    return settings.HOST_NAME or socket.gethostname()


class Reconciler:
    """Holds this host's runs for as long as it is open. Raises HostBusy where somebody else does."""

    def __init__(self, *, threads: bool = False) -> None:
        self._pool = ThreadPoolExecutor(SLOW_THREADS, thread_name_prefix="slow") if threads else None
        self._slow: dict[str, Future[None]] = {}
        self._stack = contextlib.ExitStack()
        self._taken = False
        self._beaten = 0.0
        self._copied: dict[int, float] = {}

    def __enter__(self) -> "Reconciler":
        if not self._taken:
            self.take()
        return self

    def take(self) -> None:
        """Become the one that holds this host's runs. Raises HostBusy."""
        lock = os.open(paths.host_lock(), os.O_RDWR | os.O_CREAT, 0o600)
        self._stack.callback(os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._stack.close()
            raise HostBusy(f"Another process on {host_name()} holds its runs.") from None
        self._bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._stack.callback(self._bell.close)
        path = paths.bell_socket()
        path.unlink(missing_ok=True)
        self._bell.bind(str(path))
        os.chmod(path, 0o600)
        self._stack.callback(lambda: path.unlink(missing_ok=True))
        self.row = self._register()
        self._taken = True

    def __exit__(self, *error: object) -> None:
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._stack.close()

    def _register(self) -> HostRow:
        row, _ = HostRow.objects.update_or_create(
            name=host_name(),
            defaults={"boot_id": processes.boot_id(), "version": __version__, "seen_at": timezone.now()},
            create_defaults={
                "boot_id": processes.boot_id(), "version": __version__, "seen_at": timezone.now(),
                "slots": settings.HOST_SLOTS, "tier": 1,
            },
        )  # fmt: skip
        return row

    def wait(self, seconds: float | None = None) -> bool:
        """Until the bell rings, at most one turn of the loop. Whether it rang."""
        self._bell.settimeout(settings.DURATIONS["loop"] if seconds is None else seconds)
        try:
            self._bell.recv(64)
            self._bell.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    self._bell.recv(64)
        except TimeoutError:
            return False
        return True

    def held(self) -> list[Run]:
        """The runs that this host holds."""
        return list(
            Run.objects.on_host()
            .filter(host=self.row)
            .select_related("task__project", "task__section", "project", "agent", "host")
        )

    def has_live_runs(self) -> bool:
        return Run.objects.live().exists() or bool(self._slow) or bool(landing.due()) or trying.is_under_way()

    def step(self) -> bool:
        """One pass over everything. Whether anything is under way on this host."""
        self._beat()
        self._keep_submissions()
        held = self.held()
        metering.forget({run.pk for run in held})
        for run in held:
            self._reconcile(run)
        self._fill_excerpts()
        trying.advance(self.row, self._do)
        self._claim(len([run for run in held if run.status in Run.HELD]))
        for one in landing.due():
            self._do(f"landing-{one.pk}", lambda one=one: landing.advance(one, host_name()))
        self._forget_done()
        return bool(held) or self.has_live_runs()

    # --- Leases -----------------------------------------------------------------------------------------

    def _beat(self) -> None:
        """Prolong the leases of this host's runs, and tell each shim that somebody still looks."""
        now = processes.boottime()
        if now - self._beaten < settings.DURATIONS["beat"]:
            return
        self._beaten = now
        lease = timedelta(seconds=settings.DURATIONS["lease"])
        HostRow.objects.filter(pk=self.row.pk).update(seen_at=Now())
        self.row.refresh_from_db()
        mine = Run.objects.on_host().filter(host=self.row)
        mine.update(lease_until=Now() + lease)
        alive = list(mine.values_list("pk", flat=True))
        for pk in alive:
            starting.renew_lease_file(pk)
        trying.beat(self.row)
        if alive:
            door.touch()
        self._end_strangers(set(alive))

    def _end_strangers(self, mine: set[int]) -> None:
        """Folders of runs that are no longer ours: their shim is told to stop, then they go."""
        root = Path(settings.HOME) / "runs"
        for folder in root.iterdir() if root.exists() else []:
            if not folder.name.isdigit() or int(folder.name) in mine or f"run-{folder.name}" in self._slow:
                continue
            if not (folder / "job.json").exists():
                continue
            shim = processes.read_identity(folder / "pid")
            if shim and processes.is_alive(shim):
                (folder / "stop").touch()
            elif not self._still_needed(int(folder.name)):
                results.remove_folder(Run(pk=int(folder.name)))

    def _still_needed(self, run_pk: int) -> bool:
        """Live somewhere, or it handed in what nobody has fetched yet."""
        return (
            Run.objects.filter(pk=run_pk)
            .filter(~Q(status=Run.Status.ENDED) | Q(submission__state=Submission.State.RECEIVED))
            .exists()
        )

    # --- Runs that are held -----------------------------------------------------------------------------

    def _reconcile(self, run: Run) -> None:
        key = f"run-{run.pk}"
        if key in self._slow:
            return
        folder = paths.run_folder(run.pk)
        shim = processes.read_identity(folder / "pid")
        left = starting.read_exit(run.pk)
        if left is not None and shim and processes.is_gone_within(shim, LAST_ACT):
            left = starting.read_exit(run.pk)  # the shim's own last word, where another was forged before
        elif shim:
            left = None
        if left is not None:
            if run.status == Run.Status.STARTING:
                Run.objects.filter(pk=run.pk, fence=run.fence).update(status=Run.Status.RUNNING)
            self._guarded(run, lambda: results.finish(run, left))
            return
        if shim and processes.is_alive(shim):
            if run.status == Run.Status.STARTING:
                Run.objects.filter(pk=run.pk, fence=run.fence, status=Run.Status.STARTING).update(
                    status=Run.Status.RUNNING, started_at=timezone.now()
                )
            self._keep_going(run, shim)
            self._look_after(run, folder)
        elif shim:
            self._bury(run, "Its shim was killed.")
        elif self._never_started(run):
            self._bury(run, "It never started, or its folder is damaged.")

    def _never_started(self, run: Run) -> bool:
        since = run.started_at or run.queued_at
        return (timezone.now() - since).total_seconds() > settings.DURATIONS["starting"]

    def _keep_going(self, run: Run, shim: processes.Identity) -> None:
        """An agent of the same user may stop its shim, which then ends nothing: it is woken or killed."""
        if not processes.is_stopped(shim):
            return
        longest = settings.DURATIONS["wall"] + settings.DURATIONS["orphan"]
        age = (timezone.now() - (run.started_at or run.queued_at)).total_seconds()
        processes.signal_all([shim], signal.SIGKILL if age > longest else signal.SIGCONT)

    def _look_after(self, run: Run, folder: Path) -> None:
        """A live run: stop it when its time is over, copy its log now and then."""
        closing = run.status == Run.Status.CLOSING
        overtaken = not closing and judging.is_overtaken(run)
        if run.stop_requested or overtaken or (closing and self._closing_is_over(folder)):
            (folder / "stop").touch()
        metering.look(run)
        self._renew_address(folder)
        now = processes.boottime()
        if now - self._copied.get(run.pk, 0) >= settings.DURATIONS["output_copy"]:
            self._copied[run.pk] = now
            results.copy_output(run)

    def _closing_is_over(self, folder: Path) -> bool:
        """The hand-in was some seconds ago; the file's age says how many, whoever looks."""
        mark = folder / "closing"
        now = processes.boottime()
        if not mark.exists():
            mark.write_text(f"{now:.3f}")
        return now - float(mark.read_text()) > settings.DURATIONS["closing"]

    def _renew_address(self, folder: Path) -> None:
        """The web server may come back elsewhere after a crash; the agent reads its address at each call."""
        context = folder / "context.json"
        with contextlib.suppress(OSError, ValueError, door.NoDoor):
            data = json.loads(context.read_text())
            url = door.address()
            if data["url"] != url:
                processes.write_json(context, data | {"url": url})

    def _bury(self, run: Run, why: str) -> None:
        """The shim died without a word: nothing of the run may live on, then it is lost or was handed in."""
        folder = paths.run_folder(run.pk)
        left = processes.working_in(folder)
        if not processes.end_all(left, settings.DURATIONS["grace"]) or processes.working_in(folder):
            return  # the next pass ends what was started meanwhile
        run.refresh_from_db()
        results.copy_rest(run)
        results.keep_first(run)
        metering.finish(run)
        if run.status == Run.Status.CLOSING:
            runs.end(run, Run.Outcome.HANDED_IN, reason="Its shim was killed after the hand-in.")
        else:
            saved = keeping.salvage(run)
            runs.end(run, Run.Outcome.LOST, reason=why, salvage_sha=saved)
        results.remove_folder(run)

    # --- Work that is taken -----------------------------------------------------------------------------

    def _claim(self, busy: int) -> None:
        if self.row.is_draining:
            return
        queued = Run.objects.filter(status=Run.Status.QUEUED, project__status=Project.Status.ACTIVE)
        queued = queued.order_by("pk").select_related("task__project", "task__section", "project", "agent")
        own = queued.filter(is_pulled=False)[: max(self.row.slots - busy, 0)]
        for run in [*queued.filter(is_pulled=True)[:PULLED_AT_ONCE], *own]:
            lease = Now() + timedelta(seconds=settings.DURATIONS["lease"])
            won = Run.objects.filter(pk=run.pk, status=Run.Status.QUEUED, fence=run.fence).update(
                status=Run.Status.STARTING, host=self.row, fence=F("fence") + 1, lease_until=lease,
                started_at=timezone.now(), tier=self.row.tier,
            )  # fmt: skip
            if won:
                run.refresh_from_db()
                self._do(f"run-{run.pk}", lambda run=run: self._start(run))

    def _start(self, run: Run) -> None:
        """Start it, or end it with a sentence that says what to change."""
        try:
            if run.is_pulled:
                handing.prepare(run)
            else:
                starting.start(run)
        except Unreachable as error:
            runs.end(run, Run.Outcome.STOPPED, reason=f"The repository cannot be reached. {error}")
            trouble(run.project, f"{run.project.repo_url} cannot be reached: {error}")
            results.remove_folder(run)
        except NotSignedIn as error:
            ends.not_signed_in(run, error)
            results.remove_folder(run)
        except (GitError, ProviderError, starting.CannotStart, door.NoDoor) as error:
            runs.end(run, Run.Outcome.REFUSED, reason=str(error))
            results.remove_folder(run)
        except starting.BaseNotFit as error:
            runs.end(run, Run.Outcome.STOPPED, reason=str(error))
            results.remove_folder(run)
        except StaleTask:
            runs.end(run, Run.Outcome.STOPPED, reason="The task moved on before it started.")
            results.remove_folder(run)
        else:
            if run.project.trouble:
                Project.objects.filter(pk=run.project_id).update(
                    trouble="", trouble_until=None, trouble_count=0
                )

    def _keep_submissions(self) -> None:
        """Fetch what coders on this host handed in, before their clones go."""
        whose = Q(run__host=self.row) | Q(run__is_pulled=True)
        received = Submission.objects.filter(whose, state=Submission.State.RECEIVED)
        for submission in received.select_related("task__project", "task__section", "run__task__project"):
            self._guarded(submission.run, lambda s=submission: keeping.keep(s, s.run))

    def _fill_excerpts(self) -> None:
        """The code at each new finding's place, for pages."""
        whose = Q(run__host=self.row) | Q(run__is_pulled=True)
        fresh = Review.objects.filter(whose, findings__excerpt_start__isnull=True)
        recent = timezone.now() - timedelta(minutes=10)
        for review in fresh.exclude(findings__path="").filter(at__gt=recent).distinct():
            findings = list(review.findings.filter(excerpt_start__isnull=True))
            with contextlib.suppress(GitError):
                mirror = paths.mirror(review.submission.task.project)
                keeping.add_excerpts(findings, mirror, review.submission.sha)
                stuck.look_again(review)

    # --- Slow things ------------------------------------------------------------------------------------

    def _do(self, key: str, work: Callable[[], None]) -> None:
        """Git over a network takes its time: in a thread where we have some, else at once."""
        if key in self._slow:
            return
        if self._pool is None:
            _logged(key, work)
            return
        self._slow[key] = self._pool.submit(self._in_thread, key, work)

    def _in_thread(self, key: str, work: Callable[[], None]) -> None:
        try:
            _logged(key, work)
        finally:
            close_old_connections()
            ring_self()

    def _forget_done(self) -> None:
        self._slow = {key: future for key, future in self._slow.items() if not future.done()}

    def _guarded(self, run: Run, work: Callable[[], Any]) -> None:
        """One poisoned run must not stop the loop: it rests, and the log says why."""
        try:
            work()
        except Exception:
            log.exception("Run %s could not be read; it is tried again.", run.pk)
            runs.rest(run.task, settings.DURATIONS["backoff_first"])


def _logged(key: str, work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:
        log.exception("%s failed; the next pass tries again.", key)


def ring_self() -> None:
    """Wake the loop of this host."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
        bell.setblocking(False)
        bell.sendto(b"x", str(paths.bell_socket()))


def idle(within: float) -> bool:
    """Nothing is live, startable, queued or to land within so many seconds."""
    from agents import orchestrator
    from tasks.models import Task

    soon = timezone.now() + timedelta(seconds=within)
    if Run.objects.live().exists() or Landing.objects.filter(status__in=Landing.LIVE).exists():
        return False
    if Task.objects.to_land().filter(project__status=Project.Status.ACTIVE).exists():
        return False
    return not (orchestrator.waiting_tasks(soon) or judging.has_work() or trying.is_under_way())
