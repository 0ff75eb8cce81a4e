"""The demo project: a small real library, a bare remote, recorded agents, and an admin to rule with."""

import shutil
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction

from agents.hosts import paths
from agents.hosts.git import commands as git
from agents.models import Agent
from tasks.events import SYSTEM
from tasks.models import Membership, Project
from tasks.todo.importing import import_todo

SLUG = "demo"
EXAMPLES = Path(settings.BASE_DIR) / "examples" / "demo"
BUILD = "python3 -m compileall -q src"
TESTS = "python3 -m unittest discover -s tests -t ."


def create() -> Project:
    """Return the demo project, created with its remote, agents and tasks if it does not exist yet."""
    found = Project.objects.filter(slug=SLUG).first()
    if found:
        return found
    remote = _remote()
    with transaction.atomic():
        project = Project.objects.create(
            slug=SLUG,
            name="Timespan (demo)",
            repo_url=str(remote),
            target_branch="main",
            max_parallel=2,
            settings={"build_command": BUILD, "test_command": TESTS},
        )
        cassettes = str(EXAMPLES / "cassettes")
        for role, name in ((Agent.Role.CODER, "demo-coder"), (Agent.Role.REVIEWER, "demo-reviewer")):
            agent, _ = Agent.objects.get_or_create(
                name=name,
                defaults={
                    "role": role, "provider": Agent.Provider.REPLAY, "model": "cassette", "slots": 4,
                    "kind": "dev-agent" if role == Agent.Role.CODER else "reviewer",
                    "settings": {"cassettes": cassettes},
                },
            )  # fmt: skip
            agent.projects.add(project)
        for user in get_user_model().objects.filter(is_superuser=True):
            Membership.objects.create(
                project=project, user=user, role=Membership.Role.MAINTAINER, is_lead=True
            )
        import_todo(project, (EXAMPLES / "TODO.md").read_text(), actor=SYSTEM)
    return project


def _remote() -> Path:
    """Return a bare repository whose main branch has the library's first commit."""
    home = paths.folder("demo")
    remote, work = home / "remote.git", home / "seed"
    if remote.exists():
        return remote
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(EXAMPLES / "library", work)
    git.run(work, "init", "--quiet", "--initial-branch", "main")
    git.run(work, "add", "--all")
    git.run(work, "commit", "--quiet", "-m", "Timespan as it stands before the tasks")
    fresh = home / "remote.new"
    shutil.rmtree(fresh, ignore_errors=True)
    git.run(home, "clone", "--quiet", "--bare", str(work), str(fresh))
    fresh.rename(remote)
    shutil.rmtree(work)
    return remote
