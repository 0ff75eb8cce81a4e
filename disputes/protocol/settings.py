"""The part of a project's settings that one rule needs."""

from dataclasses import fields
from typing import TypeVar

Part = TypeVar("Part")


def part_of(settings: object, part: type[Part]) -> Part:
    """The dataclass `part`, filled with the values that `settings` has under the names of its fields.

    Raises AttributeError where a name is missing, so that no rule runs on a default by accident.
    """
    return part(**{item.name: getattr(settings, item.name) for item in fields(part)})  # type: ignore[arg-type]
