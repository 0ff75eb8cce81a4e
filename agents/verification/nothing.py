"""A project with neither build nor tests: nothing is run, and commits go straight to their review."""

from django.db import transaction
from django.db.models import Expression, QuerySet

from agents.recipes.recipe import Recipe
from agents.verification import commands
from tasks.database.prepared import PreparedUpdate
from tasks.models import Project, Submission, Task, Verification
from tasks.models.event import record

NOTE = "There is nothing to build or test."


def may_pass_by(project: Project) -> bool:
    """Whether the project has no commands of its own."""
    return not any(commands.configured(project).commands)


def is_to_be_run(task: Task) -> bool:
    """Whether a commit of this task is built or tested; a task that is to find commands names its own."""
    return task.origin == Task.Origin.SETUP or not may_pass_by(task.project)


def note(project: Project, sha: str) -> None:
    """Store that nothing was to be run on a commit."""
    known = {"project": project, "sha": sha, "commands_hash": commands.commands_hash(Recipe())}
    Verification.objects.bulk_create([Verification(**known, green=True)], ignore_conflicts=True)


def _kept(task: Expression, sha: Expression) -> QuerySet[Submission]:
    return Submission.objects.standing().filter(task=task, sha=sha, state=Submission.State.KEPT)


_passed_by = PreparedUpdate(_kept, state=Submission.State.VERIFIED, problem="")


@transaction.atomic
def pass_by(task: Task, sha: str) -> None:
    """Let the commit that was handed in go on to its review."""
    if _passed_by.write(task.pk, sha):
        note(task.project, sha)
        record(task.project, "verified_green", task=task, data={"sha": sha}, note=NOTE)
