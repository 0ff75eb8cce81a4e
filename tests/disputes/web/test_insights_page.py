"""The insights as a page and as files: only one's own projects, every figure with its number."""

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from disputes import tallies
from disputes.models import Dispute
from disputes.web.insights import charts
from disputes.web.insights.views import harmless
from tasks.models import Project
from tests.asking import as_user
from tests.cases import for_each
from tests.disputes.ruled_work import create_day, create_ruling
from tests.factories import create_project, create_task

HOSTILE = '=HYPERLINK("https://example.org")<script>alert(1)</script>'
# A page in the admin's frame; the rest of the fifteen is for what the frame asks.
QUERIES = 18


def figures(client: Client, query: str = "") -> dict[tuple[str, str, str], dict[str, Any]]:
    reply = client.get(f"/insights/figures.json{query}")
    assert reply.status_code == 200, reply.content
    return {(each["section"], each["name"], each["figure"]): each for each in reply.json()["figures"]}


@pytest.fixture
def ruled(ledger: Project, tom: User) -> Project:
    """Eight rulings: five for the reviewer, two for the coder, one for both; one of them in no time."""
    sides = ["uphold_reviewer"] * 5 + ["uphold_coder"] * 2 + ["compromise"]
    for n, option in enumerate(sides):
        at = timezone.now() - timedelta(days=n)
        create_ruling(ledger, tom, at, option=option, minutes=10 * (n + 1), seconds=2 if n == 0 else 30)
    return ledger


# --- Rights -----------------------------------------------------------------------------------------------


def test_only_ones_own_projects_are_counted(ruled: Project, vera: User, otto: User) -> None:
    other = create_project("secret", members={otto: "triager"})
    create_ruling(other, otto, timezone.now(), coder="coder-of-others")

    for path in ("/insights/", "/insights/figures.csv", "/insights/figures.json"):
        assert b"coder-of-others" not in as_user(Client(), vera).get(path).content
        assert b"secret" not in as_user(Client(), vera).get(path).content
        assert b"coder-of-others" in as_user(Client(), otto).get(path).content
        assert as_user(Client(), vera).get(f"{path}?project=secret").status_code == 404
        assert as_user(Client(), vera).get(f"{path}?project=nowhere").status_code == 404
        assert Client().get(path).status_code == 302
        assert as_user(Client(), vera).post(path).status_code == 405


def test_a_person_without_projects_is_told_so(ruled: Project, otto: User) -> None:
    page = as_user(Client(), otto).get("/insights/").content.decode()

    assert "You are in no project" in page
    assert "coder-1" not in page


def test_a_superuser_sees_all_and_one_project_where_it_is_asked_for(
    ruled: Project, otto: User, admin_user: User
) -> None:
    create_ruling(create_project("other"), otto, timezone.now(), coder="coder-9")
    client = as_user(Client(), admin_user)

    assert ("Sides, by coder", "coder-9", "for the reviewer") in figures(client)
    assert ("Sides, by coder", "coder-9", "for the reviewer") not in figures(client, "?project=ledger")


# --- Figures ----------------------------------------------------------------------------------------------


def test_every_share_has_its_number_and_its_interval(ruled: Project, vera: User) -> None:
    found = figures(as_user(Client(), vera))
    share = found["Sides, by coder", "coder-1", "for the reviewer"]

    assert share["n"] == 7
    assert share["value"] == pytest.approx(5 / 7, abs=0.001)
    assert (share["low"], share["high"]) == pytest.approx((0.359, 0.918), abs=0.001)
    assert found["Sides, by coder", "coder-1", "both or own words"]["value"] == 1
    assert found["Rulings", "all", "made in under 5 s"]["value"] == 0.125
    assert found["Rulings", "all", "people who ruled"]["value"] == 1
    assert found["Time to ruling", "All", "median"]["value"] == pytest.approx(45 * 60, rel=0.25)


def test_of_few_there_is_a_number_but_no_share(ruled: Project, vera: User) -> None:
    few = figures(as_user(Client(), vera), "?days=7")["Silence flags", "all", "confirmed"]

    assert (few["value"], few["low"], few["high"], few["n"]) == (None, None, None, 0)
    assert "too few" in as_user(Client(), vera).get("/insights/").content.decode()


def test_one_rejection_is_not_said_as_many(ledger: Project, vera: User) -> None:
    for rejections in (0, 1, 2, 9):
        create_task(
            ledger, status="completed", finished_by="hand", rejections=rejections, status_at=timezone.now()
        )
    names = [name for section, name, _ in figures(as_user(Client(), vera)) if section == "Tasks"]
    assert names == [
        "completed", "rejected 0 times", "rejected 1 time", "rejected 2 times", "rejected 6 or more times",
    ]  # fmt: skip
    assert "1 times" not in as_user(Client(), vera).get("/insights/").content.decode()


def test_a_shorter_period_holds_less(ruled: Project, vera: User) -> None:
    client = as_user(Client(), vera)

    assert figures(client, "?days=7")["Rulings", "all", "made"]["value"] == 7
    assert figures(client, "?days=30")["Rulings", "all", "made"]["value"] == 8
    assert figures(client, "?days=12345")["Rulings", "all", "made"]["value"] == 8


def test_the_figures_are_the_same_once_the_days_are_counted(ruled: Project, vera: User, tom: User) -> None:
    create_day(ruled, tom, timezone.now() - timedelta(days=3))
    before = figures(as_user(Client(), vera), "?days=90")
    tallies.rebuild()

    assert figures(as_user(Client(), vera), "?days=90") == before


def test_what_is_open_is_told_with_what_waits_too_long(ledger: Project, vera: User) -> None:
    ledger.settings = {"timeout_days": 10}
    ledger.save()
    patient = create_project("patient", members={vera: "viewer"}, settings={"timeout_days": 30})
    for project, days in ((ledger, 0), (ledger, 2), (ledger, 12), (patient, 12)):
        task = create_ruling(project, vera, timezone.now()).conflict.task
        Dispute.objects.filter(task=task).update(
            status="open", closed_at=None, closed_reason="", opened_at=timezone.now() - timedelta(days=days)
        )
    found = figures(as_user(Client(), vera))

    assert found["Disputes", "now", "open"]["value"] == 4
    assert found["Disputes", "now", "open for more than a day"]["value"] == 3
    assert found["Disputes", "now", "stale"]["value"] == 1


# --- Page and files ---------------------------------------------------------------------------------------


def test_the_page_draws_without_scripts_or_styles_and_with_a_table_beside(ruled: Project, vera: User) -> None:
    page = as_user(Client(), vera).get("/insights/?days=90").content.decode()
    main = page[page.index('<main class="insights">') : page.index("</main>")]

    assert main.count('<svg class="figure-chart"') == 2
    assert main.count("<table>") >= 7
    assert "<polyline" not in main or "points=" in main
    assert "style=" not in main
    assert "<script" not in main


def test_names_that_agents_chose_are_words_on_the_page_and_no_formula_in_a_spreadsheet(
    ledger: Project, tom: User
) -> None:
    create_ruling(ledger, tom, timezone.now(), coder=HOSTILE)
    client = as_user(Client(), tom)

    assert b"<script>alert" not in client.get("/insights/").content
    reply = client.get("/insights/figures.csv")
    rows = list(csv.DictReader(io.StringIO(reply.content.decode())))
    names = {row["name"] for row in rows if row["section"] == "Sides, by coder"}
    assert names == {f"'{HOSTILE}"}
    assert reply["Content-Disposition"] == 'attachment; filename="insights-30-days.csv"'


@for_each("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_a_cell_that_would_calculate_is_taken_as_words(cell: str) -> None:
    assert harmless(cell) == f"'{cell}"


@for_each("cell", ["coder-1", "", -0.5, 3, None])
def test_other_cells_stay_as_they_are(cell: Any) -> None:
    assert harmless(cell) == cell


def test_the_csv_has_all_that_the_json_has(ruled: Project, vera: User) -> None:
    reply = as_user(Client(), vera).get("/insights/figures.csv?days=90")
    rows = list(csv.DictReader(io.StringIO(reply.content.decode())))

    assert {(row["section"], row["name"], row["figure"]) for row in rows} == set(
        figures(as_user(Client(), vera), "?days=90")
    )


@for_each("is_counted", [True, False])
def test_the_number_of_queries_does_not_grow(
    ruled: Project, tom: User, vera: User, is_counted: bool, django_assert_max_num_queries: Any
) -> None:
    for n in range(4):
        create_day(create_project(f"more{n}", members={vera: "viewer"}), tom, timezone.now())
    if is_counted:
        tallies.rebuild()
    client = as_user(Client(), vera)

    with django_assert_max_num_queries(QUERIES):
        client.get("/insights/?days=90")


# --- Charts -----------------------------------------------------------------------------------------------


def test_a_line_is_broken_where_there_is_nothing_to_say() -> None:
    chart = charts.lines([("median", "is-main", [60, 120, None, 30, None, 90, 90])], first="", last="")
    line = chart.lines[0]

    assert [piece.count(",") for piece in line.pieces] == [2, 2]
    assert len(line.dots) == 1


@for_each("values", [[], [None], [0.0], [5.0], [10**9, 1.0]])
def test_a_chart_of_whatever_stays_in_its_frame(values: list[float | None]) -> None:
    chart = charts.lines([("median", "is-main", values)], first="", last="")

    assert 2 <= len(chart.ticks) <= charts.TICKS + 1
    for y, _ in chart.ticks:
        assert 0 <= y <= charts.HEIGHT
    for x, y in chart.lines[0].dots:
        assert 0 <= x <= charts.WIDTH
        assert 0 <= y <= charts.HEIGHT


def test_bars_stand_side_by_side_on_the_base() -> None:
    chart = charts.bars([("is-tail", [4, 0, 8]), ("is-main", [2, 1, 0])], first="", last="")

    assert len(chart.bars) == 4
    assert all(abs(y + height - chart.base) < 0.2 for _, _, y, _, height in chart.bars)
    assert chart.ticks[-1][1] == "10"


@for_each(("seconds", "words"), [(0, "0"), (30, "30 s"), (60, "1 m"), (7200, "2 h"), (86400 * 14, "14 d")])
def test_a_round_duration_is_told_in_one_unit(seconds: int, words: str) -> None:
    assert charts.short(seconds) == words
