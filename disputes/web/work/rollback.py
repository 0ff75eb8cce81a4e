"""The page on which rounds of a task are taken back: what each contains, and what would become of it."""

from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from django.utils.functional import cached_property

from disputes.completion import rollbacks, root_causes
from disputes.models import Conflict, Decision
from tasks.access import MAINTAIN, RULE, may
from tasks.models import Landing, Review, Rollback, Submission, Task
from tasks.states import MOVES
from tasks.text.counting import counted, enumerated

ARCHIVED_MAX = 50
EARLIER_MAX = 10
REMEDIES = [
    ("Split the gap", "Add smaller tasks and cancel this one."),
    ("Add context", "Say more in the task's text, or name its source."),
    ("Reassign", "Give it tags that choose another agent."),
    ("Take the best output there is", "Rule for the {coder} on what is open, or finish it by hand."),
    ("Pause", "Defer it."),
]


@dataclass
class Round:
    """One round that was not rolled back, with what came of it."""

    number: int
    submissions: list[Submission] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)

    @property
    def last(self) -> Submission:
        return self.submissions[-1]


@dataclass(frozen=True, slots=True)
class RollbackChoice:
    """A round after which the task may begin again, and what that means in words."""

    to_round: int
    title: str
    consequence: str


@dataclass(frozen=True, slots=True)
class Archived:
    """A ruling that a rollback archived, and the ruling that repeats it, if there is one."""

    ruling: Decision
    again: Decision | None
    text: str  # the words with which to repeat it: the ruling's, or what was typed
    refusal: str = ""


@dataclass
class RollbackPage:
    """A task and its rounds, for a person who may take them back."""

    task: Task
    user: Any
    typed: dict[str, str] = field(default_factory=dict)

    @cached_property
    def may_roll_back(self) -> bool:
        return may(self.user, self.task.project, MAINTAIN)

    @cached_property
    def may_rule(self) -> bool:
        return may(self.user, self.task.project, RULE)

    @cached_property
    def rounds(self) -> list[Round]:
        """The rounds that were not rolled back, newest first."""
        standing = (
            self.task.submissions.standing()
            .order_by("round", "attempt")
            .defer("diff", "specification", "response")
        )
        found = {
            number: Round(number, submissions=list(those))
            for number, those in groupby(standing, key=lambda submission: submission.round)
        }
        reviews = Review.objects.standing().filter(submission__task=self.task).select_related("submission")
        for review in reviews.prefetch_related("findings").defer("text").order_by("pk"):
            found[review.submission.round].reviews.append(review)
        conflicts = Conflict.objects.of(self.task).standing()
        for conflict in conflicts.select_related("submission", "dispute").order_by("pk"):
            if conflict.submission and conflict.submission.round in found:
                found[conflict.submission.round].conflicts.append(conflict)
        return sorted(found.values(), key=lambda each: -each.number)

    @cached_property
    def why_not(self) -> str:
        """Why nothing can be taken back, or "" if something can."""
        if self.task.status not in MOVES["rollback"].sources:
            return f"It is {self.task.get_status_display().lower()}: nothing of it can be taken back."
        if not self.rounds:
            return "There is no hand-in to take back."
        if not rollbacks.left(self.task):
            return "The budget of rollbacks is used up. Rule on what is left, cancel the task, or rewrite it."
        return ""

    @cached_property
    def landed(self) -> str:
        """The commit of the task that is on the target branch or is being pushed there, or ""."""
        landing = self.task.landings.filter(status__in=rollbacks.PUSHED).order_by("-pk").first()
        return landing.sha if landing else self.task.landed_sha

    @property
    def may_revert(self) -> bool:
        """Whether something has landed; what is only being pushed may still be refused by the remote."""
        landed = self.task.landings.filter(status=Landing.Status.LANDED).exists()
        return self.may_roll_back and (landed or bool(self.task.landed_sha))

    @cached_property
    def choices(self) -> list[RollbackChoice]:
        """The points from which the task may begin again, newest first."""
        if self.why_not or not self.may_roll_back:
            return []
        return [
            self._choice(to_round)
            for to_round in rollbacks.choices(self.task)
            if rollbacks.landed_in(self.task, to_round) is None and not self.task.landed_at
        ]

    def _choice(self, to_round: int) -> RollbackChoice:
        taken = [each for each in self.rounds if each.number > to_round]
        numbers = sorted(each.number for each in taken)
        span = f"round {numbers[0]}" if len(numbers) == 1 else f"rounds {numbers[0]} to {numbers[-1]}"
        left = next((each for each in self.rounds if each.number == to_round), None)
        start = f"from commit {left.last.sha[:10]}" if left and left.last.sha else "from the target branch"
        return RollbackChoice(
            to_round, f"Take back {span}",
            f"Listed, but no longer counted: {_counted(taken)}. Round {to_round + 1} begins again {start}; "
            "runs under way are stopped.",
        )  # fmt: skip

    @cached_property
    def earlier(self) -> list[Rollback]:
        return list(self.task.rollbacks.order_by("-pk")[:EARLIER_MAX])

    @cached_property
    def archived(self) -> list[Archived]:
        """The archived rulings, newest first, each with whether it was or can be made again."""
        rulings = list(rollbacks.archived(self.task)[:ARCHIVED_MAX])
        again = rollbacks.applied_again(rulings)
        return [
            Archived(
                ruling,
                again.get(ruling.pk),
                self.typed.get(f"text-{ruling.pk}", ruling.text),
                _why_never(ruling),
            )
            for ruling in rulings
        ]

    @cached_property
    def analysis(self) -> root_causes.Analysis | None:
        """What the tries at the present round have in common, if it was taken back and tried often enough."""
        return root_causes.of(self.task)

    @property
    def remedies(self) -> list[tuple[str, str]]:
        """What people may do then, and how it is done here (RB-6)."""
        coder = self.task.project.coder_word
        return [(title, how.format(coder=coder)) for title, how in REMEDIES]


def _why_never(ruling: Decision) -> str:
    if ruling.conflict.kind != Conflict.Kind.DISAGREEMENT:
        return "It was no ruling on a disagreement, and is not made again."
    return ""


def _counted(rounds: list[Round]) -> str:
    """Return how much these rounds contain, in words."""
    decided = Conflict.Status.DECIDED
    counts = [
        (sum(len(each.submissions) for each in rounds), "submission"),
        (sum(len(review.findings.all()) for each in rounds for review in each.reviews), "finding"),
        (sum(c.is_open for each in rounds for c in each.conflicts), "open conflict"),
        (sum(c.status == decided for each in rounds for c in each.conflicts), "ruling"),
    ]
    parts = [counted(number, word) for number, word in counts if number]
    return enumerated(parts)
