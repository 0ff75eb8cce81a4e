"""Starting a run on this host: its clone, prompt, token and shim."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Expression, QuerySet, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from agents import judging
from agents.hosts import agent_command, api_server, landing, lfs, paths, processes, sandbox, submodules
from agents.hosts.git.mirror import Mirror
from agents.hosts.shims.nursery import NURSERY
from agents.hosts.submissions import bring_here, is_let_go
from agents.models import Agent, Prompt, Run, new_token, token_hash
from agents.prompts import compose
from agents.providers.registry import provider_for
from agents.recipes.recipe import Recipe
from agents.verification import commands, heads
from disputes import rulings
from disputes.models import Decision
from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared, PreparedInsert, PreparedUpdate
from tasks.models import Event, Landing, Project, StaleTask, Submission, Task
from tasks.models.task import locked_task

LAST_ACT = 0.5  # seconds from a shim's exit.json to its end; if it lives on, somebody else wrote that
SECONDS_MAX, CODE_MAX, WORD_MAX = 1e7, 255, 200  # of a step; the code of a signal is negative


class BaseNotFit(Exception):
    """The target branch has moved on to a commit that nobody has tried yet; the text says so."""


class CannotStart(Exception):
    """The run cannot be started as things are configured; the text says what to change."""


def base_of(run: Run, mirror: Mirror) -> str:
    """Return where a coder's clone starts: at the last submission, at saved work, or at the target's head.

    Saved work goes first if it is newer than the submission. The head is also taken if the commits were let
    go, because the task had been over for long before it was taken up again.
    """
    head = mirror.target(settings.DURATIONS["fresh"])
    task = run.task
    last: Submission | None = _last_commits.first(task.pk)
    saved = _saved(run) if _any_saved.rows(task.pk) else None
    if (
        saved
        and (last is None or (saved.ended_at and saved.ended_at > last.at))
        and mirror.has(saved.salvage_sha)
    ):
        return saved.salvage_sha
    if last is None or task.landed_sha or mirror.contains(head, last.sha):
        return head
    if task.landings.filter(status="conflict", submission=last).exists() or is_let_go(last, mirror):
        return head
    bring_here(last, mirror)
    return last.sha


def _standing_commits(task: Expression) -> QuerySet[Submission]:
    standing = Submission.objects.standing().fetched().filter(task=task).exclude(kind="document")
    return standing.newest_first()[:1]


def _with_saved_work(task: Expression) -> QuerySet[Run]:
    return Run.objects.filter(task=task).exclude(salvage_sha="").order_by().values_list("pk")[:1]


_last_commits, _any_saved = Prepared(_standing_commits), Prepared(_with_saved_work)


def _saved(run: Run) -> Run | None:
    """Return the last coder run of this stage with saved work, since the last rollback if there is one."""
    coders = Run.objects.filter(task=run.task, role=Run.Role.CODER, stage__in={"", run.stage})
    if back := run.task.rollbacks.order_by("-pk").first():
        coders = coders.filter(queued_at__gt=back.at)
    return coders.exclude(salvage_sha="").order_by("-pk").first()


def fetch_base(run: Run, mirror: Mirror) -> str:
    """Return the commit that the run begins at, once it is in this host's mirror.

    Raises Unreachable and GitError.
    """
    if run.role == Run.Role.CODER:
        return base_of(run, mirror)
    if not run.sha:  # an opinion on a task for which nothing has been handed in yet
        return mirror.target(settings.DURATIONS["fresh"])
    if mirror.has(run.sha):
        return run.sha
    mirror.fetch_target()
    if not mirror.has(run.sha):
        for submission in run.task.submissions.filter(sha=run.sha):
            bring_here(submission, mirror)
    if not mirror.has(run.sha):
        landing.bring_rebased(run, mirror)
    return run.sha


def check_base(run: Run, mirror: Mirror, base: str) -> None:
    """Raise BaseNotFit if a coder would begin on a head of the target branch that is not fit."""
    if run.role != Run.Role.CODER:
        return
    head = mirror.resolve(mirror.target_ref)
    fit = heads.note(run.project, mirror, head)
    if base == head and not fit and run.task.origin != Task.Origin.SETUP:
        raise BaseNotFit(f"{mirror.branch} is at {head[:12]} now, which is tried first.")


def check_out(mirror: Mirror, folder: Path, sha: str, branch: str = "") -> tuple[Path, ...]:
    """Make a clone with its submodules in the folder, and return the mirrors' objects that it borrows.

    A project may do without a submodule, and without the content of what Git LFS keeps: what is missing is
    named at the beginning of the log. Raises GitError and Interrupted.
    """
    clone, most = folder / "clone", paths.largest_checkout()
    mirror.check_size(sha, most)
    mirror.checkout(clone, sha, branch)
    there = submodules.check_out(mirror, clone, sha, closed=Path(settings.HOME), most=most)
    if said := "".join(f"{each}\n" for each in there.problems) + lfs.said_of(clone):
        processes.write_whole(folder / "output.log", said.encode())
    return (mirror.path / "objects", *there.borrowed)


def prepare(run: Run) -> None:
    """Make the run's folder with its clone, its commands, and what the agent is told.

    Raises Unreachable if the remote cannot be reached, GitError, BaseNotFit, ProviderError and CannotStart.
    """
    folder = paths.run_folder(run.pk)
    paths.make_anew(folder)
    mirror = paths.mirror(run.project)
    base = fetch_base(run, mirror)
    check_base(run, mirror, base)
    branch = f"steroids/{run.task.ref}" if run.role == Run.Role.CODER else ""
    run.base_sha = base
    with ThreadPoolExecutor(2) as beside:  # files are written while the prompt is
        checked_out = beside.submit(check_out, mirror, folder, base, branch)
        made = beside.submit(commands.own_environment, run.project, folder, run.role)
        known = commands.commands_of(run.project, mirror, base, run.task)
        written = None if run.role == Run.Role.VERIFIER else draft(run, mirror, known)
        borrowed, environment = checked_out.result(), made.result()
    if written is None:
        hashed = commands.commands_hash(known)
        Run.objects.filter(pk=run.pk).update(base_sha=base, commands_hash=hashed)
        steps = commands.verification_steps(known, folder, environment, commands.Limits.of(run.project))
        room = sandbox.Room(
            folder, run.project_id, run.role, borrowed, reach_of_builds(run.project, run.task)
        )
        write_job(folder, str(run.pk), steps, room, steps_decide=True)
        return
    _identify(folder / "clone", run)
    steps = _agent_steps(run, folder, known, environment, written)
    room = sandbox.Room(folder, run.project_id, run.role, borrowed, reach_of_agent(run.project, run.agent))
    write_job(folder, str(run.pk), steps, room)


def reach_of_builds(project: Project, task: Task | None = None) -> sandbox.Reach:
    """Return what prepare, build and tests may reach: the hosts that the project names.

    A setup task, which is to find the commands, cannot know their hosts yet, so it reaches any public host.
    """
    is_setup = task is not None and task.origin == Task.Origin.SETUP
    return sandbox.Reach(("*",) if is_setup else tuple(project.config.allowed_hosts.split()))


def reach_of_trial(project: Project) -> sandbox.Reach:
    """Return what a trial of the target branch may reach: the hosts that the project names.

    If it names none yet, that is everything public, so that the trial shows what it needs. Once work of an
    agent has landed there, that could as well choose what all later runs reach; a setup task chose already.
    """
    landed = project.landings.filter(status=Landing.Status.LANDED).exclude(task__origin=Task.Origin.SETUP)
    named = tuple(project.config.allowed_hosts.split())
    return sandbox.Reach(named or (() if landed.exists() else ("*",)))


def reach_of_agent(project: Project | None, agent: Agent | None) -> sandbox.Reach:
    """Return what an agent may reach: its model, the hosts in its settings, and those of the project."""
    hosts = tuple(project.config.allowed_hosts.split()) if project else ()
    if agent is None:
        return sandbox.Reach(hosts=hosts, api=True)
    named = provider_for(agent).hosts(agent.settings, agent.model)
    patterns = tuple(name for name in named if name.startswith("*"))  # they do not open private networks
    trusted = tuple(name for name in named if not name.startswith("*"))
    return sandbox.Reach((*hosts, *patterns), trusted, api=True)


def _identify(clone: Path, run: Run) -> None:
    """Make the clone's commits carry the agent's name."""
    config = clone / ".git" / "config"
    name = run.agent.name if run.agent else "agent"
    config.write_text(config.read_text() + f"[user]\n\tname = {name}\n\temail = {name}@steroids.invalid\n")


def _agent_steps(
    run: Run, folder: Path, known: Recipe, environment: dict[str, str], written: "Draft"
) -> list[dict[str, Any]]:
    if run.agent is None:
        raise CannotStart("The agent of this run was deleted.")
    step = agent_command.agent_step(
        run.agent, run.model or run.agent.model, folder, environment,
        STEROIDS_CONTEXT=str(folder / "context.json"), STEROIDS_RUN=str(run.pk),
        STEROIDS_RETRY_SECONDS=f"{settings.DURATIONS['lease']:.0f}",
    )  # fmt: skip
    _tell(run, folder, written)
    is_coder = run.role == Run.Role.CODER
    before = commands.environment_steps(known, folder, environment) if is_coder else []
    return [*before, step]


@dataclass(frozen=True, slots=True)
class Draft:
    """A run's prompt, and the rulings in it, as things stood after the task's event `since`."""

    material: compose.Material
    decisions: list[Decision]
    told: compose.Composed
    since: int | None


def draft(run: Run, mirror: Mirror, known: Recipe) -> Draft:
    """Write the run's prompt, which takes a while, before anything is locked."""
    return _draft(run, compose.gather(run, mirror, known))


def _draft(run: Run, material: compose.Material) -> Draft:
    since = _newest_event(run.task)
    is_asked = run.role in Run.OPINION_ROLES  # a run that does not carry out a ruling has not used it
    decisions = [] if is_asked else rulings.rulings_for_prompt(run.task)
    return Draft(material, decisions, compose.compose(run, material, decisions), since)


def _events(task: Expression) -> QuerySet[Event]:
    """Return the task's last event that a prompt may tell of.

    The end of a run that handed in is none: what it handed in is told, and its process often ends only now.
    """
    events = Event.objects.filter(task=task).alias(outcome=Cast(KT("data__outcome"), TextField()))
    told = events.exclude(kind="run_ended", outcome=Run.Outcome.HANDED_IN)
    return told.order_by("-pk").values_list("pk")[:1]


_last_event = Prepared(_events)


def _newest_event(task: Task) -> int | None:
    """Return the key of the last event of the task; None if there is none."""
    return next((pk for (pk,) in _last_event.rows(task.pk)), None)


def tell(run: Run, written: Draft, **changes: Any) -> str:
    """Keep the prompt, mark its rulings as used and change the run, all in one transaction.

    Return the prompt's text. If something has happened to the task since the prompt was written, it is
    written again. From this commit on a ruling cannot be undone, because an agent will read it. Raises
    StaleTask if the run may not begin any more.
    """
    with transaction.atomic():
        task = locked_task(run.task_id)
        if run.task.is_session or _newest_event(task) != written.since:  # a session hears of other tasks too
            written = _draft(run, written.material)
        told, text = written.told, written.told.text
        rulings.mark_used(written.decisions, run.pk)
        if not _prompts.write(run.pk, text=text):  # this run was begun before
            _new_prompts.insert(Prompt(run=run, text=text))
        changes |= {
            "prompt_hash": sha256(text.encode()).hexdigest(), "prompt_text": told.own,
            "template_hash": told.template_hash, "example": told.example,
        }  # fmt: skip
        changed = _telling(*changes).write(run.pk, run.fence, **changes)
        run.task.version = task.version
        if not changed or judging.is_overtaken(run):
            raise StaleTask(run.task)
    return text


def _beginning(pk: Expression, fence: Expression) -> QuerySet[Run]:
    """Return the run if it has not begun and no newer holder has it."""
    return Run.objects.filter(pk=pk, fence=fence, status=Run.Status.STARTING)


@cache  # what is written differs only between the agents of hosts and those elsewhere
def _telling(*columns: str) -> PreparedUpdate:
    return PreparedUpdate(_beginning, *columns)


_begun = PreparedUpdate(_beginning, "started_at", status=Run.Status.RUNNING)
_prompts = PreparedUpdate(lambda run: Prompt.objects.filter(run=run), "text")
_new_prompts = PreparedInsert(Prompt)


def _tell(run: Run, folder: Path, written: Draft) -> None:
    """Write what the agent on this host reads: its prompt, and the token with which it hands in."""
    token = new_token()
    text = tell(
        run, written,
        base_sha=run.base_sha, token_hash=token_hash(token), spent_hash=token_hash(token),
    )  # fmt: skip
    agent_command.write_private(folder / "prompt.md", text)
    url = api_server.address()
    if sandbox.is_on():
        sandbox.write_address(folder, url)
        url = sandbox.address()
    context = {
        "url": url, "token": token, "task": run.task.ref, "role": run.role, "run": run.pk,
        "base": run.base_sha,
    }  # fmt: skip
    processes.write_json(folder / "context.json", context)


def write_job(
    folder: Path, mark: str, steps: list[dict[str, Any]], room: sandbox.Room, *, steps_decide: bool = False
) -> None:
    """Write down what the shim is to run, and its limits.

    With `steps_decide` the limit of each step is the only clock.
    """
    for one in steps:
        one["env"] = one["env"] | {"STEROIDS_RUN": mark}
    limits = {name: settings.DURATIONS[name] for name in ("silence", "wall", "orphan", "grace")}
    if steps_decide and steps:
        longest = 2 * sum(one["timeout"] for one in steps)
        limits |= {"silence": max(longest, limits["silence"]), "wall": max(longest, limits["wall"])}
    job = {
        "run": mark, "steps": steps, "limits": limits | most(), "bell": str(paths.bell_socket()),
    }  # fmt: skip
    if steps and sandbox.is_on():
        job |= room.enclose(steps)
    processes.write_json(folder / "job.json", job)


def most() -> dict[str, int]:
    """Return how much any run may take of the host."""
    return {
        "bytes": settings.OUTPUT_MAX_BYTES, "processes": settings.RUN_PROCESSES_MAX,
        "memory": settings.RUN_MEMORY_MAX_BYTES, "disk": settings.RUN_DISK_MAX_BYTES,
        "files": settings.RUN_FILES_MAX,
    }  # fmt: skip


def start(run: Run) -> None:
    """Prepare the run and hand it to a shim of its own. Raises what `prepare` raises, and OSError."""
    prepare(run)
    folder = paths.run_folder(run.pk)
    renew_lease(folder)
    NURSERY.start_shim(folder)
    _begun.write(run.pk, run.fence, started_at=estimated_time())


def renew_lease(folder: Path) -> None:
    """Tell the shim in this folder that somebody is still looking after it.

    It is the time, which the shim reads before anything else; its own clock decides.
    """
    with contextlib.suppress(FileNotFoundError):  # the folder is gone
        processes.write_whole(folder / "lease", f"{processes.boottime():.3f}".encode())


class Hold(NamedTuple):
    """Who holds a run or a trial, read from its folder."""

    shim: processes.Identity | None  # None if it has not written that down
    is_held: bool  # the shim lives
    left: dict[str, Any] | None  # its last word, once it has ended


def hold_of(folder: Path) -> Hold:
    """Say who holds a run. The shim is looked at first, because it writes its last word before it ends."""
    shim = processes.read_identity(folder / "pid")
    is_held = shim is not None and processes.is_alive(shim)
    left = exit_of(folder)
    if shim and is_held and left is not None:
        is_held = not processes.is_gone_within(shim, LAST_ACT)
        left = exit_of(folder)  # the shim's own, in case an earlier one was forged
    return Hold(shim, is_held, None if is_held else left)


def exit_of(folder: Path) -> dict[str, Any] | None:
    """Return what the shim wrote as its last act; None if it has not, or if it is damaged."""
    try:
        data = processes.read_json(folder / "exit.json")
    except (OSError, ValueError):
        return None
    return data if _is_exit(data) else None


def _is_exit(data: Any) -> bool:
    """Whether this has the form that a shim writes; the run's own agent can write there too."""
    if not isinstance(data, dict) or not _is_word(data.get("reason")):
        return False
    steps = data.get("steps")
    return isinstance(steps, list) and all(_is_ended_step(step) for step in steps)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= WORD_MAX and (not value or value.isprintable())


def _is_ended_step(step: Any) -> bool:
    if not isinstance(step, dict) or not _is_word(step.get("name")):
        return False
    code, seconds = step.get("code"), step.get("seconds")
    is_number = isinstance(seconds, int | float) and 0 <= seconds <= SECONDS_MAX
    return is_number and (code is None or (isinstance(code, int) and abs(code) <= CODE_MAX))
