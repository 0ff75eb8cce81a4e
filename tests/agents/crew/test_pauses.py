"""Accounts in trouble: how long they rest, who ends it, and what people see and may do."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.crew import pauses
from agents.hosts import provider_trouble
from agents.models import Agent, ProviderPause, Run
from agents.providers.reports import PROVIDER_TROUBLE, ErrorClass, Report
from tasks.models import Project
from tasks.spans import clock
from tests.asking import as_user
from tests.cases import for_each
from tests.factories import create_run, create_task

pytestmark = pytest.mark.django_db
QUOTA, RATE = ErrorClass.QUOTA, ErrorClass.RATE


@pytest.fixture(autouse=True)
def whole_seconds(settings: Any) -> None:
    settings.TIME_SCALE = 1.0


def length(row: ProviderPause) -> int:
    return round((row.until - row.since).total_seconds())


def test_every_class_of_error_has_its_row_and_the_providers_trouble_pauses() -> None:
    assert set(pauses.EFFECTS) == set(ErrorClass)
    assert {error for error, effect in pauses.EFFECTS.items() if effect.pauses} == PROVIDER_TROUBLE


@for_each("error", sorted(PROVIDER_TROUBLE))
def test_a_pause_doubles_up_to_its_bound(error: ErrorClass) -> None:
    effect = pauses.EFFECTS[error]
    lengths = [length(pauses.pause("codex", error, "No.")) for _ in range(30)]
    assert lengths[:2] == [effect.first, effect.first * 2]
    assert lengths[-1] == effect.most
    assert ProviderPause.objects.get().failures == 30


def test_the_time_that_the_provider_named_holds() -> None:
    until = timezone.now() + timedelta(hours=5)
    assert pauses.pause("codex", QUOTA, "Wait.", until=until).until == until


def test_no_output_pauses_an_account_for_days() -> None:
    named = timezone.now() + timedelta(days=7)
    assert length(pauses.pause("codex", QUOTA, "Resets on Thursday.", until=named)) == 6 * 3600
    assert (
        pauses.pause("codex", QUOTA, "No.", until=named, began=timezone.now() - timedelta(days=1)).until
        < named
    )


def test_runs_that_failed_of_one_cause_double_nothing() -> None:
    began = timezone.now() - timedelta(minutes=1)
    first = pauses.pause("codex", RATE, "429", began=began)
    for _ in range(5):
        pauses.pause("codex", RATE, "429", began=began)
    row = ProviderPause.objects.get()
    assert (row.failures, row.until) == (1, first.until)


def test_a_longer_time_from_a_run_of_the_same_cause_is_taken() -> None:
    began, until = timezone.now() - timedelta(minutes=1), timezone.now() + timedelta(hours=2)
    pauses.pause("codex", RATE, "429", began=began)
    pauses.pause("codex", QUOTA, "Wait.", until=until, began=began)
    assert ProviderPause.objects.get().until == until


def test_an_account_is_paused_until_its_time_and_by_itself() -> None:
    now = timezone.now()
    pauses.pause("codex", QUOTA, "Wait.", until=now + timedelta(hours=1))
    assert pauses.paused().keys() == {"codex"}
    assert pauses.paused(now + timedelta(minutes=61)) == {}


def test_ending_a_pause_keeps_how_often_it_failed() -> None:
    pauses.pause("codex", RATE, "429")
    assert pauses.end("codex")
    assert not pauses.end("codex")
    assert pauses.paused() == {}
    assert length(pauses.pause("codex", RATE, "429")) == 60


@pytest.mark.parametrize(("minutes", "left"), [(-5, 1), (5, 0)])
def test_a_run_that_began_after_the_trouble_ends_it(minutes: int, left: int, ledger: Project) -> None:
    row = pauses.pause("codex", RATE, "429")
    agent = Agent.objects.create(name="cx", role="coder", provider="codex")
    run = create_run(create_task(ledger), agent=agent, started_at=row.since + timedelta(minutes=minutes))
    pauses.after(run)
    assert ProviderPause.objects.count() == left


def test_a_long_and_hostile_message_is_kept_in_bounds() -> None:
    row = pauses.pause("a" * 500, RATE, "<script>\n" * 500)
    row.full_clean()
    assert "\n" not in row.reason


# --- Why a run ended ----------------------------------------------------------------------------------------


def trouble(
    report: Report, *, code: int | None = 1, reason: str = "", name: str = "agent", tail: str = ""
) -> Any:
    agent = Agent(name="cx", role="coder", provider="codex")
    return provider_trouble.trouble_of(agent, report, {"name": name, "code": code}, reason, tail)


SPENT = Report(error=QUOTA, message="Quota exceeded")


@for_each("reason", ["", "silent", "wall", "timeout", "provider"])
def test_the_provider_is_blamed_for_these_ends(reason: str) -> None:
    found = trouble(SPENT, reason=reason)
    assert found.is_of_provider
    assert found.sentence.startswith("Its quota is used up: Quota exceeded. Wait")


@for_each("reason", ["stopped", "bytes", "orphan", "cost", "refused"])
def test_the_provider_is_not_blamed_for_those(reason: str) -> None:
    assert trouble(SPENT, reason=reason) is None


def test_a_command_that_ended_well_had_at_most_its_connection_cut_whatever_was_written_into_its_output() -> (
    None
):
    assert trouble(SPENT, code=0) is None
    cut = Report(error=ErrorClass.NETWORK, message="Model stream ended without a finish reason.")
    assert trouble(cut, code=0).is_of_provider  # as Gemini CLI ends then
    assert trouble(SPENT, code=0, reason="silent").is_of_provider
    assert trouble(Report(error=ErrorClass.PERMISSION, message="Denied."), code=0).error == "permission"


def test_steps_before_the_agent_have_no_provider() -> None:
    assert trouble(SPENT, name="environment") is None


def test_who_reported_nothing_has_no_trouble() -> None:
    assert trouble(Report(), code=0) is None
    assert trouble(Report(), code=1) is None


def test_a_script_that_ends_for_lack_of_a_program_could_not_be_started() -> None:
    for words in (
        "/srv/coder.sh: line 3: no-such: command not found", "/srv/coder.sh: 3: no-such: not found",
        "sh: 1: no-such: not found", "/usr/bin/env: ‘no-such’: No such file or directory",
    ):  # fmt: skip
        found = trouble(Report(), code=127, tail=f"Begun.\n{words}\n")
        assert (found.error, found.is_of_provider) == (ErrorClass.START, True), words
        assert "The program 'no-such', which it calls, is not on this host. Install it" in found.sentence
    gone = "coder.sh: 3: no-such: not found"
    for code, tail in (
        (1, gone),  # the script went on, and failed by itself
        (127, f"{gone}\nIt went on."),
        (127, "coder.sh: 3: sh: not found"),  # but it is there
        (127, "coder.sh: 3: ./tools/run: not found"),  # the repository's own
        (127, ""),
    ):
        assert trouble(Report(), code=code, tail=tail) is None, tail


# --- What people see ----------------------------------------------------------------------------------------


@pytest.fixture
def paused(ledger: Project) -> ProviderPause:
    agent = Agent.objects.create(name="ledgers-codex", role="coder", provider="codex")
    agent.projects.set([ledger])
    return pauses.pause("codex", QUOTA, "<b>Wait</b>", until=timezone.now() + timedelta(hours=1))


def test_the_dashboard_says_until_when_and_why_and_for_whom(paused: ProviderPause, lea: User) -> None:
    page = as_user(Client(), lea).get("/admin/").content.decode()
    assert f"{timezone.localtime(paused.until):%H:%M}" in page
    assert "&lt;b&gt;Wait&lt;/b&gt;" in page
    assert "ledgers-codex" in page
    assert f"/accounts/{paused.pk}/try/" in page


def test_a_viewer_sees_it_and_a_stranger_does_not(paused: ProviderPause, vera: User, otto: User) -> None:
    seen = as_user(Client(), vera).get("/admin/").content.decode()
    assert "ledgers-codex" in seen
    assert "Try again now" not in seen
    assert "ledgers-codex" not in as_user(Client(), otto).get("/admin/").content.decode()


def test_a_maintainer_ends_the_pause_and_nobody_else(
    paused: ProviderPause, lea: User, tom: User, otto: User
) -> None:
    address = f"/accounts/{paused.pk}/try/"
    assert as_user(Client(), otto).post(address).status_code == 404
    assert as_user(Client(), tom).post(address).status_code == 403
    assert as_user(Client(), lea).get(address).status_code == 405
    assert pauses.paused().keys() == {"codex"}
    assert as_user(Client(), lea).post(address).status_code == 302
    assert pauses.paused() == {}
    assert as_user(Client(), lea).post(address).status_code == 404


def test_the_list_of_agents_says_who_is_paused(paused: ProviderPause, admin_client: Client) -> None:
    Agent.objects.create(name="good", role="coder", provider="claude", is_fine=True)
    Agent.objects.create(name="bad", role="coder", provider="gemini", is_fine=False)
    page = admin_client.get("/admin/agents/agent/").content.decode()
    assert f"paused until {clock(paused.until, timezone.now())}" in page
    assert "fails" in page
    assert "fine" in page


def test_outcome_provider_is_never_counted(ledger: Project) -> None:
    from agents.loop import run_ends

    run = create_run(create_task(ledger))
    run_ends.end(run, Run.Outcome.PROVIDER, reason="No.", error_class="rate")
    run.refresh_from_db()
    assert (run.is_counted, run.error_class) == (False, "rate")
    run.task.refresh_from_db()
    assert run.task.not_before is None
