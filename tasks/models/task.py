from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from tasks import states
from tasks.configuration import stages
from tasks.database.locking import locked
from tasks.database.prepared import Prepared
from tasks.errors import Refused
from tasks.models.choices import SEVERITY_CHOICES, STATUS_CHOICES
from tasks.models.moments import MomentField
from tasks.models.project import Project, Section
from tasks.models.task_moves import TaskMoves
from tasks.states import Severity, Status

if TYPE_CHECKING:
    from tasks.models.submission import Submission

RANK_STEP = 1024
DIGITS_MAX = 9  # of a task's number


def parts_of(ref: str) -> tuple[str, int] | None:
    """Return the project's slug and the number of the task of that name (ledger-214); None if it is none."""
    slug, _, number = ref.rpartition("-")
    is_number = number.isascii() and number.isdigit() and len(number) <= DIGITS_MAX
    return (slug, int(number)) if is_number else None


# Work under way and reviews wait for no dependency. The statuses have a fixed order, since SQLite uses the
# index only if a query repeats its condition word by word.
IS_READY = Q(status__in=sorted(status.value for status in states.STARTABLE)) & ~Q(
    status=Status.PENDING.value, waits_for__gt=0
)
FEW = 200  # a search that finds at most so many tasks is repeated by their keys


class TaskQuerySet(models.QuerySet["Task"]):
    def startable(self, by: Any = None) -> "TaskQuerySet":
        """Return what the loop may pick, in its order: reviews, work under way, new work; each by rank.

        With `by`, also what will have rested enough then; without it, the database's clock decides.
        """
        order = models.Case(
            *[
                models.When(status=status, then=states.MEANINGS[status].order)
                for status in sorted(states.STARTABLE)
            ],
            output_field=models.SmallIntegerField(),
        )
        return (
            self.in_the_loop()
            .open_to_agents()
            .filter(Q(not_before__isnull=True) | Q(not_before__lte=by or Now()))
            .alias(pick_order=order)
            .order_by("pick_order", "rank")
        )

    def read_once(self) -> "TaskQuerySet":
        """Return the same tasks, selected by their keys if they are few, so that no text is searched again.

        This is for searches: no index finds a part of a word, so the text of every row is read, and counting
        and listing would each do so. If many tasks match, it is less work to read in the order of the list
        until a page is full.
        """
        keys = list(self.order_by().values_list("pk", flat=True)[: FEW + 1])
        return self.filter(pk__in=keys) if len(keys) <= FEW else self

    def open_to_agents(self) -> "TaskQuerySet":
        """Return the tasks that agents may work on, outside stopped sections and waiting for nothing."""
        return self.ready().filter(section__is_stopped=False)

    def ready(self) -> "TaskQuerySet":
        """Return the tasks that wait for no other: work under way, reviews, and new work."""
        return self.filter(IS_READY)

    def in_the_loop(self) -> "TaskQuerySet":
        """Return the tasks for which agents are started: in a project of documents its session, not the gaps.

        A session that has given out no gap has no work for its engineer, and an amendment has none for a
        coder.
        """
        given = Task.objects.gaps().filter(project=models.OuterRef("project"), status=Status.IN_PROGRESS)
        unused = Q(origin=Task.Origin.ROUNDS, status__in=[Status.PENDING, Status.IN_PROGRESS])
        uncoded = Q(origin=Task.Origin.AMENDMENT, status__in=[Status.PENDING, Status.IN_PROGRESS])
        worked = ~Q(project__kind=Project.Kind.DOCUMENTS) | Q(origin__in=[*Task.BESIDE_GAPS])
        return self.filter(worked).exclude(unused & ~models.Exists(given)).exclude(uncoded)

    def gaps(self) -> "TaskQuerySet":
        """Leave out sessions, set-up tasks and amendments, so that what people asked for remains."""
        return self.exclude(origin__in=Task.BESIDE_GAPS)

    def named(self, ref: str) -> "TaskQuerySet":
        """Return the task of that name, such as ledger-214; nothing if the name is none."""
        name = parts_of(ref)
        return self.filter(project__slug=name[0], number=name[1]) if name else self.none()

    def searched(self, words: str) -> "TaskQuerySet":
        """Return the tasks that somebody may mean who types such a name, in large or small letters."""
        name = parts_of(words.strip())
        return self.filter(project__slug__iexact=name[0], number=name[1]) if name else self.none()

    def to_land(self) -> "TaskQuerySet":
        """Return the tasks that are accepted and not yet on the target branch."""
        return self.filter(accepted__isnull=False, landed_at__isnull=True)

    def can(self, verb: str) -> "TaskQuerySet":
        """Return the tasks whose status `verb` may change, by the table of moves."""
        return self.filter(status__in=filter(states.MOVES[verb].leads_on_from, Status))


class Task(TaskMoves):
    """A unit of work that a person asked for."""

    class Origin(models.TextChoices):
        HAND = "hand", "By hand"
        TODO = "todo", "TODO.md"
        IMPORT = "import", "Imported"
        SETUP = "setup", "Set-up"  # its result is the commands with which the others are verified
        AMENDMENT = "amend", "Amendment"  # the program wrote its commit, and a person approved it
        ROUNDS = "rounds", "Rounds"  # the session of a project of documents, whose other tasks are its gaps

    BESIDE_GAPS = (Origin.ROUNDS, Origin.SETUP, Origin.AMENDMENT)
    # The columns that say what is asked for, in the words that people use for them.
    ASKED_FOR = {"title": "title", "body": "description", "source": "specification"}

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="tasks", db_index=False)
    section = models.ForeignKey(Section, on_delete=models.PROTECT, related_name="tasks", db_index=False)
    number = models.PositiveIntegerField()
    rank = models.BigIntegerField(default=0)
    title = models.CharField(max_length=300)
    body = models.TextField(ASKED_FOR["body"], blank=True)
    source = models.CharField(
        ASKED_FOR["source"], max_length=300, blank=True,
        help_text="A file or a section of one, such as docs/SPEC.md#login, read at the base commit.",
    )  # fmt: skip
    tags = models.JSONField(default=list, blank=True)
    gap = models.CharField(
        max_length=20, blank=True, help_text="What documents call it: GAP-AUTH-001. Empty: it is no gap."
    )
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children",
        help_text="The gap out of whose work it came up.",
    )  # fmt: skip
    severity = models.CharField(max_length=8, choices=SEVERITY_CHOICES, default=Severity.MEDIUM.value)
    status = models.CharField(
        max_length=11, choices=STATUS_CHOICES, default=Status.PENDING.value, editable=False
    )
    stage = models.CharField(max_length=40, default="dev", editable=False)
    home_stage = models.CharField(
        max_length=40, blank=True, editable=False,
        help_text="Where an escalated or sent-back task goes on afterwards.",
    )  # fmt: skip
    escalation = models.CharField(
        max_length=20, blank=True, editable=False, help_text="Why it was escalated: concurrency, unknown."
    )
    round = models.PositiveSmallIntegerField(default=0, editable=False)
    version = models.PositiveBigIntegerField(default=0, editable=False, help_text="Counts turns.")
    waits_for = models.PositiveSmallIntegerField(default=0, editable=False)
    not_before = models.DateTimeField(null=True, blank=True, editable=False)
    accepted = models.ForeignKey(
        "tasks.Submission", null=True, blank=True, editable=False, on_delete=models.PROTECT, related_name="+"
    )
    landed_sha = models.CharField(max_length=64, blank=True, editable=False)
    landed_at = models.DateTimeField(null=True, blank=True, editable=False)
    rejections = models.PositiveSmallIntegerField(default=0, editable=False)
    finished_by = models.CharField(
        max_length=6, blank=True, editable=False,
        choices=[("hand", "By hand"), ("import", "Imported"), ("review", "Accepted by its review")],
    )  # fmt: skip
    counts_since = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Failures before it no longer count."
    )
    origin = models.CharField(max_length=6, choices=Origin, default=Origin.HAND, editable=False)
    created_at = MomentField(editable=False)
    status_at = MomentField(editable=False)
    depends_on = models.ManyToManyField(
        "self", through="Dependency", symmetrical=False, blank=True, related_name="dependants"
    )

    objects = TaskQuerySet.as_manager()

    class Meta:
        ordering = ["project", "rank"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="task_number_once"),
            models.UniqueConstraint(fields=["project", "gap"], condition=~Q(gap=""), name="task_gap_once"),
            models.CheckConstraint(condition=~Q(parent=F("id")), name="task_not_its_own_parent"),
            models.CheckConstraint(
                condition=Q(status__in=list(dict(STATUS_CHOICES))), name="task_status_known"
            ),
            models.CheckConstraint(
                condition=Q(severity__in=list(dict(SEVERITY_CHOICES))), name="task_severity_known"
            ),
            models.CheckConstraint(
                condition=Q(landed_at__isnull=True, landed_sha="")
                | (Q(landed_at__isnull=False) & ~Q(landed_sha="")),
                name="task_landed_has_sha_and_time",
            ),
            models.CheckConstraint(
                condition=~Q(status="completed") | Q(accepted__isnull=False) | ~Q(finished_by=""),
                name="task_completed_has_a_reason",
            ),
        ]
        indexes = [
            # For the tick's query per project; partial, so that a million finished tasks cost nothing.
            models.Index(fields=["project", "status", "rank"], name="task_startable", condition=IS_READY),
            models.Index(
                fields=["project"],
                name="task_to_land",
                condition=Q(accepted__isnull=False, landed_at__isnull=True),
            ),
            # For listing the tasks of a project, which are read in this order until a page is full.
            models.Index(fields=["project", "rank", "number"], name="task_in_order"),
            models.Index(fields=["section", "status"], name="task_by_section"),
            # For the board's columns and their counts. The status comes before the stage, so that finished
            # tasks are skipped.
            models.Index(fields=["project", "status", "stage", "rank"], name="task_board"),
            models.Index(fields=["project", "status", "-status_at"], name="task_done"),
            # For asking whether any task is in the columns of specialists.
            models.Index(
                fields=["project", "status", "stage"], name="task_escalated", condition=~Q(escalation="")
            ),
            # For what landed last, and for how much of a section has landed.
            models.Index(fields=["-landed_at"], name="task_landed", condition=Q(landed_at__isnull=False)),
            models.Index(
                fields=["section", "status"], name="task_landed_of", condition=Q(landed_at__isnull=False)
            ),
            models.Index(
                fields=["section", "status"], name="task_left_of", condition=Q(landed_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.ref} {self.title}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self._state.adding:
            self.put_before_first_stage()
        super().save(*args, **kwargs)

    def put_before_first_stage(self) -> None:
        """Put a new task before the project's first stage, if nobody has begun it.

        Saving a new task does this; it has to be called for rows that are created in bulk.
        """
        if self.round == 0 and self.status == Status.PENDING:
            self.stage = stages.first_stage(self.project.config).name

    @property
    def ref(self) -> str:
        """The name that people and agents use, such as ledger-214."""
        return f"{self.project.slug}-{self.number}"

    @property
    def is_over(self) -> bool:
        """Whether it was cancelled, or finished without a landing: nobody has to rule on it any more."""
        return self.status == Status.CANCELLED or bool(self.status == Status.COMPLETED and self.finished_by)

    @property
    def is_session(self) -> bool:
        """Whether the task is a session, whose rounds are about the gaps of its project."""
        return self.origin == self.Origin.ROUNDS

    @property
    def is_gap(self) -> bool:
        """Whether the task is a gap: its rounds are those of its project's session."""
        return self.project.kind == Project.Kind.DOCUMENTS and self.origin not in self.BESIDE_GAPS

    @property
    def marker(self) -> str:
        """The task's box in TODO.md, such as "[x]"."""
        return f"[{states.MEANINGS[Status(self.status)].marker}]"

    @property
    def where(self) -> str:
        """The task's stage among those of the project, for people; empty if the project has only one."""
        if not self.escalation and "stages" not in self.project.settings:
            return ""
        is_escalated = bool(self.escalation)
        return stages.where(self.project.config, self.stage, self.home_stage, is_escalated=is_escalated)

    def last_submission(self) -> "Submission | None":
        """Return the newest submission of the rounds that were not rolled back, or None."""
        found: Submission | None = _last_standing.first(self.pk)
        if found is not None:
            found.task = self
        return found


def _standing(task: models.Expression) -> "models.QuerySet[Submission]":
    submissions: Any = apps.get_model("tasks", "Submission")
    return submissions.objects.standing().filter(task=task).newest_first()[:1]


_last_standing = Prepared(_standing)
_with_section = Task.objects.select_related("project", "section")
_locked = Prepared(lambda pk: locked(_with_section).filter(pk=pk).order_by())


def locked_task(pk: int) -> Task:
    """Return the task with its project and section, locked until the transaction ends.

    Raises Refused("gone") if the task was deleted meanwhile, with its project.
    """
    found: Task | None = _locked.first(pk)
    if found is None:
        raise Refused("gone", "The task was deleted meanwhile, with its project.", "Reload.", status=404)
    return found


class Dependency(models.Model):
    """A link by which `task` starts only after `on` has landed."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="dependencies", db_index=False)
    on = models.ForeignKey(
        Task, on_delete=models.CASCADE, related_name="dependant_links", verbose_name="task that lands first"
    )

    class Meta:
        verbose_name_plural = "dependencies"
        constraints = [
            models.UniqueConstraint(fields=["task", "on"], name="dependency_once"),
            models.CheckConstraint(condition=~Q(task=F("on")), name="dependency_not_on_itself"),
        ]

    def __str__(self) -> str:
        return f"{self.task.ref} after {self.on.ref}"
