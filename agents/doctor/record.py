"""Checks of the rows about tasks, rulings and landings."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from django.db.models import Count, Exists, F, Max, OuterRef, Q
from django.db.models.functions import Coalesce

from agents.doctor.checks import Finding
from agents.models import Run
from agents.verification import commands, verdicts
from agents.verification.verifying import TOLD
from disputes.models import Conflict, Decision, Dispute
from tasks import dependencies
from tasks.models import Event, Landing, Project, Review, Submission, Task, Verification
from tasks.models import Finding as Point
from tasks.states import MOVES, Status
from tasks.text.counting import counted

ASK = "Nothing here mends that. Keep a backup of the data folder as it is, and report what you see."


# --- Statuses and their events ----------------------------------------------------------------------------


def statuses() -> Iterator[Finding]:
    """Check that each task has the status of its last event, and each event begins where the last ended."""
    now = {task.pk: task for task in _tasks()}
    last: dict[int, str] = {}
    moves: Counter[int] = Counter()
    events = Event.objects.filter(task__isnull=False).exclude(to_status="").order_by("pk")
    for task, kind, old, new in events.values_list("task", "kind", "from_status", "to_status").iterator():
        before = last.get(task)
        if task in now and before is not None and before != old:
            yield Finding(f"{now[task].ref} left {old}, but was {before}: a change has no event.", ASK)
        last[task] = new
        moves[task] += kind in MOVES
    ended = set(Event.objects.filter(kind="project_ended").values_list("project", flat=True))
    for task in now.values():
        if task.status != last.get(task.pk, Status.PENDING):
            yield Finding(f"{task.ref} is {task.status}, but its events end with {last.get(task.pk)}.", ASK)
        elif task.version < moves[task.pk] or (
            task.version > moves[task.pk] and task.project_id not in ended
        ):
            yield Finding(f"{task.ref} counts {task.version} turns, and has {moves[task.pk]} events.", ASK)


def _tasks() -> Any:
    rows = Task.objects.select_related("project").order_by("pk")
    return rows.only("number", "status", "version", "project__slug").iterator(chunk_size=2000)


# --- Rulings ----------------------------------------------------------------------------------------------


def rulings() -> Iterator[Finding]:
    """Check that each settled conflict has one standing ruling, and that an event names who ruled what."""
    standing = Count("decisions", filter=Q(decisions__revoked_at=None, decisions__archived_by=None))
    wrong = Conflict.objects.annotate(n=standing).exclude(
        Q(status=Conflict.Status.DECIDED, n=1) | (~Q(status=Conflict.Status.DECIDED) & Q(n=0))
    )
    for conflict in wrong:
        rulings = counted(conflict.n, "standing ruling")
        yield Finding(f"{conflict.ref} is {conflict.status} and has {rulings}.", ASK)
    told: dict[Any, set[tuple[Any, ...]]] = defaultdict(set)
    for data, kind, user in Event.objects.filter(kind="ruled").values_list("data", "actor_kind", "user"):
        told[data.get("conflict")].add((data.get("option"), kind, user or data.get("policy_set_by")))
    for decision in Decision.objects.standing().select_related("conflict"):
        by = decision.user_id or decision.policy_set_by_id
        if (decision.option, decision.authority, by) not in told[decision.conflict.ref]:
            yield Finding(f"No event names who ruled {decision.option} on {decision.conflict.ref}.", ASK)


# --- Landings ---------------------------------------------------------------------------------------------


def landed_work() -> Iterator[Finding]:
    """Check that what landed was green when it landed, and approved by another run or settled by people."""
    landed = Landing.objects.filter(status=Landing.Status.LANDED).select_related(
        "submission", "project", "task__project"
    )
    for landing in landed.defer("submission__diff", "submission__specification", "submission__response"):
        what = f"{landing.sha[:12]} of {landing.task.ref}"
        if not _was_green(landing):
            yield Finding(
                f"{what} landed, and no build and tests of that commit were green.",
                "Build and test the target branch now; revert the commit where it breaks something.",
            )
        if not _was_approved(landing.submission):
            yield Finding(
                f"{what} landed without an approval by somebody else and without a ruling.",
                "Let somebody review the commit on the target branch; revert it where it is wrong.",
            )


def _was_green(landing: Landing) -> bool:
    """Whether the landed commit was green, or the project lets red tests pass, now or when they ran."""
    sha = landing.sha
    if sha == landing.submission.sha and landing.submission.state == Submission.State.VERIFIED:
        return True
    known = Verification.objects.filter(project=landing.project_id, sha=sha, fault="").order_by("-at").first()
    if known is None:
        return False
    if known.green or verdicts.is_only_told(landing.project, known.step):
        return True
    told = Event.objects.filter(task=landing.task_id, kind="verified_red", note__contains=TOLD)
    return known.step == commands.TESTS and told.filter(data__sha=sha).exists()


def _was_approved(submission: Submission) -> bool:
    reviews = Review.objects.filter(submission=submission)
    of_its_coder = Run.objects.filter(review=OuterRef("pk"), submission=submission)
    approving = reviews.exclude(verdict=Review.Verdict.NEEDS_REVISION).exclude(Exists(of_its_coder))
    if approving.exists():
        return True
    card = Conflict.objects.filter(finding=OuterRef("origin"))
    points = Point.objects.filter(review__submission=submission, mandatory=True)
    loose = points.annotate(origin=Coalesce("first", "pk")).exclude(Exists(card))
    return reviews.exists() and not loose.exists()


def ends_of_landings() -> Iterator[Finding]:
    """Check that an approved commit landed only once, and that every landing has an event that says so."""
    twice = (
        Landing.objects.filter(status=Landing.Status.LANDED).values("submission", "sha")
        .annotate(n=Count("pk")).filter(n__gt=1)
    )  # fmt: skip
    for row in twice:
        yield Finding(f"{row['sha'][:12]} is written down as landed {row['n']} times.", ASK)
    said = Event.objects.filter(kind__in=["landed", "landed_late"]).values_list("task", "data")
    known = {(task, data.get("sha")) for task, data in said}
    for landing in Landing.objects.filter(status=Landing.Status.LANDED).select_related("task__project"):
        if (landing.task_id, landing.sha) not in known:
            yield Finding(f"{landing.sha[:12]} of {landing.task.ref} landed, and no event says so.", ASK)
    proven = Landing.objects.filter(task=OuterRef("pk"), sha=OuterRef("landed_sha"), status="landed")
    for task in (
        Task.objects.filter(landed_at__isnull=False).exclude(Exists(proven)).select_related("project")
    ):
        yield Finding(
            f"{task.ref} counts as landed at {task.landed_sha[:12]}, which no landing brought.", ASK
        )
    astray = Task.objects.filter(accepted__isnull=False, landed_at=None)
    for task in astray.exclude(status__in=[Status.COMPLETED, Status.DISPUTED]).select_related("project"):
        yield Finding(f"{task.ref} is {task.status}, yet a commit of it is to land.", ASK)


# --- Projects and counts ----------------------------------------------------------------------------------

# Rows that name two others: both must be of one project, or people of one would read the other's.
LINKS: list[tuple[Any, str, str]] = [
    (Run, "project", "task__project"),
    (Landing, "project", "task__project"),
    (Landing, "task", "submission__task"),
    (Dispute, "project", "task__project"),
    (Event, "project", "task__project"),
    (Task, "project", "section__project"),
    (Task, "pk", "accepted__task"),
    (Point, "task", "review__submission__task"),
    (Run, "task", "submission__task"),
    (Run, "task", "review__submission__task"),
    (Conflict, "dispute__task", "finding__task"),
    (Conflict, "dispute__task", "submission__task"),
]


def one_project() -> Iterator[Finding]:
    """Check that what the members of one project may read leads to no other project."""
    for model, own, other in LINKS:
        strays = model.objects.filter(**{f"{other}__isnull": False}).exclude(**{own: F(other)})
        for pk in strays.order_by("pk").values_list("pk", flat=True)[:10]:
            name = model._meta.verbose_name
            yield Finding(
                f"The {name} {pk} belongs to one {'project' if 'project' in own else 'task'} and names "
                f"another by {other.rpartition('__')[0]}.", ASK,
            )  # fmt: skip


def counts() -> Iterator[Finding]:
    """Check that task numbers have no gap, hand-ins have their rows, and waits are counted right."""
    for project in Project.objects.annotate(n=Count("tasks"), last=Max("tasks__number")).filter(n__gt=0):
        if project.n != project.last:
            tasks = counted(project.n, "task")
            yield Finding(f"{project.slug} has {tasks}, and the last one has the number {project.last}.", ASK)
    handed = _per_task(Event.objects.filter(kind="submit"))
    there = _per_task(Submission.objects.filter(kind=Submission.Kind.COMMITS))
    wrong = {task for task in handed.keys() | there.keys() if handed.get(task) != there.get(task)}
    for task in Task.objects.filter(pk__in=wrong).select_related("project"):
        yield Finding(
            f"{task.ref} was handed in {counted(handed.get(task.pk, 0), 'time')}, "
            f"and has {counted(there.get(task.pk, 0), 'submission')}.", ASK,
        )  # fmt: skip
    for task, count in _miscounted():
        by_row = counted(task.waits_for, "other")
        yield Finding(f"{task.ref} waits for {by_row} by its row, for {count} in fact.", MEND)


MEND = "Run `manage.py doctor --repair`, which counts again."


def _per_task(rows: Any) -> dict[int, int]:
    return dict(rows.order_by().values_list("task").annotate(n=Count("pk")).values_list("task", "n"))


def _waiting() -> list[Task]:
    """Return the tasks that may wait for others: only those that have not begun do."""
    return list(Task.objects.filter(status=Status.PENDING).select_related("project", "section"))


def _miscounted() -> list[tuple[Task, int]]:
    waiting = _waiting()
    counts = dependencies.counts_of(waiting)
    return [(task, counts[task.pk]) for task in waiting if task.waits_for != counts[task.pk]]


def count_anew() -> Iterator[str]:
    """Correct the counts of tasks that wait for a wrong number of others."""
    wrong = _miscounted()
    dependencies.recount([task for task, _ in wrong])
    yield from (f"{task.ref} waits for {counted(count, 'other')}." for task, count in wrong)
