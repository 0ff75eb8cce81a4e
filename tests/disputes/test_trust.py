"""A judge that earns the right to rule alone by agreeing with people, and loses it again."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from disputes import hooks, opinions, rulings
from disputes.models import Conflict, Decision, Opinion
from disputes.opinions import Reach
from disputes.protocol.rulings.arbitration import Agreement, is_sampled
from tasks.configuration.changing import configure
from tasks.events import Actor
from tasks.models import Event, Project
from tests.disputes.test_opinions import DISMISS, ENFORCE, JUDGE, disagreement

pytestmark = pytest.mark.django_db

ARBITRATION = Path(__file__).parents[2] / "docs" / "arbitration.md"


@pytest.fixture(autouse=True)
def somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a judge to ask."""
    given = {"judge": Reach(True), "mediator": Reach(False)}
    monkeypatch.setattr(hooks.reach_of, "function", lambda conflict: given)


def judged(ledger: Project, **about: Any) -> Conflict:
    """A new disagreement, about which the judge was asked by the policy and said ENFORCE."""
    conflict = disagreement(ledger, **about)
    assert opinions.apply_policy(ledger) == 1
    opinions.give(conflict.opinions.get(), ENFORCE, actor=JUDGE)
    conflict.refresh_from_db()
    return conflict


def rules(conflict: Conflict, user: User, option: str = "uphold_reviewer") -> None:
    if conflict.is_open:
        rulings.decide(conflict, option, user=user, rationale="It was measured.", undo_seconds=0)


def is_in_the_sample(number: int) -> bool:
    return is_sampled(number, settings.SECRET_KEY)


def not_sampled(ledger: Project, **about: Any) -> Conflict:
    """One that is not in the sample of those that wait for people anyway."""
    while is_in_the_sample((Conflict.objects.order_by("-pk").values_list("pk", flat=True).first() or 0) + 1):
        disagreement(ledger, severity="low")
    return judged(ledger, **about)


def test_the_limit_is_wilsons() -> None:
    cases = ((0, 0), (5, 5), (22, 22), (34, 35), (30, 40))
    assert [round(Agreement(*case).at_least, 3) for case in cases] == [
        0.0, 0.566, 0.851, 0.855, 0.598,
    ]  # fmt: skip
    assert not Agreement(1000, 1000).reaches(0)
    told = re.search(r"for 0\.85 at least (\d+) of (\d+) or (\d+) of (\d+)", ARBITRATION.read_text())
    assert told, "docs/arbitration.md no longer says how much is enough"
    for agreed, judged in (map(int, told.groups()[:2]), map(int, told.groups()[2:])):
        assert Agreement(agreed, judged).reaches(0.85)
        assert not Agreement(agreed - 1, judged - 1).reaches(0.85)


def test_one_dispute_in_five_is_sampled_and_only_who_knows_the_secret_tells_which() -> None:
    numbers = range(1, 5001)
    ours, others = ({n for n in numbers if is_sampled(n, secret)} for secret in ("ours", "theirs"))
    assert 900 < len(ours) < 1100
    assert len(ours & others) < 300
    gaps = {later - earlier for earlier, later in pairwise(sorted(ours))}
    assert len(gaps) > 10


def test_the_judge_rules_alone_once_people_agreed_often_enough_and_not_after_they_differ(
    ledger: Project, lea: User, tom: User
) -> None:
    configure(ledger, {"judge_trust": 0.5}, actor=Actor.person(lea))
    for _ in range(4):
        conflict = judged(ledger)
        assert conflict.is_open
        rules(conflict, tom)
    assert opinions.record_of(ledger, "high") == Agreement(4, 4)  # at least 51 %
    earned = not_sampled(ledger)
    decision = Decision.objects.get(conflict=earned)
    assert (decision.authority, decision.policy_set_by, decision.option) == ("policy", lea, "uphold_reviewer")
    assert "4 of 4, so at least 51%" in decision.rationale

    # Another severity has its own record; what is critical or about security always waits for people.
    assert not_sampled(ledger, severity="medium").is_open
    assert not_sampled(ledger, severity="critical").is_open
    assert not_sampled(ledger, question="Passwords are stored in plain text").is_open

    # A sampled one waits, and the page says how the judge stands.
    while True:
        conflict = judged(ledger)
        if is_in_the_sample(conflict.pk):
            break
        rules(conflict, tom)
    assert conflict.is_open
    assert Event.objects.filter(kind="judge_sampled", task=conflict.task).count() == 1
    client = Client()
    client.force_login(tom)
    page = client.get(f"/queue/{conflict.dispute.ref}/").content.decode()
    assert "People ruled as the judge had said on 4 of 4" in page

    # People differ: the right is gone.
    rules(conflict, tom, "uphold_coder")
    assert opinions.record_of(ledger, "high") == Agreement(4, 5)
    assert not_sampled(ledger).is_open


def test_without_the_setting_or_without_who_set_it_nobody_rules_alone(
    ledger: Project, lea: User, tom: User
) -> None:
    for _ in range(3):
        conflict = disagreement(ledger)
        opinions.ask(conflict, "judge", user=tom)
        opinions.give(conflict.opinions.get(), replace(DISMISS), actor=JUDGE)
        rules(Conflict.objects.get(pk=conflict.pk), tom, "uphold_coder")
    assert opinions.record_of(ledger, "high") == Agreement(3, 3)
    assert opinions.apply_policy(ledger) == 0
    Project.objects.filter(pk=ledger.pk).update(settings={"judge_trust": 0.3})
    ledger.refresh_from_db()
    assert not_sampled(ledger).is_open
    assert Opinion.objects.count() >= 4


def test_the_page_says_where_no_record_lets_the_judge_rule(
    ledger: Project, lea: User, client: Client
) -> None:
    configure(ledger, {"judge_trust": 0.5}, actor=Actor.person(lea))
    client.force_login(lea)
    never = "on what is critical or about security it never rules alone"
    for severity, is_never in (("high", False), ("critical", True)):
        conflict = judged(ledger, severity=severity)
        page = client.get(f"/queue/{conflict.dispute.ref}/").content.decode()
        assert (never in page, "it rules alone from 50%" in page) == (is_never, not is_never), severity
