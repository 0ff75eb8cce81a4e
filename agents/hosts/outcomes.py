"""Reading what a run left: copying its log into rows, and recording a verification's result or an outcome."""

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db.models import Expression, Q, QuerySet

from agents import cli, judging, outputs
from agents.crew import pauses, refusals
from agents.hosts import paths, processes, provider_trouble, submissions
from agents.hosts.masking import clean, read
from agents.loop import run_ends
from agents.models import Run
from agents.money import metering
from agents.providers.reports import Report
from agents.verification import verifying
from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared, PreparedUpdate, refresh
from tasks.models import Submission
from tasks.text.regex import regex

CHUNK = 64 * 1024
LOG_MAX = 1024 * 1024  # bytes of a run's log that are kept from its beginning; of the rest, only the tail
TAIL = 64 * 1024
# A token or a multibyte character that the end of a piece may have cut off; matches always, perhaps nothing.
UNFINISHED = regex(rb"(?:stx_[A-Za-z0-9_-]{0,200}|stx|st|s|[\xc0-\xff][\x80-\xbf]{0,2})?\Z")
REASONS = {
    "silent": Run.Outcome.SILENT,
    "wall": Run.Outcome.WALL,
    "timeout": Run.Outcome.WALL,
    "bytes": Run.Outcome.BYTES,
    "processes": Run.Outcome.LIMITS,
    "memory": Run.Outcome.LIMITS,
    "disk": Run.Outcome.LIMITS,
    "files": Run.Outcome.LIMITS,
    "stopped": Run.Outcome.STOPPED,
    metering.STOP: Run.Outcome.COST,
    metering.GIVEN_UP: Run.Outcome.PROVIDER,
    "orphan": Run.Outcome.LOST,
    "refused": Run.Outcome.REFUSED,
}
TOO_MUCH = {
    "processes": "Ended by the host: it started too many processes.",
    "memory": "Ended by the host: it took too much memory.",
    "disk": "Ended by the host: it filled too much of the disk.",
    "files": "Ended by the host: it made too many files.",
}
# Outcomes that say less than the refusals of the run's hand-ins.
UNSAID = {Run.Outcome.NOTHING, Run.Outcome.CRASH}


def copy_output(run: Run) -> bool:
    """Append what is new in the run's log to its rows; return whether there was anything.

    Only the first LOG_MAX bytes are copied. Further output shows that the run is alive, and is not read
    before its end.
    """
    folder = paths.run_folder(run.pk)
    copied = _copied(folder)
    try:
        with processes.open_regular(folder / "output.log") as file:
            log = os.fstat(file.fileno())
            file.seek(copied)
            raw = file.read(max(min(CHUNK, LOG_MAX - copied), 0))
    except OSError:
        return False
    if log.st_size:
        _note_life(run, log.st_mtime)
    if raw := _whole(raw):
        outputs.add(run, clean(raw, run.agent))
        _set_copied(folder, copied + len(raw))
    return bool(raw)


def _note_life(run: Run, seconds: float) -> None:
    """Note when the log was last written to, but never a time in the future, should the clock be set back."""
    at = min(datetime.fromtimestamp(seconds, tz=UTC), estimated_time())
    if run.last_output_at is None or run.last_output_at < at:
        _living.write(run.pk, at, last_output_at=at)
        run.last_output_at = at


def _silent_since(pk: Expression, at: Expression) -> QuerySet[Run]:
    return Run.objects.filter(Q(last_output_at__isnull=True) | Q(last_output_at__lt=at), pk=pk)


_living = PreparedUpdate(_silent_since, "last_output_at")


def _whole(raw: bytes) -> bytes:
    """Return the whole lines; of a line without end, what may be shown without a torn character or token."""
    end = raw.rfind(b"\n") + 1
    return raw[:end] if end else raw[: UNFINISHED.search(raw).start()]  # type: ignore[union-attr]


def _copied(folder: Path) -> int:
    """Return how many bytes of the log are in the rows."""
    try:
        return max(int(processes.read_small(folder / "copied")), 0)
    except (OSError, ValueError):
        return 0


def _set_copied(folder: Path, copied: int) -> None:
    processes.write_whole(folder / "copied", str(copied).encode())


def copy_rest(run: Run) -> None:
    """Copy the rest of the log: all that fits, or its tail after a line that says how much is missing."""
    while copy_output(run):
        pass
    folder = paths.run_folder(run.pk)
    copied = _copied(folder)
    with contextlib.suppress(OSError), processes.open_regular(folder / "output.log") as file:
        size = os.fstat(file.fileno()).st_size
        begin = max(copied, size - TAIL)
        file.seek(begin)
        if raw := file.read(TAIL):
            said = f"\n[{begin - copied} bytes left out]\n" if begin > copied else ""
            outputs.add(run, said + clean(raw, run.agent))
            _set_copied(folder, begin + len(raw))


def tail_of(run: Run) -> bytes:
    """Return the last TAIL bytes of the log."""
    return read(paths.run_folder(run.pk) / "output.log", 0, None, TAIL)


def last_words(run: Run, report: Report) -> str:
    """Return the agent's last message as its command reports it, or else the end of its log."""
    if report.text:
        return report.text
    tail = tail_of(run)
    return ("" if len(tail) < TAIL else "[the beginning is left out]\n") + clean(tail, run.agent)


def finish(run: Run, left: dict[str, Any]) -> None:
    """Record what a run achieved whose process has ended; `left` is what its shim wrote at the end."""
    refresh(run)
    copy_rest(run)
    keep_first(run)
    report = metering.finish(run)
    reason = str(left.get("reason", ""))
    steps = left.get("steps", [])
    last = steps[-1] if steps else {"name": "", "code": 0}
    if run.role == Run.Role.VERIFIER:
        verifying.finish(run, left)
    elif run.submission_id or run.review_id or run.status == Run.Status.CLOSING:
        # A coder that escalated or is blocked may have left work.
        saved = "" if run.submission_id else submissions.salvage(run)
        run_ends.end(run, Run.Outcome.HANDED_IN, exit_code=last.get("code"), salvage_sha=saved)
        pauses.after(run)
    else:
        _finish_without_hand_in(run, last, reason, report)
    remove_folder(run)


def keep_first(run: Run) -> None:
    """Fetch what the run handed in before its clone is removed."""
    if run.submission_id and (submission := _received.first(run.submission_id)):
        submissions.keep(submission, run)


_received = Prepared(lambda pk: Submission.objects.filter(pk=pk, state=Submission.State.RECEIVED))


def _finish_without_hand_in(run: Run, last: dict[str, Any], reason: str, report: Report) -> None:
    code = last.get("code")
    outcome = REASONS.get(reason) or (Run.Outcome.NOTHING if code == 0 else Run.Outcome.CRASH)
    if outcome == Run.Outcome.CRASH and _missed_the_api(run, code):
        outcome = Run.Outcome.LOST
        text = "The API could not be reached from this run for too long."
    else:
        text = _why_it_ended(run, outcome, last, reason)
    trouble = provider_trouble.trouble_of(run.agent, report, last, reason, clean(tail_of(run), run.agent))
    if trouble:
        text = trouble.sentence
        outcome = Run.Outcome.PROVIDER if trouble.is_of_provider else outcome
        provider_trouble.pause_for(run, trouble, report)
    is_well = outcome == Run.Outcome.NOTHING and not trouble
    if is_well and judging.read_final_text(run, last_words(run, report)):
        outcome, text = Run.Outcome.HANDED_IN, "Its last message was read as its answer."
    if run.refusals:
        outcome = Run.Outcome.NOT_TAKEN if outcome in UNSAID else outcome
        text = f"{refusals.said(run)} {text}".strip()
    run_ends.end(
        run, outcome, reason=text, exit_code=code, salvage_sha=submissions.salvage(run),
        error_class=trouble.error if trouble else "",
    )  # fmt: skip


def _why_it_ended(run: Run, outcome: str, last: dict[str, Any], reason: str) -> str:
    """Return a sentence that says how the run ended, from its shim's word; empty if it just did nothing."""
    lines = clean(tail_of(run), run.agent).strip().splitlines()
    said = lines[-1][:300] if lines else "no output"
    step = last.get("name") or "agent"
    match outcome:
        case Run.Outcome.NOTHING:
            return ""
        case Run.Outcome.CRASH:
            return f"The {step} ended with {last.get('code')}: {said}"
        case Run.Outcome.REFUSED:
            return f"The {step} could not be started: {said}"
        case Run.Outcome.COST:
            return run.reason
    return TOO_MUCH.get(reason) or f"Ended by the host: {reason}."


def _missed_the_api(run: Run, code: int | None) -> bool:
    """Whether `steroids` could not reach the API in this run, which is no failure of its agent."""
    return code == cli.UNREACHABLE and b"steroids: The server cannot be reached" in tail_of(run)


PASSING = (
    "api.url", "bin", "cache", "clone", "context.json", "env", "filter", "gate", "group", "home", "job.json",
    "lease", "passwd", "prompt.md", "pytest.ini", "reports", "seen", "tmp",
)  # fmt: skip


def remove_folder(run: Run) -> None:
    """Remove what the run had around it; the log and the exit file stay for anyone on the host."""
    folder = paths.run_folder(run.pk)
    for name in PASSING:
        paths.remove(folder / name)
