"""Small queries that tell what there may be to do.

The loop runs two of them at every turn and the third now and then, and the large queries only if these say
so. A turn in which nothing is to be done costs two queries, however many projects there are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.conf import settings
from django.db.models import (
    BooleanField,
    Count,
    Exists,
    Expression,
    ExpressionWrapper,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, Now

from agents.models import Host, PullBundle, Run, RunQuerySet, Trial
from disputes.completion.checkpoints import UNDER_WAY
from disputes.models import Amendment, Dispute, Opinion
from tasks.configuration.stages import DEV
from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared
from tasks.models import Checkpoint, Event, Landing, Project, Review, Submission, Task
from tasks.states import Status

NOBODY = "{}"  # what a checkpoint stores if no task is under way
POLICIES = ("on_dispute", "prompt_user", "mediator", "judge_trust", "low_auto_resolve")
TO_PUSH = (Landing.Status.QUEUED, Landing.Status.PUSHING)
OWN_WAYS = ("model_ladder", "stages", "reviewers")


@dataclass(frozen=True, slots=True)
class Ahead:
    """A project in which something may be due, and what that is."""

    pk: int
    has_seat: bool
    to_code: bool  # a coder may begin, or go on
    to_verify: bool  # what was handed in may be built and tested
    to_review: bool
    is_special: bool  # other rules say who may take what can be started
    to_land: bool
    to_check: bool  # what was rebased is to be built and tested
    to_ask: bool  # somebody is asked for an opinion
    has_session: bool  # it is about documents, and its gaps follow them
    has_policy: bool  # a dispute is open that a policy may settle
    is_in_a_turn: bool  # a checkpoint may be due
    newest_event: int

    @property
    def has_work(self) -> bool:
        """Whether a task waits for a run of its own."""
        return self.to_code or self.to_verify or self.to_review or self.is_special

    @property
    def is_anything(self) -> bool:
        return (self.has_seat and self.has_work) or any(getattr(self, name) for name in WITHOUT_SEAT)


WITHOUT_SEAT = ("to_land", "to_check", "to_ask", "has_session", "has_policy", "is_in_a_turn")
FLAGS = [field.name for field in fields(Ahead) if field.type is bool]


def everything(pk: int) -> Ahead:
    """Return an outlook in which everything may be due, so that the whole project is looked at."""
    return Ahead(pk=pk, newest_event=0, **dict.fromkeys(FLAGS, True))


def projects_ahead() -> list[Ahead]:
    """Return the active projects in which something may be due, those with the fewest busy seats first."""
    found = _ahead.rows(a_moment_ago())
    rows = (Ahead(pk, *map(bool, flags), newest or 0) for pk, *flags, newest in found)
    return [ahead for ahead in rows if ahead.is_anything]


def a_moment_ago() -> datetime:
    """Return the time after which a hand-in or a push counts as fresh, so that it will soon be over."""
    return estimated_time() - timedelta(seconds=settings.DURATIONS["fresh"])


def being_kept(project: Combinable, since: Expression) -> QuerySet[Submission]:
    """Return the hand-ins of the project that a host is taking over.

    Each of them holds a seat for that moment, since its task goes on at once. The project is looked up for
    each of these few; with a join, the database may begin with all tasks of the project.
    """
    received = Submission.objects.filter(state=Submission.State.RECEIVED, run__isnull=False)
    its_project = Task.objects.filter(pk=OuterRef("task")).values("project")[:1]
    return received.filter(at__gt=since).alias(its_project=Subquery(its_project)).filter(its_project=project)


def refused() -> QuerySet[Landing]:
    """Return the landings whose push has failed and that have not been pushed since.

    No new task begins in their projects: what it comes to would not land either. The next push that is
    taken ends this by itself; if what was refused before is refused still, that is about its own commit.
    """
    later = Landing.objects.filter(project=OuterRef("project"), status=Landing.Status.LANDED)
    taken = Exists(later.filter(landed_at__gt=OuterRef("at")))
    return Landing.objects.filter(status__in=TO_PUSH).exclude(problem="").exclude(taken)


def refused_in(projects: Iterable[int]) -> dict[int, Landing]:
    """Return the oldest of the refused landings of each of these projects that has any, by project."""
    fields = ("project", "problem", "not_before")
    rows = refused().filter(project__in=projects).only(*fields).order_by("-pk")
    return {landing.project_id: landing for landing in rows}


def last_pushes(since: Expression) -> QuerySet[Landing]:
    """Return the landings for which new work waits: the last fresh one of a branch, and refused ones.

    New work had better begin after that push; otherwise it would be rebased and verified again for nothing.
    It waits for no more than a moment. If others are at work or wait to land, the branch will move under it
    anyway.
    """
    due = Landing.objects.filter(status__in=TO_PUSH)
    others = Landing.objects.filter(project=OuterRef("project"), status__in=Landing.LIVE)
    at_work = Task.objects.ready().filter(project=OuterRef("project"), status__in=UNDER_WAY)
    last = due.exclude(Exists(others.exclude(pk=OuterRef("pk")))).exclude(Exists(at_work))
    fresh = last.filter(at__gt=since, not_before__isnull=True)
    return fresh | refused()


def _live() -> RunQuerySet:
    """Return the live runs, worded like the indexes of live runs, so that the database uses them."""
    return Run.objects.filter(~Q(status=Run.Status.ENDED))


def _has_any(names: tuple[str, ...]) -> Q:
    """Return the condition that a project's settings name one of these."""
    return reduce(or_, [Q(settings__has_key=name) for name in names])


def _projects(since: Expression) -> QuerySet[Project]:
    tasks = Task.objects.filter(project=OuterRef("pk"))
    rested = Q(not_before__isnull=True) | Q(not_before__lte=Now())
    startable = tasks.open_to_agents().filter(rested)
    at_it = _live().filter(project=OuterRef("project"), task=OuterRef("pk"), status__in=Run.SEATED)
    alone = startable.exclude(Exists(at_it.exclude(role__in=Run.OPINION_ROLES)))
    handed_in = Submission.objects.filter(task=OuterRef("pk"))
    kept = Exists(handed_in.filter(state=Submission.State.KEPT))
    verified = Exists(handed_in.filter(state=Submission.State.VERIFIED))
    seated = _live().filter(project=OuterRef("pk"), status__in=Run.SEATED).order_by().values("project")
    kept_now = being_kept(OuterRef("pk"), since).order_by().values("state")
    moves = Exists(last_pushes(since).filter(project=OuterRef("pk")))
    begun = alone.exclude(status__in=[Status.REVIEW, Status.PENDING])
    new = alone.filter(status=Status.PENDING)
    elsewhere = ~Q(stage=DEV.name) | Q(origin=Task.Origin.AMENDMENT)
    under_way = Landing.objects.filter(status__in=Landing.LIVE)
    on_its_way = under_way.filter(submission=OuterRef("accepted"))
    checking = under_way.filter(status=Landing.Status.CHECKING).values("project")
    asked = Opinion.objects.wanted().values("conflict__dispute__project")
    newest = Checkpoint.objects.filter(project=OuterRef("pk")).order_by("-number")
    disputed = Exists(Dispute.objects.open().filter(project=OuterRef("pk")))
    flags = {
        "has_seat": Q(busy__lt=F("max_parallel")),
        "to_code": Q(Exists(begun)) | (Q(Exists(new)) & ~Q(moves)),
        "to_verify": Q(Exists(alone.filter(kept, status=Status.REVIEW))),
        "to_review": Q(Exists(alone.filter(verified, status=Status.REVIEW))),
        "is_special": Q(Exists(startable.filter(elsewhere))) | (_has_any(OWN_WAYS) & Q(Exists(startable))),
        "to_land": Q(Exists(tasks.to_land().exclude(Exists(on_its_way)))),
        "to_check": Q(pk__in=checking),
        "to_ask": Q(pk__in=asked),
        "has_session": Q(kind=Project.Kind.DOCUMENTS),
        "has_policy": _has_any(POLICIES) & Q(disputed),
        "is_in_a_turn": Q(Exists(tasks.ready().filter(status__in=UNDER_WAY))) | ~Q(begun=NOBODY),
    }
    return (
        Project.objects.filter(status=Project.Status.ACTIVE)
        .annotate(
            busy=_counted(seated) + _counted(kept_now),
            begun=Coalesce(
                Cast(Subquery(newest.values("under_way")[:1]), TextField()), Value(NOBODY, TextField())
            ),
            newest_event=Subquery(
                Event.objects.filter(project=OuterRef("pk")).order_by("-pk").values("pk")[:1]
            ),
        )
        .annotate(**{name: ExpressionWrapper(flag, BooleanField()) for name, flag in flags.items()})
        .order_by("busy", F("last_started_at").asc(nulls_first=True))
        .values_list("pk", *FLAGS, "newest_event")
    )


def _counted(rows: QuerySet[Any, Any]) -> Coalesce:
    return Coalesce(Subquery(rows.annotate(n=Count("pk")).values("n"), IntegerField()), 0)


_ahead = Prepared(_projects)


@dataclass(frozen=True, slots=True)
class AtHost:
    """What a host may have to do."""

    holds_runs: bool
    received: bool  # a hand-in is to be kept
    queued: bool  # a run is to be begun
    lands: bool
    tries: bool  # commands are tried on a branch, or a branch is not known yet
    newest_review: int

    @property
    def is_anything(self) -> bool:
        return self.holds_runs or self.received or self.queued or self.lands or self.tries


def at_host(pk: int) -> AtHost:
    """Return what the host with that key may have to do."""
    found = _at_host.rows(pk)
    if not found:
        return AtHost(False, False, False, False, False, 0)
    *flags, newest_review = found[0]
    return AtHost(*map(bool, flags), newest_review or 0)


def _of_host(pk: Expression) -> QuerySet[Host]:
    return Host.objects.filter(pk=pk).values_list(
        Exists(_live().on_host().filter(host=pk)),
        Exists(Submission.objects.filter(state=Submission.State.RECEIVED)),
        Exists(Run.objects.filter(status=Run.Status.QUEUED)),
        Exists(Landing.objects.filter(status__in=Landing.LIVE)),
        Exists(Trial.objects.filter(status__in=Trial.LIVE))
        | Exists(Project.objects.filter(status=Project.Status.ACTIVE, base_state=Project.Base.UNKNOWN)),
        Subquery(Review.objects.order_by("-pk").values("pk")[:1]),
    )


_at_host = Prepared(_of_host)


@dataclass(frozen=True, slots=True)
class NowAndThen:
    """What may have to be looked at although nobody rings for it."""

    pulled: bool  # agents elsewhere have runs, or left commits
    held: bool  # a host holds runs, whose leases may be over
    queued: bool  # a run waits whose turn may be over
    asked: bool  # an opinion, perhaps about what is settled
    disputes: bool  # about a task that has ended
    tried: bool  # a branch may be looked at, or commands are tried on one
    recorded: bool  # a project keeps its records on a branch
    set_aside: bool  # a project wants disputed work pushed
    followed: bool  # a project follows a list of tasks
    amended: bool  # a ruling is on its way into the specification


def now_and_then() -> NowAndThen:
    """Return what may have to be looked at now and then."""
    found = _now_and_then.rows()
    return NowAndThen(*map(bool, found[0])) if found else NowAndThen(*[False] * len(fields(NowAndThen)))


def _of_nobody() -> QuerySet[Project]:
    over = [Status.COMPLETED, Status.CANCELLED]
    under_way = [Amendment.State.ASKED, Amendment.State.APPROVED]
    projects = Project.objects.all()
    return Project.objects.order_by("pk").values_list(
        Exists(_live().filter(is_pulled=True)) | Exists(PullBundle.objects.all()),
        Exists(_live().on_host().filter(is_pulled=False)),
        Exists(Run.objects.filter(status=Run.Status.QUEUED)),
        Exists(Opinion.objects.asked()),
        Exists(Dispute.objects.live().filter(task__status__in=over)),
        Exists(projects.filter(status=Project.Status.ACTIVE))
        | Exists(Trial.objects.filter(status__in=Trial.LIVE)),
        Exists(projects.filter(settings__has_key="records_branch")),
        Exists(projects.filter(settings__has_key="disputed_work")),
        Exists(projects.filter(settings__has_key="todo_path")),
        Exists(Amendment.objects.filter(state__in=under_way)),
    )[:1]


_now_and_then = Prepared(_of_nobody)  # all these rows belong to projects: if there is none, nothing is due
