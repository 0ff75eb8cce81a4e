"""Caps: which is reached, what humans' answers add, the card, and what is not started any more."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.loop import orchestrator, run_ends
from agents.models import Run
from agents.money import caps, spending
from agents.web.standing import line_of
from disputes import rulings
from disputes.models import Conflict, Decision
from disputes.protocol.completion.budget import Cap
from disputes.protocol.rulings.options import Option
from tasks.errors import Refused
from tasks.models import Project, Task
from tests.factories import (
    create_agent,
    create_project,
    create_run,
    create_submission,
    create_task,
    create_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def lea(db: None) -> Any:
    return create_user("lea")


@pytest.fixture
def ledger(lea: Any) -> Project:
    create_agent("coder", name="coder", slots=10)
    create_agent("reviewer", name="reviewer", slots=10)
    return create_project(slug="ledger", members={lea: "triager"}, max_parallel=10)


def configure(project: Project, **settings: Any) -> Project:
    project.settings = {"undo_seconds": 0} | settings
    project.save()
    return project


def spent(task: Task, cost: str | None = None, *, tokens: int = 0, role: str = "coder", **kwargs: Any) -> Run:
    """An ended run that cost so much."""
    now = timezone.now()
    kwargs = {
        "status": "ended", "outcome": "nothing", "ended_at": now, "started_at": now, "tokens_in": tokens,
        "cost": None if cost is None else Decimal(cost), "cost_from": "agent" if cost else "",
    } | kwargs  # fmt: skip
    return create_run(task, role, **kwargs)


def working(project: Project, **kwargs: Any) -> Task:
    return create_task(project, status="in_progress", round=1, **kwargs)


def stop_at_cap(task: Task, cost: str, **kwargs: Any) -> Conflict | None:
    """A live run that cost so much ends as its host ends it at a cap."""
    run = create_run(task, cost=Decimal(cost), cost_from="agent", started_at=timezone.now(), **kwargs)
    run_ends.end(Run.objects.get(pk=run.pk), Run.Outcome.COST, reason="The cap is reached.")
    task.refresh_from_db()
    return Conflict.objects.filter(dispute__task=task, status="open").first()


def ticked() -> int:
    """How many agents' runs a tick starts."""
    before = Run.objects.count()
    orchestrator.tick()
    return Run.objects.count() - before


# --- Which is reached -------------------------------------------------------------------------------------


def test_without_caps_nothing_is_asked(ledger: Project) -> None:
    task = working(ledger)
    run = spent(task, "1000000000000"[:6], tokens=10**14)
    with CaptureQueriesContext(connection) as queries:
        assert caps.by_run(run) is None
        assert caps.by_task(task) is None
        assert caps.closed([ledger]) == {}
    assert len(queries) == 0


def test_live_and_ended_runs_count_together_for_their_task(ledger: Project) -> None:
    task = working(configure(ledger, task_cost_max=10))
    spent(task, "6")
    create_run(task, cost=Decimal("3.99"))
    assert caps.by_task(task) is None
    spent(task, "0.01", role="reviewer")
    spent(working(ledger), "500")  # another task's money

    assert caps.by_task(task) == caps.Reached(Cap.TASK_COST, Decimal("10.00"), Decimal(10))


def test_a_run_is_measured_by_its_own_cap_first(ledger: Project) -> None:
    task = working(configure(ledger, run_cost_max=2, task_cost_max=2, day_cost_max=2))
    assert caps.by_run(spent(task, "2")).cap is Cap.RUN_COST  # type: ignore[union-attr]


def test_runs_of_unknown_cost_count_by_their_tokens_only(ledger: Project) -> None:
    task = working(configure(ledger, task_cost_max=1, task_tokens_max=5000))
    spent(task, None, tokens=4000, tokens_cached=10**9)
    assert caps.by_task(task) is None
    spent(task, None, tokens=0, tokens_out=1000)

    assert caps.by_task(task).cap is Cap.TASK_TOKENS  # type: ignore[union-attr]


def test_the_day_is_that_of_utc_and_a_run_counts_where_it_ends(ledger: Project) -> None:
    configure(ledger, day_cost_max=10)
    now = datetime(2030, 5, 2, 0, 30, tzinfo=UTC)
    spent(working(ledger), "7", queued_at=now - timedelta(days=2), ended_at=now - timedelta(minutes=20))
    spent(working(ledger), "100", ended_at=now - timedelta(minutes=31))  # yesterday
    assert caps.closed([ledger], now) == {}
    create_run(working(ledger), cost=Decimal(3), started_at=now - timedelta(hours=5))

    assert caps.closed([ledger], now)[ledger.pk].spent == 10
    assert caps.closed([ledger], now + timedelta(days=1)) == {}  # the live one alone


def test_the_caps_of_many_projects_take_two_queries(ledger: Project) -> None:
    projects = [configure(create_project(), day_cost_max=1, project_cost_max=1) for _ in range(5)]
    for project in projects:
        spent(working(project), "2")
    with CaptureQueriesContext(connection) as queries:
        assert len(caps.closed(projects)) == 5
    assert len(queries) == 2


# --- The card ---------------------------------------------------------------------------------------------


def test_a_card_says_which_cap_and_who_spent_what(ledger: Project) -> None:
    task = working(configure(ledger, task_cost_max=10), title="Import dates")
    spent(task, "4", tokens=1000, agent_label="coder-2", model="small-1")
    spent(task, None, tokens=500, role="reviewer", agent_label="reviewer-9")
    conflict = stop_at_cap(task, "6.5", agent_label="coder-1", model="big-1")

    assert task.status == "disputed"
    assert conflict is not None
    assert conflict.question == "The cap of the task is reached: $10.50 of $10.00 is spent. Import dates"
    assert conflict.evidence == [
        "task_cost_max: $10.50 of $10.00",
        "coder-1 (big-1): $6.50, 0 tokens, 1 run",
        "coder-2 (small-1): $4.00, 1,000 tokens, 1 run",
        "reviewer-9: cost unknown, 500 tokens, 1 run",
        "Of 1 run nobody knows the cost; it is not counted.",
    ]


def test_a_stopped_run_is_no_failure_of_the_task(ledger: Project) -> None:
    task = working(configure(ledger, run_cost_max=1))
    stop_at_cap(task, "2")
    assert not Run.objects.get().is_counted


def test_nobody_is_asked_where_the_cap_was_raised_before_the_run_ended(ledger: Project) -> None:
    task = working(configure(ledger, run_cost_max=50))
    assert stop_at_cap(task, "2") is None
    assert task.status == "in_progress"


def test_a_task_that_moved_on_is_not_parked(ledger: Project) -> None:
    task = working(configure(ledger, run_cost_max=1))
    assert stop_at_cap(task, "2", task_version=task.version + 1) is None


# --- What humans answer -----------------------------------------------------------------------------------


def test_raised_the_task_goes_on_until_the_new_cap(ledger: Project, lea: Any) -> None:
    task = working(configure(ledger, task_cost_max=10))
    rulings.decide(stop_at_cap(task, "10"), Option.RAISE, user=lea, text="$2.50 for the tests")
    task.refresh_from_db()
    assert task.status == "pending"
    assert ticked() == 1
    Run.objects.live().update(cost=Decimal("2.49"))
    assert caps.by_task(task) is None
    Run.objects.live().update(cost=Decimal("2.50"))

    assert caps.by_task(task) == caps.Reached(Cap.TASK_COST, Decimal("12.50"), Decimal("12.5"))


def test_an_undone_answer_takes_its_money_back(ledger: Project, lea: Any) -> None:
    task = working(configure(ledger, task_cost_max=10))
    decision = rulings.decide(stop_at_cap(task, "10"), Option.RAISE, user=lea, text="100", undo_seconds=60)
    assert caps.by_task(task) is None
    rulings.undo(decision, user=lea)

    assert caps.by_task(task) is not None


@pytest.mark.parametrize("text", ["", "more", "a lot: 5", "-5"])
def test_to_raise_takes_an_amount(ledger: Project, lea: Any, text: str) -> None:
    conflict = stop_at_cap(working(configure(ledger, run_cost_max=1)), "2")
    with pytest.raises(Refused) as caught:
        rulings.decide(conflict, Option.RAISE, user=lea, text=text)

    assert caught.value.code in {"amount_missing", "text_missing"}
    assert not Decision.objects.exists()


def test_going_on_once_gives_a_task_its_cap_once_more(ledger: Project, lea: Any) -> None:
    task = working(configure(ledger, task_cost_max=10))
    rulings.decide(stop_at_cap(task, "11"), Option.RETRY, user=lea, text="Only the tests are missing.")
    assert caps.by_task(task) is None
    spent(task, "9")

    assert caps.by_task(task).limit == 20  # type: ignore[union-attr]


def test_a_run_that_goes_on_once_has_the_same_cap_again(ledger: Project, lea: Any) -> None:
    task = working(configure(ledger, run_cost_max=2))
    rulings.decide(stop_at_cap(task, "2"), Option.RETRY, user=lea)

    assert caps.by_run(spent(task, "2")).limit == 2  # type: ignore[union-attr]
    assert caps.by_run(spent(task, "1.99")) is None


def test_a_review_that_was_stopped_goes_on_as_a_review(ledger: Project, lea: Any) -> None:
    task = create_task(configure(ledger, run_cost_max=2), status="review", round=1)
    create_submission(task, state="verified")
    conflict = stop_at_cap(task, "2", role="reviewer")
    rulings.decide(conflict, Option.RAISE, user=lea, text="3")
    task.refresh_from_db()

    assert task.status == "review"
    assert ticked() == 1
    assert Run.objects.live().get().role == "reviewer"


@pytest.mark.parametrize(("option", "status"), [(Option.DEFER, "deferred"), (Option.CANCEL, "cancelled")])
def test_it_may_be_put_off_or_given_up(ledger: Project, lea: Any, option: Option, status: str) -> None:
    task = working(configure(ledger, run_cost_max=1))
    rulings.decide(stop_at_cap(task, "2"), option, user=lea)
    task.refresh_from_db()

    assert task.status == status


# --- Before a run is started ------------------------------------------------------------------------------


def test_a_task_that_has_spent_all_asks_before_its_next_run(ledger: Project) -> None:
    task = working(configure(ledger, task_cost_max=10))
    spent(task, "10")
    assert ticked() == 0
    task.refresh_from_db()

    assert task.status == "disputed"
    assert Conflict.objects.get().origin == "budget"


def test_a_closed_project_starts_no_agent_but_build_and_tests(ledger: Project) -> None:
    configure(ledger, project_cost_max=10, test_command="make test")
    spent(create_task(ledger, status="completed", finished_by="hand"), "10")
    coded = working(ledger)
    handed_in = create_task(ledger, status="review", round=1)
    create_submission(handed_in, state="kept")
    assert ticked() == 1
    orchestrator.tick()

    assert Run.objects.live().get().role == "verifier"
    assert line_of(coded) == (
        "The cap of the project is reached: $10.00 of $10.00 is spent. "
        "No agent is started until somebody raises project_cost_max in the project's settings."
    )
    assert ledger.events.filter(kind="cap_reached").count() == 1
    configure(ledger, project_cost_max=11)
    assert ticked() == 1


def test_the_sum_of_live_and_ended_runs_is_one_sum(ledger: Project) -> None:
    task = working(ledger)
    spent(task, "1.5", tokens=10, tokens_out=5, tokens_cached=7)
    create_run(task, cost=Decimal("0.25"), tokens_in=1)
    create_run(task, role="verifier", seat="verifier", started_at=timezone.now())

    whole = spending.Spent(Decimal("1.75"), 11, 7, 5, 2, 0)
    assert spending.total(Run.objects.filter(task=task)) == whole
    assert spending.told(spending.with_total(Run.objects.filter(task=task))[:1]) == whole
    assert spending.today([ledger.pk])[ledger.pk].cost == Decimal("1.75")
