"""The queue of a team: who holds what, filters, saved views, sleeping, on call, undo without leaving."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from disputes import opening, rulings, triage
from disputes.models import Conflict, Decision, Dispute, OnCall, SavedView
from tasks.models import Event, Project
from tests.asking import as_user
from tests.cases import for_each
from tests.factories import create_finding, create_project, create_review, create_submission, create_task

pytestmark = pytest.mark.django_db


def dispute(project: Project, question: str = "Back off, or not?", **kwargs: Any) -> Dispute:
    task = create_task(project, status="disputed", round=1)
    submission = create_submission(task, by_model=kwargs.pop("coder_model", "small-1"))
    review = create_review(submission, by_model=kwargs.pop("reviewer_model", "large-3"))
    given = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder", "severity": "high",
        "finding": create_finding(review), "submission": submission,
        "reviewer_position": "Wait longer each time.", "coder_position": "The limiter bounds it.",
    } | kwargs  # fmt: skip
    return opening.open_conflict(task, question=question, **given).dispute


def questions(client: Client, path: str = "/queue/", **query: str) -> list[str]:
    return [row.dispute.question for row in client.get(path, query).context["rows"]]


def in_an_hour() -> Any:
    return timezone.now() + timedelta(hours=1)


# --- Whose turn it is -------------------------------------------------------------------------------------


def test_what_somebody_else_was_given_is_their_turn_and_the_teams(
    client: Client, ledger: Project, tom: User, lea: User
) -> None:
    triage.assign(dispute(ledger, "Tom’s"), tom, by=lea)
    dispute(ledger, "anybody’s")
    as_user(client, lea)
    assert questions(client) == ["anybody’s"]
    assert questions(client, "/queue/team/") == ["Tom’s", "anybody’s"]
    as_user(client, tom)
    assert questions(client) == ["Tom’s", "anybody’s"]
    html = client.get("/queue/").content.decode()
    assert 'title="2 h' not in html
    assert '<span class="queue-count">2</span>' in html


def test_a_row_says_who_decides_just_now_and_who_has_it(
    client: Client, ledger: Project, tom: User, lea: User
) -> None:
    claimed, given = dispute(ledger), dispute(ledger)
    dispute(ledger)
    triage.claim(claimed, lea)
    triage.assign(given, tom, by=lea)
    held = {row.dispute: row.held for row in as_user(client, tom).get("/queue/").context["rows"]}
    assert (held[claimed].name, held[claimed].is_me) == ("Lea", False)
    assert held[claimed].until is not None
    assert (held[given].name, held[given].until) == ("You", None)
    assert sorted(each.name for each in held.values()) == ["", "Lea", "You"]
    assert "deciding" in client.get("/queue/").content.decode()


def test_your_turn_says_who_is_on_call(client: Client, ledger: Project, tom: User, lea: User) -> None:
    today = timezone.localdate()
    OnCall.objects.create(project=ledger, user=tom, first_day=today, last_day=today)
    html = as_user(client, lea).get("/queue/").content.decode()
    assert "On call: <strong>Tom Tran</strong> for Ledger" in html.replace("</span>On", "On")
    assert "<strong>You</strong> for Ledger" in as_user(client, tom).get("/queue/").content.decode()


# --- Filters ----------------------------------------------------------------------------------------------


def test_more_filters_narrow_the_queue(client: Client, ledger: Project, tom: User, lea: User) -> None:
    one = dispute(ledger, "one", reason="security_concern", coder_label="coder-7", coder_model="tiny-9")
    two = dispute(ledger, "two", reviewer_label="reviewer-5", reviewer_model="huge-8")
    Dispute.objects.filter(pk=one.pk).update(opened_at=timezone.now() - timedelta(days=4))
    triage.claim(one, lea)
    triage.assign(two, tom, by=lea)
    as_user(client, tom)
    for query, wanted in (
        ({"reason": "security_concern"}, ["one"]),
        ({"coder": "CODER-7"}, ["one"]),
        ({"reviewer": "reviewer-5"}, ["two"]),
        ({"model": "tiny-9"}, ["one"]),
        ({"model": "huge-8"}, ["two"]),
        ({"age": "3d"}, ["one"]),
        ({"age": "7d"}, []),
        ({"holder": "me"}, ["two"]),
        ({"holder": "@lea"}, ["one"]),
        ({"holder": "somebody"}, ["one", "two"]),
        ({"holder": "nobody"}, []),
    ):
        assert sorted(questions(client, **query)) == wanted, query
    assert "Select a valid choice" in client.get("/queue/", {"holder": "@otto"}).content.decode()


def test_no_page_of_the_queue_costs_more_than_twelve_queries(
    client: Client, ledger: Project, tom: User, django_assert_max_num_queries: Any
) -> None:
    rows = [dispute(ledger) for _ in range(5)]
    triage.claim(rows[0], tom)
    triage.assign(rows[1], tom, by=tom)
    triage.snooze(rows[2], by=tom, until=in_an_hour())
    rulings.decide(rows[3].conflicts.get(), "uphold_reviewer", user=tom)
    SavedView.objects.create(user=tom, name="Mine", tab="queue")
    as_user(client, tom)
    for path in (
        "/queue/",
        "/queue/?q=why",
        "/queue/team/?holder=me",
        "/queue/waiting/",
        "/queue/snoozed/",
        "/queue/settled/",
    ):
        cache.clear()
        with django_assert_max_num_queries(12):
            assert client.get(path).status_code == 200


# --- Saved views ------------------------------------------------------------------------------------------


def test_a_view_is_kept_opened_and_deleted(client: Client, ledger: Project, tom: User, lea: User) -> None:
    as_user(client, tom)
    sent = {"name": "Worst first", "tab": "queue-team", "query": "severity=critical&page=3&next=%2F%2Fevil"}
    assert client.post("/queue/views/", sent)["Location"] == "/queue/team/?severity=critical"
    client.post("/queue/views/", sent | {"query": "severity=high"})
    view = SavedView.objects.get()
    assert (view.user, view.name, view.tab, view.query) == (tom, "Worst first", "queue-team", "severity=high")
    assert '<a href="/queue/team/?severity=high">Worst first</a>' in client.get("/queue/").content.decode()
    as_user(client, lea)
    assert "Worst first" not in client.get("/queue/").content.decode()
    assert client.post(f"/queue/views/{view.pk}/delete/").status_code == 404
    as_user(client, tom)
    assert client.post(f"/queue/views/{view.pk}/delete/")["Location"] == "/queue/"
    assert not SavedView.objects.exists()


def test_a_view_without_a_name_is_not_kept(client: Client, tom: User) -> None:
    assert as_user(client, tom).post("/queue/views/").status_code == 302
    assert not SavedView.objects.exists()


# --- Sleeping ---------------------------------------------------------------------------------------------


def test_what_sleeps_is_in_its_own_tab_and_comes_back(client: Client, ledger: Project, tom: User) -> None:
    row = dispute(ledger)
    as_user(client, tom)
    answer = client.post(f"/queue/{row.ref}/snooze/", {"ending": "1h", "next": "/queue/?severity=high"})
    assert answer["Location"] == "/queue/?severity=high"
    assert f"{row.ref} sleeps until" in client.get("/queue/").content.decode()
    assert questions(client) == questions(client, "/queue/team/") == []
    assert questions(client, "/queue/snoozed/") == [row.question]
    assert "Until " in client.get("/queue/snoozed/").content.decode()
    Dispute.objects.update(snoozed_until=timezone.now() - timedelta(seconds=1))
    assert questions(client) == [row.question]
    assert "Until " not in client.get("/queue/").content.decode()
    assert questions(client, "/queue/snoozed/") == []


def test_a_snooze_ends_at_a_time_or_with_what_happens(client: Client, ledger: Project, tom: User) -> None:
    row = dispute(ledger)
    as_user(client, tom)
    moment = timezone.localtime() + timedelta(days=2)
    client.post(f"/queue/{row.ref}/snooze/", {"ending": "time", "until": f"{moment:%Y-%m-%dT%H:%M}"})
    row.refresh_from_db()
    assert row.snoozed_until == moment.replace(second=0, microsecond=0)
    client.post(f"/queue/{row.ref}/wake/")
    client.post(f"/queue/{row.ref}/snooze/", {"ending": "comment"})
    row.refresh_from_db()
    assert (row.snoozed_until, row.snoozed_for) == (None, "comment")
    kinds = list(Event.objects.filter(task=row.task).order_by("pk").values_list("kind", flat=True))
    assert kinds[-3:] == ["snoozed", "woken", "snoozed"]


@for_each("sent", [{}, {"ending": "time", "until": "soon"}, {"ending": "rain"}])
def test_a_snooze_without_an_end_says_so(
    client: Client, ledger: Project, tom: User, sent: dict[str, str]
) -> None:
    row = dispute(ledger)
    answer = as_user(client, tom).post(f"/queue/{row.ref}/snooze/", sent)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.content.decode()
    assert not Dispute.objects.filter(snoozed_at__isnull=False).exists()


# --- The menu of a row ------------------------------------------------------------------------------------


def test_the_menu_assigns_watches_and_makes_mine(
    client: Client, ledger: Project, tom: User, lea: User, vera: User
) -> None:
    row = dispute(ledger)
    as_user(client, tom)
    html = client.get(f"/queue/{row.ref}/holders/?part=1&next=/queue/").content.decode()
    assert "<html" not in html
    assert f'<option value="{lea.pk}">Lea Lindt</option>' in html
    assert "vera" not in html
    client.post(f"/queue/{row.ref}/assign/", {"to": lea.pk})
    assert Dispute.objects.get().assignee == lea
    client.post(f"/queue/{row.ref}/assign/", {"to": "me"})
    assert Dispute.objects.get().assignee == tom
    client.post(f"/queue/{row.ref}/assign/", {"to": "me"})
    assert Dispute.objects.get().assignee is None
    assert client.post(f"/queue/{row.ref}/assign/", {"to": vera.pk}).status_code == 422
    client.post(f"/queue/{row.ref}/follow/", {"follow": "on"})
    assert "Tom Tran follows" in client.get(f"/queue/{row.ref}/holders/").content.decode()
    client.post(f"/queue/{row.ref}/follow/", {"follow": "off"})
    assert not row.follows.exists()


def test_a_viewer_watches_and_does_nothing_else(
    client: Client, ledger: Project, vera: User, otto: User
) -> None:
    row = dispute(ledger)
    as_user(client, vera)
    html = client.get(f"/queue/{row.ref}/holders/").content.decode()
    assert f"/queue/{row.ref}/follow/" in html
    assert f"/queue/{row.ref}/assign/" not in html
    for act in ("claim", "release", "assign", "snooze", "wake"):
        assert client.post(f"/queue/{row.ref}/{act}/").status_code == 403
    assert client.post(f"/queue/{row.ref}/follow/").status_code == 302
    as_user(client, otto)
    for act in ("claim", "release", "assign", "snooze", "wake", "follow"):
        assert client.post(f"/queue/{row.ref}/{act}/").status_code == 404


def test_a_claim_is_told_to_whoever_asks_and_given_back(
    client: Client, ledger: Project, tom: User, lea: User
) -> None:
    row = dispute(ledger)
    assert as_user(client, lea).post(f"/queue/{row.ref}/claim/").json()["mine"]
    told = as_user(client, tom).post(f"/queue/{row.ref}/claim/").json()
    assert (told["mine"], told["by"]) == (False, "Lea Lindt")
    assert client.post(f"/queue/{row.ref}/release/").status_code == 204
    assert Dispute.objects.get().claimed_by == lea
    as_user(client, lea).post(f"/queue/{row.ref}/release/")
    assert Dispute.objects.get().claimed_by is None


# --- Undo -------------------------------------------------------------------------------------------------


def test_the_last_ruling_is_undone_without_leaving_the_queue(
    client: Client, ledger: Project, tom: User, lea: User
) -> None:
    conflict = Conflict.objects.get(dispute=dispute(ledger))
    rulings.decide(conflict, "uphold_reviewer", user=tom)
    as_user(client, tom)
    html = client.get("/queue/?severity=high").content.decode()
    decision = Decision.objects.get()
    assert f'action="/queue/decisions/{decision.pk}/undo/"' in html
    assert '<input type="hidden" name="next" value="/queue/?severity=high">' in html
    answer = client.post(f"/queue/decisions/{decision.pk}/undo/", {"next": "/queue/?severity=high"})
    assert answer["Location"] == "/queue/?severity=high"
    assert questions(client) == [conflict.question]
    assert "data-undo" not in client.get("/queue/").content.decode()


@for_each("elsewhere", ["https://example.org/", "//example.org/", "/\\example.org", "queue"])
def test_the_way_back_leads_to_a_page_of_ours(
    client: Client, ledger: Project, tom: User, elsewhere: str
) -> None:
    row = dispute(ledger)
    answer = as_user(client, tom).post(f"/queue/{row.ref}/follow/", {"next": elsewhere})
    assert answer["Location"] == f"/queue/{row.ref}/"


def test_a_ruling_that_a_prompt_has_used_offers_no_undo(client: Client, ledger: Project, tom: User) -> None:
    conflict = Conflict.objects.get(dispute=dispute(ledger))
    rulings.decide(conflict, "uphold_reviewer", user=tom)
    Decision.objects.update(used_at=timezone.now())
    assert "data-undo" not in as_user(client, tom).get("/queue/").content.decode()


# --- The rota in the admin --------------------------------------------------------------------------------


def test_a_maintainer_keeps_the_rota_and_names_only_who_may_rule(
    client: Client, ledger: Project, lea: User, tom: User, vera: User
) -> None:
    atlas = create_project("atlas", members={lea: "maintainer"})
    as_user(client, lea)
    days = {"first_day": "2026-11-23", "last_day": "2026-11-29"}
    for project, user, why in ((ledger, vera, "valid choice"), (atlas, tom, "may not rule in Atlas")):
        sent = {"project": project.pk, "user": user.pk, **days}
        assert why in client.post("/admin/disputes/oncall/add/", sent).content.decode()
    backwards = {"project": ledger.pk, "user": tom.pk, "first_day": "2026-11-29", "last_day": "2026-11-23"}
    assert "ends before" in client.post("/admin/disputes/oncall/add/", backwards).content.decode()
    assert client.post("/admin/disputes/oncall/add/", backwards | days).status_code == 302
    day = OnCall.objects.get()
    assert day.user == tom
    client.post(f"/admin/disputes/oncall/{day.pk}/delete/", {"post": "yes"})
    kinds = Event.objects.filter(kind__startswith="oncall").order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["oncall_added", "oncall_deleted"]


def test_what_refreshes_by_itself_tells_no_message_and_has_no_frame(
    client: Client, ledger: Project, tom: User
) -> None:
    row = dispute(ledger)
    as_user(client, tom)
    client.post(f"/queue/{row.ref}/follow/", {"next": "/queue/"})
    part = client.get("/queue/", headers={"X-Live": "1"}).content.decode()
    assert part.count("data-live") == 2
    assert f'data-row="{row.pk}"' in part
    assert "<html" not in part
    assert f"You follow {row.ref}." in client.get("/queue/").content.decode()


def test_a_number_of_five_thousand_digits_is_none(client: Client, ledger: Project, lea: User) -> None:
    """Python refuses to read one, with an error that is no refusal of ours."""
    as_user(client, lea)
    shared, number = dispute(ledger), "9" * 5000
    for method, path, data, expected in (
        ("get", f"/queue/?page={number}", {}, 200),
        ("get", f"/api/v1/disputes/?recent={number}", {}, 422),
        ("post", f"/queue/D-{shared.pk}/assign/", {"to": number}, 422),
        ("post", "/queue/bulk/", {"dispute": number, "verb": "snooze"}, 302),
    ):
        answer = getattr(client, method)(path, data)
        assert answer.status_code == expected, (path[:40], answer.status_code)
