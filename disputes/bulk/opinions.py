"""Opinions on conflicts, and where all of them agree. They are suggested in bulk, never applied unseen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from disputes import precedents
from disputes.models import Conflict
from disputes.models import Opinion as Said
from disputes.protocol.rulings.arbitration import option_of
from disputes.protocol.text.quotes import one_line

REASONS_MAX = 300  # characters of a judge's reasons


@dataclass(frozen=True, slots=True)
class BulkOpinion:
    """How a source, such as precedents or a judge, would rule, and why."""

    option: str
    why: str
    cites: str = ""  # the precedent that such a ruling follows most closely
    is_alone: bool = True  # whether it suffices alone: people's rulings do, an agent's word does not


def _of_precedents(conflicts: Sequence[Conflict]) -> dict[int, BulkOpinion | None]:
    """Return how the close precedents of each conflict ruled; None if they differ."""
    said: dict[int, BulkOpinion | None] = {}
    for pk, found in precedents.for_conflicts(conflicts).items():
        close = [precedent for precedent in found if precedent.is_close]
        if close:
            option = precedents.agreement(found)
            named = ", ".join(precedent.conflict.dispute.ref for precedent in close)
            said[pk] = BulkOpinion(option, f"As ruled in {named}.", close[0].conflict.ref) if option else None
    return said


def _of_judges(conflicts: Sequence[Conflict]) -> dict[int, BulkOpinion | None]:
    """Return the last opinion a judge gave in time on each conflict; None if it left it to people (ARB-7)."""
    given = Said.objects.filter(
        conflict__in=[conflict.pk for conflict in conflicts], kind=Said.Kind.JUDGE, state=Said.State.GIVEN
    )
    said: dict[int, BulkOpinion | None] = {}
    for opinion in given.order_by("pk"):
        option = option_of(opinion.verdict)
        reasons = one_line(opinion.reasons, REASONS_MAX)
        why = f"As the judge {opinion.by_agent} says: {reasons}"
        said[opinion.conflict_id] = BulkOpinion(option, why, is_alone=False) if option else None
    return said


# Each source maps the keys of conflicts to its opinion; None means undecided, a missing key no opinion.
OPINIONS: list[Callable[[Sequence[Conflict]], dict[int, BulkOpinion | None]]] = [_of_judges, _of_precedents]


def agreed(conflicts: Sequence[Conflict]) -> dict[int, BulkOpinion]:
    """Return the conflicts on which all opinions agree, unless they are only an agent's word."""
    every = [source(conflicts) for source in OPINIONS]
    found = {}
    for conflict in conflicts:
        said = [opinions[conflict.pk] for opinions in every if conflict.pk in opinions]
        known = [opinion for opinion in said if opinion is not None]
        is_enough = any(opinion.is_alone for opinion in known)
        if is_enough and len(known) == len(said) and len({opinion.option for opinion in known}) == 1:
            found[conflict.pk] = BulkOpinion(
                known[0].option,
                " ".join(opinion.why for opinion in known),
                next((opinion.cites for opinion in known if opinion.cites), ""),
            )
    return found
