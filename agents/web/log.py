"""The log of a run: its end, and what is new in it, without anything meant for a terminal."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Case, F, OuterRef, Subquery, TextField, Value, When
from django.db.models.functions import Coalesce, Concat, Length, Right, Substr

from agents.models import Output, Run
from tasks.database.clock import estimated_time
from tasks.spans import duration
from tasks.text.regex import regex

PIECES = 16  # rows in one answer
PIECE_END = 2_000  # characters of a row that an overview reads
SPAN = 2**20  # a mark is the number of a row times this, plus the characters already known of that row
FIRST_CHARS = 128 * 1024  # shown when a page opens
ESCAPE_MAX = 300
SILENT_SHARE = 0.25  # of the time after which a silent run is stopped; from then on pages mention it

# Colours and cursor moves; titles, which end with BEL or ST on the same line; two-character commands.
_STRING = rf"[\]PX^_][^\x07\x1b\n]{{0,{ESCAPE_MAX}}}"
_ESCAPES = regex(
    rf"\x1b(?:\[[0-?]{{0,{ESCAPE_MAX}}}[ -/]{{0,8}}[@-~]?|{_STRING}(?:\x07|\x1b\\)?|[ -/]{{1,4}}[0-~]|[0-~])?"
)
_UNFINISHED = regex(rf"\x1b(?:\[[0-?]{{0,{ESCAPE_MAX}}}[ -/]{{0,8}}|{_STRING}\x1b?)?\Z")
_RETURNS = regex(r"\r+\n?")  # a progress bar overwrites its line; here each state becomes a line
_UNUSUAL = regex(r"[^\x20-\x7e\n\t]+")  # rare, so that only little of a log is checked by character


def plain(text: str) -> str:
    """Return an agent's output without colours, cursor moves, control characters and direction marks."""
    return _UNUSUAL.sub(_shown, _RETURNS.sub("\n", _ESCAPES.sub("", text)))


def _shown(found: re.Match[str]) -> str:
    return "".join(char for char in found[0] if not unicodedata.category(char).startswith("C"))


def last_pieces(run: OuterRef, pieces: int) -> Concat:
    """Return a column with the end of the log, made of the ends of its last pieces.

    It is for the query that finds the run.
    """
    found = Output.objects.filter(run=run).order_by("-seq").values(end=Right("text", PIECE_END))
    ends = [Subquery(found[number : number + 1]) for number in reversed(range(pieces))]
    return Concat(*(Coalesce(end, Value("")) for end in ends))


def last_lines(text: str, lines: int) -> list[str]:
    """Return the last lines that are not blank."""
    return [line.rstrip() for line in plain(text).split("\n") if line.strip()][-lines:]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a log, ready to be shown."""

    text: str
    mark: int  # where it ends, to ask for what comes after it; -1 if nothing has come yet
    is_cut: bool = False  # something before it is not shown
    has_more: bool = False


def end_of(run: Run) -> Part:
    """Return the end of the log, with which a page opens."""
    pieces = Output.objects.filter(run=run).order_by("-seq")
    pieces = pieces.annotate(end=Right("text", FIRST_CHARS), chars=Length("text"))
    rows = list(pieces.values_list("seq", "end", "chars")[:PIECES])[::-1]
    if not rows:
        return Part("", -1)
    text, left = "", FIRST_CHARS
    for _, end, chars in reversed(rows):
        text, left = end[-left:] + text if left > 0 else text, left - chars
    is_cut = rows[0][0] > 0 or left < 0
    return Part(plain(_UNFINISHED.sub("", text)), rows[-1][0] * SPAN + rows[-1][2], is_cut=is_cut)


def after(run: Run, mark: int) -> Part:
    """Return what came after the mark; an escape split between two parts is not torn apart."""
    seq, known = divmod(mark, SPAN) if mark >= 0 else (-1, 0)
    begin = max(known - ESCAPE_MAX, 0)
    piece = Case(When(seq=seq, then=Substr("text", begin + 1)), default=F("text"), output_field=TextField())
    pieces = Output.objects.filter(run=run, seq__gte=seq).order_by("seq").annotate(chars=Length("text"))
    rows = list(pieces.annotate(piece=piece).values_list("seq", "piece", "chars")[: PIECES + 1])
    carried = ""
    if rows and rows[0][0] == seq:
        _, text, chars = rows[0]
        begun = _UNFINISHED.search(text[: known - begin])
        carried, rows[0] = begun[0] if begun else "", (seq, text[known - begin :], chars)
    shown = rows[:PIECES]
    if not any(text for _, text, _ in shown):
        return Part("", mark)
    text = carried + "".join(text for _, text, _ in shown)
    end = shown[-1][0] * SPAN + shown[-1][2]
    return Part(plain(_UNFINISHED.sub("", text)), end, has_more=len(rows) > len(shown))


# --- How a run is going -----------------------------------------------------------------------------------


def silence_of(run: Run, now: datetime | None = None) -> str:
    """Return for how long nothing was heard of a running agent or its host; empty if that is not long."""
    now, last = now or estimated_time(), run.last_output_at or run.started_at
    if run.status != Run.Status.RUNNING or last is None or run.is_pulled:
        return ""  # a pulled agent reports by its beats instead
    if run.lease_until and run.lease_until < now:  # nobody is there to stop it
        seconds = (now - run.lease_until).total_seconds() + settings.DURATIONS["lease"]
        return f"nothing heard of its host for {duration(seconds)}"
    seconds, limit = (now - last).total_seconds(), settings.DURATIONS["silence"]
    if seconds <= limit * SILENT_SHARE:
        return ""
    return f"silent for {duration(seconds)}, stopped at {duration(limit)}"


def state_of(run: Run, now: datetime | None = None) -> str:
    """Return one short line on how far the run is, or how it ended."""
    now = now or estimated_time()
    if run.status == Run.Status.ENDED:
        ago = f", {duration((now - run.ended_at).total_seconds())} ago" if run.ended_at else ""
        return f"{run.get_outcome_display() or 'Ended'}{ago}"
    if run.stop_requested:
        return "Being stopped"
    if silence := silence_of(run, now):
        return silence[0].upper() + silence[1:]
    if run.beaten_at is not None:
        seconds = max((now - run.beaten_at).total_seconds(), 0)
        return f"{run.get_status_display()} elsewhere, last beat {duration(seconds)} ago"
    last = run.last_output_at
    said = f", last output {duration((now - last).total_seconds())} ago" if last else ""
    return f"{run.get_status_display()}{said}"
