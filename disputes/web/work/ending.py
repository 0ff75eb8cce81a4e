"""The page on which a project is ended: what is left, which exits are open, and why others are not."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.utils.functional import cached_property

from disputes import alerts
from disputes.completion import exits
from disputes.completion.endings import EndRequest
from disputes.models import Conflict
from disputes.protocol.completion.acknowledgement import DEMANDS, Gate, Leftover, gate_of, gates_for
from disputes.protocol.completion.closing import JUDGED, matrix
from disputes.protocol.completion.convergence import State
from disputes.protocol.completion.termination import Standing, left_over
from disputes.protocol.rounds.gaps import GapState
from disputes.sessions import finishing
from tasks.access import MAINTAIN, may
from tasks.models import Checkpoint, Project
from tasks.states import Severity

LATEST = 12  # how many checkpoints are shown
NAMED = 30  # how many undecided conflicts are


@dataclass(frozen=True, slots=True)
class LeftPoint:
    """Something that is left, and the reason that was typed for it."""

    code: str
    severity: str
    title: str
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class GateView:
    """One gate: its exact phrase, what was typed, and the points behind it."""

    name: str
    phrase: str  # empty where no point needs a reason of its own
    typed: str
    points: list[LeftPoint]


@dataclass(frozen=True, slots=True)
class Typed(EndRequest):
    """Everything that a person sent, kept so that a refusal loses nothing."""

    resume_reason: str = ""


@dataclass
class EndingPage:
    """A project and its possible exits."""

    project: Project
    user: Any
    typed: Typed = field(default_factory=Typed)

    @cached_property
    def may_end(self) -> bool:
        return may(self.user, self.project, MAINTAIN)

    @cached_property
    def standing(self) -> Standing:
        return exits.standing_of(self.project)

    @cached_property
    def offers(self) -> list[exits.OfferedEnd]:
        return exits.offers(self.project, self.standing)

    @property
    def convergence(self) -> str:
        """The state of the last checkpoint, and whether its warning still waits; "" before the first."""
        last = self.checkpoints[0] if self.checkpoints else None
        if last is None or last.number == 0:
            return ""
        is_warning = last.state == State.DIVERGENCE_WARNING
        if is_warning and self.standing.convergence is not State.DIVERGENCE_WARNING:
            return f"{last.get_state_display()}, and its warning was answered"
        return state_words(self.standing.convergence)

    severities = [severity.value for severity in Severity]

    @cached_property
    def matrix(self) -> list[tuple[str, list[int], int]]:
        """State, number of tasks of each severity, and their sum; states without a task are left out."""
        counts = matrix(self.standing.gaps)
        return [
            (state_words(state), [row[severity] for severity in Severity], sum(row.values()))
            for state, row in counts.items()
            if any(row.values())
        ]

    @property
    def shown_conflicts(self) -> list[Conflict]:
        return self.conflicts[:NAMED]

    @property
    def conflicts_more(self) -> int:
        return len(self.conflicts) - len(self.shown_conflicts)

    @cached_property
    def conflicts(self) -> list[Conflict]:
        """The undecided conflicts, those of the gravest disputes first."""
        pks = [int(each.code.removeprefix("C-")) for each in self.standing.conflicts]
        rows = Conflict.objects.filter(pk__in=pks).select_related("dispute__task__project")
        return sorted(rows, key=lambda row: (-row.dispute.severity_rank, row.pk))

    @cached_property
    def gates(self) -> list[GateView]:
        """What must be acknowledged before an early end, gravest first."""
        left = left_over(self.standing)
        return [
            self._gate(gate, [each for each in left if gate_of(each.severity) is gate])
            for gate in gates_for(left)
        ]

    def _gate(self, gate: Gate, left: Iterable[Leftover]) -> GateView:
        points = [
            LeftPoint(
                each.code, each.severity or "medium", each.title, self.typed.rationales.get(each.code, "")
            )
            for each in left
        ]
        return GateView(gate.value, DEMANDS[gate].phrase, self.typed.phrases.get(gate, ""), points)

    @cached_property
    def blockers(self) -> tuple[str, ...]:
        """What the program itself finds in the way; the points of the checklist are the maintainer's."""
        return exits.final_review(self.project, self.standing, [check.name for check in JUDGED])

    @property
    def checklist(self) -> list[tuple[str, str, bool]]:
        """The points that only a person can judge: name, words, and whether it was ticked."""
        return [(check.name, check.value, check.name in self.typed.checked) for check in JUDGED]

    @cached_property
    def unlanded(self) -> finishing.Unlanded | None:
        """What a session has accepted and not landed, or None."""
        return finishing.unlanded(self.project)

    @property
    def is_at_limit(self) -> bool:
        return self.standing.rounds >= self.standing.max_rounds

    @cached_property
    def alert(self) -> Conflict | None:
        """The alert that waits for an answer, or None."""
        return alerts.open_alerts(self.project).select_related("dispute").first()

    @cached_property
    def checkpoints(self) -> list[Checkpoint]:
        return list(self.project.checkpoints.standing().order_by("-number")[:LATEST])


STATE_WORDS = {
    GapState.BLOCKED_EXTERNAL: "Needs a person",
    GapState.USER_DEFERRED: "Put off",
    GapState.WONT_FIX: "Cancelled",
}


def state_words(state: GapState | State) -> str:
    """Return a state as people read it."""
    return STATE_WORDS.get(state) or state.value.replace("_", " ").capitalize()
