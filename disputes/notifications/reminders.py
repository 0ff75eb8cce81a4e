"""Reminders when nobody rules: first to the holder, then to leads and people on call, then that it is stale.

A reminder is an event like any other and nothing more: the passing of time moves no task and decides nothing.
"""

import logging
from datetime import datetime, timedelta

from django.db import transaction

from disputes.models import Dispute, Reminder
from disputes.notifications.notices import Topic
from disputes.notifications.subjects import NoticeSubject
from tasks.configuration.policy import ProjectSettings
from tasks.database.clock import estimated_time
from tasks.models import Project
from tasks.models.event import record

log = logging.getLogger(__name__)

BATCH = 200
STARTS = {Topic.OPENED, Topic.REOPENED}
NUDGE, LEAD, STALE = Reminder.Step.NUDGE, Reminder.Step.LEAD, Reminder.Step.STALE
KINDS = {NUDGE: "nudged", LEAD: "unattended", STALE: "stale"}


def follow(subject: NoticeSubject, now: datetime) -> None:
    """Start the reminder when a dispute begins to wait, and delete it when the dispute no longer waits.

    An assignment puts off the first reminder, so that it counts from then on for the new assignee.
    """
    event, dispute = subject.event, subject.dispute
    if dispute is None:
        return
    if dispute.status != Dispute.Status.OPEN:
        Reminder.objects.filter(dispute=dispute).delete()
        return
    config = dispute.project.config
    if subject.topic in STARTS and (due := _first(config, event.at)):
        step, at = due
        Reminder.objects.get_or_create(
            dispute=dispute, defaults={"since": event.at, "step": step, "due_at": at}
        )
    elif event.kind == "assigned" and config.nudge_hours:
        at = event.at + timedelta(hours=config.nudge_hours)
        Reminder.objects.filter(dispute=dispute, step=NUDGE).update(due_at=at)


def remind() -> int:
    """Send the reminders that are due, and return how many were looked at."""
    now = estimated_time()
    due = list(Reminder.objects.filter(due_at__lte=now).values_list("pk", flat=True)[:BATCH])
    for pk in due:
        try:
            _one(pk, now)
        except Exception:
            log.exception("The reminder of D-%d failed; it is tried again in an hour.", pk)
            Reminder.objects.filter(pk=pk).update(due_at=now + timedelta(hours=1))
    return len(due)


@transaction.atomic
def _one(pk: int, now: datetime) -> None:
    """Send one reminder, by compare-and-set: only the process that moves the reminder on sends it."""
    rows = Reminder.objects.select_related("dispute__project", "dispute__task__project")
    reminder = rows.filter(pk=pk, due_at__lte=now).first()
    if reminder is None:
        return
    dispute = reminder.dispute
    seen = Reminder.objects.filter(pk=pk, step=reminder.step, due_at=reminder.due_at)
    if dispute.status != Dispute.Status.OPEN:
        seen.delete()
        return
    if dispute.project.status == Project.Status.FINISHED:
        seen.update(due_at=now + timedelta(days=1))
        return
    if dispute.snoozed_at is not None:
        seen.update(due_at=max(dispute.snoozed_until or now, now) + timedelta(hours=1))
        return
    config = dispute.project.config
    step, following = _reached(config, reminder, now)
    won = seen.delete()[0] if following is None else seen.update(step=following[0], due_at=following[1])
    if won and (step != STALE or config.alert_on_stale != "none"):
        _say(dispute, step, reminder.since, now, config)


def _reached(
    config: ProjectSettings, reminder: Reminder, now: datetime
) -> tuple[Reminder.Step, tuple[Reminder.Step, datetime] | None]:
    """Return the latest step whose time has come, and the one after it.

    The latest alone is sent, so that nobody is told several things at once.
    """
    step, following = Reminder.Step(reminder.step), _after(config, reminder.since, reminder.step)
    while following is not None and following[1] <= now:
        step, following = following[0], _after(config, reminder.since, following[0])
    return step, following


def _say(dispute: Dispute, step: str, since: datetime, now: datetime, config: ProjectSettings) -> None:
    hours = (now - since).total_seconds() / 3600
    waited = f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} hours"
    if step == STALE:
        log.warning("%s is stale: it has waited for %s.", dispute.ref, waited)
    record(
        dispute.project, KINDS[Reminder.Step(step)], task=dispute.task, note=f"It has waited for {waited}.",
        data={"dispute": dispute.ref, "told": step != STALE or config.alert_on_stale == "webhook"},
    )  # fmt: skip


def _times(config: ProjectSettings, since: datetime) -> list[tuple[Reminder.Step, datetime]]:
    """Return the steps that the project wants with their times, earliest first."""
    hours = [(NUDGE, config.nudge_hours), (LEAD, config.lead_hours), (STALE, config.timeout_days * 24)]
    return [(step, since + timedelta(hours=each)) for step, each in hours if each]


def _first(config: ProjectSettings, since: datetime) -> tuple[Reminder.Step, datetime] | None:
    return next(iter(_times(config, since)), None)


def _after(config: ProjectSettings, since: datetime, step: str) -> tuple[Reminder.Step, datetime] | None:
    """Return the step that follows `step` with its time, or None if the project wants none."""
    order = list(Reminder.Step)
    later = order[order.index(Reminder.Step(step)) + 1 :]
    return next((each for each in _times(config, since) if each[0] in later), None)
