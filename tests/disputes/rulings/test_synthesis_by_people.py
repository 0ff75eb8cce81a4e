"""Option C as somebody hands it in: the verb, the form on the page, and over REST."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from agents.models import new_token, token_hash
from disputes import opening, rulings
from disputes.models import Conflict, Decision
from disputes.protocol.rulings.synthesis import Source
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Event, Project
from tests.asking import client_of, client_with, page
from tests.cases import for_each
from tests.factories import (
    create_finding,
    create_review,
    create_run,
    create_submission,
    create_task,
)

pytestmark = pytest.mark.django_db

JUDGE = Actor("run", "judge-1")
MIDDLE = "Keep three files unless the setting says otherwise."


def open_conflict(project: Project, **kwargs: Any) -> Conflict:
    """Declined in round 2; no rule finds a middle way unless the words say so."""
    task = create_task(project, status="disputed", round=2)
    finding = create_finding(
        create_review(create_submission(task, round=1)), title="Copies of one state differ"
    )
    given = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder", "question": finding.title,
        "finding": finding, "submission": create_submission(task, round=2), "severity": "high",
        "reviewer_position": "Keep the last three copies.", "reviewer_label": "reviewer-1",
        "coder_position": "One copy is enough.", "coder_label": "coder-1",
    } | kwargs  # fmt: skip
    return opening.open_conflict(task, **given)


@pytest.fixture
def conflict(ledger: Project) -> Conflict:
    return open_conflict(ledger)


def propose(conflict: Conflict, user: User, text: str = MIDDLE, **kwargs: Any) -> Conflict:
    return rulings.propose_synthesis(
        conflict, text, by=kwargs.pop("by", Source.HUMAN), actor=kwargs.pop("actor", Actor.person(user)),
        **kwargs,
    )  # fmt: skip


def option_c(conflict: Conflict) -> rulings.OptionView:
    conflict.refresh_from_db()
    return next(view for view in rulings.options_of(conflict) if view.letter == "C")


# --- The verb ---------------------------------------------------------------------------------------------


def test_where_no_rule_finds_one_c_has_no_words(conflict: Conflict) -> None:
    view = option_c(conflict)
    assert (view.text, view.recommended, view.needs_text, view.expects_change) == ("", "", True, True)


def test_a_person_writes_c_and_is_named(conflict: Conflict, tom: User) -> None:
    propose(conflict, tom, trade_off="Reviewer: two may be kept. Coder: a setting.", covers_both=True)
    view = option_c(conflict)
    assert (view.text, view.trade_off) == (MIDDLE, "Reviewer: two may be kept. Coder: a setting.")
    assert view.recommended == "It covers both sides."
    assert conflict.proposal.by == "human Tom Tran"
    told = Event.objects.get(kind="synthesis_proposed")
    assert (told.user, told.task, told.note) == (tom, conflict.task, MIDDLE)
    assert told.data == {"conflict": conflict.ref, "by": "human Tom Tran", "before": ""}


def test_c_is_recommended_only_where_it_covers_both(conflict: Conflict, tom: User) -> None:
    propose(conflict, tom)
    assert option_c(conflict).recommended == ""
    assert option_c(conflict).trade_off.startswith("Each side gives up a part")


def test_a_person_takes_no_recommendation_from_a_on_a_critical_finding(ledger: Project, tom: User) -> None:
    conflict = open_conflict(ledger, severity="critical")
    propose(conflict, tom, covers_both=True)
    advised = {view.letter: bool(view.recommended) for view in rulings.options_of(conflict)}
    assert advised == {"A": True, "B": False, "C": False, "D": False}


def test_the_judge_may_take_it(ledger: Project, tom: User) -> None:
    """Only the judge's reasons can take the recommendation from A."""
    conflict = open_conflict(ledger, severity="critical")
    propose(conflict, tom, by=Source.JUDGE, actor=JUDGE, covers_both=True)
    assert conflict.proposal.by == "judge judge-1"
    assert option_c(conflict).recommended == "The judge found a way that covers both sides."


def test_the_last_one_counts_also_over_a_rules(ledger: Project, tom: User, lea: User) -> None:
    conflict = open_conflict(ledger, coder_position="That adds complexity.")
    assert conflict.proposal.by == "rule on complexity"
    propose(conflict, tom, "One thing.")
    propose(conflict, lea, "Another thing.")
    assert option_c(conflict).text == "Another thing."
    before = (
        Event.objects.filter(kind="synthesis_proposed").order_by("pk").values_list("data__before", flat=True)
    )
    assert list(before) == ["rule on complexity", "human Tom Tran"]


def test_who_looks_meanwhile_is_asked_to_look_again(conflict: Conflict, tom: User, lea: User) -> None:
    """Also where only the trade-off or the recommendation changed."""
    for change in ({}, {"trade_off": "Each a little."}, {"covers_both": True}):
        shown = rulings.shown_hash(conflict)
        propose(conflict, tom, **{"covers_both": False, **change})
        with pytest.raises(Refused) as refusal:
            rulings.decide(conflict, "compromise", user=lea, shown=shown)
        assert refusal.value.code == "stale_view"


def test_ruling_c_takes_its_words_and_the_code_must_change(conflict: Conflict, tom: User) -> None:
    """C always asks for a change; only own words leave that open."""
    propose(conflict, tom)
    decision = rulings.decide(conflict, "compromise", user=tom, expects_change=False)
    assert (decision.text, decision.letter, decision.expects_change) == (MIDDLE, "C", True)
    assert decision.action == "revise"


def test_c_may_still_be_typed_with_the_ruling(conflict: Conflict, tom: User) -> None:
    decision = rulings.decide(conflict, "compromise", user=tom, text="Keep two.")
    assert (decision.text, decision.expects_change) == ("Keep two.", True)


def test_a_reopened_conflict_keeps_it(conflict: Conflict, tom: User) -> None:
    propose(conflict, tom, covers_both=True)
    decision = rulings.decide(conflict, "uphold_coder", user=tom)
    again = rulings.reopen(decision, user=tom, reason="It was wrong.")
    assert (again.proposal.text, again.proposal.by, again.proposal.covers_both) == (
        MIDDLE,
        "human Tom Tran",
        True,
    )


def test_a_ruled_conflict_takes_none(conflict: Conflict, tom: User, lea: User) -> None:
    rulings.decide(conflict, "uphold_coder", user=lea)
    with pytest.raises(Refused) as refusal:
        propose(conflict, tom)
    assert refusal.value.code == "already_decided"
    conflict.refresh_from_db()
    assert conflict.proposal is None


def test_nor_does_one_that_nobody_waits_for(conflict: Conflict, tom: User) -> None:
    opening.close(conflict.dispute, "moot")
    with pytest.raises(Refused) as refusal:
        propose(conflict, tom)
    assert refusal.value.code == "not_open"


@for_each(("text", "code"), [("", "text_missing"), (" \n", "text_missing"), ("x" * 20_001, "too_long")])
def test_it_needs_words_and_not_too_many(conflict: Conflict, tom: User, text: str, code: str) -> None:
    with pytest.raises(Refused) as refusal:
        propose(conflict, tom, text)
    assert (refusal.value.code, refusal.value.status) == (code, 422)
    assert not Event.objects.filter(kind="synthesis_proposed").exists()


@for_each("kind", ["silence", "alert", "help"])
def test_only_a_disagreement_has_a_middle(ledger: Project, tom: User, kind: str) -> None:
    with pytest.raises(Refused) as refusal:
        propose(open_conflict(ledger, kind=kind), tom)
    assert refusal.value.code == "no_synthesis"


@for_each("who", ["vera", "otto"])
def test_who_may_not_rule_proposes_nothing(conflict: Conflict, who: str, otto: User) -> None:
    with pytest.raises(Refused) as refusal:
        propose(conflict, User.objects.get(username=who))
    assert (refusal.value.code, refusal.value.status) == ("no_right", 403)


def test_nor_does_an_agent_that_calls_itself_human(conflict: Conflict) -> None:
    with pytest.raises(Refused) as refusal:
        rulings.propose_synthesis(conflict, MIDDLE, by=Source.HUMAN, actor=Actor("run", "coder-1"))
    assert refusal.value.code == "no_right"


# --- The page ---------------------------------------------------------------------------------------------


def sent(client: Client, conflict: Conflict, user: User, **body: str) -> Any:
    client.force_login(user)
    return client.post(page(conflict, "synthesis/"), {"conflict": conflict.ref, "synthesis": MIDDLE} | body)


def test_the_form_hands_it_in(client: Client, conflict: Conflict, tom: User) -> None:
    reply = sent(client, conflict, tom, trade_off="Each a little.", covers_both="on")
    assert (reply.status_code, reply.url) == (302, f"{page(conflict)}?conflict={conflict.ref}")
    html = client.get(page(conflict)).content.decode()
    for words in (
        MIDDLE,
        "proposed by human Tom Tran",
        "meets both concerns",
        "Each a little.",
        "Propose another",
    ):
        assert words in html
    assert f'data-text="{MIDDLE}"' in html


def test_the_browsers_line_ends_do_not_stay(client: Client, conflict: Conflict, tom: User) -> None:
    sent(client, conflict, tom, synthesis="One.\r\nTwo.")
    conflict.refresh_from_db()
    assert conflict.proposal.text == "One.\nTwo."


def test_a_refusal_keeps_what_was_typed(client: Client, conflict: Conflict, tom: User) -> None:
    reply = sent(client, conflict, tom, synthesis=" ", trade_off="Each a little.")
    html = reply.content.decode()
    assert reply.status_code == 422
    assert "The synthesis has no words." in html
    assert "Each a little." in html


def test_it_comes_too_late_on_the_page(client: Client, conflict: Conflict, tom: User, lea: User) -> None:
    rulings.decide(conflict, "uphold_coder", user=lea)
    reply = sent(client, conflict, tom)
    assert reply.status_code == 409
    assert "Lea Lindt ruled B" in reply.content.decode()


def test_a_viewer_sees_whose_it_is_and_no_form(
    client: Client, conflict: Conflict, vera: User, tom: User
) -> None:
    propose(conflict, tom)
    client.force_login(vera)
    html = client.get(page(conflict)).content.decode()
    assert "proposed by human Tom Tran" in html
    assert page(conflict, "synthesis/") not in html


def test_a_card_without_two_sides_has_no_such_form(client: Client, ledger: Project, tom: User) -> None:
    conflict = open_conflict(ledger, kind="silence")
    client.force_login(tom)
    assert page(conflict, "synthesis/") not in client.get(page(conflict)).content.decode()


def test_hostile_words_are_words(client: Client, conflict: Conflict, tom: User) -> None:
    evil = "</textarea><script>alert(1)</script>\u202e"
    sent(client, conflict, tom, synthesis=evil, trade_off=evil)
    html = client.get(page(conflict)).content.decode()
    assert "<script>alert" not in html
    assert "\u202e" not in html
    assert "alert(1)" in html


# --- Over REST --------------------------------------------------------------------------------------------


def post(client: APIClient, ref: str, key: str = "", **body: Any) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(f"/api/v1/disputes/{ref}/synthesis/", body, format="json", headers=headers)


@for_each("name", ["dispute", "conflict", "task"])
def test_a_script_proposes_it(conflict: Conflict, tom: User, name: str) -> None:
    ref = {"dispute": conflict.dispute.ref, "conflict": conflict.ref, "task": conflict.task.ref}[name]
    reply = post(client_of(tom), ref, text=MIDDLE, covers_both=True)
    assert reply.status_code == 200
    told = reply.json()
    assert told["message"] == f"Option C of {conflict.ref} is proposed by human Tom Tran."
    shown = told["conflicts"][0]
    assert (shown["synthesis"], shown["synthesis_by"]) == (MIDDLE, "human Tom Tran")
    assert shown["options"][2]["text"] == MIDDLE
    assert f"> {MIDDLE}" in shown["presentation"]
    assert "**Proposed by:** human Tom Tran" in shown["presentation"]


def test_sent_twice_it_counts_once(conflict: Conflict, tom: User) -> None:
    client = client_of(tom)
    first = post(client, conflict.ref, key="a", text=MIDDLE)
    assert post(client, conflict.ref, key="a", text=MIDDLE).json() == first.json()
    assert Event.objects.filter(kind="synthesis_proposed").count() == 1


def test_of_several_one_is_named(conflict: Conflict, tom: User) -> None:
    other = opening.open_conflict(
        conflict.task, kind="disagreement", origin="cli", opened_as="coder", question="And here?",
        coder_position="No.", reviewer_position="Yes.",
    )  # fmt: skip
    reply = post(client_of(tom), conflict.dispute.ref, text=MIDDLE)
    assert (reply.status_code, reply.json()["code"]) == (409, "several_open")
    assert post(client_of(tom), conflict.dispute.ref, text=MIDDLE, conflict=other.ref).status_code == 200
    assert (option_c(conflict).text, option_c(other).text) == ("", MIDDLE)


@for_each("body", [{}, {"text": ""}, {"text": "x" * 20_001}, {"text": "x", "covers_both": "maybe"}])
def test_a_malformed_one_is_refused(conflict: Conflict, tom: User, body: dict[str, Any]) -> None:
    reply = post(client_of(tom), conflict.ref, **body)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid")


def test_a_ruled_one_says_who_ruled(conflict: Conflict, tom: User, lea: User) -> None:
    rulings.decide(conflict, "uphold_coder", user=lea)
    reply = post(client_of(tom), conflict.ref, text=MIDDLE)
    assert (reply.status_code, reply.json()["code"]) == (409, "already_decided")
    assert Decision.objects.count() == 1


@for_each(("who", "status", "code"), [("vera", 403, "no_right"), ("otto", 404, "not_found")])
def test_others_propose_nothing_over_rest(
    conflict: Conflict, who: str, status: int, code: str, otto: User
) -> None:
    reply = post(client_of(User.objects.get(username=who)), conflict.ref, text=MIDDLE)
    assert (reply.status_code, reply.json()["code"]) == (status, code)
    assert option_c(conflict).text == ""


@for_each("role", ["coder", "reviewer", "verifier"])
def test_no_run_proposes_one(conflict: Conflict, role: str) -> None:
    secret = new_token()
    create_run(conflict.task, role, token_hash=token_hash(secret))
    reply = post(client_with(secret), conflict.ref, text=MIDDLE)
    assert (reply.status_code, reply.json()["code"]) == (403, "wrong_role")
    assert option_c(conflict).text == ""
