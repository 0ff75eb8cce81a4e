"""Concludes from the trials of a branch: keeps its commands, or opens a card that says what is red."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from django.conf import settings

from agents.models import Trial
from agents.reading import faults
from agents.reading.idle import ran_some
from agents.verification import commands, verdicts
from disputes import alerts
from tasks import base
from tasks.configuration.changing import configure
from tasks.database.clock import estimated_time
from tasks.events import SYSTEM
from tasks.models import Project
from tasks.text.counting import counted, shortened, some_of

Base = Project.Base
LIMIT_FACTOR = 3  # a command may take this many times what it took on the base
LIMIT_MIN = 600  # seconds
FEWER = 2  # a green trial with fewer tests than a red one's divided by this hides something
DETAIL_MAX = 4000  # characters of output on a card
NAMED_MAX = 20
COMMAND_SHOWN = 80  # characters of a green command that a sentence names
TOOLCHAIN = "toolchain"  # the step of a trial that was not begun, since this host lacks a program


def decide(pk: int) -> None:
    """Settle the state of the branch once a trial is green, or none is left to try."""
    project = Project.objects.get(pk=pk)
    if project.base_state != Base.TRYING:
        return
    mine = project.trials.filter(sha=project.base_sha).exclude(outcome=Trial.Outcome.SKIPPED)
    newest = mine.order_by("-pk").first()
    if newest is None:
        return
    tried = list(mine.filter(why=newest.why, queued_at__gte=project.base_at).order_by("pk"))
    if green := _best_green(tried):
        project.trials.filter(status=Trial.Status.QUEUED).update(
            status=Trial.Status.ENDED, outcome=Trial.Outcome.SKIPPED, ended_at=estimated_time()
        )
        _found_green(project, green)
    elif tried and all(trial.status == Trial.Status.ENDED for trial in tried):
        _found_none(project, tried)


def _best_green(tried: list[Trial]) -> Trial | None:
    """Return the first green trial, or None while others may be better.

    One that ran no test says nothing, and is kept only if none of the others is green and ran some. One that
    tells of no test is not kept if a likelier one only lacks a program or what comes back by itself.
    """
    convincing = [trial for trial in tried if _is_convincing(trial, tried) and not _likelier(trial, tried)]
    tested = next((trial for trial in convincing if trial.total != 0), None)
    if tested or any(trial.status != Trial.Status.ENDED for trial in tried):
        return tested
    return next(iter(convincing), None)


def _is_convincing(trial: Trial, tried: list[Trial]) -> bool:
    """Whether the trial is green, and not only because it ran far fewer tests than a red one, or none."""
    if trial.outcome != Trial.Outcome.GREEN:
        return False
    others = [other for other in tried if other.outcome == Trial.Outcome.RED]
    if trial.total == 0 and any(other.failed or other.failed_count for other in others):
        return False
    red = [other.total or 0 for other in others]
    return FEWER * (trial.total or 0) >= max(red, default=0)


def _likelier(green: Trial, tried: list[Trial]) -> Trial | None:
    """Return the likeliest trial before a green one that may be run later; None if the green one counts.

    A script that only checks how a list is sorted is green as well. So one that tells of no test is no answer
    while the tests that the repository declares could be run with one more program, or once a server that is
    away is back.
    """
    if green.total or ran_some(green.tail):
        return None
    before = (trial for trial in tried if trial.ordinal < green.ordinal and trial.test)
    return next((trial for trial in before if _lacks_program(trial) or _was_away(trial)), None)


def _found_green(project: Project, trial: Trial) -> None:
    _keep_commands(project, trial)
    base.set_base(project, Base.GREEN, sha=trial.sha, base_red={}, base_known={})
    alerts.withdraw_base_card(project)


def _keep_commands(project: Project, trial: Trial) -> None:
    """Make the trial's commands the project's, with limits based on the time that they took."""
    if changes := _settings_of(project, trial):
        configure(project, changes, actor=SYSTEM, is_tried=True)
    Trial.objects.filter(pk=trial.pk).update(is_kept=True)


def _settings_of(project: Project, trial: Trial) -> dict[str, Any]:
    """Return the settings to change so that the project uses this trial's commands."""
    changes: dict[str, Any] = {}
    if trial.why == Trial.Why.SEARCH:
        changes = {
            "prepare_command": trial.prepare, "build_command": trial.build, "test_command": trial.test,
        }  # fmt: skip
    if trial.hosts and not project.config.allowed_hosts:
        changes["allowed_hosts"] = " ".join(trial.hosts)
    took = {step["name"]: step["seconds"] / settings.TIME_SCALE for step in trial.steps}
    config = project.config
    for key, name in (("prepare", commands.PREPARE), ("build", commands.BUILD), ("test", commands.TESTS)):
        limit = max(LIMIT_MIN, ceil(LIMIT_FACTOR * took.get(name, 0)))
        if limit > getattr(config, f"{key}_timeout"):
            changes[f"{key}_timeout"] = float(limit)
    return changes


def _found_none(project: Project, tried: list[Trial]) -> None:
    """Conclude that no trial is green: the best one says what is red.

    If that was accepted as it is, or red tests stop nothing in the project, the branch is accepted and no
    card opens.
    """
    not_green = [trial for trial in tried if trial.outcome != Trial.Outcome.GREEN]
    held = next((trial for trial in tried if _is_convincing(trial, tried)), None)
    best = (_likelier(held, tried) if held else None) or _telling(not_green)
    state = Base.RED if best.outcome == Trial.Outcome.RED else Base.BROKEN
    kept = _settings_of(project, best)
    red = verdicts.red_of(best) | {"broke_off": best.broke_off, "settings": kept}
    compared = verdicts.compare_red(project, red) if state == Base.RED else None
    is_told = state == Base.RED and best.why != Trial.Why.SEARCH and verdicts.is_only_told(project, best.step)
    if is_told or (compared and compared.is_no_worse):
        base.set_base(
            project, Base.ACCEPTED, sha=best.sha, problem=best.problem, base_red=red, base_known=red
        )
        alerts.withdraw_base_card(project)
        return
    newly_red = compared.newly_red if compared else ()
    problem = _problem(best, newly_red, held)
    offered = {"settings": _settings_of(project, held or max(not_green, key=_came_far))}
    known = red if state == Base.RED else offered
    base.set_base(project, state, sha=best.sha, problem=problem, base_red=known)
    what = "is red" if state == Base.RED else "cannot be built and tested here"
    alerts.ask_about_base(
        project, f"{project.target_branch} of {project.name} {what}: {problem}",
        evidence=_evidence(best, tried, newly_red),
        detail=best.tail[-DETAIL_MAX:],
    )  # fmt: skip


def _problem(best: Trial, newly_red: Sequence[str], held: Trial | None) -> str:
    """Return what is told of the branch: what is newly red, if anything, and what green one is offered."""
    problem = f"{best.step} newly red: {some_of(newly_red, verdicts.NAMED)}" if newly_red else best.problem
    return verdicts.with_more(problem, _green_too(held)) if held else problem


def _green_too(held: Trial) -> str:
    """Return a sentence about a green trial that is offered, but not kept unasked."""
    command = shortened(held.test or held.build, COMMAND_SHOWN)
    return f"Without it, `{command}` is green but tells of no test; save it if that is enough."


def _telling(not_green: list[Trial]) -> Trial:
    """Return the trial that a person is told of.

    One in which not one test passed most often needed something else than what is here. So the likeliest one
    before it that lacks a program is told instead: with that program, the tests might be green.
    """
    best = max(not_green, key=_worth)
    if best.outcome != Trial.Outcome.RED or best.total is None or _passed(best):
        return best
    lacking = [trial for trial in not_green if trial.ordinal < best.ordinal and _lacks_program(trial)]
    return min(lacking, key=lambda trial: trial.ordinal, default=best)


def _lacks_program(trial: Trial) -> bool:
    is_broken = trial.outcome == Trial.Outcome.BROKEN
    return is_broken and (trial.step == TOOLCHAIN or bool(faults.missing_program(trial.problem)))


def _was_away(trial: Trial) -> bool:
    return trial.outcome == Trial.Outcome.BROKEN and faults.is_passing(trial.problem)


def _passed(trial: Trial) -> int:
    failed = trial.failed_count if trial.failed_count is not None else len(trial.failed)
    return max((trial.total or 0) - failed, 0)


def _worth(trial: Trial) -> tuple[bool, bool, float, int]:
    """Return how much a trial that is not green says: first those whose tests ran, then the likeliest."""
    is_told = trial.outcome == Trial.Outcome.RED and bool(trial.failed or trial.failed_count)
    passed = _passed(trial)
    share = passed / trial.total if is_told and trial.total else 0.0
    return (is_told, is_told and passed > 0, share, -trial.ordinal)


def _came_far(trial: Trial) -> tuple[int, int, int]:
    """Return how far a trial came: by its steps, the likelier one first.

    It ranks trials of which none says what is red.
    """
    passed = sum(step.get("code") == 0 for step in trial.steps)
    return (passed, len(trial.steps), -trial.ordinal)


def _evidence(best: Trial, tried: list[Trial], newly_red: Sequence[str]) -> list[str]:
    """Return the commit, the commands, the red tests, and what else was tried."""
    facts = [f"Commit {best.sha[:12]}."]
    facts += [f"{name}: {command}" for name, command in best.commands]
    names = list(newly_red or best.failed)
    facts += [f"failed: {name}" for name in names[:NAMED_MAX]]
    if len(names) > NAMED_MAX:
        facts.append(f"and {len(names) - NAMED_MAX} more")
    others = [trial for trial in tried if trial.pk != best.pk]
    facts += [f"Also tried: {trial.source or 'the own commands'}, {says(trial)}" for trial in others[:8]]
    return facts


def says(trial: Trial) -> str:
    """Return how a trial ended, in one line."""
    if trial.outcome != Trial.Outcome.GREEN:
        return f"{trial.get_outcome_display().lower()}: {trial.problem}"
    count = "" if trial.total is None else f", {counted(trial.total, 'test')}"
    missing = f". {trial.problem}" if trial.problem else ""
    return f"green after {trial.seconds:.0f} s{count}{missing}"
