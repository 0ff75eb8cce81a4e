"""The steps a new installation needs before anything can land, each with its state read from rows."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.urls import reverse

from agents.models import Agent, Host, Run
from agents.setup.demo import SLUG as DEMO
from tasks import base
from tasks.models import Project, Task
from tasks.text.counting import counted

Base = Project.Base
START = ".venv/bin/python manage.py run_orchestrator"
DEMO_COMMAND = ".venv/bin/python manage.py run_orchestrator --demo"
SHOWN = 6  # projects considered at most
DONE, WRONG, OPEN = "done", "wrong", "open"
WAITS = "waits"  # waits for a machine: no person has to do anything


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One step: whether it is done, how things are, and where it can be done."""

    title: str
    state: str
    line: str
    url: str = ""
    link: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Checklist:
    """The steps of the project that is being set up; without a project, the first step is to add one."""

    project: Project | None
    steps: list[SetupStep]
    demo_command: str = ""
    others: list[Project] = field(default_factory=list)

    @property
    def next(self) -> SetupStep | None:
        """The first step that the person can take, or else that anybody can; None if there is none."""
        missing = [step for step in self.steps if step.state in {OPEN, WRONG}]
        return next((step for step in missing if step.url or step.command), missing[0] if missing else None)

    @property
    def done(self) -> int:
        return sum(step.state == DONE for step in self.steps)


def set_up_by(maintained: Iterable[Project]) -> list[Project]:
    """Return those of a person's maintained projects that need setting up: all but the demo."""
    return [project for project in maintained if project.slug != DEMO]


def checklist_for(user: Any, mine: Iterable[Project]) -> Checklist | None:
    """Return the checklist for whoever sets something up, or None if that is not for them.

    The caller asks only if nothing of theirs has landed. `mine` are the projects from `set_up_by`.
    """
    project, *others = _in_order(mine) or [None]
    if project is None and not user.is_superuser:
        return None
    has_demo = Project.objects.filter(slug=DEMO).exists()
    return Checklist(project, steps_of(project, user), "" if has_demo or project else DEMO_COMMAND, others)


def _in_order(projects: Iterable[Project]) -> list[Project]:
    """Return the active projects, those that wait for a person first, then the newest."""
    active = [project for project in projects if project.status == Project.Status.ACTIVE]
    return sorted(active, key=lambda project: (not _waits(project), -project.pk))[:SHOWN]


def _waits(project: Project) -> bool:
    return bool(project.trouble) or project.base_state in {Base.RED, Base.BROKEN}


def steps_of(project: Project | None, user: Any) -> list[SetupStep]:
    """Return all steps in order, with three queries for a project, otherwise two."""
    crew = agents_of(project)
    loop = _loop()
    is_up = loop.state == DONE
    return [
        _repository(project, is_up),
        _branch(project, is_up),
        _agent(crew, Agent.Role.CODER, user, "writes the code"),
        _agent(crew, Agent.Role.REVIEWER, user, "reads what the coder hands in"),
        _tasks(project),
        _people(project),
        loop,
    ]


def agents_of(project: Project | None) -> list[Any]:
    """Return the active agents that may work in the project, or in a new one if it is None.

    `has_worked` says whether a run of the agent has handed work in.
    """
    anywhere = Q(projects__isnull=True)
    allowed = anywhere | Q(projects=project) if project else anywhere
    rows = Agent.objects.filter(allowed, is_active=True).distinct()
    handed_in = Run.objects.filter(agent=OuterRef("pk"), outcome=Run.Outcome.HANDED_IN)
    return list(rows.annotate(has_worked=Exists(handed_in)))


def _repository(project: Project | None, is_up: bool) -> SetupStep:
    title = "Repository"
    if project is None:
        add = reverse("admin:tasks_project_add")
        return SetupStep(
            title, OPEN, "Where the code is: an address that git can fetch.", add, "Add a project"
        )
    here = reverse("project-setup", args=[project.slug])
    if project.trouble:
        return SetupStep(title, WRONG, project.trouble, here, "Mend it")
    if project.base_sha:
        return SetupStep(title, DONE, f"{project.address}, {project.target_branch}", here, "Set-up")
    waits = "It is being fetched." if is_up else "It is fetched once the loop runs."
    return SetupStep(title, WAITS, waits, here, "Look")


def _branch(project: Project | None, is_up: bool) -> SetupStep:
    title = "Target branch"
    if project is None:
        return SetupStep(title, OPEN, "Commands that build and test it are looked for by trying.")
    here = reverse("project-setup", args=[project.slug])
    if project.base_state in Project.FIT:
        return SetupStep(title, DONE, base.said(project), here, "Commands")
    if project.base_state in {Base.RED, Base.BROKEN}:
        return SetupStep(title, WRONG, base.said(project), here, "Mend it")
    waits = "It is being tried before anybody works on it." if is_up else "It is tried once the loop runs."
    return SetupStep(title, WAITS, waits, here, "Watch")


def _agent(crew: Iterable[Any], role: str, user: Any, does: str) -> SetupStep:
    title = Agent.Role(role).label
    mine = [agent for agent in crew if agent.role == role]
    add = f"{reverse('admin:agents_agent_add')}?role={role}" if user.is_superuser else ""
    if not mine:
        line = f"An agent that {does}: any command."
        return SetupStep(title, OPEN, line if add else f"{line} A superuser adds it.", add, f"Add a {role}")
    best = max(mine, key=lambda agent: (bool(agent.is_fine), agent.is_fine is None and agent.has_worked))
    edit = reverse("admin:agents_agent_change", args=[best.pk]) if user.is_superuser else ""
    if best.is_fine:
        return SetupStep(title, DONE, f"{best.name}, checked: {best.check_says}", edit, "Open")
    if best.is_fine is False:
        return SetupStep(title, WRONG, f"{best.name}: {best.check_says}", edit, "Mend it")
    if best.has_worked:
        return SetupStep(title, DONE, f"{best.name} has handed work in.", edit, "Open")
    if best.provider in {Agent.Provider.PULL, Agent.Provider.REPLAY}:  # there is nothing to start here
        return SetupStep(title, DONE, f"{best.name}, {best.get_provider_display().lower()}", edit, "Open")
    how = ": “Save and check” starts it once." if edit else ". A superuser checks it."
    return SetupStep(title, OPEN, f"{best.name} is not checked yet{how}", edit, "Check")


def _tasks(project: Project | None) -> SetupStep:
    title = "Tasks"
    if project is None:
        return SetupStep(title, OPEN, "What is to be done, pasted as a TODO.md or written one by one.")
    count = project.tasks.exclude(origin=Task.Origin.SETUP).count()
    here = reverse("project-import", args=[project.slug])
    if not count:
        return SetupStep(title, OPEN, "What is to be done, pasted as a TODO.md.", here, "Paste tasks")
    board = reverse("board", args=[project.slug])
    return SetupStep(title, DONE, counted(count, "task"), board, "Board")


def _people(project: Project | None) -> SetupStep:
    title = "People"
    if project is None:
        return SetupStep(title, OPEN, "Who rules where agents disagree. Whoever makes the project leads it.")
    names = [member.user.get_username() for member in project.memberships.select_related("user")[:20]]
    edit = f"{reverse('admin:tasks_project_change', args=[project.pk])}#memberships"
    if not names:
        return SetupStep(title, OPEN, "Nobody is a member yet; no one is told.", edit, "Add people")
    return SetupStep(title, DONE, ", ".join(names), edit, "Edit")


def _loop() -> SetupStep:
    host = Host.objects.alive().order_by("-seen_at").first()
    if host is None:
        return SetupStep(
            "Start",
            OPEN,
            "Nothing runs yet. Start the loop where the program is installed:",
            command=START,
        )
    return SetupStep("Start", DONE, f"The loop runs on {host.name}.", reverse("runs"), "Runs")
