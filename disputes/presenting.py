"""A conflict's row as the text that a person reads before ruling (protocol.presentation)."""

from collections.abc import Sequence

from disputes.models import NOT_STATED, Conflict
from disputes.protocol.options import Kind, Option
from disputes.protocol.presentation import Offer, Presented, present
from disputes.rulings import OptionView

IMPLICIT = {Conflict.Origin.CONVERTED, Conflict.Origin.FLAGGED, Conflict.Origin.UNANSWERED}


def presentation(conflict: Conflict, options: Sequence[OptionView]) -> str:
    """The whole text: both sides, what each option costs, which is recommended, what happens then."""
    dispute, finding = conflict.dispute, conflict.finding
    return present(
        Presented(
            name=conflict.name,
            kind=Kind(conflict.kind),
            subject=conflict.question,
            severity=conflict.severity,
            gap=f"{dispute.task.ref} {dispute.task.title}" if dispute.task else dispute.project.name,
            offers=tuple(
                Offer(
                    option=Option(view.option),
                    letter=view.letter,
                    title=view.title,
                    trade_off=view.trade_off,
                    is_recommended=bool(view.recommended),
                    consequence=view.consequence,
                )
                for view in options
            ),
            reviewer=heard(conflict.reviewer_position),
            impact=finding.impact if finding else "",
            coder=heard(conflict.coder_position),
            rationale=conflict.coder_rationale,
            alternative=conflict.alternative,
            synthesis=conflict.synthesis,
            synthesis_by=conflict.synthesis_by,
            evidence=tuple(map(str, conflict.evidence)),
            is_implicit=is_implicit(conflict),
        )
    )


def is_implicit(conflict: Conflict) -> bool:
    """Whether nobody disagreed aloud: the conflict came of silence."""
    return conflict.origin in IMPLICIT or conflict.coder_position == NOT_STATED


def heard(position: str) -> str:
    """What a side said; empty where it said nothing."""
    return "" if position == NOT_STATED else position
