"""The end of a run and what it means for the task. The rows decide, never the exit code alone."""

from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from itertools import takewhile
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Min, QuerySet

from agents.crew import attempts, refusals
from agents.models import Run
from agents.money import caps
from disputes import opening
from disputes.models import Conflict
from disputes.sessions import repair
from tasks.database.clock import database_time, estimated_time
from tasks.database.locking import repeated
from tasks.database.prepared import PreparedUpdate
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import StaleTask, Submission, Task, Verification
from tasks.models.event import record
from tasks.models.task import locked_task
from tasks.states import MOVES, IllegalMove
from tasks.text.counting import counted, enumerated

NAMED_MAX = 20  # tests that a card names
DETAIL_MAX = 4000  # characters of output on a card
# Ends that count as no failure, but say something if they repeat.
REPEATING = {
    (Run.Role.CODER, Run.Outcome.LOST), (Run.Role.REVIEWER, Run.Outcome.LOST),
    (Run.Role.VERIFIER, Run.Outcome.REFUSED),
}  # fmt: skip
NOT_COUNTED = attempts.NO_FAULT - {Run.Outcome.REFUSED}


def backoff(failures: int) -> timedelta:
    """Return how long a task rests after so many failures in a row; this doubles up to a limit."""
    first, most = settings.DURATIONS["backoff_first"], settings.DURATIONS["backoff_max"]
    return timedelta(seconds=min(first * 2 ** max(failures - 1, 0), most))


def failed_in_a_row(task: Task, role: str) -> list[Run]:
    """Return the role's counted runs since the last hand-in or since people reset the count, oldest first."""
    runs = Run.objects.filter(task=task, role=role, status=Run.Status.ENDED)
    if task.counts_since:
        runs = runs.filter(queued_at__gt=task.counts_since)
    last_good = (
        runs.filter(outcome=Run.Outcome.HANDED_IN).order_by("-pk").values_list("pk", flat=True).first()
    )
    return list(runs.filter(is_counted=True, pk__gt=last_good or 0).order_by("pk"))


@repeated
@transaction.atomic
def end(run: Run, outcome: str, *, reason: str = "", exit_code: int | None = None, **changes: Any) -> bool:
    """End the run exactly once, whoever notices first.

    Returns False if it had ended already or has a newer holder. A run without a result rests its task for a
    while; after too many in a row a person is asked.
    """
    task = locked_task(run.task_id)
    if outcome == Run.Outcome.LOST and Run.objects.filter(pk=run.pk, status=Run.Status.CLOSING).exists():
        outcome = Run.Outcome.HANDED_IN  # whatever became of its process since
    is_counted = outcome not in NOT_COUNTED and run.role != Run.Role.VERIFIER
    told = {
        "status": Run.Status.ENDED, "outcome": outcome, "reason": reason[:500], "exit_code": exit_code,
        "ended_at": estimated_time(), "token_hash": None, "is_counted": is_counted, "lease_until": None,
        **changes,
    }  # fmt: skip
    if not _ending(*sorted(told)).write(run.pk, run.fence, **told):
        return False
    for name, value in told.items():
        setattr(run, name, value)
    run.task, run.project = task, task.project
    note = f"{run.agent_label or run.role}: {run.get_outcome_display()}. {reason}".strip()
    data = {"run": run.pk, "role": run.role, "outcome": outcome, "exit_code": exit_code}
    if run.started_at:
        data["isolation"] = run.get_tier_display()
    record(run.project, "run_ended", task=run.task, note=note, data=data)
    if task.version == run.task_version:
        if outcome == Run.Outcome.COST:
            _ask_about_cap(run, task)
        elif is_counted and run.role not in Run.OPINION_ROLES:
            _count(run, task, reason)
        elif (run.role, outcome) in REPEATING:
            _after_repeats(run, task)
    return True


@lru_cache(maxsize=16)
def _ending(*changed: str) -> PreparedUpdate:
    """Return the update that ends a run if it has not ended and has no newer holder."""
    return PreparedUpdate(
        lambda pk, fence: Run.objects.filter(pk=pk, fence=fence).exclude(status=Run.Status.ENDED), *changed
    )


def _after_repeats(run: Run, task: Task) -> None:
    """Rest the task from the second such end in a row on; after too many, ask a person.

    A run that was lost once restarts at once. If it is lost every time, its own agent may be the cause; if
    verifications cannot be started, so may be the commit.
    """
    ended = Run.objects.filter(
        task=task, role=run.role, task_version=run.task_version, status=Run.Status.ENDED
    ).order_by("-pk")
    newest = ended[: settings.EMPTY_RUNS_MAX]
    alike = [*takewhile(lambda each: each.outcome == run.outcome, newest)]
    repeats = len(alike)
    if repeats >= settings.EMPTY_RUNS_MAX:
        became = "were lost" if run.outcome == Run.Outcome.LOST else "could not be started"
        question = f"{repeats} runs of {_whose(alike[::-1])} {became} in a row: {task.title}"
        with suppress(StaleTask, IllegalMove):
            opening.stop_for_help(task, Conflict.Origin.EMPTY_RUNS, question[:500], detail=run.reason)
    elif repeats > 1:
        rest(task, backoff(repeats - 1).total_seconds())


def _ask_about_cap(run: Run, task: Task) -> None:
    """Stop the task if one of its own caps is still reached; a cap of the project closes that instead."""
    reached = caps.by_run(run)
    if reached and not reached.cap.is_of_project:
        caps.ask(task, reached)


def _count(run: Run, task: Task, reason: str) -> None:
    failed = failed_in_a_row(task, run.role)
    climbs = run.role == Run.Role.CODER and attempts.has_ladder(task)
    # A ladder itself says what follows a failure, but a refused start is not a failure by its count.
    stuck = [each for each in failed if each.outcome in attempts.NO_FAULT] if climbs else failed
    failures, used_up = len(stuck), "" if climbs else refusals.exhausted(task, failed)
    if failures < settings.EMPTY_RUNS_MAX and not used_up:
        Task.objects.filter(pk=task.pk, version=task.version).update(
            not_before=database_time() + backoff(len(failed))
        )
        return
    if used_up and task.is_session and repair.may_repair(task):
        repair.repair(task, used_up)
        return
    who = _whose(stuck)
    question = f"{counted(failures, 'run')} of {who} ended without a hand-in: {task.title}"
    if used_up:
        question = f"Hand-ins of {who} were refused until no retry was left: {task.title}"
        reason = used_up
    last = f"The last one: {run.get_outcome_display()}. {reason}"
    with suppress(StaleTask, IllegalMove):
        opening.stop_for_help(task, Conflict.Origin.EMPTY_RUNS, question[:500], detail=last)


def _whose(runs: list[Run]) -> str:
    """Return the names of the agents whose runs these are, in the order in which they came."""
    return enumerated([*dict.fromkeys(run.agent_label or run.role for run in runs)])


def end_token(run: Run) -> None:
    """Revoke the run's token: its process is over, even if its output is still being read."""
    if run.token_hash:
        Run.objects.filter(pk=run.pk, fence=run.fence).update(token_hash=None)


def rest(task: Task, seconds: float) -> None:
    """Let the task rest for a while, without counting a failure."""
    Task.objects.filter(pk=task.pk).update(not_before=database_time() + timedelta(seconds=seconds))


def _given_back(run: Run) -> QuerySet[Run]:
    return Run.objects.filter(
        task=run.task_id, agent=run.agent_id, outcome=Run.Outcome.STOPPED, task_version=run.task_version
    )


def rest_after(run: Run) -> None:
    """Let the task of a run that was given back rest, longer each time this happens in the same state."""
    rest(run.task, backoff(_given_back(run).count()).total_seconds())


def rest_in_trouble(run: Run) -> None:
    """Let the task of a run that its host could not begin rest for half as long as the trouble has lasted."""
    since = _given_back(run).aggregate(first=Min("queued_at"))["first"] or estimated_time()
    lasted = (estimated_time() - since).total_seconds()
    least, most = settings.DURATIONS["backoff_first"], settings.DURATIONS["backoff_max"]
    rest(run.task, min(max(lasted / 2, least), most))


def send_back(task: Task, note: str) -> None:
    """Send a submission back to the coder in the same round; after too many, ask a human."""
    if task.status not in MOVES["send_back"].sources:
        return
    since = task.submissions.standing().filter(round=task.round, state__in=Submission.UNTAKEN)
    if task.counts_since:
        since = since.filter(at__gt=task.counts_since)
    failures = since.count()
    try:
        if failures >= settings.EMPTY_RUNS_MAX and not attempts.has_ladder(task):
            last = task.last_submission()
            if last is not None and last.state == Submission.State.RED:
                question = f"Build or tests stayed red in {counted(failures, 'attempt')}: {task.title}"
                ask_about_verification(task, question, note)
            else:
                question = f"Nothing could be taken in {counted(failures, 'attempt')}: {task.title}"
                opening.stop_for_help(task, Conflict.Origin.EMPTY_RUNS, question, detail=note)
        else:
            rested = database_time() + backoff(failures) if failures > 1 else None
            task.send_back(note=note, not_before=rested)
    except StaleTask:
        return


def ask_about_verification(task: Task, question: str, note: str) -> None:
    """Stop the task with a card that says what is red, and with the end of the output. Raises StaleTask."""
    last = task.last_submission()
    result = last and Verification.objects.filter(project=task.project, sha=last.sha).order_by("-at").first()
    names = result.newly_red or result.failed if result else []
    facts = [note, *(f"failed: {name}" for name in names[:NAMED_MAX])]
    if len(names) > NAMED_MAX:
        facts.append(f"and {len(names) - NAMED_MAX} more")
    detail = result.tail[-DETAIL_MAX:] if result else note
    opening.stop_for_help(task, Conflict.Origin.VERIFYING, question[:500], detail=detail, evidence=facts)


@transaction.atomic
def ask_to_stop(run: Run, *, actor: Actor) -> None:
    """Have the run's host end it soon; a run that no host holds yet ends at once. What was done is kept.

    Raises Refused if it has ended already or somebody asked before.
    """
    locked_task(run.task_id)
    asked = Run.objects.live().filter(pk=run.pk, stop_requested=False).update(stop_requested=True)
    run.refresh_from_db()
    if not asked and run.status == Run.Status.ENDED:
        how = run.get_outcome_display().lower()
        raise Refused("ended", f"Run {run.pk} has ended: {how}.", "There is nothing to stop.")
    if not asked:
        raise Refused(
            "asked", f"Run {run.pk} is being stopped already.", "Who holds it hears of it in a moment."
        )
    record(run.project, "stop_requested", actor=actor, task=run.task, data={"run": run.pk, "role": run.role})
    if run.status == Run.Status.QUEUED:
        end(run, Run.Outcome.STOPPED, reason=f"Stopped by {actor.label}.")
