"""Selecting the few project settings that one rule needs."""

from dataclasses import fields
from typing import TypeVar

Part = TypeVar("Part")


def part_of(settings: object, part: type[Part]) -> Part:
    """Return the dataclass `part`, filled with the settings that have the same names as its fields.

    Raises AttributeError if a setting is missing, so that no rule runs on a default by accident.
    """
    return part(**{item.name: getattr(settings, item.name) for item in fields(part)})  # type: ignore[arg-type]
