"""The steps from a fresh installation to work that can begin: account, project, agents, tasks.

Each step looks at the rows first and does only what is missing, so it can be repeated at any time. A refusal
raises CommandError, which says what to do about it.
"""

import getpass
import hmac
import os
import secrets
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.management.base import CommandError
from django.db import transaction
from django.db.models import F, Q
from django.utils.text import slugify

from agents.hosts import agent_command, paths
from agents.hosts.git import remotes
from agents.hosts.git.commands import GitError
from agents.models import Agent
from agents.providers.base import ProviderError, find_program
from agents.providers.registry import CLIS
from agents.setup import adding, checking, projects
from agents.setup.asking import Asker
from agents.setup.demo import SLUG as DEMO
from agents.verification import commands
from tasks.events import Actor
from tasks.management.program_command import as_command_error, list_of
from tasks.models import Project, Task
from tasks.models.project import validate_repository, validate_slug
from tasks.projects import adopt
from tasks.text.counting import counted
from tasks.todo.format import TodoError, as_line
from tasks.todo.importing import ImportReport, import_todo
from tasks.todo.lists import count_boxes, with_boxes

SLUG_MAX = 40
TODO = "TODO.md"
ACTOR = Actor("system", "start")
YES = {"y", "yes"}
UNKNOWN = {Project.Base.UNKNOWN, Project.Base.TRYING}


@dataclass(frozen=True, slots=True)
class Walked:
    """The result of all steps; `problems` are still open, each with how to solve it."""

    project: Project
    problems: list[str]


def walk(asker: Asker, *, check_agents: bool) -> Walked:
    """Take all steps."""
    account(asker)
    project = choose_project(asker)
    problems = [
        crew(asker, project, role, check=check_agents) for role in (Agent.Role.CODER, Agent.Role.REVIEWER)
    ]
    tasks(asker, project)
    project.refresh_from_db()
    return Walked(project, [problem for problem in problems if problem])


# --- Account ----------------------------------------------------------------------------------------------


def account(asker: Asker) -> None:
    """Make the first superuser if there is none, and have superusers lead the projects without members."""
    users = get_user_model()
    admins = users.objects.filter(is_superuser=True, is_active=True)
    if names := list(admins.values_list("username", flat=True)[:5]):
        asker.say(f"Account: {', '.join(names)} can sign in.")
    else:
        asker.say("Account: there is none yet.")
        name = asker.ask("username", "Your user name?", _new_name, default=_login_name())
        typed = asker.password(lambda password: _check_password(name, password))
        password = typed or secrets.token_urlsafe(12)
        where = (
            "with the password that you typed" if typed else f"with the password in {keep_password(password)}"
        )
        users.objects.create_superuser(name, password=password)
        asker.say(f"  {name} can sign in, {where}.")
    if alone := adopt(admins):
        asker.say(f"  {', '.join(project.slug for project in alone)} had no members; admins lead it now.")


def first_admin() -> str | None:
    """Make a superuser named `admin` if there is none, and return its random password.

    Return None if there is a superuser or a user of that name.
    """
    users = get_user_model()
    if users.objects.filter(Q(is_superuser=True) | Q(username="admin")).exists():
        return None
    password = secrets.token_urlsafe(12)
    with transaction.atomic():
        adopt([users.objects.create_superuser("admin", password=password)])
    return password


def _password_file() -> Path:
    return paths.folder() / "admin-password"


def is_first_sign_in() -> bool:
    """Whether nobody has used the generated password yet."""
    return _password_file().is_file()


def keep_password(password: str) -> Path:
    """Write a generated password into the data folder, readable only by its owner, and return the path."""
    path = _password_file()
    agent_command.write_private(path, password + "\n")
    return path


def forget_password(password: str) -> None:
    """Remove the file with the password if this is it: whoever signed in with it no longer needs the file."""
    path = _password_file()
    try:
        if hmac.compare_digest(path.read_bytes().strip(), password.encode()):
            path.unlink()
    except OSError:
        return


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return "admin"


def _new_name(name: str) -> str:
    users = get_user_model()
    with as_command_error():
        users(username=name).clean_fields(exclude=["password"])
    if users.objects.filter(username=name).exists():
        raise CommandError(
            f"There is a user {name} already, who is no active superuser. Choose another name."
        )
    return name


def _check_password(name: str, password: str) -> None:
    with as_command_error():
        validate_password(password, get_user_model()(username=name))


# --- Project ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoundRepository:
    """A URL or path that git can read here, and its default branch; empty if it names none."""

    url: str
    branch: str


def choose_project(asker: Asker) -> Project:
    """Return an existing project, or a new one whose target branch has been tried."""
    known = list(Project.objects.filter(status=Project.Status.ACTIVE).exclude(slug=DEMO).order_by("-pk"))
    asker.say("Project:" if known else "Project: there is none yet.")
    for project in known:
        asker.say(f"  {project.slug}: {project.target_branch} of {project.address}")
    if known:
        question, default = "Which one, or the address of another repository?", known[0].slug
    else:
        question, default = "Address or path of the repository?", ""
    slug = asker.given("slug")
    if default and not asker.given("repository"):
        default = slug if any(project.slug == slug for project in known) else default
    found = asker.ask(
        "repository", question, lambda answer: _known_or_new(answer, slug, known), default=default
    )
    project = found if isinstance(found, Project) else _added(asker, found)
    if isinstance(found, Project) and project.base_state not in UNKNOWN:
        asker.say(f"  {project.slug}: {project.target_branch} is {project.get_base_state_display().lower()}.")
    else:
        projects.follow(project, lambda text: asker.say(f"  {text}"))
    return project


def _known_or_new(answer: str, slug: str, known: list[Project]) -> Project | FoundRepository:
    url = projects.address(answer)
    for project in known:
        if answer == project.slug or (url == project.repo_url and slug in {"", project.slug}):
            return project
    return look_at(url)


def look_at(url: str) -> FoundRepository:
    """Ask the repository for its default branch. Raises CommandError if git cannot read it."""
    with as_command_error():
        validate_repository(url)
    try:
        return FoundRepository(url, remotes.default_branch(url, paths.network()))
    except remotes.NoBranches as error:
        raise CommandError(str(error)) from error
    except remotes.NoDefaultBranch:
        return FoundRepository(url, "")
    except GitError as error:
        raise CommandError(f"It cannot be used: {error}") from error


def _added(asker: Asker, repository: FoundRepository) -> Project:
    if (Path(repository.url) / ".git").exists():
        asker.say(
            "  This is a working copy. Git refuses pushes to the branch that is checked out in it: name "
            "the one it was cloned from, or run `git config receive.denyCurrentBranch updateInstead` in it."
        )
    slug = asker.ask(
        "slug", "Short name, which begins each task's name?", new_slug, default=_slug_of(repository.url)
    )
    leads = list(get_user_model().objects.filter(is_superuser=True, is_active=True))

    def add(branch: str) -> Project:
        try:
            return projects.add_project(slug, repository.url, branch=branch, leads=leads, actor=ACTOR)
        except GitError as error:
            raise CommandError(f"{branch} cannot be used: {error}") from error

    project = asker.ask("branch", "Branch that finished work lands on?", add, default=repository.branch)
    asker.say(f"  {project.slug} is added, with the branch {project.target_branch}.")
    return project


def new_slug(slug: str) -> str:
    """Return the slug for a new project. Raises CommandError if it is malformed or taken."""
    if slug != slugify(slug) or len(slug) > SLUG_MAX:
        raise CommandError(
            f"{slug!r} is no short name: small letters, digits and hyphens are, {SLUG_MAX} at most."
        )
    with as_command_error():
        validate_slug(slug)
    if Project.objects.filter(slug=slug).exists():
        raise CommandError(f"There is a project {slug} already. Choose another short name.")
    return slug


def _slug_of(url: str) -> str:
    name = url.rstrip("/").replace(":", "/").rpartition("/")[2].removesuffix(".git")
    slug = slugify(name)[: SLUG_MAX - 3].strip("-_") or "project"
    names = [slug, *(f"{slug}-{number}" for number in range(2, 100))]
    taken = {"c", "d", *Project.objects.filter(slug__in=names).values_list("slug", flat=True)}
    return next((name for name in names if name not in taken), "")


# --- Agents -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Installed:
    """A known command on this host.

    `settings` are those with which it signs in, None if it cannot; `needs` says what signing in takes.
    """

    command: str
    title: str
    settings: dict[str, Any] | None
    needs: str


def installed() -> list[Installed]:
    """Return the known commands of this host, those that can sign in first. No key is read."""
    found = []
    for command, cli in CLIS.items():
        try:
            find_program(cli.program({}), commands.system_path())
        except ProviderError:
            continue
        ways = [cli.key_variable, cli.own_variable, f"~/{cli.sign_in_place}"]
        needs = " or ".join(way for way in ways if way)
        found.append(Installed(command, cli.title, cli.sign_in(os.environ, Path.home()), needs))
    return sorted(found, key=lambda each: each.settings is None)


def crew(asker: Asker, project: Project, role: Agent.Role, *, check: bool) -> str:
    """Find or add an agent for the role and check it; return what is wrong with it, empty if nothing is."""
    mine = Agent.objects.filter(Q(projects=project) | Q(projects=None), role=role, is_active=True)
    agent = mine.order_by(F("is_fine").desc(nulls_last=True), "pk").first()
    asker.say(f"{role.label}: {agent.name}." if agent else f"{role.label}: there is none yet.")
    if agent is None:
        agent = _new_agent(asker, project, role)
        asker.say(f"  {agent.name} is added.")
    if not check or agent.is_fine:
        return ""
    asker.say(f"  {agent.name} is started once, to see whether it answers ...")
    checked = checking.check(agent)
    asker.say(f"  {checked.says}")
    if checked.is_fine:
        return ""
    return (
        f"{agent.name}: {checked.says} Mend it and run this again, or take it away: "
        f"manage.py remove_agent {agent.name}"
    )


def _new_agent(asker: Asker, project: Project, role: Agent.Role) -> Agent:
    here = installed()
    for each in here:
        state = "signed in" if each.settings is not None else f"not signed in: it needs {each.needs}"
        asker.say(f"  {each.command}: {each.title}, {state}")
    ready = [each.command for each in here if each.settings is not None]
    # Two vendors see more than one, so the second command found here is offered as the reviewer.
    default = ready[1] if role == Agent.Role.REVIEWER and len(ready) > 1 else (ready or [""])[0]
    names = f"{', '.join(CLIS)}, or any command"
    argv = asker.ask(
        role, f"Which {role}? {names}; {{prompt}} is its prompt's path.", _words, default=default
    )
    name = _free_name(f"{project.slug}-{role}")

    def add(model: str) -> Agent:
        said = (CLIS[argv[0]].sign_in(os.environ, Path.home(), model) or {}) if argv[0] in CLIS else {}
        if argv == ["opencode"] and not model:
            raise CommandError("opencode needs a model: PROVIDER/MODEL.")
        agent = adding.agent_from(name, role, argv, model=model, **said)
        adding.add(agent, [project.slug])
        return agent

    if len(argv) > 1 or argv[0] not in CLIS:
        return add(asker.given(f"{role}-model"))
    return asker.ask(f"{role}-model", "Model? Empty means its own choice.", add, may_be_empty=True)


def _words(line: str) -> list[str]:
    try:
        argv = shlex.split(line)
        agent = adding.agent_from("x", Agent.Role.CODER, argv)
    except (ValueError, IndexError) as error:
        raise CommandError(f"{line!r} cannot be read as a command: {error}.") from error
    if missing := adding.missing_program(agent):
        raise CommandError(missing)
    return argv


def _free_name(name: str) -> str:
    names = [name, *(f"{name}-{number}" for number in range(2, 100))]
    taken = set(Agent.objects.filter(name__in=names).values_list("name", flat=True))
    return next(each for each in names if each not in taken)


# --- Tasks ------------------------------------------------------------------------------------------------


def tasks(asker: Asker, project: Project) -> None:
    """Import tasks from a file or from typed lines if the project has none, or if an option names them."""
    count = project.tasks.exclude(origin=Task.Origin.SETUP).count()
    asker.say(f"Tasks: {count or 'there are none yet'}.")
    if count and not asker.given("todo"):
        return

    def bring(answer: str) -> ImportReport:
        path = Path(answer).expanduser()
        if path.exists() or path.suffix in (".md", ".json"):
            return bring_file(asker, project, path)
        return bring_lines(project, [answer, *iter(lambda: asker.more("Another one? Empty ends."), "")])

    here = TODO if Path(TODO).is_file() else ""
    report = asker.ask("todo", "The path of a TODO.md, or the first task in a line?", bring, default=here)
    for note in report.notes:
        asker.say(f"  {note}")
    asker.say(
        f"  {len(report.created)} created, {len(report.updated)} updated, {len(report.unchanged)} unchanged."
    )


def bring_file(asker: Asker, project: Project, path: Path) -> ImportReport:
    """Import a TODO.md; ask whether lines without a box are tasks if they may be meant so.

    Raises CommandError with each line that cannot be read, and then imports nothing.
    """
    text = list_of(path)
    if boxes := count_boxes(text):
        question = f"Take {counted(boxes, 'line')} that may be meant so for tasks? [y/N]"
        if asker.more(question).lower() in YES:
            text = with_boxes(text)
    return _imported(project, text, str(path))


def bring_lines(project: Project, titles: list[str]) -> ImportReport:
    """Import tasks that consist of a title each. Raises CommandError, and then imports nothing."""
    text = "".join(f"- [ ] {as_line(title)}\n" for title in titles)
    return _imported(project, text, "task")


def _imported(project: Project, text: str, source: str) -> ImportReport:
    try:
        return import_todo(project, text, actor=ACTOR)
    except TodoError as error:
        raise CommandError("\n".join([*error.lines(source), "Nothing was imported."])) from error
