"""The overview of a project: how far it is, what is under way, who works on it, and what to do next."""

from typing import Any

from django.db.models import Count, QuerySet
from django.utils.functional import cached_property

from agents.loop import outlook
from agents.models import Agent, Run
from agents.money import caps, spending
from agents.web import checklist, costs
from agents.web.checklist import Checklist
from agents.web.setup import SetupPage
from agents.web.standing.reasons import of_project, refusal
from disputes.models import Dispute
from tasks.database.clock import estimated_time
from tasks.models import FollowedTodo, Membership, Project, Task
from tasks.states import Status

CARDS, RUNS, LANDED, MEMBERS, AGENTS = 6, 8, 8, 30, 30


class Overview:
    """What the page shows, in a constant number of queries."""

    def __init__(self, project: Project, user: Any, role: str) -> None:
        self.project, self.user, self.role = project, user, role
        self.branch = SetupPage(project, role)

    @cached_property
    def checklist(self) -> Checklist:
        return Checklist(self.project, checklist.steps_of(self.project, self.user))

    @property
    def next(self) -> Any:
        """The first missing step, for those who may take it; otherwise None."""
        return self.checklist.next if self.branch.may_edit and not self.has_ended else None

    @property
    def has_ended(self) -> bool:
        return bool(self.project.status == Project.Status.FINISHED)

    @cached_property
    def closed(self) -> str:
        """Why no agent is started, unless the next step says so: the project, its remote, or a cap."""
        is_next = self.next is not None and self.project.trouble
        if not is_next and (why := of_project(self.project, estimated_time())):
            return why
        if landing := outlook.refused_in([self.project.pk]).get(self.project.pk):
            return refusal(landing, estimated_time())
        reached = caps.closed([self.project]).get(self.project.pk)
        return caps.closed_line(reached) if reached else ""

    @property
    def _wanted_tasks(self) -> QuerySet[Task]:
        """The tasks that somebody asked for; a session only works on them."""
        return self.project.tasks.exclude(origin=Task.Origin.ROUNDS)

    @cached_property
    def by_status(self) -> list[tuple[str, int]]:
        """The number of tasks for each status; statuses without tasks are left out."""
        counts = dict(self._wanted_tasks.order_by().values_list("status").annotate(n=Count("pk")))
        return [(status, counts[status]) for status in Status if counts.get(status)]

    @cached_property
    def todo(self) -> FollowedTodo | None:
        """The TODO.md in the repository that the project follows; None if there is none."""
        chosen = self.project.config.todo_path
        return FollowedTodo.objects.filter(project=self.project).first() if chosen else None

    @property
    def wanted(self) -> int:
        return sum(count for status, count in self.by_status if status != Status.CANCELLED)

    @cached_property
    def landed_count(self) -> int:
        return self._wanted_tasks.filter(landed_at__isnull=False).exclude(status=Status.CANCELLED).count()

    @cached_property
    def cards(self) -> list[Dispute]:
        rows = Dispute.objects.open().filter(project=self.project).in_order()
        return list(rows.select_related("project", "task__project")[: CARDS + 1])

    @cached_property
    def runs(self) -> list[Run]:
        live = Run.objects.live().filter(project=self.project).select_related("task__project", "host")
        return list(live.order_by("-pk")[: RUNS + 1])

    @cached_property
    def landed(self) -> list[Task]:
        rows = list(self.project.tasks.filter(landed_at__isnull=False).order_by("-landed_at")[:LANDED])
        for task in rows:
            task.project = self.project
        return rows

    @cached_property
    def agents(self) -> list[Agent]:
        return checklist.agents_of(self.project)[:AGENTS]

    @cached_property
    def members(self) -> list[Membership]:
        rows = self.project.memberships.select_related("user").order_by("-is_lead", "user__username")
        return list(rows[:MEMBERS])

    @cached_property
    def spent(self) -> str:
        """What all runs of the project cost together, in words."""
        return costs.line(spending.total(Run.objects.filter(project=self.project)))
