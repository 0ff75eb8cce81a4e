"""The set-up page of a project: what is known of its target branch, what was tried, what people may do."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Right
from django.utils.functional import cached_property

from agents.models import Host, Trial
from disputes import alerts
from disputes.models import Conflict
from tasks import base
from tasks.access import MAINTAIN, RULE, require_role
from tasks.configuration.changing import configure
from tasks.database.clock import estimated_time
from tasks.database.locking import locked
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Project, Task

Base = Project.Base
OUTPUT = 6000  # characters of one trial's output
OUTPUT_LIVE = 2000
LATEST, EARLIER = 40, 10  # trials
SOON, LATER = 1, 5  # seconds until the page asks again: while something runs, and while nothing can
COLOURS = {
    Base.GREEN: "good", Base.NOTHING: "turn", Base.ACCEPTED: "turn", Base.RED: "bad", Base.BROKEN: "bad",
}  # fmt: skip


# --- What people may do -----------------------------------------------------------------------------------


def _try(project: Project, actor: Actor) -> str:
    base.try_again(project, actor=actor)
    return f"{project.branch} is being looked at again."


def _accept(project: Project, actor: Actor) -> str:
    base.accept_as_it_is(project, actor=actor)
    alerts.withdraw_base_card(project)
    return f"{project.target_branch} is accepted as it is. Only what is newly red counts."


def _find(project: Project, actor: Actor) -> str:
    task: Task = base.find_commands(project, actor=actor)
    alerts.withdraw_base_card(project)
    return f"{task.ref} asks a coder for the commands."


def _look_again(project: Project, actor: Actor) -> str:
    empty = {"prepare_command": "", "build_command": "", "test_command": "", "detect_commands": True}
    configure(project, empty, actor=actor)
    if project.base_state != Base.UNKNOWN:
        base.try_again(project, actor=actor)
    return "Commands are being looked for."


@dataclass(frozen=True, slots=True)
class Verb:
    """One button: who may press it, in which states of the branch, and what it does."""

    name: str
    label: str
    hint: str
    roles: frozenset[str]
    states: frozenset[str]
    act: Callable[[Project, Actor], str]


KNOWN = frozenset(Base.values) - {Base.TRYING}
VERBS = {
    verb.name: verb
    for verb in (
        Verb("try", "Try again", "The branch is fetched, and its commands run once more.", RULE, KNOWN, _try),
        Verb(
            "accept", "Accept as it is",
            "Work begins. What is red now does not count against anybody; what is newly red does.",
            RULE, frozenset({Base.RED}), _accept,
        ),
        Verb(
            "find", "Let the coder find the commands",
            "A coder gets the task to find them; what it finds is verified by running it.",
            RULE, frozenset({Base.RED, Base.BROKEN}), _find,
        ),
        Verb(
            "again", "Look for commands again",
            "The three commands are cleared, and what may fit is tried.", MAINTAIN, KNOWN, _look_again,
        ),
    )
}  # fmt: skip


def mark_of(project: Project) -> str:
    """Return a mark of the state a page showed, so that nobody acts on an outdated one."""
    return f"{project.base_state} {project.base_at.timestamp() if project.base_at else 0}"


def carry_out(project: Project, name: str, *, user: Any, role: str, mark: str) -> str:
    """Press a button and return what follows. Raises Refused: no_right, changed, wrong_state."""
    verb = VERBS[name]
    require_role(role, project, verb.roles, "do this")
    actor = Actor.person(user)
    with transaction.atomic():
        project = locked(Project.objects).get(pk=project.pk)
        check_shown(project, mark)
        if project.base_state not in verb.states:
            raise Refused(
                "wrong_state",
                f"{project.target_branch} is in another state: {project.get_base_state_display().lower()}.",
                "Reload the page and look at it again.",
            )
        return verb.act(project, actor)


def check_shown(project: Project, mark: str) -> None:
    """Raise Refused("changed") if the branch was looked at since the page was made."""
    if mark != mark_of(project):
        raise Refused(
            "changed",
            f"{project.target_branch} was looked at meanwhile: {project.get_base_state_display().lower()}.",
            "This page shows how it is now.",
        )


# --- What the page shows ----------------------------------------------------------------------------------


class SetupPage:
    """The state of the branch and its trials, in a constant number of queries."""

    def __init__(self, project: Project, role: str) -> None:
        self.project, self.role = project, role
        self.now = estimated_time()
        self.mark = mark_of(project)

    # --- The state ---

    @property
    def is_active(self) -> bool:
        return self.project.status == Project.Status.ACTIVE

    @property
    def is_settled(self) -> bool:
        """Whether the state of the branch is known, so nothing is being found out."""
        return self.project.base_state not in {Base.UNKNOWN, Base.TRYING}

    @cached_property
    def has_host(self) -> bool:
        """Whether a host is alive that could try the branch."""
        since = self.now - timedelta(seconds=settings.DURATIONS["lease"])
        return Host.objects.filter(seen_at__gte=since).exists()

    @property
    def renewed(self) -> int:
        """Seconds after which the page asks again; 0 if nothing is under way."""
        if self.is_settled or not self.is_active:
            return 0
        return LATER if self.project.trouble or not self.has_host else SOON

    @property
    def word(self) -> str:
        if self.project.trouble and not self.is_settled:
            return "Trouble"
        return self.project.get_base_state_display()

    @property
    def colour(self) -> str:
        if self.project.trouble and not self.is_settled:
            return "bad"
        return COLOURS.get(Base(self.project.base_state), "turn")

    @property
    def line(self) -> str:
        """The state of the branch in a sentence or two."""
        project = self.project
        if self.is_settled:
            return base.said(project)
        if project.trouble:
            return project.trouble
        if not self.is_active:
            return f"{project.name} is {project.status}: its branch is not tried."
        if not self.has_host:
            return "No host is up to look at it."
        if self.running:
            return f"{project.branch} is being tried before anybody works on it."
        return f"{project.branch} is being fetched."

    @property
    def since(self) -> datetime:
        return self.project.base_at or self.project.created_at

    @property
    def tried_again_at(self) -> datetime | None:
        until = self.project.trouble_until
        return until if self.project.trouble and until and until > self.now else None

    @property
    def red(self) -> dict[str, Any]:
        """What is red, or what was red and was accepted; empty in other states."""
        red = self.project.base_red or self.project.base_known
        return red if self.project.base_state in {Base.RED, Base.ACCEPTED} else {}

    @cached_property
    def card(self) -> Conflict | None:
        """The open card in the queue that asks about the branch."""
        return alerts.about_base(self.project).select_related("dispute").first()

    @cached_property
    def verbs(self) -> list[Verb]:
        """The buttons that this person may press now."""
        state = self.project.base_state
        fit = [verb for verb in VERBS.values() if state in verb.states and self.role in verb.roles]
        is_comparable = base.is_comparable(self.project.base_red)
        return [verb for verb in fit if verb.name != "accept" or is_comparable]

    @property
    def may_edit(self) -> bool:
        return self.role in MAINTAIN

    # --- The trials ---

    @cached_property
    def trials(self) -> list[Any]:
        """The trials of the last look at the branch, in order."""
        mine = self.project.trials.order_by("-pk")
        first = mine.filter(ordinal=1).values_list("pk", flat=True).first()
        if first is None:
            return []
        rows = mine.filter(pk__gte=first).defer("tail").annotate(end=Right("tail", OUTPUT))
        return list(rows.order_by("pk")[:LATEST])

    @property
    def passed_over(self) -> list[int]:
        """The numbers of likelier trials that could not run here, if a later one of the search was kept."""
        kept = next((each.ordinal for each in self.trials if each.is_kept), 0)
        is_search = any(each.is_kept and each.why == Trial.Why.SEARCH for each in self.trials)
        broken = [each.ordinal for each in self.trials if each.outcome == Trial.Outcome.BROKEN]
        return [number for number in broken if is_search and number < kept]

    @property
    def parts_of(self) -> list[int]:
        """The numbers of red trials of which the kept one, found in the same search, is only a part."""
        kept = next((each for each in self.trials if each.is_kept and each.why == Trial.Why.SEARCH), None)
        red = [each for each in self.trials if each.outcome == Trial.Outcome.RED]
        return [each.ordinal for each in red if kept and kept.is_part_of(each)]

    @cached_property
    def earlier(self) -> list[Any]:
        """The trials before the last look at the branch, newest first."""
        if not self.trials:
            return []
        rows = self.project.trials.filter(pk__lt=self.trials[0].pk).exclude(outcome=Trial.Outcome.SKIPPED)
        return list(rows.defer("tail").order_by("-pk")[:EARLIER])

    @cached_property
    def running(self) -> Any:
        """The trial under way, or None."""
        return next((each for each in self.trials if each.status == Trial.Status.RUNNING), None)

    @property
    def running_for(self) -> float:
        begun = self.running.started_at or self.running.queued_at
        return max((self.now - begun).total_seconds(), 0.0)

    @property
    def running_end(self) -> str:
        """The end of the running trial's output."""
        return str(self.running.end[-OUTPUT_LIVE:])
