"""Many disputes at once: the preview says what happens, each item stands alone, and all can be taken back."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from disputes import bulk, opening, rulings, triage
from disputes.bulk import opinions
from disputes.models import Bulk, Conflict, Decision, Dispute
from tasks.errors import Refused
from tasks.events import SYSTEM
from tasks.models import Event, Project, Task
from tasks.remarks.comments import add_comment
from tests.asking import as_user
from tests.factories import create_finding, create_project, create_review, create_submission, create_task

pytestmark = pytest.mark.django_db


def dispute(project: Project, question: str = "Back off, or not?", **kwargs: Any) -> Conflict:
    """An open conflict over a finding of a task of its own."""
    task = create_task(project, status="disputed", round=1)
    return on(task, question, **kwargs)


def on(task: Task, question: str = "Back off, or not?", **kwargs: Any) -> Conflict:
    submission = task.last_submission() or create_submission(task)
    review = submission.reviews.first() or create_review(submission)
    severity = kwargs.pop("severity", "high")
    given = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder", "severity": severity,
        "finding": create_finding(review, severity=severity), "submission": submission,
        "reviewer_position": "Wait longer each time.", "coder_position": "The limiter bounds it.",
    } | kwargs  # fmt: skip
    return opening.open_conflict(task, question=question, **given)


def parked(project: Project) -> Conflict:
    return opening.stop_for_help(
        create_task(project, status="in_progress", round=1), "blocked", "Who has the key?"
    )


def preview(verb: bulk.Verb, user: User, *conflicts: Conflict) -> dict[str, bulk.BulkItem]:
    items = bulk.items_of(verb, [conflict.dispute_id for conflict in conflicts], user)
    return {item.ref: item for item in items}


def act(verb: bulk.Verb, user: User, *conflicts: Conflict, **terms: Any) -> Bulk:
    """What is possible, chosen from the preview and done."""
    items = preview(verb, user, *conflicts)
    chosen = {ref: item.seen for ref, item in items.items() if not item.why_not}
    return bulk.apply(verb, chosen, bulk.Terms(**terms), user)


def came(made: Bulk) -> list[tuple[str, bool]]:
    return [(result["ref"], result["done"]) for result in made.results]


def status(conflict: Conflict) -> str:
    conflict.refresh_from_db()
    return conflict.status


# --- The preview ------------------------------------------------------------------------------------------


def test_the_preview_says_what_happens_to_each_task(ledger: Project, tom: User) -> None:
    clean, unclean, hands = dispute(ledger), dispute(ledger), parked(ledger)
    create_finding(unclean.submission.reviews.get())
    items = preview(bulk.RULE_B, tom, clean, unclean, hands)
    assert "The commit lands as it is" in items[clean.ref].effect
    assert "reviews the rest of this commit" in items[unclean.ref].effect
    assert (items[hands.ref].effect, items[hands.ref].option) == ("", "")
    assert "asks something else" in items[hands.ref].why_not
    assert "Round 2" in preview(bulk.RULE_A, tom, clean)[clean.ref].effect


def test_the_preview_names_the_stages_where_two_disagree(ledger: Project, tom: User) -> None:
    task = create_task(ledger, status="disputed", round=1)
    thread = add_comment(ledger, "The tests are wrong.", actor=SYSTEM, task=task, stage="dev")
    objection = on(task, thread=thread, stage="tests", finding=None)
    items = preview(bulk.RULE_B, tom, objection)
    assert items[objection.ref].effect == "It stays. Round 2: dev goes on, and may not object again."


def test_a_task_with_stages_left_goes_on_to_the_next(tom: User) -> None:
    pipeline = create_project("pipeline", members={tom: "triager"}, settings={"stages": ["dev", "qa"]})
    task = create_task(pipeline, status="disputed", round=1, stage="dev")
    conflict = on(task)
    effect = preview(bulk.RULE_B, tom, conflict)[conflict.ref].effect
    assert effect == "The reviewer may not raise it again. The task goes on to its stage qa."
    made = act(bulk.RULE_B, tom, conflict)
    [result] = made.results
    assert (result["done"], result["words"]) == (True, f"B. {task.ref} goes on to its next stage.")
    task.refresh_from_db()
    assert task.stage == "qa"


def test_what_the_preview_says_is_what_happens(ledger: Project, tom: User) -> None:
    clean, unclean = dispute(ledger), dispute(ledger)
    create_finding(unclean.submission.reviews.get())
    both = dispute(ledger)
    second = on(both.task, "And the other?", severity="medium")
    mixed = dispute(ledger)
    opening.open_conflict(
        mixed.task, kind="help", origin="blocked", opened_as="system", question="Who?", effect="hold"
    )
    items = preview(bulk.RULE_B, tom, clean, unclean, both, mixed)
    act(bulk.RULE_B, tom, clean, unclean, both, mixed)
    outcome = {
        conflict.ref: Task.objects.get(pk=conflict.task.pk).status
        for conflict in (clean, unclean, both, second, mixed)
    }
    assert outcome == {
        clean.ref: "completed", unclean.ref: "review", both.ref: "completed", second.ref: "completed",
        mixed.ref: "disputed",
    }  # fmt: skip
    told = {ref: item.effect for ref, item in items.items() if not item.why_not}
    assert {ref for ref, effect in told.items() if "lands as it is" in effect} == {
        clean.ref, both.ref, second.ref,
    }  # fmt: skip
    assert "The task waits on for C-" in told[mixed.ref]


def test_critical_and_what_one_may_not_rule_on_is_left_out_with_the_reason(
    ledger: Project, tom: User, lea: User
) -> None:
    atlas = create_project("atlas", members={lea: "maintainer", tom: "viewer"})
    worst, foreign = dispute(ledger, severity="critical"), dispute(atlas)
    unseen = dispute(create_project("secret"))
    items = preview(bulk.RULE_A, tom, worst, foreign, unseen)
    assert set(items) == {worst.dispute.ref, foreign.dispute.ref}
    assert "one at a time" in items[worst.dispute.ref].why_not
    assert items[foreign.dispute.ref].why_not == "You may not rule in Atlas."
    assert "one at a time" in preview(bulk.SNOOZE, tom, worst)[worst.dispute.ref].why_not
    assert preview(bulk.ASSIGN, tom, worst)[worst.dispute.ref].why_not == "", "a turn asks for no code"
    made = bulk.apply(
        bulk.RULE_A, {each.ref: "" for each in (worst, foreign, unseen)} | {"C-999": ""}, bulk.Terms(), tom
    )  # fmt: skip
    refs = [worst.ref, foreign.ref, unseen.ref, "C-999"]
    assert came(made) == [(ref, False) for ref in refs]
    hidden, unknown = made.results[2:]
    assert hidden == unknown | {"ref": unseen.ref}, "nobody learns what there is"
    assert Decision.objects.count() == 0


def test_the_preview_of_many_costs_as_much_as_that_of_few(ledger: Project, tom: User) -> None:
    costs = []
    conflicts: list[Conflict] = []
    for number in (2, 10):
        conflicts += [dispute(ledger) for _ in range(number)]
        with CaptureQueriesContext(connection) as queries:
            assert len(preview(bulk.RULE_B, tom, *conflicts)) == len(conflicts)
        costs.append(len(queries))
    assert costs[0] == costs[1]
    assert costs[0] <= 15


# --- Ruling on many ---------------------------------------------------------------------------------------


def test_fifty_two_rulings_are_one_act_and_one_event_a_project(ledger: Project, tom: User) -> None:
    atlas = create_project("atlas", members={tom: "triager"})
    conflicts = [dispute(ledger) for _ in range(50)] + [dispute(atlas) for _ in range(2)]
    made = act(bulk.RULE_A, tom, *conflicts, note="As the specification says.")
    assert all(done for _, done in came(made))
    assert Decision.objects.filter(bulk=made, user=tom, option="uphold_reviewer").count() == 52
    assert set(Decision.objects.values_list("rationale", flat=True)) == {"As the specification says."}
    told = Event.objects.filter(kind="bulk").order_by("pk")
    assert [(event.project, len(event.data["items"])) for event in told] == [(ledger, 50), (atlas, 2)]
    assert {event.label for event in told} == {"Tom Tran"}
    assert Bulk.objects.get() == made


def test_what_others_ruled_meanwhile_is_reported_and_never_overwritten(
    ledger: Project, tom: User, lea: User
) -> None:
    mine, theirs = dispute(ledger), dispute(ledger)
    chosen = {ref: item.seen for ref, item in preview(bulk.RULE_A, tom, mine, theirs).items()}
    rulings.decide(theirs, "uphold_coder", user=lea)
    made = bulk.apply(bulk.RULE_A, chosen, bulk.Terms(), tom)
    assert sorted(came(made)) == sorted([(mine.ref, True), (theirs.ref, False)])
    words = next(result["words"] for result in made.results if result["ref"] == theirs.ref)
    assert words == "Lea Lindt ruled B on it meanwhile."
    assert Decision.objects.get(conflict=theirs).user == lea


def test_each_chosen_item_has_a_result_also_for_whoever_has_left_its_project(
    client: Client, ledger: Project, tom: User
) -> None:
    """What a person could no longer see was missing from the results, as if it had never been chosen."""
    mine, lost = dispute(ledger), dispute(create_project("other"))
    member = lost.dispute.project.memberships.create(user=tom, role="maintainer")
    chosen = {ref: item.seen for ref, item in preview(bulk.RULE_A, tom, mine, lost).items()}
    member.delete()
    made = bulk.apply(bulk.RULE_A, chosen | {"D-<b>": "", "x": ""}, bulk.Terms(), tom)
    assert came(made) == [(mine.ref, True), (lost.ref, False)]
    assert status(lost) == "open"
    html = as_user(client, tom).get(f"/queue/bulk/{made.pk}/").content.decode()
    assert "1 of 2 done" in html
    assert "You may no longer see it; nothing was done." in html
    assert lost.question not in html.replace(mine.question, "", 1)
    assert [result["done"] for result in bulk.undo(made, user=tom)] == [True]


def test_what_changed_since_the_preview_is_left_alone(ledger: Project, tom: User) -> None:
    conflict = dispute(ledger)
    chosen = {ref: item.seen for ref, item in preview(bulk.RULE_A, tom, conflict).items()}
    Conflict.objects.update(coder_position="I see it now.")
    made = bulk.apply(bulk.RULE_A, chosen, bulk.Terms(), tom)
    assert came(made) == [(conflict.ref, False)]
    assert "changed" in made.results[0]["words"]
    assert status(conflict) == "open"


def test_to_discard_counts_for_the_coder_and_says_so(ledger: Project, tom: User) -> None:
    conflict = dispute(ledger)
    act(bulk.DISCARD, tom, conflict, note="Not worth the round.")
    decision = Decision.objects.get()
    assert (decision.option, decision.rationale) == ("uphold_coder", "Discarded: Not worth the round.")


# --- Adopting what is agreed ------------------------------------------------------------------------------


def test_what_close_precedents_agree_on_is_adopted_and_the_rest_left_out(
    ledger: Project, tom: User, lea: User
) -> None:
    words = "Should failed webhook deliveries be retried with exponential backoff and jitter?"
    old = dispute(ledger, words)
    rulings.decide(old, "uphold_coder", user=lea)
    alike, other = dispute(ledger, words), dispute(
        ledger, "Rename amount_minor to amount_cents?", reviewer_position="Cents say what they are.",
        coder_position="Minor units fit yen.",
    )  # fmt: skip
    items = preview(bulk.ADOPT, tom, alike, other)
    assert (items[alike.ref].letter, items[alike.ref].why) == ("B", f"As ruled in {old.dispute.ref}.")
    assert "No ruling on a similar conflict" in items[other.ref].why_not
    act(bulk.ADOPT, tom, alike, other)
    decision = Decision.objects.get(conflict=alike)
    assert (decision.option, decision.user, decision.rationale) == (
        "uphold_coder", tom, f"As ruled in {old.dispute.ref}.",
    )  # fmt: skip
    assert status(other) == "open"


def test_an_opinion_that_differs_or_is_undecided_ends_the_agreement(
    ledger: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    same, differs, unsure, alone = (dispute(ledger) for _ in range(4))
    first = {c.pk: bulk.BulkOpinion("uphold_coder", "One.") for c in (same, differs, unsure)}
    second = {
        same.pk: bulk.BulkOpinion("uphold_coder", "Two."),
        differs.pk: bulk.BulkOpinion("uphold_reviewer", "Two."),
        unsure.pk: None,
        alone.pk: bulk.BulkOpinion("uphold_reviewer", "Two."),
    }
    monkeypatch.setattr(opinions, "OPINIONS", [lambda _: first, lambda _: second])
    assert bulk.agreed([same, differs, unsure, alone]) == {
        same.pk: bulk.BulkOpinion("uphold_coder", "One. Two."),
        alone.pk: bulk.BulkOpinion("uphold_reviewer", "Two."),
    }


# --- Taking it back ---------------------------------------------------------------------------------------


def test_undo_takes_back_what_no_prompt_has_used(ledger: Project, tom: User, lea: User) -> None:
    one, used = dispute(ledger), dispute(ledger)
    made = act(bulk.RULE_A, tom, one, used)
    Decision.objects.filter(conflict=used).update(used_at=timezone.now())
    with pytest.raises(Refused, match="Only who did it"):
        bulk.undo(made, user=lea)
    undone = {result["ref"]: result["done"] for result in bulk.undo(made, user=tom)}
    assert undone == {one.ref: True, used.ref: False}
    assert (status(one), status(used)) == ("open", "decided")
    assert one.task.status == "disputed"
    event = Event.objects.get(kind="bulk_undone")
    assert event.data["items"] == [one.ref]
    with pytest.raises(Refused, match="taken back already"):
        bulk.undo(made, user=tom)


def test_turns_and_sleep_are_put_back_unless_somebody_changed_them(
    ledger: Project, tom: User, lea: User
) -> None:
    one, changed = dispute(ledger), dispute(ledger)
    triage.assign(one.dispute, lea, by=lea)
    given = act(bulk.ASSIGN, tom, one, changed, to=tom)
    triage.assign(Dispute.objects.get(pk=changed.dispute_id), lea, by=lea)
    assert {r["ref"]: r["done"] for r in bulk.undo(given, user=tom)} == {
        one.dispute.ref: True, changed.dispute.ref: False,
    }  # fmt: skip
    assert set(Dispute.objects.values_list("assignee", flat=True)) == {lea.pk}
    asleep = act(bulk.SNOOZE, tom, one, changed, until=timezone.now() + timedelta(hours=1))
    assert Dispute.objects.filter(triage.asleep()).count() == 2
    assert all(result["done"] for result in bulk.undo(asleep, user=tom))
    assert not Dispute.objects.filter(triage.asleep()).exists()


# --- Its pages --------------------------------------------------------------------------------------------


def test_from_the_preview_to_the_undo(client: Client, ledger: Project, tom: User) -> None:
    one, two = dispute(ledger, "First?"), dispute(ledger, "Second?")
    as_user(client, tom)
    page = client.post(
        "/queue/bulk/", {"verb": "rule_b", "dispute": [one.dispute_id, two.dispute_id], "tab": "queue-team"}
    )
    html = page.content.decode()
    assert "Rule B</strong> on 2 of 2" in html
    assert Decision.objects.count() == 0
    items = [f"{item.ref} {item.seen}" for item in page.context["items"] if item.ref == one.ref]
    answer = client.post("/queue/bulk/apply/", {"verb": "rule_b", "item": items, "tab": "queue-team"})
    made = Bulk.objects.get()
    assert answer["Location"] == f"/queue/bulk/{made.pk}/?next=%2Fqueue%2Fteam%2F"
    assert "1 of 1 done" in client.get(answer["Location"]).content.decode()
    assert (status(one), status(two)) == ("decided", "open")
    assert f"/queue/bulk/{made.pk}/undo/" in client.get("/queue/").content.decode()
    back = client.post(f"/queue/bulk/{made.pk}/undo/", {"next": "/queue/?kind=help"})
    assert back["Location"] == "/queue/?kind=help"
    assert status(one) == "open"


def test_all_that_match_the_filters_are_taken_not_only_those_of_the_page(
    client: Client, ledger: Project, tom: User
) -> None:
    for _ in range(3):
        dispute(ledger)
    dispute(ledger, severity="medium")
    asked = {"verb": "adopt", "all": "1", "tab": "queue", "query": "severity=high"}
    page = as_user(client, tom).post("/queue/bulk/", asked)
    assert len(page.context["items"]) == 3


def test_of_more_than_one_act_takes_the_page_says_that_these_are_the_first(
    client: Client, ledger: Project, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BULK_MAX", 2)
    for number in (2, 3):
        while Dispute.objects.count() < number:
            dispute(ledger)
        shown = as_user(client, tom).post("/queue/bulk/", {"verb": "assign", "all": "1"}).content.decode()
        assert "on 2 of 2" in shown
        assert ("More than 2 match; these are the first." in shown) == (number == 3)


def test_what_was_typed_stays_where_something_is_missing(client: Client, ledger: Project, tom: User) -> None:
    conflict = dispute(ledger)
    seen = preview(bulk.ASSIGN, tom, conflict)[conflict.dispute.ref].seen
    sent = {"verb": "assign", "dispute": conflict.dispute_id, "item": f"{conflict.dispute.ref} {seen}"}
    as_user(client, tom)
    page = client.post("/queue/bulk/apply/", sent)
    assert page.status_code == 422
    assert "Say whose turn it is." in page.content.decode()
    assert client.post("/queue/bulk/apply/", sent | {"to": "me"}).status_code == 302
    assert Dispute.objects.get().assignee == tom


def test_rights_are_asked_first(client: Client, ledger: Project, tom: User, vera: User, lea: User) -> None:
    made = act(bulk.RULE_A, tom, dispute(ledger))
    as_user(client, vera)
    for path in ("/queue/bulk/", "/queue/bulk/apply/"):
        assert client.post(path).status_code == 403
    for user in (vera, lea):
        as_user(client, user)
        assert client.get(f"/queue/bulk/{made.pk}/").status_code == 404
        assert client.post(f"/queue/bulk/{made.pk}/undo/").status_code == 404
    as_user(client, tom)
    assert client.post("/queue/bulk/").status_code == 422
    assert client.post("/queue/bulk/", {"verb": "rule_a"})["Location"] == "/queue/"
