"""What is left of a project's work, and which exits are open (END-10). The program only offers them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Expression, OuterRef, QuerySet, Subquery

from disputes.completion import checkpoints
from disputes.models import Conflict, Flag
from disputes.protocol.completion.acknowledgement import DEMANDS, Acknowledgement, Leftover, gates_for
from disputes.protocol.completion.closing import blockers
from disputes.protocol.completion.convergence import State
from disputes.protocol.completion.termination import (
    Ask,
    Exit,
    Gap,
    Next,
    Result,
    Standing,
    decide,
    left_over,
)
from disputes.protocol.reviews.severity import is_grave, total_weight
from disputes.protocol.rounds.gaps import SETTLED, GapState
from disputes.sessions.gaps import state_of, with_facts
from tasks.configuration.policy import ProjectSettings
from tasks.database.prepared import Prepared
from tasks.models import Checkpoint, Dependency, Event, Project, Task
from tasks.states import Severity
from tasks.text.counting import some_of

# The exits that a person may choose; MAX_ROUNDS is a choice on the way, not an exit.
TITLES = {
    Exit.COMPLETE: "Complete",
    Exit.GOOD_ENOUGH: "Good enough",
    Exit.USER_APPROVED: "Approved by a person",
    Exit.STALL_EXIT: "Ended in a stall",
    Exit.ABANDONED: "Abandoned",
}
NEEDS = {
    Exit.COMPLETE: "Everything is settled, and the final review says so.",
    Exit.GOOD_ENOUGH: "Nothing graver than medium is left, and you confirm the list of what is left.",
    Exit.USER_APPROVED: "What is left is acknowledged, with a reason for each grave point.",
    Exit.STALL_EXIT: "In a warning only, with the same acknowledgements.",
    Exit.ABANDONED: "Nothing is exported; the history is kept.",
}
NAMED = 5  # how many tasks or conflicts a refusal names


# --- What the rows say ------------------------------------------------------------------------------------


def standing_of(project: Project) -> Standing:
    """Return everything that decides whether the project may end, except what people type."""
    last = checkpoints.last_checkpoint(project)
    return Standing(
        gaps=[_gap(project, task) for task in _counted.found(project.pk)],
        conflicts=_conflicts(project),
        rounds=last.number if last else 0,
        max_rounds=checkpoints.rounds_allowed(project),
        convergence=_convergence(project, last),
    )


def _counted_in(project: Expression) -> QuerySet[Task]:
    deferred = Event.objects.filter(task=OuterRef("pk"), kind="defer").order_by("-pk")
    counted = with_facts(Task.objects.filter(project=project).exclude(origin=Task.Origin.ROUNDS))
    tasks = counted.annotate(why=Subquery(deferred.values("note")[:1]))
    return tasks.select_related("project").defer("body", "tags").order_by("rank")


_counted = Prepared(_counted_in)


def _gap(project: Project, task: Any) -> Gap:
    state = state_of(task)
    reason = task.why or "" if state is GapState.USER_DEFERRED else ""
    return Gap(f"{project.slug}-{task.number}", Severity(task.severity), state, task.title, reason)


def _conflicts(project: Project) -> list[Leftover]:
    """Return the conflicts on findings that wait for a ruling.

    A card that asks for help is not among them: it is a state of its task (BLOCKED_EXTERNAL).
    """
    rows: list[Conflict] = _open_in.found(project.pk)
    return [Leftover(row.ref, Severity(row.severity), row.question) for row in rows]


def _open_conflicts(project: Expression) -> QuerySet[Conflict]:
    of_tasks = Conflict.objects.filter(dispute__project=project, dispute__task__isnull=False)
    return of_tasks.open().on_findings().order_by("pk")


_open_in = Prepared(_open_conflicts)


def _convergence(project: Project, last: Checkpoint | None) -> State:
    if checkpoints.is_diverging(project):
        return State.DIVERGENCE_WARNING
    if last is None or last.state == State.DIVERGENCE_WARNING:  # the warning was answered
        return State.CONVERGING
    return State(last.state)


def unlanded(project: Project) -> list[Task]:
    """Return the approved tasks whose commit is not on the target branch; an ended project lands nothing."""
    return list(Task.objects.filter(project=project).to_land().select_related("project").order_by("rank"))


# --- The final review -------------------------------------------------------------------------------------


def final_review(project: Project, standing: Standing, checked: Collection[str]) -> tuple[str, ...]:
    """Return what is in the way of the end; `checked` are the points that a maintainer confirmed.

    The program itself checks what the database can tell. The maintainer alone checks the rest. A flag
    without a card is only listed: nobody is asked about it, so nobody could settle it.
    """
    asked_about = Flag.objects.standing().unsettled().exclude(conflict=None)
    open_flags = asked_about.filter(finding__task__project=project)
    untreated = dict.fromkeys(
        f"{flag.finding.code} of {project.slug}-{flag.finding.task.number}"
        for flag in open_flags.select_related("finding__task")
    )
    waits: dict[str, list[str]] = {}
    links = Dependency.objects.filter(task__project=project).values_list("task__number", "on__number")
    for task, on in links:
        waits.setdefault(f"{project.slug}-{task}", []).append(f"{project.slug}-{on}")
    return blockers(standing.gaps, untreated, waits, checked)


# --- Which exits are open ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfferedEnd:
    """An exit and why it is closed; an empty `why_not` means that it is open once its gates are passed."""

    exit: Exit
    title: str
    needs: str
    why_not: str = ""


def ask_for(kind: Exit, standing: Standing) -> Ask:
    """Return what a person who wants this exit has to ask for in the present state (END-1 to END-6)."""
    match kind:
        case Exit.COMPLETE:
            return Ask.NOTHING
        case Exit.ABANDONED:
            return Ask.ABANDON
        case Exit.STALL_EXIT:
            return Ask.FORCE_COMPLETE
    return Ask.ACCEPT if standing.rounds >= standing.max_rounds else Ask.STOP


def offers(project: Project, standing: Standing) -> list[OfferedEnd]:
    """Return each exit, with the reason if it is closed."""
    waiting = unlanded(project)
    return [
        OfferedEnd(kind, title, NEEDS[kind], why_not(project, kind, standing, waiting))
        for kind, title in TITLES.items()
    ]


def why_not(project: Project, kind: Exit, standing: Standing, waiting: Sequence[Task]) -> str:
    """Return why this exit is closed even to somebody who types everything required, or "" if it is open."""
    if kind is Exit.ABANDONED:
        return ""
    if waiting:
        return f"{_some([task.ref for task in waiting])} approved and not landed yet: wait, or cancel."
    left = left_over(standing)
    willing = Acknowledgement(
        phrases={gate: DEMANDS[gate].phrase for gate in gates_for(left)},
        rationales={each.code: "known" for each in left},
        confirmed=frozenset(each.code for each in left),
    )
    asked = replace(standing, asked=ask_for(kind, standing), ready=True, acknowledgement=willing)
    settings = project.config
    return _closed_because(kind, decide(asked, settings), standing, settings)


def _closed_because(kind: Exit, result: Result, standing: Standing, settings: ProjectSettings) -> str:
    """Return why the result is not this exit, in words, or "" if it is."""
    if result.exit is kind:
        return ""
    match result.next:
        case Next.CONFLICTS:
            return f"{_some([each.code for each in result.conflicts])} undecided: rule on it first."
        case Next.END if result.exit is Exit.COMPLETE:
            return "Nothing is left: it ends as complete."
        case Next.END if result.exit is Exit.GOOD_ENOUGH:
            return "Nothing grave is left: it ends as good enough."
        case Next.END:
            grave = [each.code for each in result.left if is_grave(each.severity)]
            return f"{_some(grave)} left, critical or high."
    if kind is Exit.COMPLETE:
        return _unsettled(standing, settings)
    if kind is Exit.STALL_EXIT and standing.convergence is not State.DIVERGENCE_WARNING:
        return "There is no warning to leave by force."
    if result.next is Next.MAX_ROUNDS:
        return "The limit of checkpoints is reached: accept what there is, extend it, or abandon."
    return "The project diverges or stalls: answer its card, or end in a stall."


def _unsettled(standing: Standing, settings: ProjectSettings) -> str:
    rest = [gap for gap in standing.gaps if gap.state not in SETTLED]
    working = [gap.code for gap in rest if gap.state is not GapState.USER_DEFERRED]
    grave = [gap.code for gap in rest if gap.state is GapState.USER_DEFERRED and is_grave(gap.severity)]
    if working:
        return f"{_some(working)} not settled."
    if grave:
        return f"{_some(grave)} put off, critical or high."
    weight = total_weight((gap.severity for gap in rest), settings.severity_weights)
    return f"What is put off weighs {weight}; {settings.complete_deferred_weight_max} is the most."


def _some(names: Sequence[str]) -> str:
    return f"{some_of(names, NAMED)} {'is' if len(names) == 1 else 'are'}"
