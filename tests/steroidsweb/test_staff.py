"""A column that nobody watches, and a coder that would take everything, are said aloud (COL-2, ARB-9)."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.db import OperationalError
from django.test import Client

from agents.crew import coverage
from agents.crew.choosing import Crew
from tasks.models import Project
from tests.factories import create_agent, create_project, create_task

pytestmark = pytest.mark.django_db
LADDERS = {"dev-agent": {"0": "small", "1+": "escalate"}}


def said() -> list[tuple[str, str]]:
    """What the checks of the staff say."""
    every = run_checks(databases=["default"])
    return [(check.id, check.msg) for check in every if check.id in {"steroids.W010", "steroids.W011"}]


def unwatched(project: Project) -> list[str]:
    return [each.column for each in coverage.unwatched([project], Crew())]


def test_before_there_is_any_agent_nothing_is_wrong(ledger: Project) -> None:
    assert said() == []


def test_an_agent_of_no_type_takes_the_only_stage(ledger: Project) -> None:
    create_agent("coder")
    assert said() == []


def test_a_stage_that_nobody_watches_is_named_with_what_to_do(ledger: Project) -> None:
    create_agent("coder", kind="test-architect")
    assert said() == [("steroids.W010", "Nobody watches the column dev of Ledger.")]
    (found,) = coverage.unwatched([ledger], Crew())
    assert found.hint == (
        'Add a coder without a type or of the type dev-agent, or have one watch it: watches ["dev"].'
    )
    for wanted in ({"kind": ""}, {"kind": "dev-agent"}, {"kind": "test-architect", "watches": ["dev"]}):
        added = create_agent("coder", **wanted)
        assert unwatched(ledger) == []
        added.delete()


@pytest.mark.parametrize(
    ("settings", "columns"),
    [
        ({}, []),  # nobody escalates by itself
        ({"model_ladder": LADDERS}, ["needs-senior-dev"]),
        ({"model_ladder": {"dev-agent": {"0+": "small"}}}, []),
        (
            {"stages": ["dev", {"name": "needs-dba", "enter": "escalation", "reason": "performance"}]},
            ["needs-dba"],
        ),
    ],
)
def test_a_column_of_specialists_needs_somebody_once_it_may_be_entered(
    ledger: Project, settings: dict[str, Any], columns: list[str]
) -> None:
    create_agent("coder")
    ledger.settings = settings
    ledger.save()
    assert unwatched(ledger) == columns
    create_agent("coder", watches=[*columns, "elsewhere"])
    assert unwatched(ledger) == []


def test_a_task_that_stands_in_a_column_needs_somebody(ledger: Project) -> None:
    create_agent("coder")
    create_task(ledger, status="in_progress", stage="needs-perf-tuning", escalation="performance")
    assert unwatched(ledger) == ["needs-perf-tuning"]


def test_who_works_elsewhere_watches_nothing_here(ledger: Project) -> None:
    there = create_agent("coder")
    there.projects.add(create_project("atlas"))
    assert unwatched(ledger) == ["dev"]
    ledger.settings = {"stages": ["dev", "qa"]}
    ledger.save()
    assert said() == [("steroids.W010", "No coder works in Ledger.")]
    there.projects.add(ledger)
    assert said() == []


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"domains": ["api"]}, True),
        ({}, False),
        ({"domains": ["api"], "is_active": False}, False),
        ({"domains": ["api"], "kind": "senior-dev-agent"}, False),
    ],
)
def test_a_coder_without_a_domain_beside_others_with_one_is_told(
    ledger: Project, other: dict[str, Any], told: bool
) -> None:
    create_agent("coder", name="anything")
    create_agent("coder", **other)
    lines = [("steroids.W011", "The coder anything has no domain, and others beside it have.")]
    assert [each for each in said() if each[0] == "steroids.W011"] == (lines if told else [])


def test_agents_of_different_projects_do_not_stand_side_by_side() -> None:
    here, there = create_project(), create_project()
    create_agent("coder").projects.add(here)
    create_agent("coder", domains=["api"]).projects.add(there)
    assert coverage.without_domain(Crew()) == []


def test_a_database_without_tables_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> None:
        raise OperationalError("no such table: agents_agent")

    monkeypatch.setattr(coverage, "unwatched", missing)
    assert said() == []


def test_the_dashboard_says_it_to_the_members_of_the_project(
    client: Client, ledger: Project, tom: User, otto: User
) -> None:
    create_agent("coder", kind="<b>type</b>")
    client.force_login(tom)
    page = client.get("/admin/").content.decode()
    assert "Nobody watches the column dev of Ledger." in page
    client.force_login(otto)
    assert "Nobody watches" not in client.get("/admin/").content.decode()
