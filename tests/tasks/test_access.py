"""Who may see and do what, by memberships alone."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest

from agents.api.principals import PullPrincipal, RunPrincipal
from tasks.access import (
    MAINTAIN,
    READ,
    RULE,
    may,
    my_projects,
    project_ids,
    projects_for,
    role_in,
    roles_of,
    tasks_for,
)
from tasks.models import Project
from tests.factories import create_agent, create_project, create_run, create_task, create_user

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


def test_a_request_reads_the_persons_projects_and_roles_in_one_query(
    ledger: Project, tom: User, otto: User, django_assert_num_queries: Any
) -> None:
    atlas = create_project("atlas", members={tom: "maintainer"})
    create_project("secret")
    for person, seen, maintained in (
        (tom, [atlas, ledger], {atlas.pk}),
        (otto, [], set()),
        (create_user("root", is_superuser=True), None, None),
    ):
        request = HttpRequest()
        request.user = person
        with django_assert_num_queries(1):
            found = my_projects(request)
            keys = project_ids(request, MAINTAIN)
            roles = [role_in(request, project.pk) for project in found]
        assert found == (list(Project.objects.order_by("name")) if seen is None else seen)
        assert keys == ({project.pk for project in found} if maintained is None else maintained)
        assert all(roles)
