"""What there may be to do, told by two small questions. The loop asks them at every turn, and
the large ones only where these say so: a turn in which nothing is to be done costs two queries, however many
projects there are.
"""

from dataclasses import dataclass
from functools import cache

from django.db.models import (
    BooleanField,
    Count,
    Exists,
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
from django.db.models.functions import Cast, Coalesce, Now

from agents.loop.prepared import Prepared
from agents.models import Host, Run, RunQuerySet, Trial
from disputes.completion.checkpoints import UNDER_WAY
from disputes.models import Dispute, Opinion
from tasks.models import Checkpoint, Landing, Project, Review, Submission, Task
from tasks.states import STARTABLE, Status

NOBODY = "{}"  # as a checkpoint keeps who is under way


@dataclass(frozen=True, slots=True)
class Ahead:
    """A project in which something may be due."""

    pk: int
    is_to_go_on: bool  # work may be begun, verified or landed
    is_disputed: bool  # a conflict waits, perhaps for a policy
    is_in_a_turn: bool  # a checkpoint may be due


def projects_ahead() -> list[Ahead]:
    """The active projects in which something may be due; those with the most free seats first."""
    return [Ahead(pk, *map(bool, flags)) for pk, *flags in _ahead.rows() if any(flags)]


def _live() -> RunQuerySet:
    """In the words of the indexes of live runs, so that they serve."""
    return Run.objects.filter(~Q(status=Run.Status.ENDED))


def _projects() -> QuerySet[Project]:
    tasks = Task.objects.filter(project=OuterRef("pk"))
    rested = Q(not_before__isnull=True) | Q(not_before__lte=Now())
    startable = tasks.filter(rested, status__in=STARTABLE, section__is_stopped=False)
    startable = startable.exclude(status=Status.PENDING, waits_for__gt=0)
    seated = _live().filter(project=OuterRef("pk"), status__in=Run.SEATED).order_by().values("project")
    under_way = Landing.objects.filter(status__in=Landing.LIVE)
    checking = under_way.filter(status=Landing.Status.CHECKING).values("project")
    asked = Opinion.objects.wanted().values("conflict__dispute__project")
    newest = Checkpoint.objects.filter(project=OuterRef("pk")).order_by("-number")
    to_go_on = (
        (Q(Exists(startable)) & Q(busy__lt=F("max_parallel")))
        | Q(Exists(tasks.to_land())) | Q(pk__in=checking) | Q(pk__in=asked)
        | Q(kind=Project.Kind.DOCUMENTS)  # its gaps follow its documents
    )  # fmt: skip
    in_a_turn = Q(Exists(tasks.filter(status__in=UNDER_WAY))) | ~Q(begun=NOBODY)
    return (
        Project.objects.filter(status=Project.Status.ACTIVE)
        .annotate(
            busy=Coalesce(Subquery(seated.annotate(n=Count("pk")).values("n"), IntegerField()), 0),
            begun=Coalesce(
                Cast(Subquery(newest.values("under_way")[:1]), TextField()), Value(NOBODY, TextField())
            ),
        )
        .annotate(
            is_to_go_on=ExpressionWrapper(to_go_on, BooleanField()),
            is_disputed=Exists(Dispute.objects.open().filter(project=OuterRef("pk"))),
            is_in_a_turn=ExpressionWrapper(in_a_turn, BooleanField()),
        )
        .order_by("busy", F("last_started_at").asc(nulls_first=True))
        .values_list("pk", "is_to_go_on", "is_disputed", "is_in_a_turn")
    )


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
    """What the host of that key may have to do."""
    found = _at_host(pk).rows()
    if not found:
        return AtHost(False, False, False, False, False, 0)
    *flags, newest_review = found[0]
    return AtHost(*map(bool, flags), newest_review or 0)


@cache
def _at_host(pk: int) -> Prepared:
    def rows() -> QuerySet[Host]:
        return Host.objects.filter(pk=pk).values_list(
            Exists(_live().on_host().filter(host=pk)),
            Exists(Submission.objects.filter(state=Submission.State.RECEIVED)),
            Exists(Run.objects.filter(status=Run.Status.QUEUED)),
            Exists(Landing.objects.filter(status__in=Landing.LIVE)),
            Exists(Trial.objects.filter(status__in=Trial.LIVE))
            | Exists(Project.objects.filter(status=Project.Status.ACTIVE, base_state=Project.Base.UNKNOWN)),
            Subquery(Review.objects.order_by("-pk").values("pk")[:1]),
        )

    return Prepared(rows)
