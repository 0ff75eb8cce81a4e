"""The end of a verification: what it says about the commit, and whose fault it is where it is red."""

from contextlib import suppress
from typing import Any

from django.db import transaction

from agents.hosts import paths
from agents.loop import run_ends
from agents.models import Run
from agents.reading import faults
from agents.verification import commands, verdicts
from agents.verification.verdicts import Verdict
from tasks import base
from tasks.models import Landing, Project, StaleTask, Submission, Task, Verification
from tasks.models.event import record
from tasks.states import IllegalMove

INTERRUPTED = {"stopped": Run.Outcome.STOPPED, "orphan": Run.Outcome.LOST}


def finish(run: Run, left: dict[str, Any]) -> None:
    """Keep the result, and let the submission go on or back. Interrupted, it runs again."""
    reason = str(left.get("reason", ""))
    if reason in INTERRUPTED:
        run_ends.end(run, INTERRUPTED[reason], reason="The verification was interrupted and runs again.")
        return
    verdict = verdicts.read(paths.run_folder(run.pk), left)
    recipe = commands.commands_of(run.project, paths.mirror(run.project), run.sha, run.task)
    if run.task.origin == Task.Origin.SETUP and not any(recipe.commands):
        verdict = Verdict(False, verdict.steps, step="commands", problem="steroids.yaml names no command")
    run.project.refresh_from_db()
    compared = verdicts.compare(run.project, verdict)
    green = verdict.green or bool(compared and compared.is_no_worse)
    problem = "" if green else verdict.problem
    if compared and not green and compared.newly_red:
        problem = f"{verdict.step} newly red: {verdicts.in_words(compared.newly_red)}"
    with transaction.atomic():
        if not run_ends.end(run, Run.Outcome.HANDED_IN, reason=problem, exit_code=verdict.exit_code):
            return
        known = {"project": run.project, "sha": run.sha, "commands_hash": commands.commands_hash(recipe)}
        suspected = Verification.objects.filter(**known).exclude(fault="").first()
        is_passing = faults.is_passing(verdict.fault)
        is_suspect = bool(verdict.fault) and _may_be_the_surroundings(run.project, suspected)
        Verification.objects.update_or_create(
            **known,
            defaults={
                "green": green, "step": "" if green else verdict.step, "exit_code": verdict.exit_code,
                "seconds": verdict.seconds, "tail": verdict.tail, "tier": run.tier, "problem": problem[:500],
                "fault": verdict.fault[:300] if is_suspect else "",
                "failed": list(verdict.tests.failed), "failed_count": verdict.tests.failed_count,
                "total": verdict.tests.total, "flaky": list(verdict.flaky),
                "newly_red": list(compared.newly_red if compared else verdict.tests.failed),
            },
        )  # fmt: skip
        kind = "green" if green else "suspect" if is_suspect else "red"
        data = {"sha": run.sha, "run": run.pk} | (
            {"flaky": list(verdict.flaky)[:20]} if verdict.flaky else {}
        )
        is_told = not green and not is_suspect and _is_only_told(run, verdict)
        record(
            run.project, f"verified_{kind}", task=run.task, data=data,
            note=_note(verdict, problem, green, is_told=is_told),
        )  # fmt: skip
        if is_suspect:
            base.try_again(run.project, why=f"{run.task.ref} could not be verified: {verdict.fault}")
        elif run.task.landings.filter(status=Landing.Status.CHECKING, sha=run.sha).exists():
            return
        elif is_passing:
            _ask(run, problem)
        else:
            _judge_submission(run, green or is_told, problem)


def _may_be_the_surroundings(project: Project, suspected: Verification | None) -> bool:
    """The untouched branch is tried first. Where that is fit, what fails again is the work's own."""
    if suspected is None:
        return True
    tried_since = project.base_at is not None and project.base_at > suspected.at
    return not (tried_since and project.base_state in Project.FIT)


def _ask(run: Run, problem: str) -> None:
    """A registry or a disk failed again, and only here: a human looks, and no agent is blamed."""
    judged = Submission.objects.standing().filter(task=run.task, sha=run.sha, state=Submission.State.KEPT)
    if judged.update(state=Submission.State.RED, problem=problem[:500]):
        task = Task.objects.select_related("project").get(pk=run.task_id)
        with suppress(StaleTask, IllegalMove):
            run_ends.ask_about_verification(task, f"The work could not be verified: {task.title}", problem)


def _is_only_told(run: Run, verdict: Verdict) -> bool:
    """A task that is to find the commands shows that they work, whatever the project lets pass."""
    is_setup = run.task.origin == Task.Origin.SETUP
    return verdicts.is_only_told(run.project, verdict.step) and not is_setup


def _note(verdict: Verdict, problem: str, green: bool, *, is_told: bool = False) -> str:
    flaky = f"Passed when tried once more: {verdicts.in_words(verdict.flaky)}." if verdict.flaky else ""
    known = f"No worse than the target branch: {verdict.problem}." if green and not verdict.green else ""
    told = "This project lets red tests pass." if is_told else ""
    return " ".join(filter(None, [f"{problem}." if told else problem, told, known, flaky]))


def _judge_submission(run: Run, may_go_on: bool, problem: str) -> None:
    state = Submission.State.VERIFIED if may_go_on else Submission.State.RED
    judged = Submission.objects.standing().filter(task=run.task, sha=run.sha, state=Submission.State.KEPT)
    changed = judged.update(state=state, problem=problem[:500])
    if changed and not may_go_on:
        run_ends.bounce(Task.objects.select_related("project").get(pk=run.task_id), problem)
