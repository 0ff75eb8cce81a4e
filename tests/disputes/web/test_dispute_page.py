"""The page of a dispute: reading it, ruling on it, and every way in which a ruling is refused."""

import re
from datetime import timedelta
from html import escape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from disputes import opening, rulings
from disputes.models import Conflict, Decision, Dispute
from disputes.protocol.rulings.prompt_lines import ruling_lines
from tasks.models import Answer, Comment, Event, Project, Submission, Task
from tests.asking import as_user, page
from tests.cases import for_each
from tests.factories import (
    create_finding,
    create_project,
    create_review,
    create_submission,
    create_task,
    create_user,
)

pytestmark = pytest.mark.django_db

DIFF = """\
diff --git a/src/calls.py b/src/calls.py
--- a/src/calls.py
+++ b/src/calls.py
@@ -10,3 +10,3 @@
 def call():
-    retry(now=True)
+    retry(after=DELAY)
     return None
"""


@pytest.fixture
def conflict(ledger: Project) -> Conflict:
    """Raised in round 1, declined in round 2."""
    task = create_task(ledger, title="Call politely", body="Be kind to servers.", status="disputed", round=2)
    first = create_submission(task, round=1, diff=DIFF)
    finding = create_finding(
        create_review(first, by_agent="reviewer-2", by_model="Codex"),
        excerpt="def call():\n    retry(after=DELAY)\n    return None", excerpt_start=10, line=11,
    )  # fmt: skip
    second = create_submission(task, round=2, diff_stat={"files": [["src/calls.py", 1, 1]]})
    Answer.objects.create(submission=second, finding=finding, kind="declined", text="It is bounded.")
    return open_conflict(task, finding=finding, submission=second)


def open_conflict(task: Task, question: str = "Back off, or not?", **kwargs: Any) -> Conflict:
    given = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder", "severity": "high",
        "reviewer_position": "Wait longer each time.", "reviewer_label": "reviewer-2",
        "coder_position": "The limiter bounds it.", "coder_rationale": "Ten calls a second.",
        "coder_label": "coder-1", "alternative": "Wait a minute.",
    } | kwargs  # fmt: skip
    return opening.open_conflict(task, question=question, **given)


def parked(project: Project) -> Conflict:
    """A card that needs help."""
    task = create_task(project, status="in_progress", round=1)
    create_submission(task, state="red", problem="tests: exit code 1")
    return opening.stop_for_help(task, "blocked", "Who has the key?", detail="`KEY` is not set.")


def typed(conflict: Conflict, option: str = "other", **kwargs: str) -> dict[str, str]:
    """The form as a browser sends it."""
    given = {
        "conflict": conflict.ref, "option": option, "text": "Measure it first.", "rationale": "Nobody knows.",
        "constraints": "No new setting.", "shown": rulings.shown_hash(conflict), "expects_change": "on",
    }  # fmt: skip
    return given | kwargs


def said(response: Any) -> list[str]:
    return [str(message) for message in response.context["messages"]]


# --- Reading ------------------------------------------------------------------------------------------------


def test_the_page_shows_both_sides_the_code_and_the_options(
    client: Client, conflict: Conflict, tom: User
) -> None:
    html = as_user(client, tom).get(page(conflict)).content.decode()
    wanted = [
        "Back off, or not?", "Conflict <strong>1 of 1</strong>", conflict.finding.code, "Your turn",
        "reviewer-2 · Codex · round 1", "A dead server is hammered.", "Wait longer each time.",
        "coder-1 · round 2", "The limiter bounds it.", "Ten calls a second.", "Wait a minute.",
        "src/calls.py:11", "points here.", 'class="removed"', 'class="added is-place"', "Be kind to servers.",
        'value="uphold_reviewer"', 'value="uphold_coder"', 'value="compromise"', 'value="other"',
        "Round 3: the coder",
    ]  # fmt: skip
    assert [words for words in wanted if words not in html] == []
    assert " checked" not in html.replace('name="expects_change" id="id_expects_change" checked', "")


def test_a_card_without_a_place_shows_a_short_diff_whole_and_says_why_a_side_is_silent(
    client: Client, ledger: Project, tom: User
) -> None:
    task = create_task(ledger, status="disputed")
    lines = "".join(f"+line {number}\n" for number in range(30))
    head = "diff --git a/new.txt b/new.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new.txt\n"
    diff = f"{head}@@ -0,0 +1,30 @@\n{lines}"
    submission = create_submission(task, diff=diff, diff_stat={"files": [["new.txt", 30, 0]]})
    conflict = open_conflict(
        task, submission=submission, origin="cli", opened_as="reviewer",
        coder_position="", coder_rationale="", alternative="",
    )  # fmt: skip
    client = as_user(client, tom)
    html = client.get(page(conflict)).content.decode()
    assert html.count("Not stated") == 1
    assert "The reviewer opened this dispute before the coder could answer." in html
    assert "line 29" in html
    Submission.objects.update(diff=diff.replace("+line 7\n", "+line\n" * 100))
    html = client.get(page(conflict)).content.decode()
    assert "line 29" not in html
    assert "new.txt" in html


def test_a_question_about_the_whole_task_shows_the_task_and_its_files(
    client: Client, ledger: Project, tom: User
) -> None:
    task = create_task(ledger, status="disputed", body="Be kind.", source="docs/SPEC.md#4.3")
    submission = create_submission(task, diff_stat={"files": [["src/calls.py", 3, 1]]})
    conflict = open_conflict(task, submission=submission)
    html = as_user(client, tom).get(page(conflict)).content.decode()
    for words in ("Be kind.", "docs/SPEC.md#4.3", "src/calls.py", "+3", "−1", "Whole diff, 1 file"):
        assert words in html


def test_the_specification_is_quoted_from_the_reviewed_commit_and_the_task_as_the_task(
    client: Client, conflict: Conflict, tom: User
) -> None:
    Task.objects.update(source="docs/SPEC.md#calls")
    client.force_login(tom)

    def quoted() -> tuple[str, str]:
        html = client.get(f"/queue/{conflict.dispute.ref}/").content.decode()
        found = re.search(r"<cite>(.*?)</cite><blockquote>(.*?)</blockquote>", html, re.DOTALL)
        assert found
        return found[1], found[2]

    assert quoted() == ("Task", "Be kind to servers.")
    words = {"specification": "## Calls\n\nA call waits\nbetween tries."}
    Submission.objects.filter(round=1).update(**words)  # the one that was reviewed
    assert quoted() == ("docs/SPEC.md §calls", "A call waits between tries.")


def test_the_rail_tells_what_happened_before(
    client: Client, conflict: Conflict, tom: User, lea: User
) -> None:
    other = open_conflict(conflict.task, "Rename it?", severity="medium")
    rulings.decide(other, "uphold_coder", user=lea, rationale="Names are cheap.")
    Comment.objects.create(
        project=conflict.dispute.project, task=conflict.task, body="See the page.", by_label="Jana",
        by_kind="person",
    )  # fmt: skip
    response = as_user(client, tom).get(page(conflict))
    html = response.content.decode()
    for words in ("Rename it?", "decided: B", "Lea Lindt", "Names are cheap.", "See the page.", "History"):
        assert words in html
    steps = [(step.mark, step.word) for step in response.context["card"].strip()]
    assert steps == [("A", "raised"), ("B", "declined")]


def test_the_worst_open_conflict_comes_first_and_others_are_named(
    client: Client, conflict: Conflict, tom: User
) -> None:
    other = open_conflict(conflict.task, "Is it safe?", severity="critical")
    as_user(client, tom)
    assert client.get(page(conflict)).context["conflict"] == other
    assert client.get(page(conflict), {"conflict": conflict.ref}).context["conflict"] == conflict
    assert client.get(page(conflict), {"conflict": "C-999999"}).status_code == 404


def test_a_ruled_dispute_shows_its_ruling_and_what_became_of_it(
    client: Client, conflict: Conflict, tom: User, lea: User
) -> None:
    rulings.decide(conflict, "uphold_reviewer", user=lea, rationale="It was measured.")
    as_user(client, tom)
    html = client.get(page(conflict)).content.decode()
    for words in ("ruled by Lea Lindt", "It was measured.", "Waiting for agents.", "Reopen"):
        assert words in html
    for followed, words in (
        ("applied", "Applied."),
        ("not_honoured", "Not honoured."),
        ("cannot_tell", "Could not verify."),
    ):
        Conflict.objects.filter(pk=conflict.pk).update(followed=followed)
        assert words in client.get(page(conflict)).content.decode()


def test_a_viewer_reads_and_is_told_why_there_is_no_form(
    client: Client, conflict: Conflict, vera: User
) -> None:
    html = as_user(client, vera).get(page(conflict)).content.decode()
    assert "You may read here, not rule." in html
    assert "data-ruling" not in html
    assert "The limiter bounds it." in html


def test_an_outsider_learns_nothing(client: Client, conflict: Conflict, otto: User, lea: User) -> None:
    decision = rulings.decide(conflict, "uphold_coder", user=lea)
    as_user(client, otto)
    assert client.get(page(conflict)).status_code == 404
    assert client.get(page(conflict, "diff/")).status_code == 404
    assert client.post(page(conflict, "decide/"), typed(conflict)).status_code == 404
    assert client.post(page(conflict, "preview/"), typed(conflict)).status_code == 404
    assert client.post(f"/queue/decisions/{decision.pk}/undo/").status_code == 404
    assert client.post(f"/queue/decisions/{decision.pk}/reopen/", {"reason": "No"}).status_code == 404


def test_what_does_not_exist_is_not_found(client: Client, tom: User) -> None:
    as_user(client, tom)
    for path in ("/queue/D-999/", "/queue/D-99999999999999999999999/", "/queue/D-x/"):
        assert client.get(path).status_code == 404


def test_reading_is_get_and_ruling_is_post(client: Client, conflict: Conflict, tom: User) -> None:
    as_user(client, tom)
    assert client.post(page(conflict)).status_code == 405
    for what in ("decide/", "preview/"):
        assert client.get(page(conflict, what)).status_code == 405
    assert client.get("/queue/decisions/1/undo/").status_code == 405


def test_a_ruling_from_another_site_is_refused(conflict: Conflict, tom: User) -> None:
    strict = as_user(Client(enforce_csrf_checks=True), tom)
    assert strict.post(page(conflict, "decide/"), typed(conflict)).status_code == 403
    assert not Decision.objects.exists()


def test_the_whole_diff_is_one_click_away(client: Client, conflict: Conflict, tom: User) -> None:
    conflict.submission.diff = DIFF + "+<script>alert(1)</script>\u202e\n"
    conflict.submission.diff = conflict.submission.diff.replace("-10,3 +10,3", "-10,3 +10,4")
    conflict.submission.save()
    for view in ("", "split"):
        html = as_user(client, tom).get(page(conflict, "diff/"), {"view": view}).content.decode()
        assert "src/calls.py" in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;\u27e8U+202E\u27e9" in re.sub("<[^>]*>", "", html)
        assert ("code-split" in html) is bool(view)


def test_what_lands_with_the_diff_is_told_beside_it(client: Client, conflict: Conflict, tom: User) -> None:
    told = {
        "sha": "c" * 40, "author": "Boss <boss@x>, 2001-02-03", "committer": "a <a@x>, 2026-01-02",
        "message": "Fine\n\n<b>Reviewed-by: le\u200ba</b>\u202e",
    }  # fmt: skip
    stat = {"files": [], "commits": [told], "undone": ["key\u202e.pem"], "more": 3}
    conflict.submission.diff_stat = stat
    conflict.submission.save()
    conflict.task.submissions.update(diff_stat=stat)
    for path in (
        page(conflict, "diff/"),
        f"/tasks/{conflict.task.ref}/",
        f"/tasks/{conflict.task.ref}/diff/",
    ):
        html = as_user(client, tom).get(path).content.decode()
        for words in (
            "Boss &lt;boss@x&gt;, 2001-02-03", "committed by a &lt;a@x&gt;", "key\u27e8U+202E\u27e9.pem",
            "&lt;b&gt;Reviewed-by: le\u27e8U+200B\u27e9a&lt;/b&gt;\u27e8U+202E\u27e9", "3 earlier commits",
        ):  # fmt: skip
            assert words in html, (path, words)


def test_hostile_text_is_text(client: Client, ledger: Project, tom: User) -> None:
    evil = "</textarea><script>alert('x')</script>\u202e\x1b[2J` onload=`"
    task = create_task(ledger, title=evil, body=evil, source=evil[:300], status="disputed", round=1)
    submission = create_submission(task, problem=evil, by_agent=evil)
    finding = create_finding(
        create_review(submission, by_agent=evil, by_model=evil), title=evil, impact=evil, suggestion=evil,
        text=evil + "more", excerpt=evil, excerpt_start=12, path=f"{evil}.py",
    )  # fmt: skip
    conflict = open_conflict(
        task, evil, finding=finding, submission=submission, reviewer_position=evil, coder_position=evil,
        coder_rationale=evil, alternative=evil, reviewer_label=evil, coder_label=evil,
    )  # fmt: skip
    Comment.objects.create(project=ledger, task=task, body=evil, by_label=evil, by_kind="person")
    as_user(client, tom)
    for path in (page(conflict), page(conflict, "diff/"), "/queue/"):
        html = client.get(path).content.decode()
        assert "alert(&#x27;x&#x27;)" in html
        assert "<script>alert" not in html
        assert "\u202e" not in html
        assert "\x1b" not in html


def test_the_page_costs_no_more_with_more_conflicts(client: Client, conflict: Conflict, lea: User) -> None:
    as_user(client, lea)
    costs = []
    for number in (2, 6):
        for index in range(number):
            other = open_conflict(conflict.task, f"Question {number} {index}", severity="medium")
            rulings.decide(other, "uphold_reviewer", user=lea)
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            assert client.get(page(conflict), {"conflict": conflict.ref}).status_code == 200
        costs.append(len(queries))
    assert costs[0] == costs[1]


# --- The preview --------------------------------------------------------------------------------------------


@for_each("option", ["uphold_reviewer", "uphold_coder", "other"])
def test_the_preview_is_what_the_prompt_will_say(
    client: Client, conflict: Conflict, tom: User, option: str
) -> None:
    form = typed(conflict, option, text="Measure it.\r\nThen decide.")
    lines = as_user(client, tom).post(page(conflict, "preview/"), form).json()["lines"]
    assert lines == rulings.preview(
        conflict, option, text="Measure it.\nThen decide.", rationale="Nobody knows.",
        constraints="No new setting.", expects_change=option != "uphold_coder",
    )  # fmt: skip
    client.post(page(conflict, "decide/"), form)
    assert lines == ruling_lines([rulings.ruling_of(Decision.objects.get())])


def test_an_empty_text_previews_the_options_own_words(client: Client, conflict: Conflict, tom: User) -> None:
    form = typed(conflict, "uphold_reviewer", text="")
    lines = as_user(client, tom).post(page(conflict, "preview/"), form).json()["lines"]
    assert "   Ruling: Wait longer each time." in lines


def test_a_task_that_stops_gets_no_prompt(client: Client, ledger: Project, tom: User) -> None:
    conflict = parked(ledger)
    as_user(client, tom)
    assert client.post(page(conflict, "preview/"), typed(conflict, "cancel")).json() == {"lines": []}
    assert client.post(page(conflict, "preview/"), typed(conflict, "retry")).json()["lines"]


def test_a_preview_is_for_those_who_rule_and_needs_an_option(
    client: Client, conflict: Conflict, tom: User, vera: User
) -> None:
    assert as_user(client, tom).post(page(conflict, "preview/"), typed(conflict, "retry")).status_code == 422
    assert as_user(client, vera).post(page(conflict, "preview/"), typed(conflict)).status_code == 403


# --- Ruling -------------------------------------------------------------------------------------------------


def test_a_ruling_is_kept_told_and_leads_to_the_next(client: Client, conflict: Conflict, tom: User) -> None:
    following = open_conflict(create_task(conflict.dispute.project, status="disputed"), "Rename it?")
    response = as_user(client, tom).post(page(conflict, "decide/"), typed(conflict), follow=True)
    decision = Decision.objects.get()
    assert (decision.option, decision.text, decision.user) == ("other", "Measure it first.", tom)
    assert (decision.rationale, decision.constraints_text) == ("Nobody knows.", "No new setting.")
    assert decision.shown_hash == typed(conflict)["shown"]
    assert Event.objects.get(kind="ruled").label == "Tom Tran"
    assert response.redirect_chain == [(page(following), 302)]
    assert said(response)[0].startswith(f"You ruled D on {conflict.dispute.ref}, Call politely.")
    assert f'action="/queue/decisions/{decision.pk}/undo/"' in response.content.decode()


def test_the_way_leads_through_a_dispute_then_on_from_where_it_stood_among_what_matches(
    client: Client, conflict: Conflict, tom: User
) -> None:
    """Its lesser conflict takes nobody past what is worse; a filter holds until the queue is seen without."""
    ledger = conflict.dispute.project
    atlas = create_project("atlas", members={tom: "triager"})
    open_conflict(conflict.task, "And here?", severity="medium")
    cards = {
        question: open_conflict(create_task(project, status="disputed"), question, severity=severity)
        for project, question, severity in (
            (atlas, "Elsewhere?", "high"), (ledger, "Next?", "medium"), (ledger, "Last?", "medium"),
        )
    }  # fmt: skip
    as_user(client, tom)

    def rule(card: Conflict) -> Any:
        return client.post(page(card, "decide/"), typed(card), follow=True)

    for address, then in (("/queue/", "Elsewhere?"), ("/queue/team/?project=ledger&holder=nobody", "Next?")):
        client.get(address)
        client.get("/queue/?severity=critical", headers={"X-Live": "1"})  # another window's, by itself
        shown = rule(conflict)
        assert shown.context["conflict"].question == "And here?"
        rulings_here = [rule(shown.context["conflict"])]
        assert rulings_here[0].context["conflict"].question == then, address
        for decision in Decision.objects.standing():
            client.post(f"/queue/decisions/{decision.pk}/undo/")
    shown = client.get(page(cards["Next?"]))
    assert (shown.context["around"].place, shown.context["around"].places) == ("2", "3")
    assert '<a href="/queue/?project=ledger">that match</a>' in shown.content.decode()
    assert client.get(page(cards["Elsewhere?"])).context["around"].places == "4", "it does not match"
    one, other = "http://testserver/queue/?project=ledger&page=1", "http://testserver/queue/?q=Elsewhere"
    step = re.search(r'href="([^"]+)" data-next', shown.content.decode())
    for address, came_from, kept in (  # two windows, each with a list of its own
        (page(cards["Elsewhere?"]), other, "q=Elsewhere"),
        (page(cards["Next?"]), one, "project=ledger"),
        (page(cards["Elsewhere?"]), other, "q=Elsewhere"),
        (step[1], "", "project=ledger"),
        (page(cards["Elsewhere?"]), other, "q=Elsewhere"),
    ):
        assert client.get(address, headers={"Referer": came_from}).context["around"].filter == kept, address
    ruled = client.post(
        page(cards["Next?"], "decide/"), typed(cards["Next?"], filter="project=ledger"), follow=True
    )
    assert ruled.context["conflict"].question == "Last?"
    assert ruled.context["around"].filter == "project=ledger"
    client.post(f"/queue/decisions/{Decision.objects.standing().get().pk}/undo/")
    from_a_mail = client.post(page(conflict, "decide/"), typed(conflict, filter=""), follow=True)
    assert from_a_mail.context["around"].filter == "", "its page spoke of no filter"
    client.post(f"/queue/decisions/{Decision.objects.standing().get().pk}/undo/")
    client.get(one)
    for question, then in (("Next?", "Last?"), ("Last?", conflict.question)):
        assert rule(cards[question]).context["conflict"].question == then
    was_faster = client.get(page(cards["Last?"])).context["around"]
    assert (was_faster.previous, was_faster.next, was_faster.place) == (conflict.dispute_id, None, "")
    assert was_faster.filter == "project=ledger"
    client.get("/queue/?q=Elsewhere")
    assert rule(cards["Elsewhere?"]).redirect_chain == [("/queue/?q=Elsewhere", 302)]
    client.get("/queue/")
    assert client.get(page(conflict)).context["around"].filter == ""
    for words, kept in (("é" * 200, urlencode({"q": "é" * 200})), ("€" * 400, "")):
        client.get("/queue/", {"q": words})
        assert client.cookies[f"queue-filter-{tom.pk}"].value == kept, "as much as a browser keeps"
    client.cookies[f"queue-filter-{tom.pk}"] = "next=//evil&holder=me&project=ledger&severity=%00"
    shown = client.get(page(conflict))
    assert (shown.status_code, shown.context["around"].filter) == (200, "project=ledger&severity=%00")


def test_after_the_last_one_the_queue_is_empty(client: Client, conflict: Conflict, tom: User) -> None:
    response = as_user(client, tom).post(page(conflict, "decide/"), typed(conflict), follow=True)
    assert response.redirect_chain == [("/queue/", 302)]
    assert "Nothing waits for you." in response.content.decode()


def test_whether_the_code_must_change_is_asked_for_own_words_only(
    client: Client, conflict: Conflict, ledger: Project, tom: User
) -> None:
    as_user(client, tom)
    form = typed(conflict)
    del form["expects_change"]
    client.post(page(conflict, "decide/"), form)
    assert Decision.objects.get().expects_change is False
    hands = parked(ledger)
    form = typed(hands, "retry")
    del form["expects_change"]
    client.post(page(hands, "decide/"), form)
    assert Decision.objects.get(conflict=hands).expects_change is True


@for_each(("option", "status"), [("retry", "in_progress"), ("defer", "deferred"), ("cancel", "cancelled")])
def test_a_card_that_needs_help_moves_its_task(
    client: Client, ledger: Project, tom: User, option: str, status: str
) -> None:
    conflict = parked(ledger)
    html = as_user(client, tom).get(page(conflict)).content.decode()
    for words in ("<code>KEY</code> is not set.", "tests: exit code 1", "Instruct and retry", "option-3"):
        assert words in html
    assert client.post(page(conflict, "decide/"), typed(conflict, option)).status_code == 302
    assert Task.objects.get(pk=conflict.task.pk).status == status


def refused(client: Client, conflict: Conflict, form: dict[str, str], status: int) -> str:
    """The page after a refusal; what was typed is still there."""
    response = client.post(page(conflict, "decide/"), form)
    assert response.status_code == status
    html = response.content.decode()
    assert 'role="alert"' in html
    for name in ("text", "rationale", "constraints"):
        assert form[name] in html
    return html


def test_a_viewer_may_not_rule(client: Client, conflict: Conflict, vera: User) -> None:
    response = as_user(client, vera).post(page(conflict, "decide/"), typed(conflict))
    assert response.status_code == 403
    assert "You may not rule in Ledger." in response.content.decode()
    assert not Decision.objects.exists()


def test_own_words_are_needed_and_the_rest_stays(client: Client, conflict: Conflict, tom: User) -> None:
    html = refused(as_user(client, tom), conflict, typed(conflict, text=""), 422)
    assert "Your own words are missing." in html
    assert 'value="other" required checked' in html


def test_an_unknown_option_and_none_are_refused(client: Client, conflict: Conflict, tom: User) -> None:
    as_user(client, tom)
    assert "retry is no option" in refused(client, conflict, typed(conflict, "retry"), 422)
    assert "Choose an option first." in refused(client, conflict, typed(conflict, ""), 422)
    assert not Decision.objects.exists()


def test_a_text_without_end_is_refused_and_kept(client: Client, conflict: Conflict, tom: User) -> None:
    refused(as_user(client, tom), conflict, typed(conflict, text="x" * 20_001), 422)


def test_a_ruling_on_something_else_than_was_shown_is_refused(
    client: Client, conflict: Conflict, tom: User
) -> None:
    form = typed(conflict)
    Task.objects.filter(pk=conflict.task.pk).update(title="Call rudely")
    html = refused(as_user(client, tom), conflict, form, 409)
    assert "has changed since you opened it" in html
    conflict = Conflict.objects.get()
    assert f'name="shown" value="{rulings.shown_hash(conflict)}"' in html
    assert client.post(page(conflict, "decide/"), typed(conflict)).status_code == 302


def test_the_second_ruling_sees_the_first_and_keeps_its_text(
    client: Client, conflict: Conflict, tom: User, lea: User
) -> None:
    rulings.decide(conflict, "uphold_coder", user=lea, rationale="The limiter is enough.")
    html = refused(as_user(client, tom), conflict, typed(conflict), 409)
    for words in (
        "Lea Lindt ruled B",
        "ruled by Lea Lindt",
        "The limiter is enough.",
        "What you typed for D",
    ):
        assert words in html
    assert Decision.objects.count() == 1


def test_a_moot_conflict_takes_no_ruling(client: Client, conflict: Conflict, tom: User) -> None:
    opening.close(conflict.dispute, "moot")
    assert "nothing to rule on" in refused(as_user(client, tom), conflict, typed(conflict), 409)


def test_a_task_that_moved_on_is_told(client: Client, ledger: Project, tom: User) -> None:
    conflict = parked(ledger)
    Task.objects.filter(pk=conflict.task.pk).update(status="completed", finished_by="hand")
    html = refused(as_user(client, tom), conflict, typed(conflict, "retry"), 409)
    assert "cannot retry" in html
    assert Conflict.objects.get(pk=conflict.pk).status == "open"


def test_a_flag_offers_its_own_five_options(client: Client, ledger: Project, tom: User) -> None:
    conflict = open_conflict(create_task(ledger, status="disputed"), kind="silence")
    html = as_user(client, tom).get(page(conflict)).content.decode()
    for title in ("Ask to address", "Ask whether it disagrees", "Convert", "Waive", "False alarm"):
        assert title in html


def test_a_card_of_a_whole_project_is_readable(client: Client, ledger: Project, tom: User) -> None:
    dispute = Dispute.objects.create(project=ledger, severity="high", question="Is the budget spent?")
    conflict = Conflict.objects.create(
        dispute=dispute, kind="alert", origin="rejections", opened_as="system", severity="high",
        effect="hold", question=dispute.question,
    )  # fmt: skip
    as_user(client, tom)
    assert "Is the budget spent?" in client.get("/queue/").content.decode()
    assert client.get(page(conflict)).status_code == 200
    assert client.get(page(conflict, "diff/")).status_code == 200
    assert client.post(page(conflict, "decide/"), {"option": "other", "text": "Yes."}).status_code == 422


# --- Undoing and reopening ----------------------------------------------------------------------------------


def test_a_ruling_is_undone_while_no_prompt_has_used_it(
    client: Client, conflict: Conflict, tom: User
) -> None:
    decision = rulings.decide(conflict, "uphold_reviewer", user=tom)
    response = as_user(client, tom).post(f"/queue/decisions/{decision.pk}/undo/", follow=True)
    conflict.refresh_from_db()
    decision.refresh_from_db()
    assert (conflict.status, decision.revoked_by) == ("open", tom)
    assert response.context["conflict"] == conflict
    assert "is undone" in said(response)[0]


def test_a_used_ruling_is_reopened_not_undone(client: Client, conflict: Conflict, tom: User) -> None:
    decision = rulings.decide(conflict, "uphold_reviewer", user=tom)
    Decision.objects.update(used_at=timezone.now())
    response = as_user(client, tom).post(f"/queue/decisions/{decision.pk}/undo/")
    html = response.content.decode()
    assert response.status_code == 409
    assert "A prompt has already used this ruling." in html
    assert f"/queue/decisions/{decision.pk}/undo/" not in html
    assert f"/queue/decisions/{decision.pk}/reopen/" in html


def test_a_viewer_undoes_and_reopens_nothing(
    client: Client, conflict: Conflict, vera: User, lea: User
) -> None:
    decision = rulings.decide(conflict, "uphold_coder", user=lea)
    as_user(client, vera)
    assert client.post(f"/queue/decisions/{decision.pk}/undo/").status_code == 403
    assert client.post(f"/queue/decisions/{decision.pk}/reopen/", {"reason": "No"}).status_code == 403
    assert "reopen/" not in client.get(page(conflict)).content.decode()


def test_nothing_that_was_typed_is_lost_where_a_colleague_was_faster_or_the_rights_are_gone(
    client: Client, conflict: Conflict, tom: User, lea: User
) -> None:
    card = {"conflict": conflict.ref}
    forms = {
        "synthesis/": {"synthesis": "A middle ground.", "trade_off": "Both give in.", "covers_both": "on"},
        "severity/": {"finding": conflict.finding.code, "severity": "low", "reason": "A script <b>only</b>."},
        "decide/": typed(conflict),
    }
    member = conflict.dispute.project.memberships.filter(user=tom)

    def answers(status: int) -> None:
        for what, form in forms.items():
            response = client.post(page(conflict, what), card | form)
            assert response.status_code == status, what
            html = response.content.decode()
            words = [word for word in form.values() if " " in word]
            assert [word for word in words if escape(word) not in html] == [], (status, what)

    as_user(client, tom)
    rulings.decide(conflict, "uphold_reviewer", user=lea)
    answers(409)
    member.update(role="viewer")
    answers(403)
    member.delete()
    answers(404)


def test_reopening_needs_a_reason_and_takes_along_what_was_typed(
    client: Client, conflict: Conflict, tom: User, lea: User
) -> None:
    decision = rulings.decide(conflict, "uphold_reviewer", user=lea)
    reopen = f"/queue/decisions/{decision.pk}/reopen/"
    as_user(client, tom)
    response = client.post(reopen, typed(conflict, reason=" "))
    assert response.status_code == 422
    assert "Measure it first." in response.content.decode()
    response = client.post(reopen, typed(conflict, reason="It was never measured."), follow=True)
    again = Conflict.objects.get(previous=conflict)
    assert response.context["conflict"] == again
    html = response.content.decode()
    assert "Measure it first." in html
    assert 'value="other" required checked' in html
    assert Event.objects.get(kind="ruling_reopened").note == "It was never measured."


def test_a_ruling_is_reopened_once(client: Client, conflict: Conflict, tom: User, lea: User) -> None:
    decision = rulings.decide(conflict, "uphold_reviewer", user=lea)
    reopen = f"/queue/decisions/{decision.pk}/reopen/"
    as_user(client, tom)
    client.post(reopen, {"reason": "It was never measured."})
    response = client.post(reopen, {"reason": "It was never measured."}, follow=True)
    again = Conflict.objects.get(previous=conflict)
    assert said(response)[-1] == (
        f"{conflict.ref} was reopened already: this is {again.ref}. Your reason was: It was never measured."
    )
    html = client.get(page(conflict), {"conflict": conflict.ref}).content.decode()
    assert "Reopened as <a" in html
    assert reopen not in html
    undo = f"/queue/decisions/{decision.pk}/undo/"
    assert undo not in html
    assert client.post(undo).status_code == 409


def test_a_late_row_is_marked(client: Client, conflict: Conflict, tom: User) -> None:
    Dispute.objects.update(opened_at=timezone.now() - timedelta(days=8))
    html = as_user(client, tom).get("/queue/").content.decode()
    assert "is-late" in html
    assert ", stale" in html


def test_people_who_are_no_staff_do_not_enter(client: Client, conflict: Conflict) -> None:
    guest = create_user("guest", is_superuser=True)
    User.objects.filter(pk=guest.pk).update(is_staff=False)
    response = as_user(client, guest).get(page(conflict))
    assert (response.status_code, response["Location"][:13]) == (302, "/admin/login/")
