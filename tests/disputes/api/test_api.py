"""Disputes over REST: reading them, and ruling on them with a person's token."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils import timezone
from rest_framework.response import Response
from rest_framework.test import APIClient

from agents.models import new_token, token_hash
from disputes import opening
from disputes.models import Conflict, Decision, Dispute
from tasks import idempotency
from tasks.models import Event, Finding, Project, Task
from tests.asking import client_of, client_with, queries
from tests.cases import for_each
from tests.factories import (
    create_finding,
    create_project,
    create_review,
    create_run,
    create_submission,
    create_task,
    create_user,
)

pytestmark = pytest.mark.django_db


def resolve(user: User, ref: str, decision: str = "reviewer", key: str = "", **body: Any) -> Response:
    headers = {"Idempotency-Key": key} if key else {}
    path = f"/api/v1/disputes/{ref}/resolve/"
    return client_of(user).post(path, {"decision": decision, **body}, format="json", headers=headers)


def listed(user: User, query: str = "") -> list[str]:
    """The refs of the list."""
    reply = client_of(user).get(f"/api/v1/disputes/{query}")
    assert reply.status_code == 200, reply.json()
    return [row["ref"] for row in reply.json()["results"]]


def create_disputed(project: Project, **kwargs: Any) -> Task:
    """A task in its first round, reviewed, whose coder declined."""
    task = create_task(project, **{"status": "disputed", "round": 1} | kwargs)
    create_review(create_submission(task))
    return task


def open_conflict(task: Task, finding: Finding | None = None, **kwargs: Any) -> Conflict:
    """One question with both positions."""
    kwargs = {
        "kind": "disagreement",
        "origin": "disagree",
        "opened_as": "coder",
        "question": finding.title if finding else f"What about {task.title}?",
        "severity": "high",
        "finding": finding,
        "submission": task.last_submission(),
        "reviewer_position": "Wait between tries.",
        "reviewer_label": "reviewer-1",
        "coder_position": "The server asks for it.",
        "coder_rationale": "Its documentation says so.",
        "coder_label": "coder-1",
    } | kwargs
    return opening.open_conflict(task, **kwargs)


def add_finding(task: Task, **kwargs: Any) -> Finding:
    last = task.last_submission()
    assert last is not None
    return create_finding(last.reviews.get(), **kwargs)


@pytest.fixture
def task(ledger: Project) -> Task:
    return create_disputed(ledger, number=7, title="Retry failed calls")


@pytest.fixture
def conflict(task: Task) -> Conflict:
    return open_conflict(task, add_finding(task))


def rulings(task: Task) -> list[tuple[str, str]]:
    """What was ruled on the task, in order."""
    decisions = Decision.objects.filter(conflict__dispute__task=task).order_by("pk")
    return list(decisions.values_list("option", "action"))


# --- The list ---------------------------------------------------------------------------------------------


def test_a_dispute_in_the_list(conflict: Conflict, vera: User) -> None:
    Dispute.objects.update(opened_at=timezone.now() - timedelta(days=3, hours=1))
    reply = client_of(vera).get("/api/v1/disputes/").json()
    assert (reply["count"], reply["next"], reply["stale_after_days"]) == (1, None, 7)
    row = reply["results"][0]
    assert row.pop("opened_at")
    assert row == {
        "ref": conflict.dispute.ref,
        "task": {"ref": "ledger-7", "title": "Retry failed calls"},
        "status": "open",
        "reason": "disagree",
        "severity": "high",
        "blocks": 0,
        "blocks_project": False,
        "question": "Failed calls are retried at once",
        "days_open": 3,
        "closed_at": None,
        "closed_reason": "",
    }


def test_the_reason_is_that_of_the_first_open_conflict(task: Task, vera: User) -> None:
    first = open_conflict(task, reason="scope_disagreement")
    open_conflict(task, reason="security_concern")
    row = client_of(vera).get("/api/v1/disputes/").json()["results"][0]
    assert row["reason"] == "scope_disagreement"
    Conflict.objects.filter(pk=first.pk).update(status="moot")
    row = client_of(vera).get("/api/v1/disputes/").json()["results"][0]
    assert row["reason"] == "security_concern"


def test_the_list_is_the_queue(ledger: Project, vera: User) -> None:
    """Severity first, then how many tasks wait, then age."""
    names = {}
    for name, severity, blocks, days in (
        ("young", "high", 0, 1),
        ("old", "high", 0, 5),
        ("blocking", "high", 2, 1),
        ("critical", "critical", 0, 0),
        ("low", "medium", 9, 9),
    ):
        dispute = open_conflict(create_disputed(ledger), severity=severity).dispute
        since = timezone.now() - timedelta(days=days)
        Dispute.objects.filter(pk=dispute.pk).update(blocks=blocks, opened_at=since)
        names[dispute.ref] = name
    assert [names[ref] for ref in listed(vera)] == ["critical", "blocking", "old", "young", "low"]


@pytest.fixture
def four(ledger: Project, tom: User) -> dict[str, str]:
    """An open, a stale, a ruled and a logged dispute, oldest first; their refs by name."""
    found = {}
    for name in ("stale", "ruled", "logged", "open"):
        minor = {"origin": "minor", "effect": "log", "severity": "low"} if name == "logged" else {}
        found[name] = open_conflict(create_disputed(ledger), **minor).dispute.ref
    Dispute.objects.filter(pk=found["stale"][2:]).update(opened_at=timezone.now() - timedelta(days=12))
    Dispute.objects.filter(pk=found["ruled"][2:]).update(opened_at=timezone.now() - timedelta(days=12))
    assert resolve(tom, found["ruled"]).status_code == 200
    return found


@for_each(
    ("query", "names"),
    [
        ("", {"open", "stale", "ruled", "logged"}),
        ("?status=open", {"open", "stale"}),
        ("?status=resolved", {"ruled", "logged"}),
        ("?stale=1", {"stale"}),
        ("?stale=1&status=resolved", set()),
        ("?recent=2", {"open", "logged"}),
        ("?recent=9", {"open", "stale", "ruled", "logged"}),
        ("?recent=1&status=resolved", {"logged"}),
        ("?severity=low", {"logged"}),
        ("?severity=LOW", {"logged"}),
        ("?project=ledger", {"open", "stale", "ruled", "logged"}),
    ],
)
def test_the_list_is_narrowed_down(four: dict[str, str], vera: User, query: str, names: set[str]) -> None:
    assert sorted(listed(vera, query)) == sorted(four[name] for name in names)


def test_the_commands_word_for_stale_is_understood(four: dict[str, str], vera: User) -> None:
    assert listed(vera, "?stale=1") == [four["stale"]]


def test_a_dispute_is_stale_after_seven_days(conflict: Conflict, vera: User) -> None:
    for hours, found in ((7 * 24 - 1, 0), (7 * 24 + 1, 1)):
        Dispute.objects.update(opened_at=timezone.now() - timedelta(hours=hours))
        assert len(listed(vera, "?stale=1")) == found


def test_the_most_recent_come_first(four: dict[str, str], vera: User) -> None:
    assert listed(vera, "?recent=3") == [four["open"], four["logged"], four["ruled"]]


def test_what_no_filter_of_a_list_knows_is_refused(conflict: Conflict, vera: User) -> None:
    """A list that left out what it did not understand would answer with everything."""
    for query in (
        "status=ruled", "severity=major", "stale=perhaps", "recent=many", "recent=-1", "recent=0",
        "recent=1.5", "recent=²", "stauts=open", "recent=1&limit=2",
    ):  # fmt: skip
        reply = client_of(vera).get(f"/api/v1/disputes/?{query}")
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid"), query
        assert [each["field"] for each in reply.json()["details"]] == [query.split("&")[-1].split("=")[0]]
    assert listed(vera, "?recent=&page=1") == [conflict.dispute.ref]
    boss = client_of(create_user("boss", is_superuser=True))
    for path in ("projects", "tasks", "runs", "amendments", "disputed-work", "agents", "hosts"):
        assert boss.get(f"/api/v1/{path}/?page=1").status_code == 200, path
        reply = boss.get(f"/api/v1/{path}/?projcet=ledger")
        assert (reply.status_code, reply.json()["details"][0]["field"]) == (422, "projcet"), path


def test_the_list_costs_the_same_for_3_and_12_disputes(ledger: Project, vera: User) -> None:
    def fill(number: int) -> None:
        for _ in range(number):
            task = create_disputed(ledger)
            open_conflict(task, add_finding(task))
            open_conflict(task)

    client = client_of(vera)
    fill(3)
    client.get("/api/v1/disputes/")
    few = queries(lambda: client.get("/api/v1/disputes/"))
    fill(9)
    many = queries(lambda: client.get("/api/v1/disputes/"))
    assert len(listed(vera)) == 12
    assert many == few <= 5


# --- One dispute ------------------------------------------------------------------------------------------


def test_a_dispute_alone_has_both_positions_and_the_options(conflict: Conflict, vera: User) -> None:
    body = client_of(vera).get(f"/api/v1/disputes/{conflict.dispute.ref}/").json()
    assert body["ref"] == conflict.dispute.ref
    shown = body["conflicts"][0]
    assert (shown["ref"], shown["code"]) == (conflict.ref, "ISSUE-R1-001")
    assert (shown["kind"], shown["origin"], shown["status"]) == ("disagreement", "disagree", "open")
    assert (shown["reviewer_position"], shown["reviewer_label"]) == ("Wait between tries.", "reviewer-1")
    assert (shown["coder_position"], shown["coder_label"]) == ("The server asks for it.", "coder-1")
    assert shown["coder_rationale"] == "Its documentation says so."
    assert shown["decision"] is None
    options = [(option["letter"], option["key"]) for option in shown["options"]]
    assert options == [("A", "uphold_reviewer"), ("B", "uphold_coder"), ("C", "compromise"), ("D", "other")]
    assert shown["options"][0]["text"] == "Wait between tries."
    assert all(option["consequence"] for option in shown["options"])


def test_a_card_that_asks_for_help_has_options_of_its_own(task: Task, vera: User) -> None:
    card = open_conflict(task, kind="help", origin="blocked", opened_as="system")
    shown = client_of(vera).get(f"/api/v1/disputes/{card.dispute.ref}/").json()["conflicts"][0]
    assert [option["key"] for option in shown["options"]] == ["retry", "defer", "cancel"]


@for_each("name", ["D", "d", "C", "c", "task"])
def test_a_dispute_has_three_names(conflict: Conflict, vera: User, name: str) -> None:
    refs = {
        "d": conflict.dispute.ref.lower(),
        "D": conflict.dispute.ref,
        "c": conflict.ref.lower(),
        "C": conflict.ref,
        "task": "ledger-7",
    }
    body = client_of(vera).get(f"/api/v1/disputes/{refs[name]}/").json()
    assert body["ref"] == conflict.dispute.ref


def test_a_task_names_its_newest_dispute(conflict: Conflict, tom: User) -> None:
    opening.close(conflict.dispute, "moot")
    newer = open_conflict(conflict.task).dispute
    assert client_of(tom).get("/api/v1/disputes/ledger-7/").json()["ref"] == newer.ref


@for_each("ref", ["D-99", "C-99", "ledger-99", "D-99999999999999999999", "D", "D-x"])
def test_a_name_that_is_none_is_not_found(conflict: Conflict, vera: User, ref: str) -> None:
    assert client_of(vera).get(f"/api/v1/disputes/{ref}/").status_code == 404


@for_each("slug", ["c", "d"])
def test_no_project_is_called_as_conflicts_and_disputes_are(db: None, slug: str) -> None:
    project = Project(slug=slug, name="Letters", repo_url="https://example.org/letters.git")
    with pytest.raises(ValidationError):
        project.full_clean()


def test_a_dispute_costs_the_same_with_3_and_12_decided_conflicts(
    ledger: Project, vera: User, lea: User
) -> None:
    """With the options of each: those of open ones ask whether their commit is green and reviewed."""

    def fill(task: Task, number: int) -> str:
        for _ in range(number):
            open_conflict(task, add_finding(task), submission=None)
        return task.disputes.get().ref

    client = client_of(vera)
    few_ref, many_ref = fill(create_disputed(ledger), 3), fill(create_disputed(ledger), 12)
    for ref in (few_ref, many_ref):
        assert resolve(lea, ref, all=True).status_code == 200
    client.get(f"/api/v1/disputes/{few_ref}/")
    few = queries(lambda: client.get(f"/api/v1/disputes/{few_ref}/"))
    many = queries(lambda: client.get(f"/api/v1/disputes/{many_ref}/"))
    assert many == few


def test_a_dispute_costs_the_same_with_3_and_12_open_conflicts(ledger: Project, vera: User) -> None:
    def fill(task: Task, number: int) -> str:
        for _ in range(number):
            open_conflict(task, add_finding(task))
        return task.disputes.get().ref

    client = client_of(vera)
    few_ref, many_ref = fill(create_disputed(ledger), 3), fill(create_disputed(ledger), 12)
    client.get(f"/api/v1/disputes/{few_ref}/")
    few = queries(lambda: client.get(f"/api/v1/disputes/{few_ref}/"))
    many = queries(lambda: client.get(f"/api/v1/disputes/{many_ref}/"))
    assert many == few


# --- Ruling -----------------------------------------------------------------------------------------------


@for_each("name", ["dispute", "conflict", "task"])
def test_a_ruling_for_the_reviewer_sends_the_task_back(conflict: Conflict, tom: User, name: str) -> None:
    ref = {"dispute": conflict.dispute.ref, "conflict": conflict.ref, "task": "ledger-7"}[name]
    reply = resolve(tom, ref, "reviewer", notes="Security first.")
    decision = Decision.objects.get()
    assert (decision.conflict, decision.option, decision.user) == (conflict, "uphold_reviewer", tom)
    assert (decision.text, decision.rationale) == ("Wait between tries.", "Security first.")
    assert (decision.action, decision.expects_change) == ("revise", True)
    conflict.refresh_from_db()
    assert (conflict.status, conflict.followed) == ("decided", "waiting")
    task = conflict.task
    task.refresh_from_db()
    assert (task.status, task.round) == ("in_progress", 2)
    ruled = Event.objects.get(task=task, kind="ruled")
    assert (ruled.user, ruled.data["option"], ruled.data["letter"]) == (tom, "uphold_reviewer", "A")
    assert Event.objects.filter(task=task, kind="rule_revise", to_status="in_progress").exists()
    assert reply.status_code == 200
    body = reply.json()
    assert body["message"] == f"Ruled {conflict.ref}: A (uphold_reviewer); ledger-7 is in_progress now."
    assert body["conflicts"][0]["decision"]["by"] == "Tom Tran"


def test_a_ruling_over_rest_takes_effect_at_once(conflict: Conflict, tom: User) -> None:
    resolve(tom, conflict.ref)
    decision = Decision.objects.get()
    assert decision.effective_at == decision.at


def test_a_ruling_for_the_coder_of_a_clean_commit_completes_the_task(conflict: Conflict, tom: User) -> None:
    """That very commit is green, and its review names nothing else that is mandatory."""
    reply = resolve(tom, conflict.dispute.ref, "coder")
    task = conflict.task
    task.refresh_from_db()
    assert (task.status, task.accepted) == ("completed", conflict.submission)
    assert rulings(task) == [("uphold_coder", "accept")]
    assert reply.json()["message"].endswith("ledger-7 is completed now.")


def test_a_ruling_for_the_coder_of_an_unreviewed_commit_has_it_reviewed(
    conflict: Conflict, tom: User
) -> None:
    task = conflict.task
    newer = create_submission(task)
    Conflict.objects.update(submission=newer)
    resolve(tom, conflict.dispute.ref, "coder")
    task.refresh_from_db()
    assert (task.status, task.accepted) == ("review", None)


@for_each(
    ("body", "text"),
    [
        ({"notes": "A pause before the third try."}, "A pause before the third try."),
        ({"text": "One pause.", "notes": "Both are partly right."}, "One pause."),
    ],
)
@for_each(("word", "option"), [("custom", "other"), ("compromise", "compromise")])
def test_a_ruling_in_own_words(
    conflict: Conflict, tom: User, body: dict[str, str], text: str, word: str, option: str
) -> None:
    assert resolve(tom, conflict.dispute.ref, word, **body).status_code == 200
    decision = Decision.objects.get()
    assert (decision.option, decision.text, decision.rationale) == (option, text, body["notes"])


@for_each("word", ["custom", "compromise"])
def test_a_ruling_in_own_words_needs_them(conflict: Conflict, tom: User, word: str) -> None:
    reply = resolve(tom, conflict.dispute.ref, word)
    assert not Decision.objects.exists()
    assert (reply.status_code, reply.json()["code"]) == (422, "text_missing")


@for_each(
    ("word", "option"),
    [
        ("reviewer", "uphold_reviewer"),
        ("A", "uphold_reviewer"),
        ("uphold_reviewer", "uphold_reviewer"),
        ("Coder", "uphold_coder"),
        ("b", "uphold_coder"),
        ("compromise", "compromise"),
        ("c", "compromise"),
        ("custom", "other"),
        ("D", "other"),
    ],
)
def test_a_decision_has_several_words(conflict: Conflict, tom: User, word: str, option: str) -> None:
    assert resolve(tom, conflict.dispute.ref, word, notes="So be it.").status_code == 200
    assert Decision.objects.get().option == option


@for_each(("word", "status"), [("retry", "in_progress"), ("defer", "deferred"), ("cancel", "cancelled")])
def test_a_card_that_asks_for_help_is_ruled_on(task: Task, tom: User, word: str, status: str) -> None:
    card = open_conflict(task, kind="help", origin="blocked", opened_as="system")
    assert resolve(tom, card.ref, word, notes="The token is there now.").status_code == 200
    task.refresh_from_db()
    assert task.status == status
    assert rulings(task) == [(word, word)]


@for_each("word", ["both", "", "retry", "defer", "cancel", "1"])
def test_an_option_that_is_not_offered_is_refused(conflict: Conflict, tom: User, word: str) -> None:
    reply = resolve(tom, conflict.dispute.ref, word)
    conflict.refresh_from_db()
    assert (conflict.status, Decision.objects.count()) == ("open", 0)
    assert not Event.objects.filter(kind="ruled").exists()
    assert reply.status_code == 422
    assert reply.json()["code"] == ("invalid" if word == "" else "unknown_option")


@for_each("word", ["reviewer", "coder", "custom"])
def test_whoever_helps_is_not_asked_who_is_right(task: Task, tom: User, word: str) -> None:
    card = open_conflict(task, kind="help", origin="blocked", opened_as="system")
    reply = resolve(tom, card.ref, word, notes="So be it.")
    assert not Decision.objects.exists()
    assert (reply.status_code, reply.json()["code"]) == (422, "unknown_option")


# --- Several conflicts ------------------------------------------------------------------------------------


@pytest.fixture
def three(task: Task) -> list[Conflict]:
    """Two findings and one question about the whole task."""
    return [
        open_conflict(task, add_finding(task)),
        open_conflict(task, add_finding(task)),
        open_conflict(task, reason="scope_disagreement"),
    ]


def test_several_open_conflicts_must_be_told_apart(three: list[Conflict], tom: User) -> None:
    reply = resolve(tom, "ledger-7")
    assert not Decision.objects.exists()
    assert (reply.status_code, reply.json()["code"]) == (409, "several_open")
    assert [(row["ref"], row["code"]) for row in reply.json()["open"]] == [
        (three[0].ref, "ISSUE-R1-001"),
        (three[1].ref, "ISSUE-R1-002"),
        (three[2].ref, "Task ledger-7"),
    ]
    assert all(row["question"] for row in reply.json()["open"])


@for_each("name", ["ISSUE-R1-002", "issue-r1-002", "ref"])
def test_one_of_several_is_named(three: list[Conflict], tom: User, name: str) -> None:
    reply = resolve(tom, "ledger-7", conflict=three[1].ref if name == "ref" else name)
    assert Decision.objects.get().conflict == three[1]
    task = three[1].task
    task.refresh_from_db()
    assert (task.status, rulings(task)) == ("disputed", [("uphold_reviewer", "wait")])
    assert reply.json()["status"] == "open"


def test_a_conflicts_own_name_is_enough(three: list[Conflict], tom: User) -> None:
    assert resolve(tom, three[2].ref).status_code == 200
    assert Decision.objects.get().conflict == three[2]


def test_a_conflict_of_another_dispute_is_not_found(
    three: list[Conflict], ledger: Project, tom: User
) -> None:
    elsewhere = open_conflict(create_disputed(ledger))
    reply = resolve(tom, "ledger-7", conflict=elsewhere.ref)
    assert not Decision.objects.exists()
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


def test_all_are_ruled_on_at_once(three: list[Conflict], tom: User) -> None:
    reply = resolve(tom, "ledger-7", "reviewer", all=True)
    task = three[0].task
    task.refresh_from_db()
    assert [action for _, action in rulings(task)] == ["wait", "wait", "revise"]
    assert (task.status, task.round) == ("in_progress", 2)
    assert Event.objects.filter(task=task, kind="ruled").count() == 3
    assert reply.json()["status"] == "resolved"
    assert all(conflict.ref in reply.json()["message"] for conflict in three)


def test_one_word_that_means_different_things_is_refused(task: Task, tom: User) -> None:
    """1 is another choice on another kind of card."""
    silence = open_conflict(task, add_finding(task), kind="silence", origin="flagged", opened_as="system")
    card = open_conflict(task, kind="help", origin="blocked", opened_as="system")
    reply = resolve(tom, "ledger-7", "1", all=True)
    assert (reply.status_code, reply.json()["code"]) == (422, "several_meanings")
    assert reply.json()["message"] == f"1 would mean ask on {silence.ref}, retry on {card.ref}."
    assert not Decision.objects.exists()


def test_all_or_none_are_ruled_on(task: Task, tom: User) -> None:
    open_conflict(task, add_finding(task))
    open_conflict(task, kind="help", origin="blocked", opened_as="system")
    reply = resolve(tom, "ledger-7", "reviewer", all=True)
    assert (reply.status_code, reply.json()["code"]) == (422, "unknown_option")
    assert not Decision.objects.exists()


# --- Two people -------------------------------------------------------------------------------------------


def test_the_second_ruling_sees_the_first(conflict: Conflict, tom: User, lea: User) -> None:
    resolve(tom, conflict.dispute.ref, "reviewer", notes="Security first.")
    before = Event.objects.count()
    reply = resolve(lea, conflict.dispute.ref, "coder")
    decision = Decision.objects.get()
    assert (decision.user, decision.option) == (tom, "uphold_reviewer")
    assert Event.objects.count() == before
    body = reply.json()
    assert (reply.status_code, body["code"]) == (409, "already_decided")
    assert body["message"].startswith(f"Tom Tran ruled A on {conflict.ref} on ")
    assert body["decision"] == {
        "option": "uphold_reviewer",
        "letter": "A",
        "by": "Tom Tran",
        "at": decision.at.isoformat(),
        "text": "Wait between tries.",
    }


def test_nor_does_the_same_ruling_count_twice(conflict: Conflict, tom: User) -> None:
    resolve(tom, conflict.ref)
    reply = resolve(tom, conflict.ref)
    assert Decision.objects.count() == 1
    assert (reply.status_code, reply.json()["code"]) == (409, "already_decided")


@for_each("status", ["logged", "moot"])
def test_what_waits_for_nobody_is_not_ruled_on(conflict: Conflict, tom: User, status: str) -> None:
    Conflict.objects.update(status=status)
    reply = resolve(tom, conflict.ref)
    assert not Decision.objects.exists()
    assert (reply.status_code, reply.json()["code"]) == (409, "not_open")


def test_a_ruling_that_is_sent_twice_has_one_reply(conflict: Conflict, tom: User) -> None:
    """The command sends a call again when its connection was cut."""
    client = client_of(tom)
    sent: dict[str, Any] = {
        "data": {"decision": "coder"},
        "format": "json",
        "headers": {"Idempotency-Key": "a"},
    }
    first = client.post(f"/api/v1/disputes/{conflict.ref}/resolve/", **sent)
    second = client.post(f"/api/v1/disputes/{conflict.ref}/resolve/", **sent)
    assert Decision.objects.count() == 1
    assert (second.status_code, second.json()) == (200, first.json())


def test_two_tries_at_once_of_a_ruling_have_one_reply(
    conflict: Conflict, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try commits right after the second has looked for its reply."""
    client = client_of(tom)
    look, replies = idempotency.earlier_reply, []

    def send() -> Response:
        headers = {"Idempotency-Key": "a"}
        path = f"/api/v1/disputes/{conflict.ref}/resolve/"
        return client.post(path, {"decision": "coder"}, format="json", headers=headers)

    def late(request: Any) -> Any:
        monkeypatch.setattr(idempotency, "earlier_reply", look)
        replies.append(send())

    monkeypatch.setattr(idempotency, "earlier_reply", late)
    second = send()
    assert Decision.objects.count() == 1
    assert (second.status_code, second.json()) == (200, replies[0].json())


# --- Access -----------------------------------------------------------------------------------------------


def test_a_viewer_reads_and_does_not_rule(conflict: Conflict, vera: User) -> None:
    assert listed(vera) == [conflict.dispute.ref]
    reply = resolve(vera, conflict.dispute.ref)
    conflict.refresh_from_db()
    assert (conflict.status, Decision.objects.count()) == ("open", 0)
    assert (reply.status_code, reply.json()["code"]) == (403, "no_right")


@for_each("name", ["dispute", "conflict", "task"])
def test_an_outsider_finds_nothing(conflict: Conflict, otto: User, name: str) -> None:
    create_project("atlas", members={otto: "maintainer"})
    ref = {"dispute": conflict.dispute.ref, "conflict": conflict.ref, "task": "ledger-7"}[name]
    assert listed(otto) == []
    assert client_of(otto).get(f"/api/v1/disputes/{ref}/").status_code == 404
    reply = resolve(otto, ref)
    assert not Decision.objects.exists()
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


def test_nor_does_an_outsider_of_every_project(conflict: Conflict, otto: User) -> None:
    reply = resolve(otto, conflict.dispute.ref)
    assert not Decision.objects.exists()
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


def test_nobody_is_asked_for_a_token(conflict: Conflict) -> None:
    for path in ("", f"{conflict.dispute.ref}/"):
        assert APIClient().get(f"/api/v1/disputes/{path}").status_code == 401
    reply = APIClient().post(
        f"/api/v1/disputes/{conflict.ref}/resolve/", {"decision": "coder"}, format="json"
    )
    assert not Decision.objects.exists()
    assert reply.status_code == 401


@for_each("role", ["coder", "reviewer", "verifier"])
def test_a_run_reads_its_own_dispute_and_does_not_rule(
    conflict: Conflict, ledger: Project, role: str
) -> None:
    other = open_conflict(create_disputed(ledger))
    secret = new_token()
    create_run(conflict.task, role, token_hash=token_hash(secret))
    client = client_with(secret)
    assert [row["ref"] for row in client.get("/api/v1/disputes/").json()["results"]] == [conflict.dispute.ref]
    assert client.get(f"/api/v1/disputes/{other.ref}/").status_code == 404
    for ref in (conflict.dispute.ref, conflict.ref, "ledger-7", other.ref):
        reply = client.post(f"/api/v1/disputes/{ref}/resolve/", {"decision": "coder"}, format="json")
        assert (reply.status_code, reply.json()["code"]) == (403, "wrong_role")
    assert not Decision.objects.exists()
    assert not Event.objects.filter(kind="ruled").exists()


def test_a_session_rules_with_a_csrf_token_only(conflict: Conflict, tom: User) -> None:
    """A page of another site cannot rule in the person's name."""
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(tom)
    path = f"/api/v1/disputes/{conflict.ref}/resolve/"
    reply = client.post(path, {"decision": "coder"}, format="json")
    assert not Decision.objects.exists()
    assert reply.status_code == 403


@for_each("body", [{}, [], {"decision": ["coder"]}, {"decision": "coder", "all": "perhaps"}])
def test_a_malformed_ruling_is_refused(conflict: Conflict, tom: User, body: Any) -> None:
    reply = client_of(tom).post(f"/api/v1/disputes/{conflict.ref}/resolve/", body, format="json")
    assert not Decision.objects.exists()
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid")
