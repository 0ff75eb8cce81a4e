"""Precedents: rulings on conflicts that read alike, suggested, cited, expired and retired."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from disputes import opening, precedents, rulings
from disputes.models import Conflict, Decision, Dispute, Precedent
from disputes.precedents import agreement, for_conflict, for_conflicts
from disputes.protocol.rulings.decision_files import read_decisions
from disputes.protocol.text.keywords import keywords
from disputes.protocol.text.similarity import Collection
from disputes.records import decisions_text, disputes_text
from disputes.rulings import deciding
from tasks.database import clock
from tasks.database.prepared import Prepared
from tasks.errors import Refused
from tasks.models import Event, Project
from tests.disputes.api.test_api import resolve
from tests.disputes.prompt_lines import told
from tests.factories import create_project, create_run, create_task

pytestmark = pytest.mark.django_db

BACK_OFF = {
    "question": "Retry failed webhooks with exponential back-off?",
    "reviewer_position": "Exponential back-off with full jitter; a fixed delay hammers the merchant.",
    "coder_position": "The fixed delay is bounded by the rate limiter.",
}
MAILS = {
    "question": "Retry bounced mails with exponential back-off?",
    "reviewer_position": "Exponential back-off with jitter; a fixed delay hammers the mail server.",
    "coder_position": "A fixed delay is simple, and the limiter bounds it.",
}
LIKE_IT = BACK_OFF | {"question": "Retry failed calls with exponential back-off?"}
NAMES = {
    "question": "Rename amount_minor to amount_cents?",
    "reviewer_position": "The name hides the currency's unit.",
    "coder_position": "Not every currency has cents.",
}


def opened(project: Project, words: dict[str, str], **kwargs: Any) -> Conflict:
    task = create_task(project, status="disputed", round=1)
    given = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder", "severity": "high",
    } | words | kwargs  # fmt: skip
    return opening.open_conflict(task, **given)


def ruled(
    project: Project, words: dict[str, str], user: User, option: str, *, closed: bool = False
) -> Decision:
    conflict = opened(project, words)
    decision = rulings.decide(conflict, option, user=user, rationale="As before.")
    if closed:
        opening.close(Dispute.objects.get(pk=conflict.dispute_id), "followed")
    return decision


def test_the_most_similar_ruling_comes_first_and_others_do_not_come(ledger: Project, tom: User) -> None:
    mails = ruled(ledger, MAILS, tom, "uphold_reviewer", closed=True)
    same = ruled(ledger, BACK_OFF, tom, "uphold_coder")
    ruled(ledger, NAMES, tom, "uphold_coder", closed=True)
    found = for_conflict(opened(ledger, BACK_OFF))
    assert [precedent.decision for precedent in found] == [same, mails]
    assert found[0].score == pytest.approx(1)
    assert (found[1].conflict.question, found[1].decision.user) == (MAILS["question"], tom)


def test_only_rulings_that_stand_in_the_same_project_are_precedents(ledger: Project, tom: User) -> None:
    ruled(create_project("atlas", members={tom: "triager"}), BACK_OFF, tom, "uphold_coder")
    undone = ruled(ledger, BACK_OFF, tom, "uphold_coder")
    rulings.undo(undone, user=tom)
    reopened = ruled(ledger, BACK_OFF, tom, "uphold_coder")
    again = rulings.reopen(reopened, user=tom, reason="It was measured.")
    assert for_conflict(again) == []
    assert for_conflict(opened(ledger, BACK_OFF)) == []


def test_close_precedents_agree_on_a_or_b_or_not_at_all(ledger: Project, tom: User) -> None:
    asked = opened(ledger, BACK_OFF)
    assert agreement(for_conflict(asked)) is None
    ruled(ledger, BACK_OFF, tom, "uphold_coder")
    ruled(ledger, NAMES, tom, "uphold_reviewer")
    assert agreement(for_conflict(asked)) == "uphold_coder"
    ruled(ledger, BACK_OFF, tom, "uphold_reviewer")
    assert agreement(for_conflict(asked)) is None


def test_own_words_are_nobody_elses(ledger: Project, tom: User) -> None:
    conflict = opened(ledger, BACK_OFF)
    rulings.decide(conflict, "other", user=tom, text="Measure it.")
    found = for_conflict(opened(ledger, BACK_OFF))
    assert [precedent.decision.option for precedent in found] == ["other"]
    assert agreement(found) is None


def test_many_conflicts_cost_as_much_as_one(
    ledger: Project, tom: User, django_assert_num_queries: Any
) -> None:
    for _ in range(3):
        ruled(ledger, BACK_OFF, tom, "uphold_coder", closed=True)
    asked = [opened(ledger, words) for words in (BACK_OFF, MAILS, NAMES)]
    asked.append(opened(ledger, BACK_OFF, kind="help", origin="blocked"))
    with django_assert_num_queries(2):
        found = for_conflicts(asked)
        assert [len(found[conflict.pk]) for conflict in asked] == [3, 3, 0, 0]
        for precedent in found[asked[0].pk]:
            assert str(precedent.decision.user)
            assert precedent.conflict.dispute.ref
            assert precedent.decision.letter


def test_only_the_newest_are_looked_through(
    ledger: Project, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precedents, "NEWEST", 2)
    monkeypatch.setattr(precedents, "_asked_again_and_again", Prepared(precedents._ruled))
    old = [ruled(ledger, BACK_OFF, tom, "uphold_coder", closed=True) for _ in range(3)]
    found = for_conflict(opened(ledger, BACK_OFF))
    assert {precedent.decision for precedent in found} == set(old[1:])


def test_the_newest_are_found_without_reading_through_all_rulings(ledger: Project) -> None:
    """So that looking costs the same however many were made."""
    rows = precedents._ruled(ledger.pk, "disagreement", "silence", timezone.now())
    if connection.vendor == "sqlite":
        plan = rows.explain()
        assert not re.search(r"\bSCAN\b|\(rowid>\?\)", plan), plan
    else:  # which reads a table of a few rows through, and sorts them, unless it is told not to
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_sort = off")
        plan = rows.explain()
        assert "Seq Scan" not in plan, plan
    assert "dispute_by_day" in plan, plan


def test_a_kind_without_two_sides_asks_for_no_rulings(
    ledger: Project, tom: User, django_assert_num_queries: Any
) -> None:
    ruled(ledger, BACK_OFF, tom, "uphold_coder")
    asked = opened(ledger, BACK_OFF, kind="help", origin="blocked")
    with django_assert_num_queries(0):
        assert for_conflict(asked) == []


def test_rare_words_weigh_more_than_common_ones() -> None:
    texts = [keywords(f"the delay of job {name}") for name in ("alpha", "beta", "gamma", "delta")]
    collection = Collection(texts)
    scores = collection.scores(keywords("delay alpha"))
    assert scores[0] > 2 * scores[1] > 0
    assert scores[1] == scores[2]
    assert collection.scores(frozenset()) == [0.0] * 4
    assert Collection([frozenset()]).scores(keywords("delay")) == [0.0]


# --- Citing -----------------------------------------------------------------------------------------------


def test_a_ruling_cites_a_precedent_wherever_it_is_told(
    client: Client, ledger: Project, tom: User, vera: User, as_migrated: None
) -> None:
    earlier = ruled(ledger, BACK_OFF, tom, "uphold_reviewer", closed=True)
    before = earlier.conflict
    other = ruled(ledger, LIKE_IT, tom, "uphold_coder", closed=True)
    words = f"As ruled on {before.dispute.ref} and {other.conflict.dispute.ref}."
    conflict = opened(ledger, MAILS)
    address = f"/queue/{conflict.dispute.ref}/"
    client.force_login(tom)
    page = client.get(address).content.decode()
    assert f'name="cites" value="{before.ref}"' in page
    named = [other.conflict.ref, before.ref]
    typed = {"conflict": conflict.ref, "option": "uphold_reviewer", "cites": named}
    preview = client.post(f"{address}preview/", typed).json()["lines"]
    assert f"   Precedent: {words}" in preview
    client.post(f"{address}decide/", typed)
    decision = conflict.decisions.get()
    assert decision.cited == [earlier, other]
    assert Event.objects.filter(kind="ruled").latest("pk").data["cites"] == [before.ref, other.conflict.ref]

    # On both pages, also for those who only look; in the records and over REST.
    client.force_login(vera)
    assert f'As ruled on <a href="/queue/{before.dispute.ref}/' in client.get(address).content.decode()
    assert (
        f'?conflict={conflict.ref}">{conflict.dispute.ref}</a>.'
        in client.get(f"/queue/{before.dispute.ref}/").content.decode().partition("Followed on")[2]
    )
    read = read_decisions(decisions_text(ledger)).decisions
    assert [each.citation for each in read if each.title == MAILS["question"]] == [words]
    assert f"**Precedent:** {words}" in disputes_text(ledger, conflict.dispute)
    told_over_rest = client.get(f"/api/v1/disputes/{conflict.dispute.ref}/").json()
    assert told_over_rest["conflicts"][0]["decision"]["cites"] == [
        {"ref": each.ref, "dispute": each.dispute.ref, "question": each.question}
        for each in (before, other.conflict)
    ]

    Decision.objects.filter(pk=decision.pk).update(effective_at=Now())
    assert f"   Precedent: {words}" in told(conflict.task)
    rulings.reopen(earlier, user=tom, reason="Finance says no.")
    rulings.undo(other, user=tom)
    gone = f"{before.dispute.ref} (reopened since) and {other.conflict.dispute.ref} (taken back since)"
    assert f"   Precedent: As ruled on {gone}." in told(conflict.task)
    page = client.get(address).content.decode()
    assert f"{before.dispute.ref} (reopened since)</a>" in page
    rulings.mark_used([decision], create_run(conflict.task).pk)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        decision.cites.clear()


def test_a_script_cites_by_dispute_and_only_what_is_a_precedent_there(ledger: Project, tom: User) -> None:
    earlier = ruled(ledger, BACK_OFF, tom, "uphold_reviewer")
    foreign = ruled(create_project("atlas", members={tom: "triager"}), BACK_OFF, tom, "uphold_coder")
    conflict = opened(ledger, MAILS)
    for name in (foreign.conflict.ref, conflict.ref, "C-99999", "nonsense", "D-²"):
        reply = resolve(tom, conflict.ref, cites=name)
        assert (reply.status_code, reply.json()["code"]) == (422, "no_precedent"), name
    assert resolve(tom, conflict.ref, cites=earlier.conflict.dispute.ref).status_code == 200
    assert conflict.decisions.get().cited == [earlier]
    many = ",".join(f"C-{number}" for number in range(6))
    assert resolve(tom, opened(ledger, MAILS).ref, cites=many).json()["code"] == "too_many"


# --- Expiring and retiring ---------------------------------------------------------------------------------


def test_a_precedent_expires_where_the_project_says_so(
    ledger: Project, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, later = ruled(ledger, BACK_OFF, tom, "uphold_coder"), timezone.now() + timedelta(days=30)
    monkeypatch.setattr(timezone, "now", lambda: later)
    for module in (clock, deciding):
        monkeypatch.setattr(module, "database_time", lambda *of: later)
    new = ruled(ledger, BACK_OFF, tom, "uphold_coder")
    ruled(create_project("atlas", members={tom: "triager"}), BACK_OFF, tom, "uphold_coder")
    asked = opened(ledger, BACK_OFF)
    for days, found in ((None, {old, new}), (31, {old, new}), (29, {new}), (365, {old, new})):
        Project.objects.filter(pk=ledger.pk).update(settings={"precedent_days": days})
        conflict = Conflict.objects.get(pk=asked.pk)
        assert {each.decision for each in for_conflict(conflict)} == found, days
        assert set(Precedent.objects.filter(precedents.expired())) == {old, new} - found, days
    Project.objects.filter(pk=ledger.pk).update(settings={"precedent_days": 29})
    with pytest.raises(Refused, match="no precedent"):
        precedents.cited(Conflict.objects.get(pk=asked.pk), old.conflict.ref)


def test_what_a_later_ruling_replaced_is_no_precedent(ledger: Project, tom: User) -> None:
    first = ruled(ledger, BACK_OFF, tom, "uphold_coder")
    first.conflict.mark("not_honoured")
    again = opened(ledger, BACK_OFF, previous=first.conflict, origin="not_honoured")
    asked = opened(ledger, BACK_OFF)
    assert [each.decision for each in for_conflict(asked)] == [first]
    second = rulings.decide(again, "uphold_reviewer", user=tom, rationale="It was measured.")
    assert [each.decision for each in for_conflict(asked)] == [second]
    rulings.undo(second, user=tom)
    assert [each.decision for each in for_conflict(asked)] == [first]


def test_people_look_precedents_up_and_retire_them(
    client: Client, ledger: Project, tom: User, vera: User, otto: User
) -> None:
    back_off = ruled(ledger, BACK_OFF, tom, "uphold_reviewer")
    names = ruled(ledger, NAMES, tom, "uphold_coder")
    following = opened(ledger, MAILS)
    rulings.decide(following, "uphold_reviewer", user=tom, cites=back_off.conflict.ref)
    path = "/admin/disputes/precedent/"

    def listed(query: str = "") -> str:
        return client.get(path + query).content.decode()

    client.force_login(otto)
    assert BACK_OFF["question"] not in listed()
    client.force_login(vera)
    page = listed()
    for words in (BACK_OFF["question"], NAMES["question"], "1 time", "never", "High, Disagreement"):
        assert words in page, words
    ends = precedents.expires_at(back_off)
    assert ends
    assert f"{ends:%-d %b %Y}" in page
    assert "guideline/add" not in page
    assert NAMES["question"] not in listed("?q=back-off")
    assert BACK_OFF["question"] in listed("?q=back-off")
    assert NAMES["question"] in listed(f"?of={ledger.slug}&option__exact=uphold_coder&state=suggested")
    assert BACK_OFF["question"] not in listed("?option__exact=uphold_coder")

    retire = {"action": "retire", "_selected_action": [str(back_off.pk)]}
    client.post(path, retire)
    assert not Event.objects.filter(kind="precedent_retired").exists()
    client.force_login(tom)
    assert listed().count("guideline/add") == 3
    for _ in range(2):
        client.post(path, retire)
    [event] = Event.objects.filter(kind="precedent_retired")
    assert (event.user_id, event.data) == (tom.pk, {"conflict": back_off.conflict.ref})
    asked = opened(ledger, BACK_OFF)
    assert back_off not in [each.decision for each in for_conflict(asked)]
    assert BACK_OFF["question"] in listed("?state=retired")
    assert NAMES["question"] not in listed("?state=retired")
    client.post(path, {"action": "restore", "_selected_action": [str(back_off.pk), str(names.pk)]})
    assert Event.objects.filter(kind="precedent_restored").count() == 1
    assert back_off in [each.decision for each in for_conflict(asked)]
