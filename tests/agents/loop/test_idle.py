"""When a loop that ends once nothing is left to do does end."""

from typing import Any

import pytest
from django.db import transaction

from agents.hosts.resident import Resident
from disputes.sessions import gaps
from tasks.models import Landing, Project, Task
from tests.rounds import document_project, gap_in, proposal, propose, review, tick, verdict

pytestmark = pytest.mark.django_db

A = "GAP-AUTH-001"


class LandingHost:
    """A host that lands the session in its first turn, and has nothing else to do."""

    def __init__(self, session: Task) -> None:
        self.session, self.turns = session, 0

    def step(self) -> bool:
        self.turns += 1
        if self.turns == 1:
            with transaction.atomic():
                Landing.objects.update(status=Landing.Status.LANDED)
                Task.objects.get(pk=self.session.pk).landed("a" * 40)
        return False

    def is_clearing_up(self) -> bool:
        return False

    def wait(self, seconds: float | None = None) -> None:
        assert self.turns < 10


def accepted(project: Project) -> Task:
    gap_in(project, A)
    session = review(propose(tick(project), proposal(A)), verdict("APPROVED", {A: "APPROVED"}))
    return review(session, verdict("APPROVED", {A: "APPROVED"}))


def test_a_loop_ends_only_after_a_turn_in_which_nothing_happened(monkeypatch: Any) -> None:
    """It ended with the landing of a session: its gaps were not resolved."""
    project = document_project()
    session = accepted(project)
    resident = Resident(web=False, until_idle=True, say=lambda text: None)
    monkeypatch.setattr(resident, "_watch", lambda: None)

    resident._loop(LandingHost(session))  # type: ignore[arg-type]

    gap = gaps.with_facts(project.tasks.gaps()).get()
    assert str(gaps.state_of(gap)) == "RESOLVED"
