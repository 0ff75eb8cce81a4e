"""Where the log of a run is kept: rows that are filled one after the other, so that there are few of them."""

from django.db.models import F, Value
from django.db.models.functions import Concat, Length

from agents.models import Output, Run

ROW = 16 * 1024  # characters up to which a row is filled; a longer piece is a row of its own


def add(run: Run, text: str) -> None:
    """Append to the log of the run: to its last row where that has room, else as a new one."""
    rows = Output.objects.filter(run=run).order_by("-seq").annotate(chars=Length("text"))
    seq, chars = rows.values_list("seq", "chars").first() or (-1, ROW)
    if chars + len(text) <= ROW:
        Output.objects.filter(run=run, seq=seq).update(text=Concat(F("text"), Value(text)))
    else:
        Output.objects.create(run=run, seq=seq + 1, text=text)
