"""Silent disagreement in what is handed in: what is flagged, what a card asks, what becomes of it."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from disputes import followup, intake, opening, rulings
from disputes.completion import rollbacks
from disputes.models import Conflict, Decision, Flag, HeuristicScore
from disputes.protocol.responses.response import read_response
from disputes.protocol.reviews.review import read_review
from disputes.silence import detection
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Answer, Event, Finding, Project, Submission, Task
from tests.asking import fresh, kinds
from tests.cases import for_each
from tests.disputes.prompt_lines import told
from tests.factories import create_submission, create_task, create_user

pytestmark = pytest.mark.django_db

CODER, REVIEWER = Actor("run", "coder-1"), Actor("run", "reviewer-1")
CRITICAL = {"title": "Keys lie in the log", "severity": "critical", "location": "src/log.py:8"}
SECOND = {"title": "Anybody may read the backup", "severity": "critical", "location": "src/backup.py:30"}
HIGH = {"title": "Failed calls are retried at once", "severity": "high", "location": "src/calls.py:12"}
OTHER = {"title": "The tests wait for seconds", "severity": "high", "location": "tests/test_calls.py:3"}
LOW = {"title": "A name is vague", "severity": "low", "location": "src/names.py:1"}
ELSEWHERE = "README.md"
ARGUES = "- ISSUE-R1-001: the queue holds them back"
NEW = {"title": "The text is out of date", "severity": "high", "location": "README.md:12"}


# --- Scenes -----------------------------------------------------------------------------------------------


@pytest.fixture
def task(ledger: Project) -> Task:
    return create_task(ledger, status="in_progress", round=1)


def diff_of(*paths: str, line: int = 12) -> str:
    """What git prints, without context, where one line of each file changed."""
    return "".join(
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -{line} +{line} @@\n-old\n+new\n"
        for path in paths
    )


def addressed(*codes: str, words: str = "Done.") -> str:
    return "".join(f"- {code}: addressed. {words}\n" for code in codes)


def hand_in(task: Task, response: Any = "", *changed: str, **kwargs: Any) -> Submission:
    """A coder reads its prompt and hands in as over the API; the host keeps the commit and looks at it."""
    task = fresh(task)
    if kwargs.pop("reads", True):
        rulings.mark_used(rulings.rulings_for_prompt(task), 7)
    read = read_response(response)
    known = intake.check_response(task, read)
    values = {"state": "verified", "response": read.text, "since_last_round": diff_of(*changed)} | kwargs
    submission = create_submission(task, **values)
    task.submit(actor=CODER)
    intake.take_answers(submission, read, known, actor=CODER)
    if task.status == "review" and any(c.effect == "hold" for c in opening.open_conflicts(task)):
        task.hold(actor=CODER, note="held")
    detection.look_for_silence(submission)
    return submission


def review(submission: Submission, *findings: dict[str, Any], approves: bool = False) -> intake.Taken:
    submission.refresh_from_db()
    read = read_review({"findings": list(findings)})
    return intake.take_review(submission, read, approves=approves, actor=REVIEWER)


def rejected(task: Task, *findings: dict[str, Any]) -> Task:
    """Round 1 was handed in and reviewed; the coder works on round 2."""
    review(hand_in(task), *findings)
    return fresh(task)


def rule(conflict: Conflict, option: str, user: User, **kwargs: Any) -> Decision:
    values = {"undo_seconds": 0, "text": "It is so.", "rationale": "It was looked at."} | kwargs
    return rulings.decide(Conflict.objects.get(pk=conflict.pk), option, user=user, **values)


def card() -> Conflict:
    return Conflict.objects.get(kind="silence", status="open")


def state(conflict: Conflict) -> tuple[str, str, str]:
    stored = Conflict.objects.select_related("dispute").get(pk=conflict.pk)
    return stored.status, stored.followed, stored.dispute.status


def due(task: Task) -> list[str]:
    return [finding.code for finding in intake.findings_to_answer(fresh(task))]


def levels() -> dict[str, str]:
    return dict(Flag.objects.order_by("pk").values_list("finding__code", "level"))


def asked(task: Task, tom: User, option: str = "ask") -> Conflict:
    """A critical finding was said to be done, its place is untouched; a human asks while it is reviewed."""
    rejected(task, CRITICAL)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    conflict = card()
    rule(conflict, option, tom)
    return Conflict.objects.get(pk=conflict.pk)


# --- What is flagged --------------------------------------------------------------------------------------


def test_an_untouched_place_that_is_said_to_be_done_is_flagged(task: Task) -> None:
    """H4"""
    rejected(task, HIGH)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    flag = Flag.objects.get()
    assert (flag.finding.code, flag.submission, flag.status) == ("ISSUE-R1-001", submission, "open")
    assert (flag.heuristics, flag.level) == (["H4"], "log")
    assert 'section "src/calls.py:12" is unchanged' in flag.evidence
    assert kinds(task)[-1] == "flagged"


def test_an_answer_that_tells_of_nothing_done_turns_away_where_the_place_is_unchanged(task: Task) -> None:
    """SIL-5, ANS-7: a person is asked at once."""
    rejected(task, HIGH)
    hand_in(task, ARGUES, ELSEWHERE)
    flag = Flag.objects.get()
    assert (flag.heuristics, flag.level) == (["H4", "H5"], "review")
    assert 'phrase: "the queue holds them back"' in flag.evidence
    assert card().question == HIGH["title"]


@for_each("changed", [("src/calls.py",), (ELSEWHERE, "src/calls.py")])
@for_each("answer", ["- ISSUE-R1-001: fixed", ARGUES])
def test_a_place_that_changed_is_not(task: Task, answer: str, changed: tuple[str, ...]) -> None:
    rejected(task, HIGH)
    hand_in(task, answer, *changed)
    assert not Flag.objects.exists()


def test_nothing_is_said_where_the_changes_are_not_known(task: Task) -> None:
    rejected(task, HIGH)
    hand_in(task, addressed("ISSUE-R1-001"))
    assert not Flag.objects.exists()


@for_each("same", ["sha", "diff"])
def test_the_same_work_handed_in_again_changed_nothing(task: Task, same: str) -> None:
    """An empty comparison is no missing one."""
    first = hand_in(task, diff="diff --git a/a b/a\n")
    review(first, HIGH)
    hand_in(task, addressed("ISSUE-R1-001"), **{same: getattr(first, same)})
    assert levels() == {"ISSUE-R1-001": "log"}


def test_looking_twice_flags_once(task: Task) -> None:
    rejected(task, CRITICAL)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    assert detection.look_for_silence(submission) == []
    assert (Flag.objects.count(), Conflict.objects.count()) == (1, 1)


def test_a_round_that_was_taken_back_is_not_looked_at(task: Task, lea: User) -> None:
    rejected(task, HIGH)
    submission = hand_in(task, addressed("ISSUE-R1-001"))
    rollbacks.roll_back(fresh(task), 1, user=lea, reason="Again.")
    Submission.objects.filter(pk=submission.pk).update(since_last_round=diff_of(ELSEWHERE))
    submission.refresh_from_db()
    assert detection.look_for_silence(submission) == []


@for_each(
    ("findings", "found"),
    [
        ((HIGH,), ["log"]),
        ((HIGH, OTHER), ["warn", "warn"]),
        ((CRITICAL,), ["warn"]),
        ((CRITICAL, HIGH), ["warn", "log"]),
        ((CRITICAL, SECOND), ["block", "block"]),
        ((LOW,), []),
    ],
    ids=["high", "two high", "critical", "both", "two critical", "low"],
)
def test_levels_follow_from_how_many_are_passed_over(
    task: Task, findings: tuple[dict[str, Any], ...], found: list[str]
) -> None:
    """SIL-10"""
    rejected(task, *findings)
    hand_in(task, addressed(*due(task)), ELSEWHERE)
    assert list(levels().values()) == found


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"unaddressed_high_threshold": 1}, "warn"),
        ({"unaddressed_high_threshold": 3}, "log"),
        ({"critical_block": 1}, "log"),
    ],
)
def test_the_projects_thresholds_count(task: Task, settings: dict[str, Any], found: str) -> None:
    Project.objects.update(settings=settings)
    rejected(Task.objects.get(pk=task.pk), HIGH)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    assert levels() == {"ISSUE-R1-001": found}


def test_the_project_says_how_many_critical_ones_hold(task: Task) -> None:
    Project.objects.update(settings={"critical_block": 1})
    rejected(fresh(task), CRITICAL)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    assert (card().effect, fresh(task).status) == ("hold", "disputed")


def test_a_deflection_is_flagged_for_a_look(task: Task) -> None:
    """H5"""
    rejected(task, HIGH)
    hand_in(task, "## Response to ISSUE-R1-001\n\nAddressed. The reviewer misunderstands the pool.\n")
    flag = Flag.objects.get()
    assert (flag.heuristics, flag.level, card().effect) == (["H5"], "review", "log")


def test_a_deflection_in_an_answer_of_a_form_is_found_too(task: Task) -> None:
    """Its words stand in no document."""
    rejected(task, HIGH)
    words = "This is not a real issue."
    hand_in(task, {"answers": [{"finding": "ISSUE-R1-001", "kind": "addressed", "text": words}]})
    assert Flag.objects.get().heuristics == ["H5"]


def test_the_text_beside_a_form_is_no_answer_to_the_finding_of_its_line(task: Task) -> None:
    rejected(task, HIGH)
    entry = {"finding": "ISSUE-R1-001", "kind": "addressed", "text": "Waits now."}
    hand_in(task, {"answers": [entry], "text": "The warning of the linter is not a real issue."}, "src/x.py")
    assert [flag.heuristics for flag in Flag.objects.all()] == [["H4"]]


def test_a_large_form_is_looked_at_without_trouble(task: Task) -> None:
    """What cannot be looked at could not be kept either."""
    findings = [HIGH | {"title": f"Point {n}", "location": f"src/{n}.py:1"} for n in range(40)]
    rejected(task, *findings)
    answers = [{"finding": code, "kind": "addressed", "text": "ä" * 20_000} for code in due(task)]
    hand_in(task, {"answers": answers, "text": "ö" * 120_000}, ELSEWHERE)
    assert Flag.objects.count() == 40


def test_a_round_in_which_only_a_phrase_was_found_was_no_silent_one(task: Task) -> None:
    rejected(task, HIGH)
    hand_in(task, addressed("ISSUE-R1-001", words="This is not a real issue."))
    assert Flag.objects.get().heuristics == ["H5"]
    assert detection.silent_rounds(Finding.objects.get(), 3) == ()


# --- What is not --------------------------------------------------------------------------------------------


def test_what_an_earlier_hand_in_answered_is_not_silence_in_the_next(task: Task, tom: User) -> None:
    """One point was declined and ruled on, the other was answered in that same held round."""
    rejected(task, CRITICAL, SECOND, HIGH)
    response = "## DISAGREE: ISSUE-R1-003\n\n**Reviewer Concern:** At once.\n\n**Rationale:** Documented.\n\n"
    hand_in(task, addressed("ISSUE-R1-001", "ISSUE-R1-002") + response, "src/log.py", "src/backup.py",
            since_last_round=diff_of("src/log.py", line=8) + diff_of("src/backup.py", line=30))  # fmt: skip
    rule(Conflict.objects.get(), "uphold_reviewer", tom)
    hand_in(task, "It waits between tries now.", "src/calls.py")
    assert not Flag.objects.exists()
    assert fresh(task).status == "review"


def test_what_a_human_ruled_for_the_reviewer_is_followed_up_not_flagged(task: Task, tom: User) -> None:
    """DEC-13 says whether a ruling was carried out; a flag beside it would ask twice."""
    rejected(task, HIGH)
    decline = "## DISAGREE: ISSUE-R1-001\n\n**Reviewer Concern:** At once.\n\n**Rationale:** Documented.\n"
    hand_in(task, decline, ELSEWHERE)
    rule(Conflict.objects.get(), "uphold_reviewer", tom)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    assert not Flag.objects.exists()


def test_what_was_waived_is_not_flagged(task: Task, tom: User) -> None:
    rejected(task, CRITICAL, HIGH)
    hand_in(task, addressed("ISSUE-R1-001", "ISSUE-R1-002"), ELSEWHERE)
    rule(card(), "waive", tom)
    review(fresh(task).last_submission(), NEW)
    before = Flag.objects.count()
    hand_in(task, addressed("ISSUE-R2-001", "ISSUE-R1-001"), ELSEWHERE)
    assert Flag.objects.count() == before


def test_a_follow_up_need_not_be_answered(task: Task) -> None:
    rejected(task, HIGH)
    first = Finding.objects.get()
    Finding.objects.filter(pk=first.pk).update(is_follow_up=True, mandatory=False)
    hand_in(task, "Nothing more.", ELSEWHERE)
    assert not Flag.objects.exists()


def test_where_high_findings_are_optional_passing_over_two_warns(task: Task) -> None:
    """Critical and high ones are watched; to drop one the coder must say so (ARB-1)."""
    Project.objects.update(settings={"mandatory": ["critical"]})
    rejected(fresh(task), HIGH, OTHER)
    hand_in(task, "I did something else.", ELSEWHERE)
    assert levels() == {"ISSUE-R1-001": "warn", "ISSUE-R1-002": "warn"}
    assert Flag.objects.first().heuristics == ["H1", "H4"]
    assert fresh(task).status == "review"


def test_one_that_is_dropped_aloud_is_not_flagged(task: Task) -> None:
    Project.objects.update(settings={"mandatory": ["critical"]})
    rejected(fresh(task), HIGH)
    hand_in(task, "- ISSUE-R1-001: deferred to the next task\n", ELSEWHERE)
    assert not Flag.objects.exists()


def passed_over(task: Task, times: int) -> None:
    """An optional finding is raised and passed over so often, while others are answered."""
    rejected(task, LOW, HIGH)
    for round_ in range(2, 2 + times):
        codes = [finding.code for finding in intake.findings_to_answer(fresh(task)) if finding.mandatory]
        submission = hand_in(task, addressed(*codes), "src/calls.py", ELSEWHERE)
        if fresh(task).status == "review" and round_ < 1 + times:
            review(
                submission,
                LOW | {"code": f"ISSUE-R{round_ - 1}-001"},
                HIGH | {"title": f"New point {round_}"},
            )


@for_each(("times", "found"), [(2, []), (3, ["systematic"])])
def test_the_same_concern_passed_over_in_three_rounds_is_systematic(
    task: Task, times: int, found: list[str]
) -> None:
    """SIL-10: any severity"""
    Project.objects.update(settings={"rounds_to_human": 9})
    passed_over(fresh(task), times)
    assert list(Flag.objects.values_list("level", flat=True)) == found
    assert fresh(task).status == ("disputed" if found else "review")


def test_the_project_says_in_how_many(task: Task) -> None:
    Project.objects.update(settings={"rounds_to_human": 9, "pattern_threshold": 2})
    passed_over(fresh(task), 2)
    assert list(Flag.objects.values_list("level", flat=True)) == ["systematic"]


def test_after_a_false_alarm_the_rounds_are_counted_anew(task: Task, tom: User) -> None:
    Project.objects.update(settings={"rounds_to_human": 9})
    passed_over(fresh(task), 3)
    rule(card(), "false_positive", tom)
    submission = fresh(task).last_submission()
    review(submission, LOW | {"code": "ISSUE-R3-001"}, NEW | {"title": "Yet another"})
    codes = [finding.code for finding in intake.findings_to_answer(fresh(task)) if finding.mandatory]
    hand_in(task, addressed(*codes), ELSEWHERE)
    assert not Flag.objects.filter(status="open").exists()


@for_each("state", ["red", "lost"])
def test_silence_in_an_attempt_that_was_not_taken_is_none(task: Task, state: str) -> None:
    rejected(task, LOW)
    submission = hand_in(task)
    Submission.objects.filter(pk=submission.pk).update(state=state)
    assert detection.silent_rounds(Finding.objects.get(), 3) == ()


def test_nor_is_silence_in_rounds_that_were_taken_back(task: Task, lea: User) -> None:
    rejected(task, HIGH)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    first = Finding.objects.get()
    assert detection.silent_rounds(first, 3) == (2,)
    rollbacks.roll_back(fresh(task), 1, user=lea, reason="Again.")
    assert detection.silent_rounds(first, 3) == ()


# --- Cards ------------------------------------------------------------------------------------------------


def test_a_flag_that_is_only_listed_asks_nobody(task: Task) -> None:
    rejected(task, HIGH)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    assert not Conflict.objects.exists()
    assert fresh(task).status == "review"


def test_a_warning_asks_and_holds_nothing(task: Task) -> None:
    rejected(task, CRITICAL)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    silence = card()
    assert (silence.origin, silence.opened_as, silence.effect, silence.severity) == (
        "flagged",
        "system",
        "log",
        "critical",
    )
    assert (silence.finding, silence.submission) == (Finding.objects.get(), submission)
    assert silence.coder_position == "not stated"
    assert fresh(task).status == "review"


@for_each(
    ("response", "words", "absent"),
    [
        (
            addressed("ISSUE-R1-001", words="It is masked."),
            ["Answered: addressed", "It is masked."],
            "does not answer this finding",
        ),
        (
            "Nothing on it.",
            ["Not stated", "The hand-in of round 2 does not answer this finding."],
            "Answered:",
        ),
    ],
)
def test_the_card_quotes_an_answer_that_it_doubts(
    task: Task, client: Client, response: str, words: list[str], absent: str
) -> None:
    rejected(task, CRITICAL, HIGH)
    Finding.objects.update(mandatory=False)
    hand_in(task, response, ELSEWHERE)
    client.force_login(create_user("ada", is_superuser=True))

    html = client.get(reverse("dispute", args=[card().dispute_id])).content.decode()

    side = html.split('class="box card card-B', 1)[1].split("</section>", 1)[0]
    assert all(each in side for each in words)
    assert absent not in side


def test_two_critical_ones_hold_the_task(task: Task) -> None:
    rejected(task, CRITICAL, SECOND)
    hand_in(task, addressed("ISSUE-R1-001", "ISSUE-R1-002"), ELSEWHERE)
    assert list(Conflict.objects.values_list("effect", flat=True)) == ["hold", "hold"]
    assert (fresh(task).status, kinds(task)[-1]) == ("disputed", "hold")


def test_signs_of_forgetting_stand_on_the_card(task: Task) -> None:
    """SIL-11"""
    Project.objects.update(settings={"mandatory": ["critical"], "unaddressed_high_threshold": 1})
    rejected(fresh(task), HIGH, CRITICAL)
    hand_in(task, addressed("ISSUE-R1-002"), "src/log.py", since_last_round=diff_of("src/log.py", line=8))
    assert "forgot? the output is short" in card().evidence
    assert "forgot? it was never passed over before" in card().evidence


def test_a_review_passes_a_task_by_an_open_flag(task: Task) -> None:
    rejected(task, CRITICAL)
    review(hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE), approves=True)
    assert fresh(task).status == "completed"
    assert state(card()) == ("open", "", "open")


def test_what_the_coder_answers_later_waits_for_nobody(task: Task) -> None:
    rejected(task, CRITICAL)
    review(hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE), CRITICAL | {"code": "ISSUE-R1-001"})
    silence = card()
    hand_in(task, addressed("ISSUE-R2-001"), "src/log.py", since_last_round=diff_of("src/log.py", line=8))
    assert state(silence) == ("moot", "", "closed")
    assert Flag.objects.get().status == "answered"


def test_a_new_silence_names_the_card_before_it(task: Task) -> None:
    rejected(task, CRITICAL)
    review(hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE), CRITICAL | {"code": "ISSUE-R1-001"})
    old = card()
    hand_in(task, addressed("ISSUE-R2-001"), ELSEWHERE)
    assert (card().previous, card().finding) == (old, old.finding)
    assert state(old)[0] == "moot"


def test_a_disagreement_takes_the_flag_in(task: Task) -> None:
    """One open conflict for each finding; what the flag says stays to be read."""
    rejected(task, CRITICAL)
    review(hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE), CRITICAL | {"code": "ISSUE-R1-001"})
    silence = card()
    conflict = opening.open_conflict(
        fresh(task), kind="disagreement", origin="cli", opened_as="human", question="Really?",
        finding=silence.finding, reviewer_position="Yes.", coder_position="No.", evidence=["Look at it."],
    )  # fmt: skip
    assert conflict.evidence == ["Look at it.", *silence.evidence]
    assert (state(silence)[0], Flag.objects.get().status) == ("moot", "moot")


def test_a_disagreement_of_the_coder_answers_it(task: Task) -> None:
    rejected(task, CRITICAL)
    review(hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE), CRITICAL | {"code": "ISSUE-R1-001"})
    silence = card()
    hand_in(task, "## DISAGREE: ISSUE-R2-001\n\n**Reviewer Concern:** Keys.\n\n**Rationale:** Redacted.\n")
    assert (state(silence)[0], Flag.objects.get().status) == ("moot", "answered")
    assert Conflict.objects.get(status="open").kind == "disagreement"


@for_each("how", ["cancel", "finish"])
def test_the_flags_of_a_task_that_ended_are_moot(task: Task, how: str) -> None:
    rejected(task, CRITICAL)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    silence = card()
    if how == "cancel":
        fresh(task).cancel(actor=CODER)
    else:
        Task.objects.update(status="completed", finished_by="hand")
    followup.sweep()
    assert state(silence) == ("moot", "", "closed")
    assert Flag.objects.get().status == "moot"


# --- To ask -----------------------------------------------------------------------------------------------


@for_each("option", ["ask", "ask_disagree"])
def test_to_ask_sends_the_task_back_with_the_demand_first(task: Task, tom: User, option: str) -> None:
    conflict = asked(task, tom, option)
    stored = fresh(task)
    assert (stored.status, stored.round, stored.rejections) == ("in_progress", 3, 1)
    assert (conflict.status, conflict.followed, Flag.objects.get().status) == ("decided", "waiting", "asked")
    assert "ISSUE-R1-001" in told(task)
    assert "DISAGREE block" in told(task)


def test_what_was_asked_must_be_answered(task: Task, tom: User) -> None:
    """A1: it was answered in the round before, and that counts no more."""
    asked(task, tom)
    assert due(task) == ["ISSUE-R1-001"]
    with pytest.raises(Refused) as refusal:
        hand_in(task, "I looked at it.")
    assert refusal.value.code == "unanswered_findings"


def test_an_answer_closes_the_card_as_applied(task: Task, tom: User) -> None:
    conflict = asked(task, tom)
    hand_in(task, addressed("ISSUE-R1-001"), "src/log.py", since_last_round=diff_of("src/log.py", line=8))
    assert state(conflict) == ("decided", "applied", "closed")
    assert (Flag.objects.get().status, due(task)) == ("answered", [])


def test_an_answer_that_is_no_answer_again_opens_the_next_card(task: Task, tom: User) -> None:
    conflict = asked(task, tom)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    assert state(conflict)[:2] == ("decided", "applied")
    assert (card().previous, card().pk > conflict.pk) == (conflict, True)


def test_the_coder_may_disagree_when_asked(task: Task, tom: User) -> None:
    conflict = asked(task, tom, "ask_disagree")
    hand_in(task, "## DISAGREE: ISSUE-R1-001\n\n**Reviewer Concern:** Keys.\n\n**Rationale:** Redacted.\n")
    assert state(conflict)[:2] == ("decided", "applied")
    assert Conflict.objects.get(status="open").origin == "disagree"
    assert fresh(task).status == "disputed"


def test_what_was_asked_is_asked_though_a_later_review_did_not_raise_it(task: Task, tom: User) -> None:
    """The human asks about round 2 while the coder works on round 3; its review forgot the point."""
    rejected(task, CRITICAL)
    review(hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE), NEW)
    before = fresh(task)
    rule(card(), "ask", tom)
    stored = fresh(task)
    assert (stored.status, stored.version, stored.round) == ("in_progress", before.version, 3)
    assert due(task) == ["ISSUE-R1-001", "ISSUE-R2-001"]


def test_to_ask_while_the_coder_works_leaves_its_run_alone(task: Task, tom: User) -> None:
    """No other status, no other turn. The hand-in is told what is missing; the next prompt too."""
    rejected(task, CRITICAL)
    review(hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE), NEW)
    silence = card()
    decision = rule(silence, "ask", tom)
    assert decision.action == "wait"
    with pytest.raises(Refused) as refusal:
        hand_in(task, addressed("ISSUE-R2-001"), reads=False)
    assert [detail["reason"] for detail in refusal.value.details] == [
        "ISSUE-R1-001 (critical): Keys lie in the log"
    ]
    assert "ISSUE-R1-001" in told(task)
    response = addressed("ISSUE-R2-001") + "- ISSUE-R1-001: addressed in log.py\n"
    since = diff_of("src/log.py", line=8) + diff_of(ELSEWHERE)
    hand_in(task, response, reads=False, since_last_round=since)
    assert state(silence) == ("decided", "applied", "closed")
    assert told(task) == ""


@for_each("lost", ["red", "lost"])
def test_an_answer_in_work_that_was_not_taken_is_asked_for_again(task: Task, tom: User, lost: str) -> None:
    asked(task, tom)
    submission = hand_in(task, addressed("ISSUE-R1-001"))
    Submission.objects.filter(pk=submission.pk).update(state=lost)
    fresh(task).send_back(note="Red.")
    assert due(task) == ["ISSUE-R1-001"]


def test_to_ask_about_what_is_approved_takes_it_back_before_it_lands(task: Task, tom: User) -> None:
    rejected(task, CRITICAL)
    review(hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE), approves=True)
    rule(card(), "ask", tom)
    stored = fresh(task)
    assert (stored.status, stored.accepted, stored.round) == ("in_progress", None, 3)


@for_each("option", ["ask", "ask_disagree", "convert", "waive", "false_positive"])
def test_no_ruling_on_a_flag_moves_what_has_landed(task: Task, tom: User, option: str) -> None:
    rejected(task, CRITICAL)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    review(submission, approves=True)
    silence = card()
    fresh(task).landed(submission.sha)
    before = fresh(task)
    rule(silence, option, tom)
    stored = fresh(task)
    assert (stored.status, stored.version, stored.landed_at) == (
        "completed",
        before.version,
        before.landed_at,
    )


@for_each(
    ("option", "became"),
    [
        ("ask", "cannot_tell"),
        ("ask_disagree", "cannot_tell"),
        ("waive", "applied"),
        ("false_positive", "applied"),
    ],
)
def test_a_ruling_on_what_has_landed_waits_for_nobody(
    task: Task, tom: User, option: str, became: str
) -> None:
    rejected(task, CRITICAL)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    review(submission, approves=True)
    silence = card()
    fresh(task).landed(submission.sha)
    rule(silence, option, tom)
    followup.sweep()
    assert state(silence) == ("decided", became, "closed")


def test_what_is_being_pushed_is_not_called_back_for_an_answer(task: Task, tom: User) -> None:
    rejected(task, CRITICAL)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    review(submission, approves=True)
    submission.landings.create(
        project=task.project, task=task, sha=submission.sha, target="main", status="pushing"
    )
    rule(card(), "ask", tom)
    assert (fresh(task).status, fresh(task).accepted) == ("completed", submission)
    fresh(task).landed(submission.sha)
    followup.sweep()
    assert Conflict.objects.get().followed == "cannot_tell"


def test_a_question_is_not_answered_by_the_review_of_what_it_is_about(task: Task, tom: User) -> None:
    """Two cards hold the task; one asks, the other is a false alarm."""
    rejected(task, CRITICAL, SECOND)
    hand_in(task, addressed("ISSUE-R1-001", "ISSUE-R1-002"), ELSEWHERE)
    first, second = Conflict.objects.order_by("pk")
    rule(first, "ask", tom)
    assert fresh(task).status == "disputed"
    rule(second, "false_positive", tom)
    assert (fresh(task).status, fresh(task).round) == ("in_progress", 3)
    assert due(task) == ["ISSUE-R1-001"]


# --- To waive, to call it a false alarm ---------------------------------------------------------------------


def test_what_is_waived_is_dropped_when_it_comes_back(task: Task, tom: User) -> None:
    """SIL-12, DEC-5"""
    rejected(task, CRITICAL)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    silence = card()
    rule(silence, "waive", tom, text="The log is ours alone.")
    taken = review(submission, CRITICAL | {"code": "ISSUE-R1-001"}, approves=True)
    assert (taken.dropped, fresh(task).status) == (["ISSUE-R1-001"], "completed")
    assert Event.objects.get(kind="findings_dropped").note == "ISSUE-R1-001"
    assert state(silence) == ("decided", "applied", "closed")
    assert rulings.settled_lines(task) == [
        "- ISSUE-R1-001: Keys lie in the log (waived: The log is ours alone.)"
    ]


def test_it_is_dropped_in_later_rounds_too(task: Task, tom: User) -> None:
    rejected(task, CRITICAL)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    rule(card(), "waive", tom)
    review(submission, NEW)
    taken = review(
        hand_in(task, addressed("ISSUE-R2-001")), CRITICAL | {"code": "ISSUE-R1-001"}, approves=True
    )
    assert (taken.dropped, fresh(task).status) == (["ISSUE-R1-001"], "completed")


def test_it_is_not_to_be_answered(task: Task, tom: User) -> None:
    rejected(task, CRITICAL, HIGH)
    submission = hand_in(task, addressed("ISSUE-R1-001", "ISSUE-R1-002"), ELSEWHERE)
    rule(card(), "waive", tom)
    review(submission, HIGH | {"code": "ISSUE-R1-002"})
    assert due(task) == ["ISSUE-R2-001"]


def test_a_false_alarm_settles_nothing(task: Task, tom: User) -> None:
    rejected(task, CRITICAL)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    rule(card(), "false_positive", tom)
    assert Flag.objects.get().status == "false_positive"
    taken = review(submission, CRITICAL | {"code": "ISSUE-R1-001"})
    assert (taken.dropped, due(task)) == ([], ["ISSUE-R2-001"])


@for_each("option", ["waive", "false_positive"])
def test_both_take_a_reason(task: Task, tom: User, option: str) -> None:
    rejected(task, CRITICAL)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    with pytest.raises(Refused) as refusal:
        rule(card(), option, tom, text="")
    assert refusal.value.code == "text_missing"


@for_each("option", ["waive", "false_positive"])
def test_a_held_task_goes_to_its_review_once_both_cards_are_ruled(task: Task, tom: User, option: str) -> None:
    rejected(task, CRITICAL, SECOND)
    hand_in(task, addressed("ISSUE-R1-001", "ISSUE-R1-002"), ELSEWHERE)
    first, second = Conflict.objects.order_by("pk")
    rule(first, option, tom)
    assert fresh(task).status == "disputed"
    rule(second, option, tom)
    assert (fresh(task).status, fresh(task).round) == ("review", 2)


# --- To convert ---------------------------------------------------------------------------------------------


def test_a_converted_flag_is_a_conflict_that_holds(task: Task, tom: User) -> None:
    """A2"""
    rejected(task, CRITICAL)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    silence = card()
    rule(silence, "convert", tom)
    made = Conflict.objects.get(status="open")
    assert (made.kind, made.origin, made.previous, made.effect) == (
        "disagreement",
        "converted",
        silence,
        "hold",
    )
    assert (made.coder_position, made.evidence) == ("not stated", silence.evidence)
    assert (made.finding, made.submission) == (silence.finding, submission)
    assert (fresh(task).status, Flag.objects.get().status) == ("disputed", "converted")
    rule(made, "uphold_reviewer", tom)
    assert (fresh(task).status, fresh(task).round) == ("in_progress", 3)


def test_converting_ends_a_run_under_way(task: Task, tom: User) -> None:
    rejected(task, CRITICAL)
    review(hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE), NEW)
    before = fresh(task)
    rule(card(), "convert", tom)
    assert (fresh(task).status, fresh(task).version) == ("disputed", before.version + 1)


def test_a_flag_on_a_point_in_dispute_joins_that_conflict(task: Task, tom: User) -> None:
    """Nobody is asked twice about one point, nor stopped from ruling."""
    rejected(task, CRITICAL)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    silence = card()
    dispute = opening.open_conflict(
        fresh(task), kind="disagreement", origin="cli", opened_as="human", question="Really?",
        finding=silence.finding, reviewer_position="Yes.", coder_position="No.",
    )  # fmt: skip
    Conflict.objects.filter(pk=silence.pk).update(status="open")
    fresh(task).hold(actor=CODER, note="held")
    rule(silence, "convert", tom)
    assert list(Conflict.objects.filter(status="open")) == [dispute]


def test_a_ruling_on_what_was_converted_after_landing_takes_the_landing_back(task: Task, tom: User) -> None:
    rejected(task, CRITICAL)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    review(submission, approves=True)
    silence = card()
    fresh(task).landed(submission.sha)
    rule(silence, "convert", tom)
    rule(Conflict.objects.get(status="open"), "uphold_reviewer", tom)
    followup.sweep()
    assert (fresh(task).status, fresh(task).landed_at) == ("in_progress", None)
    assert Conflict.objects.get(origin="converted").followed == "waiting"


# --- Taking back --------------------------------------------------------------------------------------------


@for_each("option", ["ask", "ask_disagree", "convert", "waive", "false_positive"])
@for_each("holds", [True, False], ids=["held", "shown"])
def test_undo_puts_a_ruling_on_a_flag_back(task: Task, tom: User, option: str, holds: bool) -> None:
    Project.objects.update(settings={"critical_block": 1 if holds else 2})
    rejected(fresh(task), CRITICAL)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    silence, before = card(), fresh(task)
    decision = rule(silence, option, tom)
    rulings.undo(decision, user=tom)
    stored = fresh(task)
    for name in ("status", "round", "rejections", "accepted", "not_before"):
        assert getattr(stored, name) == getattr(before, name), name
    assert state(silence) == ("open", "", "open")
    assert list(Conflict.objects.filter(status="open")) == [silence]
    assert Flag.objects.get().status == "open"


def test_a_conversion_that_was_ruled_on_is_not_taken_back(task: Task, tom: User) -> None:
    rejected(task, CRITICAL)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    decision = rule(card(), "convert", tom)
    rule(Conflict.objects.get(status="open"), "uphold_coder", tom)
    with pytest.raises(Refused):
        rulings.undo(decision, user=tom)
    assert Conflict.objects.filter(status="decided").count() == 2


def test_taking_a_conversion_back_lets_go_what_it_alone_held(task: Task, tom: User) -> None:
    """Another conflict was ruled on meanwhile; nobody would ask about the task any more."""
    rejected(task, CRITICAL)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    other = opening.open_conflict(
        fresh(task), kind="disagreement", origin="cli", opened_as="human", question="Ours?",
        severity="high", submission=submission, reviewer_position="Yes.", coder_position="No.",
    )  # fmt: skip
    fresh(task).hold(actor=CODER, note="held")
    decision = rule(card(), "convert", tom)
    rule(other, "uphold_coder", tom)
    assert fresh(task).status == "disputed"
    rulings.undo(decision, user=tom)
    assert fresh(task).status == "review"


def test_an_answered_question_is_not_taken_back(task: Task, tom: User) -> None:
    rejected(task, CRITICAL)
    review(hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE), CRITICAL | {"code": "ISSUE-R1-001"})
    silence = card()
    decision = rule(silence, "ask", tom)
    hand_in(task, addressed("ISSUE-R2-001"), reads=False)
    with pytest.raises(Refused) as refusal:
        rulings.undo(decision, user=tom)
    assert refusal.value.code == "moved_on"
    assert state(silence)[:2] == ("decided", "applied")


def test_a_flag_that_was_reopened_is_closed_by_an_answer(task: Task, tom: User) -> None:
    rejected(task, CRITICAL)
    review(hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE), CRITICAL | {"code": "ISSUE-R1-001"})
    decision = rule(card(), "false_positive", tom)
    newer = rulings.reopen(decision, user=tom, reason="It was none.")
    assert (newer.kind, newer.effect, newer.previous) == ("silence", "log", decision.conflict)
    assert (Flag.objects.get().status, Flag.objects.get().conflict) == ("open", newer)
    hand_in(task, addressed("ISSUE-R2-001"), "src/log.py", since_last_round=diff_of("src/log.py", line=8))
    assert state(newer) == ("moot", "", "closed")


def test_a_question_that_is_reopened_after_its_answer_asks_about_the_same_flag(task: Task, tom: User) -> None:
    conflict = asked(task, tom)
    hand_in(task, addressed("ISSUE-R1-001"), "src/log.py", since_last_round=diff_of("src/log.py", line=8))
    newer = rulings.reopen(conflict.decisions.get(), user=tom, reason="That is no answer.")
    assert (Flag.objects.get().status, Flag.objects.get().conflict) == ("open", newer)
    assert HeuristicScore.objects.get().confirmed == 0


def test_a_waived_point_that_is_reopened_may_be_raised_again(task: Task, tom: User) -> None:
    rejected(task, CRITICAL)
    submission = hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    decision = rule(card(), "waive", tom)
    rulings.reopen(decision, user=tom, reason="Others read the log too.")
    taken = review(submission, CRITICAL | {"code": "ISSUE-R1-001"})
    assert (taken.dropped, due(task)) == ([], ["ISSUE-R2-001"])


def test_rounds_that_are_taken_back_take_their_flags_along(task: Task, lea: User) -> None:
    rejected(task, CRITICAL)
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    silence = card()
    rollbacks.roll_back(fresh(task), 1, user=lea, reason="Again.")
    assert state(silence) == ("moot", "", "closed")
    hand_in(task, addressed("ISSUE-R1-001"), ELSEWHERE)
    assert card().pk != silence.pk
    assert Answer.objects.standing().count() == 1
