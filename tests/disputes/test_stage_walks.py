"""Random walks through a pipeline: hand-ins, objections, escalations, rulings, undo, rollbacks, landings.

The steps and promises are those of the walks of one stage; beside them stand those of stages.
"""

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from disputes import intake, opening, stage_objections
from disputes.protocol.responses.response import read_response
from tasks.configuration import stages
from tasks.models import Comment, Submission, Task
from tasks.remarks.objections import objections_of
from tasks.states import Status
from tests.disputes import test_walks as walks
from tests.disputes.test_walks import CODER, C, D, F, I, P, R, V, Walk, X, answer, hold, prompt
from tests.factories import create_project, create_section, create_submission, create_task, create_user

pytestmark = pytest.mark.slow

WALKS, SHORTEST, LONGEST = 40, 5, 15
NAMES = ["stories", "tests", "dev", "qa"]
LIMIT = 2


# --- The steps --------------------------------------------------------------------------------------------


def hand_in(walk: Walk) -> None:
    """A coder of the task's stage hands in; which ends what it was objected to."""
    prompt(walk)
    answers = [answer(walk, finding.code) for finding in intake.findings_to_answer(walk.task)]
    read = read_response({"answers": answers, "text": ""})
    known = intake.check_response(walk.task, read)
    submission = create_submission(walk.task, state="kept", stage=walk.task.stage)
    stage_objections.handed_in(walk.task, actor=CODER)
    walk.task.submit(actor=CODER)
    intake.take_answers(submission, read, known, actor=CODER)
    hold(walk)


def send_back(walk: Walk) -> None:
    target = walk.choose(["tests.md", "arch.md"])
    stage_objections.send_back(walk.task, "It is wrong.", target=target, parent=None, actor=CODER)


def disagree(walk: Walk) -> None:
    stage_objections.disagree(walk.task, "It is right.", parent=None, actor=CODER)


def escalate(walk: Walk) -> None:
    reason = walk.choose(["security", "unknown"])
    column = stages.escalation_for(walk.project.config, reason)
    walk.task.escalate(column.name, reason=reason, actor=CODER)


def free(walk: Walk) -> bool:
    return not walk.is_held


OWN: walks.Table = [
    (walks.start, {P}, free, 20),
    (hand_in, {I}, free, 12),
    (send_back, {I}, free, 8),
    (disagree, {I}, lambda walk: free(walk) and bool(walk.task.home_stage), 14),
    (escalate, {I}, lambda walk: free(walk) and not walk.task.escalation, 2),
    (walks.verify, {R}, lambda walk: walk.last["state"] == "kept", 30),
    (walks.review, {R}, lambda walk: walk.last["state"] == "verified" and not walk.is_held, 40),
    (walks.dispute, {I, R, D, C}, lambda walk: not walk.is_over, 2),
    (walks.stop_for_help, {P, I, R}, lambda walk: True, 1),
    (walks.decide, set(Status), lambda walk: bool(walk.open), 16),
    (walks.decide_and_undo, set(Status), lambda walk: bool(walk.open) and not walk.is_over, 6),
    (walks.undo, set(Status), lambda walk: bool(walk.decisions), 5),
    (walks.reopen, set(Status), lambda walk: bool(walk.decisions), 2),
    (walks.land, {C, D}, lambda walk: walk.is_to_land, 10),
    (walks.clash, {C}, lambda walk: walk.is_to_land, 3),
    (walks.defer, {P, I, R, D, F}, lambda walk: True, 1),
    (walks.resume, {V}, lambda walk: True, 10),
    (walks.cancel, {P, I, R, C, D, F, V}, lambda walk: True, 1),
    (walks.take_back, {C, X}, lambda walk: not walk.open, 3),
    (walks.roll_back, {I, R, D, F}, lambda walk: walk.last["round"] > 0, 3),
]


# --- What must hold ---------------------------------------------------------------------------------------


def at_a_place(walk: Walk) -> str:
    """The task is at a stage or in a column; where it goes on afterwards is a stage."""
    task, config = walk.task, walk.project.config
    here = stages.stage_named(config, task.stage)
    if here is None:
        return f"it is at {task.stage}"
    if here.is_escalation != bool(task.escalation):
        return f"it is at {task.stage} and escalated for {task.escalation!r}"
    if here.is_escalation and not stages.position(config, task.home_stage):
        return f"a specialist has it, and it goes on from {task.home_stage!r}"
    if task.home_stage and not here.is_escalation:
        later, now = stages.position(config, task.home_stage), stages.position(config, task.stage)
        if later <= now:
            return f"it was sent back from {task.home_stage} to {task.stage}"
    return ""


def only_the_last_lands(walk: Walk) -> str:
    """What is to be landed, or has, was approved at the last stage."""
    submission = walk.task.accepted
    if submission is None or walk.task.landed_at:
        return ""
    return "" if walk.task.next_stage() is None else f"work of {walk.task.stage} is to be landed"


def nobody_argues_for_ever(walk: Walk) -> str:
    """No thread has more rounds than the limit while agents may go on with it."""
    for objection in objections_of(walk.task):
        if objection.is_open and objection.rounds > LIMIT:
            return f"{objection.rounds} rounds over {objection.root.target}"
    return ""


def one_ruling_a_thread(walk: Walk) -> str:
    """A thread that a human has ruled on is settled, one that waits for the ruling is open."""
    for status, thread in (("decided", "open"), ("open", "resolved")):
        conflicts = {row["pk"] for row in walk.conflicts if row["status"] == status}
        wrong = Comment.objects.filter(conflicts__in=conflicts, status=thread)
        reopened = Comment.objects.filter(conflicts__in={row["pk"] for row in walk.open})
        if status == "decided" and wrong.exclude(pk__in=reopened).exists():
            return "a thread is open although it was ruled on"
        if status == "open" and wrong.exists():
            return "a thread is settled while a human is asked"
    return ""


def stages_are_said(walk: Walk) -> str:
    """Each submission and each conflict names a stage of the project."""
    config = walk.project.config
    named = {*Submission.objects.filter(task=walk.pk).values_list("stage", flat=True)}
    named |= {*opening.Conflict.objects.filter(dispute__task=walk.pk).values_list("stage", flat=True)}
    unknown = [name for name in named if stages.stage_named(config, name) is None]
    return f"unknown stages: {unknown}" if unknown else ""


INVARIANTS = (
    walks.turns, walks.one_ruling, walks.in_dispute, walks.accepted, walks.true_disputes, walks.rounds,
    walks.answerable, at_a_place, only_the_last_lands, nobody_argues_for_ever, one_ruling_a_thread,
    stages_are_said,
)  # fmt: skip


# --- The walks --------------------------------------------------------------------------------------------


@pytest.fixture
def begun(db: None) -> tuple[Task, User]:
    """A task that waits before the first of four stages, and who rules."""
    person = create_user("tom")
    project = create_project(
        "ledger", members={person: "maintainer"},
        settings={"stages": NAMES, "dispute_rounds_to_human": LIMIT, "rejections_max": 4},
    )  # fmt: skip
    task = create_task(section=create_section(project))
    task.start()
    Task.objects.filter(pk=task.pk).update(stage="dev")
    task.refresh_from_db()
    return task, person


def test_whatever_happens_in_a_pipeline_in_whatever_order(begun: tuple[Task, User]) -> None:
    seen = set()
    for seed in range(WALKS):
        with transaction.atomic():
            walk = Walk(*begun, seed)
            for _ in range(SHORTEST + seed * (LONGEST - SHORTEST) // WALKS):
                walks.take(walk, OWN)
                for invariant in INVARIANTS:
                    broken = invariant(walk)
                    assert not broken, "\n".join([f"{invariant.__name__}: {broken}, after", *walk.done])
            seen |= {kind for kind, *_ in walk.moves}
            transaction.set_rollback(True)
    assert {"advance", "backflow", "forward", "escalate", "stop_for_help", "rule_revise"} <= seen
