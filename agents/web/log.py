"""The log of a run: its end, and what is new in it, without what only a terminal understands."""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Case, F, OuterRef, Subquery, TextField, Value, When
from django.db.models.functions import Coalesce, Concat, Length, Right, Substr
from django.utils import timezone

from agents.models import Output, Run
from tasks.spans import duration
from tasks.text.regex import regex

PIECES = 16  # rows of one answer
SPAN = 2**20  # a mark is the number of a row times this, and the characters known of it
FIRST_CHARS = 128 * 1024  # what a page begins with
ESCAPE_MAX = 300
SILENT_SHARE = 0.25  # of the time after which a silent run is stopped; from there on pages say so

# Colours and cursor moves; titles, which end with BEL or ST and stay on their line; two-character commands.
_STRING = rf"[\]PX^_][^\x07\x1b\n]{{0,{ESCAPE_MAX}}}"
_ESCAPES = regex(
    rf"\x1b(?:\[[0-?]{{0,{ESCAPE_MAX}}}[ -/]{{0,8}}[@-~]?|{_STRING}(?:\x07|\x1b\\)?|[ -/]{{1,4}}[0-~]|[0-~])?"
)
_UNFINISHED = regex(rf"\x1b(?:\[[0-?]{{0,{ESCAPE_MAX}}}[ -/]{{0,8}}|{_STRING}\x1b?)?\Z")
_RETURNS = regex(r"\r+\n?")  # a progress bar draws over its line; here each drawing is a line
_UNUSUAL = regex(r"[^\x20-\x7e\n\t]+")  # most of a log is none of it, and need not be looked at by character


def plain(text: str) -> str:
    """Output of an agent without colours, cursor moves, control marks and marks of direction."""
    return _UNUSUAL.sub(_shown, _RETURNS.sub("\n", _ESCAPES.sub("", text)))


def _shown(found: re.Match[str]) -> str:
    return "".join(char for char in found[0] if not unicodedata.category(char).startswith("C"))


def last_pieces(run: OuterRef, pieces: int, chars: int = 2000) -> Concat:
    """The end of the log so far, as a column of the query that finds the run: the ends of its last pieces."""
    found = Output.objects.filter(run=run).order_by("-seq").values(end=Right("text", chars))
    ends = [Subquery(found[number : number + 1]) for number in reversed(range(pieces))]
    return Concat(*(Coalesce(end, Value("")) for end in ends))


def last_lines(text: str, lines: int) -> list[str]:
    """The last lines that say something."""
    return [line.rstrip() for line in plain(text).split("\n") if line.strip()][-lines:]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a log, fit to be shown."""

    text: str
    mark: int  # where it ends, for whoever asks for what comes after; -1 at the very beginning
    is_cut: bool = False  # something stands before it that is not shown
    has_more: bool = False


def end_of(run: Run) -> Part:
    """The end of the log as a page begins with it."""
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
    """What came after the mark. An escape that one part begins and the next ends is not torn apart."""
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


# --- How it goes ------------------------------------------------------------------------------------------


def silent_for(run: Run, now: datetime | None = None) -> float | None:
    """Seconds since the last output of a running agent, once that is worth a word."""
    last = run.last_output_at or run.started_at
    if run.status != Run.Status.RUNNING or last is None or run.is_pulled:
        return None  # an agent elsewhere is heard of by its beats
    seconds = ((now or timezone.now()) - last).total_seconds()
    return seconds if seconds > settings.DURATIONS["silence"] * SILENT_SHARE else None


def state_of(run: Run, now: datetime | None = None) -> str:
    """One short line: how far it is, or how it ended."""
    now = now or timezone.now()
    if run.status == Run.Status.ENDED:
        ago = f", {duration((now - run.ended_at).total_seconds())} ago" if run.ended_at else ""
        return f"{run.get_outcome_display() or 'Ended'}{ago}"
    if run.stop_requested:
        return "Being stopped"
    if (seconds := silent_for(run, now)) is not None:
        limit = settings.DURATIONS["silence"]
        return f"Silent for {duration(seconds)}, stopped at {duration(limit)}"
    if run.beaten_at is not None:
        seconds = max((now - run.beaten_at).total_seconds(), 0)
        return f"{run.get_status_display()} elsewhere, last beat {duration(seconds)} ago"
    last = run.last_output_at
    said = f", last output {duration((now - last).total_seconds())} ago" if last else ""
    return f"{run.get_status_display()}{said}"
