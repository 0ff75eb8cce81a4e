"""Core: the recipe that a repository itself names, in `steroids.yaml` at its top."""

import yaml

from agents.recipes.recipe import Recipe
from tasks.configuration.yaml_files import FaultyFile, compose

NAME = "steroids.yaml"
FILE_MAX = 64 * 1024  # characters
COMMAND_MAX = 10_000
KEYS = ("prepare", "build", "test")


def read(text: str | None) -> Recipe | None:
    """Return the commands that the file names, or None if there is no such file or it names none."""
    try:
        root = compose(text or "", FILE_MAX)
    except FaultyFile:
        return None
    if not isinstance(root, yaml.MappingNode):
        return None
    found = {
        key.value: value.value.strip()[:COMMAND_MAX]
        for key, value in root.value
        if isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode) and key.value in KEYS
    }
    return Recipe(**found, source=NAME) if any(found.values()) else None
