"""Rounds that lead nowhere: points that come back, goalposts that move, hands that are missing."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from disputes import intake, opening, rulings
from disputes.completion import rollbacks, stuck
from disputes.models import Conflict, Decision, Flag
from disputes.presenting import presentation
from disputes.protocol.responses.response import read_response
from disputes.protocol.reviews.review import read_review
from disputes.silence import detection, flags
from tasks.events import Actor
from tasks.models import Finding, Project, Review, Submission, Task
from tests.asking import fresh, kinds
from tests.cases import for_each
from tests.disputes.prompt_lines import told
from tests.factories import create_finding, create_review, create_submission, create_task

pytestmark = pytest.mark.django_db

CODER, REVIEWER = Actor("run", "coder-1"), Actor("run", "reviewer-1")
HIGH = {
    "title": "Failed calls are retried at once", "severity": "high", "location": "src/calls.py:12",
    "impact": "A dead server is hammered.", "suggestion": "Wait between tries, twice as long each time.",
}  # fmt: skip
LOW = {"title": "A name is vague", "severity": "low", "location": "src/names.py:40"}
NEW = {"title": "The cache is never emptied", "severity": "high", "location": "src/cache.py:90"}
CHANGED, LINE = "src/calls.py", 12


# --- Scenes -----------------------------------------------------------------------------------------------


@pytest.fixture
def task(ledger: Project) -> Task:
    return create_task(ledger, status="in_progress", round=1)


def diff_of(*paths: str, line: int = LINE) -> str:
    """What git prints, without context, where one line of each file changed."""
    return "".join(
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -{line} +{line} @@\n-old\n+new\n"
        for path in paths
    )


def addressed(*codes: str) -> str:
    return "".join(f"- {code}: addressed\n" for code in codes)


def answers(task: Task, kind: str = "addressed", words: str = "Done.") -> dict[str, Any]:
    """Each finding that is due gets the same answer."""
    due = intake.findings_to_answer(fresh(task))
    entry = {"kind": kind, "text": words, "rationale": "It is documented."}
    return {"answers": [{"finding": finding.code} | entry for finding in due]}


def hand_in(task: Task, response: Any = "", *changed: str, **kwargs: Any) -> Submission:
    """A coder hands in, as over the API; the host keeps the commit and looks at it."""
    task = fresh(task)
    rulings.mark_used(rulings.rulings_for_prompt(task), 7)
    read = read_response(response)
    known = intake.check_response(task, read)
    values = {"response": read.text, "since_last_round": diff_of(*changed)} | kwargs
    submission = create_submission(task, **values)
    task.submit(actor=CODER)
    intake.take_answers(submission, read, known, actor=CODER)
    if task.status == "review" and any(c.effect == "hold" for c in opening.open_conflicts(task)):
        task.hold(actor=CODER, note="held")
    detection.look_for_silence(submission)
    return submission


def review(
    submission: Submission, *findings: dict[str, Any], approves: bool = False, actor: Actor = REVIEWER
) -> intake.Taken:
    submission.refresh_from_db()
    read = read_review({"findings": list(findings)})
    return intake.take_review(submission, read, approves=approves, actor=actor)


def rejected(task: Task, *findings: dict[str, Any]) -> Task:
    review(hand_in(task), *findings)
    return fresh(task)


def again(finding: dict[str, Any], code: str, **kwargs: Any) -> dict[str, Any]:
    return finding | {"code": code} | kwargs


def rule(conflict: Conflict, option: str, user: User, **kwargs: Any) -> Decision:
    values = {"undo_seconds": 0, "text": "It is so."} | kwargs
    return rulings.decide(Conflict.objects.get(pk=conflict.pk), option, user=user, **values)


def opened() -> list[tuple[str, str]]:
    """The open conflicts: how they came to be, and about what."""
    found = Conflict.objects.filter(status="open").order_by("pk")
    return list(found.values_list("origin", "finding__code"))


CACHE = diff_of("src/cache.py", line=90)


# --- Who is who -------------------------------------------------------------------------------------------


def test_a_point_in_the_same_words_at_the_same_place_is_the_same(task: Task) -> None:
    rejected(task, HIGH)
    taken = review(
        hand_in(task, answers(task), CHANGED), HIGH | {"title": "Failed calls are still retried at once"}
    )
    finding = taken.findings[0]
    assert finding.first == Finding.objects.get(code="ISSUE-R1-001")
    assert (finding.possibly, finding.same_as_score is not None and finding.same_as_score >= 0.5) == (
        None,
        True,
    )


ALIKE = HIGH | {
    "title": "Calls pile up", "impact": "A dead server never recovers.",
    "suggestion": "Open a breaker and wait between tries.",
}  # fmt: skip


def test_one_that_reads_somewhat_alike_is_possibly_the_same(task: Task) -> None:
    rejected(task, HIGH)
    finding = review(hand_in(task, answers(task), CHANGED), ALIKE).findings[0]
    assert (finding.first, finding.possibly) == (None, Finding.objects.get(code="ISSUE-R1-001"))
    assert 0.3 <= (finding.same_as_score or 0) < 0.5


def test_the_code_alone_ties_without_a_score(task: Task) -> None:
    rejected(task, HIGH)
    finding = review(hand_in(task, answers(task), CHANGED), again(HIGH, "ISSUE-R1-001")).findings[0]
    assert (finding.first, finding.same_as_score) == (Finding.objects.get(code="ISSUE-R1-001"), None)


@for_each(("minimum", "is_told"), [(0.3, True), (0.49, False)])
def test_the_project_says_how_alike(task: Task, minimum: float, is_told: bool) -> None:
    Project.objects.update(settings={"same_finding_minimum": minimum})
    rejected(fresh(task), HIGH)
    finding = review(hand_in(task, answers(task), CHANGED), ALIKE).findings[0]
    assert bool(finding.possibly) == is_told


def settled(task: Task, tom: User) -> Submission:
    """A human ruled for the coder on the finding of round 1."""
    rejected(task, HIGH)
    submission = hand_in(task, answers(task, "declined"), CHANGED)
    rule(Conflict.objects.get(), "uphold_coder", tom)
    return submission


def test_a_settled_point_is_known_by_its_words(task: Task, tom: User) -> None:
    taken = review(settled(task, tom), HIGH, approves=True)
    assert (len(taken.dropped), fresh(task).status) == (1, "completed")


def test_what_is_only_possibly_settled_is_not_dropped(task: Task, tom: User) -> None:
    """Only a sure match settles anything."""
    taken = review(settled(task, tom), ALIKE)
    assert (taken.dropped, taken.findings[0].mandatory) == ([], True)
    assert (fresh(task).status, fresh(task).round) == ("in_progress", 3)


def test_nor_does_it_count_as_raised_again(task: Task) -> None:
    """Three rounds that only possibly repeat a point are no circle."""
    rejected(task, HIGH)
    for _ in range(3):
        review(hand_in(task, answers(task), CHANGED), ALIKE | {"location": f"src/calls.py:{LINE}"})
    assert not Conflict.objects.filter(finding__code="ISSUE-R1-001").exists()


@for_each("code", ["", "ISSUE-R1-001"], ids=["in its words", "by its code"])
def test_a_review_raises_a_point_once(task: Task, code: str) -> None:
    """Of two that read like the earlier one, one is it; the coder is not asked twice."""
    rejected(task, HIGH)
    twice = again(HIGH, code) if code else HIGH
    first, second = review(hand_in(task, answers(task), CHANGED), twice, twice).findings
    point = Finding.objects.get(code="ISSUE-R1-001")
    assert (first.first, second.first, second.possibly) == (point, None, point)
    assert [finding.origin for finding in intake.findings_to_answer(fresh(task))] == [point, second]


# --- True disputes and silence ------------------------------------------------------------------------------


def test_what_was_declined_when_it_was_optional_is_a_conflict_when_it_comes_back(task: Task) -> None:
    rejected(task, LOW)
    submission = hand_in(task, answers(task, "declined"), "src/names.py")
    review(submission, again(LOW, "ISSUE-R1-001", severity="high"))
    assert opened() == [("repeated", "ISSUE-R1-001")]


def test_a_card_shows_the_finding_of_one_round_as_a_whole(task: Task, client: Client) -> None:
    """Round 2 raised it in other words and elsewhere: nothing of round 1 is on the card."""
    first = LOW | {"impact": "Readers guess what it holds.", "suggestion": "Call it `tries`."}
    rejected(task, first)
    now = again(
        first, "ISSUE-R1-001", severity="high", title="The name hides that it counts money",
        impact="Sums are taken for tries.", suggestion="Call it `cents`.", location="src/sums.py:70",
    )  # fmt: skip
    review(hand_in(task, answers(task, "declined"), "src/names.py"), now)
    conflict = Conflict.objects.get(status="open")
    assert (conflict.finding and conflict.finding.round, conflict.question) == (1, now["title"])
    client.force_login(fresh_user(task))
    texts = {
        "command": presentation(conflict, rulings.options_of(conflict)),
        "page": client.get(f"/queue/{conflict.dispute.ref}/").content.decode(),
    }
    for where, text in texts.items():
        assert "round 2" in text, where
        assert "Sums are taken for tries." in text, where
        assert "Readers guess" not in text, where
    assert "src/sums.py:70" in "\n".join(
        rulings.preview(
            conflict, "uphold_reviewer", text="", rationale="", constraints="", expects_change=None
        )
    )


def test_the_newest_answer_counts(task: Task) -> None:
    """It was declined first and done in the round after that, without a review between them."""
    Project.objects.update(settings={"mandatory": ["critical", "high", "medium"]})
    rejected(fresh(task), LOW, HIGH)
    low = "- ISSUE-R1-001: declined\n"
    block = "## DISAGREE: ISSUE-R1-002\n\n**Reviewer Concern:** At once.\n\n**Rationale:** Documented.\n"
    hand_in(task, low + block, "src/names.py")
    rule(Conflict.objects.get(status="open"), "uphold_reviewer", fresh_user(task))
    submission = hand_in(task, addressed("ISSUE-R1-001", "ISSUE-R1-002"), "src/calls.py")
    review(submission, again(LOW, "ISSUE-R1-001", severity="high"))
    assert ("repeated", "ISSUE-R1-001") not in opened()


def fresh_user(task: Task) -> User:
    member = task.project.memberships.filter(role="triager").select_related("user").first()
    assert member is not None
    return member.user


def test_a_silent_point_is_asked_for_once_and_then_put_before_a_human(task: Task) -> None:
    """Raised again, nothing done: the rejection asks; the second time a human rules."""
    Project.objects.update(settings={"rounds_to_human": 9})
    rejected(fresh(task), HIGH)
    review(hand_in(task, answers(task), "README.md"), again(HIGH, "ISSUE-R1-001"))
    assert (fresh(task).status, opened()) == ("in_progress", [])
    review(hand_in(task, answers(task), "README.md"), again(HIGH, "ISSUE-R2-001"))
    assert (fresh(task).status, opened()) == ("disputed", [("unanswered", "ISSUE-R1-001")])
    assert "the place is untouched" in " ".join(Conflict.objects.get().evidence)


def test_where_the_place_changed_it_is_no_silence(task: Task) -> None:
    Project.objects.update(settings={"rounds_to_human": 9})
    rejected(fresh(task), HIGH)
    for round_ in (1, 2, 3):
        review(hand_in(task, answers(task), CHANGED), again(HIGH, f"ISSUE-R{round_}-001"))
    assert (fresh(task).status, opened()) == ("in_progress", [])


def test_a_phrase_alone_is_no_silence(task: Task) -> None:
    """H5 tells how it was answered, not that nothing was done."""
    Project.objects.update(settings={"rounds_to_human": 9})
    rejected(fresh(task), HIGH)
    for round_ in (1, 2):
        words = f"- ISSUE-R{round_}-001: addressed. This was not a real issue.\n"
        review(hand_in(task, words), again(HIGH, f"ISSUE-R{round_}-001"))
    assert Flag.objects.filter(heuristics=["H5"]).count() == 2
    assert (fresh(task).status, opened()[-1:]) == ("in_progress", [("flagged", "ISSUE-R1-001")])


def test_a_false_alarm_is_no_silence(task: Task, tom: User) -> None:
    Project.objects.update(settings={"rounds_to_human": 9, "unaddressed_high_threshold": 1})
    rejected(fresh(task), HIGH)
    for round_ in (1, 2):
        submission = hand_in(task, answers(task), "README.md")
        rule(Conflict.objects.get(status="open"), "false_positive", tom)
        review(submission, again(HIGH, f"ISSUE-R{round_}-001"))
    assert (fresh(task).status, opened()) == ("in_progress", [])


def test_rounds_that_were_taken_back_are_no_silence(task: Task, lea: User) -> None:
    Project.objects.update(settings={"rounds_to_human": 9})
    rejected(fresh(task), HIGH)
    for _ in range(2):
        review(hand_in(task, answers(task), "README.md"), again(HIGH, "ISSUE-R1-001"))
        rollbacks.roll_back(fresh(task), 1, user=lea, reason="Again.")
    review(hand_in(task, answers(task), "README.md"), again(HIGH, "ISSUE-R1-001"))
    assert (fresh(task).status, opened()) == ("in_progress", [])


def test_a_point_that_had_its_conflict_is_not_put_there_twice(task: Task, tom: User) -> None:
    rejected(task, HIGH)
    hand_in(task, answers(task, "declined"), CHANGED)
    rule(Conflict.objects.get(), "uphold_reviewer", tom)
    submission = hand_in(task, answers(task), CHANGED)
    review(submission, again(HIGH, "ISSUE-R1-001"))
    assert opened() == [("not_honoured", "ISSUE-R1-001")]


# --- Oscillation --------------------------------------------------------------------------------------------


def excerpts(task: Task, *texts: str) -> None:
    """The host has read the code at the place in each round."""
    for finding, text in zip(Finding.objects.filter(task=task).order_by("pk"), texts, strict=True):
        Finding.objects.filter(pk=finding.pk).update(excerpt=text)


def around(task: Task, *texts: str) -> Review:
    """The point is raised as often as there are texts, and each time the place changed."""
    Project.objects.update(settings={"rounds_to_human": 9})
    rejected(fresh(task), HIGH)
    for round_ in range(1, len(texts)):
        review(hand_in(task, answers(task), CHANGED), again(HIGH, f"ISSUE-R{round_}-001"))
    excerpts(task, *texts)
    newest = intake.last_reviews(fresh(task))[-1]
    assert newest is not None
    return newest


def test_a_place_that_is_back_where_it_was_holds_the_task(task: Task) -> None:
    """A-B-A; the coder's run of this turn has nothing to hand in any more"""
    newest = around(task, "wait(1)", "wait(2)", "wait(1)")
    before = fresh(task)
    assert before.status == "in_progress"
    [conflict] = stuck.look_again(newest)
    stored = fresh(task)
    assert (stored.status, stored.version) == ("disputed", before.version + 1)
    assert (conflict.origin, conflict.effect, conflict.opened_as) == ("oscillation", "hold", "system")
    assert "back at what it was in round 1" in conflict.evidence[0]


@for_each(
    "texts",
    [("a", "b", "c"), ("a", "a", "a"), ("a", "b", ""), ("a", "b")],
    ids=["on", "unchanged", "not read", "two rounds"],
)
def test_a_place_that_goes_on_does_not(task: Task, texts: tuple[str, ...]) -> None:
    before = around(task, *texts)
    assert stuck.look_again(before) == []
    assert fresh(task).status == "in_progress"


def test_blanks_make_no_other_place(task: Task) -> None:
    assert stuck.look_again(around(task, "wait( 1 )", "wait(2)", "wait(1)\n"))


def test_looking_again_twice_asks_once(task: Task) -> None:
    newest = around(task, "a", "b", "a")
    stuck.look_again(newest)
    assert stuck.look_again(newest) == []
    assert Conflict.objects.count() == 1


def test_a_review_that_is_no_longer_the_newest_is_not_looked_at(task: Task) -> None:
    newest = around(task, "a", "b", "a")
    hand_in(task, answers(task), CHANGED)
    assert stuck.look_again(newest) == []
    assert fresh(task).status == "review"


def test_the_ruling_on_a_circle_sends_the_task_on(task: Task, tom: User) -> None:
    stuck.look_again(around(task, "a", "b", "a"))
    rule(Conflict.objects.get(), "other", tom, text="Keep b.", expects_change=True)
    assert fresh(task).status == "in_progress"
    assert "Keep b." in told(fresh(task))


DELAY = HIGH | {"title": "The delay between tries", "impact": ""}
ADD = DELAY | {"suggestion": "Add a delay between the tries."}
REMOVE = DELAY | {"suggestion": "Remove the delay between the tries."}


def test_a_reviewer_that_wants_its_own_request_undone_is_a_circle(task: Task) -> None:
    """The place was changed as it had asked for."""
    rejected(task, ADD)
    review(hand_in(task, answers(task), CHANGED), again(REMOVE, "ISSUE-R1-001"))
    assert (opened(), fresh(task).status) == ([("oscillation", "ISSUE-R1-001")], "disputed")


def test_but_not_where_the_place_was_left_alone(task: Task) -> None:
    rejected(task, ADD)
    review(hand_in(task, answers(task), "README.md"), again(REMOVE, "ISSUE-R1-001"))
    assert opened() == []


# --- Rounds that repeat -------------------------------------------------------------------------------------


def repeat(task: Task, times: int, *, approves: bool = False) -> None:
    rejected(fresh(task), HIGH)
    for round_ in range(1, times):
        submission = hand_in(task, answers(task), CHANGED)
        review(submission, again(HIGH, f"ISSUE-R{round_}-001"), approves=approves)


@for_each("approves", [False, True], ids=["rejects", "approves in words"])
def test_after_three_rounds_a_human_is_asked(task: Task, approves: bool) -> None:
    """An approval with a mandatory finding is a rejection (ARB-3)."""
    repeat(task, 2, approves=approves)
    assert (fresh(task).status, opened()) == ("in_progress", [])
    submission = hand_in(task, answers(task), CHANGED)
    review(submission, again(HIGH, "ISSUE-R2-001"), approves=approves)
    assert (fresh(task).status, opened()) == ("disputed", [("rounds", "ISSUE-R1-001")])
    assert Conflict.objects.get().evidence == [
        "ISSUE-R3-001: raised in rounds 1, 2, 3, and never settled. A human's turn: rule."
    ]


@for_each(("limit", "status"), [(2, "disputed"), (4, "in_progress")])
def test_the_project_says_after_how_many(task: Task, limit: int, status: str) -> None:
    Project.objects.update(settings={"rounds_to_human": limit})
    repeat(task, 2)
    assert fresh(task).status == status


def test_new_points_each_time_are_no_repetition(task: Task) -> None:
    rejected(task, HIGH)
    for number in range(4):
        submission = hand_in(task, answers(task), f"src/{number}.py")
        review(submission, NEW | {"location": f"src/{number}.py:12"})
    assert (fresh(task).status, Conflict.objects.count()) == ("in_progress", 0)


def test_a_retry_by_a_human_counts_anew(task: Task, tom: User) -> None:
    repeat(task, 2)
    opening.stop_for_help(fresh(task), "blocked", "Who has the key?")
    rule(Conflict.objects.get(), "retry", tom)
    submission = hand_in(task, answers(task), CHANGED)
    review(submission, again(HIGH, "ISSUE-R2-001"))
    assert fresh(task).status == "in_progress"


# --- Goalposts ----------------------------------------------------------------------------------------------


def test_a_new_point_on_lines_that_did_not_change_does_not_block(task: Task) -> None:
    rejected(task, HIGH)
    taken = review(hand_in(task, answers(task), CHANGED), NEW, approves=True)
    finding = taken.findings[0]
    assert (finding.is_follow_up, finding.mandatory, finding.severity) == (True, False, "high")
    assert (taken.review.verdict, fresh(task).status) == ("APPROVED_WITH_CONDITIONS", "completed")


def test_beside_another_it_waits_for_another_task(task: Task) -> None:
    rejected(task, HIGH)
    review(hand_in(task, answers(task), CHANGED), NEW, again(HIGH, "ISSUE-R1-001"))
    assert [finding.code for finding in intake.findings_to_answer(fresh(task))] == ["ISSUE-R2-002"]


@for_each(
    "finding",
    [
        NEW | {"severity": "critical"},
        NEW | {"title": "The cache holds passwords"},
        NEW | {"location": "src/calls.py:13"},
        NEW | {"location": ""},
    ],
    ids=["critical", "security", "beside a change", "nowhere"],
)
def test_what_is_grave_or_at_a_change_blocks(task: Task, finding: dict[str, Any]) -> None:
    rejected(task, HIGH)
    taken = review(hand_in(task, answers(task), CHANGED), finding)
    assert (taken.findings[0].is_follow_up, taken.findings[0].mandatory) == (False, True)
    assert fresh(task).status == "in_progress"


def test_in_a_first_review_every_point_is_new(task: Task) -> None:
    taken = review(hand_in(task, "", CHANGED), NEW)
    assert not taken.findings[0].is_follow_up


def test_where_the_round_before_was_not_reviewed_nothing_is_late(task: Task, tom: User) -> None:
    """Nobody has looked at those lines since they changed."""
    rejected(task, HIGH)
    hand_in(task, answers(task, "declined"), since_last_round=CACHE)
    rule(Conflict.objects.get(), "uphold_reviewer", tom)
    taken = review(hand_in(task, answers(task), CHANGED), NEW)
    assert not taken.findings[0].is_follow_up


def test_nor_where_the_changes_are_not_known(task: Task) -> None:
    rejected(task, HIGH)
    taken = review(hand_in(task, answers(task)), NEW)
    assert not taken.findings[0].is_follow_up


def test_of_the_same_commit_handed_in_again_everything_is_late(task: Task) -> None:
    first = hand_in(task)
    review(first, HIGH)
    taken = review(hand_in(task, answers(task), sha=first.sha), NEW, again(HIGH, "ISSUE-R1-001"))
    assert [finding.is_follow_up for finding in taken.findings] == [True, False]


def test_a_point_raised_before_is_never_late(task: Task) -> None:
    rejected(task, HIGH, NEW)
    taken = review(hand_in(task, answers(task), CHANGED), again(NEW, "ISSUE-R1-002"))
    assert (taken.findings[0].is_follow_up, taken.findings[0].mandatory) == (False, True)


def test_nor_is_one_that_was_possibly_raised_before(task: Task) -> None:
    """In doubt it blocks: a round too many is less than a point lost."""
    rejected(task, HIGH)
    finding = review(hand_in(task, answers(task), "README.md"), ALIKE).findings[0]
    assert finding.possibly is not None
    assert (finding.is_follow_up, finding.mandatory) == (False, True)


def test_a_rejection_for_late_points_goes_back_to_the_reviewer(task: Task) -> None:
    rejected(task, HIGH)
    before = fresh(task)
    review(hand_in(task, answers(task), CHANGED), NEW)
    stored = fresh(task)
    assert (stored.status, stored.round, stored.rejections) == ("review", 2, before.rejections)
    assert kinds(task)[-1] == "review_void"


@for_each("code", ["", "ISSUE-R2-001"], ids=["in its words", "by its code"])
def test_the_second_time_a_human_is_asked(task: Task, code: str) -> None:
    """Said twice it is still late; it does not become a reason to send the coder back."""
    rejected(task, HIGH)
    submission = hand_in(task, answers(task), CHANGED)
    review(submission, NEW)
    review(submission, again(NEW, code) if code else NEW)
    assert (fresh(task).status, opened()) == ("disputed", [("review", None)])
    assert (
        list(Finding.objects.filter(round=2).values_list("is_follow_up", "mandatory")) == [(True, False)] * 2
    )


def test_a_late_point_blocks_once_its_lines_have_changed(task: Task) -> None:
    rejected(task, HIGH)
    review(hand_in(task, answers(task), CHANGED), NEW, again(HIGH, "ISSUE-R1-001"))
    submission = hand_in(task, answers(task), since_last_round=CACHE)
    taken = review(submission, again(NEW, "ISSUE-R2-001"))
    assert (taken.findings[0].is_follow_up, taken.findings[0].mandatory) == (False, True)


def test_a_reviewer_that_thinks_again_passes_it(task: Task) -> None:
    rejected(task, HIGH)
    submission = hand_in(task, answers(task), CHANGED)
    review(submission, NEW)
    review(submission, approves=True)
    assert (fresh(task).status, fresh(task).accepted) == ("completed", submission)


# --- Hands that are missing ---------------------------------------------------------------------------------

LACKS = "Partly: I have no access to the staging server."


@for_each("kind", ["partly", "addressed"])
def test_a_coder_that_lacks_what_it_takes_asks_for_help(task: Task, kind: str) -> None:
    """Its words say so, whatever the answer calls itself."""
    rejected(task, HIGH)
    hand_in(task, answers(task, kind, LACKS), CHANGED)
    card = Conflict.objects.get()
    assert (card.kind, card.origin, fresh(task).status) == ("help", "blocked", "disputed")
    assert kinds(task)[-2:] == ["stop_for_help", "conflict_opened"]


DID_IT = "The wait is capped. I have no access to the staging server, so a stub stands in for it."


@for_each(("kind", "words"), [("addressed", DID_IT), ("partly", "Partly: the pause is there.")])
def test_one_that_did_it_does_not(task: Task, kind: str, words: str) -> None:
    rejected(task, HIGH)
    hand_in(task, answers(task, kind, words), CHANGED)
    assert fresh(task).status == "review"


def test_nor_one_that_lacks_it_for_an_optional_point(task: Task) -> None:
    rejected(task, LOW)
    hand_in(task, answers(task, "partly", LACKS), CHANGED)
    assert fresh(task).status == "review"


def test_a_point_that_became_mandatory_counts(task: Task) -> None:
    rejected(task, LOW)
    review(hand_in(task, answers(task), "src/names.py"), again(LOW, "ISSUE-R1-001", severity="high"))
    hand_in(task, answers(task, "partly", LACKS), CHANGED)
    assert fresh(task).status == "disputed"


def test_help_brings_the_point_back_to_the_coder(task: Task, tom: User) -> None:
    """It has been answered, but not done; the next prompt lists it again."""
    rejected(task, HIGH)
    hand_in(task, answers(task, "partly", LACKS), CHANGED)
    rule(Conflict.objects.get(), "retry", tom, text="The key is in the vault.")
    assert (fresh(task).status, fresh(task).round) == ("in_progress", 3)
    assert [finding.code for finding in intake.findings_to_answer(fresh(task))] == ["ISSUE-R1-001"]
    hand_in(task, answers(task), CHANGED)
    assert (fresh(task).status, intake.findings_to_answer(fresh(task))) == ("review", [])


def test_one_that_disagrees_and_lacks_what_it_takes_asks_for_both(task: Task) -> None:
    rejected(task, HIGH, NEW)
    block = "## DISAGREE: ISSUE-R1-001\n\n**Reviewer Concern:** At once.\n\n**Rationale:** Documented.\n\n"
    hand_in(task, f"| ISSUE-R1-002 | partly | I have no access to the server. |\n\n{block}", CHANGED)
    assert sorted(opened(), key=str) == [("blocked", None), ("disagree", "ISSUE-R1-001")]
    assert fresh(task).status == "disputed"


# --- Flags and circles together -----------------------------------------------------------------------------


def test_a_conflict_over_silence_takes_its_flags_in(task: Task) -> None:
    Project.objects.update(settings={"rounds_to_human": 9, "unaddressed_high_threshold": 1})
    rejected(fresh(task), HIGH)
    for round_ in (1, 2):
        review(hand_in(task, answers(task), "README.md"), again(HIGH, f"ISSUE-R{round_}-001"))
    assert opened() == [("unanswered", "ISSUE-R1-001")]
    assert any("is unchanged" in line for line in Conflict.objects.get(status="open").evidence)
    assert not Flag.objects.filter(status="open").exists()


def test_one_reviewer_of_two_repeats_a_point(task: Task) -> None:
    """Within a round the other reviewer's point with the same code is another one (ID-5)."""
    submission = hand_in(task)
    create_finding(
        create_review(submission, by_agent="reviewer-2"),
        code="ISSUE-R1-001",
        title="A vague name",
        impact="",
        suggestion="Call it what it is.",
    )
    taken = review(submission, again(HIGH, "ISSUE-R1-001"))
    assert taken.findings[0].first is None


def test_flags_of_one_submission_are_raised_once(task: Task) -> None:
    rejected(task, HIGH)
    submission = hand_in(task, answers(task), "README.md")
    found = list(detection.suspicions(submission, fresh(task), list(Finding.objects.all())))
    assert len(found) == 1
    assert flags.raise_flags(submission, found) == []


def test_a_coder_who_only_says_that_it_is_done_was_heard_all_the_same(task: Task) -> None:
    """The card must not say that the coder may have overlooked the point."""
    rejected(task, HIGH)
    for round_ in (1, 2):
        review(hand_in(task, answers(task, words=""), CHANGED), again(HIGH, f"ISSUE-R{round_}-001"))
    conflict = Conflict.objects.get(status="open")
    assert conflict.origin == "rounds"
    assert conflict.coder_position == "Addressed, it says, and no more."
    assert "may have overlooked" not in presentation(conflict, rulings.options_of(conflict))
