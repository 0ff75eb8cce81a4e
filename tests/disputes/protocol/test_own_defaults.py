"""What a rule assumes without a project is what a project has by default."""

import re
from dataclasses import MISSING, Field, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from disputes.protocol.completion.convergence import PRESETS
from tasks.configuration.policy import SETTINGS, ProjectSettings, default_of
from tests.cases import for_each

ROOT = Path(__file__).parents[3]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "disputes" / "protocol").rglob("*.py"))
    if path.stem != "__init__"
]
# Of rounds about documents, which no project can set yet.
FOR_DOCUMENTS = {
    "blocked_external_weight", "deferred_weight", "first_example_tokens", "thin_content_chars",
}  # fmt: skip


def parts() -> dict[str, Any]:
    """The dataclasses of the core that hold a part of the settings."""
    found = (value for module in MODULES for value in vars(import_module(module)).values())
    return {
        value.__name__: value
        for value in found
        if is_dataclass(value) and re.fullmatch(r"(?!Project)\w*Settings", getattr(value, "__name__", ""))
    }


def default(item: "Field[Any]") -> Any:
    """MISSING where the rule has none of its own, as it should be."""
    return item.default if item.default_factory is MISSING else item.default_factory()


@for_each("name", sorted(parts()))
def test_a_rule_with_a_default_of_its_own_has_the_same_as_a_project(name: str) -> None:
    here = {item.name: default(item) for item in fields(parts()[name])}
    there = ProjectSettings()
    by_size = {key: getattr(PRESETS[0], key) for key in ("stall_threshold", "divergence_threshold")}

    assert set(here) - set(SETTINGS) <= FOR_DOCUMENTS
    here = {key: value for key, value in here.items() if key in SETTINGS and value is not MISSING}
    assert here == {key: by_size.get(key, getattr(there, key)) for key in here}


@for_each("key", ["stall_threshold", "divergence_threshold"])
def test_the_help_of_a_threshold_names_the_presets(key: str) -> None:
    small, middle, large = (getattr(preset, key) for preset in PRESETS)

    assert (PRESETS[0].up_to, PRESETS[1].up_to) == (9, 30)
    assert default_of(key) == f"{small} below 10 tasks, {middle} up to 30, {large} above"
    assert getattr(ProjectSettings(), key) is None
