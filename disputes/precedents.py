"""What was ruled on similar conflicts of the same project. Suggested, never applied by itself."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left

from disputes.models import Conflict, Decision, Dispute
from disputes.protocol.rulings.options import Option
from disputes.protocol.text.keywords import keywords
from disputes.protocol.text.similarity import Collection

NEWEST = 500  # disputes of a project that are looked through
POSITION_MAX = 600  # characters of each position that are compared
MINIMUM = 0.3  # how like it a conflict must read to be shown
CLOSE = 0.5  # and to speak for a ruling
KINDS = (Conflict.Kind.DISAGREEMENT, Conflict.Kind.SILENCE)
_LONG = ("reviewer_position", "coder_position", "coder_rationale", "alternative", "evidence")
_TEXTS = ("question", "reviewer_position", "coder_position")


@dataclass(frozen=True, slots=True)
class Precedent:
    """A ruling that stands on a conflict that reads alike."""

    decision: Decision
    score: float  # how like it reads, 0 to 1

    @property
    def conflict(self) -> Conflict:
        return self.decision.conflict

    @property
    def is_close(self) -> bool:
        return self.score >= CLOSE


def for_conflict(conflict: Conflict, limit: int = 5) -> list[Precedent]:
    """The rulings on the most similar conflicts, the most similar first. Two queries."""
    return for_conflicts([conflict], limit)[conflict.pk]


def for_conflicts(conflicts: Iterable[Conflict], limit: int = 5) -> dict[int, list[Precedent]]:
    """The same for many, by the conflict's key: one query for each project, and one."""
    by_project: dict[int, list[Conflict]] = defaultdict(list)
    for conflict in conflicts:
        by_project[conflict.dispute.project_id].append(conflict)
    found: dict[int, list[tuple[int, float]]] = {}
    for project, asked in by_project.items():
        rows = list(_ruled(_decided_in(project)))
        for kind in Conflict.Kind:
            those = [conflict for conflict in asked if conflict.kind == kind]
            found |= _most_alike(those, [row for row in rows if row["conflict__kind"] == kind], limit)
    decisions = (
        Decision.objects.select_related(
            "conflict__finding", "conflict__dispute__task__project", "user", "policy_set_by"
        )
        .defer("before", *(f"conflict__{name}" for name in _LONG))
        .in_bulk({pk for pairs in found.values() for pk, _ in pairs})
    )
    return {
        conflict: [Precedent(decisions[pk], score) for pk, score in pairs if pk in decisions]
        for conflict, pairs in found.items()
    }


def agreement(precedents: Iterable[Precedent]) -> Option | None:
    """What all close precedents ruled, if that is A or B; None where there is none, or they differ."""
    ruled = {precedent.decision.option for precedent in precedents if precedent.is_close}
    if ruled in ({Option.UPHOLD_REVIEWER.value}, {Option.UPHOLD_CODER.value}):
        return Option(ruled.pop())
    return None


def _decided_in(project: int) -> QuerySet[Dispute]:
    """The newest disputes of the project that wait for nobody."""
    return (
        Dispute.objects.filter(project=project).exclude(status=Dispute.Status.OPEN).order_by("-pk")[:NEWEST]
    )


def _ruled(disputes: QuerySet[Dispute]) -> Iterable[dict[str, Any]]:
    """The rulings that stand in these disputes, with as much of the conflicts' words as is compared."""
    return (
        Decision.objects.standing()
        .filter(conflict__dispute__in=disputes.values("pk"), conflict__kind__in=KINDS)
        .exclude(conflict__followed=Conflict.Followed.REOPENED)
        .order_by("-pk")
        .values(
            "pk", "conflict", "conflict__kind", "conflict__question",
            reviewer=Left("conflict__reviewer_position", POSITION_MAX),
            coder=Left("conflict__coder_position", POSITION_MAX),
        )
    )  # fmt: skip


def _most_alike(
    conflicts: list[Conflict], rows: list[dict[str, Any]], limit: int
) -> dict[int, list[tuple[int, float]]]:
    """For each conflict the keys of the rulings, with how alike they read."""
    if not conflicts or not rows:
        return {conflict.pk: [] for conflict in conflicts}
    texts = [_words(row["conflict__question"], row["reviewer"], row["coder"]) for row in rows]
    collection = Collection(texts)
    found = {}
    for conflict in conflicts:
        own = _words(*(getattr(conflict, name)[:POSITION_MAX] for name in _TEXTS))
        scored = [
            (row["pk"], score)
            for row, score in zip(rows, collection.scores(own), strict=True)
            if score >= MINIMUM and row["conflict"] not in {conflict.pk, conflict.previous_id}
        ]
        found[conflict.pk] = sorted(scored, key=lambda pair: (-pair[1], -pair[0]))[:limit]
    return found


@lru_cache(maxsize=4_096)
def _words(*texts: str) -> frozenset[str]:
    return keywords("\n".join(texts))
