"""What a project's row says of its target branch, and when it is to be tried anew."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from tasks.events import SYSTEM, Actor
from tasks.models import Project
from tasks.models.event import record

Base = Project.Base


def set_base(project: Project, state: str, *, sha: str = "", problem: str = "", **changes: Any) -> bool:
    """Write what is known now, and an event where that is news. Whether the state is another one than before.

    An empty `sha` leaves the commit that it is about as it was.
    """
    with transaction.atomic():
        row = Project.objects.get(pk=project.pk)
        values = {"base_state": state, "base_at": timezone.now(), "base_problem": problem[:500], **changes}
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
    """Have a host look at the branch anew: its head, its commands, what they say."""
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(
            base_state=Base.UNKNOWN, base_at=timezone.now(), trouble="", trouble_until=None, trouble_count=0
        )
        record(project, "base_to_try", actor=actor, note=why)
    project.base_state = Base.UNKNOWN
