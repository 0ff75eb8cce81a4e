"""Writing what a comparison of file and rows has planned, within the transaction that compared them."""

from collections import defaultdict

from django.db.models import Max

from tasks.dependencies import recount
from tasks.events import Actor
from tasks.hooks import retitled
from tasks.models import Dependency, Section, Task
from tasks.models.event import AT_ONCE, record, record_created
from tasks.models.task import RANK_STEP
from tasks.states import UNFINISHED
from tasks.todo import format
from tasks.todo.comparing import Comparison
from tasks.todo.outline import Place, preorder


def write(compared: Comparison, actor: Actor) -> None:
    """Store everything that differs, with an event for each changed task and one for what belongs to none."""
    _keep_preamble(compared, actor)
    _put_in_order(compared)
    _save_places(compared)
    _save_entries(compared, actor)
    _save_dependencies(compared)
    _record_the_rest(compared, actor)
    _recount(compared)


def _keep_preamble(compared: Comparison, actor: Actor) -> None:
    """Store the text above the first section; a file without one leaves the stored text as it is."""
    title, _, rest = compared.wanted.preamble.partition("\n")
    text = rest.strip("\n") if title.startswith("# ") else compared.wanted.preamble
    if text.strip() and text != format.as_section_text(compared.project.preamble):
        compared.project.preamble = text
        compared.project.save(update_fields=["preamble"])
        record(compared.project, "edited", actor=actor, note="The text above the first section.")


def _put_in_order(compared: Comparison) -> None:
    """Rank what the file lists in its order, and the rest of each section behind it.

    If that is the order already, the ranks stay as they are.
    """
    children: dict[Place | None, list[Place]] = defaultdict(list)
    listed = [place for place, _ in compared.places]
    for place in listed + [place for place in compared.known_places if not place.line]:
        children[place.parent].append(place)
    compared.outline.places = list(preorder(None, children))
    compared.outline.entries = [entry for entry, _ in compared.entries]
    compared.outline.entries += [entry for entry in compared.known_entries if not entry.line]
    by_place = compared.outline.entries_by_place()
    compared.outline.entries = [entry for place in compared.outline.places for entry in by_place[place]]

    if compared.outline.places != compared.known_places:
        for index, place in enumerate(compared.outline.places):
            place.row.rank = (index + 1) * RANK_STEP
        Section.objects.bulk_update([place.row for place in compared.known_places], ["rank"], batch_size=500)
    moved = any("section" in entry.changed for entry in compared.known_entries)
    if moved or compared.outline.entries != compared.known_entries:
        for index, entry in enumerate(compared.outline.entries):
            entry.row.rank = (index + 1) * RANK_STEP
        Task.objects.bulk_update([entry.row for entry in compared.known_entries], ["rank"], batch_size=500)


def _save_places(compared: Comparison) -> None:
    for place, _ in compared.places:
        if place.is_new:
            place.row.parent = place.parent.row if place.parent else None
            place.row.save()
        elif "body" in place.changed:
            place.row.save(update_fields=["body"])
    for place, _ in compared.places:
        if "after" in place.changed:
            place.row.depends_on.set([needed.row for needed in place.after])


def _save_entries(compared: Comparison, actor: Actor) -> None:
    number = Task.objects.filter(project=compared.project).aggregate(last=Max("number"))["last"] or 0
    new: list[Task] = []
    for entry, _ in compared.entries:
        row = entry.row
        row.section = entry.place.row
        if entry.is_new:
            number += 1
            row.number = number
            row.put_before_first_stage()
            new.append(row)
        elif entry.changed:
            row.save(update_fields=[name for name in entry.changed if name != "depends"])
            if "title" in entry.changed:
                retitled(row)
            was = [f"Before, its {name} was: {text}" for name, text in entry.replaced.items()]
            note = "\n".join([f"Changed in TODO.md: {', '.join(entry.changed)}.", *was])
            told = {"fields": entry.changed} | ({"replaced": entry.replaced} if was else {})
            record(compared.project, "edited", actor=actor, task=row, note=note, data=told)
    Task.objects.bulk_create(new, batch_size=AT_ONCE)
    record_created(compared.project, new, actor=actor)


def _save_dependencies(compared: Comparison) -> None:
    for entry, _ in compared.entries:
        if "depends" in entry.changed:
            wanted = {needed.row.pk for needed in entry.depends}
            links = Dependency.objects.filter(task=entry.row, on__project=compared.project)
            links.exclude(on__in=wanted).delete()
            missing = wanted - set(links.values_list("on", flat=True))
            Dependency.objects.bulk_create([Dependency(task=entry.row, on_id=pk) for pk in missing])


def _record_the_rest(compared: Comparison, actor: Actor) -> None:
    """Record one event for what belongs to no single task: changed sections, and a new order of tasks."""
    notes = [
        f"Section “{place.title}”: {', '.join(place.changed)}."
        for place in compared.known_places
        if place.changed
    ]
    if [entry for entry in compared.outline.entries if not entry.is_new] != compared.known_entries:
        notes.append("The tasks have a new order.")
    if notes:
        record(compared.project, "edited", actor=actor, note=" ".join(notes))


def _recount(compared: Comparison) -> None:
    """Recount every unfinished task that waits for something or did so; do nothing if nothing moved."""
    moves = {"section", "depends"}
    if not (
        any(place.is_new or "after" in place.changed for place, _ in compared.places)
        or any(entry.is_new or moves.intersection(entry.changed) for entry, _ in compared.entries)
    ):
        return
    waiting = {place for place in compared.outline.places if any(p.after for p in place.upwards())}
    recount(
        entry.row
        for entry in compared.outline.entries
        if entry.row.status in UNFINISHED and (entry.row.waits_for or entry.depends or entry.place in waiting)
    )
