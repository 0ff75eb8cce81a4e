"""The moves of a task, each a row of the table in tasks/states.py.

Nothing outside this class assigns `status`.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

from django.db import models, transaction
from django.db.models import F, Q

from tasks import hooks, snapshots, states
from tasks.configuration import stages
from tasks.configuration.stages import Stage
from tasks.database.clock import estimated_time
from tasks.database.locking import locked
from tasks.database.prepared import PreparedUpdate, refresh
from tasks.errors import Invalid, Refused
from tasks.events import SYSTEM, Actor
from tasks.models.event import record
from tasks.models.project import Section
from tasks.states import Status

if TYPE_CHECKING:
    from tasks.models.submission import Submission
    from tasks.models.task import TaskQuerySet


class StaleTask(Exception):
    """Somebody was faster, so the task is no longer as the caller saw it."""

    def __init__(self, task: Any) -> None:
        now = type(task).objects.filter(pk=task.pk).values_list("status", flat=True).first()
        self.task, self.status_now = task, now
        super().__init__(f"{task.ref} has moved on: it is {now} now.")


@cache
def _moving(task: "type[TaskMoves]", *changed: str) -> PreparedUpdate:
    """Return a prepared compare-and-set update that writes these fields of a task."""
    return PreparedUpdate(
        lambda pk, version, status: task.objects.filter(pk=pk, version=version, status=status),
        *changed, version=F("version") + 1,
    )  # fmt: skip


@cache
def _landing(task: "type[TaskMoves]") -> PreparedUpdate:
    """Return a prepared update that marks a task as landed if it may be."""
    may_be = {"landed_at__isnull": True, "status__in": [Status.COMPLETED, Status.DISPUTED]}
    return PreparedUpdate(lambda pk: task.objects.filter(pk=pk, **may_be), "landed_sha", "landed_at")


class TaskMoves(models.Model):
    """The verbs of a task."""

    class Meta:
        abstract = True

    @property
    def _row(self) -> "TaskQuerySet":
        return type(self).objects.filter(pk=self.pk)

    def move(
        self,
        verb: str,
        *,
        to: str | None = None,
        actor: Actor = SYSTEM,
        note: str = "",
        data: dict[str, Any] | None = None,
        **changes: Any,
    ) -> None:
        """Make one move of the table by compare-and-set: the row and its event, in one transaction.

        Raises IllegalMove if the table does not allow the move, and StaleTask if somebody was faster.
        """
        old, new = self.status, states.target(verb, self.status, to)
        values = {"status": new, "status_at": estimated_time(), **changes}
        with transaction.atomic(savepoint=False):
            moving = _moving(type(self), *sorted(values))
            moved = moving.write(self.pk, self.version, old, **values)
            if moved:
                record(
                    self.project, verb, actor=actor, task=self, old=old, new=new, note=note,
                    data={"round": changes.get("round", self.round), **(data or {})},
                )  # fmt: skip
        if not moved:
            raise StaleTask(self)  # outside the block: nothing was written that has to be undone
        self.version += 1
        for name, value in values.items():
            setattr(self, name, value)

    move.alters_data = True  # type: ignore[attr-defined]

    def start(self, *, actor: Actor = SYSTEM) -> None:
        stage = self.stage if self.round else stages.first_stage(self.project.config).name
        self.move("start", actor=actor, round=max(self.round, 1), not_before=None, stage=stage)

    def submit(self, *, actor: Actor, note: str = "") -> None:
        self.move("submit", actor=actor, note=note, not_before=None)

    def send_back(self, *, note: str, not_before: Any = None) -> None:
        """Send the submission back within its round: it cannot be taken, or its build or tests are red."""
        self.move("send_back", note=note, not_before=not_before)

    def reject(self, *, actor: Actor, note: str = "") -> None:
        self.move("reject", actor=actor, note=note, round=self.round + 1, rejections=self.rejections + 1)

    def next_stage(self) -> Stage | None:
        """Return the stage that the task goes to once it is approved here; None if it is finished then."""
        return stages.onward(self.project.config, self.stage, self.home_stage)

    def advance(
        self, submission: "Submission", *, actor: Actor, note: str = "", not_before: Any = None
    ) -> None:
        """Send the task, whose work at this stage is approved, to the next stage with counts of its own.

        The next stage begins at the approved commit.
        """
        states.target("advance", self.status)
        after = self.next_stage()
        if after is None:
            raise ValueError(f"{self.ref} is at its last stage.")
        is_back = bool(self.home_stage and not self.escalation)  # a task that was sent back keeps its counts
        home = self.home_stage if is_back and after.name != self.home_stage else ""
        self.move(
            "advance", actor=actor, note=note, not_before=not_before, stage=after.name, home_stage=home,
            escalation="", round=self.round + 1, rejections=self.rejections if is_back else 0,
            accepted=None, counts_since=estimated_time(),
            data={"sha": submission.sha, "from_stage": self.stage, "stage": after.name},
        )  # fmt: skip

    def stage_before(self) -> stages.Stage:
        """Return the stage that an objection sends the task back to. Raises Refused if there is none."""
        before = stages.previous_stage(self.project.config, self.stage)
        if before is None:
            raise Invalid(
                "no_stage_before", f"{self.ref} is at {self.stage}; no stage is before it.",
                "Put it before a human: `steroids dispute create`.",
            )  # fmt: skip
        return before

    def backflow(self, *, actor: Actor, note: str) -> None:
        """Send the task one stage back because of an objection, and remember its present stage (ITM-2).

        Raises Refused if there is no stage before this one.
        """
        states.target("backflow", self.status)
        before = self.stage_before()
        self._cross("backflow", before, actor=actor, note=note, home_stage=self.stage)

    def forward(self, *, actor: Actor, note: str) -> None:
        """Send the task forward to the stage that objected, because the stage it was sent back to disagrees.

        Raises Refused if the task was not sent back.
        """
        states.target("forward", self.status)
        home = stages.stage_named(self.project.config, self.home_stage)
        if home is None:
            raise Invalid(
                "not_sent_back", f"{self.ref} was not sent back to {self.stage}.",
                "Hand in your work as usual.",
            )  # fmt: skip
        self._cross("forward", home, actor=actor, note=note, home_stage="")

    def _cross(self, verb: str, to: Stage, *, actor: Actor, note: str, **changes: Any) -> None:
        self.move(
            verb, actor=actor, note=note, stage=to.name, round=self.round + 1, not_before=None,
            counts_since=estimated_time(), data={"from_stage": self.stage, "stage": to.name}, **changes,
        )  # fmt: skip

    def approve(self, submission: "Submission", *, actor: Actor, note: str = "") -> None:
        """Accept the submission by its review."""
        self._accept("approve", submission, actor=actor, note=note)

    def ship(self, submission: "Submission", *, actor: Actor, note: str) -> None:
        """Accept the submission like `approve`, while a conflict that holds nothing is still open."""
        self._accept("ship", submission, actor=actor, note=note)

    def rule_accept(
        self, submission: "Submission", *, actor: Actor, note: str, not_before: Any = None
    ) -> None:
        """Accept the submission like `approve`, by a ruling."""
        self._accept("rule_accept", submission, actor=actor, note=note, not_before=not_before)

    def _accept(
        self, verb: str, submission: "Submission", *, actor: Actor, note: str, **changes: Any
    ) -> None:
        """Mark the submission to be landed by `accepted`, or move the task on if it is not finished yet.

        Unless it is at the last stage, the task advances instead. A session with open gaps goes on to its
        next round, and lands after the last gap.
        """
        data = {"sha": submission.sha}
        if self.is_session and self.open_gaps().exists():
            self.move("pass_round", actor=actor, note=note, data=data, **changes)
        elif self.next_stage():
            self.advance(submission, actor=actor, note=note, **changes)
        else:
            self.move(verb, actor=actor, note=note, accepted=submission, data=data, **changes)

    # --- A session, and the gaps that it works on ---

    def open_gaps(self) -> "TaskQuerySet":
        """Return the gaps of the session's project that are neither settled nor deferred."""
        return self.project.tasks.gaps().filter(status__in=states.UNFINISHED - {Status.DEFERRED})

    def next_round(self, *, note: str = "") -> None:
        """Begin the next round of a session whose round was passed while gaps are left."""
        self.move("next_round", note=note, round=self.round + 1, not_before=None)

    def review_rest(self, *, note: str, final: bool, submission: int) -> None:
        """Send a session with nothing left to write to review.

        The review is of the whole if `final`, and otherwise of what nobody has reviewed yet.
        """
        self.move("review_rest", note=note, not_before=None, data={"final": final, "submission": submission})

    def take_up(self, round_: int, *, note: str = "") -> None:
        """Give out a gap in this round of its session."""
        self.move("start", note=note, round=round_, not_before=None)

    def propose(self, round_: int, *, actor: Actor, note: str = "") -> None:
        """Hand in a gap, for which a document of this round proposes how to close it."""
        self.move("submit", actor=actor, note=note, round=round_, not_before=None)

    def send_gap_back(self, *, actor: Actor, note: str) -> None:
        """Send a gap back because its review or a ruling asks for more; its session counts the rounds."""
        self.move("reject", actor=actor, note=note, rejections=self.rejections + 1)

    def accept_gap(self, *, actor: Actor, note: str) -> None:
        """Accept a gap that its review signed off. It lands with its session."""
        with transaction.atomic():
            self.move("approve", actor=actor, note=note, finished_by="review")
            hooks.recount_dependants(self)

    def restore(self, status: str, round_: int, *, actor: Actor, note: str) -> None:
        """Put a gap back to how it was before rounds of its session that were taken back."""
        with transaction.atomic():
            self.move(
                "restore", to=status, actor=actor, note=note, round=round_, finished_by="", accepted=None,
            )  # fmt: skip
            hooks.recount_dependants(self)

    def hold(self, *, actor: Actor, note: str) -> None:
        self.move("hold", actor=actor, note=note, accepted=None)

    def stop_for_help(self, *, note: str, actor: Actor = SYSTEM) -> None:
        """Stop the task because only a person can help; a card in the queue says why."""
        self.move("stop_for_help", note=note, actor=actor, accepted=None)

    def escalate(self, stage: str, *, reason: str, actor: Actor = SYSTEM, note: str = "") -> None:
        """Send the task to a column of specialists, from where it goes on from its home stage (LAD-3)."""
        self.move(
            "escalate", actor=actor, note=note,
            data={"stage": stage, "from_stage": self.stage, "reason": reason}, stage=stage,
            home_stage=self.home_stage if self.escalation else self.stage, escalation=reason, not_before=None,
        )  # fmt: skip

    def exhaust(self, *, actor: Actor, note: str) -> None:
        """Fail the task after too many rejections, and stop its section or project if the settings say so."""
        with transaction.atomic():
            self.move("exhaust", actor=actor, note=note, rejections=self.rejections + 1)
            self.stop_sections()

    def stop_sections(self) -> None:
        """Stop the section or the project of a failed task, or nothing, as the project's settings say."""
        stop = {"section": Q(pk=self.section_id), "project": Q(project=self.project_id)}
        if which := stop.get(self.project.config.on_failed):
            Section.objects.filter(which).update(is_stopped=True)

    def landed(self, sha: str, *, actor: Actor = SYSTEM) -> None:
        """Write down that the commit is proven to be on the target branch.

        This is no move: "completed" is a verdict, and landed is a fact. Raises StaleTask if it is neither
        completed nor disputed, or is marked as landed already.
        """
        with transaction.atomic():
            if not _landing(type(self)).write(self.pk, landed_sha=sha, landed_at=estimated_time()):
                raise StaleTask(self)
            record(
                self.project,
                "landed",
                actor=actor,
                task=self,
                old=self.status,
                new=self.status,
                data={"sha": sha},
            )
            hooks.recount_dependants(self)
        refresh(self)

    def clash(self, *, note: str) -> None:
        """Begin a new round, without a rejection: the approved commits cannot land as they are."""
        self.move("clash", note=note, round=self.round + 1, accepted=None)

    def cannot_land(self, *, note: str) -> None:
        """Begin a new round; a task that waits for a ruling goes on waiting, without its approval."""
        if self.status != Status.DISPUTED:
            self.clash(note=note)
            return
        self.unaccept()
        record(self.project, "clash", task=self, note=note)

    def unaccept(self) -> None:
        """Take back the approval of the commits that were to land. The status stays."""
        type(self).objects.filter(pk=self.pk, version=self.version).update(accepted=None)

    def review_again(self, *, note: str) -> None:
        """Send the rebased commits to review once more, as the project wants."""
        self.move("review_again", note=note, accepted=None)

    def rule_revise(self, *, actor: Actor, note: str, not_before: Any, **place: str) -> None:
        """Send the task back to work by a ruling; `place` gives another stage and home_stage for it."""
        with transaction.atomic():
            self.move(
                "rule_revise", actor=actor, note=note, round=self.round + 1, finished_by="", accepted=None,
                landed_sha="", landed_at=None, not_before=not_before, data=dict(place), **place,
            )  # fmt: skip
            hooks.recount_dependants(self)

    def rule_review(self, *, actor: Actor, note: str, not_before: Any) -> None:
        self.move("rule_review", actor=actor, note=note, not_before=not_before)

    def retry(self, to: str, *, actor: Actor, note: str, not_before: Any) -> None:
        """Send a disputed or failed task on, for a person; earlier counts stay listed but no longer count."""
        with transaction.atomic():
            self.move(
                "retry", to=to, actor=actor, note=note, not_before=not_before, rejections=0,
                accepted=None, counts_since=estimated_time(),
                round=max(self.round, 1) + (to == Status.IN_PROGRESS),
            )  # fmt: skip
            self._restart_sections()

    def _restart_sections(self) -> None:
        """Let each stopped section of the project go on if none of its tasks is failed."""
        for section in Section.objects.filter(project=self.project_id, is_stopped=True):
            if not section.tasks.filter(status=Status.FAILED).exists():
                section.is_stopped = False
                section.save(update_fields=["is_stopped"])

    def defer(self, *, actor: Actor, note: str = "") -> None:
        with transaction.atomic():
            self.move("defer", actor=actor, note=note, accepted=None)
            self._restart_sections()

    def resume(self, *, actor: Actor, note: str = "") -> None:
        """Bring a deferred task back to what the facts say: disputed, under way, or not begun."""
        if hooks.is_held(self):
            to = Status.DISPUTED
        else:
            to = Status.IN_PROGRESS if self.submissions.standing().exists() else Status.PENDING
        self.move("resume", to=to, actor=actor, note=note, rejections=0, counts_since=estimated_time())

    def cancel(self, *, actor: Actor, note: str = "") -> None:
        """Cancel the task. Raises IllegalMove if it has landed or is being pushed."""
        with transaction.atomic():
            if locked(self._row).get().landed_at is not None:
                raise states.IllegalMove("cancel", "landed")
            if self.landings.filter(status="pushing").exists():
                raise states.IllegalMove("cancel", "being pushed")
            self.move("cancel", actor=actor, note=note, accepted=None)
            hooks.recount_dependants(self)
            self._restart_sections()

    def finish(self, *, actor: Actor, note: str = "") -> None:
        """Complete the task because a maintainer finished it outside the program; nothing is landed for it.

        Raises Refused while a CRITICAL or HIGH conflict on it is undecided (DEC-7).
        """
        if hooks.is_undecided(self):
            raise Refused(
                "undecided", f"{self.ref} has an undecided conflict of severity HIGH or above.",
                "Rule on it first: `steroids dispute list`.",
            )  # fmt: skip
        with transaction.atomic():
            self.move("finish", actor=actor, note=note, finished_by="hand", accepted=None)
            hooks.recount_dependants(self)
            self._restart_sections()

    def reopen(self, *, actor: Actor, note: str) -> None:
        started = self.submissions.standing().exists()
        with transaction.atomic():
            self.move(
                "reopen", to=Status.IN_PROGRESS if started else Status.PENDING, actor=actor, note=note,
                round=self.round + started, accepted=None, landed_sha="", landed_at=None, finished_by="",
            )  # fmt: skip
            hooks.recount_dependants(self)

    def rollback(self, to_round: int, *, actor: Actor, note: str) -> None:
        """Take the task back to the end of `to_round`; the next round begins again with its number (RB-2).

        The counts begin anew, as with everything by which a person starts a task again.
        """
        with transaction.atomic():
            self.move(
                "rollback", actor=actor, note=note, data={"to_round": to_round}, round=to_round + 1,
                accepted=None, not_before=None, rejections=0, counts_since=estimated_time(),
                stage=self._stage_in(to_round + 1), home_stage="", escalation="",
            )  # fmt: skip
            self._restart_sections()

    def put_back(self, snapshot: dict[str, Any], *, actor: Actor, note: str) -> None:
        """Put the task back to where it was before a ruling that is taken back.

        If its status is the same, this is no move.
        """
        columns = snapshots.columns_of(snapshot)
        status = columns.pop("status")
        if status == self.status:
            self._row.update(**columns)
        else:
            self.move("undo", to=status, actor=actor, note=note, **columns)
        if self.status == Status.FAILED:
            self.stop_sections()

    def _stage_in(self, round_: int) -> str:
        """Return the stage at which that round was worked on, as far as the submissions tell."""
        first = stages.first_stage(self.project.config).name
        submissions = self.submissions.exclude(stage="").filter(round__lte=round_).order_by("-round", "-pk")
        there = submissions.values_list("stage", flat=True).first() or first
        return there if stages.position(self.project.config, there) else first
