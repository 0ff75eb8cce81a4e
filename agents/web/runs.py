"""The list of runs: what has been running since when, and how the others ended."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import django_filters
from django.db.models import QuerySet

from agents.models import Run
from agents.web import costs, log, moves
from tasks.access import projects_for
from tasks.database.clock import estimated_time

LIVE_MAX, PER_PAGE = 200, 50


class RunPageFilter(django_filters.FilterSet):
    """The filters that the URL of the page may set."""

    project = django_filters.ModelChoiceFilter(
        queryset=lambda request: projects_for(request.user), to_field_name="slug", label="Project",
        empty_label="Project",
    )  # fmt: skip
    role = django_filters.ChoiceFilter(label="Role", choices=Run.Role.choices, empty_label="Role")
    outcome = django_filters.ChoiceFilter(label="Outcome", choices=Run.Outcome.choices, empty_label="Outcome")

    class Meta:
        model = Run
        fields = ["project", "role", "outcome"]


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as one row of the list."""

    run: Run
    may_stop: bool
    now: datetime

    @property
    def may_defer(self) -> bool:
        """Whether its task may be deferred with it."""
        return self.may_stop and moves.BY_HAND["defer"].is_open_to(self.run.task)

    @property
    def state(self) -> str:
        return log.state_of(self.run, self.now)

    @property
    def is_silent(self) -> bool:
        return bool(log.silence_of(self.run, self.now))

    @property
    def cost(self) -> costs.RunCost | None:
        return costs.of_run(self.run)

    @property
    def seconds(self) -> float | None:
        """How long it ran, or has been running; None if it has not begun."""
        begun, ended = self.run.started_at, self.run.ended_at or self.now
        return (ended - begun).total_seconds() if begun else None


def visible(user: Any) -> QuerySet[Run]:
    """Return the runs that the person may see, newest first."""
    runs = Run.objects.filter(project__in=projects_for(user))
    return runs.select_related("project", "task__project", "host").order_by("-pk")


@dataclass(frozen=True, slots=True)
class RunsPage:
    """The live runs, and one page of the ended ones."""

    live: list[RunRow]
    ended: list[RunRow]
    older: int | None  # the next page has the runs before this key; None if there are no more


def runs_page(runs: QuerySet[Run], may_stop: frozenset[int], before: int | None) -> RunsPage:
    """Return the live runs, on the first page only, and ended ones paged by key, so that nothing is counted.

    `may_stop` holds the keys of the projects in which the person may stop runs.
    """
    now = estimated_time()
    live = [] if before else list(runs.live()[:LIVE_MAX])  # type: ignore[attr-defined]
    ended = runs.filter(status=Run.Status.ENDED)
    if before:
        ended = ended.filter(pk__lt=before)
    shown = list(ended[: PER_PAGE + 1])
    older = shown[PER_PAGE - 1].pk if len(shown) > PER_PAGE else None
    rows = [
        [RunRow(run, run.project_id in may_stop and run.status != Run.Status.ENDED, now) for run in part]
        for part in (live, shown[:PER_PAGE])
    ]
    return RunsPage(*rows, older)
