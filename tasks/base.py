"""What is known of a project's target branch, and the functions that change it. Hosts try, people accept.

A coder begins only if the branch is known to be fit: it is green, has nothing to run, or was accepted as it
is.
"""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Max, Min

from tasks.base_state import set_base, try_again  # noqa: F401 - belong to this module, but a setting changes them too
from tasks.configuration.changing import configure
from tasks.database.clock import estimated_time
from tasks.database.locking import locked
from tasks.errors import Refused
from tasks.events import Actor
from tasks.models import Project, Section, Task
from tasks.models.event import record

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


def accept_as_it_is(project: Project, *, actor: Actor, reason: str = "") -> None:
    """Accept the red target branch as it is: from then on, only tests that are newly red count.

    The commands that were found become the project's settings. Raises Refused("nothing_ran") if the commands
    could not be run, "not_comparable" if nothing tells which tests are red, "nothing_red" if the branch is
    not red.
    """
    with transaction.atomic():
        row = Project.objects.get(pk=project.pk)
        if row.base_state == Base.BROKEN:
            raise Refused(
                "nothing_ran", f"Nothing could be run on {row.target_branch}: {row.base_problem}",
                "There is nothing to compare with. Mend what is missing, or edit the commands.",
            )  # fmt: skip
        if row.base_state == Base.RED and not is_comparable(row.base_red):
            raise Refused(
                "not_comparable", f"Nothing tells which tests are red: {row.base_problem}",
                "Nobody could say later what is newly red. Edit the commands so that the tests run, or leave "
                "out the one that is red.",
            )  # fmt: skip
        changed = Project.objects.filter(pk=project.pk, base_state=Base.RED).update(
            base_state=Base.ACCEPTED, base_known=row.base_red, base_at=estimated_time()
        )
        if not changed:
            raise Refused(
                "nothing_red", f"{row.target_branch} is not red: {row.get_base_state_display().lower()}.",
                "Look at the project's set-up page.",
            )  # fmt: skip
        if found := row.base_red.get("settings"):
            configure(project, found, actor=actor, is_tried=True)
        record(
            project, "base_accepted", actor=actor, note=reason or row.base_problem,
            data={"sha": row.base_sha, "failed": row.base_red.get("failed", [])},
        )  # fmt: skip
    project.refresh_from_db()


def may_be_accepted(project: Project) -> bool:
    """Whether `accept_as_it_is` would accept the branch in its present state."""
    return project.base_state == Base.RED and is_comparable(project.base_red)


def is_comparable(red: Mapping[str, Any]) -> bool:
    """Whether later runs can be compared with this red run: it names or counts the tests that are red."""
    return bool(red.get("failed") or red.get("failed_count"))


def find_commands(project: Project, *, actor: Actor) -> Task:
    """Return a task that asks a coder to find the commands; it may begin whatever the state of the branch.

    Returns the unfinished task of this kind if there is one, and otherwise creates it.
    """
    with transaction.atomic():
        locked(Project.objects).get(pk=project.pk)
        unfinished = project.tasks.filter(origin=Task.Origin.SETUP).exclude(
            status__in=["completed", "cancelled", "deferred"]
        )
        if found := unfinished.first():
            return found
        section = project.sections.order_by("rank", "pk").first()
        if section is None:
            section = Section.objects.create(project=project, title="Tasks")
        known = project.tasks.aggregate(last=Max("number", default=0), first=Min("rank", default=1))
        task = Task.objects.create(
            project=project, section=section, number=known["last"] + 1,
            rank=known["first"] - 1, title=SETUP_TITLE, body=SETUP_BODY, origin=Task.Origin.SETUP,
        )  # fmt: skip
        record(project, "created", actor=actor, task=task, new=task.status)
    return task


IS = {
    Base.UNKNOWN: "is not tried yet",
    Base.TRYING: "is being tried",
    Base.RED: "is red",
    Base.BROKEN: "cannot be run here",
}


def holds_back(project: Project) -> bool:
    """Whether the state of the target branch keeps every coder of the project from beginning."""
    return project.status == Project.Status.ACTIVE and project.base_state not in Project.FIT


def keeps_waiting(project: Project) -> str:
    """Return in one line what keeps every coder of the project from beginning; empty if nothing does."""
    return project.trouble or unfit(project)


def unfit(project: Project) -> str:
    """Return in a few words why nobody works on the target branch, such as "main is red", or ""."""
    return f"{project.branch} {IS[Base(project.base_state)]}" if holds_back(project) else ""


# What is known of the branch, as a sentence for pages and terminals alike.
SAID = {
    Base.GREEN: "{branch} is green. Work can begin.",
    Base.NOTHING: "Nothing to build or test was found; work is not verified before it is reviewed.",
    Base.ACCEPTED: "{branch} is no worse than was accepted. Work can begin.",
    Base.RED: "{branch} is red: {problem}",
    Base.BROKEN: "{branch} cannot be built and tested here: {problem}",
}


def said(project: Project) -> str:
    """Return what is known of the target branch as a sentence; empty if it has not been tried yet."""
    words = SAID.get(Base(project.base_state), "")
    return words.format(branch=project.branch, problem=project.base_problem)
