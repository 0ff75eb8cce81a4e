"""Ruling with care: friction by risk, what was shown, how long it took, and rights before anything else."""

import re
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from disputes import opening, rulings
from disputes.models import Conflict, Decision, Dispute
from disputes.web.dispute.forms import seconds_since, signed_now
from tasks.errors import Refused
from tasks.models import Event, Finding, Project, Task
from tests.asking import as_user
from tests.cases import for_each
from tests.disputes.web.test_dispute_page import DIFF, open_conflict, page, typed
from tests.factories import create_finding, create_review, create_submission, create_task

pytestmark = pytest.mark.django_db


def disputed(project: Project, severity: str = "high", **kwargs: Any) -> Conflict:
    """A declined finding with its code."""
    task = create_task(
        project, title="Call politely", body="Wait between calls. Nobody may be hammered.", status="disputed",
        source="docs/SPEC.md#4.3", round=1,
    )  # fmt: skip
    submission = create_submission(task, round=1, diff=DIFF)
    finding = create_finding(create_review(submission), severity=severity, line=11)
    return open_conflict(task, finding=finding, submission=submission, severity=severity, **kwargs)


def mark(client: Client, conflict: Conflict) -> str:
    """What the page's form sends once the code was opened."""
    html = client.get(page(conflict), {"conflict": conflict.ref}).content.decode()
    found = re.search(r'name="opened" value="(\w+)"', html)
    assert found
    return found[1]


# --- CRITICAL ---------------------------------------------------------------------------------------------


def test_critical_wants_the_code_opened_and_a_reason(client: Client, ledger: Project, tom: User) -> None:
    conflict = disputed(ledger, "critical")
    as_user(client, tom)
    html = client.get(page(conflict)).content.decode()
    assert '<details class="opening" data-code>' in html
    assert "needed at Critical" in html
    opened = mark(client, conflict)
    for form, why in (
        ({"opened": ""}, "you have not opened the code"),
        ({"opened": "1" * 16}, "you have not opened the code"),
        ({"opened": opened, "rationale": " "}, "say why"),
        ({"opened": opened, "rationale": "", "discard": "1"}, "say why"),
    ):
        response = client.post(page(conflict, "decide/"), typed(conflict, **form))
        assert response.status_code == 422
        html = response.content.decode()
        assert why in html
        assert "Measure it first." in html
    assert not Decision.objects.exists()
    assert client.post(page(conflict, "decide/"), typed(conflict, opened=opened)).status_code == 302


def test_the_whole_diff_counts_as_the_code(client: Client, ledger: Project, tom: User) -> None:
    conflict = disputed(ledger, "critical")
    as_user(client, tom).get(page(conflict, "diff/"), {"conflict": conflict.ref})
    assert "data-opened checked" in client.get(page(conflict)).content.decode()
    assert client.post(page(conflict, "decide/"), typed(conflict)).status_code == 302


def test_without_code_there_is_none_to_open(client: Client, ledger: Project, tom: User) -> None:
    conflict = open_conflict(create_task(ledger, status="disputed"), severity="critical")
    as_user(client, tom)
    assert "data-opened" not in client.get(page(conflict)).content.decode()
    assert client.post(page(conflict, "decide/"), typed(conflict)).status_code == 302


def test_a_script_gives_a_reason_as_well(ledger: Project, tom: User) -> None:
    conflict = disputed(ledger, "critical")
    with pytest.raises(Refused) as refused:
        rulings.decide(conflict, "uphold_coder", user=tom)
    assert refused.value.code == "rationale_missing"
    rulings.decide(conflict, "uphold_coder", user=tom, rationale="It is bounded.")


def test_others_need_neither(client: Client, ledger: Project, tom: User) -> None:
    conflict = disputed(ledger, "high")
    as_user(client, tom)
    assert client.post(page(conflict, "decide/"), typed(conflict, rationale="")).status_code == 302


def test_only_at_low_a_key_rules_at_once(client: Client, ledger: Project, tom: User) -> None:
    low = disputed(ledger, "low", opened_as="human")
    as_user(client, tom)
    assert "data-at-once" in client.get(page(low)).content.decode()
    assert "data-at-once" not in client.get(page(disputed(ledger, "medium"))).content.decode()
    hands = opening.stop_for_help(
        create_task(ledger, status="in_progress", severity="low"), "blocked", "Who?"
    )
    assert "data-at-once" not in client.get(page(hands)).content.decode()


# --- Discarding -------------------------------------------------------------------------------------------


def test_a_finding_is_discarded_without_choosing(client: Client, ledger: Project, tom: User) -> None:
    conflict = disputed(ledger)
    form = typed(conflict, option="", text="Not used.", rationale="It is no fault.", discard="1")
    response = as_user(client, tom).post(page(conflict, "decide/"), form)
    assert response.status_code == 302
    decision = Decision.objects.get()
    assert (decision.option, decision.rationale) == ("uphold_coder", "Discarded: It is no fault.")
    assert (decision.text, decision.expects_change) == (conflict.coder_position, False)


# --- What was shown ---------------------------------------------------------------------------------------


@for_each("what", ["finding", "code", "newer code", "task", "evidence"])
def test_what_has_changed_since_is_looked_at_again(
    client: Client, ledger: Project, tom: User, what: str
) -> None:
    conflict = disputed(ledger)
    form = typed(conflict)
    match what:
        case "finding":
            Finding.objects.update(impact="Two dead servers are hammered.")
        case "code":
            conflict.task.submissions.update(patch_id="f" * 40)
        case "newer code":
            create_submission(conflict.task, round=2)
        case "task":
            Task.objects.update(body="Hammer away.")
        case "evidence":
            Conflict.objects.update(evidence=["The place did not change."])
    response = as_user(client, tom).post(page(conflict, "decide/"), form)
    assert response.status_code == 409
    html = response.content.decode()
    assert "has changed since you opened it" in html
    assert "Measure it first." in html
    fresh = re.search(r'name="shown" value="(\w+)"', html)
    assert fresh
    assert client.post(page(conflict, "decide/"), form | {"shown": fresh[1]}).status_code == 302


def test_a_stale_page_is_told_before_a_fault_of_the_form(client: Client, ledger: Project, tom: User) -> None:
    """Else the page would come back with the new hash, and the change go unseen."""
    conflict = disputed(ledger, "critical")
    form = typed(conflict, option="", rationale="")
    Finding.objects.update(impact="Two dead servers are hammered.")
    response = as_user(client, tom).post(page(conflict, "decide/"), form)
    assert "has changed since you opened it" in response.content.decode()


def test_the_hash_of_the_page_is_the_hash_that_is_held_against_it(
    client: Client, ledger: Project, tom: User
) -> None:
    conflict = disputed(ledger)
    create_submission(conflict.task, round=2)
    html = as_user(client, tom).get(page(conflict)).content.decode()
    assert f'name="shown" value="{rulings.shown_hash(conflict)}"' in html


# --- How long it took -------------------------------------------------------------------------------------


def test_a_ruling_knows_how_long_the_card_was_before_the_person(
    client: Client, ledger: Project, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    conflict = disputed(ledger)
    since = re.search(
        r'name="since" value="([^"]+)"', as_user(client, tom).get(page(conflict)).content.decode()
    )
    assert since
    client.post(page(conflict, "decide/"), typed(conflict, since=since[1], option=""))
    client.post(page(conflict, "decide/"), typed(conflict, since=since[1]))
    seconds = Decision.objects.get().seconds
    assert seconds is not None
    assert 0 <= seconds < 3_600
    now = timezone.now()
    monkeypatch.setattr("disputes.web.dispute.forms.estimated_time", lambda: now - timedelta(seconds=90))
    mark = signed_now(conflict)
    monkeypatch.setattr("disputes.web.dispute.forms.estimated_time", lambda: now)
    assert seconds_since(mark, conflict) == pytest.approx(90)


def test_a_mark_of_somebody_else_or_of_another_card_counts_for_nothing(
    client: Client, ledger: Project, tom: User
) -> None:
    conflict, other = disputed(ledger), disputed(ledger)
    assert seconds_since(signed_now(other), conflict) is None
    as_user(client, tom).post(page(conflict, "decide/"), typed(conflict, since="1:forged"))
    assert Decision.objects.get().seconds is None


# --- Choosing, precedents, comments -----------------------------------------------------------------------


def test_the_address_may_choose(client: Client, ledger: Project, tom: User) -> None:
    conflict = disputed(ledger)
    as_user(client, tom)
    html = client.get(page(conflict), {"choose": "b"}).content.decode()
    assert re.search(r'value="uphold_coder" required checked', html)
    assert f">\n{conflict.coder_position}</textarea>" in html
    assert " required checked" not in client.get(page(conflict), {"choose": "9"}).content.decode()


def test_the_page_shows_precedents_the_specification_and_what_was_said(
    client: Client, ledger: Project, tom: User, lea: User
) -> None:
    rulings.decide(disputed(ledger), "uphold_coder", user=lea, rationale="The limiter was measured.")
    conflict = disputed(ledger)
    conflict.task.submissions.update(specification="Nobody may be hammered.")
    as_user(client, tom).post(f"/tasks/{conflict.task.ref}/comments/", {"body": "Ask **@lea**."})
    html = client.get(page(conflict)).content.decode()
    for words in ("1 similar", "The limiter was measured.", "much alike", "docs/SPEC.md §4.3",
                  "Nobody may be hammered.", "Ask <strong>@lea</strong>."):  # fmt: skip
        assert words in html
    assert Event.objects.get(kind="commented").data["mentions"] == [lea.pk]


def test_who_decides_just_now_is_seen_by_others(
    client: Client, ledger: Project, tom: User, lea: User
) -> None:
    conflict = disputed(ledger)
    as_user(client, lea).post(page(conflict, "claim/"))
    html = as_user(client, tom).get(page(conflict)).content.decode()
    assert "Lea is deciding, seen" in html
    assert client.post(page(conflict, "decide/"), typed(conflict)).status_code == 302


# --- Rights -----------------------------------------------------------------------------------------------


def test_rights_come_before_the_form(
    client: Client, ledger: Project, vera: User, otto: User, tom: User
) -> None:
    conflict = disputed(ledger)
    decision = rulings.decide(disputed(ledger), "uphold_coder", user=tom)
    paths = [page(conflict, f"{what}/") for what in ("decide", "preview", "severity", "same", "synthesis")]
    paths += [f"/queue/decisions/{decision.pk}/{verb}/" for verb in ("undo", "reopen")]
    for user, status in ((vera, 403), (otto, 404)):
        as_user(client, user)
        for path in paths:
            for form in ({}, {"conflict": "C-999999"}, typed(conflict)):
                assert client.post(path, form).status_code == status, path


# --- Cost -------------------------------------------------------------------------------------------------


def test_the_page_takes_twelve_queries_at_any_size_and_one_more_within_a_filter(
    client: Client, ledger: Project, tom: User, lea: User, django_assert_max_num_queries: Any
) -> None:
    small = disputed(ledger)
    large = long_history(ledger, tom, lea)
    as_user(client, tom)
    client.get(page(small))
    ways = (("/queue/?project=ledger&q=the", 13), ("/queue/", 12))
    for conflict, (before, queries) in product((small, large), ways):
        client.get(before)
        cache.clear()
        with django_assert_max_num_queries(queries):
            assert client.get(page(conflict), {"conflict": conflict.ref}).status_code == 200


def long_history(project: Project, tom: User, lea: User) -> Conflict:
    """A card of silence with a flag, after rounds, comments and rulings on much the same."""
    for _ in range(3):
        rulings.decide(disputed(project), "uphold_coder", user=tom)
    conflict = disputed(project, kind="silence", origin="flagged", evidence=["forgot? the output is short"])
    task = conflict.task
    conflict.flags.create(
        finding=conflict.finding, submission=conflict.submission, level="warn", heuristics=["H1", "H4"],
        overlap=0.12,
    )  # fmt: skip
    for number in range(2, 6):
        review = create_review(create_submission(task, round=number, diff=DIFF))
        create_finding(review, first=conflict.finding)
        create_finding(review, possibly=conflict.finding)
        other = open_conflict(task, f"Question {number}", severity="medium")
        rulings.decide(other, "uphold_reviewer", user=lea)
        task.comments.create(project=project, body=f"Comment {number}", by_label="Lea", by_kind="person")
        task.project.events.create(task=task, kind="noted", label="Lea", actor_kind="person")
    Dispute.objects.filter(pk=conflict.dispute_id).update(
        claimed_by=lea, claimed_until=timezone.now() + timedelta(minutes=4), assignee=tom
    )
    return conflict
