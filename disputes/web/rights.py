"""What a person may do, and who can give them more rights, for the pages that refuse something."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model

from disputes.triage import name_of
from tasks.access import who_may_enter
from tasks.models import Membership
from tasks.text.counting import enumerated

PROJECTS_MAX, PEOPLE_MAX = 6, 4


@dataclass(frozen=True, slots=True)
class Right:
    """A project of the person, their role in it, and who assigns roles there."""

    project: str
    role: str
    givers: str


class Rights:
    """The rights of a person, read only if a page shows them."""

    def __init__(self, user: Any) -> None:
        self.user = user

    def here(self) -> list[Right]:
        """Return the projects in which the person is less than a maintainer."""
        mine = self.user.memberships.exclude(role=Membership.Role.MAINTAINER).select_related("project")
        found = list(mine.order_by("project__name")[:PROJECTS_MAX])
        projects = [one.project_id for one in found]
        maintain = Membership.objects.filter(
            who_may_enter("user"), role=Membership.Role.MAINTAINER, project__in=projects
        )
        people: dict[int, list[str]] = {}
        for one in maintain.select_related("user").order_by("pk"):
            people.setdefault(one.project_id, []).append(name_of(one.user))
        return [
            Right(one.project.name, one.get_role_display().lower(), _listed(people.get(one.project_id, [])))
            for one in found
        ]

    def superusers(self) -> str:
        """Return who may do everything, and may make others members of any project."""
        found = get_user_model().objects.filter(who_may_enter(), is_superuser=True).order_by("pk")
        return _listed([name_of(one) for one in found[: PEOPLE_MAX + 1]])


def _listed(names: list[str]) -> str:
    """Return names as a choice, such as "Lea, Tom or Vera"."""
    shown = names[:PEOPLE_MAX]
    if len(names) > PEOPLE_MAX:
        return f"{', '.join(shown)} or another"
    return enumerated(shown, "or")
