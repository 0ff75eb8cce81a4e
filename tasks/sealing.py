"""Sealing the record: each hour the events that are complete are hashed into a chain, project by project.

Not when an event is written: that would take the project's lock under a task's, against the order of locks,
and hand-ins of one project would wait for each other. Until it is sealed an event is held by the database's
triggers alone. Heads of the chain also go into a file, so that the end of it cannot be cut off unseen.
"""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from tasks.models import Event, Project, Seal
from tasks.text.counting import counted

SETTLED = timedelta(hours=1)  # no transaction that may still add an event before these takes so long
COLUMNS = (
    "pk", "task", "kind", "from_status", "to_status", "actor_kind", "user", "run_number", "label", "note",
    "data", "at",
)  # fmt: skip


def seal_all() -> str:
    """The job: seal what is complete of every project."""
    made = [seal for project in Project.objects.order_by("pk") if (seal := _seal(project))]
    return f"sealed {counted(sum(seal.count for seal in made), 'event')} of {counted(len(made), 'project')}"


def _seal(project: Project) -> Seal | None:
    """One more seal; None where nothing is new, or another process was faster."""
    last = Seal.objects.filter(project=project).order_by("-number").first()
    after = last.upto if last else 0
    complete = Event.objects.filter(project=project, pk__gt=after, at__lt=timezone.now() - SETTLED)
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
    """The hash of these events in their order and of the seal before, and how many they are."""
    hashed, count = hashlib.sha256(f"{project} {before}\n".encode()), 0
    events = Event.objects.filter(project=project, pk__gt=after, pk__lte=upto).order_by("pk")
    for values in events.values_list(*COLUMNS).iterator(chunk_size=2000):
        hashed.update(json.dumps(values, sort_keys=True, default=_plain).encode() + b"\n")
        count += 1
    return hashed.hexdigest(), count


def _plain(value: object) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)


def anchor_file() -> Path:
    """Seals that were made on this host, a line each, apart from the database."""
    return Path(settings.HOME) / "seals.jsonl"


def _anchor(seal: Seal) -> None:
    line = {"project": seal.project_id, "number": seal.number, "upto": seal.upto, "chain": seal.chain}
    with anchor_file().open("a") as file:
        file.write(json.dumps(line) + "\n")


def broken() -> Iterator[str]:
    """What does not fit together any more, in sentences."""
    whole: dict[int, dict[int, str]] = {}  # of each project its seals by number, where they fit
    for project in Project.objects.order_by("pk"):
        seals = list(Seal.objects.filter(project=project).order_by("number"))
        if why := _misfit(project, seals):
            yield why
        else:
            whole[project.pk] = {seal.number: seal.chain for seal in seals}
    yield from _unanchored(whole)


def _misfit(project: Project, seals: list[Seal]) -> str:
    """The first place where events and seals of the project do not fit; empty where they do."""
    chain, upto = "", 0
    for number, seal in enumerate(seals, start=1):
        since = f"between {upto} and {seal.upto} of {project.slug}"
        if seal.number != number:
            return f"Seal {number} of {project.slug} is missing."
        found, count = _chained(chain, project.pk, upto, seal.upto)
        if count != seal.count:
            return f"{seal.count} events {since} were sealed, and {count} are there."
        if found != seal.chain:
            return f"An event {since} was changed after it was sealed."
        chain, upto = seal.chain, seal.upto
    return ""


def _unanchored(whole: dict[int, dict[int, str]]) -> Iterator[str]:
    """Seals that this host remembers, and the database does not."""
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
