"""A project's row as the record of its target branch's state, and asking for the branch to be tried again."""

from functools import cache
from typing import Any

from django.db import transaction

from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared, PreparedUpdate
from tasks.events import SYSTEM, Actor
from tasks.models import Project
from tasks.models.event import record

Base = Project.Base


def set_base(project: Project, state: str, *, sha: str = "", problem: str = "", **changes: Any) -> bool:
    """Write the target branch's state, and record an event if it is new and neither "unknown" nor "trying".

    An empty `sha` keeps the commit that is stored. Returns whether the state differs from the one before.
    """
    with transaction.atomic():
        [(state_before, sha_before)] = _known.rows(project.pk)
        values = {"base_state": state, "base_at": estimated_time(), "base_problem": problem[:500], **changes}
        if sha:
            values["base_sha"] = sha
        _writing(*values).write(project.pk, **values)
        is_news = state_before != state
        if is_news and state not in {Base.UNKNOWN, Base.TRYING}:
            record(
                project, f"base_{state}", note=problem, old=state_before, new=state,
                data={"sha": sha or sha_before},
            )  # fmt: skip
    for name, value in values.items():
        setattr(project, name, value)
    return is_news


_known = Prepared(lambda pk: Project.objects.filter(pk=pk).values_list("base_state", "base_sha"))


@cache  # only a few sets of columns are written
def _writing(*columns: str) -> PreparedUpdate:
    return PreparedUpdate(lambda pk: Project.objects.filter(pk=pk), *columns)


def try_again(project: Project, *, actor: Actor = SYSTEM, why: str = "") -> None:
    """Have a host look at the branch again: at its head, at its commands, and at what they report."""
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(
            base_state=Base.UNKNOWN, base_at=estimated_time(), trouble="", trouble_until=None, trouble_count=0
        )
        record(project, "base_to_try", actor=actor, note=why)
    project.base_state = Base.UNKNOWN
