"""A project's row as the record of its target branch's state, and asking for the branch to be tried again."""

from typing import Any

from django.db import transaction

from tasks.events import SYSTEM, Actor
from tasks.locking import estimated_time
from tasks.models import Project
from tasks.models.event import record

Base = Project.Base


def set_base(project: Project, state: str, *, sha: str = "", problem: str = "", **changes: Any) -> bool:
    """Write the target branch's state, and record an event if it is new and neither "unknown" nor "trying".

    An empty `sha` keeps the commit that is stored. Returns whether the state differs from the one before.
    """
    with transaction.atomic():
        row = Project.objects.get(pk=project.pk)
        values = {"base_state": state, "base_at": estimated_time(), "base_problem": problem[:500], **changes}
        if sha:
            values["base_sha"] = sha
        Project.objects.filter(pk=project.pk).update(**values)
        is_news = row.base_state != state
        if is_news and state not in {Base.UNKNOWN, Base.TRYING}:
            record(
                project, f"base_{state}", note=problem, old=row.base_state, new=state,
                data={"sha": sha or row.base_sha},
            )  # fmt: skip
    for name, value in values.items():
        setattr(project, name, value)
    return is_news


def try_again(project: Project, *, actor: Actor = SYSTEM, why: str = "") -> None:
    """Have a host look at the branch again: at its head, at its commands, and at what they report."""
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(
            base_state=Base.UNKNOWN, base_at=estimated_time(), trouble="", trouble_until=None, trouble_count=0
        )
        record(project, "base_to_try", actor=actor, note=why)
    project.base_state = Base.UNKNOWN
