"""Alerts and flags on the page: a project's card is ruled there, and every option shows what it will say."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from disputes import alerts, opening, rulings
from disputes.models import Conflict, Decision
from disputes.protocol.rulings.options import CHANGE, LEAVE, NOT_FOR_THE_CODER, ROWS, Kind, offered
from disputes.protocol.rulings.prompt_lines import ruling_lines
from tasks.models import Event, Project, Task
from tests.asking import page
from tests.cases import for_each
from tests.factories import create_finding, create_review, create_submission, create_task, create_token

pytestmark = pytest.mark.django_db


def form(conflict: Conflict, option: str, **kwargs: str) -> dict[str, str]:
    given = {"conflict": conflict.ref, "option": option, "shown": rulings.shown_hash(conflict)}
    return given | {"text": "", "rationale": "", "constraints": ""} | kwargs


def ruled(client: Client, conflict: Conflict, option: str, **kwargs: str) -> Any:
    return client.post(page(conflict, "decide/"), form(conflict, option, **kwargs))


# --- The card of a whole project --------------------------------------------------------------------------


@pytest.fixture
def card(ledger: Project) -> Conflict:
    create_task(ledger, number=1, title="Call politely", status="in_progress", round=3)
    create_task(ledger, number=2, title="Log calls")
    return alerts.open_alert(
        ledger, origin="stall", question="No progress for 2 rounds.", evidence=["Round 3: net 0"]
    )


@pytest.fixture
def tom_at(client: Client, tom: User) -> Client:
    client.force_login(tom)
    return client


def test_its_page_says_what_happened_and_offers_four_ways(tom_at: Client, card: Conflict) -> None:
    html = tom_at.get(page(card)).content.decode()
    for words in (
        "No progress for 2 rounds.", "Round 3: net 0", "Accept the complexity", "Narrow the scope",
        "Critical tasks first", "Pause", "one a line",
    ):  # fmt: skip
        assert words in html
    assert "Propose a synthesis" not in html
    assert "Change the severity" not in html


def test_the_scope_is_narrowed_by_naming_tasks(tom_at: Client, card: Conflict, tom: User) -> None:
    reply = ruled(tom_at, card, "narrow", text="ledger-2\r\n- ledger-1\r\n", rationale="Not now.")
    assert (reply.status_code, reply.url) == (302, "/queue/")
    assert set(Task.objects.values_list("status", flat=True)) == {"deferred"}
    event = Event.objects.get(kind="scope_narrowed")
    assert (event.user, event.note, event.data) == (tom, "Not now.", {"tasks": ["ledger-2", "ledger-1"]})
    card.refresh_from_db()
    assert (card.status, card.followed, card.dispute.status) == ("decided", "applied", "closed")
    html = tom_at.get("/queue/").content.decode()
    assert "It is carried out." in html


@for_each("text", ["ledger-99", "Log calls", "ledger-2\nother-1"])
def test_what_is_no_task_is_refused_and_kept(tom_at: Client, card: Conflict, text: str) -> None:
    reply = ruled(tom_at, card, "narrow", text=text, rationale="Not now.")
    html = reply.content.decode()
    assert reply.status_code == 422
    assert "is no task of Ledger" in html
    assert text in html
    assert "Not now." in html
    assert not Decision.objects.exists()
    assert not Task.objects.filter(status="deferred").exists()


def test_it_takes_names_to_narrow(tom_at: Client, card: Conflict) -> None:
    reply = ruled(tom_at, card, "narrow")
    assert reply.status_code == 422
    assert "needs a sentence" in reply.content.decode()


def test_a_finished_task_is_not_put_off(tom_at: Client, card: Conflict) -> None:
    Task.objects.filter(number=2).update(status="completed", finished_by="hand")
    reply = ruled(tom_at, card, "narrow", text="ledger-2", rationale="Not now.")
    assert reply.status_code == 409
    assert "ledger-2 cannot be put off." in reply.content.decode()
    card.refresh_from_db()
    assert card.status == "open"


def test_critical_tasks_come_first(tom_at: Client, card: Conflict, ledger: Project) -> None:
    create_task(ledger, severity="critical")
    assert ruled(tom_at, card, "prioritise").status_code == 302
    ledger.refresh_from_db()
    assert ledger.focus == "critical"


def test_without_a_critical_task_there_is_nothing_to_put_first(tom_at: Client, card: Conflict) -> None:
    reply = ruled(tom_at, card, "prioritise", rationale="First things first.")
    assert reply.status_code == 409
    html = reply.content.decode()
    assert "No critical task is left in Ledger." in html
    assert "First things first." in html


def test_the_project_is_paused(tom_at: Client, card: Conflict, ledger: Project) -> None:
    assert ruled(tom_at, card, "pause", rationale="We must talk.").status_code == 302
    ledger.refresh_from_db()
    assert ledger.status == "paused"
    assert Event.objects.get(kind="project_paused").note == "We must talk."


def test_the_complexity_is_accepted(tom_at: Client, card: Conflict) -> None:
    assert ruled(tom_at, card, "accept").status_code == 302
    assert Event.objects.get(kind="complexity_accepted").note == "No progress for 2 rounds."


def test_what_was_carried_out_is_neither_undone_nor_reopened(tom_at: Client, card: Conflict) -> None:
    ruled(tom_at, card, "accept")
    decision = Decision.objects.get()
    html = tom_at.get(page(card)).content.decode()
    assert "Accept the complexity" in html
    for what in ("undo", "reopen"):
        assert f"/queue/decisions/{decision.pk}/{what}/" not in html
        reply = tom_at.post(f"/queue/decisions/{decision.pk}/{what}/", {"reason": "Wrong."})
        assert reply.status_code == 409
    decision.refresh_from_db()
    assert decision.stands


@for_each("option", ["accept", "narrow", "prioritise", "pause"])
def test_no_coder_is_told_of_it(tom_at: Client, card: Conflict, option: str) -> None:
    reply = tom_at.post(page(card, "preview/"), form(card, option, text="ledger-1"))
    assert reply.json() == {"lines": []}


@for_each("option", ["reduce", "check_review", "clarify", "uphold_coder", "retry"])
def test_options_of_other_cards_are_none_of_its(tom_at: Client, card: Conflict, option: str) -> None:
    reply = ruled(tom_at, card, option, text="x", rationale="x")
    assert reply.status_code == 422
    assert f"{option} is no option" in reply.content.decode()
    assert tom_at.post(page(card, "preview/"), form(card, option)).status_code == 422


def test_who_only_looks_sees_it_and_rules_nothing(client: Client, card: Conflict, vera: User) -> None:
    client.force_login(vera)
    assert "You may read here, not rule." in client.get(page(card)).content.decode()
    assert ruled(client, card, "pause").status_code == 403
    assert not Decision.objects.exists()


def test_nobody_else_finds_it(client: Client, card: Conflict, otto: User) -> None:
    client.force_login(otto)
    assert client.get(page(card)).status_code == 404
    assert ruled(client, card, "pause").status_code == 404


def test_it_hangs_on_no_finding(tom_at: Client, card: Conflict) -> None:
    for what in ("severity/", "same/"):
        sent = {
            "conflict": card.ref,
            "finding": "ISSUE-R1-001",
            "severity": "low",
            "reason": "x",
            "same": "no",
        }
        assert tom_at.post(page(card, what), sent).status_code == 404
    reply = tom_at.post(page(card, "synthesis/"), {"conflict": card.ref, "synthesis": "Half of it."})
    assert reply.status_code == 422


def test_both_records_name_the_project(tom_at: Client, card: Conflict) -> None:
    assert "Round 3: net 0" in tom_at.get(page(card, "dispute.md")).content.decode()
    ruled(tom_at, card, "pause", rationale="We must talk.")
    record = tom_at.get("/queue/records/ledger/decisions.md").content.decode()
    for words in (
        "### Project ledger: No progress for 2 rounds.",
        "**Chosen Option:** Pause",
        "We must talk.",
    ):
        assert words in record


@for_each("option", sorted(NOT_FOR_THE_CODER & {choice.option for choice in offered("silence")}))
def test_the_record_asks_nothing_of_the_coder_that_the_prompt_does_not(
    tom_at: Client, task: Task, option: str
) -> None:
    conflict = opened(task, "silence")
    ruled(tom_at, conflict, option, text="Because.")
    assert "- For Engineer: Nothing." in tom_at.get(page(conflict, "decisions.md")).content.decode()


def test_a_script_reads_and_rules_it(card: Conflict, tom: User, ledger: Project) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token(tom, 'script')[1]}")
    told = client.get(f"/api/v1/disputes/{card.dispute.ref}/").json()
    [shown] = told["conflicts"]
    assert (told["task"], shown["code"]) == (None, "Project ledger")
    assert [option["key"] for option in shown["options"]] == ["accept", "narrow", "prioritise", "pause"]
    assert "No progress for 2 rounds." in shown["presentation"]
    body = {"decision": "pause", "notes": "We must talk."}
    reply = client.post(f"/api/v1/disputes/{card.ref}/resolve/", body, format="json")
    assert reply.status_code == 200
    ledger.refresh_from_db()
    assert ledger.status == "paused"


# --- The preview of every option --------------------------------------------------------------------------


@pytest.fixture
def task(ledger: Project) -> Task:
    task = create_task(ledger, number=7, status="disputed", round=2)
    create_finding(create_review(create_submission(task, round=1)))
    create_submission(task, round=2)
    return task


def opened(task: Task, kind: str) -> Conflict:
    finding = task.findings.get() if kind in {"disagreement", "silence"} else None
    origin = {"silence": "flagged", "alert": "rate", "help": "blocked"}.get(kind, "disagree")
    return opening.open_conflict(
        task, kind=kind, origin=origin, opened_as="system", question="Back off, or not?", finding=finding,
        submission=task.last_submission(), effect="hold", reviewer_position="Wait.", coder_position="No.",
    )  # fmt: skip


CHOICES = [(kind, choice.option) for kind in Kind for choice in offered(kind)]
ASKED = [cell for cell in CHOICES if ROWS[cell[1]].in_prompt not in {CHANGE, LEAVE, ""}]


@for_each(("kind", "option"), CHOICES)
def test_the_preview_is_what_the_coder_will_read(tom_at: Client, task: Task, kind: str, option: str) -> None:
    conflict = opened(task, kind)
    sent = form(
        conflict, option, text="Mine.", rationale="So.", constraints="None other.", expects_change="on"
    )
    lines = tom_at.post(page(conflict, "preview/"), sent).json()["lines"]
    assert bool(lines) == (option not in NOT_FOR_THE_CODER)
    assert tom_at.post(page(conflict, "decide/"), sent).status_code == 302
    decision = Decision.objects.get()
    if lines:
        assert lines == ruling_lines([rulings.ruling_of(decision)])
        assert lines[-1].startswith("   Do: ")


@for_each(("kind", "option"), ASKED)
def test_what_is_asked_for_is_said_in_the_last_line(
    tom_at: Client, task: Task, kind: str, option: str
) -> None:
    conflict = opened(task, kind)
    lines = tom_at.post(page(conflict, "preview/"), form(conflict, option)).json()["lines"]
    assert lines[-1] == f"   Do: {ROWS[option].in_prompt}"


@for_each("kind", [kind for kind in Kind if kind is not Kind.DISAGREEMENT])
def test_every_option_has_its_button_and_its_consequence(tom_at: Client, task: Task, kind: str) -> None:
    conflict = opened(task, kind)
    html = tom_at.get(page(conflict)).content.decode()
    for view in rulings.options_of(conflict):
        assert f'id="option-{view.letter}" value="{view.option}"' in html
        assert view.title in html
        assert view.consequence


def test_nothing_in_the_preview_turns_the_reading_direction(tom_at: Client, task: Task) -> None:
    conflict = opened(task, "silence")
    lines = tom_at.post(page(conflict, "preview/"), form(conflict, "ask", text="\u202eevil")).json()["lines"]
    assert "   Ruling: evil" in lines
