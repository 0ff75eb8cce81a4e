"""Presenting a conflict's row as the text that a person reads before ruling (protocol.presentation)."""

from collections.abc import Sequence

from disputes.models import NOT_STATED, Conflict
from disputes.protocol.rulings.options import Kind, Option
from disputes.protocol.rulings.presentation import Offer, Presented, present
from disputes.rulings import OptionView
from disputes.rulings.offers import heard

IMPLICIT = {Conflict.Origin.CONVERTED, Conflict.Origin.FLAGGED, Conflict.Origin.UNANSWERED}


def presentation(conflict: Conflict, options: Sequence[OptionView]) -> str:
    """Return the whole text: both sides, each option's cost, the recommended one, and what happens then."""
    finding = conflict.shown_finding
    return present(
        Presented(
            name=conflict.name,
            kind=Kind(conflict.kind),
            subject=conflict.question,
            severity=conflict.severity,
            gap=named(conflict),
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
            raised_in=finding.round if finding and finding.pk != conflict.finding_id else None,
            impact=finding.impact if finding else "",
            coder=heard(conflict.coder_position),
            rationale=conflict.coder_rationale,
            alternative=conflict.alternative,
            synthesis=conflict.proposal.text if conflict.proposal else "",
            synthesis_by=conflict.proposal.by if conflict.proposal else "",
            evidence=tuple(map(str, conflict.evidence)),
            is_implicit=is_implicit(conflict),
            opened_by=_opened_by(conflict),
            is_outsiders=conflict.origin == Conflict.Origin.CLI and conflict.opened_as == "human",
        )
    )


def named(conflict: Conflict) -> str:
    """Return the name and the title of the gap or the task that the conflict is about."""
    subject = conflict.subject
    if subject is None:
        return conflict.dispute.project.name
    title = subject.title.removeprefix(subject.gap).lstrip(": ") if subject.gap else subject.title
    return f"{conflict.subject_name} {title}".strip()


def is_implicit(conflict: Conflict) -> bool:
    """Whether the conflict came from silence, so that nobody disagreed aloud or opened it."""
    unheard = conflict.opened_as == "system" and conflict.coder_position == NOT_STATED
    return unheard or conflict.origin in IMPLICIT


def _opened_by(conflict: Conflict) -> str:
    """Return who opened the conflict, as the beginning of a sentence; "" if the program did.

    A reopened conflict names its sides, not who reopened it.
    """
    match conflict.opened_as:
        case "system":
            return ""
        case "human":
            name = conflict.coder_label if conflict.origin == Conflict.Origin.CLI else ""
            return name or "A person of the project"
        case "reviewer":
            side, label = "The reviewer", conflict.reviewer_label
        case _:
            side, label = "The coder", conflict.coder_label
    return f"{side} {label}" if label else side
