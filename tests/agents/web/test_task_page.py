"""The page of a task: what it shows, to whom, what it costs, and the verbs of people."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.models import Output
from agents.web import moves
from agents.web.task import TaskPage
from disputes import opening, rulings
from tasks.models import Answer, Comment, Dependency, Project, Review, Task, Verification
from tasks.models.event import record
from tests.asking import as_user
from tests.browser.scene import DIFF, STAT
from tests.cases import for_each
from tests.factories import create_finding, create_review, create_run, create_submission, create_task, sha

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def html(client: Client, path: str, expect: int = 200) -> str:
    reply = client.get(path)
    assert reply.status_code == expect
    return reply.content.decode()


def played(project: Project, rounds: int = 3, **kwargs: Any) -> Task:
    """A task with rounds of everything, and a conflict on the last one."""
    task = create_task(project, number=214, title="Deliver webhooks", status="review", round=rounds, **kwargs)
    finding = None
    for number in range(1, rounds + 1):
        handed_in = create_submission(task, round=number, diff=DIFF, diff_stat=STAT, by_agent="coder-1")
        Verification.objects.create(
            project=project, sha=handed_in.sha, commands_hash="x", green=True, seconds=43
        )
        create_run(
            task, round=number, status="ended", outcome="handed_in", submission=handed_in, ended_at=NOW,
            started_at=NOW - timedelta(minutes=9),
        )  # fmt: skip
        if finding:
            Answer.objects.create(submission=handed_in, finding=finding, kind="declined")
        finding = create_finding(create_review(handed_in))
        record(project, "reject", task=task, note=f"round {number}")
    opening.open_conflict(
        task, kind="disagreement", origin="disagree", opened_as="coder", question="Back off, or not?",
        finding=finding, submission=handed_in, severity="high", reviewer_position="Yes.",
        coder_position="No.",
    )  # fmt: skip
    Task.objects.filter(pk=task.pk).update(status="disputed")
    task.refresh_from_db()
    return task


# --- Reading ----------------------------------------------------------------------------------------------


def test_the_page_shows_where_the_task_stands_and_how_it_came_there(
    client: Client, ledger: Project, tom: User
) -> None:
    task = played(ledger, source="docs/SPEC.md#4.3", body="Retry for **24 hours**.", severity="high")
    waiting = create_task(ledger, number=217)
    Dependency.objects.create(task=waiting, on=task)
    Comment.objects.create(
        project=ledger, task=task, by_label="Jana", by_kind="person", body="Show the time."
    )
    dispute = task.disputes.get()
    shown = html(as_user(client, tom), "/tasks/ledger-214/")
    wanted = [
        "ledger-214 Deliver webhooks", f"{dispute.ref} has waited for a human to rule",
        f"/queue/{dispute.ref}/", "Disputed", "High", "docs/SPEC.md#4.3", "Retry for **24 hours**.",
        "/tasks/ledger-217/",
        'id="round-3"', 'id="round-1"', "Green", "in 43 s", "ISSUE-R3-003", "1 declined", "Waits for a human",
        "Rejected", "webhooks/delivery.py", "RETRY_DELAY", "Show the time.", "opened a conflict",
        "/tasks/ledger-214/events/", "/tasks/ledger-214/diff/", "/tasks/ledger-214/rollback/",
    ]  # fmt: skip
    assert [words for words in wanted if words not in shown] == []


def test_a_round_tells_what_was_ruled_and_what_has_landed(ledger: Project, lea: User) -> None:
    task = played(ledger, rounds=1)
    rulings.decide(task.disputes.get().conflicts.get(), "uphold_coder", user=lea)
    task.refresh_from_db()
    (first,) = TaskPage(task, lea, "maintainer").rounds
    assert [(each.letter, each.ruled_by) for each in first.conflicts] == [("B", "lea")]
    Task.objects.filter(pk=task.pk).update(
        status="completed", accepted=task.last_submission(), landed_sha=sha("c"), landed_at=NOW
    )
    task.refresh_from_db()
    (first,) = TaskPage(task, lea, "maintainer").rounds
    assert first.outcome == ("Landed", "good")


@for_each(
    ("submission", "verdict", "outcome"),
    [
        ({"state": "red", "problem": "tests: 3 failed"}, None, "Sent back"),
        ({"state": "lost"}, None, "Sent back"),
        ({"state": "kept"}, None, "Handed in"),
        ({}, Review.Verdict.APPROVED, "Approved"),
        ({}, Review.Verdict.NEEDS_REVISION, "Rejected"),
    ],
)
def test_a_round_says_what_came_out_of_it(
    ledger: Project, lea: User, submission: dict[str, str], verdict: str | None, outcome: str
) -> None:
    task = create_task(ledger, status="in_progress", round=1)
    handed_in = create_submission(task, **submission)
    if verdict:
        create_review(handed_in, verdict=verdict)
    create_run(task, status="ended", outcome="nothing", ended_at=NOW)
    (first,) = TaskPage(task, lea, "viewer").rounds
    assert (first.outcome[0], first.empty_runs) == (outcome, 1)
    create_run(task)
    if not verdict:
        assert TaskPage(task, lea, "viewer").rounds[0].outcome[0] == "Under way"


def test_a_round_that_was_taken_back_is_not_shown(ledger: Project, lea: User) -> None:
    task = played(ledger, rounds=2)
    taken = task.rollbacks.create(from_round=2, to_round=1, reason="Wrong way.", by_label="Lea")
    task.submissions.filter(round=2).update(rolled_back=taken)
    Task.objects.filter(pk=task.pk).update(round=1)
    task.refresh_from_db()
    assert [each.number for each in TaskPage(task, lea, "maintainer").rounds] == [1]


def test_the_page_of_a_task_with_a_run_under_way_follows_its_log(
    client: Client, ledger: Project, vera: User
) -> None:
    task = create_task(ledger, number=7, status="in_progress", round=1)
    run = create_run(task, started_at=NOW)
    Output.objects.create(run=run, seq=0, text="one")
    shown = html(as_user(client, vera), "/tasks/ledger-7/")
    assert f'data-url="/runs/{run.pk}/log/"' in shown
    assert "coder-1 is at work since" in shown


def test_hostile_words_stay_words(client: Client, ledger: Project, vera: User) -> None:
    bad = "<script>alert(1)</script>\u202e"
    task = played(ledger, rounds=1, body=bad, source=bad)
    Task.objects.update(title=bad)
    task.submissions.update(
        by_agent=bad, problem=bad, diff=DIFF.replace("webhooks/delivery.py", "<b>x\u200b.py")
    )
    Review.objects.update(by_agent=bad)
    record(ledger, "reject", task=task, note=bad)
    client = as_user(client, vera)
    for path in ("", "events/", "diff/"):
        shown = html(client, f"/tasks/ledger-214/{path}")
        assert "<script>alert" not in shown
        assert "<b>x" not in shown
        assert "\u202e" not in shown
        assert ("&lt;b&gt;x\u27e8U+200B\u27e9.py" in shown) is (path != "events/"), (
            "no other path looks the same"
        )


@pytest.mark.parametrize("rounds", [1, 12])
def test_the_page_costs_the_same_for_many_rounds(
    client: Client, ledger: Project, tom: User, rounds: int, django_assert_max_num_queries: Any
) -> None:
    task = played(ledger, rounds=rounds)
    create_run(task)
    client = as_user(client, tom)
    with django_assert_max_num_queries(12):
        html(client, "/tasks/ledger-214/")


def test_nor_does_a_task_that_waits_cost_more(
    client: Client, ledger: Project, tom: User, django_assert_max_num_queries: Any
) -> None:
    """Every reason is asked for, and none holds."""
    create_task(ledger, number=7)
    client = as_user(client, tom)
    with django_assert_max_num_queries(16):
        html(client, "/tasks/ledger-7/")


def test_events_are_paged(
    client: Client, ledger: Project, tom: User, django_assert_max_num_queries: Any
) -> None:
    task = create_task(ledger, number=7)
    for number in range(60):
        record(ledger, "edited", task=task, note=f"change {number}.")
    record(ledger, "edited", task=create_task(ledger), note="another task's")
    client = as_user(client, tom)
    with django_assert_max_num_queries(10):
        first = client.get("/tasks/ledger-7/events/")
    notes = [event.note for event in first.context["events"]]
    assert (notes[0], notes[-1], len(notes)) == ("change 59.", "change 10.", 50)
    second = client.get("/tasks/ledger-7/events/", {"before": first.context["older"]})
    assert [event.note for event in second.context["events"]][-1] == "change 0."
    assert second.context["older"] is None


def test_the_diff_of_any_submission_of_the_task_is_shown(client: Client, ledger: Project, tom: User) -> None:
    task = played(ledger, rounds=2)
    first = task.submissions.earliest("pk")
    other = create_submission(create_task(ledger), diff="diff --git a/secret b/secret\n")
    client = as_user(client, tom)
    assert client.get("/tasks/ledger-214/diff/").context["submission"].round == 2
    reply = client.get("/tasks/ledger-214/diff/", {"submission": first.pk})
    assert reply.context["submission"] == first
    assert "RETRY_DELAY" in reply.content.decode()
    assert client.get("/tasks/ledger-214/diff/", {"submission": other.pk}).context["submission"] is None
    assert client.get("/tasks/ledger-214/diff/", {"submission": "x" * 50}).status_code == 200


# --- Rights -----------------------------------------------------------------------------------------------


def test_outsiders_see_no_task(client: Client, ledger: Project, otto: User) -> None:
    create_task(ledger, number=7)
    client = as_user(client, otto)
    for path in ("", "events/", "diff/"):
        html(client, f"/tasks/ledger-7/{path}", 404)
    assert client.post("/tasks/ledger-7/defer/").status_code == 404


@for_each("name", ["ledger-8", "ledger-", "ledger-x", "ledger-" + "9" * 40, "nothing-1"])
def test_a_name_of_no_task_is_not_found(client: Client, ledger: Project, tom: User, name: str) -> None:
    create_task(ledger, number=7)
    html(as_user(client, tom), f"/tasks/{name}/", 404)


@pytest.mark.parametrize(
    ("who", "offered"),
    [("vera", []), ("tom", ["defer"]), ("lea", ["defer", "finish", "cancel"])],
)
def test_the_buttons_are_those_that_the_person_may_press(
    client: Client, ledger: Project, request: Any, who: str, offered: list[str]
) -> None:
    create_task(ledger, number=7)
    shown = html(as_user(client, request.getfixturevalue(who)), "/tasks/ledger-7/")
    verbs = ("resume", "reopen", "defer", "finish", "cancel")
    assert [verb for verb in verbs if f'formaction="/tasks/ledger-7/{verb}/"' in shown] == offered


def test_a_deferred_task_is_not_to_be_deferred_again(ledger: Project) -> None:
    offered = moves.offered(create_task(ledger, status="deferred"), "maintainer")
    assert [each.verb for each in offered] == ["resume", "finish", "cancel"]


@for_each("verb", ["defer", "resume", "cancel", "finish", "reopen"])
def test_viewers_move_nothing_and_triagers_only_what_is_theirs(
    client: Client, ledger: Project, vera: User, tom: User, verb: str
) -> None:
    """Rights are asked before anything else, also of an empty form."""
    create_task(ledger, number=7)
    assert as_user(client, vera).post(f"/tasks/ledger-7/{verb}/").status_code == 403
    allowed = verb in {"defer", "resume"}
    assert (as_user(client, tom).post(f"/tasks/ledger-7/{verb}/").status_code == 403) is not allowed


# --- Moving -----------------------------------------------------------------------------------------------


def test_people_move_a_task_and_say_why(client: Client, ledger: Project, lea: User) -> None:
    task = create_task(ledger, number=7)
    client = as_user(client, lea)
    steps = [
        ("defer", "deferred"), ("resume", "pending"), ("finish", "completed"), ("reopen", "pending"),
        ("cancel", "cancelled"),
    ]  # fmt: skip
    for verb, status in steps:
        reply = client.post(f"/tasks/ledger-7/{verb}/", {"note": f"Because of {verb}."})
        assert (reply.status_code, reply.headers["Location"]) == (302, "/tasks/ledger-7/")
        task.refresh_from_db()
        assert task.status == status
        event = task.events.latest("pk")
        assert (event.kind, event.note, event.label) == (verb, f"Because of {verb}.", "Lea Lindt")


@pytest.mark.parametrize(
    ("status", "verb", "data", "code", "words"),
    [
        ("pending", "resume", {}, 409, "cannot resume"),
        ("pending", "defer", {"version": "7"}, 409, "ledger-7 has moved on: it is pending now."),
        ("cancelled", "reopen", {}, 422, "A reason is needed to reopen ledger-7."),
    ],
)
def test_a_refusal_says_why_and_keeps_what_was_typed(
    client: Client, ledger: Project, lea: User, status: str, verb: str, data: dict[str, str], code: int,
    words: str,
) -> None:  # fmt: skip
    task = create_task(ledger, number=7, status=status)
    typed = " " if verb == "reopen" else "My <words>"
    reply = as_user(client, lea).post(f"/tasks/ledger-7/{verb}/", {"note": typed, **data})
    shown = reply.content.decode()
    assert reply.status_code == code
    assert words in shown
    if verb == "defer":
        assert "My &lt;words&gt;</textarea>" in shown
    task.refresh_from_db()
    assert task.status == status


def test_nothing_is_finished_over_an_undecided_conflict(client: Client, ledger: Project, lea: User) -> None:
    task = played(ledger)
    reply = as_user(client, lea).post("/tasks/ledger-214/finish/", {"note": "Done."})
    assert reply.status_code == 409
    assert "undecided conflict" in reply.content.decode()
    task.refresh_from_db()
    assert task.status == "disputed"
