"""Several hosts on one database: one name each, one that ends for good, and what the others do then."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from agents.hosts import naming, paths, processes
from agents.hosts.naming import NameTaken
from agents.hosts.reconciler import Reconciler
from agents.models import Host, Run
from tests.agents.world import World, make_world  # noqa: F401
from tests.factories import create_host, create_run

pytestmark = pytest.mark.django_db(transaction=True)


# --- Names ------------------------------------------------------------------------------------------------


def test_two_installations_of_one_name_do_not_work_at_once(world: World, tmp_path: Path) -> None:
    """The second one took the first one's row over, and four submissions were lost."""
    with Reconciler() as first:
        pass
    with Reconciler():  # and the same data folder may start again at once
        pass
    world.settings.HOME = tmp_path / "other"
    with pytest.raises(CommandError) as refused:
        call_command("run_orchestrator", "--once")
    said = str(refused.value)
    assert str(tmp_path / "home") in said
    assert "STEROIDS_HOST_NAME" in said
    world.settings.HOST_NAME = "second"
    with Reconciler() as second:
        assert second.row.pk != first.row.pk
    world.settings.HOST_NAME = "test-host"
    Host.objects.filter(pk=first.row.pk).update(seen_at=timezone.now() - timedelta(days=1))
    with Reconciler() as heir:
        assert heir.row.pk == first.row.pk
        assert heir.row.place.endswith(str(tmp_path / "other"))


def test_a_host_whose_name_was_taken_meanwhile_touches_nothing(world: World) -> None:
    """It was away for longer than its lease, and another installation began in its place."""
    with Reconciler() as host:
        run = create_run(world.task(), host=host.row)
        folder = paths.run_folder(run.pk)
        folder.mkdir(parents=True)
        (folder / "job.json").write_text("{}")
        Host.objects.filter(pk=host.row.pk).update(installation="f" * 32)
        host._beaten = 0.0
        with pytest.raises(NameTaken, match="test-host"):
            host.step()
        assert Run.objects.get(pk=run.pk).lease_until is None
        assert folder.exists()


def test_a_copied_data_folder_is_another_installation(world: World, monkeypatch: Any) -> None:
    """Two machines that were made from one image: the same id, but another boot of another machine."""
    naming.register()
    naming.register()
    monkeypatch.setattr(processes, "boot_id", lambda: "another machine's")
    with pytest.raises(NameTaken):
        naming.register()
    monkeypatch.setattr(processes, "boottime", lambda: 0.0)  # this machine itself, a moment after its start
    naming.register()
    create_host("test-host")
