"""The small rules by which trials are chosen and a red branch is accepted."""

from typing import Any

import pytest
from django.utils import timezone

from agents.hosts import starting
from agents.models import Trial
from agents.reading.faults import environment_fault, is_passing
from agents.recipes.recipe import Recipe
from agents.verification import conclusions, heads, trying
from agents.web.setup_forms import CommandsForm
from disputes.models import Conflict
from tasks import base
from tasks.configuration.changing import configure
from tasks.errors import Refused
from tasks.events import SYSTEM
from tasks.models import Landing, Project, Task
from tests.agents.world import World, make_world  # noqa: F401  (a fixture)
from tests.factories import create_project

pytestmark = pytest.mark.django_db
RED = {"step": "tests", "exit_code": 1, "failed": ["a::b"], "failed_count": 1, "total": 9}


def trying_project(**kwargs: Any) -> Project:
    values = {"base_state": "trying", "base_sha": "a" * 40, "base_at": timezone.now()} | kwargs
    return create_project(**values)


def ended(project: Project, outcome: str, **kwargs: Any) -> Trial:
    values = {"why": "search", "sha": project.base_sha, "test": "make test", "step": "tests"} | kwargs
    return Trial.objects.create(
        project=project, status="ended", outcome=outcome, ended_at=timezone.now(), **values
    )


def test_the_first_green_recipe_is_kept_with_limits_by_its_time() -> None:
    project = trying_project()
    ended(project, "red", problem="no pytest", test="pytest")
    steps = [{"name": "tests", "code": 0, "seconds": 900 * 0.05}]
    ended(project, "green", test="make check", prepare="make deps", steps=steps, total=7)
    Trial.objects.create(project=project, why="search", sha=project.base_sha, test="never")
    conclusions.decide(project.pk)
    project.refresh_from_db()
    assert project.base_state == "green"
    config = project.config
    assert (config.prepare_command, config.test_command) == ("make deps", "make check")
    assert (config.build_timeout, config.test_timeout) == (600, 2700)
    assert list(Trial.objects.filter(outcome="skipped").values_list("test", flat=True)) == ["never"]


def test_a_green_recipe_that_runs_far_fewer_tests_hides_nothing() -> None:
    project = trying_project()
    ended(project, "red", problem="1 failed", total=1400, failed=["a::b"], failed_count=1, exit_code=1)
    ended(project, "green", test="true")
    conclusions.decide(project.pk)
    project.refresh_from_db()
    assert project.base_state == "red"
    card = Conflict.objects.get(origin="base")
    assert "1 failed" in card.question
    assert "failed: a::b" in card.evidence
    assert any(fact.startswith("Also tried: the own commands, green") for fact in card.evidence)
    assert project.config.test_command == ""  # until somebody accepts it
    base.accept_as_it_is(project, actor=SYSTEM)
    assert project.config.test_command == "make test"
    assert project.base_known["failed"] == ["a::b"]


def test_a_green_recipe_that_ran_no_test_waits_for_one_that_runs_some() -> None:
    project = trying_project()
    ended(project, "green", test="tox", total=0)
    queued = Trial.objects.create(project=project, why="search", sha=project.base_sha, test="make")
    conclusions.decide(project.pk)
    project.refresh_from_db()
    assert project.base_state == "trying"
    queued.delete()
    ended(project, "green", test="pytest", total=9)
    conclusions.decide(project.pk)
    project.refresh_from_db()
    assert (project.base_state, project.config.test_command) == ("green", "pytest")


def test_a_green_recipe_that_ran_no_test_hides_no_red_one() -> None:
    project = trying_project()
    ended(project, "green", test="tox", total=0)
    ended(project, "red", test="go test ./...", problem="1 failed", failed=["a"], exit_code=1)
    conclusions.decide(project.pk)
    project.refresh_from_db()
    assert (project.base_state, project.base_problem) == ("red", "1 failed")


def test_a_green_recipe_that_ran_no_test_is_kept_where_no_other_runs_any() -> None:
    for outcome in ("broken", "green"):
        project = trying_project()
        idle = ended(project, "green", test="tox", total=0)
        ended(project, outcome, test="pytest", total=0)
        conclusions.decide(project.pk)
        project.refresh_from_db()
        assert (project.base_state, project.config.test_command) == ("green", "tox")
        assert conclusions.says(idle) == "green after 0 s, 0 tests"


def test_a_green_recipe_that_tells_of_no_test_is_only_offered_where_a_likelier_one_lacks_a_program() -> None:
    absent = {"step": "toolchain", "problem": "bats is not on this host. What brings it: apt install bats."}
    for lacks, tells, state in (
        (absent, {}, "broken"),
        ({"problem": "The program `bats` is missing on this host."}, {}, "broken"),
        (absent, {"total": 0}, "broken"),
        (absent, {"total": 3}, "green"),
        (absent, {"tail": "ok  \texample.org/a\t0.2s\n"}, "green"),
        (absent | {"test": ""}, {}, "green"),
        (absent | {"ordinal": 4}, {}, "green"),
        # What comes back by itself is waited for; what does not, such as another Python, is not.
        ({"problem": "The disk of this host is full."}, {}, "broken"),
        ({"problem": "A package registry or another server could not be reached (a.example)."}, {}, "broken"),
        ({"problem": "This host's Python does not fit what is required (>=3.99)."}, {}, "green"),
    ):
        project = trying_project()
        ended(project, "broken", **{"ordinal": 1, "test": "bats tests"} | lacks)
        ended(project, "red", ordinal=2, test="pytest", problem="prepare ended with 1", step="prepare")
        ended(project, "green", ordinal=3, test="make check", **tells)
        conclusions.decide(project.pk)
        project.refresh_from_db()
        assert project.base_state == state, (lacks, tells)
        if state == "broken":
            card = Conflict.objects.get(origin="base", dispute__project=project)
            assert card.question.endswith(
                ". Without it, `make check` is green but tells of no test; save it if that is enough."
            )
            assert lacks["problem"].removesuffix(".") in card.question
            form = CommandsForm(project)
            assert form.is_offer
            assert form["test_command"].value() == "make check"
            assert not project.config.test_command


def test_what_got_furthest_is_offered_where_nothing_could_be_run_to_its_end() -> None:
    project = trying_project()
    ended(
        project,
        "broken",
        ordinal=1,
        step="toolchain",
        problem="cargo is not on this host.",
        test="cargo test",
    )
    came_far = [{"name": "prepare", "code": 0, "seconds": 3}, {"name": "tests", "code": 127, "seconds": 1}]
    ended(project, "broken", ordinal=2, prepare="npm ci", steps=came_far, problem="lerna is missing")
    failed = [{"name": "prepare", "code": 1, "seconds": 3}]
    ended(project, "broken", ordinal=3, prepare="make deps", steps=failed, problem="no such file")
    conclusions.decide(project.pk)
    project.refresh_from_db()
    assert (project.base_state, project.base_problem) == ("broken", "cargo is not on this host.")
    form = CommandsForm(project)
    assert form.is_offer
    assert (form["prepare_command"].value(), form["test_command"].value()) == ("npm ci", "make test")
    assert not project.config.test_command, "until somebody saves it"


def test_a_red_trial_in_which_no_test_passed_does_not_hide_what_the_likelier_one_lacks() -> None:
    absent = {"step": "toolchain", "problem": "bats is not on this host.", "test": "bats test"}
    ended_for_it = {"problem": "The program `bats` is missing on this host.", "test": "./run"}
    none_passed = {"failed": ["a", "b"], "failed_count": 2, "total": 2, "exit_code": 1, "problem": "2 failed"}
    for lacking in (absent, ended_for_it):
        for passed, state in ((0, "broken"), (1, "red")):
            project = trying_project()
            ended(project, "broken", ordinal=1, **lacking)
            ended(project, "red", ordinal=2, **none_passed | {"total": 2 + passed})
            conclusions.decide(project.pk)
            project.refresh_from_db()
            assert project.base_state == state
            card = Conflict.objects.get(origin="base", dispute__project=project)
            assert (lacking["problem"] if state == "broken" else "2 failed") in card.question
            assert any(fact.startswith("Also tried: ") for fact in card.evidence)


def test_what_a_less_likely_trial_lacks_hides_no_red_one() -> None:
    project = trying_project()
    ended(project, "red", ordinal=1, failed=["a"], failed_count=1, total=1, exit_code=1, problem="1 failed")
    ended(project, "broken", ordinal=2, step="toolchain", problem="just is not on this host.")
    conclusions.decide(project.pk)
    project.refresh_from_db()
    assert (project.base_state, project.base_problem) == ("red", "1 failed")


def test_a_recipe_whose_program_is_not_here_is_not_run_and_says_what_brings_it() -> None:
    lacks = Recipe(test="no-such test", tools=("no-such-pnpm", "no-such-lein"))
    trying._queue(trying_project(), "a" * 40, lacks, "search", 1)
    trial = Trial.objects.get()
    brings = "What brings it: install the package of your system that brings this program."
    assert (trial.outcome, trial.step) == ("broken", "toolchain")
    assert trial.problem == " ".join(f"{tool} is not on this host. {brings}" for tool in lacks.tools)


def test_a_green_trial_tells_what_was_missing_of_the_commit() -> None:
    trial = ended(trying_project(), "green", total=3, problem="Submodule a at ../a.git: is not there.")
    assert conclusions.says(trial) == "green after 0 s, 3 tests. Submodule a at ../a.git: is not there."


def test_only_what_can_be_told_apart_is_accepted() -> None:
    for state, red, code in (
        ("red", {"step": "build", "exit_code": 2}, "not_comparable"),
        ("broken", {}, "nothing_ran"),
        ("green", {}, "nothing_red"),
    ):
        with pytest.raises(Refused) as refused:
            base.accept_as_it_is(create_project(base_state=state, base_red=red), actor=SYSTEM)
        assert refused.value.code == code


def test_other_commands_are_tried_and_other_settings_are_not() -> None:
    project = create_project(base_state="accepted", base_known=RED)
    configure(project, {"rejections_max": 3}, actor=SYSTEM)
    project.refresh_from_db()
    assert project.base_state == "accepted"
    configure(project, {"test_command": "make check"}, actor=SYSTEM)
    project.refresh_from_db()
    assert project.base_state == "unknown"


def test_what_was_verified_before_it_was_pushed_needs_no_trial(world: World) -> None:
    configure(world.project, {"test_command": "true"}, actor=SYSTEM, is_tried=True)
    head = world.mirror.fetch_target()
    base.set_base(world.project, "accepted", sha=head, base_known=RED)
    world.project.refresh_from_db()
    ours = world.remote.push({"a.py": "a\n"})
    world.mirror.fetch_target()
    world.verify(ours, failed=["a::b"])
    assert heads.note(world.project, world.mirror, ours)
    assert world.project.base_state == "accepted"
    green = world.remote.push({"b.py": "b\n"})
    world.mirror.fetch_target()
    world.verify(green)
    assert heads.note(world.project, world.mirror, green)
    assert (world.project.base_state, world.project.base_known) == ("green", {})
    strange = world.remote.push({"c.py": "c\n"})
    world.mirror.fetch_target()
    assert not heads.note(world.project, world.mirror, strange)
    assert world.project.base_state == "unknown"


def test_no_trial_opens_the_network_to_what_agents_landed(world: World) -> None:
    """Whatever a trial reaches is open to every later run, so a commit of an agent must not choose it."""
    assert starting.reach_of_trial(world.project).hosts == ("*",)
    landing = world.accepted({"a.py": "a\n"})
    Landing.objects.update(status=Landing.Status.LANDED)
    for origin, hosts in ((Task.Origin.SETUP, ("*",)), (Task.Origin.HAND, ())):
        Task.objects.filter(pk=landing.task_id).update(origin=origin)
        assert starting.reach_of_trial(world.project).hosts == hosts
    configure(world.project, {"allowed_hosts": "pypi.org"}, actor=SYSTEM, is_tried=True)
    assert starting.reach_of_trial(world.project).hosts == ("pypi.org",)


def test_a_disk_and_a_registry_come_back_by_themselves_and_a_missing_package_does_not() -> None:
    for output, passing in (
        ("OSError: [Errno 28] No space left on device", True),
        ("npm ERR! network request failed, reason: connect ECONNREFUSED 127.0.0.1:9", True),
        ("ERROR: No matching distribution found for no-such-thing", False),
    ):
        fault = environment_fault(output, 1)
        assert fault, output
        assert is_passing(fault) is passing, fault


def test_a_red_trial_tells_which_servers_the_repositorys_own_ci_starts(world: World) -> None:
    workflow = "jobs: {t: {services: {db: {image: 'postgres:16'}}, steps: [{run: make check}]}}\n"
    head = world.remote.push({".github/workflows/ci.yml": workflow})
    world.mirror.fetch_target()
    for said, told in (
        ("connection to server at localhost, port 5432 failed: Connection refused\n", True),
        ("AssertionError: 1 == 2\n", False),
    ):
        trial = Trial.objects.create(project=world.project, why="search", sha=head, status="running")
        folder = trying.folder_of(trial.pk)
        folder.mkdir(parents=True)
        names = "".join(f"FAILED tests/test_{'x' * 200}.py::test_{number}\n" for number in range(3))
        output = f"=== short test summary info ===\n{names}=== 3 failed in 0.1s ===\n{said}"
        (folder / "output.log").write_text(output)
        trying._finish(trial, {"steps": [{"name": "tests", "code": 1, "log": [0, len(output)]}]})
        trial.refresh_from_db()
        assert (trial.outcome, trial.failed_count) == ("red", 3)
        end = (
            "CI starts postgres beside its tests (.github/workflows/ci.yml). Here only the commands can: let"
        )
        assert (end in trial.problem) == told, trial.problem
        assert trial.problem.startswith("tests ended with 1: 3 failed: ")


def test_what_one_recipe_could_not_do_or_fetch_is_not_tried_again_by_another(world: World) -> None:
    recipes = (
        ("pip install -e .", "pytest", "offline"),
        ("pip install .", "pytest tests", "offline same"),
        ("", "pytest", "offline"),  # pytest itself has to be fetched
        ("", "python -m unittest", ""),
        ("npm ci", "npm test", ""),
        ("npm ci && pip install -e .", "npm test && pytest", "offline"),
    )
    output = "ERROR: Could not find a version that satisfies the requirement setuptools\n"
    for step, reached, spared in (
        ("prepare", "", "offline"), ("environment: pytest", "", "offline"), ("tests", "", "none"),
        ("prepare", "packages.example.org\n", "same"), ("build", "packages.example.org\n", "same"),
    ):  # fmt: skip
        Trial.objects.all().delete()
        common = {"project": world.project, "why": "search", "sha": world.remote.head()}
        first = Trial.objects.create(
            **common, ordinal=1, status="running", prepare="pip install .", test="pytest"
        )
        for number, (prepare, test, _) in enumerate(recipes, start=2):
            Trial.objects.create(**common, ordinal=number, prepare=prepare, test=test)
        folder = trying.folder_of(first.pk)
        folder.mkdir(parents=True)
        (folder / "output.log").write_text(output)
        (folder / "unreached").write_text("index.example.org away\n")
        (folder / "reached").write_text(reached)
        trying._finish(first, {"steps": [{"name": step, "code": 1, "log": [0, len(output)]}]})
        first.refresh_from_db()
        found = list(Trial.objects.exclude(pk=first.pk).order_by("pk").values_list("outcome", flat=True))
        assert found == ["skipped" if spared in when.split() else "" for *_, when in recipes], (step, reached)
        count = {"offline": "4 other recipes", "same": "1 other recipe", "none": ""}[spared]
        assert (f"Left out for beginning with the same: {count}." in first.problem) == bool(count)
