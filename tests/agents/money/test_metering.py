"""What a run used: read from its output as it grows, priced, never lowered, and what agents elsewhere say."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from agents.hosts import paths
from agents.models import Run
from agents.money import caps, metering, price_lists
from agents.money.prices import Tokens
from agents.providers.reports import Report
from agents.web import costs
from disputes.models import Conflict
from steroidsweb import checks
from tasks.configuration.changing import configure
from tasks.events import SYSTEM
from tasks.models import Project, Task
from tests.factories import create_agent, create_project, create_run, create_task

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Path) -> Path:
    settings.HOME = tmp_path / "home"
    settings.PRICES = tmp_path / "prices.yaml"
    settings.DURATIONS = settings.DURATIONS | {"meter": 0.0}
    settings.PRICES.write_text("models:\n  big-1: {input: 10, cached: 1, output: 100}\n")
    metering.forget(set())
    return Path(settings.HOME)


@pytest.fixture
def run(db: None) -> Run:
    """A live coder that speaks as Claude Code does."""
    task = create_task(create_project(slug="ledger"), status="in_progress", round=1, title="Import dates")
    agent = create_agent("coder", name="coder", provider="claude", settings={})
    return create_run(task, agent=agent, agent_label="coder")


def says(run: Run, *events: dict[str, Any] | str) -> None:
    """More output of the run."""
    path = paths.run_folder(run.pk) / "output.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        for event in events:
            file.write((event if isinstance(event, str) else json.dumps(event) + "\n").encode())


def init(model: str = "big-1") -> dict[str, Any]:
    return {"type": "system", "subtype": "init", "session_id": "s-1", "model": model}


def request(name: str, tokens_in: int, out: int, cached: int = 0) -> dict[str, Any]:
    usage = {"input_tokens": tokens_in, "output_tokens": out, "cache_read_input_tokens": cached}
    return {"type": "assistant", "message": {"id": name, "content": [], "usage": usage}}


def result(tokens_in: int, out: int, cost: float, basis: str = "list") -> dict[str, Any]:
    usage = {"input_tokens": tokens_in, "output_tokens": out}
    models = {"big-1": {"costBasis": basis}}
    return {"type": "result", "usage": usage, "total_cost_usd": cost, "modelUsage": models, "result": "Done."}


def look(run: Run) -> Run:
    metering.look(run)
    run.refresh_from_db()
    return run


def figures(run: Run) -> tuple[int, int, int, Decimal | None, str]:
    return run.tokens_in, run.tokens_cached, run.tokens_out, run.cost, run.cost_from


def test_no_run_reports_more_than_its_time_allows(run: Run) -> None:
    """One line of output closed the project for everybody until the next day."""
    configure(run.project, {"day_cost_max": 100, "day_tokens_max": 10**9}, actor=SYSTEM)
    for minutes, cost in ((0, 20), (2, 60)):
        Run.objects.filter(pk=run.pk).update(started_at=timezone.now() - timedelta(minutes=minutes))
        run.refresh_from_db()
        says(run, init(), request(f"m{minutes}", 10**14, 10**14), result(10**14, 10**14, 1e6))
        look(run)
        assert cost <= float(run.cost or 0) < cost + 2, run.cost
        assert run.tokens_in + run.tokens_out < 10**8, run.tokens_in
        assert run.cost_from == "bounded"
        assert costs.of_run(run).line.endswith("less than it reported, which its time does not allow")
        assert caps.by_run(run) is None
        assert not caps.keeps_closed(run.project)
    metering.take_usage(run, cost=Decimal(10**6), tokens_in=10**14)
    run.refresh_from_db()
    assert float(run.cost or 0) < 62


# --- While it streams -------------------------------------------------------------------------------------


def test_a_stream_is_read_as_it_grows(run: Run) -> None:
    says(run, init(), request("m1", 1000, 100))
    assert figures(look(run)) == (1000, 0, 100, Decimal("0.02"), "prices")
    says(run, request("m2", 2000, 100, cached=5000))
    assert figures(look(run)) == (3000, 5000, 200, Decimal("0.055"), "prices")
    assert (run.model, run.session_id) == ("big-1", "s-1")


def test_only_what_is_new_is_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    says(run, init(), request("m1", 1000, 100))
    look(run)
    fed: list[bytes] = []
    monkeypatch.setattr(metering._meters[run.pk].reader, "feed", fed.append)
    says(run, "more\n")
    look(run)
    look(run)

    assert fed == [b"more\n"]


def test_nothing_is_written_where_nothing_changed(run: Run, django_assert_num_queries: Any) -> None:
    says(run, init(), request("m1", 1000, 100))
    look(run)
    says(run, "words that say nothing of tokens\n")
    with django_assert_num_queries(0):
        metering.look(run)


def test_one_look_reads_no_more_than_its_share(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "READ_MAX", 300)
    says(run, init(), *(request(f"m{n}", 1000, 0) for n in range(10)))
    look(run)
    assert 0 <= run.tokens_in < 10_000
    for _ in range(20):
        look(run)
    assert run.tokens_in == 10_000


def test_it_is_looked_at_no_more_than_once_a_while(run: Run, settings: Any) -> None:
    settings.DURATIONS = settings.DURATIONS | {"meter": 3600.0}
    says(run, init(), request("m1", 1000, 0))
    look(run)
    says(run, request("m2", 1000, 0))
    assert look(run).tokens_in == 1000


def test_whoever_takes_over_reads_anew_and_lowers_nothing_meanwhile(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(run, init(), *(request(f"m{n}", 1000, 10) for n in range(10)))
    before = figures(look(run))
    metering.forget(set())
    monkeypatch.setattr(metering, "READ_MAX", 300)

    assert figures(look(run)) == before
    for _ in range(20):
        look(run)
    assert figures(run) == before
    says(run, request("m11", 1000, 10))
    assert look(run).tokens_in == before[0] + 1000


def test_a_number_that_is_used_again_is_another_run(run: Run) -> None:
    says(run, init(), request("m1", 1000, 0))
    look(run)
    path = paths.run_folder(run.pk) / "output.log"
    path.rename(path.with_name("older.log"))
    Run.objects.filter(pk=run.pk).update(tokens_in=0, cost=None, cost_from="")
    run.refresh_from_db()
    says(run, init(), request("m1", 70, 0))

    assert look(run).tokens_in == 70


@pytest.mark.parametrize(
    "noise", ["\xff\xfe" * 50, "{", '{"type": "result", "usage": 7}\n', "null\n", "\0" * 99]
)
def test_noise_costs_nothing(run: Run, noise: str) -> None:
    says(run, noise + "\n", init(), request("m1", 1000, 0))
    assert look(run).tokens_in == 1000


def test_a_forged_event_can_make_a_run_dearer_but_not_cheaper(run: Run) -> None:
    says(run, init(), request("m1", 1000, 100))
    look(run)
    says(run, {"type": "result", "usage": {"input_tokens": -5, "output_tokens": 0}, "total_cost_usd": -3})

    assert figures(look(run)) == (1000, 0, 100, Decimal("0.02"), "prices")


# --- At the end -------------------------------------------------------------------------------------------


def test_the_agents_own_word_about_the_cost_counts_before_the_list(run: Run) -> None:
    says(run, init(), request("m1", 1000, 100), result(1000, 100, 0.0123))
    report = metering.finish(run)
    run.refresh_from_db()

    assert report.is_ended
    assert figures(run) == (1000, 0, 100, Decimal("0.0123"), "agent")


def test_a_cost_that_the_command_only_guessed_is_taken_from_the_list(run: Run) -> None:
    says(run, init(), result(1000, 100, 99.0, basis="unknown"))
    metering.finish(run)
    run.refresh_from_db()

    assert (run.cost, run.cost_from) == (Decimal("0.02"), "prices")


def test_without_a_price_the_cost_is_unknown_and_not_nothing(run: Run) -> None:
    says(run, init("home-grown"), result(1000, 100, 99.0, basis="unknown"))
    metering.finish(run)
    run.refresh_from_db()

    assert figures(run) == (1000, 0, 100, None, "")


def test_a_last_line_without_its_end_is_read_as_well(run: Run) -> None:
    says(run, init(), json.dumps(result(500, 5, 1.5)))
    assert metering.finish(run).cost == Decimal("1.5")


def test_who_counts_tokens_beyond_all_measure_breaks_no_row(run: Run) -> None:
    says(run, init(), result(10**30, 10**30, 1e30))
    metering.finish(run)
    run.refresh_from_db()

    assert run.tokens_in <= metering.TOKENS_MAX
    assert float(run.cost or 0) < 1_000_000


def test_a_run_without_output_or_agent_says_nothing(run: Run) -> None:
    assert metering.finish(run) == Report()
    run.agent = None
    says(run, init(), result(5, 5, 5))
    assert metering.finish(run) == Report()


def test_whoever_lost_the_run_writes_nothing(run: Run) -> None:
    says(run, init(), result(1000, 100, 0.5))
    Run.objects.filter(pk=run.pk).update(fence=run.fence + 1)
    metering.finish(run)
    run.refresh_from_db()

    assert run.cost is None


# --- A cap ------------------------------------------------------------------------------------------------


def cap(task: Task, **settings: Any) -> None:
    project: Project = task.project
    project.settings = settings
    project.save()


def stop_of(run: Run) -> str:
    path = paths.run_folder(run.pk) / "stop"
    return path.read_text() if path.exists() else ""


def test_a_run_over_its_cap_is_told_to_stop_and_says_why_at_once(run: Run) -> None:
    cap(run.task, run_cost_max=0.01)
    says(run, init(), request("m1", 1000, 100))
    look(Run.objects.get())
    run.refresh_from_db()

    assert stop_of(run) == "cost"
    assert run.reason == "The cap of a run is reached: $0.02 of $0.01 is spent."


def test_who_has_handed_in_is_left_alone(run: Run) -> None:
    cap(run.task, run_cost_max=0.01)
    Run.objects.update(status="closing")
    says(run, init(), request("m1", 1000, 100))
    look(Run.objects.get())

    assert stop_of(run) == ""


def test_what_others_of_the_task_spend_stops_a_run_that_says_nothing(run: Run) -> None:
    cap(run.task, task_cost_max=5)
    says(run, init(), request("m1", 1000, 0))
    look(Run.objects.get())
    create_run(run.task, role="reviewer", seat="reviewer", cost=Decimal(5), cost_from="agent")
    for _ in range(metering.PATIENCE):
        look(Run.objects.get(pk=run.pk))

    assert stop_of(run) == "cost"


# --- Agents elsewhere -------------------------------------------------------------------------------------


def test_an_agent_elsewhere_says_what_it_used_and_never_lowers_it(run: Run) -> None:
    assert metering.take_usage(run, tokens_in=1000, tokens_out=100, model="big-1") == ""
    assert metering.take_usage(run, tokens_in=10, tokens_out=1, cost=None) == ""
    run.refresh_from_db()
    assert figures(run) == (1000, 0, 100, Decimal("0.02"), "prices")

    metering.take_usage(run, tokens_in=1000, cost=Decimal("0.5"))
    metering.take_usage(run, tokens_in=1000, cost=Decimal("0.1"))
    run.refresh_from_db()
    assert figures(run)[3:] == (Decimal("0.5"), "agent")


@pytest.mark.parametrize("cost", [Decimal("NaN"), Decimal("-1"), Decimal("Infinity"), Decimal("sNaN")])
def test_what_is_no_cost_is_not_taken(run: Run, cost: Decimal) -> None:
    metering.take_usage(run, tokens_in=-7, cost=cost)
    run.refresh_from_db()

    assert figures(run) == (0, 0, 0, None, "")


def test_an_agent_elsewhere_that_reaches_a_cap_is_ended_and_a_human_asked(run: Run) -> None:
    cap(run.task, run_tokens_max=1000)
    run = Run.objects.select_related("task__project", "project").get()
    line = metering.take_usage(run, tokens_in=1000)
    run.refresh_from_db()

    assert line == "The cap of a run is reached: 1,000 tokens of 1,000 tokens are used."
    assert (run.status, run.outcome, run.is_counted) == ("ended", "cost", False)
    assert Conflict.objects.get().origin == "budget"


# --- The price list ---------------------------------------------------------------------------------------


def test_a_faulty_list_stops_nobody_and_is_said_with_its_line(settings: Any, caplog: Any) -> None:
    assert price_lists.price_list().cost("big-1", Tokens(1_000_000)) == 10
    settings.PRICES.write_text("models:\n  big-1: {input: much, output: 1}\n")

    assert price_lists.price_list().cost("big-1", Tokens(1_000_000)) == 10  # as it was
    assert price_lists.price_list().cost("claude-sonnet-4-5", Tokens(1_000_000)) == 3
    assert [record.message.count("prices.yaml:2: big-1: input is a number") for record in caplog.records] == [
        1
    ]
    assert [message.id for message in checks.check_prices()] == ["agents.W010"]


def test_a_sound_list_is_no_reason_for_a_warning() -> None:
    assert checks.check_prices() == []
    assert caps.closed([]) == {}


def test_the_check_of_a_fresh_process_names_the_line_of_a_faulty_list(settings: Any) -> None:
    settings.PRICES.write_text("models:\n  big-1: {input: much, output: 1}\n")
    variables = {"DJANGO_SETTINGS_MODULE": "tests.settings", "STEROIDS_PRICES": str(settings.PRICES)}
    done = subprocess.run(
        [sys.executable, "-m", "django", "check"],
        env=os.environ | variables, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "prices.yaml:2: big-1: input is a number" in done.stderr
