"""Why a run ended without a hand-in, told from the shim's word, the exit code and the command's report."""

import shutil
from dataclasses import dataclass
from typing import Any

from agents.crew import pauses
from agents.hosts.masking import clean
from agents.loop import run_ends
from agents.models import Agent, Run
from agents.money import metering
from agents.providers.base import NotReady, ProviderError
from agents.providers.registry import provider_for
from agents.providers.reports import PROVIDER_TROUBLE, ErrorClass, Report
from agents.reading import faults
from agents.verification import commands

# Reasons for which the provider may be to blame; a run that was stopped or wrote too much is not one.
BLAMED = frozenset({"", "silent", "wall", "timeout", metering.GIVEN_UP})


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a run's command said went wrong."""

    error: ErrorClass
    message: str  # in the command's words

    @property
    def sentence(self) -> str:
        """What happened, in the command's words, and what to do."""
        effect = pauses.EFFECTS[self.error]
        said = " ".join(self.message.split())[:300]
        said += "" if said.endswith((".", "!", "?")) else "."
        return f"{effect.says}: {said} {effect.advice}" if self.message else f"{effect.says}. {effect.advice}"

    @property
    def is_of_provider(self) -> bool:
        """Whether the provider is to blame, so that it does not count as a failure of the task (LAD-4)."""
        return self.error in PROVIDER_TROUBLE


def trouble_of(
    agent: Agent | None, report: Report, last: dict[str, Any], reason: str, tail: str = ""
) -> Trouble | None:
    """Return what went wrong by the command's own account; None if it says nothing or is not to blame.

    A command that ended well may have lost its connection, as one that ends with 0 all the same; of no other
    trouble with its provider is it believed, because its agent may have written that into its output.
    """
    if agent is None or last.get("name") != "agent" or reason not in BLAMED:
        return None
    try:
        provider = provider_for(agent)
        if said := provider.asks_again(agent.settings, last.get("code"), tail):
            return Trouble(ErrorClass.NETWORK, said)
        lacks = faults.program_not_found(tail, last.get("code"))
        if lacks and not shutil.which(lacks, path=commands.system_path()):
            return Trouble(ErrorClass.START, f"The program {lacks!r}, which it calls, is not on this host.")
        error = provider.classify(report, last.get("code"), tail)
    except ProviderError:
        return None
    trouble = Trouble(error, clean(report.message.encode(), agent)) if error else None
    ended_well = not reason and last.get("code") == 0
    is_doubtful = trouble and trouble.is_of_provider and trouble.error is not ErrorClass.NETWORK
    return None if is_doubtful and ended_well else trouble


def pause_for(run: Run, trouble: Trouble, report: Report) -> None:
    """Pause the run's account if the trouble is the provider's."""
    if run.agent is not None and trouble.is_of_provider:
        until, began = report.retry_at, run.started_at
        pauses.pause(run.agent.account, trouble.error, trouble.message, until=until, began=began)


def not_ready(run: Run, error: NotReady) -> None:
    """End a run that could not start because its command is not ready on this host; pause its account."""
    pause_for(run, Trouble(error.error, str(error)), Report())
    run_ends.end(run, Run.Outcome.PROVIDER, reason=str(error), error_class=error.error)
