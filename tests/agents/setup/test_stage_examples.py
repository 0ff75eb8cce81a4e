"""The example of a full pipeline is a file that can be imported, and its agents cover every stage."""

from pathlib import Path

import pytest

from agents.crew.choosing import watches
from agents.models import Agent
from agents.setup.configuration import import_config
from tasks.configuration.stages import stages_of
from tasks.events import SYSTEM
from tests.factories import create_project

pytestmark = pytest.mark.django_db

EXAMPLE = Path(__file__).parents[3] / "examples" / "stages" / "full.yaml"


def test_the_example_makes_a_pipeline_in_which_every_stage_is_watched() -> None:
    project = create_project("ledger")

    import_config(project, EXAMPLE.read_text(encoding="utf-8"), actor=SYSTEM, elsewhere=True)

    project.refresh_from_db()
    names = [stage.name for stage in stages_of(project.config)]
    assert names == ["stories", "arch", "tests", "dev", "review", "qa"]
    coders = list(Agent.objects.filter(role="coder"))
    assert [
        stage.name for stage in stages_of(project.config) if not any(watches(a, stage) for a in coders)
    ] == []
