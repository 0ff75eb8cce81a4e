"""What a build-and-test run says about its commit, read from its exit, its output and its test reports.

Everything in the run's folder may have been written by the code under test. That can only make a commit look
worse, or confirm what an exit code of 0 says.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.hosts import masking, processes, sandbox
from agents.inside import gate
from agents.models import Trial
from agents.reading import comparison, faults
from agents.reading.causes import cause, not_found, without
from agents.reading.idle import ran_none
from agents.reading.junit import read_reports
from agents.reading.output import read_output
from agents.reading.results import Tests, together
from agents.recipes import toolchains
from agents.verification import commands
from tasks.models import Project, Verification
from tasks.text.counting import counted, shortened, some_of

INSTALLS = (commands.PREPARE, commands.BUILD)  # steps that may fail because something cannot be fetched
OWN_SERVER = rf"\bhttps?://(?:[^/@\s]*@)?({faults.HERE}:\d+)"
OPENS = "allowed_hosts cannot open that; the operator can, in STEROIDS_SANDBOX_HOSTS."
OWN_REGISTRY = "A registry of your own is used if STEROIDS_PASS_TO_BUILDS lists the variable that names it."
NAMED = 3  # tests that a sentence names
OUTPUT_MAX = 1024 * 1024  # bytes of one step that are read for names
RED = ("step", "exit_code", "failed", "failed_count", "total")  # the columns that say what is red
TAIL = 64 * 1024
PROBLEM_MAX, PROBLEM_MIN = 500, 120  # characters that a row has for a problem, and those it always gets
MISSING_MAX = 64 * 1024  # bytes that say what of the commit is missing
MISSING_SHOWN = 300  # characters of the first of them
# Folders below the checkout where build tools leave JUnit XML by themselves.
LEFT_BEHIND = (
    "target/surefire-reports", "build/test-results/test", "target/nextest/default", "target/nextest/ci",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a verification. If `fault` names the environment, it says nothing about the commit."""

    green: bool
    steps: list[dict[str, Any]]
    step: str = ""  # the step that ended it
    exit_code: int | None = None
    problem: str = ""
    fault: str = ""
    tests: Tests = field(default_factory=Tests)
    flaky: tuple[str, ...] = ()
    tail: str = ""
    missing: str = ""  # what of the commit was not there, in sentences, though it is green
    is_cut_off: bool = False  # it could not fetch what it begins with, since no server was reached

    @property
    def seconds(self) -> float:
        return float(sum(step.get("seconds", 0) for step in self.steps))

    @property
    def red(self) -> dict[str, Any]:
        """What is red, in the form in which it is stored for later comparison; empty if nothing is."""
        if self.green:
            return {}
        return {name: self.columns[name] for name in RED} | {"broke_off": self.tests.broke_off}

    @property
    def columns(self) -> dict[str, Any]:
        """What the rows of trials and verifications keep of it, by their columns."""
        return {
            "step": self.step, "exit_code": self.exit_code, "failed": list(self.tests.failed),
            "failed_count": self.tests.failed_count, "total": self.tests.total, "flaky": list(self.flaky),
            "tail": self.tail,
        }  # fmt: skip


def read(folder: Path, left: dict[str, Any]) -> Verdict:
    """Return the verdict on a run, given what its shim left about its steps."""
    steps = [step for step in left.get("steps", []) if isinstance(step, dict)]
    reason = str(left.get("reason", ""))
    last = steps[-1] if steps else {"name": "", "code": 0}
    tail = masking.clean(_slice(folder, last, TAIL))
    green = not reason and last.get("code") == 0
    tests, flaky = _tests_of(folder, steps, green=green)
    told = [
        {"name": each.get("name", ""), "code": each.get("code"), "seconds": each.get("seconds", 0)}
        for each in steps
    ]
    if green:
        missing = " ".join(_missing(folder, steps))
        total = _total(folder, steps, tests)
        return Verdict(True, told, tests=Tests(total=total), flaky=flaky, tail=tail, missing=missing)
    name = str(last.get("name", "")).removesuffix(" again") or "verification"
    code = last.get("code")
    red = problem_of(name, code, reason, tests)
    fault = "" if tests.failed else _fault(folder, name, code, reason, tail)
    if not fault and name.startswith(commands.ENVIRONMENT):  # none of the project's own steps has run
        fault = red
    problem = fault or (f"{red}: {why}" if (why := _cause(folder, reason, tests, tail)) else red)
    said = f"{tests.said}\n{tail}"
    is_cut_off = _is_cut_off(folder, name, fault)
    absent = () if fault else filter(None, (not_found(tail), without(said)))
    told_more = (
        *absent, *_what_brings(fault), *_missing(folder, steps), *_silent(said),
        *_looked_at_proxy(said, tests), *_unreached(folder, fault, is_cut_off),
    )  # fmt: skip
    problem = with_more(problem, " ".join(told_more))
    return Verdict(False, told, name, code, problem, fault, tests, flaky, tail, is_cut_off=is_cut_off)


def with_more(problem: str, more: str) -> str:
    """Return the problem and what else is told about it, the problem cut if that leaves room in a row."""
    if not more:
        return problem
    problem = problem.removesuffix(".")
    room = max(PROBLEM_MAX - len(more) - 2, PROBLEM_MIN)
    return f"{shortened(problem, room)}. {more}"


def _fault(folder: Path, step: str, code: int | None, reason: str, tail: str) -> str:
    """Return what in the environment is at fault, judging by the output and by what the gate let through."""
    fault = faults.environment_fault(tail, code, reason)
    if _is_shut_in(folder) and not reason and (fault or step in INSTALLS):
        return faults.without_network(fault)
    return fault


def _is_shut_in(folder: Path) -> bool:
    """Whether the run asked for servers and reached none; of a run without a sandbox nobody knows."""
    return bool(sandbox.unreached(folder)) and not sandbox.reached(folder)


def _cause(folder: Path, reason: str, tests: Tests, tail: str) -> str:
    """Return what the output says of a failure that is neither the host's word nor that of a test."""
    if reason or tests.failed or tests.failed_count:
        return ""
    return cause(tail).replace(f"{folder / 'clone'}/", "")


def _what_brings(fault: str) -> Iterator[str]:
    """Yield how to get the missing program, if that is known."""
    if hint := toolchains.known_hint(faults.missing_program(fault)):
        yield f"What brings it: {hint}."


def _silent(output: str) -> Iterator[str]:
    """Which server of their own machine the commands asked in vain, and what brings it."""
    if port := faults.silent_port(output):
        yield (
            f"Nothing answers at port {port}: the command that asks has to start what does. In the sandbox"
            f" this machine's own answer only where STEROIDS_SANDBOX_HOSTS names them, as 127.0.0.1:{port}."
        )


def _looked_at_proxy(output: str, tests: Tests) -> Iterator[str]:
    """Yield what helps tests that fail for the sandbox's proxy, as those of a client for HTTP do."""
    if tests.failed and sandbox.address().removeprefix("http://") in output:
        yield (
            "Tests met the proxy that the sandbox sets in their environment. If they need no network, let the"
            f" test command begin with `unset {' '.join(sandbox.PROXIES)};`."
        )


def _is_cut_off(folder: Path, step: str, fault: str) -> bool:
    """Whether the run could not fetch what it begins with, since it reached no server at all."""
    is_early = step == commands.PREPARE or step.startswith(commands.ENVIRONMENT)
    return is_early and fault.startswith(faults.NOT_REACHED) and _is_shut_in(folder)


def _unreached(folder: Path, fault: str, is_cut_off: bool) -> Iterator[str]:
    """Yield which hosts the run could not reach and what helps, one sentence for each reason.

    A host that is down may be what a test is about, so it is mentioned only if that is the fault.
    """
    hosts = sandbox.unreached(folder)
    unnamed, private, *missed = (
        [host for host, why in hosts.items() if why == reason] for reason in gate.REASONS
    )
    shut = "The sandbox lets nothing through to"
    if unnamed:
        yield f"{shut} {some_of(unnamed, NAMED)}; the project's allowed_hosts would name them."
    if private:
        yield f"{shut} {some_of(private, NAMED)}, on this machine or in a private network. {OPENS}"
    if fault.startswith(faults.NOT_REACHED):
        for says, some in zip(gate.SAYS.values(), missed, strict=True):
            if some:
                yield says.format(some_of(some, NAMED))
    if is_cut_off:
        yield OWN_REGISTRY
    if fault.startswith(faults.NOT_REACHED) and sandbox.is_on():
        yield from _closed_registries()


def _closed_registries() -> Iterator[str]:
    """Yield which variables that runs see name a server of this machine that the sandbox keeps from them."""
    for name in settings.PASS_TO_BUILDS:
        for host in re.findall(OWN_SERVER, os.environ.get(name, "")):
            if not {host, host.rpartition(":")[0]} & {*settings.SANDBOX_HOSTS}:
                yield f"{name} names a server of this machine. {OPENS.replace('that', host)}"


def _tests_of(folder: Path, steps: list[dict[str, Any]], *, green: bool) -> tuple[Tests, tuple[str, ...]]:
    """Return the result of the tests, of the second try if there was one, and which tests are flaky."""
    first = next((step for step in steps if step["name"] == commands.TESTS), None)
    again = next((step for step in steps if step["name"] == commands.AGAIN), None)
    tests = _tests(folder, first, commands.FIRST) if first else Tests()
    if again is None:
        return tests, ()
    second = _tests(folder, again, commands.SECOND)
    return second, comparison.flaky(tests, second) or (tests.failed if green else ())


def _total(folder: Path, steps: list[dict[str, Any]], tests: Tests) -> int | None:
    """Return how many tests a green run ran: none if it says so, though no runner counted."""
    ran = [step for step in steps if step.get("name") in {commands.TESTS, commands.AGAIN}]
    if ran and ran_none(masking.clean(_slice(folder, ran[-1], OUTPUT_MAX)), tests):
        return 0
    return tests.total


STOPPED = {
    "bytes": "too much output", "processes": "too many processes", "memory": "too much memory",
    "disk": "too much written to the disk", "files": "too many files",
}  # fmt: skip


def problem_of(step: str, code: int | None, reason: str, tests: Tests) -> str:
    """Return what is red, in one sentence without a full stop."""
    if reason == "timeout":
        return f"{step} took longer than its limit"
    if reason:
        return f"{step} stopped by the host: {STOPPED.get(reason, reason)}"
    ended = f"{step} ended with {code}"
    named = some_of(tests.failed, NAMED)
    if not named:
        return f"{ended}: {tests.failed_count} failed" if tests.failed_count else ended
    count = max(len(tests.failed), tests.failed_count or 0)
    return f"{ended}: {count} failed: {named}"


def is_only_told(project: Project, step: str) -> bool:
    """Whether a red step is only reported and stops nothing, because of the setting `test_required`."""
    return step == commands.TESTS and not project.config.test_required


def compare(project: Project, verdict: Verdict) -> comparison.Comparison | None:
    """Compare a red verdict with what was accepted of the target branch.

    Return None if the verdict is green or names a fault, or if there is nothing to compare it with.
    """
    return None if verdict.green or verdict.fault else compare_red(project, verdict.red)


def compare_red(project: Project, red: dict[str, Any]) -> comparison.Comparison | None:
    """Compare what is red with what was accepted; None if nothing was, or if another step was red."""
    known = project.base_known
    if not known or known.get("step") != red["step"]:
        return None
    return comparison.compare(_as_tests(red), red["exit_code"], _as_tests(known), known.get("exit_code"))


def red_of(known: Verification | Trial) -> dict[str, Any]:
    """Return what is red by a stored result, for later comparison."""
    return {name: getattr(known, name) for name in RED}


def _as_tests(red: dict[str, Any]) -> Tests:
    return Tests(
        failed=tuple(red.get("failed", ())), total=red.get("total"), failed_count=red.get("failed_count"),
        broke_off=bool(red.get("broke_off")),
    )  # fmt: skip


def _tests(folder: Path, step: dict[str, Any], which: str) -> Tests:
    """Return the tests by the reports if any of them names a failure, or else by the printed output.

    The path of the run's clone is cut out of names, so that they are the same in the next run.
    """
    root, output = f"{folder / 'clone'}/", _slice(folder, step, OUTPUT_MAX + 1)
    text = masking.clean(output[-OUTPUT_MAX:])
    places = [commands.reports_folder(folder, which)]
    if which == commands.FIRST or not any(place.exists() for place in places):
        places += [folder / "clone" / name for name in LEFT_BEHIND]
    for place in places:
        told = None if processes.is_behind_a_link(place, folder) else read_reports(place, root)
        if told is not None and told.failed:
            return together(told, read_output(text, root))
    return read_output(text, root, is_whole=len(output) <= OUTPUT_MAX)


def _slice(folder: Path, step: dict[str, Any], most: int) -> bytes:
    """Return the end of what one step printed."""
    begin, end = _span(step)
    return masking.read(folder / "output.log", begin, end, most)


def _span(step: dict[str, Any]) -> tuple[Any, Any]:
    """Return where the step's output begins and ends in the log, as far as the exit file says."""
    span = step.get("log")
    return (span[0], span[1]) if isinstance(span, list) and len(span) == 2 else (0, None)


def _missing(folder: Path, steps: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what the log says before the first step: which parts of the commit could not be checked out."""
    end = _span(steps[0])[0] if steps else 0
    if not isinstance(end, int) or end <= 0:
        return
    said = masking.clean(masking.read(folder / "output.log", 0, end, MISSING_MAX))
    parts = [" ".join(part.split()) for part in re.split(r"(?m)^(?=submodule |Git LFS )", said)]
    modules = [part for part in parts if part.startswith("submodule ")]
    if modules:
        first = shortened(modules[0], MISSING_SHOWN)
        yield f"S{first[1:].removesuffix('.')}."
    if more := max(len(modules) - 1, 0):
        yield f"{counted(more, 'other submodule')} {'is' if more == 1 else 'are'} not there either."
    yield from (f"{part}." for part in parts if part.startswith("Git LFS "))
