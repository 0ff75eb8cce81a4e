"""The two small questions of each turn: what they cost, and that they miss nothing."""

import re
import sqlite3
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from agents.hosts.reconciler import Reconciler
from agents.loop import orchestrator, outlook
from agents.models import Agent, PullBundle, Run
from disputes.models import Conflict, Dispute, Opinion
from tasks.events import SYSTEM
from tasks.models import Landing, Project, Submission, Task
from tests.agents.world import World, make_world  # noqa: F401
from tests.asking import queries
from tests.factories import (
    create_agent,
    create_project,
    create_run,
    create_section,
    create_submission,
    create_task,
)

TICK_MAX, STEP_MAX = 15, 2  # queries, where nothing is to be done
CREW_MAX = 4  # where work waits that nobody could take: who there is, who is busy, whose account is paused
SERVING = {
    "task_startable", "task_to_land", "run_live_by_project", "run_live_by_host", "run_queued",
    "submission_received", "landing_one_live_per_submission", "dispute_queue", "opinion_asked_once",
}  # fmt: skip
LARGE = {"tasks_task", "tasks_submission", "tasks_review", "tasks_event", "agents_run", "disputes_dispute"}


def is_disputed(project: Project) -> None:
    dispute = Dispute.objects.create(project=project, severity="high", question="Who is right?")
    Conflict.objects.create(
        dispute=dispute, kind="disagreement", origin="disagree", opened_as="coder", severity="high",
        effect="hold", question="Who is right?", reviewer_position="It waits.", coder_position="No.",
    )  # fmt: skip


def test_a_tick_without_work_costs_the_same_whatever_the_number_of_projects(db: None) -> None:
    for count in (1, 30):
        for _ in range(count):
            section = create_section(create_project())
            create_task(section=section, status="completed", finished_by="hand")
            create_task(section=section, waits_for=1)
        orchestrator.tick()
        assert queries(orchestrator.go_on) == 1, count
        assert queries(orchestrator.tick) <= TICK_MAX, count


def test_projects_that_wait_for_agents_or_for_people_cost_no_more(db: None, settings: Any) -> None:
    """Work that nobody could take, disputes without a policy, and turns in which nothing happens."""
    settings.DURATIONS = settings.DURATIONS | {"beat": 600.0}
    create_agent("coder", slots=1)
    create_agent("reviewer", slots=1)
    create_run(create_task(create_project()), "coder", agent=Agent.objects.get(role="coder"))
    create_run(create_task(create_project()), "reviewer", agent=Agent.objects.get(role="reviewer"))
    quiet = orchestrator.Quiet()
    asked = []
    for _ in range(2):
        for _ in range(20):
            project = create_project()
            create_task(project)
            create_submission(create_task(project, status="review", round=1), state="verified")
            is_disputed(project)
        orchestrator.go_on(quiet=quiet)
        orchestrator.go_on(quiet=quiet)
        asked.append(queries(lambda: orchestrator.go_on(quiet=quiet)))
    assert asked[0] == asked[1] <= CREW_MAX
    create_agent("coder", slots=40)
    assert orchestrator.go_on(quiet=quiet).started == 40


def test_a_host_without_work_asks_one_question_a_turn(world: World) -> None:
    with Reconciler() as host:
        host.step()
        assert min(queries(host.step) for _ in range(5)) <= STEP_MAX  # in some of them its heart beats


def test_whatever_may_be_due_is_seen(db: None) -> None:
    def waits(project: Project) -> None:
        create_task(project, not_before=timezone.now() + timedelta(hours=1))

    def is_full(project: Project) -> None:
        Project.objects.filter(pk=project.pk).update(max_parallel=1)
        create_run(create_task(project), "judge")
        create_task(project)

    def is_stopped(project: Project) -> None:
        create_task(section=create_section(project, is_stopped=True))

    def has_work(project: Project) -> None:
        create_task(project)

    def is_in_review(project: Project) -> None:
        create_task(project, status="review", round=1, waits_for=1)

    def is_accepted(project: Project) -> None:
        task = create_task(project, status="review", round=1)
        submission = create_submission(task, state=Submission.State.VERIFIED)
        task.approve(submission, actor=SYSTEM)

    def is_checking(project: Project) -> None:
        task = create_task(project, status="completed", finished_by="hand")
        Landing.objects.create(
            project=project, task=task, submission=create_submission(task), sha="b" * 40, target="main",
            status=Landing.Status.CHECKING,
        )  # fmt: skip

    def has_policy(project: Project) -> None:
        Project.objects.filter(pk=project.pk).update(settings={"on_dispute": "discard"})
        is_disputed(project)

    def is_kept(project: Project) -> None:
        is_in_review(project)
        create_submission(project.tasks.get(), state=Submission.State.KEPT)

    def is_verified(project: Project) -> None:
        is_kept(project)
        Submission.objects.filter(task__project=project).update(state=Submission.State.VERIFIED)

    def is_coded(project: Project) -> None:
        create_run(create_task(project, status="in_progress", round=1), "coder")

    def has_own_ways(project: Project) -> None:
        Project.objects.filter(pk=project.pk).update(settings={"reviewers": "all"})
        is_in_review(project)

    create_agent("coder")
    for build, told in [
        (waits, set()), (is_full, set()), (is_stopped, set()), (has_work, {"to_code"}),
        (is_in_review, {"is_in_a_turn"}), (is_kept, {"to_verify", "is_in_a_turn"}),
        (is_verified, {"to_review", "is_in_a_turn"}), (is_coded, {"is_in_a_turn"}),
        (has_own_ways, {"is_special", "is_in_a_turn"}), (is_accepted, {"to_land"}),
        (is_checking, {"to_check"}), (is_disputed, set()), (has_policy, {"has_policy"}),
    ]:  # fmt: skip
        project = create_project()
        build(project)
        ahead = {each.pk: each for each in outlook.projects_ahead()}.get(project.pk)
        flags = {name for name in outlook.FLAGS if ahead and getattr(ahead, name)}
        assert flags == ({"has_seat", *told} if told else set()), build.__name__


def test_what_a_host_has_to_do_is_seen(world: World) -> None:
    with Reconciler() as host:
        pk = host.row.pk
    assert not outlook.at_host(pk).is_anything
    run = world.coder(host=host.row)
    assert outlook.at_host(pk).holds_runs
    world.hand_in(run, world.commit(run, {"new.py": "one\n"}))
    assert outlook.at_host(pk).received
    Submission.objects.update(state=Submission.State.KEPT)
    Run.objects.update(status=Run.Status.ENDED, outcome="handed_in", ended_at=timezone.now())
    assert not outlook.at_host(pk).is_anything
    create_run(world.task(), status=Run.Status.QUEUED)
    assert outlook.at_host(pk).queued
    Project.objects.update(base_state=Project.Base.UNKNOWN)
    assert outlook.at_host(pk).tries


def test_what_nobody_rings_for_is_seen(db: None) -> None:
    def seen() -> set[str]:
        found = outlook.now_and_then()
        return {field.name for field in fields(found) if getattr(found, field.name)}

    assert seen() == set()
    project = create_project(status=Project.Status.PAUSED)
    task = create_task(project)
    assert (seen(), queries(outlook.now_and_then)) == (set(), 1)
    for wanted, values in [
        ("held", {"status": Run.Status.RUNNING}), ("queued", {"status": Run.Status.QUEUED}),
        ("pulled", {"status": Run.Status.RUNNING, "is_pulled": True}),
        ("pulled", {"status": Run.Status.CLOSING, "is_pulled": True}),
    ]:  # fmt: skip
        run = create_run(task, **values)
        assert seen() == {wanted}, values
        Run.objects.filter(pk=run.pk).update(status=Run.Status.ENDED, ended_at=timezone.now(), outcome="lost")
        assert seen() == set(), values
    PullBundle.objects.create(run=run)
    assert seen() == {"pulled"}
    PullBundle.objects.all().delete()
    for wanted, key in [
        ("recorded", "records_branch"), ("set_aside", "disputed_work"), ("followed", "todo_path"),
    ]:  # fmt: skip
        Project.objects.update(settings={key: "x"})
        assert seen() == {wanted}
    Project.objects.update(settings={}, status=Project.Status.ACTIVE)
    assert seen() == {"tried"}
    Project.objects.update(status=Project.Status.PAUSED)
    is_disputed(project)
    Dispute.objects.update(task=task)
    Opinion.objects.create(conflict=Conflict.objects.get(), kind="judge")
    assert seen() == {"asked"}
    Task.objects.update(status="cancelled")
    assert seen() == {"asked", "disputes"}


def test_no_large_table_is_read_through_for_them(db: None) -> None:
    """On SQLite a partial index serves only where the query says its condition word by word."""
    if connection.vendor == "sqlite" and sqlite3.sqlite_version_info < (3, 51):
        pytest.skip("Older versions of SQLite choose other indexes.")
    with Reconciler() as host:
        pk = host.row.pk
    plan = ""
    for question, values in [
        (outlook._ahead, [outlook.a_moment_ago()]),
        (orchestrator._being_kept, [1, outlook.a_moment_ago()]),
        (outlook._at_host, [pk]),
        (outlook._now_and_then, []),
    ]:
        question.rows(*values)
        built = question._built
        given = [values[number] for number in built.given]
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute(f"EXPLAIN QUERY PLAN {built.text}", given)
                plan += "".join(f"{row[3]}\n" for row in cursor.fetchall())
            else:  # which reads a table of a few rows through, unless it is told not to
                cursor.execute("SET LOCAL enable_seqscan = off")
                cursor.execute(f"EXPLAIN {built.text}", given)
                plan += "".join(f"{row[0]}\n" for row in cursor.fetchall())
    if connection.vendor == "sqlite":
        used = set(re.findall(r"INDEX (\w+)", plan))
        assert used >= SERVING, plan
        of_all_tasks = ("tasks_task_project_id", "task_board", "task_done", "task_in_order")
        assert not [name for name in used if name.startswith(of_all_tasks)], plan
    else:
        assert not set(re.findall(r"Seq Scan on (\w+)", plan)) & LARGE, plan
