"""What may happen to a task: its moves, each a row of the table in tasks/states.py.

Nobody outside this class assigns `status`.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

from django.db import models, transaction
from django.db.models import F, Q
from django.utils import timezone

from tasks import hooks, snapshots, states
from tasks.configuration import stages
from tasks.configuration.stages import Stage
from tasks.errors import Refused
from tasks.events import SYSTEM, Actor
from tasks.locking import locked
from tasks.models.event import record
from tasks.models.prepared import PreparedUpdate
from tasks.models.project import Section
from tasks.states import Status

if TYPE_CHECKING:
    from tasks.models.submission import Submission
    from tasks.models.task import TaskQuerySet


class StaleTask(Exception):
    """Somebody was faster: the task is no longer as the caller saw it."""

    def __init__(self, task: Any) -> None:
        now = type(task).objects.filter(pk=task.pk).values_list("status", flat=True).first()
        self.task, self.status_now = task, now
        super().__init__(f"{task.ref} has moved on: it is {now} now.")


@cache
def _moving(task: "type[TaskMoves]", *changed: str) -> PreparedUpdate:
    """A compare-and-set that writes these fields."""
    return PreparedUpdate(
        lambda pk, version, status: task.objects.filter(pk=pk, version=version, status=status),
        *changed, version=F("version") + 1,
    )  # fmt: skip


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
        """Make one move of the table: row and event in one transaction, by compare-and-set.

        Raises IllegalMove where the table refuses and StaleTask where somebody was faster.
        """
        old, new = self.status, states.target(verb, self.status, to)
        values = {"status": new, "status_at": timezone.now(), **changes}
        with transaction.atomic(savepoint=False):
            moving = _moving(type(self), *sorted(values))
            moved = moving.write(self.pk, self.version, old, **values)
            if moved:
                record(
                    self.project, verb, actor=actor, task=self, old=old, new=new, note=note,
                    data={"round": changes.get("round", self.round), **(data or {})},
                )  # fmt: skip
        if not moved:
            raise StaleTask(self)  # out here: nothing was written that the caller's transaction must undo
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
        """The submission cannot be taken, or its build or tests are red: same round, next attempt."""
        self.move("send_back", note=note, not_before=not_before)

    def reject(self, *, actor: Actor, note: str = "") -> None:
        self.move("reject", actor=actor, note=note, round=self.round + 1, rejections=self.rejections + 1)

    def next_stage(self) -> Stage | None:
        """Where the task goes on once its work here is approved; None where it is done then."""
        return stages.onward(self.project.config, self.stage, self.home_stage)

    def advance(
        self, submission: "Submission", *, actor: Actor, note: str = "", not_before: Any = None
    ) -> None:
        """The work of this stage is approved; the next one begins at that commit, with counts of its own."""
        states.target("advance", self.status)
        after = self.next_stage()
        if after is None:
            raise ValueError(f"{self.ref} is at its last stage.")
        is_back = bool(self.home_stage and not self.escalation)  # what was sent back is no new beginning
        home = self.home_stage if is_back and after.name != self.home_stage else ""
        self.move(
            "advance", actor=actor, note=note, not_before=not_before, stage=after.name, home_stage=home,
            escalation="", round=self.round + 1, rejections=self.rejections if is_back else 0,
            accepted=None, counts_since=timezone.now(),
            data={"sha": submission.sha, "from_stage": self.stage, "stage": after.name},
        )  # fmt: skip

    def stage_before(self) -> stages.Stage:
        """The stage that an objection sends it back to. Raises Refused where it is at the first one."""
        before = stages.previous_stage(self.project.config, self.stage)
        if before is None:
            raise Refused(
                "no_stage_before", f"{self.ref} is at {self.stage}; no stage is before it.",
                "Put it before a human: `steroids dispute create`.", status=422,
            )  # fmt: skip
        return before

    def backflow(self, *, actor: Actor, note: str) -> None:
        """An objection sends it one stage back; its present stage is remembered (ITM-2).

        Raises Refused where there is no stage before this one.
        """
        states.target("backflow", self.status)
        before = self.stage_before()
        self._cross("backflow", before, actor=actor, note=note, home_stage=self.stage)

    def forward(self, *, actor: Actor, note: str) -> None:
        """The stage it was sent back to disagrees: it goes forward again to where the objection is from."""
        states.target("forward", self.status)
        home = stages.stage_named(self.project.config, self.home_stage)
        if home is None:
            raise Refused("not_sent_back", f"{self.ref} was not sent back to {self.stage}.", status=422)
        self._cross("forward", home, actor=actor, note=note, home_stage="")

    def _cross(self, verb: str, to: Stage, *, actor: Actor, note: str, **changes: Any) -> None:
        self.move(
            verb, actor=actor, note=note, stage=to.name, round=self.round + 1, not_before=None,
            counts_since=timezone.now(), data={"from_stage": self.stage, "stage": to.name}, **changes,
        )  # fmt: skip

    def approve(self, submission: "Submission", *, actor: Actor, note: str = "") -> None:
        """Its review accepts the submission."""
        self._accept("approve", submission, actor=actor, note=note)

    def ship(self, submission: "Submission", *, actor: Actor, note: str) -> None:
        """As `approve`, while a conflict waits that holds nothing."""
        self._accept("ship", submission, actor=actor, note=note)

    def rule_accept(
        self, submission: "Submission", *, actor: Actor, note: str, not_before: Any = None
    ) -> None:
        """As `approve`, by a ruling."""
        self._accept("rule_accept", submission, actor=actor, note=note, not_before=not_before)

    def _accept(
        self, verb: str, submission: "Submission", *, actor: Actor, note: str, **changes: Any
    ) -> None:
        """The submission is to be landed; `accepted` is the outbox. Only from the last stage: else the task
        advances. A session lands after its last gap.
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
        """The gaps of the session's project that are neither settled nor put off."""
        return self.project.tasks.gaps().filter(status__in=states.UNFINISHED - {Status.DEFERRED})

    def next_round(self, *, note: str = "") -> None:
        """The round was passed, and gaps are left."""
        self.move("next_round", note=note, round=self.round + 1, not_before=None)

    def review_rest(self, *, note: str, final: bool, submission: int) -> None:
        """Nothing is left to write: a review of the whole (`final`), or of what none has looked at."""
        self.move("review_rest", note=note, not_before=None, data={"final": final, "submission": submission})

    def take_up(self, round_: int, *, note: str = "") -> None:
        """A gap is given out in this round of its session."""
        self.move("start", note=note, round=round_, not_before=None)

    def propose(self, round_: int, *, actor: Actor, note: str = "") -> None:
        """A document of this round says how the gap is closed."""
        self.move("submit", actor=actor, note=note, round=round_, not_before=None)

    def send_gap_back(self, *, actor: Actor, note: str) -> None:
        """Its review, or a ruling, asks for more; the rounds are its session's."""
        self.move("reject", actor=actor, note=note, rejections=self.rejections + 1)

    def accept_gap(self, *, actor: Actor, note: str) -> None:
        """Its review signed it off. It lands with its session."""
        with transaction.atomic():
            self.move("approve", actor=actor, note=note, finished_by="review")
            hooks.recount_dependants(self)

    def restore(self, status: str, round_: int, *, actor: Actor, note: str) -> None:
        """As it was before rounds of its session that were taken back."""
        with transaction.atomic():
            self.move(
                "restore", to=status, actor=actor, note=note, round=round_, finished_by="", accepted=None,
            )  # fmt: skip
            hooks.recount_dependants(self)

    def hold(self, *, actor: Actor, note: str) -> None:
        self.move("hold", actor=actor, note=note, accepted=None)

    def stop_for_help(self, *, note: str, actor: Actor = SYSTEM) -> None:
        """Only a person can help; a card in the queue says why."""
        self.move("stop_for_help", note=note, actor=actor, accepted=None)

    def escalate(self, stage: str, *, reason: str, actor: Actor = SYSTEM, note: str = "") -> None:
        """To a column of specialists; approved there, it goes on from its home stage (LAD-3)."""
        self.move(
            "escalate", actor=actor, note=note,
            data={"stage": stage, "from_stage": self.stage, "reason": reason}, stage=stage,
            home_stage=self.home_stage if self.escalation else self.stage, escalation=reason, not_before=None,
        )  # fmt: skip

    def exhaust(self, *, actor: Actor, note: str) -> None:
        """The last resort: too many rejections. The section stops where the project says so."""
        with transaction.atomic():
            self.move("exhaust", actor=actor, note=note, rejections=self.rejections + 1)
            self.stop_sections()

    def stop_sections(self) -> None:
        """A failed task stops its section, its project or nothing, as the project says."""
        stop = {"section": Q(pk=self.section_id), "project": Q(project=self.project_id)}
        if which := stop.get(self.project.config.on_failed):
            Section.objects.filter(which).update(is_stopped=True)

    def landed(self, sha: str, *, actor: Actor = SYSTEM) -> None:
        """The SHA is proven to be on the target branch. Not a move: completed is a verdict, landed a fact."""
        with transaction.atomic():
            changed = self._row.filter(
                landed_at__isnull=True, status__in=[Status.COMPLETED, Status.DISPUTED]
            ).update(landed_sha=sha, landed_at=timezone.now())
            if not changed:
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
        self.refresh_from_db()

    def clash(self, *, note: str) -> None:
        """The approved commits do not fit onto the target branch any more: a new round, no rejection."""
        self.move("clash", note=note, round=self.round + 1, accepted=None)

    def review_again(self, *, note: str) -> None:
        """The approved commits were rebased, and the project wants them reviewed as they are now."""
        self.move("review_again", note=note, accepted=None)

    def rule_revise(self, *, actor: Actor, note: str, not_before: Any, **place: str) -> None:
        """A ruling sends it back to work; `place` names stage and home_stage where it belongs elsewhere."""
        with transaction.atomic():
            self.move(
                "rule_revise", actor=actor, note=note, round=self.round + 1, finished_by="", accepted=None,
                landed_sha="", landed_at=None, not_before=not_before, data=dict(place), **place,
            )  # fmt: skip
            hooks.recount_dependants(self)

    def rule_review(self, *, actor: Actor, note: str, not_before: Any) -> None:
        self.move("rule_review", actor=actor, note=note, not_before=not_before)

    def retry(self, to: str, *, actor: Actor, note: str, not_before: Any) -> None:
        """A human sends a disputed or failed task on; earlier counts stay listed but no longer count."""
        with transaction.atomic():
            self.move(
                "retry", to=to, actor=actor, note=note, not_before=not_before, rejections=0,
                accepted=None, counts_since=timezone.now(),
                round=max(self.round, 1) + (to == Status.IN_PROGRESS),
            )  # fmt: skip
            self._restart_sections()

    def _restart_sections(self) -> None:
        """A stopped section goes on once nothing in it is failed."""
        for section in Section.objects.filter(project=self.project_id, is_stopped=True):
            if not section.tasks.filter(status=Status.FAILED).exists():
                section.is_stopped = False
                section.save(update_fields=["is_stopped"])

    def defer(self, *, actor: Actor, note: str = "") -> None:
        with transaction.atomic():
            self.move("defer", actor=actor, note=note, accepted=None)
            self._restart_sections()

    def resume(self, *, actor: Actor, note: str = "") -> None:
        """Back to where the facts say it was: disputed, under way, or not begun."""
        if hooks.is_held(self):
            to = Status.DISPUTED
        else:
            to = Status.IN_PROGRESS if self.submissions.standing().exists() else Status.PENDING
        self.move("resume", to=to, actor=actor, note=note, rejections=0, counts_since=timezone.now())

    def cancel(self, *, actor: Actor, note: str = "") -> None:
        """Not for landed tasks, nor while a push is under way."""
        with transaction.atomic():
            if locked(self._row).get().landed_at is not None:
                raise states.IllegalMove("cancel", "landed")
            if self.landings.filter(status="pushing").exists():
                raise states.IllegalMove("cancel", "being pushed")
            self.move("cancel", actor=actor, note=note, accepted=None)
            hooks.recount_dependants(self)
            self._restart_sections()

    def finish(self, *, actor: Actor, note: str = "") -> None:
        """A maintainer finished it outside the program; nothing is landed for it.

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
        """Back to the end of `to_round`: the round after it begins again, under the same number (RB-2).

        Like every human option that starts a task again it begins the counts anew.
        """
        with transaction.atomic():
            self.move(
                "rollback", actor=actor, note=note, data={"to_round": to_round}, round=to_round + 1,
                accepted=None, not_before=None, rejections=0, counts_since=timezone.now(),
                stage=self._stage_in(to_round + 1), home_stage="", escalation="",
            )  # fmt: skip
            self._restart_sections()

    def put_back(self, snapshot: dict[str, Any], *, actor: Actor, note: str) -> None:
        """To where it was before a ruling that is taken back. It is no move where the status is the same."""
        columns = snapshots.columns_of(snapshot)
        status = columns.pop("status")
        if status == self.status:
            self._row.update(**columns)
        else:
            self.move("undo", to=status, actor=actor, note=note, **columns)
        if self.status == Status.FAILED:
            self.stop_sections()

    def _stage_in(self, round_: int) -> str:
        """Where that round was worked on, as far as what was handed in tells."""
        first = stages.first_stage(self.project.config).name
        submissions = self.submissions.exclude(stage="").filter(round__lte=round_).order_by("-round", "-pk")
        there = submissions.values_list("stage", flat=True).first() or first
        return there if stages.position(self.project.config, there) else first
