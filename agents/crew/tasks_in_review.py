"""What choosing reviewers takes to know about tasks in review, in a constant number of queries."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet, Subquery

from agents.models import Agent, Run
from disputes.models import Conflict
from tasks.database.prepared import PreparedForKeys
from tasks.models import Finding, Review, Submission, Task

Seats = Iterable[tuple[int, str]]  # task and seat of each reviewer at work


@dataclass(slots=True)
class UnderReview:
    """The facts about one task in review."""

    submission: int = 0
    by: str = ""  # who handed it in
    coder: int | None = None
    vendor: str = ""
    names: set[str] = field(default_factory=set)  # reviewers whose reviews of this turn are in
    seats: set[str] = field(default_factory=set)  # seats of reviewers at work
    earlier: set[str] = field(default_factory=set)  # reviewers of earlier turns
    is_disputed: bool = False

    @property
    def is_in(self) -> bool:
        """Whether any review of this turn is in."""
        return bool(self.names)

    def is_by(self, agent: Agent) -> bool:
        """Whether the work is the agent's own."""
        return agent.pk == self.coder or (bool(self.by) and agent.name == self.by)


def facts_of(tasks: Iterable[Task], seats: Seats | None = None) -> dict[int, UnderReview]:
    """Return the facts of each task by its key, in three queries, or two if the caller passes the seats.

    The seats may include those of other tasks.
    """
    rows = {task.pk: task for task in tasks}
    found = {pk: UnderReview() for pk in rows}
    for each in _newest.found(rows):
        facts = found[each.task_id]
        facts.submission, facts.by, facts.coder = each.pk, each.by_agent, each.coder
        own = Agent(vendor=each.made_by or "", provider=each.provider or "")
        facts.vendor, facts.is_disputed = each.by_vendor or own.made_by, each.is_disputed
    for task, submission, turn, by, verdict, is_empty in _reviews.found(rows):
        facts = found[task]
        if submission != facts.submission:
            facts.earlier.add(by)
        elif turn == rows[task].version and not (verdict == Review.Verdict.NEEDS_REVISION and is_empty):
            facts.names.add(by)
        else:
            facts.earlier.add(by)
    for task, seat in _seats_at(rows, seats):
        found[task].seats.add(seat)
    return found


def _newest_of(tasks: Any) -> QuerySet[Any]:
    newest = Submission.objects.standing().filter(task=OuterRef("task")).newest_first()
    disputed = Conflict.objects.of(OuterRef("task")).open().disagreements()
    last = Submission.objects.filter(task__pk__in=tasks, pk=Subquery(newest.values("pk")[:1])).annotate(
        coder=F("run__agent"), made_by=F("run__agent__vendor"), provider=F("run__agent__provider"),
        is_disputed=Exists(disputed),
    )  # fmt: skip
    return last.defer("diff", "specification", "response", "since_last_round")


def _reviews_of(tasks: Any) -> QuerySet[Any, Any]:
    void = ~Exists(Finding.objects.filter(review=OuterRef("pk"), is_follow_up=False))
    rows = Review.objects.filter(submission__task__pk__in=tasks).annotate(is_empty=void)
    return rows.values_list("submission__task", "submission", "turn", "by_agent", "verdict", "is_empty")


def _seats_of(tasks: Any) -> QuerySet[Any, Any]:
    seated = Run.objects.filter(task__pk__in=tasks, role=Run.Role.REVIEWER, status__in=Run.SEATED)
    return seated.values_list("task", "seat")


MANY = 30  # tasks in review on a board, and more than most turns of the loop look at
_newest, _reviews, _seats = (PreparedForKeys(each, MANY) for each in (_newest_of, _reviews_of, _seats_of))


def _seats_at(tasks: Collection[int], known: Seats | None) -> Seats:
    if known is not None:
        return [(task, seat) for task, seat in known if task in tasks]
    return _seats.found(tasks)
