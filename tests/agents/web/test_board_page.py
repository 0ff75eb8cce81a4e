"""The board of a project: its columns, its cards, where they may go, and what it costs."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from agents.web import board as boards
from agents.web.board import CARDS, Board, Column
from disputes import opening
from tasks.dependencies import recount
from tasks.models import Comment, Dependency, Project, Task
from tests.asking import as_user, by_index
from tests.cases import for_each
from tests.factories import (
    create_agent,
    create_project,
    create_run,
    create_section,
    create_submission,
    create_task,
)

pytestmark = pytest.mark.django_db

PATH = "/projects/ledger/board/"


def board(client: Client, **query: Any) -> Board:
    reply = client.get(PATH, query)
    assert reply.status_code == 200
    return reply.context["board"]


def column(client: Client, key: str, **query: Any) -> Column:
    return next(each for each in board(client, **query).columns if each.key == key)


def numbers(found: Column) -> list[int]:
    return [card.task.number for card in found.cards]


def test_each_status_stands_in_its_column(client: Client, ledger: Project, vera: User) -> None:
    wanted = {
        "pending": ["pending"], "in_progress": ["in_progress"], "review": ["review"],
        "failed": ["failed"], "human": ["disputed"], "deferred": ["deferred"], "done": ["cancelled"],
    }  # fmt: skip
    for statuses in wanted.values():
        for status in statuses:
            create_task(ledger, status=status)
    create_task(create_project("atlas"), status="pending")
    found = board(as_user(client, vera))
    assert {each.key: [card.task.status for card in each.cards] for each in found.columns} == wanted
    assert [each.count for each in found.columns] == [1] * 7


def full(project: Project) -> None:
    """The six stages of the full preset."""
    project.settings = {"stages": "full"}
    project.save()


def place(task: Task, stage: str, home: str = "", escalation: str = "") -> Task:
    Task.objects.filter(pk=task.pk).update(stage=stage, home_stage=home, escalation=escalation, round=2)
    return task


def test_several_stages_are_columns_of_their_own(client: Client, ledger: Project, vera: User) -> None:
    full(ledger)
    create_task(ledger, status="pending", number=1)
    place(create_task(ledger, status="review", number=2), "dev")
    place(create_task(ledger, status="deferred", number=3), "dev")
    place(create_task(ledger, status="cancelled", number=4), "qa")

    found = {each.title: numbers(each) for each in board(as_user(client, vera)).columns}

    assert list(found) == [
        "Stories", "Architecture", "Tests", "Development", "Review", "QA", "Backflow", "Failed",
        "Needs a person", "Deferred", "Done",
    ]  # fmt: skip
    assert (found["Stories"], found["Development"], found["Deferred"], found["Done"]) == ([1], [2], [3], [4])


def test_what_was_sent_back_stands_in_backflow_and_nowhere_else(
    client: Client, ledger: Project, vera: User
) -> None:
    full(ledger)
    place(create_task(ledger, status="in_progress", number=1), "tests", home="dev")
    place(create_task(ledger, status="in_progress", number=2), "tests")

    found = {each.key: each for each in board(as_user(client, vera)).columns}

    assert (numbers(found["backflow"]), numbers(found["stage-tests"])) == ([1], [2])
    assert (found["backflow"].count, found["stage-tests"].count) == (1, 1)
    (card,) = found["backflow"].cards
    assert (card.stage, card.sent_back_by) == ("Tests", "dev")


def test_a_column_of_specialists_says_who_watches_it(client: Client, ledger: Project, vera: User) -> None:
    column_of = "needs-security-review"
    place(create_task(ledger, status="in_progress", number=1), column_of, "dev", "security")
    create_agent("coder", name="anybody")

    unwatched = column(as_user(client, vera), f"stage-{column_of}")
    create_agent("coder", name="sam", kind="security-specialist")
    watched = column(as_user(client, vera), f"stage-{column_of}")

    assert (numbers(unwatched), unwatched.is_unwatched) == ([1], True)
    assert unwatched.hint == "Nobody watches it: no active coder of the type security-specialist works here"
    assert (watched.hint, watched.is_unwatched) == ("Watched by sam", False)
    assert not any(each.key == "stage-needs-perf-tuning" for each in board(client).columns)


def test_the_tag_of_a_dispute_narrows_the_board(client: Client, ledger: Project, vera: User) -> None:
    full(ledger)
    disputed = place(create_task(ledger, status="in_progress", number=1), "tests", home="dev")
    place(create_task(ledger, status="in_progress", number=2), "tests")
    Comment.objects.create(
        project=ledger, task=disputed, body="Wrong.", target="test_sum", by_label="dev-agent", by_kind="run",
        stage="dev", sends="back",
    )  # fmt: skip

    found = board(as_user(client, vera), dispute="dispute-tests-vs-dev")

    assert [numbers(each) for each in found.columns if each.count] == [[1]]


def test_work_stands_in_the_loops_order_and_what_is_done_newest_first(
    client: Client, ledger: Project, vera: User
) -> None:
    for number, rank in ((1, 30), (2, 10), (3, 20)):
        create_task(ledger, number=number, rank=rank)
    for number in (4, 5, 6):
        create_task(ledger, number=number, status="cancelled", rank=-number)
    client = as_user(client, vera)
    assert numbers(column(client, "pending")) == [2, 3, 1]
    assert numbers(column(client, "done")) == [6, 5, 4]


def test_a_full_column_shows_its_first_cards_and_how_many_are_left(
    client: Client, ledger: Project, vera: User
) -> None:
    for number in range(1, CARDS + 8):
        create_task(ledger, number=number, rank=number)
    reply = as_user(client, vera).get(PATH)
    pending = reply.context["board"].columns[0]
    assert (numbers(pending), pending.count) == (list(range(1, CARDS + 1)), CARDS + 7)
    assert "and 7 more" in reply.content.decode()


def test_what_is_done_is_counted_only_so_far(
    client: Client, ledger: Project, vera: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "DONE_MAX", CARDS + 2)
    for number in range(1, CARDS + 8):
        create_task(ledger, number=number, status="cancelled")
    reply = as_user(client, vera).get(PATH)
    done = reply.context["board"].columns[-1]
    assert (len(done.cards), done.count, done.is_capped) == (CARDS, CARDS + 2, True)
    assert f">{CARDS + 2}+</span>" in reply.content.decode()
    create_task(ledger, number=CARDS + 8, status="pending")
    more = re.search(r'<a href="([^"]+)">and 2\+ more</a>', reply.content.decode())
    assert more is not None
    listed = client.get(unescape(more[1])).context["cl"].queryset
    assert listed.count() == CARDS + 7, "what is not done is not listed"


def test_every_card_says_why_it_is_not_moving(client: Client, ledger: Project, vera: User) -> None:
    first = create_task(ledger, number=1, title="Walls")
    second = create_task(ledger, number=2)
    Dependency.objects.create(task=second, on=first)
    recount([second])
    lines = {card.task.number: card.standing.line for card in column(as_user(client, vera), "pending").cards}
    assert lines == {
        1: "The coder's turn, but no coder agent works in Ledger.", 2: "Waits for ledger-1 Walls to land.",
    }  # fmt: skip


def test_filters_narrow_cards_and_counts(client: Client, ledger: Project, vera: User) -> None:
    doors = create_section(ledger, "Doors")
    create_task(section=doors, number=1, title="Hinges")
    create_task(ledger, section=create_section(ledger), number=2, title="Bricks", severity="high")
    client = as_user(client, vera)
    for query, wanted in (
        ({"q": "hinge"}, [1]), ({"q": "ledger-2"}, [2]), ({"section": doors.pk}, [1]),
        ({"severity": "high"}, [2]), ({"section": 99}, [1, 2]), ({}, [1, 2]),
        ({"q": "nowhere"}, []),
    ):  # fmt: skip
        found = column(client, "pending", **query)
        assert (numbers(found), found.count) == (wanted, len(wanted)), query


# --- Moves ------------------------------------------------------------------------------------------------


@for_each(
    ("status", "tom_may", "lea_may"),
    [
        ("pending", {"deferred"}, {"deferred", "done"}),
        ("review", {"deferred"}, {"deferred", "done"}),
        ("disputed", {"deferred"}, {"deferred", "done"}),
        ("deferred", {"pending", "in_progress"}, {"pending", "in_progress", "done"}),
        ("cancelled", set(), {"pending", "in_progress"}),
    ],
)
def test_only_legal_moves_are_offered(
    client: Client, ledger: Project, vera: User, tom: User, lea: User, status: str, tom_may: set[str],
    lea_may: set[str],
) -> None:  # fmt: skip
    create_task(ledger, status=status)
    for user, wanted in ((vera, set()), (tom, tom_may), (lea, lea_may)):
        found = board(as_user(client, user))
        (card,) = [card for each in found.columns for card in each.cards]
        assert card.may_move is bool(wanted)
        assert {key for offer in found.moves for key in offer.columns if offer.at == card.at} == wanted


def test_a_moved_card_leads_back_to_the_board_as_it_was_asked_for(
    client: Client, ledger: Project, tom: User
) -> None:
    task = create_task(ledger, number=7)
    sent = {"from": "board", "next": f"{PATH}?severity=medium", "version": str(task.version)}
    reply = as_user(client, tom).post("/tasks/ledger-7/defer/", sent)
    assert (reply.status_code, reply.headers["Location"]) == (302, f"{PATH}?severity=medium#ledger-7")
    evil = {"from": "board", "next": "//evil.example/", "note": "x"}
    reply = client.post("/tasks/ledger-7/resume/", evil)
    assert reply.headers["Location"] == f"{PATH}#ledger-7"


def test_a_refused_move_shows_why_and_the_card_where_it_is(
    client: Client, ledger: Project, tom: User
) -> None:
    task = create_task(ledger, number=7)
    Task.objects.update(status="review", version=3)
    sent = {"from": "board", "version": str(task.version), "note": "Not <now>."}
    reply = as_user(client, tom).post("/tasks/ledger-7/defer/", sent)
    shown = reply.content.decode()
    assert reply.status_code == 409
    assert "ledger-7 has moved on: it is review now." in shown
    assert "Not &lt;now&gt;." in shown
    assert [numbers(each) for each in reply.context["board"].columns if each.key == "review"] == [[7]]


# --- Rights, and the way there ----------------------------------------------------------------------------


def test_outsiders_see_no_board(client: Client, ledger: Project, otto: User) -> None:
    assert as_user(client, otto).get(PATH).status_code == 404
    assert client.get("/board/").status_code == 200  # it says that there is none


def test_the_sidebars_entry_leads_to_the_board_looked_at_last(
    client: Client, ledger: Project, tom: User
) -> None:
    create_project("atlas", members={tom: "viewer"})
    client = as_user(client, tom)
    assert client.get("/board/").headers["Location"] == "/projects/atlas/board/"
    client.get(PATH)
    assert client.get("/board/").headers["Location"] == PATH
    assert client.get("/board/?project=atlas").headers["Location"] == "/projects/atlas/board/"
    assert client.get("/board/?project=nothing").status_code == 302


def crowd(project: Project) -> None:
    section = create_section(project)
    section.depends_on.add(create_section(project))
    for status in ("pending", "in_progress", "review", "disputed", "failed", "deferred", "cancelled"):
        task = create_task(section=section, status=status, round=1)
        create_submission(task)
        Dependency.objects.create(task=task, on=create_task(project))
        recount([task])
    opening.open_conflict(
        create_task(project, status="disputed", round=1), kind="disagreement", origin="cli",
        opened_as="coder", question="Back off?", severity="high", reviewer_position="Yes.",
        coder_position="No.",
    )  # fmt: skip


@for_each("times", [1, 4])
@for_each(("settings", "most"), [({}, 15), ({"stages": "full"}, 16)])
def test_a_board_costs_the_same_at_any_size(
    client: Client, ledger: Project, tom: User, settings: Any, most: int, times: int,
    django_assert_max_num_queries: Any,
) -> None:  # fmt: skip
    """Twelve queries, and one for each sort of thing that only some tasks wait for."""
    Project.objects.update(settings=settings)
    create_agent("coder")
    for _ in range(times):
        crowd(ledger)
    create_run(create_task(ledger, status="in_progress"), status="queued")
    client = as_user(client, tom)
    client.get("/board/")
    session = client.session
    session["board-project"] = "ledger"
    session.save()
    cache.clear()
    with django_assert_max_num_queries(most):
        client.get(PATH)


def test_no_large_table_is_read_through_for_a_board(client: Client, ledger: Project, tom: User) -> None:
    create_agent("coder")
    crowd(ledger)
    by_index(lambda: board(as_user(client, tom)), {"task_board", "task_done"})
