"""Who has an opinion on a conflict, and where all opinions agree. Suggested in bulk, never applied unseen."""

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
    """What somebody or something would rule, and why."""

    option: str
    why: str
    cites: str = ""  # the precedent that a ruling by it follows most closely
    is_alone: bool = True  # enough where nobody else has one: people ruled so; an agent's word is not


def _of_precedents(conflicts: Sequence[Conflict]) -> dict[int, BulkOpinion | None]:
    """What the close precedents of each conflict ruled alike; None where they differ."""
    said: dict[int, BulkOpinion | None] = {}
    for pk, found in precedents.for_conflicts(conflicts).items():
        close = [precedent for precedent in found if precedent.is_close]
        if close:
            option = precedents.agreement(found)
            named = ", ".join(precedent.conflict.dispute.ref for precedent in close)
            said[pk] = BulkOpinion(option, f"As ruled in {named}.", close[0].conflict.ref) if option else None
    return said


def _of_judges(conflicts: Sequence[Conflict]) -> dict[int, BulkOpinion | None]:
    """What a judge said last of each conflict, in time; None where it left that to people (ARB-7)."""
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


# Whoever has an opinion on conflicts: by the conflict's key what it is; None means undecided, no key none.
OPINIONS: list[Callable[[Sequence[Conflict]], dict[int, BulkOpinion | None]]] = [_of_judges, _of_precedents]


def agreed(conflicts: Sequence[Conflict]) -> dict[int, BulkOpinion]:
    """The conflicts on which all that have an opinion say the same, and it is not an agent's word alone."""
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
