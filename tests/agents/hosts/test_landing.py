"""Approved commits on their way to the target branch: exactly those, never forced, whatever happens."""

from datetime import timedelta
from functools import partial
from itertools import pairwise

import pytest
from django.db import OperationalError
from django.utils import timezone

from agents.doctor import runs as doctor
from agents.hosts import landing as landings
from agents.hosts import paths, starting, submissions
from agents.hosts.branches import records
from agents.hosts.git.mirror import Mirror
from agents.hosts.reconciler import Reconciler, host_name
from agents.hosts.resident import idle, newest_event
from agents.loop import candidates, orchestrator, run_ends
from agents.models import Run
from agents.setup.overview import overview
from agents.verification import heads, verifying
from agents.web.standing import standings
from disputes import opening, rulings
from disputes.models import Conflict
from tasks.models import Event, Landing, Project, Submission, Task
from tests.agents.world import REVIEWER, World, at_once, git, hook, make_world  # noqa: F401
from tests.asking import queries
from tests.cases import rows_put_back
from tests.factories import create_agent, create_host, create_run, create_user

pytestmark = pytest.mark.django_db
HOST = "test-host"
REVIEWED_AGAIN = {"detect_commands": False, "test_command": "true", "review_after_rebase": True}


def advance(landing: Landing, times: int = 1, *, host: str = HOST) -> Landing:
    """So many steps, however long it would rest between them. The row as it is then."""
    for _ in range(times):
        landings.advance(fresh(landing), host)
    return fresh(landing)


@pytest.fixture(autouse=True)
def tests_in_the_project(request: pytest.FixtureRequest) -> None:
    if "world" in request.fixturenames:
        project = request.getfixturevalue("world").project
        project.settings["test_command"] = "true"
        project.save()


def fresh(landing: Landing) -> Landing:
    found = Landing.objects.select_related("project", "task__project", "task__section", "submission")
    return found.get(pk=landing.pk)


def task_of(landing: Landing) -> Task:
    return Task.objects.select_related("project", "section").get(pk=landing.task_id)


def fresh_task(task: Task) -> Task:
    return Task.objects.select_related("project", "section").get(pk=task.pk)


def notes(landing: Landing, kind: str) -> list[str]:
    events = Event.objects.filter(task=landing.task_id, kind=kind)
    return list(events.order_by("pk").values_list("note", flat=True))


def land_on_moved_target(world: World, files: dict[str, str | None] | None = None) -> Landing:
    """An approved submission that is rebased and waits for its build and tests."""
    landing = world.accepted({"new.py": "one\n"})
    world.remote.push(files or {"theirs.py": "theirs\n"})
    return advance(landing)


def rewind(world: World, to: str) -> None:
    """Somebody forces the branch back."""
    git(world.remote.path, "update-ref", "refs/heads/main", to)


# --- Straight on ------------------------------------------------------------------------------------------


def test_an_approved_commit_is_pushed_as_it_is_and_whoever_waits_for_its_task_may_start(world: World) -> None:
    landing = world.accepted({"new.py": "one\n"})
    waiting = world.task(waits_for=1)
    waiting.dependencies.create(on=landing.task)
    landing = advance(landing)
    assert landing.status == Landing.Status.LANDED
    assert world.remote.head() == landing.sha == landing.submission.sha
    assert (landing.claimed_until, landing.problem) == (None, "")
    task = task_of(landing)
    assert (task.status, task.landed_sha) == ("completed", landing.sha)
    assert Event.objects.get(task=task, kind="landed").data["sha"] == landing.sha
    waiting.refresh_from_db()
    assert waiting.waits_for == 0

    pushes = world.remote.count_pushes()  # now that it is over, it is left alone
    assert advance(landing, 2).status == Landing.Status.LANDED
    assert pushes.read_text() == ""


def test_a_ruling_is_used_once_its_commit_is_pushed(world: World) -> None:
    """From here on it cannot be undone: the code is out."""
    landing = world.accepted({"new.py": "one\n"})
    Landing.objects.filter(pk=landing.pk).update(status=Landing.Status.STUCK)
    conflict = opening.stop_for_help(landing.task, Conflict.Origin.LANDING, "Will you look?")
    user = create_user("ruler", is_superuser=True)
    decision = rulings.decide(conflict, "land_again", user=user, undo_seconds=0)
    orchestrator.tick()
    landing = advance(Landing.objects.get(status=Landing.Status.QUEUED))
    decision.refresh_from_db()
    assert landing.status == Landing.Status.LANDED
    assert decision.used_at is not None


# --- The target moved on ----------------------------------------------------------------------------------


def test_where_there_is_nothing_to_run_nobody_runs_it(world: World) -> None:
    Project.objects.update(settings={"detect_commands": False}, base_state=Project.Base.NOTHING)
    kept = world.kept({"other.py": "one\n"})
    landing = land_on_moved_target(world)
    assert advance(landing).status == Landing.Status.LANDED
    orchestrator.tick()
    kept.refresh_from_db()
    assert kept.state == Submission.State.VERIFIED
    assert not Run.objects.filter(role=Run.Role.VERIFIER).exists()
    green = world.project.verifications.values_list("sha", "green")
    assert set(green) == {(kept.sha, True), (landing.sha, True)}


def test_a_rebased_commit_waits_for_its_build_and_tests_and_is_pushed_once_it_is_green(world: World) -> None:
    landing = land_on_moved_target(world)
    assert landing.status == Landing.Status.CHECKING
    assert landing.rebased_from == landing.submission.sha != landing.sha
    assert world.mirror.is_ancestor(world.remote.head(), landing.sha)
    pushes = world.remote.count_pushes()
    landing = advance(landing, 3)
    assert landing.status == Landing.Status.CHECKING
    assert landing.not_before is not None
    assert pushes.read_text() == ""

    with rows_put_back():  # the loop builds and tests it
        Project.objects.update(base_state=Project.Base.GREEN)
        orchestrator.tick()
        run = Run.objects.get(task=landing.task_id, role=Run.Role.VERIFIER)
        assert run.sha == landing.sha
        assert task_of(landing).status == "completed"

    with rows_put_back():  # the result of other commands does not count
        result = world.verify(landing.sha)
        result.commands_hash = "of other commands"
        result.save()
        assert advance(landing).status == Landing.Status.CHECKING

    with rows_put_back():  # it is built and tested again when the commands were changed
        world.verify(landing.sha)
        Project.objects.update(settings={"test_command": "make other-tests"})
        assert advance(landing).status == Landing.Status.CHECKING
        Project.objects.update(base_state=Project.Base.GREEN)
        orchestrator.tick()
        assert Run.objects.filter(task=landing.task_id, role=Run.Role.VERIFIER).exists()

    with rows_put_back():  # red, it goes back to the coder
        world.verify(landing.sha, green=False, step="tests", tail="1 failed")
        red = advance(landing)
        task = task_of(red)
        assert red.status == Landing.Status.CONFLICT
        assert "tests is red" in red.problem
        assert "1 failed" in red.problem
        assert (task.status, task.round, task.rejections, task.accepted_id) == ("in_progress", 2, 0, None)
        assert world.remote.head() != red.sha

    world.verify(landing.sha)
    landing = advance(landing)
    assert landing.status == Landing.Status.LANDED
    assert world.remote.head() == landing.sha
    assert task_of(landing).landed_sha == landing.sha
    assert git(world.remote.path, "show", "main:theirs.py") == "theirs"


def test_what_only_former_commands_have_tested_is_tested_by_those_of_now_before_it_lands(
    world: World,
) -> None:
    landing = world.accepted({"new.py": "one\n"})
    world.verify(landing.sha)
    Project.objects.update(settings={"test_command": "make other-tests"})
    world.project.refresh_from_db()
    landing = advance(landing, 2)
    assert (landing.status, landing.rebased_from) == (Landing.Status.CHECKING, "")
    Project.objects.update(base_state=Project.Base.GREEN)
    task = Task.objects.select_related("project", "section").get(pk=landing.task_id)
    assert "the commands were changed" in standings([task])[task.pk].line
    orchestrator.tick()
    run = Run.objects.get(task=task, role=Run.Role.VERIFIER)
    assert run.sha == landing.sha
    landings.bring_rebased(run, world.mirror)  # there is nothing to rebase

    with rows_put_back():  # red, it goes back to the coder
        world.verify(landing.sha, green=False, step="tests", tail="1 failed")
        red = advance(landing)
        assert red.problem.startswith("By the commands as they are now, tests is red")
        assert (red.status, task_of(red).status) == (Landing.Status.CONFLICT, "in_progress")

    world.verify(landing.sha)
    assert advance(landing).status == Landing.Status.LANDED


def test_where_nothing_is_to_be_built_a_rebased_commit_is_pushed_at_once(world: World) -> None:
    Project.objects.update(settings={"detect_commands": False})
    landing = world.accepted({"new.py": "one\n"})
    world.remote.push({"theirs.py": "theirs\n"})
    landing = advance(landing)
    assert landing.status == Landing.Status.LANDED
    assert world.remote.head() == landing.sha != landing.rebased_from
    assert notes(landing, "rebased") == [""]


def test_a_result_never_counts_for_commands_that_did_not_run(world: World) -> None:
    """Changed while they ran, the old ones' green would let the commit land under the new ones."""
    landing = land_on_moved_target(world)
    green = {"steps": [{"name": "tests", "code": 0, "seconds": 1.0, "log": [0, 0]}], "reason": ""}

    def verify(*, and_then: str) -> Run:
        run = create_run(
            task_of(landing), "verifier", sha=landing.sha, status=Run.Status.STARTING, host=create_host()
        )
        starting.prepare(run)
        Project.objects.update(settings={"test_command": and_then})
        verifying.finish(Run.objects.get(pk=run.pk), green)
        run.refresh_from_db()
        return run

    outdated = verify(and_then="make other-tests")
    assert (outdated.outcome, "commands were changed" in outdated.reason) == ("stopped", True)
    assert not world.project.verifications.exists()
    assert advance(landing).status == Landing.Status.CHECKING
    assert verify(and_then="make other-tests").outcome == "handed_in"
    assert advance(landing).status == Landing.Status.LANDED


def test_it_is_rebased_again_when_the_target_moves_while_it_is_tested(world: World) -> None:
    landing = land_on_moved_target(world)
    first = landing.sha
    world.verify(first)
    world.remote.push({"again.py": "again\n"})
    landing = advance(landing)
    assert landing.status == Landing.Status.CHECKING
    assert landing.sha != first
    world.verify(landing.sha)
    assert advance(landing).status == Landing.Status.LANDED


def test_somebody_who_pushes_in_the_last_moment_is_not_overwritten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F11: between our look and our push."""
    landing = world.accepted({"new.py": "one\n"})
    push = Mirror.push
    raced: list[str] = []

    def race(mirror: Mirror, sha: str) -> None:
        if not raced:
            raced.append(world.remote.push({"theirs.py": "theirs\n"}))
        push(mirror, sha)

    monkeypatch.setattr(Mirror, "push", race)
    landing = advance(landing)
    assert (landing.status, landing.attempts, landing.not_before) == (Landing.Status.QUEUED, 1, None)
    landing = advance(landing)
    assert landing.status == Landing.Status.CHECKING
    world.verify(landing.sha)
    landing = advance(landing)
    assert landing.status == Landing.Status.LANDED
    assert world.mirror.is_ancestor(raced[0], world.remote.head())


def test_another_host_tests_what_this_one_has_rebased_and_rebases_to_the_same_commit(world: World) -> None:
    landing = land_on_moved_target(world)
    run = create_run(landing.task, "verifier", sha=landing.sha)
    world.lose_mirror()
    mirror = paths.mirror(world.project)
    assert starting.fetch_base(run, mirror) == landing.sha
    assert mirror.has(landing.sha)
    world.lose_mirror()
    again = advance(landing, host="another-host")
    assert (again.sha, again.status) == (landing.sha, Landing.Status.CHECKING)


def test_a_project_may_have_rebased_work_reviewed_once_more(world: World) -> None:
    """Only once it is green, in the same round, and once for each submission."""
    Project.objects.update(settings=REVIEWED_AGAIN)
    landing = land_on_moved_target(world)
    handed_in = landing.rebased_from
    assert advance(landing).status == Landing.Status.CHECKING
    assert task_of(landing).status == "completed"
    world.verify(landing.sha)
    landing = advance(landing)
    task, submission = task_of(landing), landing.submission
    assert (landing.status, landing.claimed_until) == (Landing.Status.SUPERSEDED, None)
    assert (task.status, task.round, task.rejections, task.accepted_id) == ("review", 1, 0, None)
    assert (submission.sha, submission.rebased_from) == (landing.sha, handed_in)
    assert (submission.state, submission.base_sha) == (Submission.State.VERIFIED, world.remote.head())
    assert [path for path, *_ in submission.diff_stat["files"]] == ["new.py"]
    assert "rebased" in notes(landing, "review_again")[0].lower()
    assert world.remote.head() != landing.sha

    # Approved, it is pushed as it was reviewed: by another host, or rebased once more without a review.
    world.lose_mirror()
    task.approve(submission, actor=REVIEWER)
    orchestrator.tick()
    second = Landing.objects.exclude(pk=landing.pk).get()
    head = world.remote.push({"again.py": "again\n"})
    second = advance(second)
    assert (second.status, second.rebased_from) == (Landing.Status.CHECKING, submission.sha)
    world.verify(second.sha)
    second = advance(second)
    assert (second.status, task_of(second).landed_sha) == (Landing.Status.LANDED, second.sha)
    assert world.mirror.is_ancestor(head, world.remote.head())


def test_what_is_as_it_was_approved_is_not_reviewed_again(world: World) -> None:
    Project.objects.update(settings=REVIEWED_AGAIN)
    assert advance(world.accepted({"new.py": "one\n"})).status == Landing.Status.LANDED


def test_a_red_rebase_goes_to_the_coder_and_to_no_reviewer(world: World) -> None:
    Project.objects.update(settings=REVIEWED_AGAIN)
    landing = land_on_moved_target(world)
    world.verify(landing.sha, green=False, step="tests", tail="1 failed")
    landing = advance(landing)
    assert (landing.status, task_of(landing).status) == (Landing.Status.CONFLICT, "in_progress")
    assert not landing.submission.rebased_from


def test_a_shipped_task_is_reviewed_again_as_well(world: World) -> None:
    Project.objects.update(settings=REVIEWED_AGAIN)
    submission = world.kept({"new.py": "one\n"})
    submission.task.ship(submission, actor=REVIEWER, note="One point is open.")
    world.remote.push({"theirs.py": "theirs\n"})
    landing = advance(world.landing(submission))
    world.verify(landing.sha)
    landing = advance(landing)
    assert (landing.status, task_of(landing).status) == (Landing.Status.SUPERSEDED, "review")


# --- It does not fit any more -----------------------------------------------------------------------------


def test_a_conflict_goes_back_to_the_coder_and_says_where_unless_it_comes_too_late(world: World) -> None:
    landing = world.accepted({"README.md": "Mine.\n"})
    head = world.remote.push({"README.md": "Theirs.\n"})
    with rows_put_back():
        row = fresh(landing)
        Task.objects.filter(pk=landing.task_id).update(status="deferred")
        landings.advance(row, HOST)
        assert (fresh(landing).status, task_of(landing).status) == (Landing.Status.CONFLICT, "deferred")
    landing = advance(landing)
    task = task_of(landing)
    assert landing.status == Landing.Status.CONFLICT
    assert f"do not apply to {head[:12]} any more" in landing.problem
    assert "README.md" in landing.problem
    assert "git rebase --continue" not in landing.problem
    assert (task.status, task.round, task.rejections) == ("in_progress", 2, 0)
    assert world.remote.head() == head


def test_a_change_that_somebody_else_made_already_goes_back(world: World) -> None:
    """Nothing is left of it after the rebase; nobody approved nothing."""
    landing = world.accepted({"new.py": "one\n"})
    world.remote.push({"new.py": "one\n", "more.py": "more\n"})
    landing = advance(landing)
    assert landing.status == Landing.Status.CONFLICT
    assert "another one than was approved" in landing.problem
    assert task_of(landing).status == "in_progress"


def test_a_change_that_became_another_one_goes_back(world: World) -> None:
    """A part of it is on the target already: what is left is not what was approved."""
    run = world.coder()
    world.commit(run, {"one.py": "one\n"}, "One")
    submission = world.hand_in(run, world.commit(run, {"two.py": "two\n"}, "Two"))
    landing = accept(world, submission, run)
    world.remote.push({"one.py": "one\n"})
    landing = advance(landing)
    assert landing.status == Landing.Status.CONFLICT
    assert "another one than was approved" in landing.problem


def accept(world: World, submission: Submission, run: Run) -> Landing:
    """What stands between a hand-in and its landing, in one go."""
    submissions.keep(submission, run)
    Submission.objects.filter(pk=submission.pk).update(state=Submission.State.VERIFIED)
    submission.refresh_from_db()
    submission.task.approve(submission, actor=REVIEWER)
    return world.landing(submission)


def clash(world: World, task: Task, number: int, *, overtaken: bool = False) -> Landing:
    """The task's approved commit does not fit once more, perhaps because another task has landed."""
    landing = world.accepted({"README.md": f"Mine {number}.\n"}, task=task)
    if overtaken:
        advance(world.accepted({"other.py": "x\n"}))
    world.remote.push({"README.md": f"Theirs {number}.\n"})
    return advance(landing)


def test_the_third_time_that_nobody_was_faster_a_human_is_asked_and_a_retry_begins_anew(world: World) -> None:
    """The button says so: "The coder starts again with your words first; counts start again at zero"."""
    task = world.task()
    for number in range(4):
        task = task_of(clash(world, task, number, overtaken=number == 2))
        assert task.status == ("disputed" if number == 3 else "in_progress")
    conflict = Conflict.objects.get()
    assert (conflict.kind, conflict.origin, conflict.status) == ("help", "landing", "open")
    assert "Landing failed 4 times" in conflict.question
    assert task.accepted is None
    user = create_user("ruler", is_superuser=True)
    rulings.decide(conflict, "retry", user=user, text="Rewrite it.", undo_seconds=0)
    task.refresh_from_db()
    assert (task.status, task.round) == ("in_progress", 5)
    assert task_of(clash(world, task, 4)).status == "in_progress"


def test_all_land_that_change_the_same_lines_at_once(world: World) -> None:
    """Whoever clashed twice goes by itself, and what touches its files lands after it."""
    create_agent("coder", slots=9)
    Project.objects.update(settings={"detect_commands": False}, base_state=Project.Base.NOTHING)
    tasks = [world.task() for _ in range(4)]
    begun = []

    def take_up() -> list[Run]:
        """The coders that the loop has begun, each in its clone of the branch as it is now."""
        orchestrator.tick()
        queued = Run.objects.filter(role="coder", status=Run.Status.QUEUED)
        chosen = [run.task for run in queued.select_related("task")]
        queued.delete()
        begun.append(len(chosen))
        return [world.coder(task) for task in chosen]

    def land() -> None:
        orchestrator.tick()
        for landing in landings.due():
            advance(landing)

    def finish(runs: list[Run], files: dict[str, str | None]) -> None:
        for run in runs:
            sha = world.commit(run, {name: f"{text} {run.task.number}\n" for name, text in files.items()})
            submission = world.hand_in(run, sha)
            submissions.keep(submission, run)
            run_ends.end(run, Run.Outcome.HANDED_IN)
            Submission.objects.filter(pk=submission.pk).update(state=Submission.State.VERIFIED)
            submission.task.approve(submission, actor=REVIEWER)
        for _ in (*runs, None):
            land()

    for _ in range(2):
        finish(take_up(), {"README.md": "Mine"})
    at_work = take_up()
    assert begun == [4, 3, 1]
    again, first = [task for task in tasks if fresh_task(task).status == "in_progress"][-1], at_work[0].task
    with_it = f"The coder begins again after {first.ref}, which changes the same files and goes first."
    assert standings([fresh_task(again)])[again.pk].line == with_it

    same, other = world.task(), world.task()
    for run in take_up():
        finish([run], {"README.md" if run.task == same else "other.py": "Beside"})
    late = fresh_task(same)
    assert standings([late])[late.pk].line.startswith(f"Approved; lands after {first.ref}, which ")
    rests = Landing.objects.create(  # it was queued before the other task went by itself
        project=late.project, task=late, submission=late.accepted, sha=late.accepted.sha, target="main",
        problem="Away.", not_before=timezone.now() + timedelta(hours=1),
    )  # fmt: skip
    assert standings([late])[late.pk].line.startswith("Approved; landing is tried again at ")
    rests.delete()
    assert fresh_task(other).landed_at
    finish(at_work, {"README.md": "Mine"})
    while Task.objects.filter(landed_at=None).exists():
        finish(take_up(), {"README.md": "Mine"})
    assert begun == [4, 3, 1, 2, 2, 1]


def test_a_shipped_task_that_does_not_fit_stays_disputed(world: World) -> None:
    submission = world.kept({"README.md": "Mine.\n"})
    submission.task.ship(submission, actor=REVIEWER, note="One point is open.")
    landing = world.landing(submission)
    world.remote.push({"README.md": "Theirs.\n"})
    landing = advance(landing)
    task = task_of(landing)
    assert (landing.status, task.status, task.accepted_id) == (Landing.Status.CONFLICT, "disputed", None)
    assert notes(landing, "clash")


def test_a_shipped_task_lands_and_stays_disputed(world: World) -> None:
    submission = world.kept({"new.py": "one\n"})
    submission.task.ship(submission, actor=REVIEWER, note="One point is open.")
    landing = advance(world.landing(submission))
    task = task_of(landing)
    assert (landing.status, task.status, task.landed_sha) == ("landed", "disputed", landing.sha)


# --- The remote says no, or nothing -----------------------------------------------------------------------


def refuse(world: World) -> None:
    hook(world.remote.path, "pre-receive", "echo 'protected branch' >&2; exit 1")


def test_a_refused_push_is_tried_again_later(world: World) -> None:
    world.settings.DURATIONS = world.settings.DURATIONS | {"remote_retry": 60.0}  # no slow machine ends it
    landing = world.accepted({"new.py": "one\n"})
    talk = "seq -f 'remote policy, paragraph %g of 300, is at https://intranet.example/policy' 300 >&2"
    hook(world.remote.path, "pre-receive", f"{talk}; echo 'signed pushes only' >&2; exit 1")
    landing = advance(landing)
    assert (landing.status, landing.attempts) == (Landing.Status.QUEUED, 1)
    assert landing.problem.startswith("git push: … remote: ")
    assert "remote: signed pushes only\n" in landing.problem
    assert "[remote rejected] (pre-receive hook declined)" in landing.problem
    assert landing.not_before > timezone.now()
    assert landing not in landings.due()
    hook(world.remote.path, "pre-receive", "exit 0")
    landing = advance(landing)
    assert (landing.status, landing.problem) == (Landing.Status.LANDED, "")


def test_each_refusal_is_waited_for_a_third_longer(world: World) -> None:
    world.duration(remote_retry=6, backoff_max=60)
    landing = world.accepted({"new.py": "one\n"})
    refuse(world)
    waits = []
    for _ in range(3):
        before = timezone.now()
        landing = advance(landing)
        waits.append((landing.not_before - before).total_seconds())
    assert 7.9 < waits[0] < 9
    assert all(1.2 < later / sooner < 1.5 for sooner, later in pairwise(waits)), waits


def test_a_remote_that_refuses_keeps_new_work_from_beginning_until_it_takes_something(world: World) -> None:
    """The first refusal is enough; after some more one card asks, and what is mended goes on by itself."""
    create_agent()
    landing, new = world.accepted({"new.py": "one\n"}), world.task()
    standing = partial(standings, [Task.objects.select_related("project", "section").get(pk=new.pk)])
    world.verify(landing.sha)
    Project.objects.update(base_state=Project.Base.GREEN, base_sha=world.remote.head())
    refuse(world)
    landing = advance(landing)
    orchestrator.tick()
    assert not Run.objects.filter(task=new).exists()
    for another in (False, True):
        with rows_put_back():
            if another:  # was taken since, so this is about the commit
                other = world.landing(world.kept({"other.py": "one\n"}))
                Landing.objects.filter(pk=other.pk).update(status="landed", landed_at=timezone.now())
            else:
                Landing.objects.update(problem="")
            orchestrator.tick()
            assert Run.objects.filter(task=new).exists()
    assert "protected branch" in standing()[new.pk].line
    assert "protected branch" in overview()["projects"][0]["waits"]
    assert not candidates.waiting_tasks(timezone.now())

    landing = advance(landing, world.settings.LANDING_ATTEMPTS_MAX + 2)
    card = Conflict.objects.get()
    assert (card.kind, card.origin, landing.status) == ("help", "landing", Landing.Status.QUEUED)
    Project.objects.update(settings=world.project.settings | {"records_branch": "records"})
    assert records.write(Project.objects.get()) == ""
    Run.objects.update(status="ended", outcome="handed_in", ended_at=timezone.now())
    assert idle(2.0, since=newest_event())  # whoever waits for the end does not wait for what takes long
    assert not idle(60.0, since=newest_event())
    assert "protected branch" in card.coder_position
    assert task_of(landing).status == "disputed"
    user = create_user("ruler", is_superuser=True)
    for option, comes in [("retry", "in_progress"), ("land_again", "completed"), ("", "completed")]:
        with rows_put_back():
            if option:
                rulings.decide(Conflict.objects.get(), option, user=user, text="Sign it.", undo_seconds=0)
                assert task_of(landing).status == comes
            if option == "retry":  # what was refused is done anew, on the branch
                run = create_run(landing.task, role="coder")
                assert starting.base_of(run, world.mirror) == world.remote.head()
                assert advance(landing).status == Landing.Status.CONFLICT
                continue
            if option:  # refused once more, it asks once more
                advance(landing)
                assert Conflict.objects.exclude(pk=card.pk).get().is_open
            hook(world.remote.path, "pre-receive", "exit 0")
            assert advance(landing).status == Landing.Status.LANDED
            assert (task_of(landing).status, task_of(landing).landed_sha) == (comes, landing.sha)
            assert not Conflict.objects.open().exists()
            orchestrator.tick()
            assert Run.objects.filter(task=new).exists()
            rewind(world, landing.sha + "^")
            refuse(world)


def test_one_card_asks_about_all_that_the_remote_refuses_in_the_same_words(world: World) -> None:
    refuse(world)
    first, second = (world.accepted({f"{name}.py": "one\n"}) for name in "ab")
    for landing in (first, second):
        advance(landing, world.settings.LANDING_ATTEMPTS_MAX + 1)
    card = Conflict.objects.get()
    assert (card.task, task_of(second).status) == (first.task, "completed")
    rulings.decide(card, "cancel", user=create_user("ruler", is_superuser=True), undo_seconds=0)
    advance(second)
    assert [each.task for each in Conflict.objects.open()] == [second.task]
    third = world.accepted({"c.py": "one\n"})
    hook(world.remote.path, "pre-receive", "echo 'too large' >&2; exit 1")
    advance(third, world.settings.LANDING_ATTEMPTS_MAX + 1)
    assert Conflict.objects.open().count() == 2


def test_a_shipped_task_whose_push_is_refused_asks_a_human_too(world: World) -> None:
    submission = world.kept({"new.py": "one\n"})
    submission.task.ship(submission, actor=REVIEWER, note="One point is open.")
    refuse(world)
    landing = world.landing(submission)
    Landing.objects.update(attempts=world.settings.LANDING_ATTEMPTS_MAX - 1)
    assert advance(landing).status == Landing.Status.QUEUED
    assert Conflict.objects.filter(origin="landing", status="open").exists()
    orchestrator.tick()
    assert Landing.objects.get(status__in=Landing.LIVE) == landing


def test_an_unreachable_remote_is_tried_again_for_ever_after_a_bounded_wait(world: World) -> None:
    landing = world.accepted({"new.py": "one\n"})
    away = world.remote.path.with_name("away")
    world.remote.path.rename(away)
    landing = advance(landing, world.settings.LANDING_ATTEMPTS_MAX + 3)
    assert landing.status == Landing.Status.QUEUED
    assert landing.problem.startswith("The remote cannot be reached:")
    assert landing.not_before > timezone.now()
    assert not Conflict.objects.exists()
    Landing.objects.update(attempts=200)
    landing = advance(landing)
    most = timedelta(seconds=world.settings.DURATIONS["backoff_max"])
    assert timedelta(0) < landing.not_before - timezone.now() <= most
    away.rename(world.remote.path)
    assert advance(landing).status == Landing.Status.LANDED


def test_a_push_that_landed_before_we_heard_of_it_is_not_repeated(world: World) -> None:
    """F12: the connection broke after the push; whoever takes over asks the remote first."""
    landing = world.accepted({"new.py": "one\n"})
    world.mirror.push(landing.sha)
    pushes = world.remote.count_pushes()
    with rows_put_back():
        past = timezone.now() - timedelta(hours=1)
        Landing.objects.update(status=Landing.Status.PUSHING, claimed_until=past)
        landed = advance(landing)
        assert landed.status == Landing.Status.LANDED
        assert task_of(landed).landed_sha == landed.sha
    world.remote.push({"theirs.py": "theirs\n"})  # somebody pushed on top
    assert advance(landing).status == Landing.Status.LANDED
    assert pushes.read_text() == ""


def test_a_push_whose_answer_never_came_is_settled_by_the_branch_itself(world: World) -> None:
    """The remote took the push and then hung: our call is given up, and yet it landed."""
    landing = world.accepted({"new.py": "one\n"})
    hook(world.remote.path, "post-receive", "sleep 1.5")
    world.duration(git_network=0.5)
    landing = advance(landing)
    assert landing.status == Landing.Status.LANDED
    assert world.remote.head() == landing.sha


def test_a_push_in_doubt_while_the_remote_is_away_stays_in_doubt(world: World) -> None:
    """It may have landed: nobody may cancel the task or push another commit before the remote was asked."""
    landing = world.accepted({"new.py": "one\n"})
    path = world.remote.path
    hook(path, "pre-receive", f"mv '{path}' '{path}.away'; exit 1")
    landing = advance(landing)
    assert (landing.status, landing.attempts) == (Landing.Status.PUSHING, 1)
    assert "cannot be reached" in landing.problem
    path.with_name("remote.git.away").rename(path)
    hook(path, "pre-receive", "exit 0")
    assert advance(landing).status == Landing.Status.LANDED


# --- The task moved on ------------------------------------------------------------------------------------


def withdraw(landing: Landing) -> None:
    """A human rules that the approved commit must change."""
    task_of(landing).rule_revise(actor=REVIEWER, note="Not like this.", not_before=None)


def test_a_withdrawn_approval_is_not_even_rebased(world: World) -> None:
    landing = world.accepted({"new.py": "one\n"})
    world.remote.push({"theirs.py": "theirs\n"})
    withdraw(landing)
    landing = advance(landing)
    assert (landing.status, landing.rebased_from) == (Landing.Status.SUPERSEDED, "")


def test_an_approval_that_is_withdrawn_is_not_landed_and_what_landed_all_the_same_is_recorded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing = world.accepted({"new.py": "one\n"})
    with rows_put_back():
        withdraw(landing)
        withdrawn = advance(landing)
        assert (withdrawn.status, withdrawn.claimed_until) == (Landing.Status.SUPERSEDED, None)

    write = landings._task_to_push.write

    def rule_first(*values: object, **changes: object) -> int:
        withdraw(landing)
        return write(*values, **changes)

    with rows_put_back(), monkeypatch.context() as in_the_last_moment:
        in_the_last_moment.setattr(landings._task_to_push, "write", rule_first)
        assert advance(landing).status == Landing.Status.SUPERSEDED
    assert world.remote.head() == world.remote.first

    world.mirror.push(landing.sha)
    withdraw(landing)
    landing = advance(landing)
    task = task_of(landing)
    assert (landing.status, task.status, task.landed_sha) == (Landing.Status.LANDED, "in_progress", "")
    assert notes(landing, "landed_late")


# --- Who does it ------------------------------------------------------------------------------------------


def test_one_of_two_hosts_takes_a_landing_and_whoever_lost_the_claim_writes_nothing(world: World) -> None:
    """A host that slept while another took over."""
    landing = world.accepted({"new.py": "one\n"})
    with rows_put_back():
        one, other = fresh(landing), fresh(landing)
        assert landings.claim(one, "one")
        assert not landings.claim(other, "other")
        assert fresh(landing).claimed_by == "one"
    slow = fresh(landing)
    assert landings.claim(slow, "slow")
    assert landings.claim(fresh(landing), "quick")
    assert not landings._write(slow, status=Landing.Status.STUCK)
    assert fresh(landing).status == Landing.Status.QUEUED


def test_only_free_landings_of_active_projects_are_due(world: World) -> None:
    landing = world.accepted({"new.py": "one\n"})
    assert landings.due() == [landing]
    soon, past = timezone.now() + timedelta(minutes=1), timezone.now() - timedelta(minutes=1)
    for values, is_due in (
        ({"claimed_until": soon}, False),
        ({"claimed_until": past}, True),
        ({"not_before": soon}, False),
        ({"not_before": past}, True),
        ({"status": Landing.Status.CHECKING}, True),
        ({"status": Landing.Status.PUSHING}, True),
        ({"status": Landing.Status.STUCK}, False),
        ({"status": Landing.Status.LANDED}, False),
    ):
        Landing.objects.update(**({"claimed_until": None, "not_before": None, "status": "queued"} | values))
        assert bool(landings.due()) is is_due, values
    Landing.objects.update(claimed_until=None, not_before=None, status="queued")
    Project.objects.update(status=Project.Status.PAUSED)
    assert landings.due() == []


def test_the_oldest_landing_comes_first_and_gives_way_while_it_is_in_trouble(world: World) -> None:
    first, second = world.accepted({"one.py": "one\n"}), world.accepted({"two.py": "two\n"})
    other = world.accepted({"three.py": "three\n"})
    Landing.objects.filter(pk=other.pk).update(target="release")
    assert landings.due() == [first, other]
    Landing.objects.filter(pk=first.pk).update(at=timezone.now() + timedelta(minutes=1))
    assert landings.due() == [second, other]
    soon = timezone.now() + timedelta(minutes=1)
    rows = Landing.objects.filter(pk=second.pk)
    rows.update(status="checking", not_before=soon)  # its build and tests run
    assert landings.due() == [other]
    run = create_run(second.task, "verifier", sha=second.sha)
    assert landings.due() == [other]
    run_ends.end(run, Run.Outcome.REFUSED, reason="There is no make.")
    assert first in landings.due()
    world.verify(second.sha)
    assert first not in landings.due()
    rows.update(status="queued", problem="protected branch")
    assert first in landings.due()


def test_n_landings_are_rebased_and_tested_n_times(world: World) -> None:
    """Whoever lands moves the target on; those behind it in the queue are not touched before their turn."""
    rows = [world.accepted({f"{number}.py": "x\n"}) for number in range(4)]
    for _ in range(40):
        for landing in landings.due():
            landings.advance(landing, HOST)
        for landing in Landing.objects.filter(status=Landing.Status.CHECKING):
            if not landing.project.verifications.filter(sha=landing.sha):
                world.verify(landing.sha)
        Landing.objects.update(not_before=None)
    assert [fresh(row).status for row in rows] == [Landing.Status.LANDED] * len(rows)
    landed = Event.objects.filter(kind="landed").order_by("pk").values_list("task", flat=True)
    assert list(landed) == [row.task_id for row in rows]
    assert Event.objects.filter(kind="rebased").count() == len(rows) - 1
    assert world.project.verifications.count() == len(rows) - 1


def test_a_host_goes_on_with_the_queue_as_soon_as_one_has_landed(world: World) -> None:
    world.project.settings |= {"test_command": "", "detect_commands": False}
    world.project.save()
    rows = [world.accepted({f"{number}.py": "x\n"}) for number in range(3)]
    with Reconciler() as host:
        host.step()
    landed = Event.objects.filter(kind="landed").order_by("pk").values_list("task", flat=True)
    assert list(landed) == [row.task_id for row in rows]
    assert world.remote.head() == fresh(rows[-1]).sha


def test_doctor_tells_of_each_landing_that_waits_for_long_in_as_many_queries(world: World) -> None:
    one, other = world.accepted({"one.py": "one\n"}), world.accepted({"two.py": "two\n"})
    Landing.objects.filter(pk=other.pk).update(target="release", status=Landing.Status.STUCK)
    limit = timezone.now() + timedelta(minutes=1)

    def told() -> list[str]:
        return [each.says for each in doctor._stuck_work(limit) if "is due" in each.says]

    count = queries(told)
    assert told() == [f"The landing of {one.sha[:12]} of {one.task.ref} is due."]
    Landing.objects.filter(pk=other.pk).update(status=Landing.Status.QUEUED)
    assert len(told()) == 2
    assert queries(told) == count


def test_what_a_killed_process_held_is_due_to_its_own_host_alone(world: World) -> None:
    own, other = world.accepted({"one.py": "one\n"}), world.accepted({"two.py": "two\n"})
    Landing.objects.filter(pk=other.pk).update(target="release")
    killed = fresh(own)
    assert landings.claim(killed, host_name())
    assert landings.claim(fresh(other), "another-host")
    assert landings.due() == landings.due("a-third-host") == []
    assert landings.due(host_name()) == [own]
    assert landings.claim(fresh(own), host_name())
    assert not landings._write(killed, status=Landing.Status.STUCK)


def test_a_host_that_never_saw_the_commit_lands_it_from_its_bundle_and_asks_a_human_if_that_is_gone(
    world: World,
) -> None:
    landing = world.accepted({"new.py": "one\n"})
    world.lose_mirror()
    with rows_put_back():
        landing.submission.bundle.delete()
        stuck = advance(landing, host="another-host")
        assert stuck.status == Landing.Status.STUCK
        assert "on another host" in Conflict.objects.get().coder_position
    world.lose_mirror()
    landing = advance(landing, host="another-host")
    assert landing.status == Landing.Status.LANDED
    assert world.remote.head() == landing.sha


def test_a_host_that_never_saw_the_commit_rebases_it_from_its_bundle(world: World) -> None:
    landing = world.accepted({"new.py": "one\n"})
    world.remote.push({"theirs.py": "theirs\n"})
    world.lose_mirror()
    landing = advance(landing, host="another-host")
    world.verify(landing.sha)
    assert advance(landing, host="another-host").status == Landing.Status.LANDED


# --- Two at once ------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_only_one_landing_of_a_branch_pushes_at_a_time(world: World) -> None:
    first, second = world.accepted({"one.py": "one\n"}), world.accepted({"two.py": "two\n"})
    Landing.objects.filter(pk=first.pk).update(status=Landing.Status.PUSHING)
    second = advance(second)
    assert (second.status, second.attempts, second.claimed_until) == (Landing.Status.QUEUED, 0, None)
    assert second.not_before is not None
    assert world.remote.head() == world.remote.first


@pytest.mark.django_db(transaction=True)
def test_two_hosts_that_land_at_once_lose_nothing(world: World) -> None:
    """Both approved commits end on the target, one after the other; the second one is tested again."""
    rows = [world.accepted({f"{name}.py": "x\n"}) for name in ("one", "two")]
    at_once(*[partial(landings.advance, fresh(row), f"host {row.pk}") for row in rows])
    for _ in range(4):
        for row in Landing.objects.filter(status__in=Landing.LIVE):
            row = advance(row)
            if row.status == Landing.Status.CHECKING and not row.project.verifications.filter(sha=row.sha):
                world.verify(row.sha)
    assert {fresh(row).status for row in rows} == {Landing.Status.LANDED}
    listing = git(world.remote.path, "ls-tree", "--name-only", "main").splitlines()
    assert {"one.py", "two.py"} <= set(listing)
    assert git(world.remote.path, "rev-list", "--count", "main") == "3"


@pytest.mark.django_db(transaction=True)
def test_one_landing_that_two_hosts_want_is_pushed_once(world: World) -> None:
    landing = world.accepted({"new.py": "one\n"})
    pushes = world.remote.count_pushes()
    at_once(*[partial(landings.advance, fresh(landing), host) for host in ("one", "other")])
    assert fresh(landing).status == Landing.Status.LANDED
    assert len(pushes.read_text().splitlines()) == 1


def test_landings_of_two_branches_do_not_wait_for_each_other(world: World) -> None:
    first = world.accepted({"one.py": "one\n"})
    Landing.objects.filter(pk=first.pk).update(status=Landing.Status.PUSHING, target="release")
    assert advance(world.accepted({"two.py": "two\n"})).status == Landing.Status.LANDED


def test_the_loop_makes_a_landing_of_an_approval(world: World) -> None:
    create_agent("coder")
    submission = world.kept({"new.py": "one\n"})
    submission.task.approve(submission, actor=REVIEWER)
    assert orchestrator.tick().landings == 1
    assert orchestrator.tick().landings == 0
    assert advance(Landing.objects.get()).status == Landing.Status.LANDED
    assert orchestrator.tick().landings == 0


# --- A branch that was rewritten --------------------------------------------------------------------------


def test_a_force_push_that_drops_landed_work_is_told_once_and_can_be_done_again(world: World) -> None:
    first = world.mirror.fetch_target()
    before = advance(world.accepted({"kept.py": "kept\n"}))
    lost = advance(world.accepted({"lost.py": "lost\n"}))
    assert lost.landed_at
    heads.note(world.project, world.mirror, first)  # a head from before the last landing is no loss
    assert not Event.objects.filter(kind="landed_work_gone").exists()

    with rows_put_back():  # nor does a landing that was noticed late hide one
        Landing.objects.filter(pk=before.pk).update(landed_at=timezone.now() + timedelta(minutes=1))
        rewind(world, before.sha)
        heads.note(world.project, world.mirror, world.mirror.fetch_target())
        assert (fresh(before).gone_at, bool(fresh(lost).gone_at)) == (None, True)

    with rows_put_back():  # landed work that comes back withdraws the card
        for head in (before.sha, lost.sha):
            rewind(world, head)
            heads.note(world.project, world.mirror, world.mirror.fetch_target())
        assert fresh(lost).gone_at is None
        card = Conflict.objects.get(origin=Conflict.Origin.REWRITTEN)
        assert card.status == Conflict.Status.MOOT
        assert Event.objects.filter(kind="landed_work_back").count() == 1

    rewind(world, before.sha)
    for mirror in (world.mirror, world.remote.mirror(world.mirror.path.with_name("other.git"))):
        for _ in range(2):  # however many hosts notice it, and however often
            heads.note(world.project, mirror, mirror.fetch_target())
    assert (fresh(before).gone_at, bool(fresh(lost).gone_at)) == (None, True)
    told = Event.objects.get(kind="landed_work_gone")
    assert told.data["landings"] == [lost.sha]
    card = Conflict.objects.get(origin=Conflict.Origin.REWRITTEN)
    assert card.question == f"main of {world.project.name} was rewritten. One landing is not on it any more."
    assert f"{lost.task.ref} {lost.task.title}: {lost.sha[:12]}" in card.evidence
    assert git(world.mirror.path, "rev-parse", f"refs/steroids/dropped/{lost.sha}") == lost.sha
    rulings.decide(card, "reopen_lost", user=create_user(is_superuser=True), rationale="Nobody meant it.")
    assert task_of(lost).status == "in_progress"
    assert task_of(before).landed_sha == before.sha


def test_a_claim_holds_whatever_the_clocks_of_the_hosts_say(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing, real = world.accepted({"new.py": "one\n"}), timezone.now
    for hours in (-1, 1):
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(timezone, "now", lambda by=hours: real() + timedelta(hours=by))
            assert landings.claim(fresh(landing), "wrong")
        assert landings.due() == [], f"claimed by a host whose clock is {hours} h off"
        Landing.objects.update(claimed_until=None)
        assert landings.claim(fresh(landing), "right")
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(timezone, "now", lambda by=hours: real() + timedelta(hours=by))
            assert landings.due() == [], f"looked at by a host whose clock is {hours} h off"
        assert landings.due("right") == [landing], "its own host goes on with what it began"
        Landing.objects.update(claimed_until=None)
    Landing.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    assert landings.due() == [landing]


def test_a_step_that_broke_off_unforeseen_is_taken_again_by_its_own_host_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the row that says so cannot be written either: the claim stayed for three minutes."""
    landing = world.accepted({"new.py": "one\n"})

    def full(*words: object, **more: object) -> None:
        raise OperationalError("database or disk is full")

    with Reconciler() as host:
        with monkeypatch.context() as broken:
            broken.setattr(landings, "_landed", full)
            host.step()
        assert world.remote.head() == landing.sha
        assert landings.due("another") == []
        host.step()
    assert fresh(landing).status == Landing.Status.LANDED


def test_a_clock_that_stepped_back_hides_no_loss(world: World) -> None:
    before = [advance(world.accepted({f"{name}.py": "kept\n"})) for name in ("one", "two")]
    Landing.objects.update(landed_at=timezone.now() + timedelta(hours=1))
    lost = advance(world.accepted({"lost.py": "lost\n"}))
    rewind(world, before[-1].sha)
    heads.note(world.project, world.mirror, world.mirror.fetch_target())
    assert [bool(fresh(each).gone_at) for each in (*before, lost)] == [False, False, True]


def test_what_was_taken_off_the_branch_does_not_come_back_with_the_next_landing(world: World) -> None:
    """Work that began on a commit which somebody has removed since: only the work itself lands."""
    first = world.remote.head()
    dropped = world.remote.push({"secret.py": "password\n"})
    straight, moved = world.accepted({"one.py": "one\n"}), world.accepted({"two.py": "two\n"})
    assert world.mirror.is_ancestor(dropped, straight.sha)
    rewind(world, first)
    straight = advance(straight)
    assert (straight.status, straight.rebased_from) == (Landing.Status.CHECKING, straight.submission.sha)
    world.verify(straight.sha)
    straight = advance(straight)
    assert straight.status == Landing.Status.LANDED, straight.problem
    moved = advance(moved)
    world.verify(moved.sha)
    rewind(world, first)  # and what was rebased onto the first one does not bring it back either
    moved = advance(moved)
    assert (moved.status, moved.seen_head) == (Landing.Status.CHECKING, first)
    world.verify(moved.sha)
    assert advance(moved).status == Landing.Status.LANDED
    names = git(world.remote.path, "ls-tree", "--name-only", "main").split()
    assert "two.py" in names
    assert not {"secret.py", "one.py"} & set(names)
