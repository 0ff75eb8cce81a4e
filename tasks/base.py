"""What is known of a project's target branch: the verbs that change it. Hosts try, people accept.

A coder begins only where the branch is known to be fit: green, nothing to run, or accepted as it is.
"""

from typing import Any

from django.db import transaction
from django.utils import timezone

from tasks.errors import Refused
from tasks.events import SYSTEM, Actor, record
from tasks.models import Project, Section, Task

Base = Project.Base
SETUP_TITLE = "Find the commands that build and test this project"
SETUP_BODY = """\
Nobody has found commands that build and test this repository from a fresh checkout.

Find them, and write them into the file `steroids.yaml` at the top of the repository:

    prepare: what brings the dependencies into a fresh environment; may be left out
    build: what builds; may be left out
    test: what tests

Each is one shell command, run by /bin/sh in a clean checkout, with an empty home and, for Python, a fresh
virtual environment first in PATH. Change nothing else. Your result is verified by running exactly these
commands on your commit, so try them from a clean checkout first. If the repository cannot be tested on this
machine, say what is missing in a dispute instead of weakening the tests.
"""


def set_base(project: Project, state: str, *, sha: str = "", problem: str = "", **changes: Any) -> bool:
    """Write what is known now, and an event where that is news. Whether the state is another one than before.

    An empty `sha` leaves the commit that it is about as it was.
    """
    with transaction.atomic():
        row = Project.objects.get(pk=project.pk)
        values = {"base_state": state, "base_at": timezone.now(), "base_problem": problem[:500], **changes}
        if sha:
            values["base_sha"] = sha
        Project.objects.filter(pk=project.pk).update(**values)
        is_news = row.base_state != state
        if is_news and state not in {Base.UNKNOWN, Base.TRYING}:
            record(
                project, f"base_{state}", note=problem, old=row.base_state, new=state,
                data={"sha": sha or row.base_sha},
            )  # fmt: skip
    for name, value in values.items():
        setattr(project, name, value)
    return is_news


def try_again(project: Project, *, actor: Actor = SYSTEM, why: str = "") -> None:
    """Have a host look at the branch anew: its head, its commands, what they say."""
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(
            base_state=Base.UNKNOWN, base_at=timezone.now(), trouble="", trouble_until=None, trouble_count=0
        )
        record(project, "base_to_try", actor=actor, note=why)
    project.base_state = Base.UNKNOWN


def accept_as_it_is(project: Project, *, actor: Actor, reason: str = "") -> None:
    """Only what is newly red counts from now on. Raises Refused: nothing_red, nothing_ran."""
    with transaction.atomic():
        row = Project.objects.get(pk=project.pk)
        if row.base_state == Base.BROKEN:
            raise Refused(
                "nothing_ran", f"Nothing could be run on {row.target_branch}: {row.base_problem}",
                "There is nothing to compare with. Mend what is missing, or edit the commands.",
            )  # fmt: skip
        changed = Project.objects.filter(pk=project.pk, base_state=Base.RED).update(
            base_state=Base.ACCEPTED, base_known=row.base_red, base_at=timezone.now()
        )
        if not changed:
            raise Refused(
                "nothing_red", f"{row.target_branch} is not red: {row.get_base_state_display().lower()}.",
                "Look at the project's set-up page.",
            )  # fmt: skip
        record(
            project, "base_accepted", actor=actor, note=reason or row.base_problem,
            data={"sha": row.base_sha, **row.base_red},
        )  # fmt: skip
    project.refresh_from_db()


def find_commands(project: Project, *, actor: Actor) -> Task:
    """A task that asks a coder for the commands; it may begin whatever the branch is like.

    Where one is under way already it is that one.
    """
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        unfinished = project.tasks.filter(origin=Task.Origin.SETUP).exclude(
            status__in=["completed", "cancelled", "deferred"]
        )
        if found := unfinished.first():
            return found
        section = project.sections.order_by("rank", "pk").first()
        if section is None:
            section = Section.objects.create(project=project, title="Tasks")
        last = project.tasks.order_by("-number").first()
        first = project.tasks.order_by("rank").first()
        task = Task.objects.create(
            project=project, section=section, number=(last.number if last else 0) + 1,
            rank=(first.rank - 1) if first else 0, title=SETUP_TITLE, body=SETUP_BODY,
            origin=Task.Origin.SETUP,
        )  # fmt: skip
        record(project, "created", actor=actor, task=task, new=task.status)
    return task


# What is known, in a sentence, for pages and terminals alike.
SAID = {
    Base.GREEN: "{branch} is green. Work can begin.",
    Base.NOTHING: "Nothing to build or test was found; work is not verified before it is reviewed.",
    Base.ACCEPTED: "{branch} is no worse than was accepted. Work can begin.",
    Base.RED: "{branch} is red: {problem}",
    Base.BROKEN: "{branch} cannot be built and tested here: {problem}",
}


def said(project: Project) -> str:
    """What is known of the target branch, in a sentence; empty while nothing is."""
    words = SAID.get(Base(project.base_state), "")
    return words.format(branch=project.target_branch, problem=project.base_problem)
