"""Checks an agent: runs its command once, with a tiny prompt in an empty clone, and says how that went."""

import contextlib
import subprocess
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django_q.tasks import async_task

from agents.crew import pauses
from agents.hosts import agent_command, outcomes, paths, processes, provider_trouble, sandbox, starting
from agents.hosts.masking import read as read_log
from agents.hosts.shims.nursery import NURSERY
from agents.models import Agent
from agents.money import metering
from agents.providers.base import NotSignedIn, ProviderError
from agents.providers.registry import CLIS, provider_for
from agents.providers.reports import PROVIDER_TROUBLE, ErrorClass, Reader, Report
from agents.verification import commands
from tasks.database.clock import estimated_time
from tasks.spans import clock, duration

PROMPT = "Answer with the one word READY. Change no file and run no command.\n"
SAYS_MAX = 500
POLL = 0.1
LATE = 60.0  # seconds beyond the longest check, after which no process can still be at it
WITHOUT_PROCESS = {Agent.Provider.PULL}


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check, with a sentence about it."""

    is_fine: bool
    says: str


def ask(agent: Agent) -> None:
    """Have the agent checked in the background by the cluster; until then it counts as being checked."""
    Agent.objects.filter(pk=agent.pk).update(checked_at=estimated_time(), is_fine=None, check_says="")
    transaction.on_commit(partial(async_task, "agents.jobs.check_agent", agent.pk, group="check"))


def is_asked(agent: Agent) -> bool:
    """Whether a check was asked for and has no result yet."""
    return agent.checked_at is not None and agent.is_fine is None


def last_check(agent: Agent) -> str:
    """Return a sentence about the result of the last check, or about how it is going."""
    if agent.checked_at is None:
        return "Not checked yet. Save and check starts its command once."
    when = clock(agent.checked_at, estimated_time())
    if not is_asked(agent):
        return f"{when}: {agent.check_says}"
    if estimated_time() - agent.checked_at > timedelta(seconds=settings.DURATIONS["check"] + LATE):
        return f"Asked for at {when}, and nothing came of it. Is the cluster running (manage.py qcluster)?"
    return f"Being checked since {when}…"


def check(agent: Agent) -> Checked:
    """Start the agent's command once, under the limits of a run, and save the result with the agent."""
    checked = _checked(agent)
    Agent.objects.filter(pk=agent.pk).update(
        checked_at=estimated_time(), is_fine=checked.is_fine, check_says=checked.says[:SAYS_MAX]
    )
    return checked


def _checked(agent: Agent) -> Checked:
    if agent.provider in WITHOUT_PROCESS:
        return Checked(True, "Nothing is started here: it claims its own work.")
    try:
        provider_for(agent).check(agent.settings, agent.model)
        if agent.provider == Agent.Provider.REPLAY:
            return _cassettes(Path(agent.settings["cassettes"]))
        folder = Path(tempfile.mkdtemp(prefix="check-", dir=paths.folder("checks")))
        try:
            return _tried(agent, folder)
        finally:
            paths.remove(folder)
    except ProviderError as error:
        if isinstance(error, NotSignedIn):
            pauses.pause(agent.account, ErrorClass.SIGN_IN, str(error))
        return Checked(False, str(error))


def _cassettes(folder: Path) -> Checked:
    found = len(list(folder.glob("*.yaml"))) if folder.is_dir() else 0
    if not found:
        return Checked(False, f"There are no cassettes in {folder}. Correct the agent's cassettes.")
    return Checked(True, f"Fine: {found} cassettes in {folder}.")


def _tried(agent: Agent, folder: Path) -> Checked:
    reader = provider_for(agent).reader()
    left = _played(agent, folder, reader)
    reader.feed(b"\n")
    report = reader.report
    last = (left.get("steps") or [{"name": "agent", "code": None, "seconds": 0.0}])[-1]
    reason = str(left.get("reason", ""))
    tail = outcomes.clean(read_log(folder / "output.log", 0, None, outcomes.TAIL), agent)
    trouble = provider_trouble.trouble_of(agent, report, last, reason, tail)
    if trouble:
        return _in_trouble(agent, trouble, report)
    seconds = duration(last["seconds"]) if last["seconds"] >= 1 else "less than a second"
    lines = tail.strip().splitlines()
    said = lines[-1][:200] if lines else "it printed nothing"
    if reason in {"silent", "wall", "timeout"}:
        return Checked(
            False, f"It was ended after {seconds} without an answer. Check the network and base_url."
        )
    if reason:
        return Checked(False, f"It was ended by the host ({reason}): {said}")
    if last["code"] != 0:
        return Checked(False, f"Its command ended with {last['code']}: {said}")
    if agent.provider in CLIS and not report.text:
        why = "ended without its last word" if not report.is_ended else "answered nothing"
        return Checked(False, f"It {why}, though its command ended with 0: {said}. Check model and program.")
    pauses.forget(agent.account)
    return Checked(True, _fine(agent, report, seconds))


def _in_trouble(agent: Agent, trouble: provider_trouble.Trouble, report: Report) -> Checked:
    says = trouble.sentence
    if trouble.error in PROVIDER_TROUBLE:
        row = pauses.pause(agent.account, trouble.error, report.message, until=report.retry_at)
        says = f"{says} Paused until {clock(row.until, estimated_time())}."
    elif trouble.error == ErrorClass.MODEL and agent.model:
        says = f"{agent.model}: {says}"
    return Checked(False, says)


def _fine(agent: Agent, report: Report, seconds: str) -> str:
    model = report.model or agent.model
    who = f"{model} answered" if model and agent.provider in CLIS else "its command ended with 0"
    used = f", {report.tokens_in + report.tokens_cached} tokens in and {report.tokens_out} out"
    return f"Fine: {who} in {seconds}{used if report.tokens_out else ''}."


# --- The process ------------------------------------------------------------------------------------------


def _played(agent: Agent, folder: Path, reader: Reader) -> dict[str, Any]:
    """Run the agent's process, feed its output to the reader, and return what the shim reports at its end.

    The shim's lease is renewed meanwhile. If no report comes in time, the result is {"reason": "wall"}.
    Raises ProviderError.
    """
    read = 0
    clone = folder / "clone"
    subprocess.run(
        ["git", "init", "--quiet", "--template=", str(clone)],
        env={"PATH": commands.system_path(), "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"},
        stdin=subprocess.DEVNULL, check=True, timeout=60,
    )  # fmt: skip
    agent_command.write_private(folder / "prompt.md", PROMPT)
    environment = commands.own_environment(None, folder, "check")
    step = agent_command.agent_step(agent, agent.model, folder, environment, STEROIDS_RUN=folder.name)
    longest = settings.DURATIONS["check"]
    limits = {name: settings.DURATIONS[name] for name in ("silence", "orphan", "grace")}
    steps = [step | {"timeout": longest}]
    job = {
        "run": folder.name,
        "steps": steps,
        "limits": limits | {"wall": longest} | starting.most(),
        "bell": str(folder / "bell"),
    }
    if sandbox.is_on():
        job |= sandbox.Room(folder, 0, "check", (), starting.reach_of_agent(None, agent)).enclose(steps)
    processes.write_json(folder / "job.json", job)
    starting.renew_lease(folder)
    NURSERY.start_shim(folder)
    deadline = time.monotonic() + longest + limits["grace"] + limits["orphan"]
    while (left := starting.exit_of(folder)) is None and time.monotonic() < deadline:
        starting.renew_lease(folder)
        read = _feed(reader, folder, read)
        if reader.report.is_hopeless:
            agent_command.write_private(folder / "stop", metering.GIVEN_UP)
        time.sleep(POLL)
    _feed(reader, folder, read)
    return left or {"reason": "wall"}


def _feed(reader: Reader, folder: Path, read: int) -> int:
    """Give the reader what is new in the log, and return how many bytes were read in all."""
    with contextlib.suppress(OSError), processes.open_regular(folder / "output.log") as file:
        file.seek(read)
        while chunk := file.read(1024 * 1024):
            reader.feed(chunk)
            read += len(chunk)
    return read
