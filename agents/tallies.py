"""What the insights count of runs."""

from collections.abc import Iterator

from agents.models import Run
from disputes.protocol.figures import Measure, joined
from disputes.tallies import Row, Within, per_day, source


@source
def ended(within: Within) -> Iterator[Row]:
    """Runs, on the day they ended: how."""
    rows = Run.objects.filter(within.of("ended_at", "project"), status=Run.Status.ENDED)
    for day, project, role, outcome, n in per_day(rows, "ended_at", "project", "role", "outcome"):
        yield project, day, Measure.RUNS, joined(role, outcome), n
