"""Carrying out a bulk action and taking it back: each item by its own rules, with a result for each."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from disputes import rulings, triage
from disputes.bulk.items import ASSIGN, BULK_MAX, DISCARD, SNOOZE, VERBS, BulkItem, Terms, Verb, items_of
from disputes.models import Bulk, Conflict, Decision, Dispute
from disputes.protocol.rulings.records import what_came
from tasks.access import RULE, require_any
from tasks.database.clock import estimated_time
from tasks.errors import Invalid, Refused
from tasks.events import Actor
from tasks.models import Project, StaleTask
from tasks.models.event import record
from tasks.states import IllegalMove

QUESTION_MAX = 160


def apply(verb: Verb, chosen: dict[str, str], terms: Terms, user: Any) -> Bulk:
    """Carry the action out on each chosen item as far as possible, and store a result for each.

    `chosen` maps each item's name to the state of it that the person saw. Raises Refused: "no_right",
    "nothing" if nothing is chosen, or "too_many".
    """
    require_any(user, RULE, "rule")
    if not chosen:
        raise Invalid("nothing", "Nothing is chosen.", "Tick what it should be done to.")
    found = _disputes_of(chosen)
    if len(set(found.values())) > BULK_MAX:
        raise Invalid("too_many", f"At most {BULK_MAX} disputes at once.", "Choose fewer.")
    items = items_of(verb, found.values(), user)
    bulk = Bulk.objects.create(user=user, verb=verb.name, note=terms.note)
    results = [_do(item, chosen[item.ref], verb, terms, bulk) for item in items if item.ref in chosen]
    known = {item.ref for item in items}
    why_not = {item.dispute.pk: item.why_not for item in items}
    gone = [
        ref
        for ref in chosen
        if ref[:2] == "C-" and ref in found and found[ref] in why_not and ref not in known
    ]
    results += [_gone(ref, why_not[found[ref]]) for ref in gone]
    told = {result["ref"] for result in results}
    results += [_unseen(ref) for ref in chosen if _is_name(ref) and ref not in told]
    _keep(bulk, results, "bulk")
    return bulk


def _is_name(ref: str) -> bool:
    return ref[:2] in {"D-", "C-"} and ref[2:].isdecimal() and len(ref) < 18


def _disputes_of(refs: Iterable[str]) -> dict[str, int]:
    """Return the primary key of the dispute behind each name: D-7 is a dispute, C-9 belongs to one."""
    numbers = {ref: int(ref[2:]) for ref in refs if _is_name(ref)}
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


def _do(item: BulkItem, seen: str, verb: Verb, terms: Terms, bulk: Bulk) -> dict[str, Any]:
    """Carry the action out on one item and return its result; a refusal is a result like any other."""
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
    except (Refused, IllegalMove, StaleTask) as error:
        return _result(item, str(error))


def _assign(item: BulkItem, terms: Terms, bulk: Bulk) -> dict[str, Any]:
    before = item.dispute.assignee_id
    changed = triage.assign(item.dispute, terms.to, by=bulk.user)
    whose = f"{triage.name_of(terms.to)}’s" if terms.to else "nobody’s"
    to = terms.to.pk if terms.to else None
    words = f"It is {whose} now." if changed else f"It was {whose} already."
    return _result(item, words, done=changed, before=before, to=to)


def _rule(item: BulkItem, verb: Verb, terms: Terms, bulk: Bulk) -> dict[str, Any]:
    conflict = Conflict.objects.select_related(
        "dispute__task__project", "dispute__task__section", "dispute__project", "finding", "submission"
    ).get(pk=item.ref[2:])
    why, task = terms.note or item.why, conflict.task
    if verb is DISCARD:
        why = f"{rulings.DISCARDED}: {why}" if why else f"{rulings.DISCARDED}."
    decision = rulings.decide(
        conflict, item.option, user=bulk.user, rationale=why, bulk=bulk, cites=item.cites
    )
    came = what_came(decision.action, task.ref)
    return _result(item, f"{decision.letter}. {came}", done=True, decision=decision.pk)


def _result(item: BulkItem | Conflict, words: str, *, done: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "ref": item.ref, "dispute": item.dispute.pk, "project": item.dispute.project_id,
        "question": item.question[:QUESTION_MAX], "done": done, "words": words, **more,
    }  # fmt: skip


def _gone(ref: str, why_not: str) -> dict[str, Any]:
    """Return the result for a conflict that has been ruled on or become ineligible since the preview."""
    conflict = Conflict.objects.select_related("dispute").get(pk=ref[2:])
    ruling = conflict.standing_decision()
    if ruling:
        words = f"{ruling.by} ruled {ruling.letter} on it meanwhile."
    else:
        words = why_not or f"It is {conflict.status} now."
    return _result(conflict, words)


def _unseen(ref: str) -> dict[str, Any]:
    """Return the result for something that the person may not see, or that does not exist: the same."""
    words = "You may no longer see it; nothing was done."
    return {"ref": ref, "dispute": None, "project": None, "question": "", "done": False, "words": words}


@transaction.atomic
def _keep(bulk: Bulk, results: list[dict[str, Any]], kind: str) -> None:
    """Store the results, and record one event for each project in which something was done."""
    if kind == "bulk":
        bulk.results = results
    else:
        bulk.undo_results, bulk.undone_at = results, estimated_time()
    bulk.save(update_fields=["results"] if kind == "bulk" else ["undo_results", "undone_at"])
    done: dict[int, list[str]] = {}
    for result in results:
        if result["done"]:
            done.setdefault(result["project"], []).append(result["ref"])
    label = VERBS[bulk.verb].label
    for project in Project.objects.filter(pk__in=done).order_by("pk"):
        refs = done[project.pk]
        record(
            project, kind, actor=Actor.person(bulk.user), note=f"{label}: {len(refs)} at once",
            data={"bulk": bulk.pk, "verb": bulk.verb, "items": refs},
        )  # fmt: skip


# --- Taking it back ---------------------------------------------------------------------------------------


def undo(bulk: Bulk, *, user: Any) -> list[dict[str, Any]]:
    """Take back as much of the bulk action as possible, each item by its own rules, newest first.

    Raises Refused: "no_right" unless the person did it or is a superuser, or "used" if it was taken back
    before or nothing can be taken back any more.
    """
    if user.pk != bulk.user_id and not user.is_superuser:
        raise Refused("no_right", "Only who did it takes it back.", "Reopen what is wrong.", status=403)
    if Bulk.objects.filter(pk=bulk.pk, undone_at__isnull=False).exists():
        raise Refused("used", "It was taken back already.", "Its page says what came of each item.")
    made = Decision.objects.filter(bulk=bulk).select_related(
        "conflict__dispute__task__project",
        "conflict__dispute__project",
        "conflict__finding",
        "conflict__raised_as",
    )
    rulings_made = {decision.pk: decision for decision in made}
    done = [result for result in reversed(bulk.results) if result["done"]]
    if not bulk.results:  # it was cut off halfway, but its rulings are in force
        done = [_result(each.conflict, "", decision=each.pk) for each in made.order_by("-pk")]
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
    except (Refused, IllegalMove, StaleTask) as error:
        return {**told, "done": False, "words": str(error)}


def _put_back(dispute: Dispute, result: dict[str, Any], bulk: Bulk, user: Any) -> dict[str, Any]:
    """Restore the previous assignee or end the snooze, unless somebody has changed it since."""
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
