"""The caller of a hand-in, what it may do, and the end of its run."""

import re
from dataclasses import dataclass
from typing import Any

from agents.api.principals import RunPrincipal
from agents.models import Run
from tasks.access import MAINTAIN, RULE, no_task, require, tasks_for, went_by
from tasks.database.locking import locked
from tasks.database.prepared import Prepared, PreparedUpdate
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Submission, Task
from tasks.models.task import TaskQuerySet

# Who may do what: people by their role in the project, runs by the run's role. No person gives an opinion.
RUN_VERBS: dict[str, frozenset[str]] = {
    "submit": frozenset({Run.Role.CODER}),
    "approve": frozenset({Run.Role.REVIEWER}),
    "reject": frozenset({Run.Role.REVIEWER}),
    "dispute": frozenset({Run.Role.CODER, Run.Role.REVIEWER}),
    "log": frozenset({Run.Role.CODER, Run.Role.REVIEWER}),
    "blocked": frozenset({Run.Role.CODER}),
    "escalate": frozenset({Run.Role.CODER}),
    "comment": frozenset({Run.Role.CODER, Run.Role.REVIEWER}),
    "opinion": frozenset(Run.OPINION_ROLES),
}
PERSON_VERBS = {
    "submit": MAINTAIN, "approve": MAINTAIN, "reject": MAINTAIN, "dispute": RULE, "log": RULE,
    "blocked": RULE, "escalate": RULE, "comment": RULE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever hands in: an actor for the record and, if it is a run, the run."""

    actor: Actor
    run: Run | None = None

    @property
    def side(self) -> str:
        """The side that the caller is on: coder, reviewer or human, for a conflict's `opened_as`."""
        return str(self.run.role) if self.run else "human"


def caller_of(user: Any, verb: str, ref: str, model: str = "") -> tuple[Caller, Task]:
    """Return the caller and the task, locked.

    Raises Refused: not_found, wrong_role, other_task, no_right, or not_ready for a pulled run without its
    work.
    """
    if isinstance(user, RunPrincipal):
        run = user.run
        task = _of_run.first(run.task_id)
        if task is None or not went_by(task, ref):
            raise Refused(
                "other_task", f"This run works on {run.task.ref}, not on {ref}.",
                f"Name {run.task.ref}.", status=403,
            )  # fmt: skip
        if run.role not in RUN_VERBS[verb]:
            allowed = ", ".join(sorted(name for name, roles in RUN_VERBS.items() if run.role in roles))
            raise Refused(
                "wrong_role", f"A {run.role} may not {verb}.", f"As a {run.role} you may: {allowed}.",
                status=403,
            )  # fmt: skip
        if run.is_pulled and run.status != Run.Status.RUNNING:
            raise Refused(
                "not_ready", f"The work of run {run.pk} is not ready yet; no host has prepared it.",
                f"Ask GET /api/v1/pull/runs/{run.pk}/ until it is.",
            )  # fmt: skip
        actor = Actor("run", run.agent_label, run_number=run.pk, model=model or run.model)
        return Caller(actor, run), task
    task = next(iter(_held(tasks_for(user).named(ref))), None)
    if task is None:
        raise no_task(ref)
    if verb not in PERSON_VERBS:
        raise Refused(
            "wrong_role", f"People give no {verb}: they rule.", "Use `steroids dispute resolve`.", status=403
        )
    require(user, task.project, PERSON_VERBS[verb], verb)
    return Caller(Actor.person(user)), task


def _held(tasks: TaskQuerySet) -> TaskQuerySet:
    """Return the rows of these tasks, locked and with projects; at most one, so without an order."""
    return locked(tasks).select_related("project").order_by()


_of_run = Prepared(lambda pk: _held(Task.objects.filter(pk=pk)))


def end_run(caller: Caller, task: Task) -> None:
    """End the run because it has handed in: exactly once, and only in the turn that it was started for."""
    require_turn(caller, task)
    close_run(caller)


def require_turn(caller: Caller, task: Task) -> None:
    """Raise Refused("stale_turn") if the task moved on after the run was started."""
    run = caller.run
    if run is None:
        return
    if run.role not in Run.OPINION_ROLES and run.task_version != task.version:
        raise Refused(
            "stale_turn", f"{task.ref} moved on while this run worked: it is {task.status} now.",
            run.how_to_end, status_now=task.status,
        )  # fmt: skip


_closing = PreparedUpdate(
    lambda pk, fence: Run.objects.filter(pk=pk, fence=fence, status__in=Run.WORKING), "submission",
    status=Run.Status.CLOSING, token_hash=None,
)  # fmt: skip


def close_run(caller: Caller, submission: Submission | None = None) -> None:
    """Close the caller's run, if any, and end its token. Raises Refused("handed_in") if that was done."""
    run = caller.run
    if run and not _closing.write(run.pk, run.fence, submission=submission):
        raise Refused("handed_in", f"Run {run.pk} has handed in already.", "End your work.")


def require_status(task: Task, status: str, verb: str) -> None:
    if task.status != status:
        raise Refused(
            "wrong_status", f"{task.ref} is {task.status}; to {verb} it must be {status}.",
            "Look at it again: `steroids tasks show`.", status_now=task.status,
        )  # fmt: skip


def reply(message: str, task: Task, **more: Any) -> dict[str, Any]:
    return {"message": message, "task": task.ref, "status": str(task.status), "round": task.round, **more}


def one_line(text: str) -> str:
    """Return the first sentence or line of a text, short enough for a row of the queue."""
    first = re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]
    return first if len(first) <= 120 else f"{first[:117]}..."
