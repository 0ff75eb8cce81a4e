"""Precedents: rulings on conflicts that read alike, in the same project, in few queries."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from disputes import opening, precedents, rulings
from disputes.models import Conflict, Decision, Dispute
from disputes.precedents import agreement, for_conflict, for_conflicts
from disputes.protocol.text.keywords import keywords
from disputes.protocol.text.similarity import Collection
from tasks.models import Project
from tests.factories import create_project, create_task

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
            assert precedent.conflict.dispute.task
            assert precedent.conflict.dispute.task.ref


def test_only_the_newest_are_looked_through(
    ledger: Project, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precedents, "NEWEST", 2)
    old = [ruled(ledger, BACK_OFF, tom, "uphold_coder", closed=True) for _ in range(3)]
    found = for_conflict(opened(ledger, BACK_OFF))
    assert {precedent.decision for precedent in found} == set(old[1:])


def test_rare_words_weigh_more_than_common_ones() -> None:
    texts = [keywords(f"the delay of job {name}") for name in ("alpha", "beta", "gamma", "delta")]
    collection = Collection(texts)
    scores = collection.scores(keywords("delay alpha"))
    assert scores[0] > 2 * scores[1] > 0
    assert scores[1] == scores[2]
    assert collection.scores(frozenset()) == [0.0] * 4
    assert Collection([frozenset()]).scores(keywords("delay")) == [0.0]
