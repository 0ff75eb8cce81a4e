"""Sealing the record: once an hour, each project's complete events are hashed into a chain.

Events are not sealed as they are written: that would lock the project after one of its tasks, against the
order of locks, and hand-ins of one project would wait for each other. Until an event is sealed, only the
database's triggers protect it. The heads of the chain are also written to a file, so that its end cannot be
cut off unseen.
"""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max

from tasks.database.clock import estimated_time
from tasks.models import Event, Project, Seal
from tasks.text.counting import counted

SETTLED = timedelta(hours=1)  # no transaction stays open this long, so no event is added among older ones
COLUMNS = (
    "pk", "task", "kind", "from_status", "to_status", "actor_kind", "user", "run_number", "label", "note",
    "data", "at",
)  # fmt: skip


def seal_all() -> str:
    """Seal the complete events of every project, as a background job; return a line that says how many."""
    made = [seal for project in Project.objects.order_by("pk") if (seal := _seal(project))]
    return f"sealed {counted(sum(seal.count for seal in made), 'event')} of {counted(len(made), 'project')}"


def _seal(project: Project) -> Seal | None:
    """Make one more seal for the project; return None if nothing is new or another process was faster."""
    last = Seal.objects.filter(project=project).order_by("-number").first()
    after = last.upto if last else 0
    complete = Event.objects.filter(project=project, pk__gt=after, at__lt=estimated_time() - SETTLED)
    upto = complete.aggregate(last=Max("pk"))["last"]
    if upto is None:
        return None
    chain, count = _chained(last.chain if last else "", project.pk, after, upto)
    number = last.number + 1 if last else 1
    try:
        with transaction.atomic():
            seal = Seal.objects.create(project=project, number=number, upto=upto, count=count, chain=chain)
    except IntegrityError:
        return None
    _anchor(seal)
    return seal


def _chained(before: str, project: int, after: int, upto: int) -> tuple[str, int]:
    """Return the hash of these events, in order, and of the seal before them, and the number of events."""
    hashed, count = hashlib.sha256(f"{project} {before}\n".encode()), 0
    events = Event.objects.filter(project=project, pk__gt=after, pk__lte=upto).order_by("pk")
    for values in events.values_list(*COLUMNS).iterator(chunk_size=2000):
        hashed.update(json.dumps(values, sort_keys=True, default=_plain).encode() + b"\n")
        count += 1
    return hashed.hexdigest(), count


def _plain(value: object) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)


def anchor_file() -> Path:
    """Return the file outside the database that holds one line for each seal made on this host."""
    return Path(settings.HOME) / "seals.jsonl"


def _anchor(seal: Seal) -> None:
    line = {"project": seal.project_id, "number": seal.number, "upto": seal.upto, "chain": seal.chain}
    with anchor_file().open("a") as file:
        file.write(json.dumps(line) + "\n")


def broken() -> Iterator[str]:
    """Yield a sentence for each mismatch between the seals, the events and this host's file of seals."""
    whole: dict[int, dict[int, str]] = {}  # for each intact project, its seals by number
    for project in Project.objects.order_by("pk"):
        seals = list(Seal.objects.filter(project=project).order_by("number"))
        if why := _misfit(project, seals):
            yield why
        else:
            whole[project.pk] = {seal.number: seal.chain for seal in seals}
    yield from _unanchored(whole)


def _misfit(project: Project, seals: list[Seal]) -> str:
    """Return a sentence about the first seal that does not match the project's events; empty if all do."""
    chain, upto = "", 0
    for number, seal in enumerate(seals, start=1):
        since = f"between {upto} and {seal.upto} of {project.slug}"
        if seal.number != number:
            return f"Seal {number} of {project.slug} is missing."
        found, count = _chained(chain, project.pk, upto, seal.upto)
        if count != seal.count:
            return f"Of {counted(seal.count, 'event')} sealed {since}, {count} are there."
        if found != seal.chain:
            return f"An event {since} was changed after it was sealed."
        chain, upto = seal.chain, seal.upto
    return ""


def _unanchored(whole: dict[int, dict[int, str]]) -> Iterator[str]:
    """Yield a sentence for each project with a seal that differs from this host's file of seals."""
    if not anchor_file().exists():
        return
    for line in anchor_file().read_text().splitlines():
        try:
            told = json.loads(line)
            known, number, chain = whole.get(told["project"]), told["number"], told["chain"]
        except (ValueError, KeyError, TypeError):  # the last line of a full disk
            continue
        if known is not None and known.get(number) != chain:
            yield f"Seal {number} of project {told['project']} is not the one that was made."
            whole.pop(told["project"])
