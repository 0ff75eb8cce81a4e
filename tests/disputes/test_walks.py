"""Random walks over hand-ins, reviews, rulings, undo and landings: what must hold after every step.

A walk is one task's life through the verbs, the intake and the rulings, without any process. Two other tasks
wait for it: one for the task, one for its section.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q

from disputes import cases, followup, intake, rulings
from disputes.models import Conflict, Decision, Dispute
from disputes.protocol.responses import read_response
from disputes.protocol.reviews import read_review
from tasks.dependencies import recount
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Dependency, Event, Finding, Project, StaleTask, Submission, Task
from tasks.states import MOVES, IllegalMove, Status
from tests.factories import create_project, create_section, create_submission, create_task, create_user

CODER, REVIEWER = Actor("run", "coder-1"), Actor("run", "reviewer-1")
WALKS, STEPS = 200, 10
OPTIONS = {
    "disagreement": ["uphold_reviewer", "uphold_coder", "other"],
    "hands": ["retry", "defer", "cancel"],
}
REFUSALS = (Refused, IllegalMove, StaleTask)


class Walk:
    """One task, the person who rules, the rows as they are now, and what was done so far."""

    def __init__(self, task: Task, person: User, seed: int = 0) -> None:
        self.pk, self.person, self.chance = task.pk, person, Random(seed)
        self.done = [f"walk {seed}"]
        self.moves: list[tuple[str, str, str]] = []
        self.seen = 0
        self.look()

    def choose(self, among: Sequence[Any]) -> Any:
        return self.chance.choice(among)

    def look(self) -> None:
        """Read the rows once for all that is asked about them."""
        self.task = Task.objects.select_related("project", "section", "accepted").get(pk=self.pk)
        mine = Q(dispute__task=self.pk)
        conflicts = Conflict.objects.filter(mine).order_by("pk")
        self.conflicts = list(conflicts.values_list("pk", "dispute", "kind", "status", "effect", "finding"))
        decisions = Decision.objects.standing().filter(conflict__dispute__task=self.pk).order_by("pk")
        self.decisions = list(decisions.values_list("pk", "conflict"))
        self.disputes = list(Dispute.objects.filter(task=self.pk).order_by().values_list("pk", "status"))
        submissions = Submission.objects.filter(task=self.pk).order_by("-pk")
        self.last = submissions.values_list("pk", "round", "state").first() or (0, 0, "")
        events = Event.objects.filter(pk__gt=self.seen).order_by("pk")
        for pk, *move in events.values_list("pk", "kind", "from_status", "to_status"):
            self.seen = pk
            if move[0] in MOVES:
                self.moves.append((move[0], move[1], move[2]))
        others = Task.objects.exclude(pk=self.pk).order_by()
        self.others = list(others.values_list("title", "status", "waits_for"))

    @property
    def open(self) -> list[Any]:
        """The undecided conflicts."""
        return [row for row in self.conflicts if row[3] == "open"]

    @property
    def is_held(self) -> bool:
        """The loop starts nothing and lands nothing while a conflict that holds is open."""
        return any(row[4] == "hold" for row in self.open)

    @property
    def submission(self) -> Submission:
        return Submission.objects.get(pk=self.last[0])

    def decision(self) -> Decision:
        return Decision.objects.get(pk=self.choose(self.decisions)[0])


# --- The steps --------------------------------------------------------------------------------------------


def prompt(walk: Walk) -> None:
    """An agent reads its prompt."""
    rulings.mark_used(rulings.rulings_for_prompt(walk.task), 7)


def hand_in(walk: Walk) -> None:
    """A coder reads its prompt and hands in; it answers each finding, or declines it."""
    task = walk.task
    prompt(walk)
    answers = [
        {"finding": finding.code, "kind": "addressed", "text": "Done."}
        if walk.choose(["addressed", "addressed", "declined"]) == "addressed"
        else {"finding": finding.code, "kind": "declined", "text": "No.", "rationale": "It is documented."}
        for finding in intake.findings_to_answer(task)
    ]
    read = read_response({"answers": answers})
    known = intake.check_response(task, read)
    touched = walk.choose([["src/calls.py"], []])
    submission = create_submission(task, state="kept", diff_stat={"since_base": touched})
    task.submit(actor=CODER)
    intake.take_submission(submission, read, known, actor=CODER)
    if any(conflict.effect == "hold" for conflict in cases.open_conflicts(task)):
        task.hold(actor=CODER, note="held")


def verify(walk: Walk) -> None:
    """Build and tests have run."""
    green = walk.choose([True, True, False])
    Submission.objects.filter(pk=walk.last[0]).update(state="verified" if green else "red")
    if not green:
        walk.task.bounce(note="Red.")


def review(walk: Walk) -> None:
    """A reviewer raises new points, raises old ones again, or none, and approves or rejects."""
    prompt(walk)
    old = list(Finding.objects.filter(task=walk.task, mandatory=True).order_by("pk"))
    new = [{"title": "Again", "severity": word, "location": "src/calls.py:1"} for word in ("high", "low")]
    again = [{"code": f.code, "title": f.title, "severity": f.severity} for f in old[-3:]]
    findings = [one for one in new + again if walk.choose([False, False, False, True])]
    approves = walk.choose([True, False]) or not findings
    submission = walk.last()
    assert submission is not None
    intake.take_review(submission, read_review({"findings": findings}), approves=approves, actor=REVIEWER)


def dispute(walk: Walk) -> None:
    """Somebody puts the task before a human."""
    side = walk.choose(["coder", "reviewer", "human"])
    severity = walk.choose(["high", "medium", "low"])
    conflict = cases.open_conflict(
        walk.task, kind="disagreement", origin="cli", opened_as=side, question="Whose is it?",
        severity=severity, submission=walk.last(), reviewer_position="Yours.", coder_position="Not mine.",
    )  # fmt: skip
    if conflict.effect == "hold" and walk.task.status in MOVES["hold"].sources:
        walk.task.hold(actor=CODER, note=conflict.question)


def park(walk: Walk) -> None:
    cases.park(walk.task, "blocked", "Who has the key?")


def decide(walk: Walk) -> None:
    """A human rules on one of the open conflicts."""
    conflict = walk.choose(walk.conflicts(status="open"))
    option = walk.choose(OPTIONS[conflict.kind])
    changes = walk.choose([True, False]) if option == "other" else None
    rulings.decide(
        conflict, option, user=walk.person, text="So be it.", expects_change=changes, undo_seconds=0
    )


def undo(walk: Walk) -> None:
    rulings.undo(walk.choose(walk.decisions()), user=walk.person)


def reopen(walk: Walk) -> None:
    rulings.reopen(walk.choose(walk.decisions()), user=walk.person, reason="It was wrong.")


def land(walk: Walk) -> None:
    """What is accepted is proven to be on the target branch."""
    submission = walk.task.accepted
    assert submission is not None
    walk.task.landed(submission.sha)


def clash(walk: Walk) -> None:
    walk.task.clash(note="It no longer applies.")


def sweep(walk: Walk) -> None:
    followup.sweep()


def verb(name: str, **kwargs: Any) -> Callable[[Walk], None]:
    def step(walk: Walk) -> None:
        getattr(walk.task, name)(actor=walk.actor, **kwargs)

    return step


def is_open(walk: Walk) -> bool:
    return bool(walk.conflicts(status="open"))


def to_land(walk: Walk) -> bool:
    return walk.task.accepted_id is not None and walk.task.landed_at is None


P, I, R, C, D, F, V, X = Status  # noqa: E741  (in the order of the table)
I, R, C, D, F, V, X = (  # noqa: E741
    Status.IN_PROGRESS, Status.REVIEW, Status.COMPLETED, Status.DISPUTED, Status.FAILED, Status.DEFERRED,
    Status.CANCELLED,
)  # fmt: skip
# The step, the statuses that it is tried from, what else it needs, and how often it is tried.
Needs = Callable[[Walk], bool]
STEPS_OF: dict[str, tuple[Callable[[Walk], None], set[Status], Needs, int]] = {
    "start": (lambda walk: walk.task.start(), {P}, lambda walk: True, 4),
    "hand_in": (hand_in, {I}, lambda walk: not held(walk), 6),
    "verify": (verify, {R}, lambda walk: state(walk) == "kept", 6),
    "review": (review, {R}, lambda walk: state(walk) == "verified", 6),
    "dispute": (dispute, {I, R, D, C}, lambda walk: True, 1),
    "park": (park, {P, I, R}, lambda walk: True, 1),
    "prompt": (prompt, {I, R}, lambda walk: True, 1),
    "decide": (decide, set(Status), is_open, 6),
    "undo": (undo, set(Status), lambda walk: bool(walk.decisions()), 3),
    "reopen": (reopen, set(Status), lambda walk: bool(walk.decisions()), 1),
    "land": (land, {C, D}, to_land, 3),
    "clash": (clash, {C}, to_land, 1),
    "defer": (verb("defer"), {P, I, R, D, F}, lambda walk: True, 1),
    "resume": (verb("resume"), {V}, lambda walk: True, 3),
    "cancel": (verb("cancel"), {P, I, R, C, D, F, V}, lambda walk: True, 1),
    "finish": (verb("finish"), {P, I, R, V}, lambda walk: True, 1),
    "take_back": (verb("reopen", note="Wanted after all."), {C, X}, lambda walk: True, 1),
    "sweep": (sweep, set(Status), lambda walk: True, 1),
}


def held(walk: Walk) -> bool:
    """The loop starts no run on a task with an open conflict that holds."""
    return any(conflict.effect == "hold" for conflict in cases.open_conflicts(walk.task))


def state(walk: Walk) -> str:
    last = walk.last()
    return last.state if last else ""


def possible(walk: Walk) -> list[str]:
    """The steps that may be tried now, the frequent ones several times."""
    status = Status(walk.task.status)
    found = []
    for name, (_, sources, needs, weight) in STEPS_OF.items():
        if status in sources and name not in walk.avoid and needs(walk):
            found += [name] * weight
    return found


def take(walk: Walk) -> None:
    """One step, or a refusal that changes nothing."""
    walk.task = Task.objects.select_related("project", "section", "accepted").get(pk=walk.task.pk)
    name = walk.choose(possible(walk))
    walk.done.append(f"{walk.task.status}: {name}")
    events = Event.objects.count()
    try:
        with transaction.atomic():
            STEPS_OF[name][0](walk)
    except REFUSALS as refusal:
        walk.done[-1] += f" ({refusal})"
        assert Event.objects.count() == events
    walk.task = Task.objects.select_related("project", "section", "accepted").get(pk=walk.task.pk)


# --- What must hold ---------------------------------------------------------------------------------------


def turns(walk: Walk) -> str:
    """Each move is one event and one turn, legal, and starts where the one before ended."""
    moves = list(
        Event.objects.filter(task=walk.task, kind__in=MOVES)
        .order_by("pk")
        .values_list("kind", "from_status", "to_status")
    )
    if len(moves) != walk.task.version:
        return f"{len(moves)} events for {walk.task.version} turns"
    for kind, old, new in moves:
        if old not in MOVES[kind].sources or new not in MOVES[kind].targets:
            return f"{kind} led from {old} to {new}"
    if any(before[2] != after[1] for before, after in pairwise(moves)):
        return f"a move is missing: {moves}"
    return "" if moves[-1][2] == walk.task.status else f"the last move led to {moves[-1][2]}"


def one_ruling(walk: Walk) -> str:
    """A decided conflict has one standing decision, any other none."""
    for conflict in Conflict.objects.annotate(
        standing=Count("decisions", filter=Q(decisions__revoked_at__isnull=True))
    ):
        if conflict.standing != (conflict.status == "decided"):
            return f"{conflict.ref} is {conflict.status} with {conflict.standing} standing decisions"
    return ""


def is_over(task: Task) -> bool:
    """It was ended by hand; its conflicts are moot from the next sweep on."""
    return task.status == X or (task.status == C and bool(task.finished_by))


def in_dispute(walk: Walk) -> str:
    """A conflict that blocks keeps the task from the loop; a task that waits for a human has a card."""
    blocks, waits, task = held(walk), is_open(walk), walk.task
    if blocks and task.status not in {D, F, V} and not is_over(task):
        return f"it is {task.status} although an open conflict holds it"
    if task.status in {D, F} and not waits:
        return f"it is {task.status} and nobody is asked"
    return ""


def accepted(walk: Walk) -> str:
    """What is to be landed, or has, is green and reviewed; what blocks it was settled or shipped."""
    task, submission = walk.task, walk.task.accepted
    if submission is None:
        return ""
    if task.status not in {C, D}:
        return f"it is {task.status}, and a commit is to be landed"
    last = submission.reviews.order_by("-pk").first()
    if submission.state != "verified" or last is None:
        return f"a commit that is {submission.state} and has the review {last} is to be landed"
    if submission != walk.last():
        return "an older commit than the last one is to be landed"
    settled = set(intake.settled_findings(task))
    shipped = {conflict.finding for conflict in cases.open_conflicts(task) if conflict.effect == "ship"}
    open_ = [
        finding.code
        for finding in last.findings.select_related("first")
        if finding.mandatory and finding.origin.pk not in settled | shipped
    ]
    return f"{open_} are neither settled nor shipped, and the commit is to be landed" if open_ else ""


def waiting(walk: Walk) -> str:
    """Who waits for the task waits exactly as long as the facts say."""
    task = walk.task
    satisfied = task.landed_at is not None or is_over(task)
    for other in Task.objects.exclude(pk=task.pk):
        if other.status == "pending" and other.waits_for != (not satisfied):
            return f"{other.title} waits for {other.waits_for} while the task is {task.status}"
    return ""


def true_disputes(walk: Walk) -> str:
    """A dispute is open as long as one of its conflicts, and there is one that is not closed."""
    live = 0
    for dispute in Dispute.objects.prefetch_related("conflicts"):
        conflicts = list(dispute.conflicts.all())
        is_waiting = any(conflict.status == "open" for conflict in conflicts)
        if is_waiting != (dispute.status == "open"):
            return f"{dispute.ref} is {dispute.status}: {[conflict.status for conflict in conflicts]}"
        live += dispute.status != "closed"
    return f"{live} disputes of one task" if live > 1 else ""


def rounds(walk: Walk) -> str:
    """No submission is of a round that has not begun."""
    last = walk.last()
    return (
        f"round {walk.task.round}, submission of {last.round}"
        if last and last.round > walk.task.round
        else ""
    )


INVARIANTS = (turns, one_ruling, in_dispute, accepted, waiting, true_disputes, rounds)


def check(walk: Walk) -> None:
    for invariant in INVARIANTS:
        broken = invariant(walk)
        assert not broken, "\n".join([f"{invariant.__name__}: {broken}, after", *walk.done])


# --- The walks --------------------------------------------------------------------------------------------


@pytest.fixture
def start(db: None) -> Walk:
    """A task in its second round with two findings to answer, one of MEDIUM severity."""
    person = create_user("tom")
    policy = {"mandatory": ["critical", "high", "medium"], "rejections_max": 4}
    project: Project = create_project("ledger", members={person: "maintainer"}, settings=policy)
    own, other = create_section(project), create_section(project)
    other.depends_on.add(own)
    task = create_task(section=own)
    by_task, by_section = create_task(section=create_section(project)), create_task(section=other)
    Dependency.objects.create(task=by_task, on=task)
    recount([by_task, by_section])
    task.start()
    submission = create_submission(task)
    task.submit(actor=CODER)
    raised = [
        {"title": "No pause", "severity": word, "location": "src/calls.py:12"} for word in ("high", "medium")
    ]
    intake.take_review(submission, read_review({"findings": raised}), approves=False, actor=REVIEWER)
    return Walk(Task.objects.select_related("project", "section").get(pk=task.pk), person)


def walk_on(start: Walk, seed: int, avoid: frozenset[str] = frozenset()) -> None:
    """One walk, rolled back at its end. Later ones are longer, so that the first failure is a short one."""
    walk = Walk(start.task, start.person, Random(seed), avoid, [f"walk {seed}"])
    with transaction.atomic():
        for _ in range(4 + seed * STEPS // WALKS):
            take(walk)
            check(walk)
        transaction.set_rollback(True)


def test_whatever_happens_in_whatever_order(start: Walk) -> None:
    for seed in range(WALKS):
        walk_on(start, seed)
