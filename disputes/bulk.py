"""One act on many disputes: what it would do to each, doing it, and taking it back.

Nobody is overruled unseen: what changed since the preview, and what somebody else ruled meanwhile, is left
out and said. Each item is done or refused on its own; CRITICAL is never among them.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.db.models import Prefetch
from django.utils import timezone

from disputes import precedents, rulings, triage
from disputes.models import Bulk, Conflict, Decision, Dispute
from disputes.protocol import options
from disputes.protocol.options import Option
from disputes.rulings.blocking import blockers_for, is_clean
from tasks.access import RULE, projects_for
from tasks.errors import Refused
from tasks.events import Actor, record
from tasks.models import Project, StaleTask
from tasks.policy import HOLD
from tasks.states import IllegalMove, Severity

BULK_MAX = 100  # disputes in one act
QUESTION_MAX = 160


@dataclass(frozen=True, slots=True)
class Verb:
    """What can be done with many at once."""

    name: str
    label: str
    option: str = ""  # what is ruled; empty where each has its own, or nothing is ruled
    rules: bool = True


RULE_A = Verb("rule_a", "Rule A", Option.UPHOLD_REVIEWER)
RULE_B = Verb("rule_b", "Rule B", Option.UPHOLD_CODER)
DISCARD = Verb("discard", "Discard", Option.UPHOLD_CODER)
ADOPT = Verb("adopt", "Adopt precedents")
ASSIGN = Verb("assign", "Assign", rules=False)
SNOOZE = Verb("snooze", "Snooze", rules=False)
VERBS = {verb.name: verb for verb in (RULE_A, RULE_B, DISCARD, ADOPT, ASSIGN, SNOOZE)}


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the preview: a conflict to be ruled on, or a dispute to be assigned or to sleep."""

    ref: str
    dispute: Dispute
    question: str
    severity: str
    option: str = ""
    effect: str = ""
    why_not: str = ""
    seen: str = ""  # what the person sees of it; anything else is not acted on
    why: str = ""  # whose opinion it is

    @property
    def letter(self) -> str:
        return options.letter(self.option) if self.option else ""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the person says once for all of them."""

    note: str = ""
    to: Any = None
    until: datetime | None = None
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What somebody or something would rule, and why."""

    option: str
    why: str


# --- Opinions ---------------------------------------------------------------------------------------------


def _of_precedents(conflicts: Sequence[Conflict]) -> dict[int, Opinion | None]:
    """What the close precedents of each conflict ruled alike; None where they differ."""
    said: dict[int, Opinion | None] = {}
    for pk, found in precedents.for_conflicts(conflicts).items():
        close = [precedent for precedent in found if precedent.is_close]
        if close:
            option = precedents.agreement(found)
            named = ", ".join(precedent.conflict.dispute.ref for precedent in close)
            said[pk] = Opinion(option, f"As ruled in {named}.") if option else None
    return said


# Whoever has an opinion on conflicts: by the conflict's key what it is; None means undecided, no key none.
OPINIONS: list[Callable[[Sequence[Conflict]], dict[int, Opinion | None]]] = [_of_precedents]


def agreed(conflicts: Sequence[Conflict]) -> dict[int, Opinion]:
    """The conflicts on which all that have an opinion say the same, and at least one has."""
    every = [source(conflicts) for source in OPINIONS]
    found = {}
    for conflict in conflicts:
        said = [opinions[conflict.pk] for opinions in every if conflict.pk in opinions]
        known = [opinion for opinion in said if opinion is not None]
        if known and len(known) == len(said) and len({opinion.option for opinion in known}) == 1:
            found[conflict.pk] = Opinion(known[0].option, " ".join(opinion.why for opinion in known))
    return found


# --- The preview ------------------------------------------------------------------------------------------


def items_of(verb: Verb, wanted: Iterable[int], user: Any) -> list[Item]:
    """What the verb would do to each of these disputes, in the queue's order; a bounded number of queries.

    Disputes that the person may not see are not among them.
    """
    disputes = _load(wanted, user)
    ruled = set(projects_for(user, RULE).values_list("pk", flat=True))
    left_out = {dispute.pk: _why_not(dispute, ruled) for dispute in disputes}
    conflicts = [
        conflict for dispute in disputes if not left_out[dispute.pk] for conflict in _open(dispute)
    ]  # fmt: skip
    blockers = blockers_for({c.submission_id: c.submission for c in conflicts if c.submission}.values())
    opinions = agreed(conflicts) if verb is ADOPT else {}
    items: list[Item] = []
    for dispute in disputes:
        if left_out[dispute.pk] or not verb.rules:
            items.append(_item_of_dispute(dispute, left_out[dispute.pk], verb))
        else:
            items += [_item(conflict, verb, opinions, blockers) for conflict in _open(dispute)]
    return _with_what_waits(items, conflicts)


def _load(wanted: Iterable[int], user: Any) -> list[Dispute]:
    conflicts = Conflict.objects.order_by("pk").select_related("finding", "submission")
    rows = (
        Dispute.objects.filter(pk__in=list(wanted)[:BULK_MAX], project__in=projects_for(user))
        .in_order()
        .select_related("project", "task__project", "assignee")
        .prefetch_related(
            Prefetch("conflicts", queryset=conflicts),
            Prefetch("conflicts__decisions", Decision.objects.standing().select_related("user"), "rulings"),
        )
    )
    disputes = list(rows)
    for dispute in disputes:
        for conflict in dispute.conflicts.all():
            conflict.dispute = dispute
    return disputes


def _open(dispute: Dispute) -> list[Conflict]:
    return [each for each in dispute.conflicts.all() if each.status == Conflict.Status.OPEN]


def _why_not(dispute: Dispute, ruled: set[int]) -> str:
    """Why nothing is done with the dispute; empty where something is."""
    if dispute.project_id not in ruled:
        return f"You may not rule in {dispute.project.name}."
    if dispute.status != Dispute.Status.OPEN:
        made = [ruling for conflict in dispute.conflicts.all() for ruling in conflict.rulings]
        last = max(made, key=lambda ruling: ruling.pk, default=None)
        if last is None or last.user is None:
            return "It does not wait for anybody any more."
        return f"{triage.name_of(last.user)} ruled {last.letter} on it meanwhile."
    if dispute.severity == Severity.CRITICAL:
        return "CRITICAL is ruled on one at a time, with the code before you."
    return ""


def _item_of_dispute(dispute: Dispute, why_not: str, verb: Verb) -> Item:
    effect = {
        ASSIGN: "It is the turn of whom you choose.",
        SNOOZE: "It leaves the queue until then.",
    }.get(verb, "")  # fmt: skip
    if verb is ASSIGN and dispute.assignee:
        effect += f" Now it is {triage.name_of(dispute.assignee)}’s."
    return Item(
        dispute.ref, dispute, dispute.question, dispute.severity, why_not=why_not,
        effect="" if why_not else effect, seen=_stamp(dispute.assignee_id, dispute.question),
    )  # fmt: skip


def _item(
    conflict: Conflict, verb: Verb, opinions: dict[int, Opinion], blockers: dict[int, set[int] | None]
) -> Item:
    dispute, opinion = conflict.dispute, opinions.get(conflict.pk)
    option = opinion.option if opinion else verb.option
    why_not, effect = "", ""
    if verb is ADOPT and opinion is None:
        why_not = "No ruling on a similar conflict speaks for A or B."
    elif options.choice(conflict.kind, option, conflict.origin) is None:
        why_not = f"It asks another question: {conflict.get_kind_display().lower()} has no {verb.label}."
    else:
        effect = options.consequence(
            option, next_round=dispute.task.round + 1 if dispute.task else 1, dependants=dispute.blocks,
            was_reviewed_green=is_clean(conflict, blockers),
        )  # fmt: skip
    return Item(
        conflict.ref, dispute, conflict.question, conflict.severity, option if not why_not else "",
        effect, why_not, seen_of(conflict), opinion.why if opinion else "",
    )  # fmt: skip


def _with_what_waits(items: list[Item], conflicts: list[Conflict]) -> list[Item]:
    """The task goes on with the last conflict that holds it: said where one stays open."""
    done = {item.ref for item in items if item.option}
    staying: dict[int, list[str]] = {}
    for conflict in conflicts:
        if conflict.effect == HOLD and conflict.ref not in done:
            staying.setdefault(conflict.dispute_id, []).append(conflict.ref)
    return [
        replace(item, effect=f"{item.effect} The task waits on for {', '.join(staying[item.dispute.pk])}.")
        if item.option and item.dispute.pk in staying
        else item
        for item in items
    ]


def seen_of(conflict: Conflict) -> str:
    """A stamp of what the preview is about: the conflict's words and the commit in dispute."""
    return _stamp(
        conflict.question, conflict.severity, conflict.reviewer_position, conflict.coder_position,
        conflict.synthesis, conflict.submission.sha if conflict.submission else "",
    )  # fmt: skip


def _stamp(*what: Any) -> str:
    return sha256(json.dumps(what).encode()).hexdigest()[:16]


# --- Doing it ---------------------------------------------------------------------------------------------


def apply(verb: Verb, chosen: dict[str, str], terms: Terms, user: Any) -> Bulk:
    """Do it to each chosen item as far as it can be done, and keep what came of each.

    `chosen` is what was seen of each item, by its name. Raises Refused: no_right, nothing, too_many.
    """
    ruled = set(projects_for(user, RULE).values_list("pk", flat=True))
    if not ruled:
        raise no_right()
    if not chosen:
        raise Refused("nothing", "Nothing is chosen.", "Tick what it should be done to.", status=422)
    found = _disputes_of(chosen)
    if len(set(found.values())) > BULK_MAX:
        raise Refused("too_many", f"At most {BULK_MAX} disputes at once.", "Choose fewer.", status=422)
    items = items_of(verb, found.values(), user)
    bulk = Bulk.objects.create(user=user, verb=verb.name, note=terms.note)
    results = [_do(item, chosen[item.ref], verb, terms, bulk) for item in items if item.ref in chosen]
    known = {item.ref for item in items}
    why_not = {item.dispute.pk: item.why_not for item in items}
    gone = [ref for ref in chosen if ref in found and found[ref] in why_not and ref not in known]
    results += [_gone(ref, why_not[found[ref]]) for ref in gone]
    _keep(bulk, results, "bulk")
    return bulk


def no_right() -> Refused:
    return Refused(
        "no_right", "You may not rule in any project.", "A maintainer can make you a triager.", status=403
    )


def _disputes_of(refs: Iterable[str]) -> dict[str, int]:
    """The dispute of each name: D-7 is one, C-9 belongs to one."""
    numbers = {ref: int(ref[2:]) for ref in refs if ref[2:].isdecimal() and len(ref) < 18}
    conflicts = dict(
        Conflict.objects.filter(
            pk__in=[number for ref, number in numbers.items() if ref[:2] == "C-"]
        ).values_list("pk", "dispute")
    )
    return {
        ref: number if ref[:2] == "D-" else conflicts[number]
        for ref, number in numbers.items()
        if ref[:2] == "D-" or number in conflicts
    }


def _do(item: Item, seen: str, verb: Verb, terms: Terms, bulk: Bulk) -> dict[str, Any]:
    """One item; what is refused is a result like any other."""
    if item.why_not:
        return _result(item, item.why_not)
    if seen != item.seen:
        return _result(item, "It changed after you looked at it; nothing was done.")
    try:
        if verb is ASSIGN:
            return _assign(item, terms, bulk)
        if verb is SNOOZE:
            triage.snooze(item.dispute, by=bulk.user, until=terms.until, condition=terms.condition)
            return _result(item, f"Sleeps {triage.snoozed_words(item.dispute)}.", done=True)
        return _rule(item, verb, terms, bulk)
    except Refused as error:
        return _result(item, error.message)
    except (IllegalMove, StaleTask) as error:
        return _result(item, str(error))


def _assign(item: Item, terms: Terms, bulk: Bulk) -> dict[str, Any]:
    before = item.dispute.assignee_id
    changed = triage.assign(item.dispute, terms.to, by=bulk.user)
    whose = f"{triage.name_of(terms.to)}’s" if terms.to else "nobody’s"
    to = terms.to.pk if terms.to else None
    words = f"It is {whose} now." if changed else f"It was {whose} already."
    return _result(item, words, done=changed, before=before, to=to)


def _rule(item: Item, verb: Verb, terms: Terms, bulk: Bulk) -> dict[str, Any]:
    conflict = Conflict.objects.select_related(
        "dispute__task__project", "dispute__task__section", "dispute__project", "finding", "submission"
    ).get(pk=item.ref[2:])
    why = terms.note or item.why
    if verb is DISCARD:
        why = f"{rulings.DISCARDED}: {why}" if why else f"{rulings.DISCARDED}."
    decision = rulings.decide(conflict, item.option, user=bulk.user, rationale=why, bulk=bulk)
    return _result(item, f"{decision.letter}. {WHAT_CAME[decision.action]}", done=True, decision=decision.pk)


WHAT_CAME = {
    "revise": "The coder goes on.",
    "review": "A review comes first.",
    "accept": "The commit lands as it is.",
    "wait": "The task stays where it is until nothing else holds it.",
    "hold": "The task is held.",
    "retry": "The task starts again.",
    "defer": "The task is put off.",
    "cancel": "The task is cancelled.",
    "apply": "It is carried out.",
}


def _result(item: Item, words: str, *, done: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "ref": item.ref, "dispute": item.dispute.pk, "project": item.dispute.project_id,
        "question": item.question[:QUESTION_MAX], "done": done, "words": words, **more,
    }  # fmt: skip


def _gone(ref: str, why_not: str) -> dict[str, Any]:
    """A conflict that was ruled on since the preview, or that cannot be ruled on this way any more."""
    conflict = Conflict.objects.select_related("dispute").get(pk=ref[2:])
    ruling = conflict.standing_decision()
    if ruling and ruling.user:
        words = f"{triage.name_of(ruling.user)} ruled {ruling.letter} on it meanwhile."
    else:
        words = why_not or f"It is {conflict.status} now."
    return {**_named(conflict), "done": False, "words": words}


def _named(conflict: Conflict) -> dict[str, Any]:
    return {
        "ref": conflict.ref, "dispute": conflict.dispute_id, "project": conflict.dispute.project_id,
        "question": conflict.question[:QUESTION_MAX],
    }  # fmt: skip


@transaction.atomic
def _keep(bulk: Bulk, results: list[dict[str, Any]], kind: str) -> None:
    """Write down what came of each, and one event for each project in which something was done."""
    if kind == "bulk":
        bulk.results = results
    else:
        bulk.undo_results, bulk.undone_at = results, timezone.now()
    bulk.save(update_fields=["results"] if kind == "bulk" else ["undo_results", "undone_at"])
    done: dict[int, list[str]] = {}
    for result in results:
        if result["done"]:
            done.setdefault(result["project"], []).append(result["ref"])
    label = VERBS[bulk.verb].label
    for project in Project.objects.filter(pk__in=done):
        refs = done[project.pk]
        record(
            project, kind, actor=Actor.person(bulk.user), note=f"{label}: {len(refs)} at once",
            data={"bulk": bulk.pk, "verb": bulk.verb, "items": refs},
        )  # fmt: skip


# --- Taking it back ---------------------------------------------------------------------------------------


def undo(bulk: Bulk, *, user: Any) -> list[dict[str, Any]]:
    """Take back of it what can be: each item by its own rules, the newest first.

    Raises Refused: no_right, used (nothing of it can be taken back any more).
    """
    if user.pk != bulk.user_id and not user.is_superuser:
        raise Refused("no_right", "Only who did it takes it back.", "Reopen what is wrong.", status=403)
    made = Decision.objects.filter(bulk=bulk).select_related(
        "conflict__dispute__task__project", "conflict__dispute__project", "conflict__finding"
    )
    rulings_made = {decision.pk: decision for decision in made}
    done = [result for result in reversed(bulk.results) if result["done"]]
    if not bulk.results:  # it ended halfway; its rulings stand all the same
        done = [{**_named(each.conflict), "decision": each.pk} for each in made.order_by("-pk")]
    undone = [_take_back(result, bulk, rulings_made, user) for result in done]
    if not any(result["done"] for result in undone):
        raise Refused(
            "used", "Nothing of it can be taken back any more.", "Reopen what is wrong, with a reason."
        )
    _keep(bulk, undone, "bulk_undone")
    return undone


def _take_back(result: dict[str, Any], bulk: Bulk, made: dict[int, Decision], user: Any) -> dict[str, Any]:
    told = {name: result[name] for name in ("ref", "dispute", "project", "question")}
    try:
        if "decision" in result:
            rulings.undo(made[result["decision"]], user=user)
            return {**told, "done": True, "words": "It waits for a ruling again."}
        dispute = Dispute.objects.select_related("project", "task__project").get(pk=result["dispute"])
        return {**told, **_put_back(dispute, result, bulk, user)}
    except Refused as error:
        return {**told, "done": False, "words": error.message}
    except (IllegalMove, StaleTask) as error:
        return {**told, "done": False, "words": str(error)}


def _put_back(dispute: Dispute, result: dict[str, Any], bulk: Bulk, user: Any) -> dict[str, Any]:
    """A turn or a snooze as it was, unless somebody has changed it since."""
    changed = {"done": False, "words": "Somebody has changed it since."}
    if bulk.verb == SNOOZE.name:
        if dispute.snoozed_by_id != bulk.user_id or not dispute.snoozed_at or dispute.snoozed_at < bulk.at:
            return changed
        triage.wake_by(dispute, user)
        return {"done": True, "words": "It is awake again."}
    if dispute.assignee_id != result["to"]:
        return changed
    before = type(user).objects.filter(pk=result["before"]).first() if result["before"] else None
    triage.assign(dispute, before, by=user)
    return {
        "done": True,
        "words": f"It is {triage.name_of(before)}’s again." if before else "It is nobody’s again.",
    }
