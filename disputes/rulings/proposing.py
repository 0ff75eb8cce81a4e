"""Handing in a synthesis on an open conflict, which becomes option C, marked with its author (OPT-3)."""

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.db import transaction

from disputes.models import Conflict, Proposal
from disputes.protocol.rulings.synthesis import Source, handed_in
from disputes.rulings.deciding import refuse_second
from disputes.rulings.offers import TEXT_MAX
from tasks.access import RULE, require
from tasks.errors import Invalid
from tasks.events import Actor
from tasks.models import Project
from tasks.models.task import locked_task


def propose_synthesis(
    conflict: Conflict,
    text: str,
    *,
    by: Source,
    actor: Actor,
    trade_off: str = "",
    covers_both: bool = False,
) -> Proposal:
    """Make the text option C of an open disagreement, in place of a rule's or an earlier one.

    A person needs the right to rule. Anybody who is looking at the conflict is asked to look again. Raises
    Refused: "no_right", "no_synthesis", "text_missing", "too_long", "not_open", "already_decided".
    """
    project = conflict.dispute.project
    if by is Source.HUMAN:
        _check(project, actor)
    if conflict.kind != Conflict.Kind.DISAGREEMENT:
        raise Invalid(
            "no_synthesis", f"{conflict.ref} has no option C: no two sides disagree there.",
            "Choose one of its options.",
        )  # fmt: skip
    found = handed_in(text, source=by, trade_off=trade_off, covers_both=covers_both)
    if found is None:
        raise Invalid("text_missing", "The synthesis has no words.", "Say what both sides could live with.")
    if max(len(found.proposal), len(found.trade_off)) > TEXT_MAX:
        raise Invalid("too_long", f"It is longer than {TEXT_MAX} characters.", "Say it shorter.")
    with transaction.atomic():
        locked_task(conflict.task.pk)
        conflict.refresh_from_db()
        if not conflict.is_open:
            raise refuse_second(conflict)
        before = conflict.proposal
        made = conflict.propose(found, actor.label)
        told = {"by": made.by, "before": before.by if before else ""}
        conflict.record_event("synthesis_proposed", actor=actor, note=found.proposal, **told)
    return made


def _check(project: Project, actor: Actor) -> None:
    user = get_user_model().objects.filter(pk=actor.user_id).first()
    require(user or AnonymousUser(), project, RULE, "rule")
