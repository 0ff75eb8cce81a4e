"""Objections between stages over REST: one stage back, forward again, and a human after too many rounds."""

import contextlib
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.response import Response
from rest_framework.test import APIClient

from agents.loop.orchestrator import tick
from agents.models import Run, new_token, token_hash
from disputes import rulings
from disputes.models import Conflict
from tasks.errors import Refused
from tasks.events import SYSTEM
from tasks.models import Comment, Event, StaleTask, Submission, Task
from tasks.remarks.objections import objections_of
from tests.agents.world import at_once
from tests.asking import fresh
from tests.cases import for_each
from tests.factories import (
    BASE,
    create_agent,
    create_project,
    create_run,
    create_section,
    create_submission,
    create_task,
    create_user,
    sha,
)

pytestmark = pytest.mark.django_db

TARGET = "tests/247-trading-tests.md::test_trade_cancellation"
WRONG = "This test assumes synchronous cancellation, but the architecture specifies async."
RIGHT = "The architecture says async for trades, not for their cancellation."


@pytest.fixture(name="tom")
def make_tom() -> User:
    return create_user("tom")


@pytest.fixture(name="task")
def make_task(tom: User) -> Task:
    """A task at dev, whose tests were approved."""
    ledger = create_project(
        "ledger", settings={"stages": "full", "undo_seconds": 0}, members={tom: "triager"}
    )
    task = create_task(section=create_section(ledger), number=247, title="Cancel trades")
    Task.objects.filter(pk=task.pk).update(status="in_progress", stage="dev", round=4)
    task.refresh_from_db()
    create_submission(task, stage="tests", round=3)
    return task


def agent_on(task: Task, name: str, role: str = "coder") -> tuple[Run, APIClient]:
    """A live run on the task as it is now, and its client."""
    task, secret = fresh(task), new_token()
    run = create_run(
        task, role, token_hash=token_hash(secret), spent_hash=token_hash(secret), base_sha=BASE,
        agent=create_agent(role), agent_label=name, stage=task.stage,
    )  # fmt: skip
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return run, client


def comment(task: Task, name: str, body: str, **data: Any) -> Any:
    """What an agent's comment is answered with. Its run ends as its host would end it."""
    run, client = agent_on(task, name)
    reply: Response = client.post(f"/api/v1/tasks/{task.ref}/comment/", {"body": body, **data}, format="json")
    ended = {"status": "ended", "ended_at": run.queued_at, "token_hash": None}
    Run.objects.filter(pk=run.pk).update(**ended)
    return reply


def object_to(task: Task, body: str = WRONG, **data: Any) -> Any:
    return comment(task, "dev-agent", body, target=TARGET, back=True, **data)


def place(task: Task) -> tuple[str, str, str]:
    now = fresh(task)
    return now.status, now.stage, now.home_stage


# --- One round --------------------------------------------------------------------------------------------


def test_an_objection_sends_the_task_one_stage_back(task: Task) -> None:
    before = task.version

    reply = object_to(task)

    assert (reply.status_code, reply.data["message"]) == (
        201, f"Comment {Comment.objects.get().pk} sends ledger-247 to tests.",
    )  # fmt: skip
    assert place(task) == ("in_progress", "tests", "dev")
    assert (fresh(task).round, fresh(task).version) == (5, before + 1)
    event = Event.objects.get(task=task, kind="backflow")
    assert (event.data["from_stage"], event.data["stage"]) == ("dev", "tests")
    assert (Comment.objects.get().stage, Comment.objects.get().target) == ("dev", TARGET)


def test_the_objection_ends_its_run(task: Task) -> None:
    run, client = agent_on(task, "dev-agent")
    client.post(
        f"/api/v1/tasks/{task.ref}/comment/", {"body": WRONG, "target": TARGET, "back": True}, format="json"
    )
    again = client.post(f"/api/v1/tasks/{task.ref}/comment/", {"body": "And more."}, format="json")

    assert Run.objects.get(pk=run.pk).status == "closing"
    assert again.status_code == 409
    assert Comment.objects.count() == 1


def test_the_stage_before_agrees_and_hands_in(task: Task) -> None:
    object_to(task)
    root = Comment.objects.get()
    run, client = agent_on(task, "test-architect")
    said = client.post(
        f"/api/v1/tasks/{task.ref}/comment/",
        {"body": "You're right. Updating it.", "parent": root.pk, "resolve": True}, format="json",
    )  # fmt: skip
    assert said.status_code == 201
    root.refresh_from_db()
    assert (root.status, root.resolution) == ("resolved", "accepted")

    sent = client.post(f"/api/v1/tasks/{task.ref}/submit/", {"sha": sha("c")}, format="json")

    assert sent.status_code == 201
    assert place(task) == ("review", "tests", "dev")
    assert Run.objects.get(pk=run.pk).submission.stage == "tests"


def test_to_hand_in_without_a_word_is_to_agree(task: Task) -> None:
    object_to(task)
    _, client = agent_on(task, "test-architect")

    client.post(f"/api/v1/tasks/{task.ref}/submit/", {"sha": sha("c")}, format="json")

    root = Comment.objects.get()
    assert (root.status, root.resolution) == ("resolved", "accepted")


def test_once_its_fix_is_approved_the_task_goes_on_to_where_it_came_from(task: Task) -> None:
    object_to(task)
    at_tests = fresh(task)
    Task.objects.filter(pk=task.pk).update(status="review")
    at_tests.refresh_from_db()

    at_tests.approve(create_submission(at_tests, stage="tests"), actor=SYSTEM)

    assert place(task) == ("in_progress", "dev", "")


def test_the_stage_before_disagrees_and_the_task_goes_forward_again(task: Task) -> None:
    object_to(task)
    root = Comment.objects.get()

    reply = comment(task, "test-architect", RIGHT, parent=root.pk, disagree=True)

    assert reply.status_code == 201
    assert place(task) == ("in_progress", "dev", "")
    root.refresh_from_db()
    assert (root.status, root.resolution) == ("open", "rejected")
    (objection,) = objections_of(task)
    assert (objection.rounds, objection.agents) == (1, ["dev-agent", "test-architect"])


def test_the_disputer_may_give_in(task: Task) -> None:
    object_to(task)
    comment(task, "test-architect", RIGHT, disagree=True)
    _, client = agent_on(task, "dev-agent")

    client.post(f"/api/v1/tasks/{task.ref}/submit/", {"sha": sha("d")}, format="json")

    root = Comment.objects.get(parent=None)
    assert (root.status, root.resolution) == ("resolved", "rejected")
    assert place(task) == ("review", "dev", "")


# --- What is refused --------------------------------------------------------------------------------------


@for_each(
    ("data", "status", "code"),
    [
        ({"back": True}, 422, "target_missing"),
        ({"back": True, "target": "  "}, 422, "target_missing"),
        ({"back": True, "disagree": True, "target": "x"}, 422, "one_at_a_time"),
        ({"disagree": True}, 422, "not_sent_back"),
        ({"resolve": True}, 422, "parent_missing"),
        ({"back": True, "target": "x", "parent": 10**6}, 404, "not_found"),
    ],
)
def test_what_cannot_be_is_refused_and_the_run_goes_on(
    task: Task, data: dict[str, Any], status: int, code: str
) -> None:
    run, client = agent_on(task, "dev-agent")

    reply = client.post(f"/api/v1/tasks/{task.ref}/comment/", {"body": "No.", **data}, format="json")

    assert (reply.status_code, reply.data["code"]) == (status, code)
    assert Run.objects.get(pk=run.pk).status == "running"
    assert place(task) == ("in_progress", "dev", "")
    assert not Comment.objects.exists()


def test_nothing_is_before_the_first_stage(task: Task) -> None:
    Task.objects.filter(pk=task.pk).update(stage="stories")

    assert object_to(task).data["code"] == "no_stage_before"


def test_a_reviewer_and_a_person_send_nothing_back(task: Task, tom: User) -> None:
    Task.objects.filter(pk=task.pk).update(status="review")
    _, client = agent_on(task, "reviewer-1", "reviewer")
    data = {"body": WRONG, "target": TARGET, "back": True}
    person = APIClient()
    person.force_authenticate(tom)

    replies = [
        each.post(f"/api/v1/tasks/{task.ref}/comment/", data, format="json") for each in (client, person)
    ]

    assert [reply.status_code for reply in replies] == [403, 403]


def test_a_plain_comment_is_no_objection(task: Task) -> None:
    comment(task, "dev-agent", "A note.", target=TARGET)

    reply = comment(task, "dev-agent", WRONG, parent=Comment.objects.get().pk, back=True)

    assert (reply.status_code, reply.data["code"]) == (422, "not_an_objection")
    assert place(task) == ("in_progress", "dev", "")


# --- The breaker (ITM-3) ----------------------------------------------------------------------------------


def disagree_for_ever(task: Task) -> Conflict:
    """The walk of the design: dev, test-architect, dev, test-architect."""
    object_to(task)
    root = Comment.objects.get()
    comment(task, "test-architect", RIGHT, parent=root.pk, disagree=True)
    assert not Conflict.objects.exists()
    comment(task, "dev-agent", "Section 4 speaks of cancellation, too.", parent=root.pk, back=True)
    reply = comment(task, "test-architect", "Section 4 was withdrawn.", parent=root.pk, disagree=True)
    conflict = Conflict.objects.get()
    assert reply.data["conflicts"] == [conflict.ref]
    return conflict


def test_after_three_rounds_a_human_decides(task: Task) -> None:
    conflict = disagree_for_ever(task)

    assert place(task)[0] == "disputed"
    assert (conflict.kind, conflict.origin, conflict.effect, conflict.stage) == (
        "disagreement", Conflict.Origin.PING_PONG, "hold", "tests",
    )  # fmt: skip
    assert conflict.question == f"Agents disagree after 3 rounds - human decision needed: {TARGET}"
    assert conflict.evidence[:3] == [
        "Agents disagree after 3 rounds - human decision needed", "Rounds: 3",
        "Agents: dev-agent, test-architect, dev-agent, test-architect",
    ]  # fmt: skip
    assert (conflict.reviewer_label, conflict.coder_label) == ("dev-agent", "test-architect")
    assert conflict.reviewer_position == f"1. {WRONG}\n\n2. Section 4 speaks of cancellation, too."
    assert conflict.coder_position == f"1. {RIGHT}\n\n2. Section 4 was withdrawn."


def test_no_agent_may_claim_the_task_meanwhile(task: Task) -> None:
    disagree_for_ever(task)
    create_agent("coder")

    assert tick().started == 0


def test_the_same_place_in_other_words_is_the_same_argument(task: Task) -> None:
    object_to(task)
    for _ in range(2):
        Task.objects.filter(pk=task.pk).update(status="in_progress", stage="dev", home_stage="")
        comment(task, "dev-agent", "Wrong again.", target=f" {TARGET.upper()} ", back=True)

    (objection,) = objections_of(task)
    assert objection.rounds == 2
    Task.objects.filter(pk=task.pk).update(status="in_progress", stage="dev", home_stage="")
    assert object_to(task, "Wrong still.").data["conflicts"] == [Conflict.objects.get().ref]


def test_other_places_for_ever_end_at_a_human_too(task: Task) -> None:
    task.project.settings["rejections_max"] = 2
    task.project.save()
    comment(task, "dev-agent", WRONG, target="a", back=True)
    Task.objects.filter(pk=task.pk).update(stage="dev", home_stage="")

    comment(task, "dev-agent", WRONG, target="b", back=True)

    assert Conflict.objects.get().origin == Conflict.Origin.PING_PONG
    assert place(task)[0] == "disputed"


def test_the_number_of_rounds_is_a_setting(task: Task) -> None:
    task.project.settings["dispute_rounds_to_human"] = 1
    task.project.save()
    object_to(task)

    reply = comment(task, "test-architect", RIGHT, disagree=True)

    assert reply.data["message"] == (
        f"ledger-247 waits for a human ({Conflict.objects.get().ref}): "
        "Agents disagree after 1 rounds - human decision needed."
    )


@for_each(
    ("option", "text", "stage", "home", "resolution"),
    [
        ("uphold_reviewer", "", "tests", "dev", "accepted"),
        ("uphold_coder", "", "dev", "", "rejected"),
        ("other", "Test both ways.", "tests", "dev", "accepted"),
    ],
)
def test_the_ruling_sends_it_to_the_stage_that_must_act(
    task: Task, tom: User, option: str, text: str, stage: str, home: str, resolution: str
) -> None:
    conflict = disagree_for_ever(task)

    rulings.decide(conflict, option, user=tom, text=text)

    assert place(task) == ("in_progress", stage, home)
    root = Comment.objects.get(parent=None)
    assert (root.status, root.resolution) == ("resolved", resolution)


def test_both_stages_are_told_of_the_ruling(task: Task, tom: User) -> None:
    conflict = disagree_for_ever(task)
    decision = rulings.decide(conflict, "uphold_reviewer", user=tom)
    at_tests = rulings.rulings_for_prompt(fresh(task))
    Task.objects.filter(pk=task.pk).update(stage="dev", home_stage="")

    assert at_tests == rulings.rulings_for_prompt(fresh(task)) == [decision]


def test_a_ruling_taken_back_opens_the_thread_and_the_place_again(task: Task, tom: User) -> None:
    conflict = disagree_for_ever(task)
    before = place(task)
    decision = rulings.decide(conflict, "uphold_coder", user=tom)

    rulings.undo(decision, user=tom)

    assert place(task) == before
    assert Comment.objects.get(parent=None).status == "open"


def test_what_a_human_decided_is_not_objected_to_again(task: Task, tom: User) -> None:
    rulings.decide(disagree_for_ever(task), "uphold_coder", user=tom)

    reply = object_to(task, "It is still wrong.")

    assert (reply.status_code, reply.data["code"]) == (422, "RE_ARGUED_CONFLICT")
    assert place(task) == ("in_progress", "dev", "")


# --- Races ------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_of_an_objection_and_a_hand_in_at_once_exactly_one_counts(task: Task) -> None:
    """The two verbs of one run: whichever comes second finds the run over."""
    _, client = agent_on(task, "dev-agent")
    path = f"/api/v1/tasks/{task.ref}"
    replies: list[int] = []

    def send(verb: str, data: dict[str, Any]) -> None:
        replies.append(client.post(f"{path}/{verb}/", data, format="json").status_code)

    at_once(
        lambda: send("comment", {"body": WRONG, "target": TARGET, "back": True}),
        lambda: send("submit", {"sha": sha("c")}),
    )

    assert sorted(replies)[0] == 201
    assert sorted(replies)[1] in {401, 409}
    assert place(task) in {("in_progress", "tests", "dev"), ("review", "dev", "")}
    assert Comment.objects.count() + Submission.objects.filter(stage="dev").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_an_objection_and_a_cancel_at_once_nothing_is_left_half_done(task: Task) -> None:
    _, client = agent_on(task, "dev-agent")
    now = fresh(task)

    def cancel() -> None:
        with contextlib.suppress(StaleTask):
            now.cancel(actor=SYSTEM)

    data = {"body": WRONG, "target": TARGET, "back": True}
    at_once(lambda: client.post(f"/api/v1/tasks/{task.ref}/comment/", data, format="json"), cancel)

    moved = Event.objects.filter(task=task, kind="backflow").count()
    assert place(task)[0] == ("in_progress" if moved else "cancelled")
    assert Comment.objects.count() == moved


@pytest.mark.django_db(transaction=True)
def test_of_two_rulings_on_an_objection_at_once_exactly_one_counts(task: Task, tom: User) -> None:
    conflict = disagree_for_ever(task)
    refused: list[str] = []

    def rule(option: str) -> None:
        try:
            rulings.decide(Conflict.objects.get(pk=conflict.pk), option, user=tom)
        except Refused as error:
            refused.append(error.code)

    at_once(lambda: rule("uphold_reviewer"), lambda: rule("uphold_coder"))

    assert refused == ["already_decided"]
    assert place(task) in {("in_progress", "tests", "dev"), ("in_progress", "dev", "")}
    assert Comment.objects.get(parent=None).status == "resolved"
