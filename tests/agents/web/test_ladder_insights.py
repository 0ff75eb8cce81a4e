"""What each step of a ladder is worth: attempts, how many passed, what they cost (LAD-5)."""

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.models import Run
from tasks.events import SYSTEM
from tasks.models import Project
from tests.factories import create_review, create_run, create_submission, create_task

pytestmark = pytest.mark.django_db


def attempt(project: Project, step: str, became: str, **kwargs: Any) -> Run:
    """One run of a coder on a step, and what came out of it."""
    task = create_task(project, status="in_progress", round=1)
    kwargs = {"status": "ended", "outcome": "handed_in", "ended_at": timezone.now(), "stage": "dev"} | kwargs
    if became in {"nothing", "provider", "refused"}:
        return create_run(task, step=step, **kwargs | {"outcome": became})
    made = create_submission(task, state="red" if became == "red" else "verified")
    if became in {"APPROVED", "NEEDS_REVISION"}:
        create_review(made, verdict=became)
    task.submit(actor=SYSTEM)
    return create_run(task, step=step, submission=made, **kwargs)


def figures(client: Client) -> dict[tuple[str, str], dict[str, Any]]:
    rows = client.get("/insights/figures.json").json()["figures"]
    return {(row["name"], row["figure"]): row for row in rows if row["section"] == "Ladders"}


@pytest.fixture
def client(client: Client, tom: User) -> Client:
    client.force_login(tom)
    return client


def test_each_step_has_its_attempts_its_rate_and_its_cost(client: Client, ledger: Project) -> None:
    for became in ["APPROVED"] * 3 + ["NEEDS_REVISION"] * 2 + ["red", "nothing"]:
        attempt(ledger, "0-1: small", became, cost=Decimal("0.125"))
    attempt(ledger, "0-1: small", "verified")  # its review is still to come
    attempt(ledger, "10+: top", "nothing")
    attempt(ledger, "2-9: mid", "APPROVED", cost=Decimal("2"))
    found = figures(client)
    passed = found["dev 0-1: small", "passed"]
    assert (round(passed["value"] * passed["n"]), passed["n"]) == (3, 7)
    assert found["dev 0-1: small", "not decided yet"]["value"] == 1
    assert (found["dev 0-1: small", "cost"]["value"], found["dev 0-1: small", "cost"]["n"]) == (0.875, 7)
    assert [name for name, figure in found if figure == "passed"] == [
        "dev 0-1: small", "dev 2-9: mid", "dev 10+: top",
    ]  # fmt: skip
    assert found["dev 10+: top", "cost"]["n"] == 0


def test_what_the_model_is_not_to_blame_for_is_no_attempt(client: Client, ledger: Project) -> None:
    attempt(ledger, "0-1: small", "provider")
    attempt(ledger, "0-1: small", "refused")
    attempt(ledger, "", "nothing")  # no ladder chose it
    assert figures(client) == {}


def test_the_page_shows_them_escaped_and_says_when_there_are_none(client: Client, ledger: Project) -> None:
    assert b"No ladder chose a model in this time" in client.get("/insights/").content
    attempt(ledger, "0+: <script>alert(1)</script>", "nothing", cost=Decimal("1.5"))
    page = client.get("/insights/").content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;" in page
    assert "$1.50" in page


def test_the_page_costs_the_same_however_many_attempts_there_are(
    client: Client, ledger: Project, django_assert_max_num_queries: Any
) -> None:
    for n in range(12):
        attempt(ledger, f"{n}: model-{n}", "APPROVED", cost=Decimal(1))
    client.get("/insights/")
    with django_assert_max_num_queries(25):
        client.get("/insights/")
