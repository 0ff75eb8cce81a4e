"""Changing settings: only the keys that were meant, recorded with both values, all or nothing."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from tasks.configuration.changing import WORDS_MAX, configure, differences
from tasks.configuration.policy import ProjectSettings, SettingsError
from tasks.events import SYSTEM, Actor
from tasks.models import Event, Project
from tests.factories import create_project

pytestmark = pytest.mark.django_db


def stored(project: Project) -> dict[str, Any]:
    return Project.objects.get(pk=project.pk).settings


def test_only_what_differs_from_the_defaults_is_kept() -> None:
    project = create_project()
    configure(project, {"rejections_max": 3, "undo_seconds": 10}, actor=SYSTEM)

    assert stored(project) == project.settings == {"rejections_max": 3}


def test_a_key_set_to_its_default_is_forgotten() -> None:
    project = create_project(settings={"rejections_max": 3})
    configure(project, {"rejections_max": 15}, actor=SYSTEM)

    assert stored(project) == {}


def test_the_row_is_read_again_before_it_is_written() -> None:
    project = create_project()
    Project.objects.filter(pk=project.pk).update(settings={"undo_seconds": 3})
    configure(project, {"rejections_max": 3}, actor=SYSTEM)

    assert stored(project) == {"undo_seconds": 3.0, "rejections_max": 3}


def test_severities_that_are_not_named_keep_their_value() -> None:
    project = create_project(settings={"policy": {"high": "log"}})
    configure(project, {"policy": {"low": "hold"}}, actor=SYSTEM)

    assert project.config.policy == {"critical": "hold", "high": "log", "medium": "ship", "low": "hold"}


def test_a_change_is_an_event_with_both_values(lea: User) -> None:
    project = create_project()
    made = configure(project, {"max_rounds": 9, "mandatory": []}, actor=Actor.person(lea))
    event = Event.objects.get()

    assert [str(change) for change in made] == [
        "mandatory: critical, high → none",
        "max_rounds: six rounds for ten tasks, at least ten → 9",
    ]
    assert (event.kind, event.label, event.note) == (
        "project_configured", "Lea Lindt", "; ".join(map(str, made)),
    )  # fmt: skip
    assert event.data["settings"]["mandatory"] == ["critical, high", "none"]


def test_no_change_is_no_event() -> None:
    project = create_project(settings={"rejections_max": 3})

    assert configure(project, {"rejections_max": 3}, actor=SYSTEM) == []
    assert not Event.objects.exists()


def test_a_wrong_value_changes_nothing() -> None:
    project = create_project()
    with pytest.raises(SettingsError, match="max_rounds"):
        configure(project, {"rejections_max": 3, "max_rounds": 99}, actor=SYSTEM)

    assert (stored(project), Event.objects.count()) == ({}, 0)


def test_what_was_wrong_in_the_row_is_dropped() -> None:
    project = create_project()
    Project.objects.filter(pk=project.pk).update(settings={"colour": "red", "max_rounds": 70, "extend_by": 2})
    configure(project, {"rejections_max": 3}, actor=SYSTEM)

    assert stored(project) == {"extend_by": 2, "rejections_max": 3}


def test_a_long_value_is_shortened_in_what_is_recorded() -> None:
    made = differences(ProjectSettings(), ProjectSettings(test_command="make check && " * 50))

    assert len(made[0].new) == WORDS_MAX
    assert made[0].new.endswith("...")


def test_the_event_of_every_key_at_once_stays_small() -> None:
    project = create_project()
    ladder = {f"agent-{n}": {"0+": "x" * 100} for n in range(50)}
    configure(project, {"model_ladder": ladder, "build_command": "x" * 10_000}, actor=SYSTEM)

    assert len(str(Event.objects.get(kind="project_configured").data)) < 500
