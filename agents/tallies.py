"""The figures about runs that the insights show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date
from typing import Any

from django.db.models import Case, Count, Exists, F, OuterRef, QuerySet, Sum, Value, When
from django.db.models.functions import TruncDate

from agents.crew import attempts
from agents.models import Run
from agents.money import spending
from disputes.protocol.rulings.figures import Measure, joined
from disputes.tallies import Row, Source, Within, per_day
from tasks.models import Review, Submission

NAME_MAX = 180
PASSED, FAILED, OPEN = "passed", "failed", "open"


def ended(within: Within) -> Iterator[Row]:
    """Yield how many runs ended on each day, by project, role and outcome."""
    rows = Run.objects.filter(within.of("ended_at", "project"), status=Run.Status.ENDED)
    for day, project, role, outcome, n in per_day(rows, "ended_at", "project", "role", "outcome"):
        yield project, day, Measure.RUNS, joined(role, outcome), n


def spent(within: Within) -> Iterator[Row]:
    """Yield what each agent's runs cost and used on the day they ended.

    The cost is in thousandths of a dollar, the use in thousands of tokens. Runs of unknown cost are counted
    separately.
    """
    rows = Run.objects.filter(within.of("ended_at", "project"), status=Run.Status.ENDED)
    days = rows.exclude(role=Run.Role.VERIFIER).order_by().annotate(day=TruncDate("ended_at", tzinfo=UTC))
    sums = days.values_list("day", "project", "agent_label").annotate(
        known=Count("cost"), unknown=Count("pk", filter=spending.UNKNOWN), cost_sum=Sum("cost"),
        token_sum=Sum(F("tokens_in") + F("tokens_out")),
    )  # fmt: skip
    for day, project, label, known, unknown, cost, tokens in sums:
        name = label[:NAME_MAX] or "an agent"
        found = {
            "known": known, "unknown": unknown, "mills": round((cost or 0) * 1000),
            "kilotokens": round(tokens / 1000),
        }  # fmt: skip
        for what, n in found.items():
            if n:
                yield project, day, Measure.SPENT, joined(what, name), n


def climbed(within: Within) -> Iterator[Row]:
    """Yield the outcomes and costs of attempts on the steps of ladders, by the day of their end (LAD-5)."""
    days = _attempts(within).order_by().annotate(day=TruncDate("ended_at", tzinfo=UTC))
    rows = days.values_list("day", "project", "stage", "step", "verdict")
    costs: Counter[tuple[int, date, str]] = Counter()
    for day, project, stage, step, verdict, n, known, cost in rows.annotate(
        n=Count("pk"), known=Count("cost"), sum=Sum("cost")
    ):
        name = _name(stage, step)
        yield project, day, Measure.STEPS, joined(verdict, name), n
        costs[project, day, joined("known", name)] += known
        costs[project, day, joined("mills", name)] += round((cost or 0) * 1000)
    for (project, day, key), n in costs.items():
        if n:
            yield project, day, Measure.STEP_COST, key, n


def _attempts(within: Within) -> QuerySet[Any]:
    """Return the ended coder runs that a ladder chose, each with its verdict.

    Runs without a submission are left out if that was not their fault.
    """
    excused = [*attempts.NO_FAULT - {Run.Outcome.HANDED_IN}]
    made = Run.objects.filter(
        within.of("ended_at", "project"), status=Run.Status.ENDED, role=Run.Role.CODER
    ).exclude(step="")
    reviews = Review.objects.filter(submission=OuterRef("submission"))
    verified = {"submission__state": Submission.State.VERIFIED}
    return (
        made.exclude(submission__isnull=True, outcome__in=excused)
        .exclude(submission__isnull=True, outcome=Run.Outcome.HANDED_IN)
        .annotate(
            verdict=Case(
                When(submission__isnull=True, then=Value(FAILED)),
                When(submission__state__in=Submission.UNTAKEN, then=Value(FAILED)),
                When(Exists(reviews.filter(verdict=Review.Verdict.NEEDS_REVISION)), then=Value(FAILED)),
                When(Exists(reviews), then=Value(PASSED)),
                When(**verified, task__round__gt=F("submission__round"), then=Value(PASSED)),
                default=Value(OPEN),
            )
        )
    )


def _name(stage: str, step: str) -> str:
    return f"{stage} {step}".strip()[:NAME_MAX]


def sources() -> tuple[Source, ...]:
    """Return the sources of figures about agents and runs."""
    return ended, spent, climbed
