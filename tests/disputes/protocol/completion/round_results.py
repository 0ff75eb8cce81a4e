"""Several rounds one after the other, as the checkpoints of a project take them."""

from collections.abc import Collection, Sequence

from disputes.protocol.completion.convergence import ConvergenceSettings, RoundResult, after_round

Severities = Collection[str | None]


def history(
    rounds: Sequence[tuple[Severities, Severities]], settings: ConvergenceSettings | None = None
) -> tuple[RoundResult, ...]:
    """The state after each round, given what each settled and brought up, oldest first."""
    results: list[RoundResult] = []
    for resolved, new in rounds:
        results.append(after_round(resolved, new, results[-1].flat if results else 0, settings))
    return tuple(results)
