"""Ending a project by one of the exits that are open, extending it, and resuming it (END-10)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from disputes import alerts
from disputes.completion import checkpoints, exits
from disputes.completion.exits import TITLES, ask_for, final_review, standing_of
from disputes.protocol.completion.acknowledgement import DEMANDS, Acknowledgement
from disputes.protocol.completion.closing import Durations, durations, summarise
from disputes.protocol.completion.convergence import RoundResult, State
from disputes.protocol.completion.termination import Exit, Next, Result, Standing, decide, extended
from tasks.access import MAINTAIN, require
from tasks.configuration.changing import configure
from tasks.database.clock import estimated_time
from tasks.database.locking import locked
from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.models import Checkpoint, Project
from tasks.models.event import record
from tasks.text.counting import counted


@dataclass(frozen=True, slots=True)
class EndRequest:
    """What a person says in order to end a project.

    `phrases` holds what was typed for each gate (critical, high), `rationales` a reason for each grave task
    or conflict that is left, by its code, `confirmed` the codes of the other ones, `checked` the points of
    the final review. To abandon the project takes `confirm`.
    """

    kind: str = ""
    phrases: Mapping[str, str] = field(default_factory=dict)
    rationales: Mapping[str, str] = field(default_factory=dict)
    confirmed: Collection[str] = ()
    checked: Collection[str] = ()
    reason: str = ""
    confirm: bool = False


@transaction.atomic
def end_project(project: Project, said: EndRequest, *, user: Any) -> Project:
    """End the project by the exit that the person chose, if the procedure allows it (END-1 to END-7).

    Raises Refused: "no_right", "already_ended", "unknown_exit", "unconfirmed", "not_landed", "exit_closed",
    "not_ready", "gates".
    """
    project = locked(Project.objects).get(pk=project.pk)
    require(user, project, MAINTAIN, "end the work")
    if project.exit_type:
        raise Refused("already_ended", f"{project.name} has ended already.", "Take it up again first.")
    if said.kind not in TITLES:
        offered = ", ".join(TITLES)
        raise Invalid("unknown_exit", f"{said.kind} is no end.", f"There are {offered}.")
    chosen, actor, now = Exit(said.kind), Actor.person(user), estimated_time()
    standing = standing_of(project)
    standing = replace(
        standing,
        asked=ask_for(chosen, standing),
        ready=not final_review(project, standing, said.checked),
        acknowledgement=_acknowledgement(said, actor, now),
    )
    result = decide(standing, project.config)
    _check_end(project, said, result, standing)
    return _end(project, chosen, result, standing, actor, said.reason, now)


@transaction.atomic
def abandon(project: Project, *, actor: Actor, reason: str) -> None:
    """End the project as abandoned on behalf of whoever operates the machine, without checking rights.

    Raises Refused("already_ended").
    """
    project = locked(Project.objects).get(pk=project.pk)
    if project.exit_type:
        raise Refused("already_ended", f"{project.name} has ended already.", "Take it up again first.")
    standing = standing_of(project)
    standing = replace(standing, asked=ask_for(Exit.ABANDONED, standing))
    result = decide(standing, project.config)
    _end(project, Exit.ABANDONED, result, standing, actor, reason, estimated_time())


def _end(
    project: Project,
    chosen: Exit,
    result: Result,
    standing: Standing,
    actor: Actor,
    reason: str,
    now: datetime,
) -> Project:
    history = [_result(row) for row in project.checkpoints.standing().filter(number__gt=0).order_by("number")]
    told = summarise(result, standing, _spent(project, now), history).to_json()
    told |= {"by": actor.label, "at": now.isoformat(), "reason": reason.strip()[:2000]}
    _close(project, chosen, told, now)
    record(
        project, "project_ended", actor=actor, note=reason,
        data={"exit": chosen, "step": result.step, "left": [each.code for each in result.left][:100]},
    )  # fmt: skip
    return project


def _acknowledgement(said: EndRequest, actor: Actor, now: datetime) -> Acknowledgement:
    return Acknowledgement(
        phrases={gate: said.phrases.get(gate, "") for gate in DEMANDS},
        rationales=dict(said.rationales),
        confirmed=frozenset(said.confirmed),
        by=actor.label,
        at=now.isoformat(),
    )


def _check_end(project: Project, said: EndRequest, result: Result, standing: Standing) -> None:
    """Raise Refused if the result of the procedure is not the exit that was chosen."""
    kind, keep = Exit(said.kind), "What you typed is kept."
    if kind is Exit.ABANDONED:
        if not said.confirm:
            raise Invalid("unconfirmed", "Confirm that the project is to be abandoned.", keep)
        return
    waiting = exits.unlanded(project)
    if why := exits.why_not(project, kind, standing, waiting):
        code = "not_landed" if waiting else "exit_closed"
        raise Refused(code, f"{project.name} cannot end as {TITLES[kind].lower()}. {why}", keep)
    if result.next is Next.GATES:
        raise Invalid(
            "gates", "What is left is not acknowledged yet.", keep,
            details=[
                {"gate": str(each.gate), "reason": each.why, "codes": list(each.codes)}
                for each in result.refusals
            ],
        )  # fmt: skip
    if result.exit is not kind:
        blockers = final_review(project, standing, said.checked)
        raise Invalid(
            "not_ready", "The final review is not passed.", keep,
            details=[{"gate": "final review", "reason": blocker, "codes": []} for blocker in blockers],
        )  # fmt: skip


def _result(row: Checkpoint) -> RoundResult:
    return RoundResult(State(row.state), "", row.weighted_net, row.net, row.flat)


def _spent(project: Project, now: datetime) -> Durations:
    """Return the time since the first checkpoint, of which the time between checkpoints counts as work."""
    times = [
        at.timestamp()
        for at in project.checkpoints.standing().order_by("number").values_list("at", flat=True)
    ]
    started = times[0] if times else project.created_at.timestamp()
    return durations(started, now.timestamp(), zip(times, times[1:], strict=False))


def _close(project: Project, kind: Exit, told: dict[str, Any], now: datetime) -> None:
    """Mark the project as ended: nothing is started, tasks keep their status, and their runs end."""
    project.status, project.focus = Project.Status.FINISHED, ""
    project.exit_type, project.exit_at, project.exit_summary = kind, now, told
    project.save(update_fields=["status", "focus", "exit_type", "exit_at", "exit_summary"])
    project.tasks.filter(status__in=checkpoints.UNDER_WAY).update(version=F("version") + 1)
    alerts.close_alerts(project, "project ended")


# --- Going on ---------------------------------------------------------------------------------------------


@transaction.atomic
def resume_project(project: Project, *, user: Any, reason: str) -> None:
    """Resume a project that has ended.

    Raises Refused: "no_right", "text_missing" without a reason, or "wrong_status" if the project has not
    ended.
    """
    project = locked(Project.objects).get(pk=project.pk)
    require(user, project, MAINTAIN, "take the work up again")
    if not reason.strip():
        raise Invalid("text_missing", "A reason is needed to take a project up again.", "Give a reason.")
    if project.status != Project.Status.FINISHED:
        raise Refused(
            "wrong_status", f"{project.name} is {project.status}.", "Only an ended one is taken up."
        )
    ended = {"exit": project.exit_type, "at": project.exit_at.isoformat() if project.exit_at else ""}
    project.status, project.exit_type, project.exit_at = Project.Status.ACTIVE, "", None
    project.save(update_fields=["status", "exit_type", "exit_at"])
    record(project, "project_resumed", actor=Actor.person(user), note=reason.strip(), data={"ended": ended})


@transaction.atomic
def extend(project: Project, *, user: Any) -> int:
    """Allow more checkpoints to a project that has used all of them, and return the new limit.

    Raises Refused: "no_right", "not_at_limit", "hard_limit".
    """
    project = locked(Project.objects).get(pk=project.pk)
    require(user, project, MAINTAIN, "add checkpoints")
    standing = standing_of(project)
    if standing.rounds < standing.max_rounds:
        raise Refused(
            "not_at_limit", f"It has used {standing.rounds} of {counted(standing.max_rounds, 'checkpoint')}.",
            "It can be extended once they all are.",
        )  # fmt: skip
    try:
        limit = extended(standing.max_rounds, project.config)
    except ValueError as error:
        raise Refused("hard_limit", str(error), "Accept what there is, or abandon it.") from error
    configure(project, {"max_rounds": limit}, actor=Actor.person(user))
    return limit
