"""The state of the whole installation for its operator, as `manage.py status` shows it."""

from typing import Any

from agents.crew import pauses
from agents.loop import outlook
from agents.models import Run
from agents.web.dashboard import health
from agents.web.log import plain, state_of
from agents.web.standing import standings
from agents.web.standing.reasons import held
from disputes.models import Dispute
from tasks.database.clock import estimated_time
from tasks.models import Project, Task
from tasks.projects import counts_of
from tasks.states import MEANINGS, Status

SHOWN = 20  # rows of each list; the counts cover all rows
UNDER_WAY = [
    status for status, meaning in MEANINGS.items() if not meaning.finished and status != Status.PENDING
]


def overview() -> dict[str, Any]:
    """Return the state of the installation as values that JSON can hold.

    These are the loop, projects, live runs, open cards, paused accounts, and what the tasks under way wait
    for.
    """
    now = estimated_time()
    found = health()
    projects = list(Project.objects.exclude(status=Project.Status.FINISHED).order_by("slug"))
    counts = counts_of(projects)
    refused = outlook.refused_in(project.pk for project in projects)
    live = Run.objects.live().select_related("task__project", "host")
    opened = Dispute.objects.waiting().in_order().select_related("task__project", "project")
    moving = Task.objects.filter(project__in=projects, status__in=UNDER_WAY).order_by("project__slug", "rank")
    tasks = list(moving.select_related("project")[:SHOWN])
    lines = standings(tasks, now)
    return {
        "loop": {
            "is_healthy": found["is_healthy"],
            "last_tick": _time(found["last_tick"]),
            "hosts_alive": found["hosts_alive"],
            "host_count": found["host_count"],
            "wrong_hosts": [
                {"what": _line(what), "cure": _line(cure)} for what, cure in found["wrong_hosts"]
            ],
            "hosts": [{"name": host.name, "seen_at": _time(host.seen_at)} for host in found["hosts"]],
        },
        "projects": [
            {
                "slug": each.slug, "status": each.status, "trouble": _line(each.trouble),
                "waits": _line(held(each, refused)) if each.status == Project.Status.ACTIVE else "",
                "tasks": counts[each.pk],
            }
            for each in projects
        ],
        "runs": [
            {
                "run": run.pk, "task": run.task.ref, "role": run.role, "agent": _line(run.agent_label),
                "host": run.host.name if run.host else "", "status": run.status,
                "started_at": _time(run.started_at), "last_output_at": _time(run.last_output_at),
                "state": state_of(run, now),
            }
            for run in live.order_by("pk")[:SHOWN]
        ],
        "run_count": live.count(),
        "cards": [
            {
                "dispute": each.ref, "of": each.task.ref if each.task else each.project.slug,
                "severity": each.severity, "question": _line(each.question),
                "opened_at": _time(each.opened_at),
            }
            for each in opened[:SHOWN]
        ],
        "card_count": opened.count(),
        "pauses": [
            {"account": _line(each.name), "until": _time(each.until), "reason": _line(each.reason)}
            for each in sorted(pauses.paused().values(), key=lambda row: row.until)
        ],
        "waiting": [{"task": task.ref, "for": _line(lines[task.pk].line)} for task in tasks],
        "waiting_count": moving.count(),
    }  # fmt: skip


def _time(moment: Any) -> str | None:
    return moment.isoformat() if moment else None


def _line(text: str) -> str:
    """Return the text as one line without anything that moves a cursor."""
    return " ".join(plain(text).split())
