"""Tries a project's target branch before anybody works on it: which commands are green, or what is red.

A host looks at the branch, queues the recipes that may fit as trials, runs them one after the other like any
verification, and keeps the first that is green. If none is, it keeps the best, with a card that says what is
red. On each host, only the process that holds the host's lock does this.
"""

import contextlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, Expression, F, Q, QuerySet
from django.db.models.functions import Now

from agents.hosts import masking, paths, processes, rewrites, sandbox, starting
from agents.hosts.git import remotes
from agents.hosts.git.commands import GitError
from agents.hosts.git.mirror import Mirror
from agents.hosts.git.remotes import HostTrouble, Interrupted, Unreachable
from agents.hosts.shims.nursery import NURSERY
from agents.models import Host, Trial
from agents.recipes import beside, own_file, toolchains
from agents.recipes.candidates import candidates
from agents.recipes.recipe import Recipe
from agents.recipes.tree import Tree
from agents.verification import caches, commands, conclusions, verdicts
from agents.verification.unreachable import trouble
from agents.verification.verdicts import Verdict
from disputes import alerts
from tasks import base
from tasks.database.clock import database_time, estimated_time
from tasks.database.locking import locked
from tasks.database.prepared import Prepared
from tasks.models import Project, Verification
from tasks.text.counting import counted

Base = Project.Base
UNFIT = (Base.RED, Base.BROKEN)
AT_ONCE = 2  # trials on one host
ATTEMPTS_MAX = 3  # for a trial whose host or shim died
SHOWN_WHILE_RUNNING = 4000  # bytes of output
PATHS_MAX = 20_000
BEGINNINGS = {commands.PREPARE: 1, commands.BUILD: 2}  # commands that were run when this step ended a trial
Do = Callable[[str, Callable[[], None]], None]


def is_under_way(until: datetime | None = None, *, host: Host | None = None) -> bool:
    """Whether a trial is queued or running, or a project's first is due by `until` (None means now).

    With `host`, only what runs there or may begin there counts.
    """
    due = Q(trouble_until__isnull=True) | Q(trouble_until__lte=until or Now())
    waiting = Project.objects.filter(
        due, status=Project.Status.ACTIVE, base_state__in=[Base.UNKNOWN, Base.TRYING]
    )
    live = Trial.objects.filter(status__in=Trial.LIVE)
    if host is None:
        return live.exists() or waiting.exists()
    if live.filter(host=host).exists():
        return True
    return host.takes_work and (live.filter(status=Trial.Status.QUEUED).exists() or waiting.exists())


def advance(host: Host, do: Do, *, only: int | None = None) -> None:
    """Make one pass: look at unknown branches, begin what is queued, read what has ended.

    `do` carries out slow work under a key, so that it is not begun twice. `only` is the key of the one
    project to look at.
    """
    projects = Project.objects.filter(status=Project.Status.ACTIVE)
    projects = projects.filter(pk=only) if only else projects
    if any(map(any, _left_alone.rows(host.pk, _long_ago()))):
        _take_over_lost(host)
    is_unknown, is_mine, is_queued, is_unfit = next(iter(_to_do.rows(host.pk)), (False,) * 4)
    if is_unknown and host.takes_work:
        _look_at_unknown(host, projects, do)
    mine = Trial.objects.filter(status=Trial.Status.RUNNING, host=host).select_related("project")
    for trial in mine if is_mine else ():
        _look_after(trial, do)
    if not host.takes_work:
        return
    if is_queued or is_unknown or is_mine:  # the latter may just have queued something
        _claim(host, projects, do)
    if is_unfit or is_mine:
        _poll(host, projects, do)
    if only is None:
        _poll_fit(do)


def _is_left_alone(host: Expression, long_ago: Expression) -> QuerySet[Host]:
    return Host.objects.filter(pk=host).values_list(Exists(_lost(host)), Exists(_stuck(long_ago)))


def _is_to_do(host: Expression) -> QuerySet[Host]:
    projects = Project.objects.filter(status=Project.Status.ACTIVE)
    return Host.objects.filter(pk=host).values_list(
        Exists(projects.filter(base_state=Base.UNKNOWN)),
        Exists(Trial.objects.filter(status=Trial.Status.RUNNING, host=host)),
        Exists(Trial.objects.filter(status=Trial.Status.QUEUED)),
        Exists(projects.filter(base_state__in=UNFIT)),
    )


def _are_fit() -> QuerySet[Project, Any]:
    fit = Project.objects.filter(status=Project.Status.ACTIVE, base_state__in=Project.FIT)
    return fit.exclude(trouble_until__gt=Now()).values_list("pk")


def _lost(host: Any) -> QuerySet[Trial]:
    """Return the trials of other hosts that are gone; a host knows its own trials by their processes."""
    return Trial.objects.filter(status=Trial.Status.RUNNING, lease_until__lt=Now()).exclude(host=host)


def _stuck(long_ago: Any) -> QuerySet[Project]:
    """Return the projects whose first look was cut short."""
    begun = Project.objects.filter(base_state=Base.TRYING, base_at__lt=long_ago)
    return begun.exclude(trials__status__in=Trial.LIVE)


def _long_ago() -> datetime:
    return estimated_time() - timedelta(seconds=2 * settings.DURATIONS["git_network"])


_left_alone, _to_do, _fit = Prepared(_is_left_alone), Prepared(_is_to_do), Prepared(_are_fit)


def beat(host: Host) -> None:
    """Renew the leases of the trials on this host, as is done for its runs."""
    mine = Trial.objects.filter(status=Trial.Status.RUNNING, host=host)
    mine.update(lease_until=Now() + timedelta(seconds=settings.DURATIONS["lease"]))
    for pk in mine.values_list("pk", flat=True):
        starting.renew_lease(folder_of(pk))


def folder_of(pk: int) -> Path:
    return Path(settings.HOME) / "trials" / str(pk)


# --- Looking at the branch --------------------------------------------------------------------------------


def _look_at_unknown(host: Host, projects: QuerySet[Project], do: Do) -> None:
    for project in projects.filter(base_state=Base.UNKNOWN):
        is_due = not project.trouble_until or project.trouble_until < database_time()
        if is_due and host.may_run(project):
            do(f"base-{project.pk}", lambda project=project: _begin(project))


class CommitTree:
    """One commit of a mirror, as the readers of recipes see it."""

    def __init__(self, mirror: Mirror, sha: str) -> None:
        self._mirror, self._sha = mirror, sha
        self.names: Sequence[str] = mirror.tree(sha, PATHS_MAX)
        self._known = set(self.names)

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None if there is none."""
        if path not in self._known:
            return None
        return self._mirror.read(self._sha, path, commands.COMMAND_FILE_LIMIT)


def _begin(project: Project) -> None:
    """Fetch the branch and queue what is to be tried on it."""
    claimed = Project.objects.filter(pk=project.pk, base_state=Base.UNKNOWN).update(
        base_state=Base.TRYING, base_at=estimated_time()
    )
    if not claimed:
        return
    try:
        if not project.target_branch:
            project.target_branch = remotes.default_branch(project.repo_url, paths.network())
            Project.objects.filter(pk=project.pk, target_branch="").update(
                target_branch=project.target_branch
            )
        mirror = paths.mirror(project)
        sha = mirror.fetch_target()
        recipes, why = _recipes(project, mirror, sha)
    except GitError as error:
        Project.objects.filter(pk=project.pk, base_state=Base.TRYING).update(base_state=Base.UNKNOWN)
        if isinstance(error, Interrupted):
            return
        reached = error.blame if isinstance(error, Unreachable) else "cannot be used"
        trouble(project, f"{project.address} {reached}: {error}")
        return
    except BaseException:
        Project.objects.filter(pk=project.pk, base_state=Base.TRYING).update(base_state=Base.UNKNOWN)
        raise
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(
            base_sha=sha, trouble="", trouble_until=None, trouble_count=0
        )
        Trial.objects.filter(project=project, status=Trial.Status.QUEUED).delete()
        for ordinal, recipe in enumerate(recipes, 1):
            _queue(project, sha, recipe, why, ordinal)
    if recipes:
        conclusions.decide(project.pk)
    else:
        base.set_base(project, Base.NOTHING, sha=sha, base_red={}, base_known={})
        alerts.withdraw_base_card(project)


def _recipes(project: Project, mirror: Mirror, sha: str) -> tuple[list[Recipe], str]:
    """Return the recipes to try, and why: the project's own commands, or those that may fit if it has none.

    There is nothing to try if the project has no commands and does not want them detected.
    """
    own = commands.commands_of(project, mirror, sha)
    if any(own.commands):
        return [own], Trial.Why.CONFIGURED
    if not project.config.detect_commands:
        return [], Trial.Why.CONFIGURED
    tree = CommitTree(mirror, sha)
    named = own_file.read(tree.read(own_file.NAME))
    return [*([named] if named else []), *candidates(tree)], Trial.Why.SEARCH


def _queue(project: Project, sha: str, recipe: Recipe, why: str, ordinal: int) -> None:
    """Queue a trial; it ends at once if this host lacks what it needs."""
    lacks = toolchains.missing(recipe.tools)
    ended = {}
    if lacks:
        problem = " ".join(f"{each.tool} is not on this host. What brings it: {each.hint}." for each in lacks)
        ended = {
            "status": Trial.Status.ENDED, "outcome": Trial.Outcome.BROKEN, "step": conclusions.TOOLCHAIN,
            "problem": problem[: verdicts.PROBLEM_MAX], "ended_at": estimated_time(),
        }  # fmt: skip
    Trial.objects.create(
        project=project, why=why, sha=sha, ordinal=ordinal, source=recipe.source[:300],
        prepare=recipe.prepare, build=recipe.build, test=recipe.test, **ended,
    )  # fmt: skip


# --- Running ----------------------------------------------------------------------------------------------


def _claim(host: Host, projects: Any, do: Do) -> None:
    """Begin queued trials in their order, one at a time for each project."""
    running = Trial.objects.filter(status=Trial.Status.RUNNING, host=host).count()
    busy = Trial.objects.filter(status=Trial.Status.RUNNING).values("project")
    queued = Trial.objects.filter(status=Trial.Status.QUEUED, project__in=projects).exclude(project__in=busy)
    seen: set[int] = set()
    for trial in queued.order_by("pk").select_related("project")[:50]:
        if running >= AT_ONCE:
            return
        if trial.project_id in seen or not host.may_run(trial.project):
            continue
        seen.add(trial.project_id)
        if _take(trial, host):
            running += 1
            do(f"trial-{trial.pk}", lambda trial=trial: _start(trial))


def _take(trial: Trial, host: Host) -> bool:
    lease = Now() + timedelta(seconds=settings.DURATIONS["lease"])
    try:
        with transaction.atomic():
            won = Trial.objects.filter(pk=trial.pk, status=Trial.Status.QUEUED).update(
                status=Trial.Status.RUNNING, host=host, lease_until=lease, started_at=estimated_time(),
                attempts=F("attempts") + 1,
            )  # fmt: skip
    except IntegrityError:  # another host already tries this project
        return False
    return bool(won)


def _start(trial: Trial) -> None:
    """Make a clean checkout, and start a shim that runs the steps."""
    folder = folder_of(trial.pk)
    paths.make_anew(folder)
    try:
        mirror = paths.mirror(trial.project)
        with mirror.mended():
            if not mirror.has(trial.sha):
                mirror.fetch_target()
            borrowed = starting.check_out(mirror, folder, trial.sha)
    except (Interrupted, HostTrouble):
        _put_back(trial)
        return
    except GitError as error:
        _end(trial, Trial.Outcome.BROKEN, problem=str(error), step="checkout")
        return
    environment = commands.own_environment(trial.project, folder, "verifier")
    limits = commands.Limits.of_a_trial()
    steps = commands.verification_steps(_recipe(trial), folder, environment, limits)
    room = sandbox.Room(
        folder, trial.project_id, "verifier", borrowed, starting.reach_of_trial(trial.project)
    )
    starting.write_job(folder, f"trial-{trial.pk}", steps, room, steps_decide=True)
    starting.renew_lease(folder)
    NURSERY.start_shim(folder)


def _look_after(trial: Trial, do: Do) -> None:
    folder = folder_of(trial.pk)
    shim, is_held, left = starting.hold_of(folder)
    if left is not None:
        do(f"trial-{trial.pk}", lambda: _finish(trial, left))
    elif shim is not None and not is_held:
        do(f"trial-{trial.pk}", lambda: _bury(trial, folder))
    elif shim is None and _age(trial) > settings.DURATIONS["starting"]:
        _put_back(trial)
    elif shim is not None:
        starting.renew_lease(folder)
        _show_progress(trial, folder)


def _age(trial: Trial) -> float:
    return (estimated_time() - (trial.started_at or trial.queued_at)).total_seconds()


def _show_progress(trial: Trial, folder: Path) -> None:
    tail = masking.clean(masking.read(folder / "output.log", 0, None, SHOWN_WHILE_RUNNING))
    if tail != trial.tail:
        Trial.objects.filter(pk=trial.pk, status=Trial.Status.RUNNING).update(tail=tail)


def _bury(trial: Trial, folder: Path) -> None:
    processes.end_all(processes.working_in(folder), settings.DURATIONS["grace"])
    _put_back(trial)


def _put_back(trial: Trial) -> None:
    """Queue a trial again whose process was lost, or end it after ATTEMPTS_MAX attempts."""
    if trial.attempts >= ATTEMPTS_MAX:
        problem = f"Its process was lost {counted(trial.attempts, 'time')}."
        _end(trial, Trial.Outcome.BROKEN, problem=problem, step="host")
        return
    Trial.objects.filter(pk=trial.pk, status=Trial.Status.RUNNING).update(
        status=Trial.Status.QUEUED, host=None, lease_until=None
    )


def _take_over_lost(host: Host) -> None:
    """Queue the trials of hosts that are gone again, and reset branches whose first look was cut short."""
    for trial in _lost(host):
        _put_back(trial)
    _stuck(_long_ago()).update(base_state=Base.UNKNOWN)


def _poll(host: Host, projects: Any, do: Do) -> None:
    """Check whether an unfit branch has moved; retry what may fix itself, like a full disk."""
    now = estimated_time()
    unfit = projects.filter(base_state__in=UNFIT)
    for project in unfit.exclude(trouble_until__gt=Now()):
        if not host.may_run(project):
            continue
        key = f"base-{project.pk}"
        age = (now - project.base_at).total_seconds() if project.base_at else 0
        if project.base_state == Base.BROKEN and age > settings.DURATIONS["base_retry"]:
            base.try_again(project, why="What was missing may be there now.")
        elif _is_due(project.pk):
            do(key, lambda project=project: _look_for_move(project))


def _poll_fit(do: Do) -> None:
    """Look at fit branches now and then, since it may be long until somebody works there."""
    for (pk,) in _fit.rows():
        if _is_due(pk, "base_retry"):
            do(f"base-{pk}", lambda pk=pk: _look_at_head(Project.objects.get(pk=pk)))


_polled: dict[int, float] = {}


def _is_due(pk: int, duration: str = "base_poll") -> bool:
    now = processes.boottime()
    if now - _polled.setdefault(pk, 0.0 if duration == "base_poll" else now) < settings.DURATIONS[duration]:
        return False
    _polled[pk] = now
    return True


def _look_at_head(project: Project) -> None:
    """Check that a fit branch still has what landed; that it moved is noticed when the next coder begins."""
    with contextlib.suppress(GitError):
        mirror = paths.mirror(project)
        rewrites.look(project, mirror, mirror.fetch_target())


def _look_for_move(project: Project) -> None:
    with contextlib.suppress(GitError):
        mirror = paths.mirror(project)
        head = mirror.fetch_target()
        if head != project.base_sha:
            base.try_again(project, why=f"{mirror.branch} moved on to {head[:12]}.")


# --- What came of it --------------------------------------------------------------------------------------


def _finish(trial: Trial, left: dict[str, Any]) -> None:
    folder = folder_of(trial.pk)
    reason = str(left.get("reason", ""))
    if reason in {"stopped", "orphan"}:
        _put_back(trial)
        return
    verdict = verdicts.read(folder, left)
    outcome = Trial.Outcome.GREEN if verdict.green else Trial.Outcome.RED
    if verdict.fault or reason == "refused":
        outcome = Trial.Outcome.BROKEN
    _keep_result(trial, verdict)
    caches.keep(trial.project_id, folder)
    problem = verdict.problem or verdict.missing
    if not verdict.green and (spared := _spare(trial, verdict)):
        more = f"Left out for beginning with the same: {counted(spared, 'other recipe')}."
        problem = verdicts.with_more(problem, more)
    if outcome != Trial.Outcome.GREEN and verdict.step == commands.TESTS:
        problem = _with_servers(trial, verdict)
    _end(
        trial, outcome, problem=problem, steps=verdict.steps, broke_off=verdict.tests.broke_off,
        hosts=sandbox.reached(folder), **verdict.columns,
    )  # fmt: skip
    paths.remove(folder)


def _spare(trial: Trial, verdict: Verdict) -> int:
    """Skip the queued trials that begin with what this one could not do or fetch, and return how many."""
    queued = trial.project.trials.filter(status=Trial.Status.QUEUED, sha=trial.sha)
    asked = _recipe(trial).commands
    lacking = toolchains.fetchers(*asked) if verdict.is_cut_off else set()
    done = BEGINNINGS.get(verdict.step, 0)
    vain = [
        each.pk
        for each in queued
        if (lacking and lacking <= toolchains.fetchers(*_recipe(each).commands))
        or (done and _recipe(each).commands[:done] == asked[:done])
    ]
    return queued.filter(pk__in=vain).update(
        status=Trial.Status.ENDED, outcome=Trial.Outcome.SKIPPED, ended_at=estimated_time(),
        problem=f"It begins with what trial {trial.ordinal} did not get beyond.",
    )  # fmt: skip


def _recipe(trial: Trial) -> Recipe:
    return Recipe(trial.prepare, trial.build, trial.test)


def _with_servers(trial: Trial, verdict: Verdict) -> str:
    """Return what is red, and which servers the repository's own CI starts if the tests asked for one."""
    said = ""
    with contextlib.suppress(GitError):
        tree = Tree(CommitTree(paths.mirror(trial.project), trial.sha))
        said = beside.lacking(tree, f"{verdict.tests.said}\n{verdict.tail}")
    return verdicts.with_more(verdict.problem, said)


def _keep_result(trial: Trial, verdict: Verdict) -> None:
    """Store the result as known of the commit, for landings and for coders who begin there."""
    Verification.objects.update_or_create(
        project=trial.project, sha=trial.sha, commands_hash=commands.commands_hash(_recipe(trial)),
        defaults=verdict.columns | {
            "green": verdict.green, "seconds": verdict.seconds, "problem": verdict.problem[:500],
            "fault": verdict.fault[:300],
        },
    )  # fmt: skip


def _end(trial: Trial, outcome: str, *, problem: str = "", **result: Any) -> None:
    """End the trial once, and decide what follows before the project's next trial can begin."""
    with transaction.atomic():
        locked(Project.objects).get(pk=trial.project_id)
        ended = Trial.objects.filter(pk=trial.pk).exclude(status=Trial.Status.ENDED).update(
            status=Trial.Status.ENDED, outcome=outcome, problem=problem[: verdicts.PROBLEM_MAX],
            ended_at=estimated_time(), lease_until=None, **result,
        )  # fmt: skip
        if ended:
            conclusions.decide(trial.project_id)
