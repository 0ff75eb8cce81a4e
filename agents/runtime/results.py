"""Reading what a run left: its log into rows, a verification's result, its outcome."""

import contextlib
import shutil
from typing import Any

from django.db import transaction
from django.utils import timezone

from agents import judging, metering, pauses, retrying, runs
from agents.models import Output, Run
from agents.providers.reports import Report
from agents.runtime import ends, keeping, paths, verifying
from agents.runtime.masking import clean
from tasks.models import Submission

CHUNK = 64 * 1024
OUTPUT_ROWS_MAX = 16  # of CHUNK bytes each, 1 MiB a run
TAIL = 64 * 1024
REASONS = {
    "silent": Run.Outcome.SILENT,
    "wall": Run.Outcome.WALL,
    "timeout": Run.Outcome.WALL,
    "bytes": Run.Outcome.BYTES,
    "stopped": Run.Outcome.STOPPED,
    metering.STOP: Run.Outcome.COST,
    metering.GIVEN_UP: Run.Outcome.PROVIDER,
    "orphan": Run.Outcome.LOST,
    "refused": Run.Outcome.REFUSED,
}
# Outcomes that say less than the refusals of the run do.
UNSAID = {Run.Outcome.NOTHING, Run.Outcome.CRASH}


def copy_output(run: Run) -> None:
    """Append what is new in the run's log to its rows, up to their limit; whole lines where possible."""
    path = paths.run_folder(run.pk) / "output.log"
    copied = 0
    rows = list(run.outputs.order_by("seq").values_list("seq", flat=True))
    mark = paths.run_folder(run.pk) / "copied"
    with contextlib.suppress(OSError, ValueError):
        copied = int(mark.read_text())
    try:
        size = path.stat().st_size
    except OSError:
        return
    if size <= copied or len(rows) >= OUTPUT_ROWS_MAX:
        return
    with path.open("rb") as file:
        file.seek(copied)
        raw = file.read(CHUNK)
    cut = raw.rfind(b"\n") + 1
    raw = raw[:cut] if cut else raw
    with transaction.atomic():
        Output.objects.create(run=run, seq=len(rows), text=clean(raw))
        Run.objects.filter(pk=run.pk).update(last_output_at=timezone.now())
    mark.write_text(str(copied + len(raw)))


def copy_rest(run: Run) -> None:
    """The end of the log: everything that fits, else its tail with a line that says what is missing."""
    for _ in range(OUTPUT_ROWS_MAX):
        copy_output(run)
    path = paths.run_folder(run.pk) / "output.log"
    with contextlib.suppress(OSError, ValueError):
        copied = int((path.with_name("copied")).read_text())
        missing = path.stat().st_size - copied
        if missing > 0:
            text = f"\n[{max(missing - TAIL, 0)} bytes left out]\n" + clean(tail_of(run))
            Output.objects.create(run=run, seq=run.outputs.count(), text=text)


def tail_of(run: Run) -> bytes:
    """The last bytes of the log."""
    path = paths.run_folder(run.pk) / "output.log"
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL))
            return file.read(TAIL)
    except OSError:
        return b""


def last_words(run: Run, report: Report) -> str:
    """What the agent said last, as its command reports it; of one that reports nothing the end of its log."""
    if report.text:
        return report.text
    tail = tail_of(run)
    return clean(tail) if len(tail) < TAIL else f"[the beginning is left out]\n{clean(tail)}"


def finish(run: Run, left: dict[str, Any]) -> None:
    """The run's process has ended; its rows say what it achieved."""
    run.refresh_from_db()
    copy_rest(run)
    keep_first(run)
    report = metering.finish(run)
    reason = str(left.get("reason", ""))
    steps = left.get("steps", [])
    last = steps[-1] if steps else {"name": "", "code": 0}
    if run.role == Run.Role.VERIFIER:
        verifying.finish(run, left)
    elif run.submission_id or run.review_id or run.status == Run.Status.CLOSING:
        saved = "" if run.submission_id else keeping.salvage(run)  # of a coder that escalated or is blocked
        runs.end(run, Run.Outcome.HANDED_IN, exit_code=last.get("code"), salvage_sha=saved)
        pauses.after(run)
    else:
        _finish_without_hand_in(run, last, reason, report)
    remove_folder(run)


def keep_first(run: Run) -> None:
    """What a run handed in must be out of its clone before the clone goes."""
    submission = run.submission
    if submission is not None and submission.state == Submission.State.RECEIVED:
        keeping.keep(submission, run)


def _finish_without_hand_in(run: Run, last: dict[str, Any], reason: str, report: Report) -> None:
    code = last.get("code")
    outcome = REASONS.get(reason) or (Run.Outcome.NOTHING if code == 0 else Run.Outcome.CRASH)
    text = ""
    if outcome == Run.Outcome.CRASH:
        lines = clean(tail_of(run)).strip().splitlines()
        text = f"{last.get('name', 'agent')} ended with {code}: {lines[-1][:300] if lines else 'no output'}"
    elif outcome == Run.Outcome.COST:
        text = run.reason
    elif reason:
        text = f"Ended by the host: {reason}."
    trouble = ends.trouble_of(run.agent, report, last, reason, clean(tail_of(run)))
    if trouble:
        text = trouble.sentence
        outcome = Run.Outcome.PROVIDER if trouble.is_of_provider else outcome
        ends.pause_for(run, trouble.error, report)
    is_well = outcome == Run.Outcome.NOTHING and not trouble
    if is_well and judging.read_final_text(run, last_words(run, report)):
        outcome, text = Run.Outcome.HANDED_IN, "Its last message was read as its answer."
    if run.refusals:
        outcome = Run.Outcome.NOT_TAKEN if outcome in UNSAID else outcome
        text = f"{retrying.said(run)} {text}".strip()
    runs.end(
        run, outcome, reason=text, exit_code=code, salvage_sha=keeping.salvage(run),
        error_class=trouble.error if trouble else "",
    )  # fmt: skip


def remove_folder(run: Run) -> None:
    """The clone goes; the log and the exit stay for whoever looks on the host."""
    folder = paths.run_folder(run.pk)
    for name in ("clone", "home", "tmp", "env", "bin"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("context.json", "job.json", "lease"):
        (folder / name).unlink(missing_ok=True)
