"""Checks of runs, their tokens and processes, and of work that waits for somebody to do it."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import CharField, Count, Max, Q, TextField

from agents.doctor.checks import Finding
from agents.doctor.record import ASK
from agents.hosts import landing as landings
from agents.hosts import processes
from agents.loop import candidates
from agents.models import Host, Output, Prompt, Run, Token, Trial, token_hash
from disputes.models import Conflict, Delivery
from tasks.database.clock import estimated_time
from tasks.models import Comment, Event, Landing, Notice, Project, Review, Submission, Task
from tasks.text.counting import counted
from tasks.text.regex import regex

YOUNG = 15.0  # seconds that a process may take to follow the end of its run
TOKEN = regex(rb"stx_[A-Za-z0-9_-]{43}")
TOKENS_READ = 5000  # rows to read of one column that may contain tokens
START = "Start `manage.py run_orchestrator`, or look into its log for what fails each turn."
REPAIR = "Run `manage.py doctor --repair`."


# --- Runs -------------------------------------------------------------------------------------------------


def seats() -> Iterator[Finding]:
    """Check that each task has at most one live run in each seat."""
    live = Run.objects.filter(status__in=Run.SEATED).order_by().values("task", "seat")
    for row in live.annotate(n=Count("pk")).filter(n__gt=1):
        task = Task.objects.select_related("project").get(pk=row["task"])
        yield Finding(
            f"{row['n']} runs hold the seat {row['seat']} of {task.ref}.",
            "Stop all but one of them on the page of each run.",
        )


def late_writes() -> Iterator[Finding]:
    """Check that nothing was taken from a run after its end."""
    ended = {
        data.get("run"): pk for pk, data in Event.objects.filter(kind="run_ended").values_list("pk", "data")
    }
    wrote = Event.objects.filter(actor_kind=Event.ActorKind.RUN).exclude(run_number=None)
    for pk, kind, number in wrote.values_list("pk", "kind", "run_number").iterator():
        if number in ended and pk > ended[number]:
            yield Finding(f"Run {number} wrote the event {pk}, {kind}, after it had ended.", ASK)


# --- Tokens -----------------------------------------------------------------------------------------------

# The columns that hold text of agents, people and the program.
TEXTS: list[tuple[Any, ...]] = [
    (Output, "text"), (Prompt, "text"), (Event, "note", "data"), (Run, "reason", "refusal"),
    (Submission, "response", "problem"), (Review, "text"), (Comment, "body"), (Task, "title", "body"),
    (Conflict, "question", "coder_position", "reviewer_position"), (Trial, "tail"),
]  # fmt: skip


def tokens() -> Iterator[Finding]:
    """Check that a token works only while its run is live, and is nowhere to be found in clear."""
    for run in _with_dead_token():
        yield Finding(f"Run {run.pk} is {run.status}, and its token still works.", REPAIR)
    for model, *columns in TEXTS:
        for column in columns:
            yield from _in_clear(model, column)
    for file in sorted((Path(settings.HOME) / "log").glob("*.log")):
        if any(_is_known(found) for found in _tokens_in_file(file)):
            yield Finding(f"A token stands in {file}.", "Delete that token in the admin, and empty the file.")


def _with_dead_token() -> Any:
    over = [Run.Status.CLOSING, Run.Status.ENDED]
    return Run.objects.filter(status__in=over, token_hash__isnull=False)


def end_tokens() -> Iterator[str]:
    """Revoke the tokens that outlived their runs."""
    for run in _with_dead_token():
        Run.objects.filter(pk=run.pk).update(token_hash=None)
        yield f"The token of run {run.pk} is revoked."


def _in_clear(model: Any, column: str) -> Iterator[Finding]:
    field = model._meta.get_field(column)
    is_text = isinstance(field, CharField | TextField)
    rows = model.objects.filter(**{f"{column}__{'contains' if is_text else 'icontains'}": "stx_"}).order_by(
        "-pk"
    )
    for pk, text in rows.values_list("pk", column)[:TOKENS_READ]:
        if any(_is_known(found) for found in TOKEN.findall(str(text).encode())):
            yield Finding(
                f"A token stands in clear in the {column} of the {model._meta.verbose_name} {pk}.",
                "Delete that token in the admin; whoever may read this row could use it until then.",
            )


def _is_known(token: bytes) -> bool:
    """Whether this is a token of ours, valid or not; agents print much that only looks like one."""
    hashed = token_hash(token.decode())
    of_run = Run.objects.filter(Q(token_hash=hashed) | Q(spent_hash=hashed))
    return of_run.exists() or Token.objects.filter(hash=hashed).exists()


def _tokens_in_file(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as lines:
            for line in lines:
                yield from TOKEN.findall(line)
    except OSError:
        return


# --- Processes --------------------------------------------------------------------------------------------


def strays() -> Iterator[Finding]:
    """Check that no process of a run outlives it on this host."""
    for number, who in _strays():
        yield Finding(f"Process {who.pid} of run {number} lives, and the run has ended.", REPAIR)


def end_strays() -> Iterator[str]:
    """End the processes that outlived their runs."""
    found = [who for _, who in _strays()]
    processes.end_all(found, settings.DURATIONS["grace"])
    yield from (f"Process {who.pid} is ended." for who in found if not processes.is_alive(who))


def _strays() -> list[tuple[int, processes.Identity]]:
    tagged = [
        (number, who)
        for number, who in processes.of_runs(Path(settings.HOME) / "runs")
        if processes.age_of(who) > YOUNG
    ]
    over = estimated_time() - timedelta(seconds=YOUNG)
    known = Run.objects.filter(pk__in=[number for number, _ in tagged])
    spared = set(known.exclude(status=Run.Status.ENDED, ended_at__lt=over).values_list("pk", flat=True))
    return [(number, who) for number, who in tagged if number not in spared]


# --- What waits -------------------------------------------------------------------------------------------


def stuck() -> Iterator[Finding]:
    """Check that whatever is due is done soon, or that somebody can see why not."""
    limit = estimated_time() - timedelta(seconds=settings.DURATIONS["stuck"])
    last = Host.objects.aggregate(last=Max("seen_at"))["last"]
    if last is None or Event.objects.filter(kind="restored", at__gt=last).exists():
        return  # it was not started yet
    found = [*_stuck_runs(limit), *_stuck_work(limit), *_stuck_messages(limit)]
    if last >= limit:
        yield from found
    elif found:
        since = f"{last:%Y-%m-%d %H:%M} UTC"
        yield Finding(f"Work is due, and no host has reported since {since}. {found[0].says}", START)


def _stuck_messages(limit: datetime) -> Iterator[Finding]:
    late = Notice.objects.filter(event__at__lt=limit).count()
    late += Delivery.objects.filter(sent_at=None, failed_at=None, due_at__lt=limit).count()
    if late:
        yield Finding(
            f"Messages to people that are due and were not sent: {late}.",
            "Look whether the cluster runs (`manage.py status`), and at Notifications, Deliveries.",
        )


def _stuck_runs(limit: datetime) -> Iterator[Finding]:
    for run in Run.objects.on_host().filter(lease_until__lt=limit).select_related("host"):
        yield Finding(f"Run {run.pk} is {run.status}, and nobody renews its lease or ends it.", START)
    for trial in Trial.objects.filter(status=Trial.Status.RUNNING, lease_until__lt=limit):
        yield Finding(f"Trial {trial.pk} runs by its row, and no host holds it.", START)
    queued = Run.objects.filter(status=Run.Status.QUEUED, is_pulled=False, queued_at__lt=limit)
    waiting = queued.filter(project__status=Project.Status.ACTIVE)
    first = waiting.order_by("queued_at").first()
    if first and (free := _free_host()) is not None:
        said = f"though {free} has a free slot" if free else "and no host takes any"
        runs = counted(waiting.count(), "run")
        yield Finding(f"Waiting: {runs}, run {first.pk} for longest, {said}.", START)


def _free_host() -> str | None:
    """Return a host with a free slot; an empty string if no host takes runs, None if all are full."""
    hosts = [host for host in Host.objects.alive() if host.takes_work]
    held = Counter(Run.objects.on_host().values_list("host", flat=True))
    free = [host.name for host in hosts if held[host.pk] < host.slots]
    return free[0] if free else None if hosts else ""


def _stuck_work(limit: datetime) -> Iterator[Finding]:
    active = Q(task__project__status=Project.Status.ACTIVE)
    received = Submission.objects.standing().filter(active, state=Submission.State.RECEIVED, at__lt=limit)
    for submission in received.select_related("task__project"):
        yield Finding(f"Nobody has fetched {submission.sha[:12]} of {submission.task.ref}.", START)
    due = Landing.objects.filter(pk__in=[landing.pk for landing in landings.due()])
    for landing in due.select_related("task__project").order_by("at", "pk"):
        times = (landing.at, landing.not_before, landing.claimed_until, landing.checked_at)
        if max(moment for moment in times if moment) < limit:
            yield Finding(f"The landing of {landing.sha[:12]} of {landing.task.ref} is due.", START)
    rests = Q(project__trouble_until__gt=limit) | Q(status_at__gt=limit)
    left = candidates.to_land(limit).filter(project__status=Project.Status.ACTIVE).exclude(rests)
    for task in left.select_related("project"):
        yield Finding(f"The approved commit of {task.ref} is on nobody's list of landings.", START)
