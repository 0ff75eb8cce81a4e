"""Random walks over hand-ins, reviews, rulings, undo and landings: what must hold after every step.

A walk is one task's life through the verbs, the intake and the rulings, without any process. Two other tasks
wait for it: one for the task, one for its section.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from disputes import followup, intake, opening, rulings
from disputes.closed_findings import settled_findings
from disputes.completion import rollbacks, stuck
from disputes.models import Conflict, Decision, Flag, HeuristicScore
from disputes.protocol.responses.response import read_response
from disputes.protocol.reviews.review import read_review
from disputes.protocol.silence.suspicion import Suspicion
from disputes.silence import detection, flags
from tasks.dependencies import recount
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Dependency, Event, Finding, Project, StaleTask, Submission, Task
from tasks.snapshots import STORED
from tasks.states import MOVES, IllegalMove, Status
from tests.disputes.prompt_lines import told
from tests.factories import create_project, create_section, create_submission, create_task, create_user

CODER, REVIEWER = Actor("run", "coder-1"), Actor("run", "reviewer-1")
WALKS, SHORTEST, LONGEST = 120, 4, 9  # longer ones find more, and cost more than a test may
OPTIONS = {
    "disagreement": ["uphold_reviewer", "uphold_coder", "compromise", "other"],
    "help": ["retry", "retry", "defer", "cancel"],
    "silence": ["ask", "ask", "ask_disagree", "convert", "waive", "false_positive"],
    "alert": ["accept", "reduce", "reduce", "check_review", "clarify"],
}
HINTS = {"silence", "alert"}
P, I, R, C, D, F, V, X = (  # noqa: E741
    Status.PENDING, Status.IN_PROGRESS, Status.REVIEW, Status.COMPLETED, Status.DISPUTED, Status.FAILED,
    Status.DEFERRED, Status.CANCELLED,
)  # fmt: skip

pytestmark = pytest.mark.slow


class Walk:
    """One task, the person who rules, the rows as they are now, and what was done so far."""

    def __init__(self, begun: Task, person: User, seed: int) -> None:
        self.pk, self.person, self.chance = begun.pk, person, Random(seed)
        self.project, self.section = begun.project, begun.section
        self.done = [f"walk {seed}"]
        self.moves: list[tuple[str, str, str]] = []
        self.refused = ""
        self.seen = 0
        self.look()

    def choose(self, among: Sequence[Any]) -> Any:
        return self.chance.choice(among)

    def look(self) -> None:
        """Read the rows once for all that is asked about them."""
        self.task = Task.objects.get(pk=self.pk)
        self.task.project, self.task.section = self.project, self.section
        conflicts = Conflict.objects.filter(dispute__task=self.pk).order_by("pk")
        self.conflicts = list(
            conflicts.values("pk", "dispute", "dispute__status", "status", "effect", "finding", "kind")
        )
        decisions = Decision.objects.standing().filter(conflict__dispute__task=self.pk).order_by("pk")
        self.decisions = list(
            decisions.values("pk", "conflict", "option", "at", "conflict__finding", "conflict__followed")
        )
        on = Flag.objects.filter(submission__task=self.pk).order_by("pk")
        self.flags = list(on.values("pk", "status", "finding", "conflict", "conflict__status"))
        archived = Decision.objects.filter(conflict__dispute__task=self.pk, archived_by__isnull=False)
        self.archived = list(archived.order_by("pk").values_list("pk", flat=True))
        submissions = Submission.objects.standing().filter(task=self.pk).order_by("-round", "-attempt")
        self.last = submissions.values("pk", "round", "state").first() or {"round": 0, "state": ""}
        events = Event.objects.filter(task=self.pk, pk__gt=self.seen).order_by("pk")
        for pk, kind, old, new in events.values_list("pk", "kind", "from_status", "to_status"):
            self.seen = pk
            if kind in MOVES:
                self.moves.append((kind, old, new))
        others = Task.objects.exclude(pk=self.pk).order_by()
        self.others = list(others.values("title", "status", "waits_for"))

    @property
    def open(self) -> list[dict[str, Any]]:
        """The undecided conflicts."""
        return [row for row in self.conflicts if row["status"] == "open"]

    @property
    def is_held(self) -> bool:
        """The loop starts nothing and lands nothing while a conflict that holds is open."""
        return any(row["effect"] == "hold" for row in self.open)

    @property
    def is_over(self) -> bool:
        """It was ended by hand; its conflicts are moot from the next sweep on."""
        return self.task.status == X or (self.task.status == C and bool(self.task.finished_by))

    @property
    def is_to_land(self) -> bool:
        return self.task.accepted_id is not None and self.task.landed_at is None and not self.is_held

    def submission(self) -> Submission:
        return Submission.objects.get(pk=self.last["pk"])

    def decision(self) -> Decision:
        """One that stands."""
        return Decision.objects.get(pk=self.choose(self.decisions)["pk"])


# --- The steps --------------------------------------------------------------------------------------------


def start(walk: Walk) -> None:
    walk.task.start()


def prompt(walk: Walk) -> None:
    """An agent reads its prompt."""
    rulings.mark_used(rulings.rulings_for_prompt(walk.task), 7)


def answer(walk: Walk, code: str) -> dict[str, str]:
    """Done, declined with a reason, or beyond what the coder can do."""
    kind = walk.choose(["addressed"] * 6 + ["declined"] * 3 + ["partly"])
    words = {"addressed": "Done.", "declined": "No.", "partly": "Partly: I have no access to the server."}
    return {"finding": code, "kind": kind, "text": words[kind], "rationale": "It is so."}


def diff_of(path: str, line: int = 12) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -{line} +{line} @@\n-old\n+new\n"


def hand_in(walk: Walk) -> None:
    """A coder reads its prompt and hands in; it answers each finding. The host sees what it changed."""
    prompt(walk)
    answers = [answer(walk, finding.code) for finding in intake.findings_to_answer(walk.task)]
    text = walk.choose(["", "## Justification\n\nThe specification says so."])
    read = read_response({"answers": answers, "text": text})
    known = intake.check_response(walk.task, read)
    changed = walk.choose(["", diff_of("README.md"), diff_of("src/calls.py")])
    submission = create_submission(
        walk.task, state="kept", response=text, since_last_round=changed,
        diff_stat={"since_base": ["src/calls.py"] if changed else []},
    )  # fmt: skip
    walk.task.submit(actor=CODER)
    intake.take_answers(submission, read, known, actor=CODER)
    hold(walk)
    if walk.choose([True, False]):
        detection.look_for_silence(submission)


def hold(walk: Walk) -> None:
    """What is open and holds takes the task out of the loop."""
    task = Task.objects.get(pk=walk.pk)
    if task.status in MOVES["hold"].sources and any(c.effect == "hold" for c in opening.open_conflicts(task)):
        task.hold(actor=CODER, note="held")


def pass_over(walk: Walk) -> None:
    """The heuristics suspect something about the last submission."""
    conflicts = Conflict.objects.filter(dispute__task=walk.pk, kind="disagreement", status="decided")
    ruled = set(conflicts.filter(followed="waiting").values_list("finding", flat=True))
    settled = {*settled_findings(walk.task), *ruled}
    findings = Finding.objects.standing().filter(task=walk.pk).select_related("first").order_by("pk")
    free = [finding for finding in findings if finding.origin.pk not in settled]
    if not free:
        return
    finding = walk.choose(free)
    level = walk.choose(["log", "warn", "review", "block", "systematic"])
    found = Suspicion(finding.code, 1, finding.severity, ("H1",), "high", level, ("nothing names it",))
    flags.raise_flags(walk.submission(), [(finding, found)])
    hold(walk)


def look_again(walk: Walk) -> None:
    """The host has read the code at the places of the last review."""
    last = next(iter(intake.last_reviews(walk.task)[-1:]), None)
    if last is None:
        return
    for finding in last.findings.all():
        Finding.objects.filter(pk=finding.pk).update(excerpt=walk.choose(["wait(1)", "wait(2)"]))
    stuck.look_again(last)


def verify(walk: Walk) -> None:
    """Build and tests have run."""
    green = walk.choose([True, True, True, False])
    Submission.objects.filter(pk=walk.last["pk"]).update(state="verified" if green else "red")
    if not green:
        walk.task.send_back(note="Red.")


def review(walk: Walk) -> None:
    """A reviewer raises new points, raises old ones again, or none, and approves or rejects."""
    prompt(walk)
    old = Finding.objects.filter(task=walk.pk).order_by("-pk").values("code", "title", "severity")[:3]
    new = [{"title": "Again", "severity": word, "location": "src/calls.py:1"} for word in ("high", "low")]
    findings = [one for one in [*new, *old] if walk.choose([False, False, False, True])]
    approves = walk.choose([True, False]) or not findings
    read = read_review({"findings": findings})
    intake.take_review(walk.submission(), read, approves=approves, actor=REVIEWER)


def dispute(walk: Walk) -> None:
    """Somebody puts the task before a human."""
    conflict = opening.open_conflict(
        walk.task, kind="disagreement", origin="cli", opened_as=walk.choose(["coder", "reviewer", "human"]),
        question="Whose is it?", severity=walk.choose(["high", "medium", "low"]),
        submission=walk.task.last_submission(), reviewer_position="Yours.", coder_position="Not mine.",
    )  # fmt: skip
    if conflict.status == "open" and walk.task.status in MOVES["hold"].sources:
        walk.task.hold(actor=CODER, note=conflict.question)


def stop_for_help(walk: Walk) -> None:
    opening.stop_for_help(walk.task, "blocked", "Who has the key?")


def decide(walk: Walk) -> Decision:
    """A human rules on one of the open conflicts."""
    conflict = Conflict.objects.get(pk=walk.choose(walk.open)["pk"])
    option = walk.choose(OPTIONS[conflict.kind])
    changes = walk.choose([True, False]) if option in {"compromise", "other"} else None
    walk.done[-1] += f" ({conflict.kind}: {option})"
    decision = rulings.decide(
        conflict, option, user=walk.person, text="So be it.", expects_change=changes, undo_seconds=0
    )
    after = Task.objects.get(pk=walk.pk)
    is_moved = (after.status, after.version) != (walk.task.status, walk.task.version)
    assert not (is_moved and conflict.kind in HINTS and walk.task.landed_at), "\n".join(walk.done)
    return decision


def rows(walk: Walk) -> dict[str, Any]:
    """What a ruling may change, and undo puts back."""
    conflicts = Conflict.objects.filter(pk__in=[row["pk"] for row in walk.conflicts]).order_by("pk")
    return {
        "task": Task.objects.filter(pk=walk.pk).values(*STORED.values()).get(),
        "conflicts": list(conflicts.values_list("pk", "status", "followed", "dispute__status")),
        "new": Conflict.objects.exclude(pk__in=conflicts)
        .filter(dispute__task=walk.pk, status="open")
        .count(),
        "flags": list(Flag.objects.order_by("pk").values_list("pk", "status", "conflict")),
        "scores": [row for row in HeuristicScore.objects.values_list("confirmed", "refused") if any(row)],
    }


def decide_and_undo(walk: Walk) -> None:
    """A slip of the hand: everything is as it was."""
    before = rows(walk)
    rulings.undo(decide(walk), user=walk.person)
    after = rows(walk)
    changed = {name: (before[name], after[name]) for name in before if before[name] != after[name]}
    assert not changed, "\n".join([f"undo left {changed}", *walk.done])


def undo(walk: Walk) -> None:
    rulings.undo(walk.decision(), user=walk.person)


def reopen(walk: Walk) -> None:
    rulings.reopen(walk.decision(), user=walk.person, reason="It was wrong.")


def land(walk: Walk) -> None:
    """What is accepted is proven to be on the target branch."""
    assert walk.task.accepted is not None
    walk.task.landed(walk.task.accepted.sha)


def clash(walk: Walk) -> None:
    walk.task.clash(note="It no longer applies.")


def defer(walk: Walk) -> None:
    walk.task.defer(actor=Actor.person(walk.person))


def resume(walk: Walk) -> None:
    walk.task.resume(actor=Actor.person(walk.person))


def cancel(walk: Walk) -> None:
    walk.task.cancel(actor=Actor.person(walk.person))
    followup.sweep()


def finish(walk: Walk) -> None:
    walk.task.finish(actor=Actor.person(walk.person))
    followup.sweep()


def take_back(walk: Walk) -> None:
    followup.sweep()
    walk.task.reopen(actor=Actor.person(walk.person), note="Wanted after all.")


def sweep(walk: Walk) -> None:
    followup.sweep()


def roll_back(walk: Walk) -> None:
    """A maintainer takes rounds back."""
    to_round = walk.choose(rollbacks.choices(walk.task))
    rollbacks.roll_back(walk.task, to_round, user=walk.person, reason="It went the wrong way.")


def reapply(walk: Walk) -> None:
    """A ruling of a round that was taken back is made again."""
    rollbacks.reapply(Decision.objects.get(pk=walk.choose(walk.archived)), user=walk.person)


# The step, the statuses that it is tried from, what else it needs, and how often it is tried.
Table = list[tuple[Callable[[Walk], None], set[Status], Callable[[Walk], bool], int]]
TABLE: Table = [
    (start, {P}, lambda walk: not walk.is_held, 20),
    (hand_in, {I}, lambda walk: not walk.is_held, 20),
    (verify, {R}, lambda walk: walk.last["state"] == "kept", 30),
    (review, {R}, lambda walk: walk.last["state"] == "verified" and not walk.is_held, 30),
    (dispute, {I, R, D, C}, lambda walk: not walk.is_over, 3),
    (stop_for_help, {P, I, R}, lambda walk: True, 2),
    (prompt, {I, R}, lambda walk: not walk.is_held, 1),
    (pass_over, {I, R, D, C}, lambda walk: bool(walk.last.get("pk")) and not walk.is_over, 8),
    (look_again, {I}, lambda walk: not walk.is_held and bool(walk.last.get("pk")), 4),
    (decide, set(Status), lambda walk: bool(walk.open), 16),
    (decide_and_undo, set(Status), lambda walk: bool(walk.open) and not walk.is_over, 8),
    (undo, set(Status), lambda walk: bool(walk.decisions), 6),
    (reopen, set(Status), lambda walk: bool(walk.decisions), 3),
    (land, {C, D}, lambda walk: walk.is_to_land, 10),
    (clash, {C}, lambda walk: walk.is_to_land, 3),
    (defer, {P, I, R, D, F}, lambda walk: True, 1),
    (resume, {V}, lambda walk: True, 10),
    (cancel, {P, I, R, C, D, F, V}, lambda walk: True, 1),
    (finish, {P, I, R, D, F, V}, lambda walk: True, 1),
    (take_back, {C, X}, lambda walk: not walk.open, 3),
    (sweep, set(Status), lambda walk: True, 1),
    (roll_back, {I, R, D, F}, lambda walk: walk.last["round"] > 0, 4),
    (reapply, {I, R, D, F}, lambda walk: bool(walk.archived), 6),
]


def take(walk: Walk, table: Table) -> None:
    """One step, or a refusal that changes nothing."""
    can = [
        (step, weight)
        for step, sources, needs, weight in table
        if walk.task.status in sources and needs(walk)
    ]
    step = walk.chance.choices(*zip(*can, strict=True))[0]
    walk.done.append(f"{walk.task.status} {walk.task.stage}: {step.__name__}")
    walk.refused = ""
    try:
        with transaction.atomic():
            step(walk)
    except (Refused, IllegalMove, StaleTask) as refusal:
        walk.done[-1] += f" (refused: {refusal})"
        walk.refused = refusal.code if isinstance(refusal, Refused) else type(refusal).__name__
    walk.look()


# --- What must hold ---------------------------------------------------------------------------------------


def turns(walk: Walk) -> str:
    """Each move is one event and one turn, legal, and starts where the one before ended."""
    if len(walk.moves) != walk.task.version:
        return f"{len(walk.moves)} events for {walk.task.version} turns"
    for kind, old, new in walk.moves:
        if old not in MOVES[kind].sources or new not in MOVES[kind].targets:
            return f"{kind} led from {old} to {new}"
    if any(before[2] != after[1] for before, after in pairwise(walk.moves)):
        return f"a move is missing: {walk.moves}"
    return "" if walk.moves[-1][2] == walk.task.status else f"the last move led to {walk.moves[-1][2]}"


def one_ruling(walk: Walk) -> str:
    """A decided conflict has one standing decision, any other none."""
    ruled = sorted(row["conflict"] for row in walk.decisions)
    decided = [row["pk"] for row in walk.conflicts if row["status"] == "decided"]
    return "" if ruled == decided else f"conflicts {decided} are decided, decisions stand on {ruled}"


def in_dispute(walk: Walk) -> str:
    """A task under way has no open conflict that blocks it, and one that waits for a human has a card."""
    status = walk.task.status
    if walk.is_held and status in {P, I, R}:
        return f"it is {status} although an open conflict holds it"
    if status in {D, F} and not any(row["effect"] in {"hold", "ship"} for row in walk.open):
        return f"it is {status} and nobody is asked"
    return ""


def ruled(walk: Walk) -> str:
    """An open card can be ruled on, and a ruling taken back at once."""
    step = walk.done[-1]
    if "decide" in step and walk.refused == "not_open":
        return "a human could not rule on an open card"
    if "decide_and_undo" in step and walk.refused in {"moved_on", "already_open", "used"}:
        return "a ruling could not be taken back at once"
    return ""


def flags_and_cards(walk: Walk) -> str:
    """A flag that nobody has dealt with has its card where its level asks, and an open card its flags."""
    opened = {row["pk"] for row in walk.open if row["kind"] == "silence"}
    for flag in walk.flags:
        if flag["status"] == "open" and flag["conflict"] and flag["conflict"] not in opened:
            return f"a flag is open on a card that is {flag['conflict__status']}"
    if bare := opened - {flag["conflict"] for flag in walk.flags if flag["status"] == "open"}:
        return f"the cards {bare} stand without an open flag"
    points = [row["finding"] for row in walk.open if row["finding"]]
    return f"two open cards on one point: {walk.open}" if len(points) != len(set(points)) else ""


def waived(walk: Walk) -> str:
    """What a human waived does not come back as mandatory."""
    for row in walk.decisions:
        if row["option"] == "waive" and row["conflict__followed"] != "reopened":
            point = row["conflict__finding"]
            later = Finding.objects.standing().filter(first=point, review__at__gt=row["at"], mandatory=True)
            if point in settled_findings(walk.task) and later.exists():
                return f"{later[0]} was waived"
            if later.exists() and not any(c["finding"] == point for c in walk.conflicts[1:]):
                return f"{later[0]} was waived, and nobody asked again"
    return ""


def answerable(walk: Walk) -> str:
    """What is asked of the coder can be asked; what is counted can be counted."""
    task = walk.task
    if task.status not in {P, I, R}:
        return ""  # nobody is asked before it goes on, and then this is looked at
    settled = settled_findings(task)
    due = [finding.origin.pk for finding in intake.findings_to_answer(task)]
    told(task)
    rulings.settled_lines(task)
    if len(due) != len(set(due)):
        return f"a point is asked twice: {due}"
    return f"{due} are asked, {settled} are settled" if settled.keys() & set(due) else ""


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
    if submission.pk != walk.last["pk"]:
        return "an older commit than the last one is to be landed"
    free = {row["finding"] for row in walk.open if row["effect"] == "ship"} | set(settled_findings(task))
    mandatory = last.findings.filter(mandatory=True).select_related("first")
    blockers = [finding.code for finding in mandatory if finding.origin.pk not in free]
    if blockers and not walk.is_held and not task.landed_at:
        return f"{blockers} are neither settled nor shipped, and the commit is to be landed"
    return ""


def waiting(walk: Walk) -> str:
    """Who waits for the task waits exactly as long as the facts say."""
    is_satisfied = walk.task.landed_at is not None or walk.is_over
    for other in walk.others:
        if other["status"] == P and other["waits_for"] != (not is_satisfied):
            return f"{other['title']} waits for {other['waits_for']} while the task is {walk.task.status}"
    return ""


def true_disputes(walk: Walk) -> str:
    """A dispute is open as long as one of its conflicts is; at most one is not closed."""
    statuses = {row["dispute"]: row["dispute__status"] for row in walk.conflicts}
    is_open = {row["dispute"] for row in walk.open}
    for pk, status in statuses.items():
        if (status == "open") != (pk in is_open):
            return f"D-{pk} is {status}, its conflicts are {walk.conflicts}"
    live = [status for status in statuses.values() if status != "closed"]
    return f"{len(live)} live disputes of one task" if len(live) > 1 else ""


def rounds(walk: Walk) -> str:
    """No submission is of a round that has not begun."""
    last = walk.last["round"]
    return f"round {walk.task.round}, submission of {last}" if last > walk.task.round else ""


INVARIANTS = (
    turns, one_ruling, in_dispute, accepted, waiting, true_disputes, rounds, ruled, flags_and_cards, waived,
    answerable,
)  # fmt: skip


def check(walk: Walk) -> None:
    for invariant in INVARIANTS:
        broken = invariant(walk)
        assert not broken, "\n".join([f"{invariant.__name__}: {broken}, after", *walk.done])


# --- The walks --------------------------------------------------------------------------------------------


@pytest.fixture
def begun(db: None) -> tuple[Task, User]:
    """A task in its second round with two findings to answer, one of MEDIUM severity; and who rules."""
    person = create_user("tom")
    policy = {
        "mandatory": ["critical", "high", "medium"], "rejections_max": 4, "disagree_absolute": 1,
        "disagree_min_denominator": 1,
    }  # fmt: skip
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
    return task, person


def walk_on(begun: Task, person: User, seed: int) -> None:
    """One walk, rolled back at its end. Later ones are longer, so that the first failure is a short one."""
    with transaction.atomic():
        walk = Walk(begun, person, seed)
        for _ in range(SHORTEST + seed * (LONGEST - SHORTEST) // WALKS):
            take(walk, TABLE)
            check(walk)
        transaction.set_rollback(True)


def test_whatever_happens_in_whatever_order(begun: tuple[Task, User]) -> None:
    for seed in range(WALKS):
        walk_on(*begun, seed)
