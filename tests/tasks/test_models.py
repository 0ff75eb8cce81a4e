"""The rows of work: what each table refuses, and the moves of a task."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, models, transaction
from django.utils import timezone

from disputes import opening
from tasks.events import Actor
from tasks.models import (
    Answer,
    Bundle,
    Checkpoint,
    Comment,
    Dependency,
    Event,
    Idempotency,
    Landing,
    Membership,
    Project,
    Rollback,
    Seal,
    Section,
    StaleTask,
    Submission,
    Task,
    Verification,
)
from tasks.states import MOVES, STARTABLE, IllegalMove, Status
from tests.cases import for_each
from tests.factories import (
    create_finding,
    create_project,
    create_review,
    create_section,
    create_submission,
    create_task,
    create_user,
    sha,
)

pytestmark = pytest.mark.django_db

ACTOR = Actor("agent", "coder-1")
LATER = timezone.now() + timedelta(hours=1)


def task_in(status: str, project: Project | None = None, **kwargs: Any) -> Task:
    """A task with that status and what a row with it must have."""
    if status == Status.COMPLETED and "accepted" not in kwargs:
        kwargs = {"finished_by": "hand"} | kwargs
    return create_task(project, status=status, **kwargs)


def completed(project: Project | None = None, **kwargs: Any) -> Task:
    """A task whose approved submission waits to land."""
    task = create_task(project, status="review", round=1)
    submission = create_submission(task)
    Task.objects.filter(pk=task.pk).update(status="completed", accepted=submission, **kwargs)
    task.refresh_from_db()
    return task


def events(task: Task) -> list[tuple[str, str, str]]:
    rows = Event.objects.filter(task=task).order_by("pk")
    return list(rows.values_list("kind", "from_status", "to_status"))


def row(task: Task) -> dict[str, Any]:
    """The task as it stands in the database."""
    return Task.objects.filter(pk=task.pk).values().get()


# --- What the tables refuse -------------------------------------------------------------------------------

Make = Callable[[], Any]


def of(model: type[models.Model], instance: Any, **changes: Any) -> Make:
    """Write these columns into the row, past all Python."""
    return lambda: model._default_manager.filter(pk=instance.pk).update(**changes)


def landing(submission: Submission, **kwargs: Any) -> Landing:
    task = submission.task
    values = {"sha": submission.sha, "target": "main"} | kwargs
    return Landing.objects.create(project=task.project, task=task, submission=submission, **values)


def verification(project: Project, **kwargs: Any) -> Verification:
    values = {"sha": sha("a"), "commands_hash": "1", "green": True} | kwargs
    return Verification.objects.create(project=project, **values)


def second_membership() -> Make:
    project, user = create_project(), create_user()
    Membership.objects.create(project=project, user=user, role="viewer")
    return lambda: Membership.objects.create(project=project, user=user, role="maintainer")


def second_child() -> Make:
    parent = create_section(title="Parts")
    create_section(parent.project, "Doors", parent=parent)
    return lambda: create_section(parent.project, "Doors", parent=parent)


def second_top_section() -> Make:
    section = create_section(title="Doors")
    return lambda: create_section(section.project, "Doors")


def second_number() -> Make:
    task = create_task()
    return lambda: create_task(task.project, number=task.number)


def second_dependency() -> Make:
    task = create_task()
    on = create_task(task.project)
    Dependency.objects.create(task=task, on=on)
    return lambda: Dependency.objects.create(task=task, on=on)


def dependency_on_itself() -> Make:
    task = create_task()
    return lambda: Dependency.objects.create(task=task, on=task)


def second_attempt() -> Make:
    submission = create_submission(create_task())
    return lambda: create_submission(submission.task, round=1, attempt=submission.attempt)


def second_verification() -> Make:
    done = verification(create_project())
    return lambda: verification(done.project, green=False)


def second_live_landing() -> Make:
    submission = create_submission(create_task())
    landing(submission, status="checking")
    return lambda: landing(submission)


def second_push() -> Make:
    project = create_project()
    landing(create_submission(create_task(project)), status="pushing")
    return lambda: landing(create_submission(create_task(project)), status="pushing")


def second_review() -> Make:
    review = create_review(create_submission(create_task()))
    return lambda: create_review(review.submission)


def second_ordinal() -> Make:
    finding = create_finding(create_review(create_submission(create_task())))
    return lambda: create_finding(finding.review, ordinal=finding.ordinal)


def second_code() -> Make:
    finding = create_finding(create_review(create_submission(create_task())))
    other = create_review(finding.review.submission, by_agent="reviewer-2")
    return lambda: create_finding(other, code=finding.code)


def second_answer() -> Make:
    finding = create_finding(create_review(create_submission(create_task())))
    submission = create_submission(finding.task, round=2)
    Answer.objects.create(submission=submission, finding=finding, kind="declined")
    return lambda: Answer.objects.create(submission=submission, finding=finding, kind="addressed")


def empty_comment() -> Make:
    task = create_task()
    return lambda: Comment.objects.create(
        project=task.project, task=task, body="", by_label="Lea", by_kind="person"
    )


def second_seal() -> Make:
    values = {"project": create_project(), "number": 1, "upto": 1, "count": 1, "chain": "0" * 64}
    Seal.objects.create(**values)
    return lambda: Seal.objects.create(**values)


def second_key() -> Make:
    values = {"actor": "a", "key": "k", "request_hash": "h", "status": 201, "reply": {}}
    Idempotency.objects.create(**values)
    return lambda: Idempotency.objects.create(**values)


def second_gap() -> Make:
    first = create_task(gap="GAP-AUTH-001")
    return lambda: create_task(first.project, gap="GAP-AUTH-001")


def own_parent() -> Make:
    task = create_task()
    return of(Task, task, parent=task)


def second_checkpoint() -> Make:
    values = {"project": create_project(), "number": 1}
    Checkpoint.objects.create(**values)
    return lambda: Checkpoint.objects.create(**values)


def roll_back(**kwargs: Any) -> Make:
    values = {"from_round": 3, "to_round": 1, "reason": "It leads nowhere.", "by_label": "tom"} | kwargs
    task = create_task()
    return lambda: Rollback.objects.create(task=task, **values)


# By the name of the constraint: rows that are fine, and the write that it refuses.
REFUSED: dict[str, Callable[[], Make]] = {
    "project_max_parallel_positive": lambda: of(Project, create_project(), max_parallel=0),
    "project_status_known": lambda: of(Project, create_project(), status="asleep"),
    "project_base_state_known": lambda: of(Project, create_project(), base_state="mauve"),
    "project_ended_is_finished": lambda: of(Project, create_project(), exit_type="complete"),
    "project_kind_known": lambda: of(Project, create_project(), kind="poems"),
    "task_gap_once": second_gap,
    "task_not_its_own_parent": own_parent,
    "checkpoint_number_once": second_checkpoint,
    "rollback_goes_back": lambda: roll_back(to_round=3),
    "rollback_has_a_reason": lambda: roll_back(reason=""),
    "project_slug_free": lambda: of(Project, create_project(), slug="c"),
    "idempotency_key_once": second_key,
    "seal_number_once": second_seal,
    "membership_once": second_membership,
    "section_title_once": second_child,
    "section_top_title_once": second_top_section,
    "task_number_once": second_number,
    "task_status_known": lambda: of(Task, create_task(), status="done"),
    "task_severity_known": lambda: of(Task, create_task(), severity="urgent"),
    "task_landed_has_sha_and_time": lambda: of(Task, completed(), landed_at=timezone.now()),
    "task_completed_has_a_reason": lambda: of(Task, create_task(), status="completed"),
    "dependency_once": second_dependency,
    "dependency_not_on_itself": dependency_on_itself,
    "submission_attempt_once": second_attempt,
    "submission_names_commits": lambda: of(Submission, create_submission(create_task()), sha="a" * 39),
    "submission_state_known": lambda: of(Submission, create_submission(create_task()), state="fine"),
    "verification_once": second_verification,
    "landing_one_live_per_submission": second_live_landing,
    "landing_one_push_per_target": second_push,
    "review_version_once": second_review,
    "finding_ordinal_once": second_ordinal,
    "finding_code_once": second_code,
    "answer_once": second_answer,
    "comment_says_something": empty_comment,
}
CONSTRAINTS = {
    constraint.name: constraint
    for model in apps.get_app_config("tasks").get_models()
    for constraint in model._meta.constraints
}


def assert_refused(write: Make, name: str = "") -> None:
    """The database says no. Only a check is named by every database."""
    is_check = isinstance(CONSTRAINTS.get(name), models.CheckConstraint)
    with pytest.raises(IntegrityError, match=name if is_check else None), transaction.atomic():
        write()


@for_each("name", REFUSED)
def test_the_database_refuses(name: str) -> None:
    assert_refused(REFUSED[name](), name)


def test_every_constraint_of_the_rows_of_work_is_tried() -> None:
    assert set(REFUSED) == set(CONSTRAINTS)


@for_each("column", ["sha", "base_sha"])
@for_each("name", ["", "HEAD", "a" * 41, "a" * 63, "A" * 40, "g" * 40])
def test_a_submission_names_whole_commits_only(column: str, name: str) -> None:
    write = of(Submission, create_submission(create_task()), **{column: name})
    assert_refused(write, "submission_names_commits")


def test_a_sha_256_is_a_commit_too() -> None:
    of(Submission, create_submission(create_task()), sha="a" * 64, base_sha="b" * 64)()


def test_a_document_names_no_commit() -> None:
    of(Submission, create_submission(create_task()), kind="document", sha="", base_sha="")()


def test_an_attempt_may_be_made_again_once_its_round_was_rolled_back() -> None:
    submission = create_submission(create_task(round=2))
    back = Rollback.objects.create(
        task=submission.task, from_round=2, to_round=0, reason="Begin anew.", by_label="tom"
    )
    of(Submission, submission, rolled_back=back)()
    again = create_submission(submission.task, round=submission.round, attempt=submission.attempt)
    assert list(submission.task.submissions.standing()) == [again]


def test_a_landed_task_names_its_commit() -> None:
    assert_refused(of(Task, completed(), landed_sha=sha("a")), "task_landed_has_sha_and_time")
    of(Task, completed(), landed_sha=sha("a"), landed_at=timezone.now())()


@for_each("by", ["hand", "import"])
def test_a_task_may_be_completed_without_a_submission_where_somebody_says_so(by: str) -> None:
    of(Task, create_task(), status="completed", finished_by=by)()


def test_a_slug_is_taken_once() -> None:
    create_project("ledger")
    assert_refused(lambda: create_project("ledger"))


def test_a_submission_has_one_bundle() -> None:
    submission = create_submission(create_task())
    Bundle.objects.create(submission=submission, data=b"1")
    assert_refused(lambda: Bundle.objects.create(submission=submission, data=b"2"))


def test_the_same_title_may_stand_in_two_sections_and_two_projects() -> None:
    first, second = create_section(title="Front"), create_section(title="Front")
    assert first.project != second.project
    back = create_section(first.project, "Back")
    for parent in (first, back):
        create_section(first.project, "Doors", parent=parent)
    create_section(first.project, "Doors")


def test_numbers_count_in_each_project_alone() -> None:
    assert create_task(create_project(), number=7).number == create_task(create_project(), number=7).number


@for_each("status", ["landed", "conflict", "superseded", "stuck"])
def test_a_submission_may_be_tried_again_once_its_landing_is_over(status: str) -> None:
    submission = create_submission(create_task())
    landing(submission, status=status)
    landing(submission)


def test_two_branches_may_be_pushed_at_once() -> None:
    project = create_project()
    landing(create_submission(create_task(project)), status="pushing")
    landing(create_submission(create_task(project)), status="pushing", target="release")
    landing(create_submission(create_task()), status="pushing")


def test_a_commit_is_verified_once_for_each_set_of_commands() -> None:
    done = verification(create_project())
    verification(done.project, commands_hash="2")
    verification(done.project, sha=sha("b"))


def test_two_agents_may_review_and_one_may_review_again() -> None:
    review = create_review(create_submission(create_task()))
    create_review(review.submission, by_agent="reviewer-2")
    create_review(review.submission, version=2)


def test_what_history_hangs_on_cannot_be_deleted() -> None:
    finding = create_finding(create_review(create_submission(create_task())))
    for instance in (finding.review, finding.review.submission, finding.task, finding.task.section):
        with pytest.raises(models.ProtectedError):
            instance.delete()


@for_each("data", [{"policy": {"critical": "ship"}}, {"colour": "red"}, {"rejections_max": "many"}])
def test_a_form_refuses_settings_that_no_project_may_have(data: dict[str, Any]) -> None:
    project = create_project(settings=data)
    with pytest.raises(ValidationError, match="settings"):
        project.full_clean()


# --- Every verb: one row, one event -----------------------------------------------------------------------


def last(task: Task) -> Submission:
    return task.last_submission() or create_submission(task)


# The verb, where it is tried from, where it leads, and the call.
def at_stage(task: Task, stage: str, home: str = "") -> Task:
    """The task at a stage of the full pipeline, as this copy of it sees it."""
    task.project.settings = {"stages": "full"}
    task.stage, task.home_stage = stage, home
    return task


VERBS: dict[str, tuple[str, str, Callable[[Task], None]]] = {
    "start": ("pending", "in_progress", lambda task: task.start()),
    "submit": ("in_progress", "review", lambda task: task.submit(actor=ACTOR)),
    "send_back": ("review", "in_progress", lambda task: task.send_back(note="Red.")),
    "reject": ("review", "in_progress", lambda task: task.reject(actor=ACTOR)),
    "approve": ("review", "completed", lambda task: task.approve(last(task), actor=ACTOR)),
    "advance": (
        "review",
        "in_progress",
        lambda task: at_stage(task, "tests").advance(last(task), actor=ACTOR),
    ),
    "backflow": (
        "in_progress",
        "in_progress",
        lambda task: at_stage(task, "dev").backflow(actor=ACTOR, note="The test is wrong."),
    ),
    "forward": (
        "in_progress",
        "in_progress",
        lambda task: at_stage(task, "tests", "dev").forward(actor=ACTOR, note="It is right."),
    ),
    "escalate": (
        "in_progress",
        "in_progress",
        lambda task: task.escalate("needs-senior-dev", reason="unknown", actor=ACTOR),
    ),
    "hold": ("review", "disputed", lambda task: task.hold(actor=ACTOR, note="C-1")),
    "ship": ("review", "disputed", lambda task: task.ship(last(task), actor=ACTOR, note="C-1")),
    "stop_for_help": ("in_progress", "disputed", lambda task: task.stop_for_help(note="Who has the key?")),
    "exhaust": ("review", "failed", lambda task: task.exhaust(actor=ACTOR, note="15")),
    "rule_revise": (
        "disputed",
        "in_progress",
        lambda task: task.rule_revise(actor=ACTOR, note="A", not_before=None),
    ),
    "rule_review": (
        "disputed",
        "review",
        lambda task: task.rule_review(actor=ACTOR, note="B", not_before=None),
    ),
    "rule_accept": (
        "disputed",
        "completed",
        lambda task: task.rule_accept(last(task), actor=ACTOR, note="B"),
    ),
    "undo": ("in_progress", "disputed", lambda task: task.move("undo", to="disputed", actor=ACTOR)),
    "clash": ("completed", "in_progress", lambda task: task.clash(note="It no longer applies.")),
    "review_again": ("completed", "review", lambda task: task.review_again(note="It was rebased.")),
    "retry": (
        "failed",
        "in_progress",
        lambda task: task.retry(Status.IN_PROGRESS, actor=ACTOR, note="Again", not_before=None),
    ),
    "defer": ("pending", "deferred", lambda task: task.defer(actor=ACTOR)),
    "resume": ("deferred", "pending", lambda task: task.resume(actor=ACTOR)),
    "cancel": ("pending", "cancelled", lambda task: task.cancel(actor=ACTOR)),
    "finish": ("pending", "completed", lambda task: task.finish(actor=ACTOR)),
    "reopen": ("cancelled", "pending", lambda task: task.reopen(actor=ACTOR, note="Wanted after all")),
    "pass_round": ("review", "in_progress", lambda task: task.move("pass_round", actor=ACTOR)),
    "next_round": ("in_progress", "in_progress", lambda task: task.next_round()),
    "review_rest": (
        "in_progress",
        "review",
        lambda task: task.review_rest(note="All is settled.", final=True, submission=1),
    ),
    "restore": ("review", "pending", lambda task: task.restore("pending", 1, actor=ACTOR, note="Back.")),
    "rollback": ("disputed", "in_progress", lambda task: task.rollback(0, actor=ACTOR, note="Wrong way.")),
}
WRONG = [(verb, status) for verb in VERBS for status in Status if status not in MOVES[verb].sources]


def test_every_verb_of_the_table_is_tried() -> None:
    assert set(VERBS) == set(MOVES)


@for_each("verb", VERBS)
def test_a_verb_moves_the_row_and_writes_one_event(verb: str) -> None:
    source, goal, call = VERBS[verb]
    task = task_in(source, round=1)
    call(task)
    moved = row(task)
    assert (moved["status"], moved["version"]) == (goal, 1)
    assert moved["status_at"] > task.created_at
    assert events(task) == [(verb, source, goal)]
    assert (task.status, task.version, task.status_at) == (goal, 1, moved["status_at"])


@for_each("verb", VERBS)
def test_the_event_names_the_round_that_begins(verb: str) -> None:
    source, _, call = VERBS[verb]
    task = task_in(source, round=4)
    call(task)
    assert Event.objects.get(task=task).data["round"] == row(task)["round"]


@for_each("verb", VERBS)
def test_the_copy_in_hand_is_what_the_row_is(verb: str) -> None:
    source, _, call = VERBS[verb]
    task = task_in(source, round=1)
    call(task)
    stored = row(task)
    assert {name: getattr(task, name) for name in stored} == stored


@for_each(("verb", "status"), WRONG)
def test_an_illegal_move_leaves_no_event(verb: str, status: str) -> None:
    task = task_in(status, round=1)
    before = row(task)
    with pytest.raises(IllegalMove) as refusal:
        VERBS[verb][2](task)
    assert row(task) == before
    assert not events(task)
    assert (refusal.value.verb, refusal.value.status) == (verb, status)


@for_each("verb", VERBS)
def test_of_two_copies_the_second_comes_too_late(verb: str) -> None:
    source, goal, call = VERBS[verb]
    task = task_in(source, round=1)
    first, second = Task.objects.get(pk=task.pk), Task.objects.get(pk=task.pk)
    call(first)
    before = row(task)
    with pytest.raises(StaleTask) as refusal:
        call(second)
    assert row(task) == before
    assert len(events(task)) == 1
    assert refusal.value.status_now == goal
    assert (second.status, second.version) == (source, 0)


def test_a_status_that_came_back_is_another_turn() -> None:
    task = create_task(status="in_progress", round=1)
    old = Task.objects.get(pk=task.pk)
    task.submit(actor=ACTOR)
    task.send_back(note="Red.")
    assert row(task)["status"] == old.status
    with pytest.raises(StaleTask):
        old.submit(actor=ACTOR)
    assert [kind for kind, *_ in events(task)] == ["submit", "send_back"]


def test_a_stale_task_says_where_it_is_now() -> None:
    task = create_task(create_project("ledger"), number=7)
    old = Task.objects.get(pk=task.pk)
    task.cancel(actor=ACTOR)
    with pytest.raises(StaleTask, match="^ledger-7 has moved on: it is cancelled now.$"):
        old.start()


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_exactly_one_moves_the_task() -> None:
    task = create_task()
    copies = [Task.objects.get(pk=task.pk) for _ in range(4)]
    together = threading.Barrier(len(copies))

    def start(copy: Task) -> bool:
        together.wait(10)
        try:
            copy.start()
        except StaleTask:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(len(copies)) as pool:
        won = sorted(pool.map(start, copies))
    assert (row(task)["status"], row(task)["version"]) == ("in_progress", 1)
    assert events(task) == [("start", "pending", "in_progress")]
    assert won == [False, False, False, True]


def test_a_chain_of_moves_counts_as_many_turns_as_events() -> None:
    task = create_task()
    task.start()
    for _ in range(3):
        task.submit(actor=ACTOR)
        task.reject(actor=ACTOR)
    task.submit(actor=ACTOR)
    task.approve(create_submission(task), actor=ACTOR)
    assert (row(task)["version"], row(task)["round"], row(task)["rejections"]) == (9, 4, 3)
    assert len(events(task)) == 9


def test_an_event_says_who_and_why() -> None:
    lea = create_user("lea", first_name="Lea", last_name="Lindt")
    task = create_task(status="review", round=2)
    task.reject(actor=Actor.person(lea), note="The retries have no pause.")
    written = Event.objects.get(task=task)
    assert (written.actor_kind, written.user, written.label) == ("person", lea, "Lea Lindt")
    assert (written.project, written.note) == (task.project, "The retries have no pause.")
    assert written.data == {"round": 3}


def test_a_move_that_is_rolled_back_has_no_event() -> None:
    task = create_task()
    with transaction.atomic():
        task.start()
        transaction.set_rollback(True)
    assert row(task)["status"] == "pending"
    assert not events(task)


def test_a_move_rings_once_it_is_committed(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    rung: list[tuple[int, str]] = []
    monkeypatch.setattr("tasks.hooks.ring_loop.function", lambda *words: rung.append(words))
    task = create_task()
    with django_capture_on_commit_callbacks(execute=True):
        task.start()
        assert rung == []
    assert rung == [(task.project_id, "start")]


# --- What each verb does besides --------------------------------------------------------------------------


@for_each(("before", "after"), [(0, 1), (1, 1), (3, 3)])
def test_start_begins_the_first_round_and_no_other(before: int, after: int) -> None:
    task = create_task(round=before, not_before=LATER)
    task.start()
    assert (row(task)["round"], row(task)["not_before"]) == (after, None)


def test_submit_ends_a_rest() -> None:
    task = create_task(status="in_progress", round=1, not_before=LATER)
    task.submit(actor=ACTOR, note="commit abc")
    assert (row(task)["not_before"], row(task)["round"]) == (None, 1)


def test_bounce_is_the_same_round_and_no_rejection() -> None:
    task = create_task(status="review", round=2, rejections=1)
    task.send_back(note="test: red", not_before=LATER)
    moved = row(task)
    assert (moved["round"], moved["rejections"], moved["not_before"]) == (2, 1, LATER)


def test_reject_begins_a_round_and_counts() -> None:
    task = create_task(status="review", round=2, rejections=1)
    task.reject(actor=ACTOR)
    assert (row(task)["round"], row(task)["rejections"]) == (3, 2)


@for_each("verb", ["approve", "ship", "rule_accept"])
def test_what_is_accepted_is_to_be_landed(verb: str) -> None:
    source, _, call = VERBS[verb]
    task = create_task(status=source, round=1)
    submission = create_submission(task)
    call(task)
    assert row(task)["accepted_id"] == submission.pk
    assert list(Task.objects.to_land()) == [task]


def test_approve_names_the_commit_in_its_event() -> None:
    task = create_task(status="review", round=1)
    task.approve(create_submission(task, sha=sha("c")), actor=ACTOR)
    assert Event.objects.get(task=task).data == {"round": 1, "sha": sha("c")}


@for_each(
    "verb",
    ["hold", "stop_for_help", "clash", "rule_revise", "retry", "defer", "cancel", "finish", "rollback"],
)
def test_what_goes_another_way_is_not_landed(verb: str) -> None:
    source, _, call = VERBS[verb]
    task = task_in(source, round=1)
    accepted = create_submission(task)
    Task.objects.filter(pk=task.pk).update(accepted=accepted)
    task.refresh_from_db()
    call(task)
    assert row(task)["accepted_id"] is None


@for_each(
    ("on_failed", "stopped"),
    [("section", [True, False]), ("project", [True, True]), ("continue", [False, False])],
)
def test_a_failed_task_stops_what_the_project_says(on_failed: str, stopped: list[bool]) -> None:
    project = create_project(settings={"on_failed": on_failed})
    own, other = create_section(project), create_section(project)
    elsewhere = create_section()
    task = create_task(section=own, status="review", round=4, rejections=14)
    task.exhaust(actor=ACTOR, note="Exceeded 15 rejections")
    assert (row(task)["status"], row(task)["rejections"], row(task)["round"]) == ("failed", 15, 4)
    found = [Section.objects.get(pk=section.pk).is_stopped for section in (own, other)]
    assert found == stopped
    assert not Section.objects.get(pk=elsewhere.pk).is_stopped


def test_a_failure_that_comes_too_late_stops_nothing() -> None:
    task = create_task(status="review", round=1)
    old = Task.objects.get(pk=task.pk)
    task.approve(create_submission(task), actor=ACTOR)
    with pytest.raises(StaleTask):
        old.exhaust(actor=ACTOR, note="Exceeded")
    assert not Section.objects.get(pk=task.section_id).is_stopped


def test_rollback_begins_the_round_again_and_the_counts_anew() -> None:
    task = create_task(status="failed", round=4, rejections=15)
    Section.objects.filter(pk=task.section_id).update(is_stopped=True)
    task.rollback(2, actor=ACTOR, note="Wrong way since round 3.")
    found = row(task)
    assert (found["status"], found["round"], found["rejections"], found["version"]) == (
        "in_progress",
        3,
        0,
        1,
    )
    assert found["counts_since"] is not None
    assert not Section.objects.get(pk=task.section_id).is_stopped
    assert Event.objects.get(task=task).data == {"round": 3, "to_round": 2}


def test_clash_begins_a_round_and_is_no_rejection() -> None:
    task = completed(rejections=2)
    task.clash(note="CONFLICT in ledger.py")
    moved = row(task)
    assert (moved["round"], moved["rejections"], moved["accepted_id"]) == (2, 2, None)


def test_rule_revise_takes_back_that_it_landed() -> None:
    task = completed(landed_sha=sha("c"), landed_at=timezone.now())
    Task.objects.filter(pk=task.pk).update(status="disputed", round=2)
    task.refresh_from_db()
    task.rule_revise(actor=ACTOR, note="C-1: A", not_before=LATER)
    moved = row(task)
    assert (moved["accepted_id"], moved["landed_sha"], moved["landed_at"]) == (None, "", None)
    assert (moved["round"], moved["not_before"]) == (3, LATER)


def test_a_task_that_a_ruling_sends_back_is_no_longer_finished_by_hand() -> None:
    """Else whoever waits for it goes on once it is approved, before it has landed."""
    task = create_task(status="completed", finished_by="hand")
    task.rule_revise(actor=ACTOR, note="C-1: A", not_before=None)
    assert row(task)["finished_by"] == ""


def test_rule_accept_keeps_that_it_landed() -> None:
    landed: dict[str, Any] = {"landed_sha": sha("c"), "landed_at": timezone.now()}
    task = completed(**landed)
    submission = last(task)
    Task.objects.filter(pk=task.pk).update(status="disputed", round=2)
    task.refresh_from_db()
    task.rule_accept(submission, actor=ACTOR, note="C-1: B", not_before=LATER)
    moved = row(task)
    assert {name: moved[name] for name in landed} == landed
    assert (moved["accepted_id"], moved["round"]) == (submission.pk, 2)


@for_each(("to", "round_"), [("in_progress", 6), ("pending", 5), ("review", 5)])
def test_retry_lets_the_counts_begin_anew(to: str, round_: int) -> None:
    begun = timezone.now()
    task = create_task(status="failed", round=5, rejections=15)
    task.retry(to, actor=ACTOR, note="Again", not_before=LATER)
    moved = row(task)
    assert (moved["status"], moved["round"], moved["rejections"]) == (to, round_, 0)
    assert moved["counts_since"] >= begun
    assert moved["not_before"] == LATER


@for_each("verb", ["retry", "cancel", "finish"])
def test_a_stopped_section_goes_on_once_nothing_in_it_is_failed(verb: str) -> None:
    section = create_section(is_stopped=True)
    elsewhere = create_section(is_stopped=True)
    first, second = (create_task(section=section, status="failed", round=1) for _ in range(2))
    VERBS[verb][2](first)
    assert Section.objects.get(pk=section.pk).is_stopped
    VERBS[verb][2](second)
    assert not Section.objects.get(pk=section.pk).is_stopped
    assert Section.objects.get(pk=elsewhere.pk).is_stopped


@for_each("status", ["completed", "disputed"])
def test_landed_is_a_fact_and_no_move(status: str) -> None:
    task = completed()
    Task.objects.filter(pk=task.pk).update(status=status)
    task.refresh_from_db()
    task.landed(sha("d"))
    stored = row(task)
    assert (stored["landed_sha"], stored["status"], stored["version"]) == (sha("d"), status, 0)
    assert stored["landed_at"] is not None
    assert events(task) == [("landed", status, status)]
    assert Event.objects.get(task=task).data == {"sha": sha("d")}
    assert task.landed_at == stored["landed_at"]
    assert not Task.objects.to_land().exists()


def test_a_task_lands_once() -> None:
    task = completed()
    old = Task.objects.get(pk=task.pk)
    task.landed(sha("d"))
    with pytest.raises(StaleTask):
        old.landed(sha("e"))
    assert row(task)["landed_sha"] == sha("d")
    assert len(events(task)) == 1


@for_each("status", sorted(set(Status) - {Status.COMPLETED, Status.DISPUTED}))
def test_a_task_that_went_another_way_does_not_land(status: str) -> None:
    task = task_in(status, round=1)
    with pytest.raises(StaleTask):
        task.landed(sha("d"))
    assert row(task)["landed_sha"] == ""
    assert not events(task)


def test_a_landed_task_is_not_cancelled() -> None:
    task = completed()
    task.landed(sha("d"))
    with pytest.raises(IllegalMove, match="landed"):
        task.cancel(actor=ACTOR)
    assert row(task)["status"] == "completed"
    assert [kind for kind, *_ in events(task)] == ["landed"]


def test_nor_by_somebody_who_has_not_seen_that_it_landed() -> None:
    task = completed()
    old = Task.objects.get(pk=task.pk)
    task.landed(sha("d"))
    with pytest.raises((IllegalMove, StaleTask)):
        old.cancel(actor=ACTOR)
    assert row(task)["status"] == "completed"


def test_a_task_that_is_being_pushed_is_not_cancelled() -> None:
    task = completed()
    pushing = landing(last(task), status="pushing")
    with pytest.raises(IllegalMove, match="being pushed"):
        task.cancel(actor=ACTOR)
    assert row(task)["status"] == "completed"
    assert not events(task)
    Landing.objects.filter(pk=pushing.pk).update(status="queued")
    task.cancel(actor=ACTOR)
    assert row(task)["accepted_id"] is None


def test_finish_by_hand_says_so_and_lands_nothing() -> None:
    task = create_task(status="in_progress", round=1)
    task.finish(actor=ACTOR, note="Done in the other repository.")
    assert (row(task)["finished_by"], row(task)["accepted_id"]) == ("hand", None)
    assert not Task.objects.to_land().exists()


@for_each("severity", ["critical", "high"])
def test_a_task_with_an_undecided_serious_conflict_is_not_finished_by_hand(severity: str) -> None:
    """DEC-7"""
    task = create_task(status="in_progress", round=1)
    opening.open_conflict(
        task, kind="disagreement", origin="cli", opened_as="coder", question="Whose is it?",
        severity=severity, reviewer_position="Yours.", coder_position="Not mine.",
    )  # fmt: skip
    task.hold(actor=ACTOR, note="C-1")
    with pytest.raises(Exception, match=r"(?i)conflict|dispute"):
        task.finish(actor=ACTOR)


def test_a_finished_task_may_be_taken_back() -> None:
    task = completed()
    task.landed(sha("d"))
    task.reopen(actor=ACTOR, note="It broke the build.")
    moved = row(task)
    assert (moved["status"], moved["round"], moved["accepted_id"]) == ("in_progress", 2, None)
    assert (moved["landed_sha"], moved["landed_at"]) == ("", None)


@for_each("status", ["completed", "cancelled"])
def test_what_was_never_handed_in_begins_from_the_start(status: str) -> None:
    task = task_in(status)
    task.reopen(actor=ACTOR, note="Wanted after all.")
    moved = row(task)
    assert (moved["status"], moved["round"], moved["finished_by"]) == ("pending", 0, "")


@for_each(
    ("handed_in", "open_conflict", "to"),
    [(False, False, "pending"), (True, False, "in_progress"), (True, True, "disputed")],
)
def test_a_deferred_task_goes_on_where_the_facts_say(handed_in: bool, open_conflict: bool, to: str) -> None:
    task = create_task(status="in_progress", round=1)
    if handed_in:
        create_submission(task)
    if open_conflict:
        opening.stop_for_help(task, "blocked", "Who has the key?")
        task.refresh_from_db()
    task.defer(actor=ACTOR, note="Not this month.")
    task.resume(actor=ACTOR, note="Now.")
    assert (row(task)["status"], row(task)["round"]) == (to, 1)
    assert events(task)[-1] == ("resume", "deferred", to)


def test_a_conflict_that_blocks_nothing_keeps_no_task_from_going_on() -> None:
    """Resume by the facts; only an open blocking conflict is a dispute."""
    task = create_task(status="in_progress", round=2)
    create_submission(task)
    conflict = opening.open_conflict(
        task, kind="disagreement", origin="cli", opened_as="coder", question="Whose is it?",
        severity="medium", reviewer_position="Yours.", coder_position="Not mine.",
    )  # fmt: skip
    assert conflict.effect == "ship"
    task.defer(actor=ACTOR)
    task.resume(actor=ACTOR)
    assert row(task)["status"] == "in_progress"


# --- Asking for tasks -------------------------------------------------------------------------------------


def test_the_loop_takes_reviews_first_then_work_under_way_then_new_work() -> None:
    project = create_project()
    ranked = ["pending", "in_progress", "review", "review", "in_progress", "pending"]
    found = [create_task(project, status=status, rank=rank) for rank, status in enumerate(ranked)]
    wanted = [found[index] for index in (2, 3, 1, 4, 0, 5)]
    assert list(Task.objects.startable()) == wanted


def test_only_new_work_waits_for_dependencies() -> None:
    for status in STARTABLE:
        create_task(status=status, waits_for=1)
    found = Task.objects.startable().values_list("status", flat=True)
    assert set(found) == {"in_progress", "review"}


@for_each("status", sorted(set(Status) - STARTABLE))
def test_the_loop_passes_over_every_other_status(status: str) -> None:
    task_in(status)
    assert not Task.objects.startable().exists()


def test_the_loop_passes_over_stopped_sections_and_resting_tasks() -> None:
    create_task(section=create_section(is_stopped=True))
    create_task(not_before=LATER)
    rested = create_task(not_before=timezone.now() - timedelta(seconds=1))
    assert list(Task.objects.startable()) == [rested]


@for_each("verb", sorted(MOVES))
def test_can_asks_the_table_of_moves(verb: str) -> None:
    project = create_project()
    for status in Status:
        task_in(status, project)
    able = {status for status in MOVES[verb].sources if MOVES[verb].targets != {status}}
    assert set(Task.objects.can(verb).values_list("status", flat=True)) == able


def test_a_task_has_the_name_that_people_use() -> None:
    task = create_task(create_project("ledger"), number=214, title="Retry failed calls", status="review")
    assert (task.ref, task.marker, str(task)) == ("ledger-214", "[o]", "ledger-214 Retry failed calls")


def test_the_last_submission_is_the_last_attempt_of_the_last_round() -> None:
    task = create_task(status="in_progress", round=2)
    assert task.last_submission() is None
    create_submission(task, round=2)
    newest = create_submission(task, round=2)
    create_submission(task, round=1)
    assert task.last_submission() == newest


def test_who_has_a_part_may_be_told_by_role(lea: User) -> None:
    project = create_project(members={lea: "maintainer"})
    assert str(Membership.objects.get(project=project)) == f"lea in {project.name}: maintainer"


def test_rows_are_made_at_the_databases_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A web server's clock may be minutes wrong, and events beside the row go by the database's."""
    monkeypatch.setattr(connection, "clock_ahead", timedelta(minutes=5), raising=False)
    own = [
        model
        for model in apps.get_models()
        if model.__module__.startswith(("tasks.", "disputes.", "agents.", "steroidsweb."))
    ]
    made = [
        field
        for model in own
        for field in model._meta.fields
        if isinstance(field, models.DateTimeField) and (field.has_default() or field.auto_now_add)
    ]
    assert len(made) > 30
    wrong = [
        str(field) for field in made
        if abs(field.get_default() - timezone.now() - timedelta(minutes=5)) > timedelta(minutes=1)
    ]  # fmt: skip
    assert wrong == []
