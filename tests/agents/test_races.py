"""Everybody at once: no two of them wait for each other, and nobody hears of a mistake of the program."""

import gc
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import F
from django.test import Client

from agents.api import handins
from agents.loop import orchestrator, run_ends
from agents.models import Run, new_token, token_hash
from agents.setup import removing
from disputes import opening, rulings
from disputes.models import Conflict, Decision
from disputes.protocol.rulings.options import offered
from tasks.database.locking import repeated, why_not
from tasks.dependencies import recount
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Event, Project, StaleTask, Submission, Task
from tasks.states import IllegalMove
from tests.agents.world import at_once
from tests.asking import client_with
from tests.factories import (
    create_agent,
    create_project,
    create_section,
    create_submission,
    create_task,
    create_token,
    create_user,
    sha,
)

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS, AT_MOST = 6.0, 90.0
KINDS = {"start", "submit", "ruled", "run_ended", "commented"}
TASKS = 10
REVIEW = """\
## Verdict

NEEDS_REVISION

## High

### ISSUE-R{round}-001: Failed calls are retried at once

- **Location:** src/calls.py:12
"""
DISAGREE = """\
## DISAGREE: {code}

**Reviewer Concern:**
> Failed calls are retried at once

**Engineer Position:** The server asks for it.

**Rationale:** Its documentation says that a second try may follow at once.
"""


def deadlocks() -> int:
    """How many the server has ended in this database; SQLite has one writer at a time, and none."""
    if connection.vendor != "postgresql":
        return 0
    time.sleep(1.2)  # what a session counts is written once a second
    with connection.cursor() as cursor:
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


class Crowd:
    """Loops, hosts, agents and people on one project, until their time is over."""

    def __init__(self) -> None:
        self.lea = create_user("lea", first_name="Lea")
        for role in ("coder", "reviewer"):
            create_agent(role, slots=TASKS)
        self.project: Project = create_project(
            members={self.lea: "maintainer"}, max_parallel=TASKS, settings={"undo_seconds": 0}
        )
        section = create_section(self.project)
        self.tasks = [create_task(section=section) for _ in range(TASKS)]
        for before, after in zip(self.tasks[:3], self.tasks[-3:], strict=True):
            after.depends_on.add(before)
        for task in self.tasks[3:6]:
            task.start()
            opening.stop_for_help(task, Conflict.Origin.BLOCKED, "The coder is blocked: no access")
        self.commits = count(1)
        self.answers: Counter[int] = Counter()
        self.is_over = False

    def always(self, work: Callable[[random.Random], object]) -> Callable[[], None]:
        """Again and again; that somebody was faster is a good answer."""

        def loop() -> None:
            dice = random.Random(next(self.commits))
            while not self.is_over:
                try:
                    work(dice)
                except (Refused, StaleTask, IllegalMove):
                    continue
                except BaseException:
                    self.is_over = True
                    raise

        return loop

    def watch(self) -> None:
        """Their time is over once each of them has come to do its part."""
        began = time.monotonic()
        try:
            while (lasted := time.monotonic() - began) < AT_MOST:
                if lasted > SECONDS and not KINDS - set(Event.objects.values_list("kind", flat=True)):
                    return
                time.sleep(0.2)
        finally:
            self.is_over = True

    def tick(self, dice: random.Random) -> None:
        orchestrator.tick()

    def post(self, secret: str, ref: str, verb: str, **body: str) -> None:
        response = client_with(secret).post(f"/api/v1/tasks/{ref}/{verb}/", body, format="json")
        self.answers[response.status_code] += 1

    def run_one(self, dice: random.Random) -> None:
        """A host takes a run, its agent hands in or dies, and the host ends it."""
        queued = list(Run.objects.filter(status=Run.Status.QUEUED).select_related("task__project", "project"))
        if not queued:
            time.sleep(0.01)
            return
        run, secret = dice.choice(queued), new_token()
        claimed = Run.objects.filter(pk=run.pk, status=Run.Status.QUEUED, fence=run.fence)
        if not claimed.update(
            status=Run.Status.RUNNING, fence=F("fence") + 1, token_hash=token_hash(secret), base_sha="b" * 40
        ):
            return
        run.refresh_from_db()
        outcome = dice.choice([Run.Outcome.HANDED_IN] * 3 + [Run.Outcome.CRASH, Run.Outcome.LOST])
        if outcome == Run.Outcome.HANDED_IN:
            self.hand_in(run, secret, dice)
        run_ends.end(run, outcome)

    def hand_in(self, run: Run, secret: str, dice: random.Random) -> None:
        ref = run.task.ref
        if run.role == Run.Role.REVIEWER and dice.random() < 0.3:
            self.post(secret, ref, "approve")
        elif run.role == Run.Role.REVIEWER:
            self.post(secret, ref, "reject", review=REVIEW.format(round=run.round))
        else:
            last = run.task.findings.filter(round=run.round - 1).last()
            words = "" if last is None else f"- [x] **{last.code}** - FIXED"
            if last and dice.random() < 0.7:
                words = DISAGREE.format(code=last.code)
            self.post(secret, ref, "submit", sha=sha(next(self.commits)), response=words)
            Submission.objects.filter(task=run.task_id, state="received").update(state="verified")

    def move(self, dice: random.Random) -> None:
        """A person says something about a task, sends it away, takes it back."""
        task = Task.objects.select_related("project").get(pk=dice.choice(self.tasks).pk)
        if dice.random() < 0.5:
            handins.comment(self.lea, task.ref, {"body": "Mind the gap.", "target": "", "parent": None})
        elif task.status in {"deferred", "cancelled", "completed"}:
            verb = "resume" if task.status == "deferred" else "reopen"
            getattr(task, verb)(actor=Actor.person(self.lea), note="Once more.")
        else:
            getattr(task, dice.choice(["defer", "defer", "cancel", "finish"]))(actor=Actor.person(self.lea))

    def rule(self, dice: random.Random) -> None:
        """A person rules, and takes it back at times."""
        conflicts = Conflict.objects.filter(status=Conflict.Status.OPEN)
        conflict = conflicts.select_related("dispute__task__project", "dispute__project").first()
        if conflict is None:
            time.sleep(0.01)
            return
        option = dice.choice(offered(conflict.kind, conflict.origin)).option
        decision: Decision = rulings.decide(
            conflict, option, user=self.lea, text="Wait first.", rationale="It is rare."
        )
        if dice.random() < 0.3:
            rulings.undo(decision, user=self.lea)


def test_ticks_hosts_agents_and_people_never_wait_for_each_other_in_a_circle() -> None:
    crowd = Crowd()
    before, moved = deadlocks(), Event.objects.count()
    everybody = (crowd.tick, crowd.tick, crowd.run_one, crowd.move, crowd.move, crowd.rule)
    at_once(crowd.watch, *map(crowd.always, everybody))
    assert deadlocks() - before == 0
    assert {status for status in crowd.answers if status >= 500} == set(), crowd.answers
    assert Event.objects.count() - moved > 50
    assert set(Event.objects.values_list("kind", flat=True)) >= KINDS


def test_a_task_that_waits_for_two_begins_once_both_have_landed_at_the_same_moment() -> None:
    section = create_section()
    for _ in range(8):
        first, second = (create_task(section=section, status="review", round=1) for _ in range(2))
        for task in (first, second):
            task.approve(create_submission(task), actor=Actor("run", "reviewer-1"))
        after = create_task(section=section)
        after.depends_on.add(first, second)
        recount([after])
        at_once(lambda: first.landed(sha(1)), lambda: second.landed(sha(2)))  # noqa: B023
        after.refresh_from_db()
        assert after.waits_for == 0


def test_what_is_ruled_while_its_project_is_removed_stays_readable() -> None:
    lea = create_user("lea")
    project = create_project(members={lea: "maintainer"})
    task = create_task(project, status="in_progress", round=1)
    opening.stop_for_help(task, Conflict.Origin.BLOCKED, "The coder is blocked: no access")
    conflict = Conflict.objects.select_related("dispute__task__project").get()
    is_ruled, said = threading.Event(), []

    def rule() -> None:
        with transaction.atomic():
            rulings.decide(conflict, conflict.choices[0].option, user=lea, text="Ask Tom.")
            is_ruled.set()
            time.sleep(0.5)

    def remove() -> None:
        is_ruled.wait(60)
        said.append(removing.remove(project, actor=Actor.person(lea)))

    at_once(rule, remove)
    assert said == [
        f"{project.slug} is kept as abandoned, for it has 1 ruling. Nothing of it is started any more."
    ]
    assert Decision.objects.get().conflict_id == conflict.pk


@contextmanager
def somebody_writes() -> Iterator[None]:
    """Another process holds what a comment writes, and whoever waits for it waits only a moment."""
    other = connection.copy()
    is_sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        if is_sqlite:
            connection.patience = 0.05
        else:
            cursor.execute("SET lock_timeout = '50ms'")
    with closing(other), other.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE" if is_sqlite else "BEGIN")
        if not is_sqlite:
            cursor.execute("LOCK TABLE tasks_event, tasks_comment IN EXCLUSIVE MODE")
        yield
        cursor.execute("ROLLBACK")


def test_where_the_database_is_busy_everybody_is_told_to_try_again() -> None:
    lea = create_user("lea")
    task = create_task(create_project("ledger", members={lea: "maintainer"}))
    command = client_with(create_token(lea, "laptop")[1])
    browser = Client(raise_request_exception=False)
    browser.force_login(lea)
    words = {"body": "Mind the gap."}
    comment = f"/api/v1/tasks/{task.ref}/comment/"
    with somebody_writes():
        reply = command.post(comment, words, format="json")
        page = browser.post(f"/tasks/{task.ref}/defer/", {"note": "Later."})
    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "1")
    assert reply.json()["code"] == "busy"
    assert (page.status_code, page.headers["Retry-After"]) == (503, "1")
    assert "Go back and send it again" in page.content.decode()
    assert command.post(comment, words, format="json").status_code == 201
    connection.close()  # its short patience goes with it


def test_what_was_broken_off_for_another_is_done_once_more_and_counts_once() -> None:
    """By its state alone: a lock that was not free in time was waited for already, and SQLite has neither."""

    def work(*states: str) -> int:
        """How often a transaction begins that is broken off with these states, each time with one."""
        began = []

        @repeated
        @transaction.atomic
        def write() -> None:
            began.append(create_project())
            if len(began) <= len(states):
                raise OperationalError("broken off") from psycopg.errors.lookup(states[len(began) - 1])()

        try:
            write()
        except OperationalError as error:
            told.append(why_not(error))
        return len(began)

    told: list[str] = []
    deadlock, stale, held = "40P01", "40001", "55P03"
    cases = (
        ((deadlock,), 2, []), ((stale,), 2, []), ((), 1, []),
        ((deadlock, stale), 2, ["others were writing the same rows"]), ((held,), 1, ["others are writing"]),
    )  # fmt: skip
    for states, tries, reasons in cases:
        assert (work(*states), told) == (tries, reasons), states
        assert Project.objects.count() == (0 if reasons else 1), states
        Project.objects.all().delete()
        told.clear()
    with transaction.atomic():  # of a caller, who alone can begin anew
        assert (work(deadlock), told) == (1, ["others were writing the same rows"])


def test_what_one_leaves_behind_holds_up_nobody_while_it_waits() -> None:
    """The collector, in the thread that writes, closed the cursor of another that waited for just that."""
    left, has_begun = threading.Event(), threading.Event()

    def wait() -> None:
        cursor = connection.cursor()
        cursor.execute("SELECT 1 UNION SELECT 2")
        cursor.fetchone()
        circle: list[object] = [cursor]
        circle.append(circle)
        del cursor, circle
        left.set()
        has_begun.wait(60)
        create_project("other")
        connection.close()

    gc.disable()
    try:
        other = threading.Thread(target=wait)
        other.start()
        left.wait(60)
        with transaction.atomic():
            create_project("ledger")
            has_begun.set()
            time.sleep(0.5)
            began = time.monotonic()
            gc.collect()
            took = time.monotonic() - began
        other.join()
    finally:
        gc.enable()
    assert took < 10  # seconds, half of what a write waits
    assert Project.objects.count() == 2
