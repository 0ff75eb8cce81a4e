"""Was the ruling followed? And closing what nobody waits for any more."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from disputes import followup, intake, opening, rulings
from disputes.models import Conflict, Decision, Dispute
from disputes.presenting import presentation
from disputes.protocol.reviews.review import read_review
from disputes.protocol.rulings.synthesis import Synthesis
from disputes.web.dispute.evidence_card import EvidenceCard
from tasks.events import Actor
from tasks.models import Event, Landing, Project, Submission, Task
from tests.asking import fresh
from tests.cases import for_each
from tests.factories import create_finding, create_project, create_review, create_submission, create_task

pytestmark = pytest.mark.django_db

A, B, D = "uphold_reviewer", "uphold_coder", "other"
CODER, REVIEWER = Actor("run", "coder-1"), Actor("run", "reviewer-1")
PLACE = "src/calls.py"


def declined(project: Project, **finding: Any) -> Conflict:
    """The coder declined a finding of round 1 in round 2; the task is held."""
    task = create_task(project, status="in_progress", round=2)
    raised = create_finding(create_review(create_submission(task, round=1)), **({"path": PLACE} | finding))
    submission = create_submission(task, since_last_round=diff_of("README.md"))
    task.submit(actor=CODER)
    conflict = opening.open_conflict(
        task, kind="disagreement", origin="disagree", opened_as="coder", question=raised.title,
        finding=raised,
        submission=submission, reviewer_position="Wait between tries.", reviewer_label="reviewer-1",
        coder_position="The server asks for it.", coder_label="coder-1",
        coder_rationale="Its answer names a time.", alternative="Keep to that time.",
    )  # fmt: skip
    task.hold(actor=CODER, note=conflict.question)
    return conflict


def rule(conflict: Conflict, option: str, user: User, **kwargs: Any) -> Decision:
    conflict = Conflict.objects.get(pk=conflict.pk)
    return rulings.decide(conflict, option, user=user, undo_seconds=0, **kwargs)


def carry_out(task: Task, *changed: str) -> Submission:
    """The coder reads its prompt and hands in a green commit that changes these files."""
    task = Task.objects.get(pk=task.pk)
    rulings.mark_used(rulings.rulings_for_prompt(task), 7)
    submission = create_submission(task, since_last_round=diff_of(*changed))
    task.submit(actor=CODER)
    return submission


def diff_of(*paths: str, line: int = 12) -> str:
    """What git prints, without context, where one line of each file changed."""
    return "".join(
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -{line} +{line} @@\n-old\n+new\n"
        for path in paths
    )


def last(task: Task) -> Submission:
    submission = task.last_submission()
    assert submission is not None
    return submission


def again(conflict: Conflict, **kwargs: Any) -> dict[str, Any]:
    """The finding in dispute, as the next review raises it."""
    return {"code": conflict.name, "title": "Still at once", "severity": "high"} | kwargs


def review(submission: Submission, *findings: dict[str, Any], approves: bool = False) -> None:
    read = read_review({"findings": list(findings)})
    intake.take_review(submission, read, approves=approves, actor=REVIEWER)


def state(conflict: Conflict) -> tuple[str, str]:
    """Whether it was followed, and what became of the dispute."""
    stored = Conflict.objects.select_related("dispute").get(pk=conflict.pk)
    return stored.followed, stored.dispute.status


# --- After a review ---------------------------------------------------------------------------------------


@for_each(("option", "words"), [(A, ""), (D, "Wait a second.")])
def test_a_changed_place_that_is_not_raised_again_is_applied(
    ledger: Project, tom: User, option: str, words: str
) -> None:
    conflict = declined(ledger)
    rule(conflict, option, tom, text=words)
    review(carry_out(conflict.task, "README.md", PLACE), approves=True)
    assert state(conflict) == ("applied", "closed")
    assert Dispute.objects.get().closed_reason == "followed up"
    assert fresh(conflict.task).status == "completed"


def hunk(old: str, new: str, *lines: str) -> str:
    """One hunk of PLACE as hosts keep it, without context."""
    return f"@@ -{old} +{new} @@\n" + "".join(f"{line}\n" for line in lines)


def diff_with(*hunks: str) -> str:
    return f"diff --git a/{PLACE} b/{PLACE}\n--- a/{PLACE}\n+++ b/{PLACE}\n{''.join(hunks)}"


def test_applied_is_only_what_changed_the_very_place_wherever_that_has_gone(
    ledger: Project, tom: User
) -> None:
    """DEC-13: round 1 points at line 12; what was disputed in round 2 pushed that to line 32"""
    pushed = hunk("3,0", "4,20", *["+import it"] * 20)
    near = hunk("3", "3", "-one", "+two")
    cases = {
        ("", diff_with(hunk("12", "12", "-old", "+new"))): "applied",
        ("", diff_with(hunk("11,0", "12,1", "+guarded"))): "applied",  # right before it
        ("", diff_with(near)): "cannot_tell",
        ("", diff_with(hunk("10", "10", "-one", "+two"))): "cannot_tell",  # near is not there
        (diff_with(pushed), diff_with(hunk("32", "32", "-old", "+new"))): "applied",
        (diff_with(pushed), diff_with(hunk("12", "12", "-import it", "+import"))): "cannot_tell",
        ("", diff_with(near, hunk("40,0", "41,1", "+    backoff.wait(tries)"))): "applied",  # what A names
        ("", diff_of("README.md")): "not_honoured",
    }
    for (before, since), expected in cases.items():
        conflict = declined(ledger, line=12)
        conflict.reviewer_position = "Wait between tries: call `backoff.wait`."
        conflict.save()
        Submission.objects.filter(pk=conflict.submission_id).update(
            since_last_round=before or diff_of("README.md")
        )
        rule(conflict, A, tom)
        submission = carry_out(conflict.task)
        Submission.objects.filter(pk=submission.pk).update(since_last_round=since)
        submission.refresh_from_db()
        review(submission, approves=True)
        assert state(conflict)[0] == expected, (before, since)


def test_a_point_that_is_raised_again_was_not_honoured(ledger: Project, tom: User) -> None:
    old = declined(ledger)
    rule(old, A, tom)
    submission = carry_out(old.task, PLACE)
    review(submission, again(old, suggestion="Wait twice as long each time."))
    assert state(old) == ("not_honoured", "open")
    new = Conflict.objects.get(status="open")
    assert (new.previous, new.origin, new.opened_as) == (old, "not_honoured", "system")
    assert (new.kind, new.finding, new.submission) == ("disagreement", old.finding, submission)
    assert (new.severity, new.effect, new.dispute) == ("high", "hold", old.dispute)
    assert new.question == "Not honoured: Still at once"
    assert (new.coder_rationale, new.alternative) == (old.coder_rationale, old.alternative) != ("", "")
    assert (new.reviewer_position, new.coder_position) == (
        "Wait twice as long each time.", "The server asks for it.",
    )  # fmt: skip
    assert fresh(old.task).status == "disputed"


@for_each(
    ("raises", "followed"),
    [(None, "applied"), ("reviewer-1", "not_honoured"), ("reviewer-2", "not_honoured")],
)
def test_all_reviewers_of_a_turn_are_heard_before_a_ruling_counts_as_followed(
    ledger: Project, tom: User, raises: str | None, followed: str
) -> None:
    conflict = declined(ledger)
    rule(conflict, A, tom)
    carry_out(conflict.task, PLACE)
    for name, others in (("reviewer-2", ["reviewer-1"]), ("reviewer-1", [])):
        read = read_review({"findings": [again(conflict)] if name == raises else []})
        intake.take_review(
            last(conflict.task), read, approves=name != raises, actor=Actor("run", name), waiting_for=others
        )
        assert (state(conflict)[0] == "waiting") is (name != raises and bool(others))
    assert state(conflict)[0] == followed
    asked = Conflict.objects.filter(status="open", previous=conflict)
    assert asked.count() == (followed == "not_honoured")


def test_reviews_that_do_not_wait_for_another_one_follow_up_what_was_ruled(
    ledger: Project, tom: User
) -> None:
    conflict = declined(ledger)
    rule(conflict, A, tom)
    submission = carry_out(conflict.task, PLACE)
    intake.take_review(
        submission, read_review({"findings": []}), approves=True, actor=REVIEWER, waiting_for=["reviewer-2"]
    )
    assert state(conflict)[0] == "waiting"
    intake.conclude_reviews(fresh(conflict.task), without=["reviewer-2"])
    assert state(conflict)[0] == "applied"


def test_it_may_be_ruled_again_and_again(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    task = conflict.task
    for round_ in (3, 4, 5):
        rule(conflict, A, tom)
        review(carry_out(task, PLACE), again(conflict))
        newest = Conflict.objects.get(status="open")
        assert (newest.previous, fresh(task).round) == (conflict, round_)
        conflict = newest
    rule(conflict, A, tom)
    review(carry_out(task, PLACE), approves=True)
    assert (fresh(task).status, Dispute.objects.get().status) == ("completed", "closed")


def test_a_mild_conflict_that_was_not_honoured_holds(tom: User) -> None:
    """Whatever the policy says of its severity: a human has spoken."""
    settings = {"mandatory": ["critical", "high", "medium"]}
    conflict = declined(create_project(settings=settings, members={tom: "triager"}), severity="medium")
    assert conflict.effect == "ship"
    rule(conflict, A, tom)
    review(carry_out(conflict.task, PLACE), again(conflict, severity="medium"))
    assert Conflict.objects.get(status="open").effect == "hold"
    assert fresh(conflict.task).status == "disputed"


@for_each("approves", [True, False])
def test_a_place_that_was_not_touched_is_not_honoured(ledger: Project, tom: User, approves: bool) -> None:
    """DEC-13: an approval by the reviewer does not make it so; a human looks at it again."""
    conflict = declined(ledger)
    rule(conflict, A, tom)
    other = {"title": "The tests wait for seconds", "severity": "high"}
    review(carry_out(conflict.task, "README.md"), *([] if approves else [other]), approves=approves)
    assert state(conflict) == ("not_honoured", "open")
    card = Conflict.objects.get(status="open")
    assert card.previous == conflict
    assert card.evidence == [
        "The place was not touched.",
        f"{conflict.ref} was ruled A by Tom Tran: Wait between tries.",
    ]
    assert fresh(conflict.task).status == "disputed"


def test_a_card_that_asks_again_shows_what_was_ruled_and_why_it_asks(ledger: Project, tom: User) -> None:
    """Whoever rules has the ruling before them that was not carried out, or that somebody doubts."""
    conflict = declined(ledger)
    conflict.propose(Synthesis("Make it a setting.", "One more setting.", covers_both=True), "limits")
    words = "Name the limit,\nand keep it."
    rule(conflict, "compromise", tom, text=words)
    review(carry_out(conflict.task, "README.md"), approves=True)
    card = Conflict.objects.get(status="open")
    ruled = f"{conflict.ref} was ruled C by Tom Tran: Name the limit, and keep it."
    assert card.evidence == ["The place was not touched.", ruled]
    assert (card.coder_position, card.coder_rationale) == (conflict.coder_position, conflict.coder_rationale)
    assert (rulings.text_of(card, "compromise"), card.proposal.by) == (words, "human Tom Tran")
    assert not any(view.recommended for view in rulings.options_of(card))

    decision = rule(card, D, tom, text="Leave it.", expects_change=False)
    Decision.objects.filter(pk=decision.pk).update(used_at=timezone.now())
    again = rulings.reopen(decision, user=tom, reason="Finance\nsays no.")
    told = ["Reopened by Tom Tran: Finance says no.", f"{card.ref} was ruled D by Tom Tran: Leave it."]
    assert again.evidence == [*told, *card.evidence]
    assert rulings.text_of(again, "compromise") == words
    assert list(EvidenceCard.of(again.evidence).rows) == ["Asked again", "Ruled before", "Found"]
    assert told[1] in presentation(again, rulings.options_of(again))


def test_nobody_can_tell_where_the_file_changed_elsewhere(ledger: Project, tom: User) -> None:
    """What was asked for may be done there."""
    conflict = declined(ledger)
    rule(conflict, A, tom)
    submission = carry_out(conflict.task)
    Submission.objects.filter(pk=submission.pk).update(since_last_round=diff_of(PLACE, line=400))
    review(last(conflict.task), approves=True)
    assert state(conflict) == ("cannot_tell", "closed")


def test_nobody_can_tell_without_a_place(ledger: Project, tom: User) -> None:
    conflict = declined(ledger, path="", line=None)
    rule(conflict, A, tom)
    review(carry_out(conflict.task, PLACE), approves=True)
    assert state(conflict)[0] == "cannot_tell"


def test_nobody_can_tell_of_a_retry(ledger: Project, tom: User) -> None:
    task = create_task(ledger, status="in_progress", round=1)
    create_submission(task, state="red")
    conflict = opening.stop_for_help(task, "blocked", "Who has the key?")
    rule(conflict, "retry", tom, text="It lies in the vault.")
    review(carry_out(task, PLACE), approves=True)
    assert state(conflict) == ("cannot_tell", "closed")


@for_each(("option", "words"), [(B, ""), (D, "Leave it, say why.")])
def test_what_asks_for_no_change_is_always_applied(
    ledger: Project, tom: User, option: str, words: str
) -> None:
    """DEC-14"""
    conflict = declined(ledger)
    rule(conflict, option, tom, text=words, expects_change=False)
    assert fresh(conflict.task).status == "review"
    review(last(conflict.task), approves=True)
    assert state(conflict) == ("applied", "closed")
    assert fresh(conflict.task).status == "completed"


def test_even_if_the_reviewer_raises_it_again(ledger: Project, tom: User) -> None:
    """PROTOCOL 25: it is dropped with a note."""
    conflict = declined(ledger)
    rule(conflict, B, tom)
    review(last(conflict.task), again(conflict), approves=True)
    assert state(conflict) == ("applied", "closed")
    assert not Conflict.objects.filter(status="open").exists()
    assert Event.objects.get(kind="findings_dropped").note == conflict.name


def test_a_ruling_is_followed_up_in_each_conflict_by_itself(ledger: Project, tom: User) -> None:
    first = declined(ledger)
    task = first.task
    raised = create_finding(task.submissions.get(round=1).reviews.get(), path="src/names.py")
    second = opening.open_conflict(
        task, kind="disagreement", origin="disagree", opened_as="coder", question=raised.title,
        finding=raised,
        submission=task.last_submission(), reviewer_position="Rename it.", coder_position="It is clear.",
    )  # fmt: skip
    rule(first, A, tom)
    rule(second, A, tom)
    review(carry_out(task, PLACE, "src/names.py"), again(second))
    assert state(first)[0] == "applied"
    assert state(second) == ("not_honoured", "open")


def test_a_ruling_that_was_undone_is_not_followed_up(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    rulings.undo(rule(conflict, A, tom), user=tom)
    followup.follow_up(conflict.task, last(conflict.task), set(), actor=REVIEWER)
    assert state(conflict) == ("", "open")


def test_the_commit_that_was_ruled_on_says_nothing_about_the_ruling(ledger: Project, tom: User) -> None:
    """Only a later one can have carried it out."""
    conflict = declined(ledger)
    rule(conflict, A, tom)
    followup.follow_up(conflict.task, last(conflict.task), set(), actor=REVIEWER)
    assert state(conflict) == ("waiting", "ruled")


def test_following_up_twice_changes_nothing_more(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    rule(conflict, A, tom)
    submission = carry_out(conflict.task, PLACE)
    raised = {conflict.finding_id}
    for _ in range(2):
        followup.follow_up(conflict.task, submission, raised, actor=REVIEWER)
    assert Conflict.objects.filter(previous=conflict).count() == 1


def test_a_review_is_taken_while_the_same_point_is_open_already(tom: User) -> None:
    """A human reopened a MEDIUM point; the coder goes on, and the reviewer raises it again."""
    project = create_project(settings={"mandatory": ["critical", "high", "medium"]}, members={tom: "triager"})
    task = create_task(project, status="in_progress", round=2)
    raised = create_finding(create_review(create_submission(task, round=1)), severity="medium")
    submission = create_submission(task)
    task.submit(actor=CODER)
    old = opening.open_conflict(
        task, kind="disagreement", origin="disagree", opened_as="coder", question=raised.title,
        finding=raised,
        submission=submission, reviewer_position="Wait.", coder_position="No.",
    )  # fmt: skip
    decision = rule(old, A, tom)
    rulings.mark_used([decision], 7)
    new = rulings.reopen(decision, user=tom, reason="The words were wrong.")
    assert (new.effect, fresh(task).status) == ("ship", "in_progress")
    newest = create_submission(fresh(task), since_last_round=diff_of(PLACE))
    fresh(task).submit(actor=CODER)
    review(newest, again(old, severity="medium"))
    assert list(Conflict.objects.filter(status="open")) == [new]


# --- A point that comes back later ------------------------------------------------------------------------


@for_each("touched", [(PLACE,), ()], ids=["applied", "cannot tell"])
def test_a_point_that_comes_back_after_its_ruling_reaches_the_coder(
    ledger: Project, tom: User, touched: tuple[str, ...]
) -> None:
    """It must be answered, or a human is asked again; a round in which the coder hears of nothing is lost."""
    conflict = declined(ledger)
    task = conflict.task
    rule(conflict, A, tom)
    review(carry_out(task, *touched), {"title": "The tests wait for seconds", "severity": "high"})
    review(carry_out(task), again(conflict))
    told = [finding.origin for finding in intake.findings_to_answer(fresh(task))]
    asked = Conflict.objects.filter(status="open", finding=conflict.finding).exists()
    assert conflict.finding in told or asked


# --- Sweeping ---------------------------------------------------------------------------------------------


def ended(task: Task, how: str) -> None:
    task = fresh(task)
    actor = Actor("person", "Lea Lindt")
    if how == "finish":
        Task.objects.filter(pk=task.pk).update(status="completed", finished_by="hand")
    else:
        getattr(task, how)(actor=actor)


@for_each("how", ["cancel", "finish"])
def test_the_dispute_of_a_task_that_ended_is_moot(ledger: Project, how: str) -> None:
    conflict = declined(ledger)
    ended(conflict.task, how)
    assert followup.sweep() == 1
    dispute = Dispute.objects.get()
    reasons = {"cancel": "task cancelled", "finish": "finished by hand"}
    assert (dispute.status, dispute.closed_reason) == ("closed", reasons[how])
    conflict.refresh_from_db()
    assert conflict.status == "moot"
    assert Event.objects.filter(kind="dispute_closed").count() == 1


def test_a_ruled_one_too(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    rule(conflict, A, tom)
    ended(conflict.task, "cancel")
    assert followup.sweep() == 1
    conflict.refresh_from_db()
    assert (conflict.status, conflict.dispute.status) == ("decided", "closed")


def land(task: Task) -> None:
    task = fresh(task)
    assert task.accepted is not None
    task.landed(task.accepted.sha)


def test_a_ruling_whose_commit_landed_was_followed(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    task = conflict.task
    create_review(last(task), verdict="APPROVED")
    rule(conflict, B, tom)
    assert fresh(task).status == "completed"
    assert followup.sweep() == 0
    land(task)
    assert followup.sweep() == 1
    assert state(conflict) == ("applied", "closed")
    assert Dispute.objects.get().closed_reason == "followed up"


def test_a_landing_that_was_tried_again_and_came_through_closes_its_card(ledger: Project, tom: User) -> None:
    task = create_task(ledger, status="review", round=1)
    submission = create_submission(task)
    task.approve(submission, actor=REVIEWER)
    Landing.objects.create(
        project=ledger, task=task, submission=submission, sha=submission.sha, target="main", status="stuck"
    )
    conflict = opening.stop_for_help(task, "landing", "The remote refuses the push")
    rule(conflict, "land_again", tom)
    land(task)
    assert followup.sweep() == 1
    assert state(conflict) == ("applied", "closed")


def test_a_ruling_against_code_that_had_landed_before_was_not_followed(ledger: Project, tom: User) -> None:
    """No ruling is lost unseen: nobody has carried this one out."""
    task = create_task(ledger, status="review", round=1)
    task.approve(create_submission(task), actor=REVIEWER)
    land(task)
    conflict = opening.open_conflict(
        task, kind="disagreement", origin="cli", opened_as="human", question="It leaks.",
        reason="security_concern", submission=task.last_submission(), reviewer_position="It leaks.",
        coder_position="It does not.",
    )  # fmt: skip
    rule(conflict, A, tom)
    followup.sweep()
    assert state(conflict)[0] != "applied"


@for_each("status", ["in_progress", "review", "disputed", "deferred", "failed", "pending"])
def test_the_dispute_of_a_task_under_way_stays(ledger: Project, status: str) -> None:
    conflict = declined(ledger)
    Task.objects.filter(pk=conflict.task.pk).update(status=status)
    assert followup.sweep() == 0
    assert state(conflict) == ("", "open")


def test_a_shipped_dispute_stays_open_after_landing(ledger: Project) -> None:
    conflict = declined(ledger)
    task = conflict.task
    Task.objects.filter(pk=task.pk).update(accepted=last(task))
    land(task)
    assert followup.sweep() == 0
    assert state(conflict) == ("", "open")


def test_an_approved_task_with_a_ruled_dispute_waits_to_land(ledger: Project, tom: User) -> None:
    conflict = declined(ledger)
    rule(conflict, A, tom)
    submission = last(conflict.task)
    Task.objects.filter(pk=conflict.task.pk).update(status="completed", accepted=submission)
    assert followup.sweep() == 0
    assert state(conflict) == ("waiting", "ruled")


def test_sweeping_twice_is_sweeping_once(ledger: Project) -> None:
    for how in ("cancel", "finish"):
        ended(declined(ledger).task, how)
    assert [followup.sweep(), followup.sweep()] == [2, 0]
    assert Event.objects.filter(kind="dispute_closed").count() == 2


def test_a_card_of_a_project_is_not_swept(ledger: Project) -> None:
    Dispute.objects.create(project=ledger, severity="high", question="Do they go round in circles?")
    assert followup.sweep() == 0


def test_an_idle_sweep_costs_little(ledger: Project, django_assert_max_num_queries: Any) -> None:
    for _ in range(3):
        declined(ledger)
    with django_assert_max_num_queries(3):  # cancelled, finished by hand, landed
        followup.sweep()
