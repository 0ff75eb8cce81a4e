"""Who calls: a run, as itself and nobody else."""

from typing import Any

from agents.models import Run


class RunPrincipal:
    """What `request.user` is for a run's token. It sees its own task and has no right of a person."""

    is_authenticated = True
    is_active = True
    is_anonymous = False
    is_superuser = False
    is_staff = False
    pk = None
    id = None

    def __init__(self, run: Run) -> None:
        self.run = run
        self.task_pk = run.task_id

    def __str__(self) -> str:
        return self.get_username()

    def get_username(self) -> str:
        return self.run.agent_label or f"run {self.run.pk}"

    get_full_name = get_username

    def has_perm(self, permission: str, obj: Any = None) -> bool:
        return False

    def has_module_perms(self, label: str) -> bool:
        return False
