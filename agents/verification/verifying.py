"""The end of a verification: what it says about the commit, and whose fault a red one is.

The result holds for the commands that ran. If the project's commands have changed meanwhile, the verification
is run again.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from agents.hosts import paths
from agents.loop import run_ends
from agents.models import Run, Trial
from agents.reading import faults
from agents.recipes.recipe import Recipe
from agents.verification import commands, verdicts
from agents.verification.verdicts import Verdict
from tasks import base
from tasks.models import Landing, Project, StaleTask, Submission, Task, Verification
from tasks.models.event import record
from tasks.states import IllegalMove
from tasks.text.counting import counted, some_of

TOLD = "This project lets red tests pass."  # noted in the event if red tests stop nothing
INTERRUPTED = {"stopped": Run.Outcome.STOPPED, "orphan": Run.Outcome.LOST}


def finish(run: Run, left: dict[str, Any]) -> None:
    """Store the result and let the submission go on or back; if interrupted or outdated, run it again."""
    reason = str(left.get("reason", ""))
    if reason in INTERRUPTED:
        run_ends.end(run, INTERRUPTED[reason], reason="The verification was interrupted and runs again.")
        return
    run.project.refresh_from_db()
    recipe = commands.commands_of(run.project, paths.mirror(run.project), run.sha, run.task)
    if run.commands_hash != commands.commands_hash(recipe):
        run_ends.end(run, Run.Outcome.STOPPED, reason="The commands were changed meanwhile; it runs again.")
        return
    verdict = verdicts.read(paths.run_folder(run.pk), left)
    if run.task.origin == Task.Origin.SETUP and not any(recipe.commands):
        verdict = Verdict(False, verdict.steps, step="commands", problem="steroids.yaml names no command")
    judged = _judge(run, recipe, verdict)
    with transaction.atomic():
        if run_ends.end(run, Run.Outcome.HANDED_IN, reason=judged.problem, exit_code=verdict.exit_code):
            is_suspect = _write(run, judged)
            _go_on(run, judged, is_suspect=is_suspect)


@dataclass(frozen=True, slots=True)
class _Judged:
    """A verdict after its comparison with what is known to be red on the target branch."""

    verdict: Verdict
    green: bool
    problem: str  # why it is red, in a sentence; of a green one, that it ran fewer tests than its base
    newly_red: tuple[str, ...]


def _judge(run: Run, recipe: Recipe, verdict: Verdict) -> _Judged:
    compared = verdicts.compare(run.project, verdict)
    green = verdict.green or bool(compared and compared.is_no_worse)
    problem = _fewer(run, recipe, verdict) if green else verdict.problem
    if compared and not green and compared.newly_red:
        problem = f"{verdict.step} newly red: {some_of(compared.newly_red, verdicts.NAMED)}"
    newly_red = compared.newly_red if compared else verdict.tests.failed
    return _Judged(verdict, green, problem, tuple(newly_red))


def _fewer(run: Run, recipe: Recipe, verdict: Verdict) -> str:
    """Say that fewer tests ran than at the commit at which the work began; empty if that is not so.

    Whoever leaves tests out is green as well, and a diff does not show that a runner does not find them.
    """
    work = Submission.objects.standing().filter(task=run.task, sha=run.sha).first()
    known: dict[str, Any] = {"project": run.project, "sha": (work and work.diff_stat.get("fork")) or run.sha}
    verified = Verification.objects.filter(**known, commands_hash=run.commands_hash, green=True)
    tried = Trial.objects.filter(**known, outcome=Trial.Outcome.GREEN, test=recipe.test)
    totals = (rows.exclude(total=None).values_list("total", flat=True).first() for rows in (verified, tried))
    before, now = next(filter(None, totals), 0), verdict.tests.total
    if not before or now is not None and now >= before:
        return ""
    said = "how many tests ran is not told" if now is None else f"{counted(now, 'test')} ran"
    return f"{said}; at {known['sha'][:10]}, where the work began, {before} did"


def _write(run: Run, judged: _Judged) -> bool:
    """Store the result and its event, and return whether the environment is suspected first."""
    verdict, green = judged.verdict, judged.green
    known = {"project": run.project, "sha": run.sha, "commands_hash": run.commands_hash}
    suspected = Verification.objects.filter(**known).exclude(fault="").first()
    is_suspect = bool(verdict.fault) and _may_be_the_surroundings(run.project, suspected)
    Verification.objects.update_or_create(
        **known,
        defaults=verdict.columns | {
            "green": green, "step": "" if green else verdict.step, "seconds": verdict.seconds,
            "tier": run.tier, "problem": judged.problem[:500], "newly_red": list(judged.newly_red),
            "fault": verdict.fault[:300] if is_suspect else "",
        },
    )  # fmt: skip
    kind = "green" if green else "suspect" if is_suspect else "red"
    flaky = {"flaky": list(verdict.flaky)[:20]} if verdict.flaky else {}
    is_told = not is_suspect and _is_only_told(run, judged)
    record(
        run.project, f"verified_{kind}", task=run.task, data={"sha": run.sha, "run": run.pk} | flaky,
        note=_note(verdict, judged.problem, green, is_told=is_told),
    )  # fmt: skip
    return is_suspect


def _go_on(run: Run, judged: _Judged, *, is_suspect: bool) -> None:
    """Act on the result: retry the branch, ask a person, or move the task. A landing reads it itself."""
    if is_suspect:
        why = f"{run.task.ref} could not be verified: {judged.verdict.fault}"
        base.try_again(run.project, why=why)
    elif run.task.landings.filter(status=Landing.Status.CHECKING, sha=run.sha).update(not_before=None):
        return
    elif faults.is_passing(judged.verdict.fault):
        _ask(run, judged.problem)
    else:
        _judge_submission(run, judged.green or _is_only_told(run, judged), judged.problem)


def _may_be_the_surroundings(project: Project, suspected: Verification | None) -> bool:
    """Whether to suspect the environment, and so to try the untouched branch first.

    If the branch has been tried since the last suspicion and is fit, what fails again is the work's own
    fault.
    """
    if suspected is None:
        return True
    tried_since = project.base_at is not None and project.base_at > suspected.at
    return not (tried_since and project.base_state in Project.FIT)


def _ask(run: Run, problem: str) -> None:
    """Ask a person, since a registry or a disk failed again, and only here; no agent is blamed."""
    judged = Submission.objects.standing().filter(task=run.task, sha=run.sha, state=Submission.State.KEPT)
    if judged.update(state=Submission.State.RED, problem=problem[:500]):
        task = Task.objects.select_related("project").get(pk=run.task_id)
        with suppress(StaleTask, IllegalMove):
            run_ends.ask_about_verification(task, f"The work could not be verified: {task.title}", problem)


def _is_only_told(run: Run, judged: _Judged) -> bool:
    """Whether it is red and may go on all the same; never for a task that is to find the commands."""
    is_setup = run.task.origin == Task.Origin.SETUP
    return not judged.green and not is_setup and verdicts.is_only_told(run.project, judged.verdict.step)


def _note(verdict: Verdict, problem: str, green: bool, *, is_told: bool = False) -> str:
    flaky = f"Passed when tried once more: {some_of(verdict.flaky, verdicts.NAMED)}." if verdict.flaky else ""
    known = ""
    if green and not verdict.green:
        known = f"No worse than the target branch: {verdict.problem.removesuffix('.')}."
    told = TOLD if is_told else ""
    if told or green and problem:
        problem = f"{problem[:1].upper()}{problem[1:].removesuffix('.')}."
    return " ".join(filter(None, [problem, told, known, flaky]))


def _judge_submission(run: Run, may_go_on: bool, problem: str) -> None:
    state = Submission.State.VERIFIED if may_go_on else Submission.State.RED
    judged = Submission.objects.standing().filter(task=run.task, sha=run.sha, state=Submission.State.KEPT)
    changed = judged.update(state=state, problem=problem[:500])
    if changed and not may_go_on:
        run_ends.send_back(Task.objects.select_related("project").get(pk=run.task_id), problem)
