"""Core: how likely a recipe is to be the right one before anything has been tried."""

from dataclasses import dataclass
from enum import IntEnum

from agents.recipes.recipe import Recipe


class Rank(IntEnum):
    """The order in which candidates are tried, lowest first."""

    DIRECT = 0  # the project declares its tests and what they need
    CI = 1  # its own continuous integration does this
    WIDER = 2  # the declared way, with more installed or less demanded
    GUESS = 3  # there are tests, but how they are run is a guess
    BUILD = 4  # nothing is tested


@dataclass(frozen=True, slots=True)
class Candidate:
    """A recipe and how likely it is; `kind` names its ecosystem, so that its share can be compared.

    `folder` is where its package lies, if that is below the top. `is_apart` means that there are packages of
    the same ecosystem within it whose tests it does not run.
    """

    rank: Rank
    kind: str
    recipe: Recipe
    folder: str = ""
    is_apart: bool = False
