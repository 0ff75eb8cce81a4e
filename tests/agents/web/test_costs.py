"""What people see of the money: runs, tasks, the dashboard, the API and the command line, in one wording."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import Run
from agents.money.spending import Spent
from agents.web import costs
from tasks.models import Project, Task
from tests.cases import for_each
from tests.factories import create_project, create_run, create_task, create_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def ledger(vera: Any) -> Project:
    return create_project(slug="ledger", name="Ledger", members={vera: "viewer"})


@pytest.fixture
def task(ledger: Project) -> Task:
    return create_task(ledger, number=7, status="in_progress", round=1, title="Import dates")


@pytest.fixture
def seen(vera: Any) -> Client:
    client = Client()
    client.force_login(vera)
    return client


def used(task: Task, cost: str | None, tokens: int = 12_000, **kwargs: Any) -> Run:
    """An ended run."""
    now = timezone.now()
    kwargs = {
        "status": "ended", "outcome": "handed_in", "started_at": now, "ended_at": now, "tokens_in": tokens,
        "tokens_out": 900, "cost": None if cost is None else Decimal(cost),
        "cost_from": "prices" if cost else "",
    } | kwargs  # fmt: skip
    return create_run(task, **kwargs)


# --- Words ------------------------------------------------------------------------------------------------


@for_each(
    ("spent", "words"),
    [
        (Spent(), ""),
        (Spent(Decimal("1.236"), known=1), "$1.24"),
        (
            Spent(Decimal(0), 12_000, 0, 900, known=0, unknown=2),
            "Tokens: 12k in, 900 out; the cost of 2 runs is unknown",
        ),
        (
            Spent(Decimal("0.5"), 1, 2_340_000, 0, 1, 1),
            "$0.50; tokens: 1 in, 2.3M from a cache; the cost of 1 run is unknown",
        ),
        (Spent(unknown=1), "The cost of 1 run is unknown"),
    ],
)  # fmt: skip
def test_a_sum_is_said_in_words_and_unknown_is_never_nothing(spent: Spent, words: str) -> None:
    assert costs.line(spent) == words


def test_a_run_says_its_cost_and_who_says_so(task: Task) -> None:
    assert costs.of_run(used(task, "1.5")).line == "$1.50, from the price list"  # type: ignore[union-attr]
    assert costs.of_run(used(task, "1.5", cost_from="agent")).line == "$1.50, said by the agent"  # type: ignore[union-attr]
    assert costs.of_run(used(task, None)).line == "unknown"  # type: ignore[union-attr]
    assert costs.of_run(create_run(task)).line == "not yet known"  # type: ignore[union-attr]
    assert costs.of_run(create_run(task, role="verifier")) is None


# --- Pages ------------------------------------------------------------------------------------------------


def test_the_page_of_a_run_shows_cost_tokens_and_the_text_it_was_told(seen: Client, task: Task) -> None:
    run = used(task, "1.5", template_hash="abcdef0123456789")
    page = seen.get(f"/runs/{run.pk}/").content.decode()

    assert "$1.50, from the price list" in page
    assert "12k in, 900 out" in page
    assert (
        "the program&#x27;s text <code>abcdef0123</code>" in page
        or "the program's text <code>abcdef0123" in page
    )


def test_a_live_run_tells_its_cost_with_its_log(seen: Client, task: Task) -> None:
    run = create_run(task, tokens_in=500, cost=Decimal("0.25"), cost_from="agent")
    news = seen.get(f"/runs/{run.pk}/log/").json()

    assert (news["cost"], news["tokens"]) == ("$0.25, said by the agent", "500 in")


def test_a_task_shows_the_sum_of_its_runs(seen: Client, task: Task) -> None:
    used(task, "1.5")
    used(task, None, role="reviewer")
    page = seen.get(f"/tasks/{task.ref}/").content.decode()

    assert "$1.50; tokens: 24k in, 1,800 out; the cost of 1 run is unknown" in page


def test_the_dashboard_shows_what_the_day_cost_and_what_is_closed(seen: Client, task: Task) -> None:
    task.project.settings = {"day_cost_max": 1}
    task.project.save()
    used(task, "1.5")
    used(create_task(create_project()), "99")  # of a project that vera does not see
    page = seen.get("/admin/").content.decode()

    assert "Spent today" in page
    assert "$1.50" in page
    assert "The cap of the day is reached: $1.50 of $1.00 is spent." in page
    overview = seen.get(f"/projects/{task.project.slug}/").content.decode()
    assert "The cap of the day is reached: $1.50 of $1.00 is spent. No agent is started before" in overview
    assert "99" not in page.partition("Spent today")[2].partition("</section>")[0]


def test_the_tile_takes_as_many_queries_for_many_projects_as_for_one(ledger: Project) -> None:
    def queries(projects: list[Project]) -> int:
        with CaptureQueriesContext(connection) as found:
            assert costs.today(projects).total.known == len(projects)
        return len(found)

    projects = [create_project(settings={"day_cost_max": 1, "project_cost_max": 1}) for _ in range(6)]
    for project in projects:
        used(create_task(project), "2")
    assert queries(projects) == queries(projects[:1]) <= 5


# --- API and command line ---------------------------------------------------------------------------------


def test_the_api_says_what_a_task_cost(task: Task, vera: Any) -> None:
    used(task, "1.5")
    _, secret = create_token(vera, "laptop")
    reply = Client().get(f"/api/v1/tasks/{task.ref}/", headers={"Authorization": f"Bearer {secret}"}).json()

    assert reply["spent"] == "$1.50; tokens: 12k in, 900 out"


# --- Insights ---------------------------------------------------------------------------------------------


def test_the_insights_say_what_each_agent_cost_and_keep_it_by_day(seen: Client, task: Task) -> None:
    from disputes import tallies
    from disputes.models import Tally

    yesterday = timezone.now() - timedelta(days=1)
    used(task, "1.25", agent_label="coder-7", ended_at=yesterday, queued_at=yesterday)
    used(task, "0.0004", agent_label="coder-7", ended_at=yesterday, queued_at=yesterday)
    used(task, None, tokens=200_000, agent_label="home-grown", role="reviewer")
    create_run(task, "verifier", status="ended", ended_at=yesterday, started_at=yesterday)
    tallies.rebuild([task.project])
    kept = dict(Tally.objects.filter(measure="spent", span=1).values_list("key", "n"))
    assert kept == {"known|coder-7": 2, "mills|coder-7": 1250, "kilotokens|coder-7": 26}
    page = seen.get("/insights/").content.decode().partition("What agents cost")[2].partition("</section>")[0]
    rows = [re.findall(r">([^<>]+)<", row) for row in page.split("<tr>")[2:]]

    assert [[cell for cell in row if cell.strip()] for row in rows] == [
        ["coder-7", "$1.25", "2", "0", "26"], ["home-grown", "unknown", "0", "1", "201"],
    ]  # fmt: skip


def test_large_sums_of_the_insights_read_as_everywhere_else(seen: Client, task: Task) -> None:
    used(task, "1240.01", tokens=6_019_000, agent_label="coder-7")
    page = seen.get("/insights/").content.decode().partition("What agents cost")[2].partition("</section>")[0]
    assert "$1,240.01" in page
    assert re.search(r">6,0\d\d<", page)
