"""Deciding a conflict: one conditional UPDATE, the decision, and what follows from it."""

from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction

from disputes import opening
from disputes.models import Bulk, Conflict, Decision, StaleConflict
from disputes.rulings.effects import act
from disputes.rulings.offers import SHOWN, draft, is_in_vain, shown_hash
from tasks.access import RULE, require
from tasks.database.clock import database_time
from tasks.database.locking import locked
from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.models import Project
from tasks.models.task import locked_task
from tasks.states import Severity


def refuse_second(conflict: Conflict) -> Refused:
    """Return the refusal for the loser of a race, which says what was ruled, by whom and when."""
    decision = conflict.standing_decision()
    if decision is None:
        return Refused(
            "not_open",
            f"{conflict.ref} is {conflict.status}; there is nothing to rule on.",
            "Reload the queue.",
        )
    who = decision.by
    return Refused(
        "already_decided",
        f"{who} ruled {decision.letter} on {conflict.ref} "
        f"on {decision.at.day} {decision.at:%b %Y at %H:%M} UTC.",
        "Your text is kept. Reopen the conflict with a reason if the ruling is wrong.",
        decision={
            "option": decision.option, "letter": decision.letter, "by": who,
            "at": decision.at.isoformat(), "text": decision.text,
        },
    )  # fmt: skip


def decide(
    conflict: Conflict,
    option: str,
    *,
    user: Any,
    shown: str = "",
    undo_seconds: float | None = None,
    bulk: Bulk | None = None,
    seconds: float | None = None,
    **words: Any,
) -> Decision:
    """Rule on a conflict: one conditional UPDATE, the decision, and the task's move, or nothing at all.

    `shown` is the hash of what the person saw; empty skips that check (REST). `undo_seconds` is the project's
    setting if None; `bulk` is the bulk action that the ruling is part of; `seconds` is how long the person
    had the card; `words` are those of `draft`. Raises Refused: "no_right", "already_decided", "not_open",
    "stale_view", "unknown_option", "text_missing", "no_precedent", "too_many" precedents, "rationale_missing"
    (CRITICAL needs one), or what the option itself raises.
    """
    project = conflict.dispute.project
    require(user, project, RULE, "rule")
    choice = conflict.choice(option)
    if choice is None:
        choices = (c for c in conflict.choices if not is_in_vain(conflict, c.option))
        offered = ", ".join(f"{c.letter} {c.option}" for c in choices)
        raise Invalid(
            "unknown_option", f"{option} is no option of {conflict.ref}.", f"Offered are {offered}."
        )
    if not conflict.is_open:
        raise refuse_second(conflict)
    refuse_stale(conflict, shown)
    decision = draft(conflict, option, **words)
    if choice.needs_text and not decision.text:
        raise Invalid("text_missing", "Your own words are missing.", f"“{choice.title}” needs a sentence.")
    if needs_rationale(conflict) and not decision.rationale:
        raise Invalid(
            "rationale_missing", f"{conflict.ref} is CRITICAL: say why.",
            "A sentence is enough; it stays with the ruling.",
        )  # fmt: skip
    decision.user, decision.shown_hash = user, shown
    decision.bulk, decision.seconds = bulk, seconds
    note = words.get("rationale") or words.get("text", "")
    return _settle(decision, Actor.person(user), note=note, undo_seconds=undo_seconds, shown=shown)


def decide_by_policy(
    conflict: Conflict, option: str, *, set_by: Any, rationale: str, by: str, cites: str = ""
) -> Decision:
    """Rule as the project's policy says, in the name of the person who set it; such a ruling can be undone.

    `by` is whoever the policy trusts, such as a judge; `cites` names the precedents that the ruling follows.
    Raises Refused: "no_policy" if the conflict is critical or has no two sides, "already_decided",
    "not_open", "no_precedent".
    """
    if conflict.kind != Conflict.Kind.DISAGREEMENT or conflict.severity == Severity.CRITICAL:
        raise Refused(
            "no_policy", f"No policy rules on {conflict.ref}: it is {conflict.severity}, {conflict.kind}.",
            "A human of the project rules.", status=403,
        )  # fmt: skip
    if not conflict.is_open:
        raise refuse_second(conflict)
    decision = draft(conflict, option, rationale=rationale, cites=cites)
    decision.authority, decision.policy_set_by = Decision.Authority.POLICY, set_by
    policy = f"{by}, by {Actor.person(set_by).label}’s policy"
    return _settle(decision, Actor("policy", policy), note=rationale)


def _settle(
    decision: Decision, actor: Actor, *, note: str, undo_seconds: float | None = None, shown: str = ""
) -> Decision:
    """Write the ruling, once, and do what follows from it.

    Raises Refused: "already_decided" or "not_open" if somebody was faster, "stale_view".
    """
    conflict = decision.conflict
    wait = conflict.dispute.project.config.undo_seconds if undo_seconds is None else undo_seconds
    now = database_time()  # by which the loop decides when it takes effect
    how: dict[str, Any] = {"option": decision.option, "letter": decision.letter}
    if cited := decision.cited:
        how["cites"] = [each.conflict.ref for each in cited]
    if decision.policy_set_by_id:
        how["policy_set_by"] = decision.policy_set_by_id
    try:
        with transaction.atomic():
            _lock(conflict)
            refuse_stale(conflict, shown)
            conflict.rule(actor=actor, note=note, data=how)
            decision.action = "wait"
            decision.at, decision.effective_at = now, now + timedelta(seconds=wait)
            decision.save()
            decision.cites.add(*cited)
            conflict.refresh_from_db()
            act(decision, actor)
            opening.refresh(conflict.dispute)
    except (IntegrityError, StaleConflict):
        conflict.refresh_from_db()
        raise refuse_second(conflict) from None
    return decision


def needs_rationale(conflict: Conflict) -> bool:
    """Whether a ruling has to say why, which only a critical disagreement asks for."""
    return conflict.kind == Conflict.Kind.DISAGREEMENT and conflict.severity == Severity.CRITICAL


def refuse_stale(conflict: Conflict, shown: str) -> None:
    """Raise Refused("stale_view") if the conflict is open and no longer what the person saw."""
    if not shown:
        return
    now = Conflict.objects.select_related(*SHOWN).get(pk=conflict.pk)
    if now.is_open and shown != shown_hash(now):
        raise Refused(
            "stale_view", f"{conflict.ref} has changed since you opened it.",
            "Your text is kept. Look at it again, then rule.",
        )  # fmt: skip


def _lock(conflict: Conflict) -> None:
    """Lock the task, or the project if the card is about all of it, so that rulings come one at a time."""
    if conflict.dispute.task is not None:
        locked_task(conflict.dispute.task.pk)
    else:
        locked(Project.objects).get(pk=conflict.dispute.project_id)
