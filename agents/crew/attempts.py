"""How often and how a task failed at its stage, counted from rows on every request (LAD-1, LAD-4).

A failure is a coder's run that counts and ended without a hand-in, a submission that could not be taken or
whose build or tests were red, or a rejection. Trouble with a provider, a stop, a lost host or a refused
start is none. The count starts over when a person restarts the task, and at each stage.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q, QuerySet

from agents.models import Run
from tasks.configuration.ladder import Step, read
from tasks.configuration.policy import ProjectSettings
from tasks.configuration.stages import stage_named
from tasks.models import Event, Review, Submission, Task

WHY_MAX = 200
LISTED_MAX = 40
# Outcomes that say nothing about the model, even if something else counts them.
NO_FAULT = frozenset(
    {Run.Outcome.HANDED_IN, Run.Outcome.STOPPED, Run.Outcome.LOST, Run.Outcome.PROVIDER, Run.Outcome.REFUSED,
     Run.Outcome.COST}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Attempt:
    """A coder's run that failed."""

    run: int
    number: int  # which failure at its stage it was, from 1
    stage: str
    agent: str
    model: str
    step: str
    why: str

    def __str__(self) -> str:
        who = f"{self.agent} ({self.model})" if self.model else self.agent
        at = f", step {self.step}" if self.step else ""
        return f"{self.number}. run {self.run}, {who}{at}: {self.why}"


def ladder_of(task: Task, config: ProjectSettings) -> tuple[Step, ...]:
    """Return the ladder of the task's stage or column; empty if it has none."""
    stage = stage_named(config, task.stage)
    steps = config.model_ladder.get(stage.ladder_name) if stage else None
    return read(steps) if steps else ()


def has_ladder(task: Task) -> bool:
    """Whether a ladder, and not the limit of empty runs, says what follows when the task's coders fail."""
    return bool(ladder_of(task, task.project.config))


def failures_of(tasks: Iterable[Task]) -> dict[int, int]:
    """Return how often each task failed at its present stage, in two queries for any number of tasks."""
    rows = {task.pk: task for task in tasks}
    if not rows:
        return {}
    found = dict.fromkeys(rows, 0)
    rejected = _rejected(rows)
    names = ("pk", "task", "stage", "outcome", "is_counted", "submission__state", "submission__round")
    for _, task, stage, outcome, counted, state, round_ in _runs(rows).values_list(*names):
        if stage and stage != rows[task].stage:
            found[task] = 0
        elif _failed(outcome, counted, state) or (task, round_, state) in rejected:
            found[task] += 1
    return found


def attempts_of(task: Task, *, everywhere: bool = False) -> list[Attempt]:
    """Return the failures that count at the task's stage, or everywhere, oldest first. Three queries."""
    rejected = _rejected({task.pk: task})
    failed: list[tuple[Run, bool]] = []
    for run in _runs({task.pk: task}).select_related("submission"):
        if not everywhere and run.stage and run.stage != task.stage:
            failed = []
            continue
        made = run.submission
        state = made.state if made else None
        was_rejected = made is not None and (task.pk, made.round, state) in rejected
        if _failed(run.outcome, run.is_counted, state) or was_rejected:
            failed.append((run, was_rejected))
    said = _said_of([run.submission_id for run, was_rejected in failed if was_rejected])
    found: list[Attempt] = []
    for run, was_rejected in failed:
        stage = run.stage or task.stage
        found.append(
            Attempt(
                run.pk,
                1 + sum(each.stage == stage for each in found),
                stage,
                run.agent_label or "coder",
                run.model,
                run.step,
                (said.get(run.submission_id, "rejected") if was_rejected else _why(run))[:WHY_MAX],
            )  # fmt: skip
        )
    return found


def listed(attempts: list[Attempt]) -> list[str]:
    """Return a line for each attempt; if there are very many, the middle is left out."""
    lines = [str(attempt) for attempt in attempts]
    if len(lines) <= LISTED_MAX:
        return lines
    half = LISTED_MAX // 2
    return [*lines[:half], f"({len(lines) - 2 * half} more)", *lines[-half:]]


def _runs(tasks: dict[int, Task]) -> QuerySet[Run]:
    """Return the coders' runs in rounds that were not rolled back, since a person last reset the count."""
    since = Q(task__counts_since__isnull=True) | Q(queued_at__gt=F("task__counts_since"))
    ended = Q(status=Run.Status.ENDED) | Q(submission__isnull=False)
    runs = Run.objects.filter(since, ended, task__in=tasks, role=Run.Role.CODER)
    return runs.exclude(submission__rolled_back__isnull=False).order_by("pk")


def _rejected(tasks: dict[int, Task]) -> set[tuple[int, Any, str]]:
    """Return task, round and state of each rejected submission; only the rejected one is in that state."""
    events = Event.objects.filter(task__in=tasks, kind="reject").values_list("task", "at", "data")
    found = set()
    for pk, at, data in events:
        since = tasks[pk or 0].counts_since
        if since is None or at > since:
            found.add((pk or 0, data.get("round", 0) - 1, Submission.State.VERIFIED.value))
    return found


def _failed(outcome: str, counted: bool, state: str | None) -> bool:
    return state in Submission.UNTAKEN if state else counted and outcome not in NO_FAULT


def _why(run: Run) -> str:
    made = run.submission
    if made is None:
        return _one_line(f"{run.get_outcome_display()}. {run.reason}")
    what = "build or tests red" if made.state == Submission.State.RED else "not taken"
    return _one_line(f"{what}: {made.problem}")


def _said_of(submissions: list[int | None]) -> dict[int | None, str]:
    """Return for each submission who rejected it and the first finding."""
    reviews = Review.objects.filter(submission__in=submissions, verdict=Review.Verdict.NEEDS_REVISION)
    rows = reviews.order_by("pk", "findings__ordinal")
    names: dict[int, list[str]] = {}
    points: dict[int, list[str]] = {}
    for of, name, code, title in rows.values_list(
        "submission", "by_agent", "findings__code", "findings__title"
    ):
        names.setdefault(of, []).append(name)
        points.setdefault(of, []).extend([f"{code} {title}"] if code else [])
    said: dict[int | None, str] = {}
    for of, by in names.items():
        more = f" and {len(points[of]) - 1} more" if len(points[of]) > 1 else ""
        first = points[of][0] if points[of] else ""
        said[of] = _one_line(f"rejected by {', '.join(dict.fromkeys(by))}: {first[:120]}{more}")
    return said


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(": ")
