"""What choosing reviewers takes to know about tasks in review, in a constant number of queries."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet, Subquery

from agents.models import Agent, Run
from disputes.models import Conflict
from tasks.models import Finding, Review, Submission, Task
from tasks.models.prepared import Prepared

Rows = tuple[Iterable[Any], Iterable[Any]]  # submissions, reviews
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
    if not rows:
        return found
    submissions, reviews = _of_one(next(iter(rows))) if len(rows) == 1 else _of_all(rows)
    for each in submissions:
        facts = found[each.task_id]
        facts.submission, facts.by, facts.coder = each.pk, each.by_agent, each.coder
        own = Agent(vendor=each.made_by or "", provider=each.provider or "")
        facts.vendor, facts.is_disputed = each.by_vendor or own.made_by, each.is_disputed
    for task, submission, turn, by, verdict, is_empty in reviews:
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


def _submissions(**of_tasks: Any) -> QuerySet[Any]:
    newest = Submission.objects.standing().filter(task=OuterRef("task")).newest_first()
    disputed = Conflict.objects.of(OuterRef("task")).open().disagreements()
    last = Submission.objects.filter(**of_tasks, pk=Subquery(newest.values("pk")[:1])).annotate(
        coder=F("run__agent"), made_by=F("run__agent__vendor"), provider=F("run__agent__provider"),
        is_disputed=Exists(disputed),
    )  # fmt: skip
    return last.defer("diff", "specification", "response", "since_last_round")


def _reviews(**of_tasks: Any) -> QuerySet[Any, Any]:
    void = ~Exists(Finding.objects.filter(review=OuterRef("pk"), is_follow_up=False))
    rows = Review.objects.filter(**of_tasks).annotate(is_empty=void)
    return rows.values_list("submission__task", "submission", "turn", "by_agent", "verdict", "is_empty")


def _seats(**of_tasks: Any) -> QuerySet[Any, Any]:
    seated = Run.objects.filter(**of_tasks, role=Run.Role.REVIEWER, status__in=Run.SEATED)
    return seated.values_list("task", "seat")


def _of_all(tasks: Collection[int]) -> Rows:
    return _submissions(task__in=tasks), _reviews(submission__task__in=tasks)


_submission = Prepared(lambda task: _submissions(task=task))
_reviews_of_it = Prepared(lambda task: _reviews(submission__task=task))
_seats_at_it = Prepared(lambda task: _seats(task=task))


def _of_one(task: int) -> Rows:
    """Return the same for a single task, which is the common case, by prepared queries."""
    return _submission.found(task), _reviews_of_it.found(task)


def _seats_at(tasks: Collection[int], known: Seats | None) -> Seats:
    if known is not None:
        return [(task, seat) for task, seat in known if task in tasks]
    return _seats_at_it.found(next(iter(tasks))) if len(tasks) == 1 else _seats(task__in=tasks)
