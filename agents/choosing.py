"""Which agent takes the next run of a task."""

from django.db.models import Count, F, Q

from agents.models import Agent, Run
from tasks.models import Project, Task


def choose_agent(task: Task, role: str, puller: Agent | None = None) -> Agent | None:
    """By domain, then priority; where no domain fits, the first one (ARB-9). None where all are busy.

    A puller, an agent that asks for work itself, is given only what fits it.
    """
    agents = ranked(task.project, role, puller=puller)
    fitting = [a for a in agents if set(a.domains) & set(task.tags)] or [a for a in agents if not a.domains]
    if puller is None:
        fitting = fitting or agents
    return next((agent for agent in fitting if agent.busy < agent.slots), None)


def ranked(
    project: Project, role: str, *, free_only: bool = False, puller: Agent | None = None
) -> list[Agent]:
    """The project's agents of a role, best first; all of them or only those with a free slot.

    Those that ask for work themselves are never among them, but for the one that does so now.
    """
    agents = (
        Agent.objects.filter(role=role, is_active=True)
        .filter(Q(pk=puller.pk) if puller else ~Q(provider=Agent.Provider.PULL))
        .filter(Q(projects=project) | Q(projects__isnull=True))
        .annotate(busy=Count("runs", filter=Q(runs__status__in=Run.SEATED), distinct=True))
        .order_by("-priority", "pk")
        .distinct()
    )
    return list(agents.filter(busy__lt=F("slots")) if free_only else agents)
