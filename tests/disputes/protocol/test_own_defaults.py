"""What a rule assumes without a project is what a project has by default."""

from dataclasses import fields

from disputes.protocol.completion.convergence import PRESETS, ConvergenceSettings
from tasks.configuration.policy import DEFAULTS, ProjectSettings, default_of
from tests.cases import for_each


def test_a_project_that_sets_no_thresholds_has_those_of_the_smallest_preset() -> None:
    by_size = {key: getattr(PRESETS[0], key) for key in ("stall_threshold", "divergence_threshold")}
    for item in fields(ConvergenceSettings):
        here = getattr(ConvergenceSettings(), item.name)
        assert here == by_size.get(item.name, getattr(DEFAULTS, item.name))


@for_each("key", ["stall_threshold", "divergence_threshold"])
def test_the_help_of_a_threshold_names_the_presets(key: str) -> None:
    small, middle, large = (getattr(preset, key) for preset in PRESETS)

    assert (PRESETS[0].up_to, PRESETS[1].up_to) == (9, 30)
    assert default_of(key) == f"{small} below 10 tasks, {middle} up to 30, {large} above"
    assert getattr(ProjectSettings(), key) is None
