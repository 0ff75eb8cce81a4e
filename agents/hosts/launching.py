"""Start a run that this host claimed, or give it back with a sentence that says what to change."""

import subprocess

from agents.hosts import api_server, outcomes, paths, provider_trouble, starting
from agents.hosts.git.commands import GitError
from agents.hosts.git.remotes import HostTrouble, Interrupted, Unreachable
from agents.loop import run_ends
from agents.models import Run
from agents.providers.base import NotReady, ProviderError
from agents.pull import preparing
from agents.verification.unreachable import trouble
from tasks.models import Project, StaleTask


def launch(run: Run) -> None:
    """Start the run, or end it with a sentence that says what to change."""
    try:
        with paths.mirror(run.project).mended():
            if run.is_pulled:
                preparing.prepare(run)
            else:
                starting.start(run)
    except Interrupted:
        _give_back(run, "This host stopped before it began.")
    except HostTrouble as error:
        _give_back(run, f"The repository {error.blame}. {error}", is_of_host=True)
    except Unreachable as error:
        trouble(run.project, f"{run.project.address} {error.blame}: {error}")  # first: nothing is begun
        _give_back(run, f"The repository {error.blame}. {error}")
    except NotReady as error:
        provider_trouble.not_ready(run, error)
        outcomes.remove_folder(run)
    except (GitError, ProviderError, starting.CannotStart, api_server.NoApiServer) as error:
        if isinstance(error, GitError) and error.is_of_disk():
            _give_back(run, str(error), is_of_host=True)
        else:
            _give_back(run, str(error), outcome=Run.Outcome.REFUSED)
    except starting.BaseNotFit as error:
        _give_back(run, str(error))
    except StaleTask:
        _give_back(run, "The task moved on before it started.")
    except (OSError, subprocess.SubprocessError) as error:
        why = getattr(error, "strerror", "") or f"Its shim did not start ({type(error).__name__})"
        _give_back(run, f"Host {run.host} could not begin it: {why}.", is_of_host=True)
    else:
        if run.project.trouble:
            Project.objects.filter(pk=run.project_id).update(trouble="", trouble_until=None, trouble_count=0)


def _give_back(
    run: Run, reason: str, *, outcome: str = Run.Outcome.STOPPED, is_of_host: bool = False
) -> None:
    """End a run that never began. If the host is to blame, the task rests: another host may manage it."""
    run_ends.end(run, outcome, reason=reason)
    if is_of_host:
        run_ends.rest_in_trouble(run)
    outcomes.remove_folder(run)
