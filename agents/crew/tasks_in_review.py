"""What the choice of reviewers must know of the tasks in review, in a constant number of queries."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Exists, F, OuterRef, Subquery

from agents.models import Agent, Run
from disputes.models import Conflict
from tasks.models import Finding, Review, Submission, Task


@dataclass(slots=True)
class UnderReview:
    """What the rows say of one task in review."""

    submission: int = 0
    by: str = ""  # who handed it in
    coder: int | None = None
    vendor: str = ""
    names: set[str] = field(default_factory=set)  # whose reviews of this turn are in
    seats: set[str] = field(default_factory=set)  # who is at it
    earlier: set[str] = field(default_factory=set)  # who reviewed the task before
    is_disputed: bool = False

    @property
    def is_in(self) -> bool:
        """Whether a review is there to go by."""
        return bool(self.names)

    def is_by(self, agent: Agent) -> bool:
        """Whether the work is the agent's own."""
        return agent.pk == self.coder or (bool(self.by) and agent.name == self.by)


def facts_of(tasks: Iterable[Task]) -> dict[int, UnderReview]:
    """The facts of each task by its key: three queries."""
    rows = {task.pk: task for task in tasks}
    found = {pk: UnderReview() for pk in rows}
    if not rows:
        return found
    newest = Submission.objects.standing().filter(task=OuterRef("task")).newest_first()
    disputed = Conflict.objects.of(OuterRef("task")).open().disagreements()
    submissions = Submission.objects.filter(task__in=rows, pk=Subquery(newest.values("pk")[:1])).annotate(
        coder=F("run__agent"), made_by=F("run__agent__vendor"), provider=F("run__agent__provider"),
        is_disputed=Exists(disputed),
    )  # fmt: skip
    for each in submissions.defer("diff", "specification", "response", "since_last_round"):
        facts = found[each.task_id]
        facts.submission, facts.by, facts.coder = each.pk, each.by_agent, each.coder
        own = Agent(vendor=each.made_by or "", provider=each.provider or "")
        facts.vendor, facts.is_disputed = each.by_vendor or own.made_by, each.is_disputed
    void = ~Exists(Finding.objects.filter(review=OuterRef("pk"), is_follow_up=False))
    reviews = Review.objects.filter(submission__task__in=rows).annotate(is_empty=void)
    for task, submission, turn, by, verdict, is_empty in reviews.values_list(
        "submission__task", "submission", "turn", "by_agent", "verdict", "is_empty"
    ):
        facts = found[task]
        if submission != facts.submission:
            facts.earlier.add(by)
        elif turn == rows[task].version and not (verdict == Review.Verdict.NEEDS_REVISION and is_empty):
            facts.names.add(by)
        else:
            facts.earlier.add(by)
    seated = Run.objects.filter(task__in=rows, role=Run.Role.REVIEWER, status__in=Run.SEATED)
    for task, seat in seated.values_list("task", "seat"):
        found[task].seats.add(seat)
    return found
