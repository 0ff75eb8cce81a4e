"""Removes a project: deletes one without a history, and ends one that has landings or rulings."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Count
from django.db.models.functions import Now

from agents.hosts import paths, processes
from agents.models import Agent, Run, Trial
from agents.verification import trying
from disputes.completion import endings
from disputes.models import Decision
from tasks.database.locking import locked
from tasks.database.triggers import no_deletion
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Event, Landing, Project, Seal
from tasks.text.counting import counted

AT_ONCE = 500  # keys per query


def history_of(project: Project) -> str:
    """Return how many landings and rulings the project has, in words; empty if it may be deleted.

    A project with either is kept, since what landed and what was ruled must stay readable.
    """
    landed = Landing.objects.filter(project=project, status=Landing.Status.LANDED).count()
    rulings = Decision.objects.filter(conflict__dispute__project=project).count()
    told = [counted(landed, "landing")] if landed else []
    return " and ".join([*told, *([counted(rulings, "ruling")] if rulings else [])])


def remove(project: Project, *, actor: Actor) -> str:
    """Delete the project with all its rows, or end it as abandoned if it has a history; say which.

    Its mirror and caches on this host are removed in either case, the folders of its runs and trials only
    with the rows; a trial that is under way here is ended. Raises Refused: "runs_live" if runs are under way,
    "landing" if a commit is being pushed.
    """
    trials: list[Path] = []
    with transaction.atomic():
        row = locked(Project.objects).get(pk=project.pk)
        list(locked(row.tasks).order_by("pk").values_list("pk"))  # nobody rules or pushes meanwhile
        live = list(Run.objects.live().filter(project=row).values_list("pk", flat=True))
        if live:
            raise Refused(
                "runs_live",
                f"{row.slug} has {counted(len(live), 'run')} under way.",
                "Stop them first: add --force.",
            )
        pushed = Landing.objects.filter(status=Landing.Status.PUSHING, claimed_until__gte=Now())
        if landing := pushed.filter(project=row).select_related("task__project").first():
            raise Refused(
                "landing", f"{landing.task.ref} is being pushed.",
                f"Try again in {settings.DURATIONS['landing_claim']:.0f} seconds.",
            )  # fmt: skip
        history = history_of(row)
        if not history:
            runs = list(Run.objects.filter(project=row).values_list("pk", flat=True))
            alone = _switch_off_agents_of(row)
            trials = [*map(trying.folder_of, Trial.objects.filter(project=row).values_list("pk", flat=True))]
            with (
                no_deletion(Event._meta.db_table).lifted(connection),
                no_deletion(Seal._meta.db_table).lifted(connection),
            ):
                _delete_below(row)
            said = f"{row.slug} is deleted, with everything that was tried in it."
            said += "".join(f"\n{name} worked in {row.slug} only and is switched off." for name in alone)
        elif row.exit_type:
            runs, said = [], f"{row.slug} had ended already and is kept, for it has {history}."
        else:
            runs = []
            endings.abandon(row, actor=actor, reason="Removed from the command line.")
            said = (
                f"{row.slug} is kept as abandoned, for it has {history}. Nothing of it is started any more."
            )
    for folder in trials:
        if folder.exists():
            processes.end_all(processes.working_in(folder), settings.DURATIONS["grace"])
            paths.remove(folder)
    for folder in _folders(project, runs):
        paths.remove(folder)
    return said


def _switch_off_agents_of(project: Project) -> list[str]:
    """Switch off the agents of this project alone, which without it would work in all; return their names."""
    bound = Agent.objects.annotate(bound=Count("projects")).filter(bound=1, is_active=True)
    alone = bound.filter(pk__in=project.agents.values("pk"))
    names = list(alone.order_by("name").values_list("name", flat=True))
    Agent.objects.filter(name__in=names).update(is_active=False)
    return names


def _folders(project: Project, runs: Iterable[int]) -> list[Path]:
    home = Path(settings.HOME)
    mirrors = [home / "mirrors" / f"{project.pk}.git{end}" for end in ("", ".lock")]
    return [*mirrors, home / "env" / str(project.pk), *map(paths.run_folder, runs)]


def _delete_below(project: Project) -> None:
    """Delete the project and every row that leads to it.

    Django's own rules would protect these rows from one another; the database checks only at the end.
    """
    found: dict[type[models.Model], set[Any]] = defaultdict(set)
    fresh: list[tuple[type[models.Model], set[Any]]] = [(Project, {project.pk})]
    while fresh:
        model, keys = fresh.pop()
        keys -= found[model]
        found[model] |= keys
        for relation in _pointing_at(model) if keys else []:
            field, below = relation.field, relation.related_model
            for part in _parts(keys):
                rows = below._base_manager.filter(**{f"{field.name}__in": part})
                if relation.on_delete is models.SET_NULL:
                    rows.update(**{field.name: None})
                else:
                    fresh.append((below, set(rows.values_list("pk", flat=True))))
    for model, keys in found.items():
        for part in _parts(keys):
            rows = model._base_manager.filter(pk__in=part)
            rows._raw_delete(rows.db)


def _pointing_at(model: type[models.Model]) -> list[Any]:
    """Return the relations that point at the model, including those of many-to-many tables."""
    return [
        field
        for field in model._meta.get_fields(include_hidden=True)
        if field.auto_created and not field.concrete and (field.one_to_many or field.one_to_one)
    ]


def _parts(keys: set[Any]) -> Iterable[list[Any]]:
    ordered = sorted(keys)
    return (ordered[at : at + AT_ONCE] for at in range(0, len(ordered), AT_ONCE))
