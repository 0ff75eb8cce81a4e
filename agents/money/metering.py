"""Meters runs: reads what they use from their output while it streams, and checks the caps.

The readers are kept in memory and fed only what is new. A process that takes a run over begins at its first
byte again. The figures in its row never go down meanwhile, so neither that nor a forged event makes a run
cheaper.
"""

import contextlib
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.hosts import paths, processes
from agents.loop import run_ends
from agents.models import Run
from agents.money import caps
from agents.money.price_lists import price_list
from agents.money.prices import COST_MAX, SMALLEST, Tokens
from agents.providers.base import ProviderError
from agents.providers.registry import provider_for
from agents.providers.reports import Reader, Report, SilentReader
from tasks.database.clock import estimated_time

READ_MAX = 1024 * 1024  # bytes read in one go
TOKENS_MAX = 10**15
# The most that counts of what a run reports for each minute of its time, the one that has begun included:
# a run that reports more than anybody can spend would close the project for everybody.
COST_A_MINUTE, TOKENS_A_MINUTE = 20, 10**7
AGENT, PRICES, BOUNDED = "agent", "prices", "bounded"
NAME_MAX, SESSION_MAX = 120, 200
# Reads without news after which the caps are checked all the same: other runs of the task spend, too.
PATIENCE = 5
# The content of the file `stop` in a run's folder: a cap is reached, or the command would retry for ever.
STOP, GIVEN_UP = "cost", "provider"


@dataclass
class Meter:
    """How far the output of one run has been read."""

    log: tuple[str, int]  # path and inode, so that a number used again is another run
    reader: Reader
    offset: int = 0
    looked: float = float("-inf")
    quiet: int = 0
    is_done: bool = False


_meters: dict[int, Meter] = {}


# --- Reading ----------------------------------------------------------------------------------------------


def look(run: Run) -> None:
    """Read what is new in a live run's output, keep its figures, and stop it if a cap is reached."""
    now = processes.boottime()
    meter = _meter(run)
    if meter is None or now - meter.looked < settings.DURATIONS["meter"]:
        return
    meter.looked = now
    read = _read(run, meter, READ_MAX)
    changed = bool(read) and _keep(run, meter.reader.report)
    if read and meter.reader.report.is_hopeless:
        _stop(run, meter.reader.report.message, GIVEN_UP)
        return
    meter.quiet = 0 if changed else meter.quiet + 1
    if changed or meter.quiet >= PATIENCE:
        meter.quiet = 0
        if reached := _over_cap(run):
            _stop(run, reached.line, STOP)


def finish(run: Run) -> Report:
    """Read the rest of an ended run's output and keep its final figures. Returns the whole report."""
    meter = _meter(run)
    if meter is None:
        return Report()
    while _read(run, meter, READ_MAX):
        pass
    if not meter.is_done:
        meter.is_done = True
        meter.reader.feed(b"\n")
    report = meter.reader.report
    _keep(run, report)
    _meters.pop(run.pk, None)
    return report


def _meter(run: Run) -> Meter | None:
    """Return the run's meter, a new one if this process has none; None if there is no output to read."""
    if run.role == Run.Role.VERIFIER or run.is_pulled:
        return None
    try:
        path = _log_of(run)
        file = (str(path), path.stat().st_ino)
    except OSError:
        return None
    meter = _meters.get(run.pk)
    if meter is None or meter.log != file:
        meter = _meters[run.pk] = Meter(file, _reader(run))
    return meter


def _reader(run: Run) -> Reader:
    if run.agent is None:
        return SilentReader()
    try:
        return provider_for(run.agent).reader()
    except ProviderError:
        return SilentReader()


def _log_of(run: Run) -> Path:
    return paths.run_folder(run.pk) / "output.log"


def _read(run: Run, meter: Meter, limit: int) -> int:
    """Feed the reader what is new, up to the limit, and return how many bytes that was."""
    try:
        with processes.open_regular(_log_of(run)) as file:
            file.seek(meter.offset)
            chunk = file.read(limit)
    except OSError:
        return 0
    if chunk:
        meter.offset += len(chunk)
        meter.reader.feed(chunk)
    return len(chunk)


def forget(live: set[int]) -> None:
    """Drop the meters of runs that are no longer held."""
    for pk in set(_meters) - live:  # a thread that ends a run drops its meter, too
        _meters.pop(pk, None)


# --- Keeping ----------------------------------------------------------------------------------------------


def _keep(run: Run, report: Report) -> bool:
    """Write the report's figures into the run's row if they are more. Returns whether they changed."""
    tokens = Tokens(report.tokens_in, report.tokens_cached, report.tokens_out)
    said = report.cost if report.cost_known else None
    return _write(run, tokens, said, model=report.model, session=report.session_id)


def _write(run: Run, tokens: Tokens, said: Decimal | None, *, model: str = "", session: str = "") -> bool:
    """Write the figures, which never go down, into the run's row.

    Returns whether tokens or cost changed; False also if somebody else has the run.
    """
    minutes = _minutes(run)
    most = min(minutes * TOKENS_A_MINUTE, TOKENS_MAX)
    now = Tokens(
        max(run.tokens_in, min(tokens.read, most)),
        max(run.tokens_cached, min(tokens.cached, TOKENS_MAX)),
        max(run.tokens_out, min(tokens.written, most)),
    )
    cost, source = _cost(run, now, said, model)
    if cost is not None and cost > minutes * COST_A_MINUTE:
        cost, source = max(Decimal(minutes * COST_A_MINUTE), run.cost or Decimal(0)), BOUNDED
    changes: dict[str, Any] = {
        "tokens_in": now.read, "tokens_cached": now.cached, "tokens_out": now.written,
        "cost": cost, "cost_from": source,
        "model": run.model or model[:NAME_MAX], "session_id": session[:SESSION_MAX] or run.session_id,
    }  # fmt: skip
    changes = {name: value for name, value in changes.items() if getattr(run, name) != value}
    if not changes or not Run.objects.filter(pk=run.pk, fence=run.fence).update(**changes):
        return False
    for name, value in changes.items():
        setattr(run, name, value)
    return bool(changes.keys() & {"tokens_in", "tokens_cached", "tokens_out", "cost"})


def _minutes(run: Run) -> int:
    """Return the minutes that the run has lasted, the one that has begun included."""
    lasted = (run.ended_at or estimated_time()) - (run.started_at or run.queued_at)
    return max(lasted // timedelta(minutes=1), 0) + 1


def _cost(run: Run, tokens: Tokens, said: Decimal | None, model: str) -> tuple[Decimal | None, str]:
    """Return the run's cost and its source: the run's command, else the price list, else nobody knows."""
    is_said = run.cost_from == AGENT or (run.cost_from == BOUNDED and said is not None)
    if said is not None and said.is_finite() and said >= 0:
        said = min(said, COST_MAX).quantize(SMALLEST)
        return (max(said, run.cost) if is_said and run.cost is not None else said), AGENT
    if is_said:
        return run.cost, AGENT
    cost = price_list().cost(model or run.model, tokens)
    if cost is None and model and run.model:
        cost = price_list().cost(run.model, tokens)
    if cost is None:
        return run.cost, run.cost_from
    return (max(cost, run.cost) if run.cost is not None else cost), PRICES


# --- Caps -------------------------------------------------------------------------------------------------


def _over_cap(run: Run) -> caps.Reached | None:
    """Return the cap that a run at work has reached, or None; a run that has handed in is left alone."""
    return caps.by_run(run) if run.status in Run.WORKING else None


def _stop(run: Run, line: str, word: str) -> None:
    """Have the shim end the run. The reason goes into its row at once; `run_ends.end` asks about a cap."""
    live = Run.objects.live().filter(pk=run.pk, fence=run.fence).exclude(status=Run.Status.CLOSING)
    if not live.update(reason=line[:500]):
        return
    mark = paths.run_folder(run.pk) / "stop"
    if mark.exists():
        return
    with contextlib.suppress(OSError):
        processes.write_whole(mark, word.encode())


# --- Runs that are claimed --------------------------------------------------------------------------------


def take_usage(
    run: Run, *, tokens_in: int = 0, tokens_cached: int = 0, tokens_out: int = 0,
    cost: Decimal | None = None, model: str = "",
) -> str:  # fmt: skip
    """Keep what a pulled agent says it has used so far in this run; the figures never go down.

    If that reaches a cap, the run ends at once. Returns the reason, or an empty string.
    """
    _write(run, Tokens(max(tokens_in, 0), max(tokens_cached, 0), max(tokens_out, 0)), cost, model=model)
    reached = _over_cap(run)
    if reached is None or not run_ends.end(run, Run.Outcome.COST, reason=reached.line):
        return ""
    return reached.line
