"""Conflicts: each is about one finding, or is one question about a whole task or project."""

from typing import TYPE_CHECKING, Any

from django.db import models, transaction
from django.db.models import Q

from disputes.models.dispute import Dispute
from disputes.models.proposal import BY_MAX, Proposal
from disputes.protocol.rulings import conflict_states, options
from disputes.protocol.rulings.conflict_states import MARKS, MOVES, ConflictState
from disputes.protocol.rulings.synthesis import Synthesis
from tasks.configuration.policy import HOLD
from tasks.errors import Refused
from tasks.events import SYSTEM, Actor
from tasks.models import SEVERITY_CHOICES, Finding, Submission, Task
from tasks.models.event import record
from tasks.models.moments import MomentField
from tasks.models.submission import RoundQuerySet

if TYPE_CHECKING:
    from disputes.models.decision import Decision

NOT_STATED = "not stated"


class StaleConflict(Refused):
    """Somebody was faster: the conflict is no longer in the state that the caller saw."""

    def __init__(self, conflict: "Conflict") -> None:
        super().__init__("stale", f"{conflict.ref} is not {conflict.state} any more.", "Reload the page.")


class ConflictQuerySet(RoundQuerySet["Conflict"]):
    path = "submission__"

    def of(self, task: Any) -> "ConflictQuerySet":
        """Return the conflicts of one task, given as a row, a key or an OuterRef."""
        return self.filter(dispute__task=task)

    def about(self, finding: Any) -> "ConflictQuerySet":
        """Return the conflicts about one point, given as any of its findings or as the key of the first."""
        return self.filter(finding=finding.origin if isinstance(finding, Finding) else finding)

    def open(self) -> "ConflictQuerySet":
        """Return the conflicts that wait for a ruling."""
        return self.filter(status=Conflict.Status.OPEN)

    def holding(self) -> "ConflictQuerySet":
        """Return the conflicts that hold their task as long as they are open."""
        return self.filter(effect=HOLD)

    def ruled(self) -> "ConflictQuerySet":
        """Return the conflicts that are decided and have not been reopened."""
        return self.filter(status=Conflict.Status.DECIDED).exclude(followed=Conflict.Followed.REOPENED)

    def settled(self) -> "ConflictQuerySet":
        """Return the conflicts that are decided or only logged, and have not been reopened."""
        known = self.filter(status__in=[Conflict.Status.DECIDED, Conflict.Status.LOGGED])
        return known.exclude(followed=Conflict.Followed.REOPENED)

    def not_moot(self) -> "ConflictQuerySet":
        """Leave out the conflicts that nobody had, or has, to decide."""
        return self.exclude(status=Conflict.Status.MOOT)

    def awaited(self) -> "ConflictQuerySet":
        """Return the decided conflicts whose ruling is still to be carried out."""
        return self.filter(followed=Conflict.Followed.WAITING)

    def disagreements(self) -> "ConflictQuerySet":
        """Return the conflicts with two sides, a reviewer's and a coder's."""
        return self.filter(kind=Conflict.Kind.DISAGREEMENT)

    def silences(self) -> "ConflictQuerySet":
        """Return the conflicts about findings that were passed over in silence."""
        return self.filter(kind=Conflict.Kind.SILENCE)

    def on_findings(self) -> "ConflictQuerySet":
        """Return disagreements and silences, which both ask whether a finding is to be settled."""
        return self.filter(kind__in=Conflict.BETWEEN_TWO)


class Conflict(models.Model):
    """One finding, or one question about a task or project: two positions, options and one decision."""

    class Kind(models.TextChoices):
        DISAGREEMENT = options.Kind.DISAGREEMENT.value
        SILENCE = options.Kind.SILENCE.value
        ALERT = options.Kind.ALERT.value
        HELP = options.Kind.HELP.value, "Needs a person"

    class Origin(models.TextChoices):
        DISAGREE = "disagree", "Coder declined"
        CLI = "cli", "Dispute opened"
        MINOR = "minor", "Minor, logged"
        REOPENED = "reopened", "Reopened"
        NOT_HONOURED = "not_honoured", "Ruling not honoured"
        REJECTIONS = "rejections", "Rejection limit"
        EMPTY_RUNS = "empty_runs", "Runs without result"
        BLOCKED = "blocked", "Coder is blocked"
        LANDING = "landing", "Landing is stuck"
        REVIEW = "review", "Review raises only settled points"
        REPEATED = "repeated", "Raised again after it was declined"
        CONVERTED = "converted", "Converted from silence"
        FLAGGED = "flagged", "Perhaps passed over"
        UNANSWERED = "unanswered", "Raised again, nothing was done"
        OSCILLATION = "oscillation", "Goes back and forth"
        ROUNDS = "rounds", "Raised again and again"
        RATE = "rate", "Too much is declined"
        DIVERGENCE = "divergence", "More comes up than gets done"
        STALL = "stall", "No progress"
        LADDER = "ladder", "Every model of the ladder failed"
        PING_PONG = "ping_pong", "Agents disagree over and over"
        BUDGET = "budget", "A cap of money or tokens"
        BASE = "base", "The target branch is not fit"
        REWRITTEN = "rewritten", "The target branch lost landed work"
        VERIFYING = "verifying", "Build or tests"

    class Status(models.TextChoices):
        OPEN = conflict_states.ConflictStatus.OPEN.value
        DECIDED = conflict_states.ConflictStatus.DECIDED.value
        LOGGED = conflict_states.ConflictStatus.LOGGED.value
        MOOT = conflict_states.ConflictStatus.MOOT.value

    class Followed(models.TextChoices):
        WAITING = conflict_states.Followed.WAITING.value
        APPLIED = conflict_states.Followed.APPLIED.value
        NOT_HONOURED = conflict_states.Followed.NOT_HONOURED.value, "Not honoured"
        CANNOT_TELL = conflict_states.Followed.CANNOT_TELL.value, "Could not verify"
        REOPENED = conflict_states.Followed.REOPENED.value, "Reopened"

    class Reason(models.TextChoices):
        ARCHITECTURE = "architecture_disagreement", "Architecture"
        SPECIFICATION = "specification_ambiguity", "Specification"
        GUIDELINE = "guideline_conflict", "Guideline"
        SECURITY = "security_concern", "Security"
        SCOPE = "scope_disagreement", "Scope"
        OTHER = "other", "Other"

    # The kinds with two sides, which ask whether a finding is to be settled.
    BETWEEN_TWO = (Kind.DISAGREEMENT, Kind.SILENCE)

    dispute = models.ForeignKey(Dispute, on_delete=models.PROTECT, related_name="conflicts")
    kind = models.CharField(max_length=12, choices=Kind)
    origin = models.CharField(max_length=12, choices=Origin)
    opened_as = models.CharField(
        max_length=8,
        choices=[(word, word.capitalize()) for word in ("coder", "reviewer", "system", "human")],
    )
    reason = models.CharField(max_length=30, choices=Reason, default=Reason.OTHER)
    finding = models.ForeignKey(
        Finding, null=True, blank=True, on_delete=models.PROTECT, related_name="conflicts",
        help_text="As it was raised first.",
    )  # fmt: skip
    raised_as = models.ForeignKey(
        Finding, null=True, blank=True, on_delete=models.PROTECT, related_name="+",
        help_text="As it was raised last before the card was opened: what the card shows.",
    )  # fmt: skip
    submission = models.ForeignKey(
        Submission, null=True, blank=True, on_delete=models.PROTECT, related_name="conflicts",
        help_text="What is disputed.",
    )  # fmt: skip
    stage = models.CharField(max_length=40, blank=True, help_text="Where it came up; empty: the only stage.")
    thread = models.ForeignKey(
        "tasks.Comment", null=True, blank=True, on_delete=models.PROTECT, related_name="conflicts",
        help_text="The comment that began it, where two stages disagree.",
    )  # fmt: skip
    severity = models.CharField(max_length=8, choices=SEVERITY_CHOICES)
    effect = models.CharField(max_length=4, choices=[(w, w) for w in ("hold", "ship", "log")])
    question = models.CharField(max_length=500)
    reviewer_position = models.TextField(blank=True)
    reviewer_label = models.CharField(max_length=120, blank=True)
    coder_position = models.TextField(blank=True)
    coder_rationale = models.TextField(blank=True)
    coder_label = models.CharField(max_length=120, blank=True)
    alternative = models.TextField(blank=True)
    proposal = models.ForeignKey(
        Proposal, null=True, blank=True, on_delete=models.PROTECT, related_name="+",
        help_text="Option C; that of an earlier conflict where this one goes on with it.",
    )  # fmt: skip
    evidence = models.JSONField(default=list, blank=True, help_text="Facts that the card shows, a line each.")
    status = models.CharField(max_length=7, choices=Status, default=Status.OPEN)
    followed = models.CharField(max_length=12, choices=Followed, blank=True)
    previous = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="reopened_as"
    )
    opened_at = MomentField()

    objects = ConflictQuerySet.as_manager()

    class Meta:
        ordering = ["dispute", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["finding"],
                condition=Q(status="open", kind="disagreement"),
                name="conflict_one_open_per_finding",
            ),
            models.CheckConstraint(
                condition=~Q(kind="disagreement") | (~Q(reviewer_position="") & ~Q(coder_position="")),
                name="conflict_has_both_positions",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["open", "decided", "logged", "moot"]), name="conflict_status_known"
            ),
            models.CheckConstraint(
                condition=Q(
                    status="decided",
                    followed__in=["waiting", "applied", "not_honoured", "cannot_tell", "reopened"],
                )
                | (~Q(status="decided") & Q(followed="")),
                name="conflict_followed_once_decided",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.ref} {self.question}"

    @property
    def ref(self) -> str:
        """The name that people and the command use, such as C-9."""
        return f"C-{self.pk}"

    @property
    def shown_finding(self) -> Finding | None:
        """The finding that the card shows, as it was last raised before the card was opened; None if none."""
        return self.raised_as or self.finding

    @property
    def subject(self) -> Task | None:
        """What it is about: the gap of its finding, or else the task; None on a card about a project."""
        gap = self.finding.gap if self.finding else None
        return gap or self.dispute.task

    @property
    def subject_name(self) -> str:
        """The gap's code or the task's name, such as GAP-SIGNIN-001 or ledger-214, or the project's name."""
        subject = self.subject
        return (subject.gap or subject.ref) if subject else self.dispute.project.slug

    def get_origin_display(self) -> str:
        """Return how it came up, in the project's word for the coder."""
        return str(Conflict.Origin(self.origin).label).replace(
            "Coder", self.dispute.project.coder_word.capitalize()
        )

    @property
    def is_open(self) -> bool:
        """Whether the conflict waits for a ruling."""
        return self.status == self.Status.OPEN

    @property
    def is_logged(self) -> bool:
        """Whether the conflict is only on record, so that the coder's way is kept."""
        return self.status == self.Status.LOGGED

    @property
    def is_settled(self) -> bool:
        """Whether the conflict is decided or only logged, and has not been reopened."""
        known = self.status == self.Status.DECIDED or self.is_logged
        return known and self.followed != self.Followed.REOPENED

    @property
    def task(self) -> Task:
        """The task in dispute. Raises ValueError for a card about a whole project."""
        if self.dispute.task is None:
            raise ValueError(f"{self.ref} belongs to a project, not to a task.")
        return self.dispute.task

    @property
    def name(self) -> str:
        """What prompts and people call the conflict: the finding's code, or the task, or the project."""
        if self.finding:
            return self.finding.code
        task = self.dispute.task
        return f"Task {task.ref}" if task else f"Project {self.dispute.project.slug}"

    @property
    def choices(self) -> tuple[options.Choice, ...]:
        """The choices that this card offers (OPT-1)."""
        return options.BETWEEN_STAGES if self.thread_id else options.offered(self.kind, self.origin)

    def choice(self, option: str) -> options.Choice | None:
        """Return the choice for an option, or None if the card does not offer it."""
        return next((each for each in self.choices if each.option == option), None)

    def standing_decision(self) -> "Decision | None":
        """Return the ruling in force, from prefetched decisions if there are any, or None."""
        return next((each for each in self.decisions.all() if each.stands), None)

    def propose(self, found: Synthesis, by: str) -> Proposal:
        """Make a synthesis option C in place of an earlier one; `by` names its author or the rule's basis."""
        with transaction.atomic():
            self.proposal = Proposal.objects.create(
                conflict=self, source=found.source, by_label=by[:BY_MAX], text=found.proposal,
                trade_off=found.trade_off, covers_both=found.covers_both,
            )  # fmt: skip
            self.save(update_fields=["proposal"])
        return self.proposal

    def record_event(self, event: str, /, *, actor: Actor = SYSTEM, note: str = "", **data: Any) -> None:
        """Record that something happened to the conflict, with its name among the event's data."""
        told = {"conflict": self.ref, **data}
        record(self.dispute.project, event, actor=actor, task=self.dispute.task, note=note, data=told)

    # --- Moves. Nobody outside this class writes `status` and `followed`. ---------------------------------

    @property
    def state(self) -> ConflictState:
        """The conflict's state, from both columns."""
        return ConflictState(
            conflict_states.ConflictStatus(self.status),
            conflict_states.Followed(self.followed) if self.followed else "",
        )

    @classmethod
    def begin(cls, *, is_logged: bool = False, **fields: Any) -> "Conflict":
        """Create a conflict, open or only logged. The caller records the event."""
        return cls.objects.create(status=cls.Status.LOGGED if is_logged else cls.Status.OPEN, **fields)

    def move(
        self, verb: str, *, actor: Actor = SYSTEM, note: str = "", data: dict[str, Any] | None = None
    ) -> None:
        """Make one move of the table: row and event in one transaction, by compare-and-set.

        Raises IllegalConflictMove if the table forbids the move, and StaleConflict if somebody was faster.
        """
        old, new = self.state, conflict_states.target(verb, self.state)
        with transaction.atomic():
            seen = Conflict.objects.filter(pk=self.pk, status=old.status, followed=old.followed)
            if not seen.update(status=new.status, followed=new.followed):
                raise StaleConflict(self)
            self.record_event(MOVES[verb].event, actor=actor, note=note, **(data or {}))
        self.status, self.followed = new

    move.alters_data = True  # type: ignore[attr-defined]

    def rule(self, *, actor: Actor, note: str, data: dict[str, Any]) -> None:
        """Mark the conflict as decided; `data` says how. Whether the ruling is followed is not known yet."""
        self.move("rule", actor=actor, note=note, data=data)

    def drop(self, reason: str, *, actor: Actor = SYSTEM) -> None:
        """Make the conflict and the open flags it shows moot, because nobody has to rule on them any more."""
        with transaction.atomic():
            self.move("drop", actor=actor, note=reason, data={"dispute": self.dispute.ref})
            self.flags.open().drop()

    def restore(self, reason: str, *, actor: Actor) -> None:
        """Let the conflict wait for a ruling again, because the reason for dropping it was taken back."""
        self.move("restore", actor=actor, note=reason)

    def undo(self, *, actor: Actor) -> None:
        """Let the conflict wait for a ruling again, because its ruling was taken back."""
        self.move("undo", actor=actor, note=self.ref)

    def reopen(self, reason: str, *, actor: Actor) -> None:
        """Call the ruling into question; a new conflict continues from this one."""
        self.move("reopen", actor=actor, note=reason)

    def mark(self, followed: str, *, actor: Actor = SYSTEM, note: str = "") -> None:
        """Record what has become of the ruling: applied, not honoured, or could not verify.

        Unless it was not honoured, nobody waits for an answer to the card's flags any more.
        """
        if followed != self.Followed.NOT_HONOURED:
            self.flags.settle_asked(is_answered=followed == self.Followed.APPLIED)
        self.move(MARKS[conflict_states.Followed(followed)], actor=actor, note=note)

    def await_again(self, reason: str, *, actor: Actor) -> None:
        """Let the ruling wait to be carried out again, because what was recorded of it is no longer true."""
        self.move("await_again", actor=actor, note=reason)

    def archive(self, reason: str, *, actor: Actor) -> None:
        """Make the conflict moot, whatever its state, because the round in which it came up is taken back."""
        self.move("archive", actor=actor, note=reason)
