"""What a bulk action would do to each of many disputes: the lines of its preview."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.db.models import Prefetch

from disputes import triage
from disputes.bulk.opinions import BulkOpinion, agreed
from disputes.models import Conflict, Decision, Dispute
from disputes.protocol.rulings import options
from disputes.protocol.rulings.options import Option
from disputes.rulings.blocking import blockers_for
from disputes.rulings.offers import consequence_of
from tasks.access import RULE, no_right, projects_for
from tasks.configuration.policy import HOLD, LOG
from tasks.states import Severity

BULK_MAX = 100  # disputes in one bulk action


@dataclass(frozen=True, slots=True)
class Verb:
    """Something that can be done with many disputes at once."""

    name: str
    label: str
    option: str = ""  # the ruling; empty if each item has its own, or if nothing is ruled
    rules: bool = True


RULE_A = Verb("rule_a", f"Rule {options.REVIEWER.letter}", Option.UPHOLD_REVIEWER)
RULE_B = Verb("rule_b", f"Rule {options.CODER.letter}", Option.UPHOLD_CODER)
DISCARD = Verb("discard", "Discard", Option.UPHOLD_CODER)
ADOPT = Verb("adopt", "Adopt agreed")
ASSIGN = Verb("assign", "Assign", rules=False)
SNOOZE = Verb("snooze", "Snooze", rules=False)
VERBS = {verb.name: verb for verb in (RULE_A, RULE_B, DISCARD, ADOPT, ASSIGN, SNOOZE)}


@dataclass(frozen=True, slots=True)
class BulkItem:
    """One line of the preview: a conflict to be ruled on, or a dispute to be assigned or snoozed."""

    ref: str
    dispute: Dispute
    question: str
    severity: str
    option: str = ""
    effect: str = ""
    why_not: str = ""
    seen: str = ""  # a stamp of what the person sees; if it differs later, nothing is done
    why: str = ""  # whose opinion it is
    cites: str = ""  # the precedent that the ruling follows

    @property
    def letter(self) -> str:
        return options.letter(self.option) if self.option else ""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the person specifies once for all the items."""

    note: str = ""
    to: Any = None
    until: datetime | None = None
    condition: str = ""


def items_of(verb: Verb, wanted: Iterable[int], user: Any) -> list[BulkItem]:
    """Return what the verb would do to each of these disputes, in the queue's order.

    Disputes that the person may not see are left out. The number of queries is bounded.
    """
    disputes = _load(wanted, user)
    ruled = set(projects_for(user, RULE).values_list("pk", flat=True))
    left_out = {dispute.pk: _why_not(dispute, ruled, verb) for dispute in disputes}
    conflicts = [
        conflict for dispute in disputes if not left_out[dispute.pk] for conflict in _open(dispute)
    ]  # fmt: skip
    blockers = blockers_for({c.submission_id: c.submission for c in conflicts if c.submission}.values())
    opinions = agreed(conflicts) if verb is ADOPT else {}
    items: list[BulkItem] = []
    for dispute in disputes:
        if left_out[dispute.pk] or not verb.rules:
            items.append(_item_of_dispute(dispute, left_out[dispute.pk], verb))
        else:
            items += _items_of_dispute(dispute, verb, opinions, blockers)
    return items


def _load(wanted: Iterable[int], user: Any) -> list[Dispute]:
    conflicts = Conflict.objects.order_by("pk").select_related(
        "finding", "raised_as", "submission", "thread", "proposal"
    )
    rows = (
        Dispute.objects.filter(pk__in=list(wanted)[:BULK_MAX], project__in=projects_for(user))
        .in_order()
        .select_related("project", "task__project", "assignee")
        .prefetch_related(
            Prefetch("conflicts", queryset=conflicts),
            Prefetch(
                "conflicts__decisions",
                Decision.objects.standing().select_related("user", "policy_set_by"),
                "rulings",
            ),
        )
    )
    disputes = list(rows)
    for dispute in disputes:
        for conflict in dispute.conflicts.all():
            conflict.dispute = dispute
    return disputes


def _open(dispute: Dispute) -> list[Conflict]:
    return [each for each in dispute.conflicts.all() if each.is_open]


def _why_not(dispute: Dispute, ruled: set[int], verb: Verb) -> str:
    """Return why nothing can be done with the dispute, or "" if something can."""
    if dispute.project_id not in ruled:
        return no_right(dispute.project, RULE, "rule").message
    if dispute.status != Dispute.Status.OPEN:
        made = [ruling for conflict in dispute.conflicts.all() for ruling in conflict.rulings]
        last = max(made, key=lambda ruling: ruling.pk, default=None)
        if last is None:
            return "It does not wait for anybody any more."
        return f"{last.by} ruled {last.letter} on it meanwhile."
    if dispute.severity == Severity.CRITICAL and verb is not ASSIGN:
        return "CRITICAL is taken one at a time, with the code before you."
    return ""


def _item_of_dispute(dispute: Dispute, why_not: str, verb: Verb) -> BulkItem:
    effect = {
        ASSIGN: "It is the turn of whom you choose.",
        SNOOZE: "It leaves the queue until then.",
    }.get(verb, "")  # fmt: skip
    if verb is ASSIGN and dispute.assignee:
        effect += f" Now it is {triage.name_of(dispute.assignee)}’s."
    return BulkItem(
        dispute.ref, dispute, dispute.question, dispute.severity, why_not=why_not,
        effect="" if why_not else effect, seen=_stamp(dispute.assignee_id, dispute.question),
    )  # fmt: skip


def _items_of_dispute(
    dispute: Dispute, verb: Verb, opinions: dict[int, BulkOpinion], blockers: dict[int, set[int] | None]
) -> list[BulkItem]:
    """Return the items of the dispute's open conflicts, those that hold the task last.

    Ruling on the last of them is what lets the task go on.
    """
    conflicts = sorted(_open(dispute), key=lambda conflict: conflict.effect == HOLD)
    chosen = {c.pk: c.choice(opinions[c.pk].option if c.pk in opinions else verb.option) for c in conflicts}
    staying = [c for c in conflicts if chosen[c.pk] is None and c.effect != LOG]
    holding = [c.ref for c in staying if c.effect == HOLD]
    settled = _settled_by(chosen, conflicts) if not staying and not _is_owed(dispute) else None
    items = []
    for conflict in conflicts:
        choice, found = chosen[conflict.pk], blockers.get(conflict.submission_id or 0)
        lands = settled is not None and found is not None and found <= settled
        if choice is None:
            items.append(_left_out(conflict, verb))
        else:
            items.append(_item(conflict, choice, opinions.get(conflict.pk), holding, lands))
    return items


def _settled_by(
    chosen: dict[int, options.Choice | None], conflicts: Iterable[Conflict]
) -> set[int | None] | None:
    """Return the findings that these rulings settle for the coder, or None if the code must change anyway."""
    if any(choice and choice.expects_change for choice in chosen.values()):
        return None
    upheld = {pk for pk, choice in chosen.items() if choice and choice.option == Option.UPHOLD_CODER}
    return {conflict.finding_id for conflict in conflicts if conflict.pk in upheld}


def _is_owed(dispute: Dispute) -> bool:
    """Whether an earlier ruling of this dispute asks for a change that no prompt has told the coder about."""
    rulings_made = [ruling for conflict in dispute.conflicts.all() for ruling in conflict.rulings]
    return any(ruling.expects_change and ruling.used_at is None for ruling in rulings_made)


def _left_out(conflict: Conflict, verb: Verb) -> BulkItem:
    why_not = "It asks something else; A or B is no answer to it."
    if verb is ADOPT and conflict.kind == Conflict.Kind.DISAGREEMENT:
        why_not = "No ruling on a similar conflict, or none that the judge agrees with, speaks for A or B."
    return BulkItem(conflict.ref, conflict.dispute, conflict.question, conflict.severity, why_not=why_not)


def _item(
    conflict: Conflict, choice: options.Choice, opinion: BulkOpinion | None, holding: list[str], lands: bool
) -> BulkItem:
    effect = consequence_of(conflict, choice, was_reviewed_green=lands)
    if holding:
        effect += f" The task waits on for {', '.join(holding)}."
    return BulkItem(
        conflict.ref, conflict.dispute, conflict.question, conflict.severity, choice.option, effect,
        seen=_stamp(seen_of(conflict), choice.option), why=opinion.why if opinion else "",
        cites=opinion.cites if opinion else "",
    )  # fmt: skip


def seen_of(conflict: Conflict) -> str:
    """Return a stamp of what the preview shows: the conflict's words and the disputed commit."""
    return _stamp(
        conflict.question, conflict.severity, conflict.reviewer_position, conflict.coder_position,
        conflict.proposal_id, conflict.submission.sha if conflict.submission else "",
    )  # fmt: skip


def _stamp(*what: Any) -> str:
    return sha256(json.dumps(what).encode()).hexdigest()[:16]
