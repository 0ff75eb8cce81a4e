"""Who takes the next run: columns, steps of a ladder, failover, and whose work nobody may judge."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.crew.choosing import Choice, Crew, Roster, Turn
from agents.loop.candidates import waiting_tasks
from agents.loop.orchestrator import tick
from agents.models import Agent, ProviderPause, Run
from disputes import opening
from disputes.models import Conflict
from tasks.models import Project, Submission, Task
from tests.cases import for_each
from tests.factories import create_agent, create_review, create_run, create_submission, create_task

pytestmark = pytest.mark.django_db

LADDER = {"dev-agent": {"0-1": "small", "2-3": "mid", "4-5": "top", "6+": "escalate"}}
HOUR = timedelta(hours=1)


def turn(task: Task, puller: Agent | None = None) -> Turn:
    task = Task.objects.select_related("project").get(pk=task.pk)
    return Roster(Crew(puller), [task]).turn_of(task)


def first(task: Task, puller: Agent | None = None) -> Choice:
    return turn(task, puller).choices[0]


def failed(task: Task, times: int, **kwargs: Any) -> None:
    """So many runs of a coder that ended without a hand-in."""
    for _ in range(times):
        over = {"status": "ended", "outcome": "nothing", "is_counted": True, "ended_at": timezone.now()}
        create_run(task, stage=task.stage, **over | kwargs)


def in_review(project: Project, **kwargs: Any) -> Task:
    task = create_task(project, status="review", round=1)
    create_submission(task, **kwargs)
    return task


def pause(account: str, until: timedelta = HOUR, since: timedelta = timedelta(0)) -> ProviderPause:
    now = timezone.now()
    return ProviderPause.objects.create(
        name=account,
        kind="quota",
        reason="The limit of the day is reached.",
        since=now - since,
        until=now + until,
    )


def ladder(project: Project, **more: Any) -> None:
    project.settings = {"model_ladder": LADDER} | more
    project.save()


# --- Columns ----------------------------------------------------------------------------------------------


@for_each(
    ("agent", "stage", "takes"),
    [
        ({}, "dev", True),  # any stage, as it always was
        ({}, "needs-senior-dev", False),  # but nobody is a specialist by accident
        ({"kind": "dev-agent"}, "dev", True),
        ({"kind": "test-architect"}, "dev", False),
        ({"kind": "senior-dev-agent"}, "dev", False),
        ({"kind": "senior-dev-agent"}, "needs-senior-dev", True),
        ({"watches": ["dev", "needs-senior-dev"]}, "needs-senior-dev", True),
        ({"watches": ["needs-senior-dev"]}, "dev", False),
        ({"kind": "dev-agent", "watches": ["needs-perf-tuning"]}, "dev", False),
    ],
)
def test_an_agent_takes_work_of_its_columns_or_of_its_type(
    ledger: Project, agent: dict[str, Any], stage: str, takes: bool
) -> None:
    create_agent("coder", **agent)
    assert bool(turn(create_task(ledger, status="in_progress", round=1, stage=stage)).choices) is takes


def test_a_column_that_nobody_watches_is_named(ledger: Project) -> None:
    create_agent("coder", kind="test-architect")
    task = create_task(ledger, status="in_progress", round=1)
    assert turn(task) == Turn(why="nobody watches dev", is_wrong=True)


def test_a_reviewer_with_columns_reviews_those_only(ledger: Project) -> None:
    create_agent("reviewer", name="of-tests", watches=["tests"], priority=9)
    create_agent("reviewer", name="of-all")
    assert first(in_review(ledger)).agent.name == "of-all"


# --- Domains ----------------------------------------------------------------------------------------------


def test_where_no_domain_fits_the_choice_says_so_and_the_run_keeps_it(ledger: Project) -> None:
    create_agent("coder", name="frontend", domains=["frontend"])
    create_agent("coder", name="backend", domains=["backend"], priority=1)
    task = create_task(ledger, tags=["docs", "slow"])
    choice = first(task)
    assert (choice.agent.name, choice.note) == ("backend", "No domain of a coder fits the tags docs, slow.")
    tick()
    assert Run.objects.get().choice == choice.note


def test_a_domain_that_fits_needs_no_note(ledger: Project) -> None:
    create_agent("coder", name="backend", domains=["backend"])
    assert first(create_task(ledger, tags=["backend"])).note == ""


# --- Steps of a ladder ------------------------------------------------------------------------------------


@for_each(
    ("failures", "name"), [(0, "cheap"), (1, "cheap"), (2, "middle"), (3, "middle"), (4, "best"), (5, "best")]
)
def test_the_step_names_the_agent_by_model_or_tier(ledger: Project, failures: int, name: str) -> None:
    ladder(ledger)
    create_agent("coder", name="best", kind="dev-agent", model="opus", tier="top", priority=9)
    create_agent("coder", name="middle", kind="dev-agent", model="mid", priority=5)
    create_agent("coder", name="cheap", kind="dev-agent", tier="small")
    task = create_task(ledger, status="in_progress", round=1)
    failed(task, failures)
    choice = first(task)
    assert (choice.agent.name, choice.model) == (name, choice.agent.model)
    assert str(choice.step).endswith(str(choice.step.word if choice.step else None))


def test_a_step_that_names_nobody_is_the_model_of_the_first_agent_of_the_type(ledger: Project) -> None:
    ladder(ledger)
    create_agent("coder", name="second", kind="dev-agent", model="own")
    create_agent("coder", name="first", kind="dev-agent", model="own", priority=1)
    task = create_task(ledger)
    failed(task, 2)
    tick()
    run = Run.objects.get(agent__name="first")
    assert (run.model, run.step, run.stage) == ("mid", "2-3: mid", "dev")


def test_the_end_of_the_ladder_chooses_nobody(ledger: Project) -> None:
    ladder(ledger)
    create_agent("coder", kind="dev-agent")
    task = create_task(ledger, status="in_progress", round=1)
    failed(task, 6)
    assert turn(task).escalates
    assert turn(task).choices == ()


def test_a_stage_without_a_ladder_leaves_the_model_to_the_agent(ledger: Project) -> None:
    create_agent("coder", model="own")
    task = create_task(ledger, status="in_progress", round=1)
    failed(task, 30)
    assert (first(task).model, first(task).step) == ("own", None)


# --- Trouble with a provider ------------------------------------------------------------------------------


def test_a_paused_account_is_passed_over_for_another(ledger: Project) -> None:
    create_agent("coder", name="first", provider="claude", priority=9)
    create_agent("coder", name="second", provider="codex")
    task = create_task(ledger)
    assert first(task).agent.name == "first"
    pause("claude")
    assert first(task).agent.name == "second"


def test_another_agent_of_the_tier_stands_in_where_the_step_names_a_model(ledger: Project) -> None:
    ladder(ledger)
    create_agent("coder", name="one", provider="claude", kind="dev-agent", model="small", tier="cheap")
    create_agent(
        "coder", name="dear", provider="gemini", kind="dev-agent", model="x", tier="dear", priority=9
    )
    create_agent("coder", name="two", provider="codex", kind="dev-agent", model="mini", tier="cheap")
    task = create_task(ledger)
    pause("claude")
    choice = first(task)
    assert (choice.agent.name, choice.model, str(choice.step)) == ("two", "mini", "0-1: small")
    assert choice.note == "one is paused; two of the same tier."


def test_where_nobody_stands_in_the_line_says_until_when(ledger: Project) -> None:
    create_agent("coder", name="only", provider="claude")
    pause("claude")
    found = turn(create_task(ledger))
    assert (found.choices, found.is_wrong) == ((), False)
    assert found.why.startswith("only is paused until ")
    assert found.why.endswith(": The limit of the day is reached")


def test_a_pause_that_is_over_holds_nobody_up(ledger: Project) -> None:
    create_agent("coder", name="only", provider="claude")
    pause("claude", until=-HOUR)
    assert first(create_task(ledger)).agent.name == "only"


# --- Agents that claim their work -------------------------------------------------------------------------


def test_the_loop_never_chooses_an_agent_that_claims_its_work(ledger: Project) -> None:
    puller = create_agent("coder", name="elsewhere", provider="pull", priority=9)
    task = create_task(ledger)
    assert (turn(task).choices, turn(task).why) == ((), "elsewhere is to claim it")
    create_agent("coder", name="here")
    assert first(task).agent.name == "here"
    assert first(task, puller).agent == puller


def test_an_agent_claims_only_what_its_domain_its_columns_and_the_ladder_allow(ledger: Project) -> None:
    ladder(ledger)
    puller = create_agent("coder", provider="pull", domains=["api"], kind="dev-agent", tier="mid")
    create_agent("coder", kind="dev-agent", tier="small")
    task = create_task(ledger, tags=["api"], status="in_progress", round=1)
    assert turn(task, puller).choices == ()  # the step is another's
    failed(task, 2)
    assert first(task, puller).agent == puller
    other = create_task(ledger, tags=["docs"], status="in_progress", round=1)
    failed(other, 2)
    assert turn(other, puller).choices == ()  # no domain of its own
    third = create_task(ledger, tags=["api"], status="in_progress", round=1, stage="needs-senior-dev")
    assert turn(third, puller).choices == ()  # no column of its own


# --- Whose work nobody may judge --------------------------------------------------------------------------


def test_a_reviewer_does_not_review_its_own_work(ledger: Project) -> None:
    both = create_agent("reviewer", name="both", priority=9)
    create_agent("reviewer", name="other")
    task = in_review(ledger, by_agent="both")
    assert first(task).agent.name == "other"
    Agent.objects.filter(name="other").update(is_active=False)
    assert turn(task) == Turn(why="only both reviews here, and the work is its own", is_wrong=True)
    Agent.objects.filter(pk=both.pk).update(name="renamed")  # the run remembers it
    create_run(task, agent=both, submission=task.submissions.get(), status="closing")
    assert turn(task).choices == ()


@pytest.mark.parametrize(("other_vendor_reviews", "name"), [(False, "kin"), (True, "stranger")])
def test_by_policy_another_vendor_reviews(ledger: Project, other_vendor_reviews: bool, name: str) -> None:
    ledger.settings = {"other_vendor_reviews": other_vendor_reviews}
    ledger.save()
    create_agent("reviewer", name="kin", provider="claude", priority=9)
    create_agent("reviewer", name="stranger", provider="codex")
    assert first(in_review(ledger, by_vendor="anthropic")).agent.name == name


def test_the_vendor_is_that_of_the_coders_agent_where_the_submission_names_none(ledger: Project) -> None:
    ledger.settings = {"other_vendor_reviews": True}
    ledger.save()
    create_agent("reviewer", name="kin", provider="claude")
    task = in_review(ledger)
    coder = create_agent("coder", provider="command", vendor="anthropic")
    create_run(task, agent=coder, submission=task.submissions.get(), status="closing")
    found = turn(task)
    assert (found.choices, found.is_wrong) == ((), True)
    assert found.why == "every reviewer's model is made by anthropic, as the coder's is"


def test_in_a_dispute_nobody_joins_the_review(ledger: Project) -> None:
    """ARB-8: whoever reviewed the task before goes on, others do not join."""
    task = in_review(ledger)
    create_review(task.submissions.get(), by_agent="known")
    task.submissions.update(round=1)
    Task.objects.filter(pk=task.pk).update(round=2)
    create_submission(Task.objects.get(pk=task.pk))
    create_agent("reviewer", name="new", priority=9)
    create_agent("reviewer", name="known")
    assert first(task).agent.name == "new"
    opening.open_conflict(
        task, kind=Conflict.Kind.DISAGREEMENT, origin=Conflict.Origin.CLI, opened_as="coder",
        severity="medium", question="Who is right?", coder_position="We are.", reviewer_position="They are.",
    )  # fmt: skip
    assert first(task).agent.name == "known"


# --- One after the other ----------------------------------------------------------------------------------


def test_reviewers_take_turns_by_rounds(ledger: Project) -> None:
    ledger.settings = {"reviewers": "turn"}
    ledger.save()
    for name in ("a", "b", "c"):
        create_agent("reviewer", name=name)
    names = []
    for round_ in range(1, 6):
        task = create_task(ledger, status="review", round=round_)
        create_submission(task)
        names.append(first(task).agent.name)
    assert names == ["a", "b", "c", "a", "b"]


def test_the_reviewer_whose_turn_it_is_is_waited_for_unless_its_account_is_paused(ledger: Project) -> None:
    ledger.settings = {"reviewers": "turn"}
    ledger.save()
    busy = create_agent("reviewer", name="a", slots=1, provider="claude")
    create_agent("reviewer", name="b", provider="codex")
    task = in_review(ledger)
    elsewhere = create_run(create_task(), "reviewer", agent=busy)
    assert turn(task).why == "every reviewer agent is busy: a 1 of 1"
    Run.objects.filter(pk=elsewhere.pk).delete()
    pause("claude")
    assert first(task).agent.name == "b"


# --- What it costs ----------------------------------------------------------------------------------------


def test_many_tasks_cost_as_many_queries_as_a_few(ledger: Project) -> None:
    ladder(ledger, reviewers="all")
    for name in ("a", "b"):
        create_agent("reviewer", name=name)
        create_agent("coder", name=f"coder-{name}", kind="dev-agent", slots=1)
    asked = []
    for more in (4, 40):
        for _ in range(more):
            in_review(ledger)
            failed(create_task(ledger, status="in_progress", round=1), 2)
        tasks = list(Task.objects.select_related("project"))
        with CaptureQueriesContext(connection) as queries:
            roster = Roster(Crew(), tasks)
            assert all(roster.turn_of(task).choices for task in tasks)
        asked.append(len(queries))
    assert asked[0] == asked[1] <= 8
    assert Submission.objects.count() == 44


def test_the_loop_waits_for_nobody_who_has_to_come_by_itself(ledger: Project) -> None:
    create_agent("coder", name="elsewhere", provider="pull")
    task = create_task(ledger)
    assert waiting_tasks(timezone.now()) == []
    create_agent("coder", name="here")
    assert waiting_tasks(timezone.now()) == [task]
    Agent.objects.filter(name="here").update(kind="test-architect")
    assert waiting_tasks(timezone.now()) == []
