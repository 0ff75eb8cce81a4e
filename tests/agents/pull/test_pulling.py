"""Agents elsewhere: claiming, beating, bringing commits, handing in, giving back; with HTTP and real git."""

import json
import re
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from agents.hosts.reconciler import Reconciler
from agents.loop import orchestrator, run_ends
from agents.models import Agent, Output, Prompt, PullBundle, Run, Token, token_hash
from agents.pull import commits, leases
from disputes.models import Decision
from tasks.events import SYSTEM
from tasks.models import Bundle, Event, Project, Submission, Task
from tests.agents.world import World, at_once, commit, git, make_world  # noqa: F401  (a fixture)
from tests.cases import for_each, rows_put_back
from tests.factories import create_agent, create_project, create_task, create_user

pytestmark = pytest.mark.django_db


class Puller:
    """An agent elsewhere: a token, HTTP, and a folder of its own."""

    def __init__(self, agent: Agent, folder: Path) -> None:
        self.agent, self.folder = agent, folder
        self.token = Token.mint_for(agent, "elsewhere")[1]
        self.client = Client()
        self.run: dict[str, Any] = {}

    def ask(self, method: str, path: str, body: Any = None, *, token: str = "", key: str = "") -> Any:
        headers = {"Authorization": f"Bearer {token or self.run.get('token') or self.token}"}
        if key:
            headers["Idempotency-Key"] = key
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        data = body if isinstance(body, bytes) else json.dumps(body or {})
        return self.client.generic(method, path, data, content_type=kind, headers=headers)

    def claim(self, key: str = "") -> Any:
        answer = self.ask("POST", "/api/v1/pull/claim/", token=self.token, key=key)
        if answer.status_code == 201:
            self.run = answer.json()
        return answer

    def work(self) -> dict[str, Any]:
        answer = self.ask("GET", self.run["addresses"]["work"])
        assert answer.status_code == 200, answer.content
        return answer.json()

    def verb(self, name: str, body: Any = None, **more: Any) -> Any:
        return self.ask("POST", f"/api/v1/tasks/{self.run['task']}/{name}/", body, **more)

    def to(self, name: str, body: Any = None, *, method: str = "POST", **more: Any) -> Any:
        return self.ask(method, self.run["addresses"][name], body, **more)

    def clone(self) -> Path:
        """What it works in, made as docs/pull.md says: the remote, then the base's bundle if there is one."""
        work = self.work()
        clone = self.folder / f"run-{work['run']}"
        git(self.folder, "clone", "--quiet", "--no-checkout", work["repo_url"], str(clone))
        if work["base_bundle"]:
            bundle = self.folder / "base.bundle"
            bundle.write_bytes(self.to("base", method="GET").content)
            git(clone, "fetch", "--quiet", str(bundle), work["base_ref"])
        git(clone, "checkout", "--quiet", "-B", work["branch"] or "review", work["base_sha"])
        return clone

    def bundle(self, clone: Path, sha: str, base: str = "", ref: str = leases.HAND_IN_REF) -> bytes:
        git(clone, "update-ref", ref, sha)
        file = self.folder / "work.bundle"
        limit = [f"^{base or self.work()['base_sha']}"] if base != "-" else []
        git(clone, "bundle", "create", "--quiet", str(file), ref, *limit)
        return file.read_bytes()

    def hand_in(self, clone: Path, sha: str, **more: Any) -> Any:
        brought = self.to("bundle", self.bundle(clone, sha), method="PUT")
        assert brought.status_code == 200, brought.content
        return self.verb("submit", {"sha": sha, **more})


def turn(times: int = 1) -> None:
    """The loop of one host."""
    with Reconciler() as host:
        for _ in range(times):
            orchestrator.tick()
            host.step()


@pytest.fixture
def coder(world: World, tmp_path: Path) -> Puller:
    (tmp_path / "there").mkdir()
    return Puller(create_agent("coder", name="far-coder", provider="pull", settings={}), tmp_path / "there")


@pytest.fixture
def reviewer(world: World, tmp_path: Path) -> Puller:
    (tmp_path / "yonder").mkdir()
    agent = create_agent("reviewer", name="far-reviewer", provider="pull", settings={})
    return Puller(agent, tmp_path / "yonder")


@pytest.fixture
def root(world: World) -> Client:
    client = Client()
    client.force_login(create_user("root", is_superuser=True))
    return client


@pytest.fixture
def claimed(world: World, coder: Puller) -> Puller:
    """A coder with one task, ready."""
    world.task(title="Round up")
    assert coder.claim().status_code == 201
    turn()
    return coder


# --- Claiming -----------------------------------------------------------------------------------------------


def test_a_claim_gives_a_run_its_token_and_its_addresses(world: World, coder: Puller) -> None:
    task = world.task(title="Round up")
    answer = coder.claim()
    told, run = answer.json(), Run.objects.get()
    assert answer.status_code == 201
    assert (told["run"], told["task"], told["role"], told["title"]) == (run.pk, task.ref, "coder", "Round up")
    assert (run.is_pulled, run.status, run.host, run.agent) == (True, "queued", None, coder.agent)
    task.refresh_from_db()
    assert task.status == "in_progress"
    assert told["addresses"]["beat"] == f"/api/v1/pull/runs/{run.pk}/beat/"
    assert Event.objects.filter(kind="claimed", task=task).count() == 1


def test_the_token_stands_nowhere_in_the_database(world: World, coder: Puller) -> None:
    from tasks.models import Idempotency

    world.task()
    coder.claim(key="one")
    assert coder.run["token"] not in str(Idempotency.objects.values())
    assert coder.run["token"] not in str(Run.objects.values())


def test_a_repeated_claim_gets_the_same_run_and_the_same_token(world: World, coder: Puller) -> None:
    world.task()
    world.task()
    first, again = coder.claim(key="one").json(), coder.claim(key="one").json()
    assert first == again
    assert Run.objects.count() == 1
    assert coder.claim(key="two").json()["run"] != first["run"]


def test_the_repeated_claim_of_a_run_that_is_over_is_refused(world: World, coder: Puller) -> None:
    world.task()
    coder.claim(key="one")
    run_ends.end(Run.objects.get(), Run.Outcome.STOPPED)
    answer = coder.claim(key="one")
    assert (answer.status_code, answer.json()["code"]) == (409, "run_over")


def test_where_there_is_nothing_to_do_it_is_told_when_to_ask_again(world: World, coder: Puller) -> None:
    answer = coder.claim(key="one")
    assert (answer.status_code, answer.content) == (204, b"")
    assert int(answer["Retry-After"]) > 0
    world.task()
    assert coder.claim(key="one").status_code == 201  # nothing was done, so nothing is repeated


def test_the_loop_never_gives_work_to_an_agent_that_claims_its_own(world: World, coder: Puller) -> None:
    world.task()
    orchestrator.tick()
    assert not Run.objects.exists()


@for_each(("name", "value"), [("status", "paused"), ("trouble_until", timezone.now() + timedelta(hours=1))])
def test_nothing_is_claimed_of_a_project_that_rests(
    world: World, coder: Puller, name: str, value: Any
) -> None:
    world.task()
    Project.objects.update(**{name: value})
    assert coder.claim().status_code == 204


def test_a_claim_keeps_to_the_guards_of_the_tick(world: World, coder: Puller) -> None:
    world.task(waits_for=1)
    world.task(not_before=timezone.now() + timedelta(hours=1))
    world.task(status="disputed", round=1)
    assert coder.claim().status_code == 204
    stopped = world.task()
    world.section.is_stopped = True
    world.section.save()
    assert coder.claim().status_code == 204
    world.section.is_stopped = False
    world.section.save()
    assert coder.claim().json()["task"] == stopped.ref


@for_each(("rows", "limit"), [(Project.objects, {"max_parallel": 1}), (Agent.objects, {"slots": 1})])
def test_no_more_runs_are_claimed_than_the_project_has_seats_and_the_agent_slots(
    world: World, coder: Puller, rows: Any, limit: dict[str, int]
) -> None:
    rows.update(**limit)
    world.task()
    world.task()
    assert [coder.claim().status_code for _ in range(2)] == [201, 204]


def test_an_agent_claims_in_its_own_projects_only(world: World, coder: Puller) -> None:
    other = create_project(max_parallel=3)
    coder.agent.projects.add(other)
    world.task()
    assert coder.claim().status_code == 204
    theirs = create_task(other)
    assert coder.claim().json()["task"] == theirs.ref


def test_domains_that_do_not_fit_are_left_to_others(world: World, coder: Puller) -> None:
    coder.agent.domains = ["frontend"]
    coder.agent.save()
    world.task(tags=["backend"])
    assert coder.claim().status_code == 204
    fitting = world.task(tags=["frontend"])
    assert coder.claim().json()["task"] == fitting.ref


def test_an_agent_claims_from_the_columns_it_watches(world: World, coder: Puller) -> None:
    task = world.task()
    Agent.objects.update(watches=["needs-senior-dev"])
    assert coder.claim().status_code == 204
    Agent.objects.update(watches=["dev"])
    assert coder.claim().json() | {"stage": "dev"} == coder.run
    assert coder.run["task"] == task.ref


# --- Who may ------------------------------------------------------------------------------------------------


def test_the_agents_token_opens_nothing_but_the_claim(world: World, coder: Puller) -> None:
    task = world.task()
    for method, path in (
        ("GET", "/api/v1/tasks/"), ("GET", f"/api/v1/tasks/{task.ref}/"), ("GET", "/api/v1/disputes/"),
        ("POST", f"/api/v1/tasks/{task.ref}/submit/"), ("POST", f"/api/v1/tasks/{task.ref}/status/"),
        ("GET", "/api/v1/pull/runs/1/"), ("POST", "/api/v1/pull/runs/1/beat/"),
    ):  # fmt: skip
        answer = coder.ask(method, path)
        assert (answer.status_code, answer.json()["code"]) == (403, "only_claims"), path
    assert coder.ask("GET", "/api/v1/me/").json() == {
        "kind": "agent", "name": "far-coder", "role": "coder", "task": "",
    }  # fmt: skip


def test_an_agent_that_is_switched_off_claims_nothing(world: World, coder: Puller) -> None:
    world.task()
    Agent.objects.update(is_active=False)
    answer = coder.claim()
    assert (answer.status_code, answer.json()["code"]) == (403, "agent_off")
    assert "switched off" in answer.json()["message"]


def test_a_token_that_expired_or_was_withdrawn_claims_nothing(world: World, coder: Puller) -> None:
    world.task()
    Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert coder.claim().status_code == 401
    Token.objects.all().delete()
    answer = coder.claim()
    assert (answer.status_code, answer.json()["code"]) == (401, "bad_token")


def test_a_run_of_a_host_has_no_business_at_these_addresses(world: World, coder: Puller) -> None:
    from agents.models import new_token, token_hash

    token = new_token()
    run = world.coder()
    Run.objects.filter(pk=run.pk).update(token_hash=token_hash(token))
    for method, name in (("GET", ""), ("POST", "beat/"), ("GET", "base/"), ("POST", "release/")):
        answer = coder.ask(method, f"/api/v1/pull/runs/{run.pk}/{name}", token=token)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_this_run")
    assert coder.ask("POST", "/api/v1/pull/claim/", token=token).json()["code"] == "not_a_puller"


def test_one_run_does_not_reach_another(world: World, coder: Puller) -> None:
    world.task()
    world.task()
    first = coder.claim().json()
    coder.claim()
    for name, body in (("beat", {}), ("beat", {"tokens_in": -1}), ("release", {"reason": "x" * 1000})):
        answer = coder.ask("POST", first["addresses"][name], body)
        assert (answer.status_code, answer.json()["code"]) == (403, "other_run"), (name, body)


# --- The work -----------------------------------------------------------------------------------------------


def test_the_work_is_there_once_a_host_has_prepared_it(world: World, coder: Puller) -> None:
    task = world.task(title="Round up")
    coder.claim()
    answer = coder.to("work", method="GET")
    assert (answer.status_code, answer.json()["ready"], answer["Retry-After"]) == (202, False, "1")
    early = coder.verb("submit", {"sha": world.remote.first})
    assert (early.status_code, early.json()["code"]) == (409, "not_ready")
    turn()
    work, run = coder.work(), Run.objects.get()
    assert (run.status, run.host, run.base_sha) == ("running", None, world.remote.first)
    assert run.lease_until is not None
    assert work["prompt"] == Prompt.objects.get().text
    assert "Round up" in work["prompt"]
    assert (work["repo_url"], work["target_branch"]) == (str(world.remote.path), "main")
    assert (work["base_sha"], work["base_bundle"]) == (world.remote.first, False)
    assert work["branch"] == f"steroids/{task.ref}"
    assert coder.to("base", method="GET").status_code == 204


def test_a_ruling_is_used_by_the_prompt_that_an_agent_elsewhere_reads(
    world: World, coder: Puller, monkeypatch: pytest.MonkeyPatch
) -> None:
    from disputes import rulings

    used: list[int] = []
    monkeypatch.setattr(rulings, "mark_used", lambda decisions, run_pk: used.append(run_pk))
    world.task()
    coder.claim()
    turn()
    assert used == [coder.run["run"]]
    assert not Decision.objects.exists()


def test_a_remote_that_cannot_be_reached_ends_the_run_without_counting_it(
    world: World, coder: Puller
) -> None:
    world.task()
    coder.claim()
    world.project.repo_url = str(world.remote.path / "gone")
    world.project.save()
    turn()
    run = Run.objects.get()
    assert (run.status, run.outcome, run.is_counted) == ("ended", "stopped", False)
    answer = coder.to("work", method="GET")
    assert (answer.status_code, answer.json()["code"]) == (401, "run_over")


def test_a_password_in_the_repositorys_address_is_not_told() -> None:
    from agents.pull.pull_views import without_password

    assert without_password("https://bot:secret@example.org/x.git") == "https://example.org/x.git"
    assert (
        without_password("https://bot:secret@example.org/x.git?key=secret") == "https://example.org/x.git?***"
    )
    assert without_password("git@example.org:x.git") == "git@example.org:x.git"


# --- Beating ------------------------------------------------------------------------------------------------


def test_a_beat_prolongs_the_lease_and_brings_log_and_usage_once(
    claimed: Puller, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = timezone.now() + timedelta(seconds=1)
    Run.objects.update(lease_until=soon)
    answer = claimed.to("beat")
    assert answer.json() | {"lease_seconds": 0} == {
        "stop": False, "reason": "", "ready": True, "lease_seconds": 0,
    }  # fmt: skip
    assert Run.objects.get().lease_until > soon  # type: ignore[operator]
    said = {
        "log": "reading stx_abcdefghijklmnopqrstuvwxyz\0\n",
        "tokens_in": 70,
        "tokens_out": 5,
        "cost": "0.25",
    }
    assert claimed.to("beat", said).status_code == 200
    for _ in range(2):  # the same one, sent again
        again = claimed.to("beat", {"log": "done\n", "tokens_in": 60, "cost": "0.10"}, key="beat-1")
        assert again.status_code == 200
    run = Run.objects.get()
    assert [row.text for row in Output.objects.order_by("seq")] == ["reading stx_***\ndone\n"]
    assert (run.tokens_in, run.tokens_out, str(run.cost), run.cost_from) == (70, 5, "0.250000", "agent")
    assert run.last_output_at is not None

    # A log without end is cut.
    Output.objects.all().delete()
    monkeypatch.setattr(leases, "LOG_MAX", 100)
    for _ in range(4):
        claimed.to("beat", {"log": "x" * 60})
    text = "".join(row.text for row in Output.objects.order_by("seq"))
    assert text == "x" * 100 + "\n[the rest of the log is left out]\n"


def test_a_beat_that_reaches_the_cap_ends_the_run_and_says_so(claimed: Puller, world: World) -> None:
    world.project.settings |= {"run_tokens_max": 1000}
    world.project.save()
    answer = claimed.to("beat", {"tokens_in": 1000}).json()
    assert (answer["stop"], answer["ready"]) == (True, False)
    assert answer["reason"].startswith("The cap of a run is reached: 1,000 tokens")
    run = Run.objects.get()
    assert (run.status, run.outcome, run.is_counted) == ("ended", "cost", False)
    assert claimed.to("beat").status_code == 401


@for_each(
    "body", [{"log": "x" * 70_000}, {"tokens_in": -1}, {"tokens_in": 10**13}, {"cost": "NaN"}, {"log": ["x"]}]
)
def test_a_beat_of_nonsense_is_refused_and_the_run_goes_on(claimed: Puller, body: Any) -> None:
    answer = claimed.to("beat", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert Run.objects.get().status == "running"


def test_a_run_that_is_not_to_go_on_learns_it_at_its_next_beat(claimed: Puller) -> None:
    with rows_put_back():  # somebody asked it to stop
        run_ends.ask_to_stop(Run.objects.get(), actor=SYSTEM)
        answer = claimed.to("beat").json()
        assert (answer["stop"], answer["reason"]) == (True, "Somebody asked this run to stop.")

    with rows_put_back():  # its task was deferred, so its lease runs out
        before = Run.objects.get().lease_until
        Task.objects.get().defer(actor=SYSTEM, note="later")
        answer = claimed.to("beat").json()
        assert answer["stop"] is True
        assert "deferred" in answer["reason"]
        assert Run.objects.get().lease_until == before

    Run.objects.update(started_at=timezone.now() - timedelta(days=2))  # it took too long
    assert claimed.to("beat").json()["stop"] is True
    Run.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    orchestrator.reap()
    assert Run.objects.get().outcome == "wall"


def test_how_long_a_run_took_is_told_by_the_databases_clock(
    claimed: Puller, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: real() + timedelta(days=1))
    assert leases.why_stop(Run.objects.get()) == ""
    monkeypatch.setattr(timezone, "now", lambda: real() - timedelta(days=1))
    Run.objects.update(started_at=real() - timedelta(hours=3))
    assert "took longer" in leases.why_stop(Run.objects.get())


# --- Losing and giving back ---------------------------------------------------------------------------------


def lose(run_pk: int) -> None:
    Run.objects.filter(pk=run_pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_lease_that_runs_out_ends_the_run_as_lost_and_somebody_else_goes_on(
    claimed: Puller, tmp_path: Path
) -> None:
    lose(claimed.run["run"])
    assert claimed.to("beat").json()["code"] == "run_over"  # too late, though nobody has reaped it yet
    orchestrator.reap()
    run = Run.objects.get()
    assert (run.status, run.outcome, run.is_counted) == ("ended", "lost", False)
    assert "far-coder was not heard of" in run.reason
    for verb, body in (("submit", {"sha": "a" * 40}), ("comment", {"body": "Late."})):
        answer = claimed.verb(verb, body)
        assert (answer.status_code, answer.json()["code"]) == (401, "run_over"), verb
        assert "is over; its token died with it" in answer.json()["message"], verb
    assert claimed.to("beat").status_code == 401
    assert not Submission.objects.exists()
    (tmp_path / "third").mkdir()
    other = Puller(create_agent("coder", name="other", provider="pull", settings={}), tmp_path / "third")
    assert other.claim().json()["task"] == claimed.run["task"]


def test_work_that_is_given_back_is_not_counted_and_rests_but_a_failure_is(claimed: Puller) -> None:
    with rows_put_back():
        said = {"reason": "It ended with 1.", "failed": True}
        assert claimed.to("release", said).status_code == 200
        run = Run.objects.get()
        assert (run.outcome, run.is_counted, run.reason) == ("nothing", True, "It ended with 1.")
    answer = claimed.to("release", {"reason": "No compiler here."}, key="back")
    assert answer.status_code == 200
    run, task = Run.objects.get(), Task.objects.get()
    assert (run.outcome, run.is_counted) == ("stopped", False)
    assert run.reason == "Given back by its agent. No compiler here."
    assert task.not_before is not None
    assert claimed.to("release", {"reason": "No compiler here."}, key="back").json() == answer.json()


def test_who_gives_back_again_and_again_waits_longer(claimed: Puller) -> None:
    rests = []
    for _ in range(3):
        claimed.to("release")
        task = Task.objects.get()
        rests.append((task.not_before - timezone.now()).total_seconds())  # type: ignore[operator]
        Task.objects.update(not_before=None)
        assert claimed.claim().status_code == 201
    assert rests == sorted(rests)
    assert rests[2] > 2 * rests[0]


def test_a_claim_that_no_host_prepared_can_be_given_back(world: World, coder: Puller) -> None:
    world.task()
    coder.claim()
    assert coder.to("release").status_code == 200
    assert Run.objects.get().outcome == "stopped"


# --- Handing in ---------------------------------------------------------------------------------------------


def test_commits_arrive_as_a_bundle_and_are_kept_by_any_host(claimed: Puller, world: World) -> None:
    clone = claimed.clone()
    sha = commit(clone, {"ledger.py": "total = 1\n"})
    answer = claimed.hand_in(clone, sha)
    assert answer.status_code == 201, answer.content
    turn(2)
    submission, run = Submission.objects.get(), Run.objects.get(role="coder")
    assert submission.state == Submission.State.VERIFIED, submission.problem
    assert "+total = 1" in submission.diff
    assert (run.status, run.outcome) == ("ended", "handed_in")
    assert world.mirror.has(sha)
    world.lose_mirror()
    world.mirror.fetch_target()
    world.mirror.unbundle(bytes(Bundle.objects.get().data), f"refs/steroids/submissions/{submission.pk}")
    assert world.mirror.has(sha)
    assert not PullBundle.objects.exists()


def test_the_commit_it_began_with_needs_no_bundle(claimed: Puller, world: World) -> None:
    nothing = {"sha": world.remote.first, "notes": "Nothing to do."}
    assert claimed.verb("submit", nothing).json()["code"] == "asked_back"
    assert claimed.verb("submit", nothing).status_code == 201
    turn()
    assert Submission.objects.get().state == Submission.State.KEPT


def test_a_second_hand_in_is_told_that_it_has_handed_in(claimed: Puller) -> None:
    clone = claimed.clone()
    sha = commit(clone, {"ledger.py": "total = 1\n"})
    assert claimed.hand_in(clone, sha).status_code == 201
    answer = claimed.verb("submit", {"sha": sha})
    assert (answer.status_code, answer.json()["code"]) == (409, "handed_in")


def refused(claimed: Puller, data: bytes) -> dict[str, Any]:
    answer = claimed.to("bundle", data, method="PUT")
    assert answer.status_code == 422, answer.content
    return answer.json()


@for_each(
    "data",
    [
        b"", b"PK\x03\x04", b"# v2 git bundle\n", b"# v2 git bundle\n\nPACK", b"# v9 git bundle\n\n",
        b"# v2 git bundle\n" + b"a" * 40 + b" refs/heads/main\n\nPACK",
        b"# v2 git bundle\n" + b"a" * 40 + b" refs/steroids/hand-in\n" + b"b" * 40 + b" refs/heads/x\n\nPACK",
        b"# v2 git bundle\n../../etc refs/steroids/hand-in\n\nPACK",
        b"# v3 git bundle\n@filter=blob:none\n" + b"a" * 40 + b" refs/steroids/hand-in\n\nPACK",
        b"\xff" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_bundle_of_the_one_ref_is_refused_at_once(claimed: Puller, data: bytes) -> None:
    told = refused(claimed, data)
    assert told["code"] == "bad_bundle"
    assert "git bundle create" in told["hint"]
    assert not PullBundle.objects.filter(work__isnull=False).exists()


def test_what_is_too_large_or_of_another_kind_or_was_not_brought_is_not_taken_and_the_run_goes_on(
    claimed: Puller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "BUNDLE_MAX", 1000)
    answer = claimed.to("bundle", b"x" * 1001, method="PUT")
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert claimed.to("bundle", {"data": "x"}, method="PUT").status_code == 415
    answer = claimed.verb("submit", {"sha": "c" * 40})
    assert (answer.status_code, answer.json()["code"]) == (422, "no_bundle")
    assert "bundle/" in answer.json()["hint"]
    assert Run.objects.get().status == "running"
    assert Task.objects.get().status == "in_progress"


def broken(claimed: Puller, clone: Path) -> tuple[bytes, str]:
    sha = commit(clone, {"ledger.py": "total = 1\n"})
    return claimed.bundle(clone, sha)[:-30] + b"\0" * 30, sha


def of_another_root(claimed: Puller, clone: Path) -> tuple[bytes, str]:
    other = clone.with_name("other")
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    sha = commit(other, {"x": "y"})
    return claimed.bundle(other, sha, "-"), sha


def with_our_records(claimed: Puller, clone: Path) -> tuple[bytes, str]:
    sha = commit(clone, {"TODO.md": "- [x] all\n"})
    return claimed.bundle(clone, sha), sha


def with_a_git_folder(claimed: Puller, clone: Path) -> tuple[bytes, str]:
    blob = git(clone, "hash-object", "-w", "--stdin", stdin="[core]\n\tfsmonitor = touch /tmp/planted\n")
    inner = git(clone, "mktree", stdin=f"100644 blob {blob}\tconfig\n")
    tree = git(clone, "mktree", stdin=f"040000 tree {inner}\t.git\n")
    sha = git(clone, "commit-tree", tree, "-p", "HEAD", "-m", "Nothing to see")
    return claimed.bundle(clone, sha), sha


def little_that_unpacks_to_much(claimed: Puller, clone: Path) -> tuple[bytes, str]:
    sha = commit(clone, {"zeros": "0" * 3_000_000})
    data = claimed.bundle(clone, sha)
    assert len(data) < 100_000
    return data, sha


def test_commits_that_are_not_taken_go_back_to_the_coder_with_the_reason(
    claimed: Puller, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "UNPACKED_MAX", 1024 * 1024)
    clone = claimed.clone()
    for make, reason in (
        (broken, "cannot be taken"),
        (of_another_root, "does not descend"),
        (with_our_records, "leave these files alone"),
        (with_a_git_folder, "cannot be taken"),
        (little_that_unpacks_to_much, "unpacks to more than"),
    ):
        git(clone, "reset", "--quiet", "--hard", world.remote.first)
        data, sha = make(claimed, clone)
        with rows_put_back():
            assert claimed.to("bundle", data, method="PUT").status_code == 200, make
            assert claimed.verb("submit", {"sha": sha}).status_code == 201, make
            turn()
            submission = Submission.objects.get()
            assert submission.state == Submission.State.LOST, make
            assert Task.objects.get().status == "in_progress", make
            assert reason in submission.problem, make
        assert make in {of_another_root, with_our_records} or not world.mirror.has(sha), make


def test_an_unreachable_remote_makes_the_host_wait_and_not_send_back(
    claimed: Puller, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = claimed.clone()
    sha = commit(clone, {"ledger.py": "total = 1\n"})
    claimed.hand_in(clone, sha)
    world.lose_mirror()
    away = world.remote.path.rename(world.remote.path.with_name("away.git"))
    turn()
    assert Submission.objects.get().state == Submission.State.RECEIVED
    away.rename(world.remote.path)
    turn()
    assert Submission.objects.get().state == Submission.State.KEPT


# --- Reviewing ----------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_coder_and_reviewer_elsewhere_carry_a_task_to_its_landing(
    claimed: Puller, reviewer: Puller, world: World
) -> None:
    clone = claimed.clone()
    sha = commit(clone, {"ledger.py": "total = 1\n"})
    claimed.hand_in(clone, sha)
    assert reviewer.claim().status_code == 204  # neither kept nor verified yet
    turn(3)
    assert reviewer.claim().json()["role"] == "reviewer"
    turn()
    work = reviewer.work()
    assert (work["base_sha"], work["base_bundle"], work["branch"]) == (sha, True, "")
    assert git(reviewer.clone(), "rev-parse", "HEAD") == sha
    assert reviewer.verb("submit", {"sha": sha}).json()["code"] == "wrong_role"
    assert reviewer.to("bundle", b"x", method="PUT").json()["code"] == "wrong_role"
    assert reviewer.verb("approve", {"notes": "Fine."}).status_code == 201
    turn(4)
    task = Task.objects.get()
    assert (task.status, task.landed_sha, world.remote.head()) == ("completed", sha, sha)
    assert set(Run.objects.filter(is_pulled=True).values_list("outcome", flat=True)) == {"handed_in"}


@pytest.mark.django_db(transaction=True)
def test_the_next_coder_elsewhere_begins_with_the_commits_of_the_last(
    claimed: Puller, reviewer: Puller, world: World
) -> None:
    clone = claimed.clone()
    sha = commit(clone, {"ledger.py": "total = 1\n"})
    claimed.hand_in(clone, sha)
    turn(3)
    reviewer.claim()
    turn()
    review = "### High Priority\n\n- **ISSUE-R1-001**: Round up\n  - **Location:** ledger.py:1\n"
    assert reviewer.verb("reject", {"review": review}).status_code == 201
    turn()
    claimed.claim()
    turn()
    work = claimed.work()
    assert (work["base_sha"], work["base_bundle"], work["round"]) == (sha, True, 2)
    second = claimed.clone()
    better = commit(second, {"ledger.py": "total = 2\n"})
    data = claimed.bundle(second, better)
    world.lose_mirror()  # another host, which has seen nothing of it
    assert claimed.to("bundle", data, method="PUT").status_code == 200
    response = "- ISSUE-R1-001: fixed\n"
    assert claimed.verb("submit", {"sha": better, "response": response}).status_code == 201
    turn()
    kept = Submission.objects.get(sha=better)
    assert kept.state == Submission.State.KEPT, kept.problem


def test_an_agent_never_reviews_its_own_work(claimed: Puller, world: World) -> None:
    clone = claimed.clone()
    sha = commit(clone, {"ledger.py": "total = 1\n"})
    claimed.hand_in(clone, sha)
    turn(3)
    Agent.objects.update(role="reviewer")  # the same agent, in another role
    assert claimed.claim().status_code == 204


# --- Pages and commands -------------------------------------------------------------------------------------


def test_pages_say_that_an_agent_elsewhere_has_the_run_and_the_stop_button_reaches_it_with_its_next_beat(
    claimed: Puller, root: Client
) -> None:
    run = Run.objects.get()
    html = root.get(f"/runs/{run.pk}/").content.decode()
    assert "an agent elsewhere" in html
    assert "Last beat" in html
    state = root.get(f"/runs/{run.pk}/log/").json()["state"]
    assert state.startswith("Running elsewhere, last beat ")
    assert ">elsewhere<" in root.get("/runs/").content.decode()
    assert root.post(f"/runs/{run.pk}/stop/").status_code == 302
    assert claimed.to("beat").json()["stop"] is True
    lose(run.pk)
    orchestrator.reap()
    run.refresh_from_db()
    assert (run.outcome, run.is_counted) == ("stopped", False)


def test_the_admin_shows_when_an_agent_was_last_seen(
    claimed: Puller, root: Client, django_assert_max_num_queries: Any
) -> None:
    create_agent("reviewer", name="far-2", provider="pull", settings={})
    Token.mint_for(claimed.agent, "a spare one that was never used")
    with django_assert_max_num_queries(20):
        html = root.get("/admin/agents/agent/").content.decode()
    cells = re.findall(r'data-label="last seen">\s*([^<]*?)\s*<', html)
    assert len(cells) == 2
    assert [cell == "never" for cell in cells] == [False, True]


def test_a_superuser_mints_a_token_for_an_agent_and_sees_it_once(world: World, root: Client) -> None:
    agent = create_agent("coder", name="far", provider="pull", settings={})
    create_agent("coder", name="near")
    form = root.get("/admin/agents/token/add/").content.decode()
    assert ">far<" in form
    assert ">near<" not in form
    answer = root.post("/admin/agents/token/add/", {"name": "there", "agent": agent.pk}, follow=True)
    secret = re.search(r"stx_[\w-]{40,}", answer.content.decode())
    assert secret is not None
    token = Token.objects.get()
    assert (token.agent, token.user) == (agent, None)
    assert secret[0] not in root.get("/admin/agents/token/").content.decode()
    world.task()
    bearer = {"Authorization": f"Bearer {secret[0]}"}
    assert Client().post("/api/v1/pull/claim/", headers=bearer).status_code == 201


def test_who_is_no_superuser_mints_no_token_for_an_agent(world: World) -> None:
    agent = create_agent("coder", name="far", provider="pull", settings={})
    client, tom = Client(), create_user("tom")
    client.force_login(tom)
    client.post("/admin/agents/token/add/", {"name": "mine", "agent": agent.pk})
    assert [(token.user, token.agent) for token in Token.objects.all()] == [(tom, None)]


def test_add_pull_agent_prints_a_token_once(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    slug = world.project.slug
    call_command("add_pull_agent", "far", "--role", "coder", "--watches", "dev", "--project", slug)
    token = capsys.readouterr().out.split()[-1]
    made = Token.objects.get(hash=token_hash(token)).agent
    assert made is not None
    assert (made.name, made.provider, made.watches, made.settings) == ("far", "pull", ["dev"], {})
    assert list(made.projects.all()) == [world.project]


@for_each(
    ("words", "said"),
    [(["x", "--project", "gone"], "no project gone"), (["x y"], "valid"), (["far"], "already")],
)
def test_a_malformed_agent_is_not_made(world: World, words: list[str], said: str) -> None:
    create_agent("coder", name="far")
    with pytest.raises(CommandError, match=said):
        call_command("add_pull_agent", *words, "--role", "coder")
    assert not Token.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_agents_that_ask_at_once_get_a_task_once(world: World, coder: Puller, tmp_path: Path) -> None:
    world.task()
    (tmp_path / "third").mkdir()
    other = Puller(create_agent("coder", name="other", provider="pull", settings={}), tmp_path / "third")
    answers: list[int] = []
    at_once(*(lambda one=one: answers.append(one.claim().status_code) for one in (coder, other)))
    assert sorted(answers) == [201, 204]
    assert Run.objects.count() == 1
