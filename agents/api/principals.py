"""Callers that are not people: a run, or a pulled agent that asks for work."""

from abc import ABC, abstractmethod
from typing import Any

from agents.models import Agent, Run


class _Machine(ABC):
    """A caller that is not a person and has none of a person's rights."""

    is_authenticated = True
    is_active = True
    is_anonymous = False
    is_superuser = False
    is_staff = False
    pk = None
    id = None

    def __str__(self) -> str:
        return self.get_username()

    @abstractmethod
    def get_username(self) -> str:
        """Return the name that people see."""

    def get_full_name(self) -> str:
        return self.get_username()

    def has_perm(self, permission: str, obj: Any = None) -> bool:
        return False

    def has_module_perms(self, label: str) -> bool:
        return False


class RunPrincipal(_Machine):
    """`request.user` for a run's token. It sees its own task."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.task_pk = run.task_id
        self.gives_opinion = run.role in Run.OPINION_ROLES

    def get_username(self) -> str:
        return self.run.agent_label or f"run {self.run.pk}"


class PullPrincipal(_Machine):
    """`request.user` for a pulled agent's token. It may claim work, and sees nothing."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def get_username(self) -> str:
        return self.agent.name
