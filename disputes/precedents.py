"""Rulings on similar conflicts of the same project: suggested, cited, and never applied by themselves.

A precedent is suggested and may be cited until it expires (`precedent_days`) or somebody retires it.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from disputes import staleness
from disputes.models import Conflict, Decision, Dispute, Precedent
from disputes.protocol.rulings.options import Option
from disputes.protocol.text.keywords import keywords
from disputes.protocol.text.similarity import Collection
from tasks.access import RULE, require
from tasks.configuration.policy import ProjectSettings
from tasks.database.clock import estimated_time
from tasks.database.prepared import Prepared
from tasks.errors import Invalid
from tasks.events import Actor
from tasks.models import Project

NEWEST = 500  # how many of a project's disputes are searched, newest first
POSITION_MAX = 600  # how many characters of each position are compared
ALIKE = 5  # how many are suggested for one conflict
MINIMUM = 0.3  # how similar a conflict must read to be shown
CLOSE = 0.5  # how similar it must read to support a ruling
CITED_MAX = 5  # how many precedents one ruling may cite
_LONG = ("reviewer_position", "coder_position", "coder_rationale", "alternative", "evidence")
_TEXTS = ("question", "reviewer_position", "coder_position")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A precedent on a similar conflict."""

    decision: Decision
    score: float  # how similar it reads, from 0 to 1

    @property
    def conflict(self) -> Conflict:
        return self.decision.conflict

    @property
    def is_close(self) -> bool:
        return self.score >= CLOSE


class _Ruling(NamedTuple):
    """A precedent in the form in which it is compared."""

    pk: int
    conflict: int
    kind: str
    question: str
    reviewer: str
    coder: str


def expired(projects: Iterable[Project] | None = None) -> Q:
    """Return a filter for precedents older than their project allows, in these projects or in all."""
    path = "conflict__dispute__project"
    return staleness.too_old("precedent_days", _days_of, "at", projects, path)


def _days_of(config: ProjectSettings) -> int | None:
    return config.precedent_days


def expires_at(precedent: Decision) -> datetime | None:
    """Return from when on the precedent is neither suggested nor cited, or None for never."""
    days = _days_of(precedent.conflict.dispute.project.config)
    return None if days is None else precedent.at + timedelta(days=days)


def holding(projects: Iterable[Project]) -> QuerySet[Precedent]:
    """Return the precedents of these projects that are neither expired nor retired."""
    ours = Precedent.objects.filter(conflict__dispute__project__in=projects, retired_at=None)
    return ours.exclude(expired(projects))


def for_conflict(conflict: Conflict) -> list[Suggestion]:
    """Return the rulings on the most similar conflicts, most similar first, in two queries."""
    return for_conflicts([conflict])[conflict.pk]


def for_conflicts(conflicts: Iterable[Conflict], limit: int = ALIKE) -> dict[int, list[Suggestion]]:
    """Return the same for many conflicts, by their keys, in one query per project and one more."""
    by_project: dict[Project, list[Conflict]] = defaultdict(list)
    for conflict in conflicts:
        by_project[conflict.dispute.project].append(conflict)
    found: dict[int, list[tuple[int, float]]] = {}
    for project, asked in by_project.items():
        kinds = {conflict.kind for conflict in asked}.intersection(Conflict.BETWEEN_TWO)
        rows = _rulings(project, kinds)
        found |= {conflict.pk: [] for conflict in asked}
        for kind in kinds:
            those = [conflict for conflict in asked if conflict.kind == kind]
            found |= _most_alike(those, [row for row in rows if row.kind == kind], limit)
    shown = {pk for pairs in found.values() for pk, _ in pairs}
    decisions = _with_keys(shown) if shown else {}
    return {
        conflict: [Suggestion(decisions[pk], score) for pk, score in pairs if pk in decisions]
        for conflict, pairs in found.items()
    }


def _with_conflicts(*keys: Any) -> QuerySet[Decision]:
    rows = Decision.objects.filter(pk__in=keys).select_related("conflict__dispute", "user", "policy_set_by")
    return rows.defer("before", *(f"conflict__{name}" for name in _LONG))


_of_one_conflict = Prepared(_with_conflicts, takes=ALIKE)


def _with_keys(keys: set[int]) -> dict[int, Decision]:
    """Return the rulings with these keys as a page shows them; the key 0 stands for none."""
    few = [*keys, *[0] * (ALIKE - len(keys))]
    rows = _of_one_conflict.found(*few) if len(few) == ALIKE else _with_conflicts(*keys)
    return {ruling.pk: ruling for ruling in rows}


def agreement(precedents: Iterable[Suggestion]) -> Option | None:
    """Return what all close precedents ruled, if that is A or B; None if there are none or they differ."""
    ruled = {precedent.decision.option for precedent in precedents if precedent.is_close}
    if ruled in ({Option.UPHOLD_REVIEWER.value}, {Option.UPHOLD_CODER.value}):
        return Option(ruled.pop())
    return None


def _ruled(project: Any, kind: Any, other: Any, since: Any) -> QuerySet[Precedent, Any]:
    """Return the precedents since then on two kinds of conflicts, with the words that are compared.

    Only the newest of the project's disputes that wait for nobody are searched.
    """
    settled = Dispute.objects.filter(project=project).exclude(status=Dispute.Status.OPEN)
    newest = settled.order_by("-opened_at", "-pk").values("pk")[:NEWEST]
    of_kind = Q(conflict__kind=kind) | Q(conflict__kind=other)
    rulings = Precedent.objects.filter(of_kind, conflict__dispute__in=newest, at__gte=since, retired_at=None)
    return rulings.order_by("-pk").values_list(
        "pk", "conflict", "conflict__kind", "conflict__question",
        Left("conflict__reviewer_position", POSITION_MAX), Left("conflict__coder_position", POSITION_MAX),
    )  # fmt: skip


_asked_again_and_again = Prepared(_ruled)


def _rulings(project: Project, kinds: set[str]) -> list[_Ruling]:
    """Return the precedents of one project on these kinds of conflicts, except expired and retired ones."""
    if not kinds:
        return []
    days = _days_of(project.config)
    since = datetime.min.replace(tzinfo=UTC) if days is None else estimated_time() - timedelta(days=days)
    found = _asked_again_and_again.rows(project.pk, min(kinds), max(kinds), since)
    return [_Ruling(*row) for row in found]


def _most_alike(
    conflicts: list[Conflict], rows: list[_Ruling], limit: int
) -> dict[int, list[tuple[int, float]]]:
    """Return for each conflict the keys of the most similar rulings, with how similar they read."""
    if not conflicts or not rows:
        return {conflict.pk: [] for conflict in conflicts}
    texts = [_words(row.question, row.reviewer, row.coder) for row in rows]
    collection = Collection(texts)
    found = {}
    for conflict in conflicts:
        own = _words(*(getattr(conflict, name)[:POSITION_MAX] for name in _TEXTS))
        scored = [
            (row.pk, score)
            for row, score in zip(rows, collection.scores(own), strict=True)
            if score >= MINIMUM and row.conflict not in {conflict.pk, conflict.previous_id}
        ]
        found[conflict.pk] = sorted(scored, key=lambda pair: (-pair[1], -pair[0]))[:limit]
    return found


@lru_cache(maxsize=4_096)
def _words(*texts: str) -> frozenset[str]:
    return keywords("\n".join(texts))


# --- Citing, retiring -------------------------------------------------------------------------------------


def cited(conflict: Conflict, names: str) -> list[Decision]:
    """Return the precedents that a ruling on this conflict names, as conflicts (C-9) or disputes (D-7).

    The names are separated by commas. Raises Refused: "no_precedent", "too_many".
    """
    wanted = list(dict.fromkeys(name.strip().upper() for name in names.split(",") if name.strip()))
    if len(wanted) > CITED_MAX:
        raise Invalid("too_many", f"A ruling names {CITED_MAX} precedents at most.", "Name the closest.")
    found = {each.pk: each for each in (_cited(conflict, name) for name in wanted)}
    return sorted(found.values(), key=attrgetter("pk"))


def _cited(conflict: Conflict, name: str) -> Decision:
    kind, _, number = name.partition("-")
    path = {"C": "conflict", "D": "conflict__dispute"}.get(kind)
    found: list[Precedent] = []
    if path and number.isdecimal() and len(number) < 18:
        known = holding([conflict.dispute.project]).exclude(conflict=conflict.pk)
        found = list(known.filter(**{path: int(number)}).select_related("conflict__dispute")[:2])
    if len(found) != 1:
        raise Invalid(
            "no_precedent",
            f"{name[:30]} is {'more than one precedent' if found else 'no precedent'} here.",
            "Name a conflict, such as C-9, whose ruling stands in this project and is neither expired nor "
            "retired.",
        )
    return found[0]


def may_be_cited(decision: Decision) -> bool:
    """Whether the ruling is a precedent that is neither expired nor retired."""
    return holding([decision.conflict.dispute.project]).filter(pk=decision.pk).exists()


def retire(precedent: Decision, *, user: Any) -> bool:
    """Stop suggesting the precedent and letting it be cited. Return False if it was already retired.

    Raises Refused("no_right").
    """
    return _set_retired(precedent, user, retired=True)


def restore(precedent: Decision, *, user: Any) -> bool:
    """Take the retirement back. Return False if the precedent was not retired.

    Raises Refused("no_right").
    """
    return _set_retired(precedent, user, retired=False)


def _set_retired(precedent: Decision, user: Any, *, retired: bool) -> bool:
    conflict = precedent.conflict
    project = conflict.dispute.project
    require(user, project, RULE, "retire precedents" if retired else "take up precedents again")
    at, by = (estimated_time(), user) if retired else (None, None)
    with transaction.atomic():
        rows = Decision.objects.filter(pk=precedent.pk, retired_at__isnull=retired)
        if not rows.update(retired_at=at, retired_by=by):
            return False
        event = "precedent_retired" if retired else "precedent_restored"
        conflict.record_event(event, actor=Actor.person(user), note=conflict.question)
    return True
