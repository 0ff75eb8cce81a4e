"""Alerts: cards about a whole project that does not converge (CONV-7), and what each answer to them does."""

import re
from collections.abc import Collection, Iterable
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet

from disputes import opening
from disputes.models import Conflict, ConflictQuerySet, Decision, Dispute
from disputes.protocol.rulings.options import PROJECT_ALERTS, Kind, Option
from tasks import base
from tasks.configuration.policy import LOG
from tasks.database.locking import locked
from tasks.database.prepared import Prepared
from tasks.errors import Invalid, Refused
from tasks.events import SYSTEM, Actor
from tasks.models import Landing, Project, Task
from tasks.models.event import record
from tasks.states import MOVES, STARTABLE, Severity, Status
from tasks.text.regex import regex

# The names of the events that record the answers.
NARROWED, ACCEPTED, FOCUSED, PAUSED = (
    "scope_narrowed", "complexity_accepted", "critical_first", "project_paused",
)  # fmt: skip
BEGIN_ANEW = (NARROWED, ACCEPTED)  # these restart the count of checkpoints without progress
CRITICAL_FIRST = "critical"
TASK_REF = regex(r"[a-z0-9][\w-]*-\d{1,9}\b", re.IGNORECASE)


# --- The card ---------------------------------------------------------------------------------------------


def open_alerts(project: Project) -> QuerySet[Conflict]:
    """Return the undecided alerts about the whole project."""
    return _open_on(project).filter(kind=Kind.ALERT, origin__in=PROJECT_ALERTS)


def _open_on(project: Project) -> ConflictQuerySet:
    return Conflict.objects.open().filter(dispute__project=project, dispute__task__isnull=True)


@transaction.atomic
def open_alert(project: Project, *, origin: str, question: str, evidence: Iterable[str] = ()) -> Conflict:
    """Ask people about the project's course, or update the alert that is already waiting for an answer."""
    return _ask(open_alerts(project), project, origin, question, evidence, Severity.HIGH)


def _ask(
    waiting: QuerySet[Conflict], project: Project, origin: str, question: str, evidence: Iterable[str],
    severity: str, *, detail: str = "",
) -> Conflict:  # fmt: skip
    """Update the first of the waiting cards with these words, or open a new card if there is none."""
    locked(Project.objects).get(pk=project.pk)
    words = {
        "origin": origin, "question": question[:500], "evidence": list(evidence), "coder_position": detail,
    }  # fmt: skip
    if known := waiting.select_related("dispute__project").first():
        for name, value in words.items():
            setattr(known, name, value)
        known.save(update_fields=list(words))
        opening.refresh(known.dispute)
        return known
    dispute = Dispute.objects.live().filter(project=project, task__isnull=True).first()
    if dispute is None:
        dispute = Dispute.objects.create(project=project, question=question[:500], severity=severity)
    conflict = Conflict.begin(
        dispute=dispute, kind=Kind.ALERT, opened_as="system", severity=severity, effect=LOG, **words
    )
    opening.refresh(dispute)
    record(
        project, "alert_opened", actor=SYSTEM, note=question,
        data={"conflict": conflict.ref, "origin": origin, "severity": severity},
    )  # fmt: skip
    return conflict


# --- The card about the target branch ---------------------------------------------------------------------


def about_base(project: Project) -> QuerySet[Conflict]:
    return _open_on(project).filter(origin=Conflict.Origin.BASE)


@transaction.atomic
def ask_about_base(
    project: Project, question: str, *, evidence: Iterable[str] = (), detail: str = ""
) -> Conflict:
    """Ask people about a target branch that is not fit to work on, or update the card that is still waiting.

    `detail` is the end of the output of the failed command.
    """
    return _ask(
        about_base(project), project, Conflict.Origin.BASE, question, evidence, Severity.HIGH,
        detail=detail,
    )  # fmt: skip


@transaction.atomic
def withdraw_base_card(project: Project) -> None:
    """Drop the card about the target branch, because it is fit again or is being tried for another reason."""
    _withdraw(about_base(project), "the branch needs no answer any more")


def _withdraw(cards: QuerySet[Conflict], why: str) -> None:
    for card in cards.select_related("dispute__project", "dispute__task"):
        card.drop(why)
        opening.refresh(card.dispute)


# --- The card about a branch that lost landed work --------------------------------------------------------


def about_rewritten(project: Project) -> QuerySet[Conflict]:
    return _open_on(project).filter(origin=Conflict.Origin.REWRITTEN)


@transaction.atomic
def ask_about_rewritten(project: Project, question: str, *, evidence: Iterable[str]) -> Conflict:
    """Ask people about landed work that the target branch has lost, or add to the card that is waiting."""
    told = [line for card in about_rewritten(project) for line in card.evidence]
    return _ask(
        about_rewritten(project), project, Conflict.Origin.REWRITTEN, question,
        list(dict.fromkeys([*told, *evidence])), Severity.CRITICAL,
    )  # fmt: skip


@transaction.atomic
def withdraw_rewritten_card(project: Project) -> None:
    """Drop the card about lost work, because the branch has all of it again."""
    _withdraw(about_rewritten(project), "the branch has it again")


def _reopen_lost(project: Project, *, actor: Actor, note: str) -> None:
    """Reopen the tasks that count as landed but whose landed work is gone from the branch."""
    gone = Landing.objects.filter(project=project, status=Landing.Status.LANDED, gone_at__isnull=False)
    locked(Project.objects).get(pk=project.pk)
    for task in Task.objects.filter(landings__in=gone, landed_sha=F("landings__sha")).distinct():
        if task.status in MOVES["reopen"].sources:
            task.reopen(actor=actor, note=note)


_live_alerts = Prepared(lambda project: Dispute.objects.live().filter(project=project, task__isnull=True))


@transaction.atomic
def close_alerts(project: Project, reason: str) -> None:
    """Close the project's open alerts, which nobody has to answer any more."""
    for dispute in _live_alerts.found(project.pk):
        opening.close(dispute, reason)


def carry_out(decision: Decision, *, actor: Actor) -> None:
    """Do what was chosen on a project's card, by somebody who may rule.

    Raises Refused("unknown_task") if the text names something that is not a task of the project, and what the
    chosen action itself raises: "text_missing", "wrong_status" or "no_critical".
    """
    project = decision.conflict.dispute.project
    reason = decision.rationale or decision.conflict.question
    match Option(decision.option):
        case Option.NARROW:
            narrow(project, named_tasks(project, decision.text), reason, actor=actor)
        case Option.ACCEPT if decision.conflict.origin == Conflict.Origin.REWRITTEN:
            return
        case Option.REOPEN_LOST:
            _reopen_lost(project, actor=actor, note=f"{decision.conflict.ref}: {decision.conflict.question}")
        case Option.ACCEPT:
            record(project, ACCEPTED, actor=actor, note=reason)
        case Option.PRIORITISE:
            prioritise(project, reason, actor=actor)
        case Option.PAUSE:
            pause(project, reason, actor=actor)
        case Option.TRY_AGAIN:
            base.try_again(project, actor=actor, why=decision.rationale)
        case Option.ACCEPT_BASE:
            base.accept_as_it_is(project, actor=actor, reason=decision.rationale)
        case Option.FIND_COMMANDS:
            base.find_commands(project, actor=actor)


def named_tasks(project: Project, text: str) -> list[Task]:
    """Return the tasks that a text names, one per line, such as ledger-7.

    Raises Refused("unknown_task") if a line names no task of the project, or if there is no line at all.
    """
    names = [line.strip(" \t-*") for line in text.splitlines() if line.strip(" \t-*")]
    refs = [(name, TASK_REF.match(name)) for name in names]
    numbers = {ref[0].lower(): int(ref[0].rpartition("-")[2]) for _, ref in refs if ref}
    found = {
        task.ref.lower(): task
        for task in project.tasks.filter(number__in=numbers.values()).select_related("project", "section")
    }
    unknown = [name for name, ref in refs if ref is None or ref[0].lower() not in found]
    if unknown or not names:
        raise Invalid(
            "unknown_task", f"{', '.join(unknown)[:300] or 'Nothing'} is no task of {project.name}.",
            f"Write one task a line: {project.slug}-7.",
        )  # fmt: skip
    return [found[ref] for ref in numbers]


# --- The answers ------------------------------------------------------------------------------------------


@transaction.atomic
def narrow(project: Project, tasks: Collection[Task], reason: str, *, actor: Actor) -> None:
    """Defer the tasks, with the reason.

    Raises Refused: "text_missing" if there is no task or no reason, and "wrong_status" if a task cannot be
    deferred or belongs to another project.
    """
    if not tasks or not reason.strip():
        raise Invalid("text_missing", "To narrow the scope takes tasks and a reason.", "Name both.")
    movable = MOVES["defer"].sources
    if stuck := [task for task in tasks if task.status not in movable or task.project_id != project.pk]:
        raise Refused(
            "wrong_status", f"{', '.join(task.ref for task in stuck)} cannot be put off.",
            "Only unfinished tasks of this project can.",
        )  # fmt: skip
    locked(Project.objects).get(pk=project.pk)
    for task in tasks:
        if task.status != Status.DEFERRED:
            task.defer(actor=actor, note=reason)
    record(project, NARROWED, actor=actor, note=reason, data={"tasks": [task.ref for task in tasks][:100]})


@transaction.atomic
def prioritise(project: Project, reason: str, *, actor: Actor) -> None:
    """Start only critical tasks until none is left. Raises Refused("no_critical") if none is left now."""
    if not _unsettled_critical(project).exists():
        raise Refused(
            "no_critical", f"No critical task is left in {project.name}.",
            "Raise the severity of what matters most first.",
        )  # fmt: skip
    Project.objects.filter(pk=project.pk).update(focus=CRITICAL_FIRST)
    project.focus = CRITICAL_FIRST
    record(project, FOCUSED, actor=actor, note=reason)


@transaction.atomic
def pause(project: Project, reason: str, *, actor: Actor) -> None:
    """Pause the project, so that nothing of it is started until somebody makes it active again.

    Raises Refused("wrong_status") if the project is not active.
    """
    paused = Project.objects.filter(pk=project.pk, status=Project.Status.ACTIVE)
    if not paused.update(status=Project.Status.PAUSED):
        raise Refused("wrong_status", f"{project.name} is not active.", "Nothing of it is started anyway.")
    project.status = Project.Status.PAUSED
    record(project, PAUSED, actor=actor, note=reason)


# --- Critical tasks first ---------------------------------------------------------------------------------


def _unsettled_critical(project: Project) -> Any:
    """Return the critical tasks that are neither finished nor deferred."""
    waiting = [*STARTABLE, Status.DISPUTED, Status.FAILED]
    return project.tasks.filter(severity=Severity.CRITICAL, status__in=waiting)


def in_focus(project: Project) -> Q:
    """Return a filter for the tasks that the loop may begin; end the focus if no critical task is left.

    If every critical task is waiting for a human or for another task, the others go on: the loop never waits.
    """
    if not project.focus:
        return Q()
    critical = _unsettled_critical(project)
    if not critical.exists():
        Project.objects.filter(pk=project.pk).update(focus="")
        project.focus = ""
        record(project, "focus_ended", note="No critical task is left.")
        return Q()
    if not critical.startable().exists():
        return Q()
    return ~Q(status=Status.PENDING) | Q(severity=Severity.CRITICAL)
