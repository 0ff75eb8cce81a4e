"""The stored log of a run: rows that are filled one after the other, so that there are few of them."""

from django.db.models import Expression, F, QuerySet, Value
from django.db.models.functions import Concat, Length

from agents.models import Output, Run
from tasks.database.prepared import Prepared, PreparedInsert

ROW = 16 * 1024  # characters up to which a row is filled; a longer piece is a row of its own


def add(run: Run, text: str) -> None:
    """Append text to the run's log: to its last row if it fits there, otherwise as a new row."""
    last = _last.rows(run.pk)
    seq, chars = last[0] if last else (-1, ROW)
    if chars + len(text) <= ROW:
        Output.objects.filter(run=run, seq=seq).update(text=Concat(F("text"), Value(text)))
    else:
        _new_rows.insert(Output(run=run, seq=seq + 1, text=text))


def _newest(run: Expression) -> QuerySet[Output]:
    rows = Output.objects.filter(run=run).order_by("-seq").annotate(chars=Length("text"))
    return rows.values_list("seq", "chars")[:1]


_last, _new_rows = Prepared(_newest), PreparedInsert(Output)
