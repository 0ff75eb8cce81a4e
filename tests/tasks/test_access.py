"""Who may see and do what, by memberships alone."""

import pytest
from django.contrib.auth.models import AnonymousUser, User

from agents.api.principals import PullPrincipal, RunPrincipal
from tasks.access import MAINTAIN, READ, RULE, may, projects_for, roles_of, tasks_for
from tasks.models import Project
from tests.factories import create_agent, create_run, create_task

pytestmark = pytest.mark.django_db


def test_a_role_counts_in_its_own_project(
    ledger: Project, lea: User, tom: User, vera: User, otto: User
) -> None:
    allowed = {
        person.username: [may(person, ledger, roles) for roles in (READ, RULE, MAINTAIN)]
        for person in (lea, tom, vera, otto)
    }

    assert allowed == {
        "lea": [True, True, True],
        "tom": [True, True, False],
        "vera": [True, False, False],
        "otto": [False, False, False],
    }


def test_nobody_and_who_was_switched_off_have_no_project(ledger: Project, lea: User) -> None:
    task = create_task(project=ledger)
    lea.is_active = False
    for person in (lea, AnonymousUser(), PullPrincipal(create_agent())):
        seen = (*projects_for(person), *tasks_for(person), *roles_of(person))
        assert seen == (), person
    assert task.project == ledger


def test_a_run_reads_its_own_task_and_has_no_other_right(ledger: Project) -> None:
    create_task(project=ledger)
    run = create_run(create_task(project=ledger))
    principal = RunPrincipal(run)

    assert list(tasks_for(principal)) == [run.task]
    for roles in (RULE, MAINTAIN):
        assert list(tasks_for(principal, roles)) == []
    assert list(projects_for(principal)) == []
