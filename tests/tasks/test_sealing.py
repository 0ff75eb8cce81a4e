"""The record is sealed: whoever changes, deletes, reorders or cuts off events is found out."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from agents.doctor import audit
from tasks import sealing
from tasks.database.triggers import no_change, no_deletion
from tasks.models import Event, Project, Seal
from tasks.models.event import record
from tests.factories import create_project

pytestmark = pytest.mark.django_db
GUARDS = [verb(table) for verb in (no_change, no_deletion) for table in ("tasks_event", "tasks_seal")]


@pytest.fixture(autouse=True)
def home(as_migrated: None, tmp_path: Path, settings: Any) -> None:
    settings.HOME = tmp_path


def write(project: Project, count: int, hours: float = 2) -> None:
    """Events as of so long ago."""
    at = timezone.now() - timedelta(hours=hours)
    Event.objects.bulk_create(
        Event(project=project, kind="edited", label="System", actor_kind="system", data={"n": n}, at=at)
        for n in range(count)
    )


@pytest.fixture
def sealed(ledger: Project) -> Project:
    """Three seals of a project, and another project beside it."""
    other = create_project()
    for _ in range(3):
        write(ledger, 4)
        write(other, 1)
        sealing.seal_all()
    return ledger


def test_what_is_complete_is_sealed_once_and_holds(sealed: Project) -> None:
    assert [seal.count for seal in Seal.objects.filter(project=sealed).order_by("number")] == [4, 4, 4]
    assert sealing.seal_all() == "sealed 0 events of 0 projects"
    record(sealed, "edited")  # a transaction beside it may still be under way
    assert sealing.seal_all() == "sealed 0 events of 0 projects"
    assert list(sealing.broken()) == []


def change(project: Project) -> None:
    Event.objects.filter(project=project, data__n=2).filter(pk__in=list(keys(project))[4:8]).update(note="x")


def delete(project: Project) -> None:
    Event.objects.filter(pk=list(keys(project))[5])._raw_delete("default")


def reorder(project: Project) -> None:
    first, second = Event.objects.filter(pk__in=list(keys(project))[5:7])
    first.data, second.data = second.data, first.data
    first.save()
    second.save()


def write_into_the_past(project: Project) -> None:
    event = Event.objects.filter(project=create_project()).first() or record(create_project(), "edited")
    Event.objects.filter(pk=event.pk).delete()
    hole = list(keys(project))[4]
    Event.objects.filter(pk=hole)._raw_delete("default")
    write(project, 1)


def cut_off_the_end(project: Project) -> None:
    last = Seal.objects.filter(project=project).order_by("-number")[0]
    Event.objects.filter(project=project, pk__gt=list(keys(project))[7])._raw_delete("default")
    Seal.objects.filter(pk=last.pk)._raw_delete("default")


def seal_anew(project: Project) -> None:
    change(project)
    Seal.objects.filter(project=project)._raw_delete("default")
    kept = sealing.anchor_file().read_text()
    sealing.seal_all()
    sealing.anchor_file().write_text(kept)  # on another host, or put back


def keys(project: Project) -> Any:
    return Event.objects.filter(project=project).order_by("pk").values_list("pk", flat=True)


DAMAGE: dict[Callable[[Project], None], str] = {
    change: "was changed after it was sealed",
    delete: "Of 4 events sealed between",
    reorder: "was changed after it was sealed",
    write_into_the_past: "Of 4 events sealed between",
    cut_off_the_end: "Seal 3 of project",
    seal_anew: "is not the one that was made",
}


def test_every_damage_past_the_program_is_found(sealed: Project) -> None:
    for damage, says in DAMAGE.items():
        with transaction.atomic():
            connection.check_constraints()
            for trigger in GUARDS:
                trigger.remove(connection)
            damage(sealed)
            connection.check_constraints()
            for trigger in GUARDS:
                trigger.install(connection)
            found = [each.says for each in audit.record()]
            assert len(found) == 1, (damage.__name__, found)
            assert says in found[0], damage.__name__
            transaction.set_rollback(True)
    assert list(sealing.broken()) == []


def test_the_database_refuses_to_touch_seals(sealed: Project) -> None:
    for act in (lambda: Seal.objects.update(count=9), lambda: Seal.objects.all()._raw_delete("default")):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            act()
