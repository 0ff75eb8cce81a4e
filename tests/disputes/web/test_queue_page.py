"""The queue: who sees what in which order, tabs, filters, and what it costs."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from disputes import opening, rulings
from disputes.models import Conflict, Decision, Dispute
from disputes.web.queue import listing
from tasks.models import Project
from tests.asking import as_user
from tests.cases import for_each
from tests.factories import (
    create_finding,
    create_project,
    create_review,
    create_submission,
    create_task,
    create_user,
)

pytestmark = pytest.mark.django_db


def dispute(project: Project, question: str = "Back off, or not?", **kwargs: Any) -> Conflict:
    """An open conflict over a finding of a task of its own."""
    task = create_task(project, status="disputed", round=1)
    submission = create_submission(task)
    severity = kwargs.pop("severity", "high")
    finding = create_finding(create_review(submission), severity=severity)
    given = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder", "finding": finding,
        "submission": submission, "severity": severity, "reviewer_position": "Wait longer each time.",
        "coder_position": "The limiter bounds it.",
    } | kwargs  # fmt: skip
    return opening.open_conflict(task, question=question, **given)


def settle(conflict: Conflict) -> None:
    """Ruled, and followed."""
    Conflict.objects.filter(pk=conflict.pk).update(status="decided", followed="applied")
    opening.close(conflict.dispute, "followed")


def questions(client: Client, path: str, **query: str) -> list[str]:
    return [row.dispute.question for row in client.get(path, query).context["rows"]]


def test_the_queue_is_ordered_by_severity_then_blocked_tasks_then_age(
    client: Client, ledger: Project, tom: User
) -> None:
    now = timezone.now()
    wanted = {"critical": (0, 0), "blocks": (3, 0), "old": (1, 9), "young": (1, 1)}
    for question, (blocks, hours) in reversed(wanted.items()):
        conflict = dispute(ledger, question, severity="critical" if question == "critical" else "high")
        opened = now - timedelta(hours=hours)
        Dispute.objects.filter(pk=conflict.dispute_id).update(blocks=blocks, opened_at=opened)
    assert questions(as_user(client, tom), "/queue/") == list(wanted)


def test_a_row_says_what_waits_why_and_since_when(client: Client, ledger: Project, tom: User) -> None:
    conflict = dispute(ledger)
    opening.open_conflict(
        conflict.task, kind="disagreement", origin="cli", opened_as="coder", question="Whose task is it?",
        severity="medium", reviewer_position="Yours.", coder_position="Not mine.",
    )  # fmt: skip
    Dispute.objects.update(opened_at=timezone.now() - timedelta(hours=2, minutes=11), blocks=4)
    html = as_user(client, tom).get("/queue/").content.decode()
    wanted = [
        "High", "Back off, or not?", conflict.task.ref, "conflict 1 of 2", "Coder declined", "2 h 11 m",
        "<strong>4</strong> tasks", f'href="/queue/{conflict.dispute.ref}/"',
    ]  # fmt: skip
    for words in wanted:
        assert words in html


def test_each_tab_holds_its_part(client: Client, ledger: Project, vera: User, lea: User) -> None:
    dispute(ledger, "open")
    waiting, settled = dispute(ledger, "ruled"), dispute(ledger, "settled")
    rulings.decide(waiting, "uphold_reviewer", user=lea)
    settle(settled)
    as_user(client, lea)
    assert questions(client, "/queue/") == ["open"]
    assert questions(client, "/queue/team/") == ["open"]
    assert questions(client, "/queue/waiting/") == ["ruled"]
    assert questions(client, "/queue/settled/") == ["settled"]
    assert "A by Lea Lindt" in client.get("/queue/waiting/").content.decode()
    counts = {each.name: number for each, _, number in client.get("/queue/").context["tabs"]}
    assert counts == {
        "queue": "1", "queue-team": "1", "queue-waiting": "1", "queue-snoozed": "0", "queue-settled": "1",
    }  # fmt: skip


def test_settled_ones_stand_newest_first(client: Client, ledger: Project, lea: User) -> None:
    for question in ("first", "second"):
        settle(dispute(ledger, question))
    assert questions(as_user(client, lea), "/queue/settled/") == ["second", "first"]


def test_a_viewer_sees_the_teams_disputes_and_has_no_turn(
    client: Client, ledger: Project, vera: User
) -> None:
    dispute(ledger)
    as_user(client, vera)
    assert questions(client, "/queue/") == []
    assert questions(client, "/queue/team/") == ["Back off, or not?"]


def test_an_outsider_sees_nothing_of_others(client: Client, ledger: Project, otto: User) -> None:
    dispute(ledger)
    settle(dispute(ledger))
    as_user(client, otto)
    for path in ("/queue/", "/queue/team/", "/queue/waiting/", "/queue/settled/"):
        html = client.get(path).content.decode()
        assert "Back off" not in html
        assert "Ledger" not in html


def test_whoever_is_not_signed_in_goes_to_the_admins_login(client: Client, ledger: Project) -> None:
    conflict = dispute(ledger)
    for path in ("/queue/", "/queue/settled/", f"/queue/{conflict.dispute.ref}/"):
        response = client.get(path)
        assert (response.status_code, response["Location"]) == (302, f"/admin/login/?next={path}")


def test_the_queue_is_only_read(client: Client, tom: User) -> None:
    assert as_user(client, tom).post("/queue/").status_code == 405


def test_an_empty_queue_says_so(client: Client, ledger: Project, tom: User) -> None:
    as_user(client, tom)
    assert "Nothing waits for you." in client.get("/queue/").content.decode()
    assert "Nothing is settled yet." in client.get("/queue/settled/").content.decode()
    lost = as_user(client, create_user("lost")).get("/queue/").content.decode()
    assert "You are in no project yet." in lost
    assert "Nothing waits for you." not in lost
    assert "You are in no project yet." in client.get("/queue/team/").content.decode()
    as_user(client, tom)
    dispute(ledger)
    empty = client.get("/queue/", {"q": "turtles"}).content.decode()
    assert "Nothing matches." in empty
    assert 'href="/queue/settled/?q=turtles">Settled</a>' in empty


def test_filters_stand_in_the_address(client: Client, ledger: Project, tom: User) -> None:
    atlas = create_project("atlas", members={tom: "triager"})
    dispute(ledger, "of the ledger")
    dispute(atlas, "of the atlas", severity="critical")
    parked = create_task(ledger, status="in_progress", severity="medium", round=1)
    opening.stop_for_help(parked, "blocked", "Who has the key?")
    as_user(client, tom)
    assert questions(client, "/queue/", project="atlas") == ["of the atlas"]
    assert questions(client, "/queue/", severity="high") == ["of the ledger"]
    assert questions(client, "/queue/", kind="help") == ["Who has the key?"]
    assert questions(client, "/queue/", kind="disagreement", project="ledger") == ["of the ledger"]


def test_search_finds_questions_titles_codes_paths_and_names(
    client: Client, ledger: Project, tom: User
) -> None:
    wanted = dispute(ledger, "Wait longer each time?")
    wanted.finding.path = "webhooks/delivery.py"
    wanted.finding.code = "ISSUE-R7-042"
    wanted.finding.save()
    opening.refresh(wanted.dispute)
    dispute(ledger, "Rename it?")
    as_user(client, tom)
    asked = (
        "longer EACH", "each  deliv longer", wanted.task.title, "r7-042", "hooks/deliv", wanted.dispute.ref,
        wanted.ref, wanted.task.ref, wanted.task.ref.title(),
    )  # fmt: skip
    for words in asked:
        assert questions(client, "/queue/", q=words) == ["Wait longer each time?"], words
    for words in ("D-99999999999999999999999", "C-99999999999999999999999", "longer rename"):
        assert questions(client, "/queue/", q=words) == []


def test_an_unknown_filter_is_named_and_filters_nothing(client: Client, ledger: Project, tom: User) -> None:
    dispute(ledger)
    response = as_user(client, tom).get("/queue/", {"project": "nowhere", "page": "many"})
    assert response.status_code == 200
    assert "Select a valid choice" in response.content.decode()
    assert len(response.context["rows"]) == 1


def test_another_teams_project_is_no_choice(client: Client, ledger: Project, otto: User) -> None:
    html = as_user(client, otto).get("/queue/", {"project": "ledger"}).content.decode()
    assert "Select a valid choice" in html


def test_thirty_rows_make_a_page_and_pages_keep_the_filters(
    client: Client, ledger: Project, tom: User
) -> None:
    tasks = [create_task(ledger) for _ in range(31)]
    Dispute.objects.bulk_create(
        Dispute(project=ledger, task=task, severity="high", question="Q") for task in tasks
    )
    response = as_user(client, tom).get("/queue/", {"severity": "high"})
    assert len(response.context["rows"]) == 30
    assert "?severity=high&amp;page=2" in response.content.decode()
    for asked in ("2", "99"):
        last = client.get("/queue/", {"severity": "high", "page": asked}).context
        assert (len(last["rows"]), last["page"].number) == (1, 2), "a list may be shorter than it was"
    assert client.get("/queue/", {"severity": "low", "page": "2"}).context["page"].number == 1


def test_counts_stop_at_ninety_nine(ledger: Project, tom: User) -> None:
    tasks = [create_task(ledger) for _ in range(100)]
    Dispute.objects.bulk_create(
        Dispute(project=ledger, task=task, severity="low", question="Q") for task in tasks
    )
    assert listing.count_of(listing.MINE, tom) == "99+"


@for_each("path", ["/queue/", "/queue/team/", "/queue/waiting/", "/queue/settled/"])
def test_a_tab_costs_as_many_queries_for_twelve_rows_as_for_three(
    client: Client, ledger: Project, lea: User, path: str
) -> None:
    as_user(client, lea)
    costs = []
    for number in (3, 9):
        for _ in range(number):
            conflict = dispute(ledger)
            if path == "/queue/waiting/":
                rulings.decide(conflict, "uphold_reviewer", user=lea)
            if path == "/queue/settled/":
                settle(conflict)
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            response = client.get(path)
        costs.append(len(queries))
    assert len(response.context["rows"]) == 12
    assert costs[0] == costs[1] <= 12
    cache.clear()
    with CaptureQueriesContext(connection) as queries:
        filtered = client.get(path, {"holder": "nobody"})
    assert len(filtered.context["rows"]) == 12
    assert len(queries) == costs[0]


def test_text_of_agents_is_text(client: Client, ledger: Project, tom: User) -> None:
    dispute(ledger, "<script>alert(1)</script>\u202egnp.exe\x07")
    html = as_user(client, tom).get("/queue/").content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;gnp.exe" in html
    assert "\u202e" not in html
    assert "\x07" not in html


def test_inside_a_dispute_the_worst_comes_first_then_the_older(ledger: Project) -> None:
    """A critical one of round 5, then the high ones of rounds 2 and 3."""
    r2 = dispute(ledger, "Round 2")
    more = {"kind": "disagreement", "origin": "cli", "opened_as": "coder"}
    r3 = opening.open_conflict(r2.task, question="Round 3", severity="high", **more)
    r5 = opening.open_conflict(r2.task, question="Round 5", severity="critical", **more)
    assert listing.in_order([r3, r2, r5]) == [r5, r2, r3]


@for_each(
    ("kind", "option", "word"),
    [
        ("disagreement", "uphold_coder", "B"),
        ("silence", "false_positive", "False positive"),
        ("help", "retry", "Retry"),
    ],
)
def test_what_was_ruled_is_told_in_a_word(kind: str, option: str, word: str) -> None:
    assert Decision(option=option, conflict=Conflict(kind=kind)).word == word
