"""Why the same round of a task goes wrong again and again (RB-6): signs for people, never a verdict."""

from dataclasses import dataclass
from functools import reduce

from disputes.completion import rollbacks
from disputes.protocol.rounds import patterns
from disputes.protocol.text.documents import DocumentError
from disputes.protocol.text.quotes import one_line
from tasks.models import Submission, Task

CAUSES = {
    patterns.RootCause.DOMAIN_GAP: "The agent knows too little of the subject.",
    patterns.RootCause.CONTEXT_MISSING: "The context is missing.",
    patterns.RootCause.AMBIGUOUS: "The task is ambiguous.",
    patterns.RootCause.SCOPE_TOO_LARGE: "The task is too large.",
}
ATTEMPTS_MAX = 10
SPEC_HEADING = "Gap Resolution"  # the headings of VAL-12 occur only in rounds about a specification


@dataclass(frozen=True, slots=True)
class RoundTry:
    """One try at the round: what became of it, and the patterns by which it failed."""

    submission: Submission
    marks: frozenset[str]  # the findings that stopped it, or "red" or "lost" in words
    seen: tuple[patterns.DetectedPattern, ...]

    @property
    def failed(self) -> patterns.Failed:
        unknown = sum(each.pattern is patterns.Pattern.INCONSISTENT_REFS for each in self.seen)
        return patterns.Failed(
            frozenset(each.pattern for each in self.seen), len(self.submission.response), unknown
        )


@dataclass(frozen=True, slots=True)
class Analysis:
    """The attempts at one round and what they have in common; `cause` is empty if they show nothing."""

    round: int
    attempts: tuple[RoundTry, ...]
    cause: str = ""
    evidence: str = ""


def analyse(task: Task, round_: int) -> Analysis:
    """Analyse the last tries at this round: those that were rolled back and the one that was not."""
    rows = task.submissions.filter(round=round_).prefetch_related("reviews__findings").order_by("pk")
    newest: dict[int | None, Submission] = {row.rolled_back_id: row for row in rows}
    attempts = tuple(_attempt(row) for row in [*newest.values()][-ATTEMPTS_MAX:])
    found = patterns.root_cause([each.failed for each in attempts if each.seen]) or _of_findings(attempts)
    if found is None:
        return Analysis(round_, attempts)
    return Analysis(round_, attempts, CAUSES[found[0]], found[1])


def of(task: Task) -> Analysis | None:
    """Return the analysis of the task's round, or None if it was not taken back and tried often enough."""
    if not rollbacks.times_taken_back(task, task.round):
        return None
    config = task.project.config
    found = analyse(task, task.round)
    needed = 1 if config.rollback_mode == "strict" else config.analysis_after
    return found if len(found.attempts) >= needed else None


def _attempt(submission: Submission) -> RoundTry:
    marks = {
        one_line(finding.title, 120)
        for review in submission.reviews.all()
        for finding in review.findings.all()
        if finding.mandatory
    }
    if submission.state in Submission.UNTAKEN:
        marks.add(submission.get_state_display().lower())
    return RoundTry(submission, frozenset(marks), _patterns(submission.response))


def _patterns(response: str) -> tuple[patterns.DetectedPattern, ...]:
    if SPEC_HEADING not in response:
        return ()
    try:
        return patterns.patterns_in(response, patterns.Expected())
    except DocumentError:
        return ()


def _of_findings(attempts: tuple[RoundTry, ...]) -> tuple[patterns.RootCause, str] | None:
    """Find a cause for code that failed: the same failure each time, or a different one each time."""
    marks = [each.marks for each in attempts]
    if len(marks) < 2 or not all(marks):
        return None
    if common := reduce(frozenset.intersection, marks):
        return patterns.RootCause.AMBIGUOUS, f"the same each time: {', '.join(sorted(common))}"
    if sum(map(len, marks)) == len(frozenset().union(*marks)):
        return patterns.RootCause.SCOPE_TOO_LARGE, "another failure each time"
    return None
