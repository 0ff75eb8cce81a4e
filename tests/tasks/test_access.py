"""Who may see and do what: the cast, each role, and callers that are no person of a project."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User

from tasks.access import MAINTAIN, READ, RULE, may, projects_for, require, require_role, tasks_for
from tasks.errors import Refused
from tasks.models import Membership, Project, Task
from tests.cases import for_each
from tests.factories import create_project, create_task, create_user

pytestmark = pytest.mark.django_db

SETS = {"read": READ, "rule": RULE, "maintain": MAINTAIN}
# Who may do what in the ledger.
MATRIX = """
             read  rule  maintain
lea          yes   yes   yes
tom          yes   yes   no
vera         yes   no    no
otto         no    no    no
superuser    yes   yes   yes
inactive     no    no    no
retired      no    no    no
nobody       no    no    no
run          no    no    no
"""
HEADER, *LINES = [line.split() for line in MATRIX.strip().splitlines()]
CELLS = [
    (who, what, answer == "yes")
    for who, *answers in LINES
    for what, answer in zip(HEADER, answers, strict=True)
]


def run_of(task_pk: int) -> Any:
    """What `request.user` is for a run's token."""
    return SimpleNamespace(
        is_authenticated=True, is_active=True, is_superuser=False, pk=None, id=None, task_pk=task_pk
    )


@pytest.fixture
def callers(ledger: Project, lea: User, tom: User, vera: User, otto: User) -> dict[str, Any]:
    inactive = create_user("ines", is_active=False)
    Membership.objects.create(project=ledger, user=inactive, role="maintainer")
    return {
        "lea": lea,
        "tom": tom,
        "vera": vera,
        "otto": otto,
        "superuser": create_user("sue", is_superuser=True),
        "inactive": inactive,
        "retired": create_user("rita", is_superuser=True, is_active=False),
        "nobody": AnonymousUser(),
        "run": run_of(create_task(ledger).pk),
    }


@for_each(("who", "what", "allowed"), CELLS)
def test_each_of_the_cast_may_do_what_its_role_says(
    ledger: Project, callers: dict[str, Any], who: str, what: str, allowed: bool
) -> None:
    assert may(callers[who], ledger, SETS[what]) is allowed


@for_each(("who", "what", "allowed"), CELLS)
def test_lists_hold_what_may_be_done_and_no_more(
    ledger: Project, callers: dict[str, Any], who: str, what: str, allowed: bool
) -> None:
    assert (ledger in projects_for(callers[who], SETS[what])) is allowed


@for_each(("who", "what", "allowed"), [cell for cell in CELLS if cell[:2] != ("run", "read")])
def test_the_tasks_are_those_of_the_projects(
    ledger: Project, callers: dict[str, Any], who: str, what: str, allowed: bool
) -> None:
    task = create_task(ledger)
    assert (task in tasks_for(callers[who], SETS[what])) is allowed


@pytest.mark.parametrize("roles", SETS.values(), ids=SETS)
def test_a_part_in_one_project_is_none_in_another(ledger: Project, lea: User, roles: frozenset[str]) -> None:
    other = create_project("atlas")
    task = create_task(other)
    assert not may(lea, other, roles)
    assert other not in projects_for(lea, roles)
    assert task not in tasks_for(lea, roles)


def test_two_parts_do_not_mix(ledger: Project, lea: User) -> None:
    atlas = create_project("atlas", members={lea: "viewer"})
    assert set(projects_for(lea)) == {ledger, atlas}
    assert set(projects_for(lea, RULE)) == {ledger}


def test_a_lead_has_no_more_rights_than_the_role_gives(ledger: Project, vera: User) -> None:
    Membership.objects.filter(user=vera).update(is_lead=True)
    assert may(vera, ledger, READ)
    assert not may(vera, ledger, RULE)


def test_a_right_ends_with_the_membership(ledger: Project, tom: User) -> None:
    Membership.objects.filter(user=tom).delete()
    assert not may(tom, ledger, READ)
    assert not tasks_for(tom).exists()


def test_whoever_lacks_a_role_is_told_what_they_may_not_do_and_who_can_change_it(
    ledger: Project, lea: User, tom: User, vera: User, otto: User
) -> None:
    for user, roles, hint in (
        (otto, READ, "Ask a maintainer to make you a member."),
        (vera, RULE, "Ask a maintainer to make you a triager."),
        (tom, MAINTAIN, "Ask a maintainer to do it, or to make you one."),
    ):
        with pytest.raises(Refused) as refused:
            require(user, ledger, roles, "end the work")
        assert (refused.value.code, refused.value.status) == ("no_right", 403)
        assert (refused.value.message, refused.value.hint) == ("You may not end the work in Ledger.", hint)
        require(lea, ledger, roles, "end the work")
    with pytest.raises(Refused, match=r"You may not rule in Ledger\."):
        require_role("viewer", ledger, RULE, "rule")
    require_role("triager", ledger, RULE, "rule")


def test_a_task_is_found_by_its_name_and_nothing_else_is(ledger: Project) -> None:
    task = create_task(ledger, number=214)
    assert list(Task.objects.named("ledger-214")) == [task]
    for name in ("", "214", "ledger-", "ledger-x", "other-214", "ledger-²", "ledger-" + "2" * 30, "-214"):
        assert not Task.objects.named(name).exists(), name


def test_a_superuser_sees_all_projects(ledger: Project) -> None:
    assert set(projects_for(create_user("sue", is_superuser=True), MAINTAIN)) == {ledger}


def test_a_run_reads_its_own_task_only(ledger: Project) -> None:
    own, other = create_task(ledger), create_task(ledger)
    assert list(tasks_for(run_of(own.pk))) == [own]
    assert other not in tasks_for(run_of(own.pk))


@pytest.mark.parametrize("roles", [RULE, MAINTAIN], ids=["rule", "maintain"])
def test_a_run_has_no_right_of_a_person(ledger: Project, roles: frozenset[str]) -> None:
    task = create_task(ledger)
    assert not tasks_for(run_of(task.pk), roles).exists()
    assert not may(run_of(task.pk), ledger, roles)


def test_each_right_includes_the_smaller_ones() -> None:
    assert MAINTAIN < RULE < READ
    assert set(Membership.Role.values) == READ


def test_a_right_costs_one_query(ledger: Project, tom: User, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        may(tom, ledger, RULE)
