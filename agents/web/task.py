"""The page of a task: where it stands, its rounds, its diff, its log, and what was said and done."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, F, FilteredRelation, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Left, Right
from django.utils.functional import cached_property

from agents.crew import attempts, choosing
from agents.models import Run
from agents.money import spending
from agents.web import costs, log, moves, standing
from agents.web.runs import RunRow
from disputes.models import Conflict
from disputes.protocol.rulings.options import letter
from disputes.web.dispute.code import Diff, parse_diff
from disputes.web.view_helpers import read_with
from disputes.web.work.comments import Discussion
from disputes.web.work.history import newest_events
from tasks.access import RULE
from tasks.configuration.ladder import place_of
from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared
from tasks.models import Answer, Event, Review, Submission, Task, Verification
from tasks.states import UNFINISHED, Severity, Status

RUNS_MAX, DEPENDANTS = 300, 8
RESULT = ("green", "step", "seconds", "failed", "newly_red", "flaky")  # of build and tests
EVENTS_PER_PAGE = 50
DIFF_CHARS, DIFF_LINES = 120_000, 600
OUTPUT_CHARS = 6000


@dataclass(slots=True)
class ReviewFacts:
    """A review, and how many findings of each severity it has."""

    pk: int
    verdict: str
    by: str
    codes: list[tuple[str, str]] = field(default_factory=list)  # code, severity

    @property
    def word(self) -> str:
        return Review.Verdict(self.verdict).label

    @property
    def severities(self) -> str:
        """The number of findings for each severity, such as "2 high, 1 low"."""
        number = Counter(severity for _, severity in self.codes)
        return ", ".join(f"{number[severity]} {severity}" for severity in Severity if number[severity])


@dataclass(slots=True)
class RoundFacts:
    """Everything that belongs to one round."""

    number: int
    submissions: list[Any] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    reviews: list[ReviewFacts] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    conflicts: list[Any] = field(default_factory=list)
    is_current: bool = False
    is_judged_yet: bool = False  # whether reviews are still to come
    landed: str = ""

    @property
    def differ(self) -> bool:
        """Whether one reviewer's last word is to reject and another's is to accept (ARB-9)."""
        last = {review.by: review.verdict == Review.Verdict.NEEDS_REVISION for review in self.reviews}
        return len(set(last.values())) > 1

    @property
    def live(self) -> list[Run]:
        return [run for run in self.runs if run.status != Run.Status.ENDED]

    @property
    def empty_runs(self) -> int:
        """The number of runs that ended without a hand-in."""
        return sum(
            run.status == Run.Status.ENDED and run.outcome != Run.Outcome.HANDED_IN for run in self.runs
        )

    @property
    def answered(self) -> list[tuple[int, str]]:
        """The number of answers of each kind, such as 4 addressed and 1 declined."""
        labels = dict(Answer.Kind.choices)
        return [(count, labels[kind].lower()) for kind, count in sorted(self.answers.items())]

    @property
    def outcome(self) -> tuple[str, str]:
        """The outcome in a word, and the word's colour: good, bad, turn or none."""
        if self.landed:
            return "Landed", "good"
        if any(conflict.is_open for conflict in self.conflicts):
            return "Waits for a human", "turn"
        if self.live:
            return "Under way", "turn"
        if self.is_judged_yet and self.reviews:
            return "More reviews to come", "turn"
        if self.reviews:
            rejected = any(review.verdict == Review.Verdict.NEEDS_REVISION for review in self.reviews)
            return ("Rejected", "bad") if rejected else ("Approved", "good")
        last = self.submissions[-1] if self.submissions else None
        if last and last.state in Submission.UNTAKEN:
            return "Sent back", "bad"
        return ("Handed in", "") if last else ("", "")


def _columns() -> dict[str, Any]:
    """Return the columns of the task's standing, and the beginning of the diff of its last submission."""
    last = Submission.objects.standing().filter(task=OuterRef("pk")).newest_first()
    head = Subquery(last.values(head=Left("diff", DIFF_CHARS))[:1])
    return {**standing.columns(), "diff_head": head}


def _newest_runs(task: Any) -> QuerySet[Run]:
    runs = spending.with_total(Run.objects.filter(task=task).select_related("host"))
    return runs.order_by("-pk")[:RUNS_MAX]


def _with_results(task: Any, project: Any) -> QuerySet[Any]:
    seen = Verification.objects.filter(project=project, sha=OuterRef("sha")).order_by("-at")
    rows = Submission.objects.filter(task=task).standing()
    return (
        rows.defer("diff", "specification", "response", "since_last_round")
        .annotate(
            **{name: Subquery(seen.values(name)[:1]) for name in RESULT},
            **{f"n_{kind}": Count("answers", filter=Q(answers__kind=kind)) for kind in Answer.Kind},
        )
        .order_by("round", "attempt")
    )


def _reviews_with_findings(task: Any) -> QuerySet[Any, Any]:
    standing_ones = Review.objects.standing().filter(submission__task=task, superseded_by__isnull=True)
    return standing_ones.order_by("pk", "findings__ordinal").values_list(
        "pk", "submission__round", "verdict", "by_agent", "findings__code", "findings__severity"
    )


def _with_rulings(task: Any) -> QuerySet[Any]:
    ruling = FilteredRelation(
        "decisions", condition=Q(decisions__revoked_at__isnull=True, decisions__archived_by__isnull=True)
    )
    rows = Conflict.objects.of(task).select_related("dispute").annotate(
        ruling=ruling, ruled=F("ruling__option"), ruled_at=F("ruling__at"),
        ruled_by=F("ruling__user__username"), at_round=F("submission__round"),
        raised_in=F("finding__round"),
    )  # fmt: skip
    return rows.only("dispute", "kind", "origin", "status", "severity", "question", "followed").order_by("pk")


FOUND = read_with(_columns)
_runs, _submissions, _reviews, _conflicts = map(
    Prepared, (_newest_runs, _with_results, _reviews_with_findings, _with_rulings)
)


class TaskPage:
    """What the page shows of a task that was read by `FOUND`.

    The number of queries does not grow with the rounds.
    """

    def __init__(self, task: Task, user: Any, role: str) -> None:
        self.task, self.role = task, role
        self.now = estimated_time()
        live = [run for run in self.runs if run.status != Run.Status.ENDED]
        self.standing = standing.standing_of(task, standing.Facts([task], self.now, live))
        self.moves = moves.offered(task, self.role)
        self.may_rule = self.role in RULE
        self.discussion = Discussion(task.project, user, task)
        self.discussion.may_comment = self.may_rule

    # --- The ladder, and the reviewers ---

    @cached_property
    def ladder(self) -> str:
        """Where the task is on the ladder of its stage; empty if there is none."""
        steps = attempts.ladder_of(self.task, self.task.project.config)
        return place_of(steps, len(self.attempts_here)) if steps and self.task.round else ""

    @cached_property
    def attempts_here(self) -> list[attempts.Attempt]:
        return attempts.attempts_of(self.task) if self.task.round else []

    @cached_property
    def attempts(self) -> list[attempts.Attempt]:
        """What was tried, if a ladder counts it; from all stages once the task has escalated."""
        if self.task.escalation:
            return attempts.attempts_of(self.task, everywhere=True)
        return self.attempts_here if self.ladder else []

    @cached_property
    def to_come(self) -> tuple[str, ...]:
        """The reviewers whose reviews of the last submission are still needed, if all have to review."""
        state = self.submissions[-1].state if self.submissions else ""
        if self.task.status != Status.REVIEW or state != Submission.State.VERIFIED:
            return ()
        if self.task.project.config.reviewers != choosing.ALL:
            return ()
        return choosing.Roster(choosing.Crew(now=self.now), [self.task]).turn_of(self.task).missing

    @cached_property
    def spent(self) -> str:
        """What all its runs cost together, in words."""
        return costs.line(spending.told(self.runs))

    # --- Rounds ---

    @cached_property
    def runs(self) -> list[Run]:
        """The newest runs, oldest first; before its first round a task has neither runs nor submissions."""
        if not self.task.round:
            return []
        return _runs.found(self.task.pk)[::-1]

    @cached_property
    def submissions(self) -> list[Any]:
        """The standing submissions, oldest first, with the result of build and tests and answer counts."""
        if not self.task.round:
            return []
        return _submissions.found(self.task.pk, self.task.project_id)

    @cached_property
    def red(self) -> Verification | None:
        """The result of build and tests for the last submission if it is red; None otherwise.

        `end` is the end of their output.
        """
        last = self.shown_submission
        if last is None or last.state != Submission.State.RED:
            return None
        seen = Verification.objects.filter(project=self.task.project_id, sha=last.sha, green=False)
        return seen.defer("tail").annotate(end=Right("tail", OUTPUT_CHARS)).order_by("-at").first()

    @cached_property
    def rounds(self) -> list[RoundFacts]:
        """The standing rounds, newest first."""
        found: dict[int, RoundFacts] = {}

        def at(number: int) -> RoundFacts:
            return found.setdefault(number, RoundFacts(number))

        for submission in self.submissions:
            at(submission.round).submissions.append(submission)
            counted = {kind.value: getattr(submission, f"n_{kind}") for kind in Answer.Kind}
            at(submission.round).answers += Counter(counted)
            if self.task.landed_at and submission.pk == self.task.accepted_id:
                at(submission.round).landed = self.task.landed_sha
        for run in self.runs:
            if run.round in found or run.round == self.task.round:
                at(run.round).runs.append(run)
        for number, review in self._reviews():
            at(number).reviews.append(review)
        for conflict in self._conflicts():
            number = conflict.at_round or conflict.raised_in or self.task.round
            if number in found or number == self.task.round:
                at(number).conflicts.append(conflict)
        if self.task.round in found:
            found[self.task.round].is_current = True
            found[self.task.round].is_judged_yet = bool(self.to_come)
        return [found[number] for number in sorted(found, reverse=True)]

    def _reviews(self) -> list[tuple[int, ReviewFacts]]:
        """Return (round, review) of the standing reviews, in one query with a row for each finding."""
        if not self.submissions:
            return []
        found: dict[int, tuple[int, ReviewFacts]] = {}
        for pk, number, verdict, by, code, severity in _reviews.rows(self.task.pk):
            _, review = found.setdefault(pk, (number, ReviewFacts(pk, verdict, by)))
            if code:
                review.codes.append((code, severity))
        return list(found.values())

    def _conflicts(self) -> list[Any]:
        """Return all conflicts of the task, each with its standing ruling; a constraint allows only one."""
        found: list[Any] = _conflicts.found(self.task.pk)
        for conflict in found:
            conflict.dispute.project = self.task.project
            option = conflict.ruled or ""
            conflict.letter = letter(option) if option and letter(option).isalpha() else option
        return found

    # --- Next to the rounds ---

    @cached_property
    def live_run(self) -> Run | None:
        """The run whose log is shown: the newest that is under way."""
        live = [run for run in self.runs if run.status not in {Run.Status.ENDED, Run.Status.QUEUED}]
        return live[-1] if live else None

    @cached_property
    def live_row(self) -> RunRow | None:
        run = self.live_run
        if run is None:
            return None
        run.task, run.project = self.task, self.task.project
        return RunRow(run, self.may_rule, self.now)

    live_log = log.Part("", -1)  # the page asks for its end once it is there

    @cached_property
    def dependants(self) -> list[Task]:
        """Unfinished tasks that wait directly for this one."""
        waiting = self.task.dependants.filter(status__in=UNFINISHED)
        rows = list(waiting.order_by("rank")[:DEPENDANTS])
        for each in rows:
            each.project = self.task.project
        return rows

    @cached_property
    def shown_submission(self) -> Any:
        return self.submissions[-1] if self.submissions else None

    @cached_property
    def document(self) -> str:
        """What the last round proposes for a gap; empty for other tasks."""
        last = self.shown_submission
        return last.response if last and last.kind == Submission.Kind.DOCUMENT else ""

    @cached_property
    def diff(self) -> Diff | None:
        """The diff of the last submission, or its beginning if it is long."""
        if self.shown_submission is None:
            return None
        return parse_diff(self.task.diff_head, DIFF_LINES)  # type: ignore[attr-defined]

    @cached_property
    def events(self) -> list[Event]:
        return newest_events(self.task)


def events_of(task: Task, before: int | None, count: int) -> list[Event]:
    """Return the newest events of a task, or the newest before the key `before`."""
    events = task.events.order_by("-pk")
    return list(events.filter(pk__lt=before)[:count] if before else events[:count])


def whole_diff(task: Task, submission_pk: int | None) -> tuple[Any, Diff]:
    """Return a submission of the task, the last one if none is named, and its whole diff."""
    rows = task.submissions.newest_first()
    found = rows.filter(pk=submission_pk).first() if submission_pk else rows.standing().first()
    return found, parse_diff(found.diff if found else "")
