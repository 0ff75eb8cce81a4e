"""Work that is pushed although it is in dispute, where the project chose that."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.hosts import landing
from agents.hosts.branches import disputed_work
from agents.loop import orchestrator
from disputes import intake, opening, rulings
from disputes.models import Conflict
from disputes.protocol.reviews.review import read_review
from tasks.models import Event, Landing, Membership, Project, Submission, Task
from tests.agents.world import CODER, REVIEWER, World, git, hook, make_world  # noqa: F401

pytestmark = pytest.mark.django_db


def choose(world: World, **where: str) -> None:
    world.project.settings |= {"disputed_work": where, "test_command": "true"}
    world.project.save()


def disagree(submission: Submission, **kwargs: Any) -> Conflict:
    """The coder declines what the reviewer asked for; the task is held where that conflict holds."""
    task = Task.objects.select_related("project").get(pk=submission.task_id)
    values = {
        "kind": "disagreement", "origin": "disagree", "opened_as": "coder",
        "question": "Retries come at once", "severity": "high", "submission": submission,
        "reviewer_position": "Wait between tries.",
        "coder_position": "The server asks for it.", "actor": CODER,
    } | kwargs  # fmt: skip
    conflict = opening.open_conflict(task, **values)
    if conflict.effect == "hold" and task.status != "disputed":
        task.hold(actor=CODER, note=conflict.question)
    return conflict


def branches(world: World) -> dict[str, str]:
    """The remote's branches for disputed work, with their commits."""
    lines = git(
        world.remote.path, "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/disputed"
    )
    return dict(line.split() for line in lines.splitlines())


def test_held_work_goes_to_a_branch_of_its_own_where_the_project_says_so(
    world: World, tom: User, client: Client, django_assert_num_queries: Any
) -> None:
    Membership.objects.create(project=world.project, user=tom, role="triager")
    held = world.kept({"calls.py": "call()\n"})
    conflict = disagree(held)
    assert disputed_work.due() == []  # nobody chose it
    choose(world, high="branch")
    critical, other = world.kept({"a.py": "a\n"}), world.kept({"b.py": "b\n"})
    disagree(critical, severity="critical")
    disagree(other)
    disagree(other, question="It stores names", severity="medium", effect="hold")  # stays here
    with django_assert_num_queries(2):  # however many are held
        assert disputed_work.due() == [held]

    client.force_login(tom)
    refuses = hook(world.remote.path, "pre-receive", "echo not here >&2; exit 1")
    assert disputed_work.push(*disputed_work.due()) == ""
    assert disputed_work.due() == []  # it rests
    assert "could not be pushed" in client.get(f"/queue/{conflict.dispute.ref}/").content.decode()
    refuses.unlink()
    world.duration(backoff_max=0)
    branch = f"disputed/{held.task.ref}-{held.sha[:8]}"
    assert disputed_work.push(*disputed_work.due()) == branch
    assert branches(world) == {branch: held.sha}
    assert world.remote.head() == world.remote.first
    assert disputed_work.due() == []
    assert Event.objects.get(kind="pushed_aside").data == {"sha": held.sha, "branch": branch}
    for page in (f"/queue/{conflict.dispute.ref}/", f"/tasks/{held.task.ref}/"):
        assert branch in client.get(page).content.decode(), page

    assert Conflict.objects.get(pk=conflict.pk).is_open
    rulings.decide(Conflict.objects.get(pk=conflict.pk), "uphold_reviewer", user=tom, undo_seconds=0)
    task = Task.objects.get(pk=held.task_id)
    assert (task.status, task.round) == ("in_progress", held.round + 1)
    assert branches(world) == {branch: held.sha}


def test_disputed_work_lands_once_the_rest_is_through_but_never_what_is_about_security(world: World) -> None:
    choose(world, high="land")
    about_security = disagree(
        world.kept({"a.py": "a\n"}), question="A password is logged", opened_as="reviewer"
    )
    critical = disagree(world.kept({"b.py": "b\n"}), severity="critical", opened_as="reviewer")
    by_program = disagree(world.kept({"c.py": "c\n"}), opened_as="system")
    assert {each.effect for each in (about_security, critical, by_program)} == {"hold"}
    assert about_security.submission in disputed_work.due()
    assert critical.submission not in disputed_work.due()

    submission = world.kept({"calls.py": "call()\n"})
    Submission.objects.filter(pk=submission.pk).update(state="verified")
    submission.refresh_from_db()
    conflict = disagree(submission, opened_as="reviewer", coder_position="")
    assert (conflict.effect, Task.objects.get(pk=submission.task_id).status) == ("ship", "review")
    intake.take_review(submission, read_review({"findings": []}), approves=True, actor=REVIEWER)
    assert Task.objects.get(pk=submission.task_id).status == "disputed"
    orchestrator.tick_project(world.project.pk, orchestrator.Ticked())
    for _ in range(2):
        landing.advance(
            Landing.objects.select_related("project", "task__project", "submission").get(), "test-host"
        )
    assert world.remote.head() == submission.sha
    assert Conflict.objects.get(pk=conflict.pk).is_open
    assert branches(world) == {}


def test_without_that_choice_a_reviewers_dispute_holds_as_ever(world: World) -> None:
    Project.objects.update(settings={"policy": {"high": "ship"}})
    assert disagree(world.kept({"calls.py": "call()\n"}), opened_as="reviewer").effect == "hold"
