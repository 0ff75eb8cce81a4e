"""The admin: every page answers, memberships decide, machines' rows are read-only, verbs move tasks."""

import re
import subprocess
import sys
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agents.hosts import reconciler as host
from agents.hosts.git.commands import GitError
from agents.models import Host, Output, Prompt, Run, Token, token_hash
from disputes.models import Conflict, Dispute
from steroidsweb import urls  # noqa: F401  (with the addresses the admins are loaded)
from steroidsweb.accounts import invitations
from tasks.admin import base
from tasks.models import (
    Comment,
    Dependency,
    Event,
    Membership,
    Project,
    Section,
    Submission,
    Task,
)
from tests.asking import as_user
from tests.cases import for_each
from tests.factories import (
    create_agent,
    create_finding,
    create_host,
    create_project,
    create_review,
    create_run,
    create_section,
    create_submission,
    create_task,
    create_token,
    create_user,
    sha,
)
from tests.filling import fill
from tests.steroidsweb.setting_inputs import setting_inputs
from tests.steroidsweb.silence import silent

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(db: Any) -> User:
    return create_user("root", is_superuser=True)


MODELS = {model._meta.label_lower: model for model in admin.site._registry}
READ_ONLY = [
    "tasks.membership", "tasks.dependency", "tasks.submission", "tasks.bundle", "tasks.verification",
    "tasks.rollback", "tasks.checkpoint", "tasks.landing", "tasks.review", "tasks.finding", "tasks.answer",
    "tasks.event", "disputes.dispute", "disputes.conflict", "disputes.decision", "disputes.flag",
    "disputes.opinion", "disputes.heuristicscore", "agents.run", "agents.output", "tasks.idempotency",
]  # fmt: skip
SYSTEM = [
    "agents.agent", "agents.host", "tasks.idempotency", "auth.user", "django_q.schedule",
    "django_q.success", "django_q.failure", "django_q.ormq",
]  # fmt: skip


def page(label: str, view: str, *args: Any) -> str:
    return reverse(f"admin:{label.lower().replace('.', '_')}_{view}", args=args)


# --- Every page ---------------------------------------------------------------------------------------------


FRESH = """
import django; django.setup()
from django.contrib import admin
from steroidsweb.apps import check_pages
before = len(admin.site._registry)
print(before, check_pages(None), len(admin.site._registry) > 20)
"""


def test_a_fresh_process_loads_no_page_and_its_check_looks_at_all_of_them() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    assert done.stdout == "0 [] True\n"


def test_every_model_of_the_program_has_an_admin() -> None:
    from django.apps import apps

    labels = {model._meta.label for model in MODELS.values()}
    for app in ("tasks", "disputes", "agents"):
        missing = {model._meta.label for model in apps.get_app_config(app).get_models()} - labels
        # Told elsewhere: on pages, by notifications, as insights, as submissions, by links that go on.
        elsewhere = {
            "agents.Prompt", "tasks.Notice", "disputes.Reminder", "disputes.Follow", "disputes.Tally",
            "disputes.Proposal", "disputes.CountedUntil", "agents.PullBundle", "agents.Trial",
            "tasks.Seal", "tasks.FollowedTodo", "tasks.FormerName",
        }  # fmt: skip
        assert missing <= elsewhere


def test_a_list_costs_as_many_queries_for_six_rows_as_for_two(client: Client, root: User) -> None:
    as_user(client, root)
    project = create_project("ledger")
    counts: dict[str, list[int]] = {label: [] for label in MODELS}
    for seeds in (range(2), range(2, 6)):
        for seed in seeds:
            fill(project, seed, root)
        for label, costs in counts.items():
            cache.clear()
            with CaptureQueriesContext(connection) as queries:
                response = client.get(page(label, "changelist"))
            assert response.status_code == 200, label
            costs.append(len(queries))
    assert {label: costs for label, costs in counts.items() if costs[0] != costs[1]} == {}


def test_every_column_that_is_to_lead_to_its_row_does(rf: RequestFactory, root: User) -> None:
    request = rf.get("/")
    request.user = root
    for model, shown in admin.site._registry.items():
        columns = shown.get_list_display(request)
        links = shown.get_list_display_links(request, columns) or ()
        assert set(links) <= set(columns), f"{model.__name__} names links that are no columns"


def test_a_page_says_what_it_lists_or_adds(client: Client, root: User) -> None:
    as_user(client, root)
    for label, said, offered in (
        ("tasks.project", "Projects", "project"),
        ("agents.agent", "Agents", "agent"),
        ("disputes.decision", "Decisions", ""),  # which no form makes
    ):
        html = client.get(page(label, "changelist")).content.decode()
        assert " ".join(html[html.index("<title>") :].split()).startswith(f"<title> {said} | "), label
        assert f"No {said.lower()} yet" in html
        assert (f"Add {offered}" in html) is bool(offered), label
        narrowed = client.get(page(label, "changelist"), {"q": "zzz"}).content.decode()
        assert f"No {said.lower()} match" in narrowed
        assert ("Show all" in html, "Show all" in narrowed) == (False, True)
        if offered:
            added = client.get(page(label, "add")).content.decode()
            heading = re.sub(r"<[^>]+>|chevron_right", " ", re.search(r"<h1.*?</h1>", added, re.S)[0])
            assert heading.split() == [said, "Add", offered]
            assert "addlink" not in added, "who adds one is not offered to begin anew"


@pytest.fixture
def filled(ledger: Project, root: User) -> Project:
    """A project with a row of every model."""
    fill(ledger, 1, root)
    return ledger


@for_each("label", MODELS)
def test_every_list_can_be_searched(label: str, client: Client, filled: Project, root: User) -> None:
    as_user(client, root)
    with silent():
        found = client.get(page(label, "changelist"), {"q": "1"})
    assert found.status_code == 200
    assert len(found.context_data["cl"].result_list) <= found.context_data["cl"].result_count


@pytest.mark.slow
@for_each("label", MODELS)
def test_every_filter_and_column_can_be_used(label: str, client: Client, filled: Project, root: User) -> None:
    as_user(client, root)
    html = client.get(page(label, "changelist")).content.decode()
    links = set(re.findall(r'href="(\?[^"]+)"', html))
    with silent():  # in words it says what it said above, but for the filters
        for link in links:
            answer = client.get(page(label, "changelist") + link.replace("&amp;", "&"))
            assert answer.status_code == 200, link
            rows = answer.context_data["cl"]
            assert all(list(each.choices(rows)) for each in rows.filter_specs), link


def test_a_task_page_costs_the_same_with_two_dependencies_as_with_six(
    client: Client, root: User, ledger: Project
) -> None:
    as_user(client, root)
    task = create_task(ledger)
    counts = []
    for label, pk in (("tasks.task", task.pk), ("tasks.project", ledger.pk)):
        client.get(page(label, "change", pk))  # what is remembered is asked for once
    for number in (2, 4):
        for _ in range(number):
            Dependency.objects.create(task=task, on=create_task(ledger))
            Membership.objects.create(project=ledger, user=create_user(), role="viewer")
        for label, pk in (("tasks.task", task.pk), ("tasks.project", ledger.pk)):
            cache.clear()
            with CaptureQueriesContext(connection) as queries:
                assert client.get(page(label, "change", pk)).status_code == 200
            counts.append(len(queries))
    assert counts[:2] == counts[2:]


# --- Who sees what ------------------------------------------------------------------------------------------

SCOPED = ["tasks.project", "tasks.section", "tasks.task", "tasks.comment", *READ_ONLY[:-1]]


@pytest.fixture
def secret(root: User) -> Project:
    """A project of others, with a row of every model."""
    project = create_project("secret")
    fill(project, 2, root)
    return project


@for_each("label", SCOPED)
def test_a_viewer_sees_the_rows_of_her_projects_and_no_other(
    label: str, client: Client, filled: Project, secret: Project, vera: User
) -> None:
    as_user(client, vera)
    response = client.get(page(label, "changelist"))
    assert response.status_code == 200
    assert response.context["cl"].result_count == _rows_of(label, filled)
    assert b"Secret" not in response.content
    assert b"secret-" not in response.content


def _rows_of(label: str, project: Project) -> int:
    model_admin = next(a for m, a in admin.site._registry.items() if m._meta.label_lower == label)
    path: str = model_admin.project_path  # type: ignore[attr-defined]
    key = "pk" if path == "pk" else f"{path}__pk"
    return model_admin.model._default_manager.filter(**{key: project.pk}).count()


@for_each("label", SCOPED)
def test_an_outsider_is_told_nothing(
    label: str, client: Client, filled: Project, otto: User, vera: User
) -> None:
    row = MODELS[label]._default_manager.first()
    as_user(client, otto)
    with silent():
        assert client.get(page(label, "changelist")).status_code == 403
        assert client.get(page(label, "change", row.pk)).status_code == 404
        Membership.objects.create(project=create_project("elsewhere"), user=otto, role="maintainer")
        assert client.get(page(label, "changelist")).context_data["cl"].result_count <= 1
        assert client.get(page(label, "change", row.pk)).status_code == 404
        assert client.get(page(label, "history", row.pk)).status_code == 404


@for_each("label", ["tasks.project", "tasks.section", "tasks.task", "tasks.comment"])
def test_a_viewer_reads_and_cannot_change(label: str, client: Client, filled: Project, vera: User) -> None:
    row = MODELS[label]._default_manager.first()
    as_user(client, vera)
    response = client.get(page(label, "change", row.pk))
    assert response.status_code == 200
    assert b'name="_save"' not in response.content
    assert client.post(page(label, "change", row.pk), {"title": "Mine"}).status_code == 403
    assert client.get(page(label, "add")).status_code == 403
    assert client.post(page(label, "delete", row.pk), {"post": "yes"}).status_code == 403


MACHINES = [
    *READ_ONLY, "django_q.schedule", "django_q.success", "django_q.failure", "django_q.ormq",
    "steroidsweb.auditentry", "agents.providerpause",
]  # fmt: skip


@for_each("label", MACHINES)
def test_what_machines_wrote_cannot_be_added_changed_or_deleted(
    label: str, client: Client, filled: Project, root: User
) -> None:
    """A schedule least of all, for it would call any function."""
    row = MODELS[label]._default_manager.first()
    before = MODELS[label]._default_manager.filter(pk=row.pk).values().get()
    as_user(client, root)
    typed = {"name": "tick", "func": "os.system"}
    chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    with silent():
        assert client.get(page(label, "add")).status_code == 403
        for view, of in (("add", ()), ("change", (row.pk,))):
            assert client.post(page(label, view, *of), typed).status_code == 403
        assert client.post(page(label, "delete", row.pk), {"post": "yes"}).status_code == 403
        client.post(page(label, "changelist"), chosen)
    assert MODELS[label]._default_manager.filter(pk=row.pk).values().get() == before


@for_each("label", SYSTEM)
def test_what_concerns_the_installation_is_for_superusers(
    label: str, client: Client, filled: Project, lea: User
) -> None:
    from django.contrib.auth.models import Permission

    lea.user_permissions.set(Permission.objects.all())
    as_user(client, lea)
    with silent():
        assert client.get(page(label, "changelist")).status_code == 403


def test_a_choice_offers_only_what_the_person_may_use(client: Client, ledger: Project, lea: User) -> None:
    mine, hidden = create_task(ledger, title="Mine"), create_task(create_project("secret"), title="Hidden")
    as_user(client, lea)
    asked = {"app_label": "tasks", "model_name": "dependency", "field_name": "on", "term": ""}
    names = [row["text"] for row in client.get("/admin/autocomplete/", asked).json()["results"]]
    assert str(mine) in names
    assert str(hidden) not in names


def test_a_crafted_key_in_a_form_names_no_row(client: Client, ledger: Project, lea: User) -> None:
    as_user(client, lea)
    hidden, task = create_section(create_project("secret")), create_task(ledger)
    rows = {"dependencies-TOTAL_FORMS": 1, "dependencies-INITIAL_FORMS": 0}
    for key in ("abc", "9" * 30, "-1", "", "\x00", "²", str(hidden.pk)):
        for path, form in (
            ("section/add/", {"project": ledger.pk, "title": "New", "parent": key, "depends_on": [key]}),
            (f"task/{task.pk}/change/", {"title": "New", "section": key, "dependencies-0-on": key} | rows),
        ):
            answer = client.post(f"/admin/tasks/{path}", form)
            assert answer.status_code == 200, (path, key)
            if key:
                said = re.search("valid (choice|value)|Null characters", answer.content.decode())
                assert said, (path, key)
    assert not Section.objects.filter(title="New").exists()


def test_an_outsider_gets_no_choices(client: Client, ledger: Project, otto: User) -> None:
    as_user(client, otto)
    asked = {"app_label": "tasks", "model_name": "dependency", "field_name": "on", "term": ""}
    assert client.get("/admin/autocomplete/", asked).status_code == 403


def test_somebody_who_is_no_staff_is_sent_to_the_login(client: Client, ledger: Project) -> None:
    user = User.objects.create_user("guest")
    Membership.objects.create(project=ledger, user=user, role="maintainer")
    assert as_user(client, user).get("/admin/tasks/task/").status_code == 302


# --- Projects and sections ----------------------------------------------------------------------------------


def project_form(project: Project, **changes: Any) -> dict[str, Any]:
    rows = list(project.memberships.order_by("project", "user"))
    form = {
        "name": project.name, "slug": project.slug, "status": project.status, "repo_url": project.repo_url,
        "target_branch": "main", "max_parallel": 2, "kind": project.kind, **setting_inputs(project),
        "memberships-TOTAL_FORMS": len(rows), "memberships-INITIAL_FORMS": len(rows),
    }  # fmt: skip
    for index, row in enumerate(rows):
        start = f"memberships-{index}-"
        form |= {f"{start}id": row.pk, f"{start}project": project.pk, f"{start}user": row.user_id}
        form |= {f"{start}role": row.role}
    return form | changes


def test_a_project_is_saved_with_its_settings_as_they_were(
    client: Client, ledger: Project, lea: User
) -> None:
    form = project_form(ledger, status="paused")
    assert as_user(client, lea).post(page("tasks.project", "change", ledger.pk), form).status_code == 302
    ledger.refresh_from_db()
    assert (ledger.settings, ledger.status) == ({}, "paused")
    event = Event.objects.get(kind="project_edited")
    assert (event.label, event.note) == ("Lea Lindt", "status")


def test_the_name_of_a_project_holds_nothing_that_is_not_seen(
    client: Client, ledger: Project, admin_user: User
) -> None:
    form = project_form(ledger, name="Led\u202eger \u2028 2")
    assert (
        as_user(client, admin_user).post(page("tasks.project", "change", ledger.pk), form).status_code == 302
    )
    ledger.refresh_from_db()
    assert ledger.name == "Ledger 2"
    answer = client.post(page("tasks.project", "change", ledger.pk), project_form(ledger, name="\u200b"))
    assert "Nothing of this name can be seen." in answer.content.decode()


def test_links_by_a_projects_former_name_lead_to_its_present_pages(
    client: Client, ledger: Project, lea: User, admin_user: User
) -> None:
    task = create_task(ledger, number=7)
    for name in ("books", "accounts"):
        ledger.refresh_from_db()
        saved = as_user(client, admin_user).post(
            page("tasks.project", "change", ledger.pk), project_form(ledger, slug=name)
        )
        assert saved.status_code == 302
    as_user(client, lea)
    for old, new in (
        ("/projects/ledger/", "/projects/accounts/"),
        ("/projects/books/board/?status=review", "/projects/accounts/board/?status=review"),
        ("/tasks/ledger-7/", "/tasks/accounts-7/"),
        ("/tasks/ledger-7/events/", "/tasks/accounts-7/events/"),
        ("/queue/team/?project=ledger&kind=help", "/queue/team/?project=accounts&kind=help"),
        ("/runs/?project=books", "/runs/?project=accounts"),
    ):
        assert client.get(old).headers["Location"] == new
    for path in ("/api/v1/tasks/?project=ledger", "/api/v1/tasks/books-7/"):
        assert '"accounts-7"' in client.get(path).content.decode(), path
    typed = client.post("/tasks/books-7/defer/", {"note": "Later."}, follow=True)
    assert typed.redirect_chain[0] == ("/tasks/accounts-7/defer/", 307)
    task.refresh_from_db()
    assert task.status == "deferred"
    stranger = Client()
    stranger.force_login(create_user("nora"))
    assert stranger.get("/tasks/ledger-7/").status_code == 404
    assert stranger.get("/api/v1/tasks/ledger-7/").status_code == 404
    create_project("ledger")
    for path in ("/projects/ledger/", "/api/v1/tasks/ledger-7/", "/api/v1/tasks/?project=ledger"):
        assert client.get(path).status_code == 404, "it names another project now"


def test_a_maintainer_gives_roles_and_cannot_point_the_project_elsewhere(
    client: Client, ledger: Project, lea: User, tom: User
) -> None:
    url = ledger.repo_url
    form = project_form(ledger, repo_url="/etc", slug="other")
    index = next(i for i, m in enumerate(ledger.memberships.order_by("project", "user")) if m.user == tom)
    form[f"memberships-{index}-role"] = "viewer"
    assert as_user(client, lea).post(page("tasks.project", "change", ledger.pk), form).status_code == 302
    ledger.refresh_from_db()
    assert (ledger.slug, ledger.repo_url) == ("ledger", url)
    assert ledger.memberships.get(user=tom).role == "viewer"
    assert Event.objects.get(kind="project_edited").note == "changed tom in Ledger: viewer"


def test_a_password_in_the_repositorys_address_is_refused_and_never_shown(
    client: Client, ledger: Project, root: User, vera: User, lea: User
) -> None:
    """Members read the address; a password belongs into the file git-credentials."""
    url = "https://bot:hunter2@git.example.org/ledger.git"
    here = page("tasks.project", "change", ledger.pk)
    answer = as_user(client, root).post(here, project_form(ledger, repo_url=url))
    assert "git-credentials in the data folder" in answer.content.decode()
    ledger.refresh_from_db()
    assert "hunter2" not in ledger.repo_url
    for fine in ("git@example.org:team/x.git", "https://me@example.org/x.git", "ssh://git@h:22/x.git"):
        ledger.repo_url = fine
        ledger.full_clean()
    for other in (
        url, "https://o'bot:hunter2@git.example.org/x.git", "ssh://bot:hunter2@h/x.git",
        "https://git.example.org/x.git?private_token=hunter2", "bot:hunter2@git.example.org/x.git",
        "https://git.example.org/glpat-hunter2hunter2hunter2/x.git",
    ):  # fmt: skip
        with pytest.raises(CommandError, match="git-credentials in the data folder"):
            call_command("add_project", "other", other)
    Project.objects.filter(pk=ledger.pk).update(repo_url=url)  # of a project from before
    seen = as_user(client, vera).get(here).content.decode()
    assert "https://bot:***@git.example.org/ledger.git" in seen
    assert "hunter2" not in seen
    Project.objects.filter(pk=ledger.pk).update(trouble="It cannot be reached.", base_state="unknown")
    for user in (vera, lea):
        as_user(client, user)
        for path in ("", "setup/", "setup/now/"):
            shown = client.get(f"/projects/ledger/{path}").content.decode()
            assert ("git.example.org" in shown, "hunter2" in shown) == (True, False), (user, path)
        for path in ("/admin/", "/board/", "/api/v1/projects/", here):
            assert b"hunter2" not in client.get(path).content, (user, path)
    as_user(client, vera)
    assert client.get(page("tasks.project", "changelist"), {"q": "hunter2"}).context["cl"].result_count == 0
    for guess in ("https://bot:h", "https://bot:x"):  # letter by letter, by what a filter leaves over
        asked = {"repo_url__startswith": guess}
        assert client.get(page("tasks.project", "changelist"), asked).status_code == 400
    ledger.refresh_from_db()
    host.trouble(ledger, f"git fetch: {GitError('git fetch', f'fatal: {url} is gone')}")
    ledger.refresh_from_db()
    assert "hunter2" not in ledger.trouble + Event.objects.filter(project=ledger).latest("pk").note


def test_superusers_cannot_lock_themselves_out(client: Client, root: User) -> None:
    """So there is always one who may do everything."""
    rights = ("is_active", "is_staff", "is_superuser")
    other = create_user("ruth", is_superuser=True)
    as_user(client, root)
    for user, kept in ((root, True), (other, False)):
        here = page("auth.user", "change", user.pk)
        shown = client.get(here).content.decode()
        assert ("Only another superuser can change your own rights." in shown) == kept
        assert "Every page needs it. What somebody may see" in shown
        client.post(here, {"username": user.username, "email": "one@example.org"})
        user.refresh_from_db()
        assert user.email == "one@example.org"
        assert [getattr(user, right) for right in rights] == [kept] * 3
        client.post(page("auth.user", "delete", user.pk), {"post": "yes"})
        assert User.objects.filter(pk=user.pk).exists() == kept


def test_what_cannot_be_deleted_says_what_to_do_instead(client: Client, ledger: Project, root: User) -> None:
    tom = ledger.memberships.exclude(user=root).first().user
    as_user(client, root)
    listed = page("auth.user", "changelist")
    many = {"action": "delete_selected", "_selected_action": [tom.pk, root.pk]}
    answers = [client.get(page("auth.user", "delete", tom.pk)), client.post(listed, many)]
    section = create_task(ledger).section
    answers.append(client.get(page("tasks.section", "delete", section.pk)))
    for answer in answers:
        shown = answer.content.decode()
        assert "Nothing was deleted." in shown
        assert "Back to the list" in shown
        assert ("clear <strong>Active</strong> on its page" in shown) == (answer is not answers[2])
    assert User.objects.filter(pk__in=[tom.pk, root.pk]).count() == 2


def test_maintainers_cannot_take_their_own_role_away(
    client: Client, ledger: Project, lea: User, root: User
) -> None:
    """A superuser can, and so can another maintainer."""
    here = page("tasks.project", "change", ledger.pk)
    rows = list(ledger.memberships.order_by("project", "user"))
    start = f"memberships-{next(index for index, row in enumerate(rows) if row.user == lea)}"
    ruth = create_user("ruth")
    changes = ({f"{start}-role": "viewer"}, {f"{start}-DELETE": "on"}, {f"{start}-user": ruth.pk})
    as_user(client, lea)
    for change in changes:
        answer = client.post(here, project_form(ledger) | change)
        assert answer.status_code == 200, change
        assert "Only another maintainer or a superuser can change your own role." in answer.content.decode()
    assert client.post(here, project_form(ledger) | {f"{start}-is_lead": "on"}).status_code == 302
    Membership.objects.create(project=ledger, user=ruth, role="maintainer")
    for other in (ruth, root):
        form = project_form(ledger) | changes[0]
        assert as_user(client, other).post(here, form).status_code == 302
        assert ledger.memberships.get(user=lea).role == "viewer"
        ledger.memberships.filter(user=lea).update(role="maintainer")


def test_projects_are_added_by_superusers_and_deleted_by_nobody(
    client: Client, ledger: Project, lea: User, root: User
) -> None:
    assert as_user(client, lea).get(page("tasks.project", "add")).status_code == 403
    as_user(client, root)
    assert client.get(page("tasks.project", "add")).status_code == 200
    assert client.post(page("tasks.project", "delete", ledger.pk), {"post": "yes"}).status_code == 403


def test_a_section_waits_for_no_circle_and_for_no_other_project(
    client: Client, ledger: Project, lea: User
) -> None:
    first, second = create_section(ledger), create_section(ledger)
    second.depends_on.add(first)
    stranger = create_section(create_project("other", members={lea: "maintainer"}))
    as_user(client, lea)
    form = {"title": first.title, "rank": 1, "depends_on": [second.pk]}
    response = client.post(page("tasks.section", "change", first.pk), form)
    assert b"would wait for itself" in response.content
    response = client.post(page("tasks.section", "change", first.pk), form | {"depends_on": [stranger.pk]})
    assert b"belong to the same project" in response.content
    response = client.post(
        page("tasks.section", "change", first.pk), {"title": "x", "rank": 1, "parent": first.pk}
    )
    assert b"would lie inside itself" in response.content


def test_a_section_that_begins_to_wait_makes_its_tasks_wait(
    client: Client, ledger: Project, lea: User
) -> None:
    first, second = create_section(ledger), create_section(ledger)
    create_task(section=first)
    task = create_task(section=second)
    form = {"title": second.title, "rank": 1, "depends_on": [first.pk]}
    assert as_user(client, lea).post(page("tasks.section", "change", second.pk), form).status_code == 302
    task.refresh_from_db()
    assert task.waits_for == 1


def test_an_empty_section_can_be_deleted_and_a_full_one_cannot(
    client: Client, ledger: Project, lea: User, tom: User
) -> None:
    empty, full = create_section(ledger), create_section(ledger)
    create_task(section=full)
    assert (
        as_user(client, tom).post(page("tasks.section", "delete", empty.pk), {"post": "yes"}).status_code
        == 403
    )
    as_user(client, lea)
    for section in (empty, full):
        client.post(page("tasks.section", "delete", section.pk), {"post": "yes"})
    assert list(Section.objects.all()) == [full]
    assert Event.objects.get(kind="section_deleted").note == empty.title


# --- Tasks --------------------------------------------------------------------------------------------------

ROWS = {"dependencies-TOTAL_FORMS": 0, "dependencies-INITIAL_FORMS": 0}


def task_form(task: Task | None = None, **changes: Any) -> dict[str, Any]:
    form = {"title": "Read clock times", "body": "", "source": "", "tags": "", "severity": "high"}
    if task:
        form |= {
            "title": task.title,
            "severity": task.severity,
            "section": task.section_id,
            "rank": task.rank,
        }
    return form | ROWS | changes


def waiting_for(task: Task, *others: Task) -> dict[str, Any]:
    form: dict[str, Any] = {"dependencies-TOTAL_FORMS": len(others)}
    for index, other in enumerate(others):
        form |= {f"dependencies-{index}-task": task.pk, f"dependencies-{index}-on": other.pk}
    return form


def test_a_new_task_takes_the_next_number_and_stands_last(client: Client, ledger: Project, lea: User) -> None:
    hint = "there is none yet"
    assert hint in as_user(client, lea).get(page("tasks.task", "add")).content.decode()
    before = create_task(ledger, number=41)
    assert hint not in as_user(client, lea).get(page("tasks.task", "add")).content.decode()
    chosen = f'<option value="{before.section_id}" selected>'
    assert chosen in as_user(client, lea).get(page("tasks.task", "add")).content.decode()  # there is no other
    create_section(ledger)
    assert chosen not in as_user(client, lea).get(page("tasks.task", "add")).content.decode()
    form = task_form(section=before.section_id, tags="backend, api")
    assert as_user(client, lea).post(page("tasks.task", "add"), form).status_code == 302
    task = Task.objects.latest("pk")
    assert (task.ref, task.tags, task.status) == ("ledger-42", ["backend", "api"], "pending")
    assert task.rank > before.rank
    assert Event.objects.get(kind="task_added").task == task


def test_a_task_is_not_added_to_a_project_of_others(client: Client, ledger: Project, lea: User) -> None:
    section = create_section(create_project("secret"))
    response = as_user(client, lea).post(page("tasks.task", "add"), task_form(section=section.pk))
    assert response.status_code == 200
    assert not Task.objects.exists()


def test_editing_a_task_leaves_alone_what_the_loop_wrote_meanwhile(
    client: Client, ledger: Project, lea: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = create_task(ledger)
    as_user(client, lea)
    model_admin = admin.site.get_model_admin(Task)
    load = type(model_admin).get_object

    def load_then_start(*args: Any, **kwargs: Any) -> Task:
        loaded = load(model_admin, *args, **kwargs)
        Task.objects.get(pk=task.pk).start()
        return loaded

    monkeypatch.setattr(model_admin, "get_object", load_then_start)
    form = task_form(task, title="Another title", status="completed")
    assert client.post(page("tasks.task", "change", task.pk), form).status_code == 302
    task.refresh_from_db()
    assert (task.title, task.status, task.version) == ("Another title", "in_progress", 1)


def test_saving_dependencies_counts_them(client: Client, ledger: Project, lea: User) -> None:
    task, other = create_task(ledger), create_task(ledger)
    form = task_form(task, **waiting_for(task, other))
    assert as_user(client, lea).post(page("tasks.task", "change", task.pk), form).status_code == 302
    task.refresh_from_db()
    assert task.waits_for == 1
    link = task.dependencies.get()
    gone = {"dependencies-TOTAL_FORMS": 1, "dependencies-INITIAL_FORMS": 1, "dependencies-0-id": link.pk}
    form = task_form(task, **gone, **{"dependencies-0-task": task.pk, "dependencies-0-DELETE": "on"})
    assert client.post(page("tasks.task", "change", task.pk), form).status_code == 302
    task.refresh_from_db()
    assert task.waits_for == 0
    notes = Event.objects.filter(kind="task_edited").values_list("note", flat=True)
    words = f"{task.ref} after {other.ref}"
    assert sorted(notes) == [f"added {words}", f"removed {words}"]


def test_whoever_changes_a_task_that_has_begun_is_told_whom_that_does_not_reach(
    client: Client, ledger: Project, lea: User
) -> None:
    as_user(client, lea)
    task = create_task(ledger)
    accepted = create_submission(task)
    at_work, approved, landed, waits = all_words = (
        "at work on it was told the former words", "was approved by its former words",
        "has landed as it was asked for before", "a task waits for others only before that",
    )  # fmt: skip
    for row, said in (
        ({"status": "pending", "round": 0}, ""),
        ({"status": "review", "round": 1}, at_work),
        ({"status": "completed", "accepted": accepted}, approved),
        ({"landed_at": timezone.now(), "landed_sha": sha("a")}, landed),
    ):
        Task.objects.filter(pk=task.pk).update(**row)
        for given, words in (
            ({"body": f"Text {len(said)}"}, said),
            (waiting_for(task, create_task(ledger)), said and waits),
            ({"severity": "low"}, ""),
        ):
            task.refresh_from_db()
            form = task_form(task, **{"body": task.body} | given)
            answer = client.post(page("tasks.task", "change", task.pk), form, follow=True)
            html = answer.content.decode()
            assert [each for each in all_words if each in html] == ([words] if words else []), (row, words)
            task.dependencies.all().delete()


def test_dependencies_run_in_no_circle_and_stay_in_the_project(
    client: Client, ledger: Project, lea: User
) -> None:
    task, middle, last = create_task(ledger), create_task(ledger), create_task(ledger)
    Dependency.objects.create(task=last, on=middle)
    Dependency.objects.create(task=middle, on=task)
    stranger = create_task(create_project("other", members={lea: "maintainer"}))
    as_user(client, lea)
    response = client.post(page("tasks.task", "change", task.pk), task_form(task, **waiting_for(task, last)))
    assert b"waits for this task already" in response.content
    response = client.post(
        page("tasks.task", "change", task.pk), task_form(task, **waiting_for(task, stranger))
    )
    assert b"belongs to another project" in response.content
    assert not task.dependencies.exists()


def inputs_of(html: str) -> dict[str, Any]:
    """What a browser sends back of a page's form: hidden fields, lines, boxes, texts and choices."""
    found: dict[str, Any] = {}
    for tag in re.findall(r"<input[^>]*>", html):
        told = dict(re.findall(r'([a-z-]+)="([^"]*)"', tag))
        if "name" in told and (told.get("type") not in {"checkbox", "radio"} or " checked" in tag):
            found[told["name"]] = unescape(told.get("value", ""))
    for name, text in re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>(.*?)</textarea>', html, re.DOTALL):
        found[name] = unescape(text).removeprefix("\n")
    for tag, name, options in re.findall(
        r'(<select[^>]*name="([^"]+)"[^>]*>)(.*?)</select>', html, re.DOTALL
    ):
        chosen = re.findall(r'value="([^"]*)"\s+selected', options)
        found[name] = chosen if " multiple" in tag else (chosen or [""])[0]
    return {name: value for name, value in found.items() if name[0] != "_" and name != "action"}


def test_two_people_with_one_page_open_undo_nothing_of_each_other(
    client: Client, ledger: Project, lea: User
) -> None:
    """Whoever saved last put the old text of every other field back over what had been typed there."""
    client.force_login(lea)
    first, second = create_section(ledger, "First"), create_section(ledger, "Second")
    task = create_task(ledger, section=first, title="Round", body="Old", tags=["a"])
    agent = create_agent("coder", name="bo", instructions="Old")
    User.objects.filter(pk=lea.pk).update(is_superuser=True)
    cases: list[tuple[Any, dict[str, Any], dict[str, Any], str]] = [
        (task, {"body": "New"}, {"title": "Round up", "tags": "b"}, "body"),
        (task, {"section": second.pk}, {"body": "Newer"}, "section"),
        (first, {"body": "About"}, {"title": "The first"}, "body"),
        (agent, {"instructions": "New"}, {"slots": "3"}, "instructions"),
    ]
    for row, hers, his, column in cases:
        address = reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
        page = inputs_of(client.get(address).content.decode())
        for typed in (hers, his):
            assert client.post(address, page | typed).status_code == 302, (row, typed)
        row.refresh_from_db()
        assert str(getattr(row, f"{column}_id", getattr(row, column))) == str(hers[column])
    address = reverse("admin:tasks_task_change", args=[task.pk])
    page = inputs_of(client.get(address).content.decode())
    client.post(address, page | {"body": "Lea's", "section": first.pk})
    html = client.post(address, page | {"body": "Tom's"}).content.decode()
    assert "It now says: “Lea’s”" in html.replace("&#x27;", "’")
    assert "Nothing was saved" in html
    again = inputs_of(html)
    assert (again["body"], again["initial-body"]) == ("Tom's", "Lea's")
    assert client.post(address, again).status_code == 302
    task.refresh_from_db()
    assert (task.body, task.section) == ("Tom's", first)


def test_moving_a_task_to_another_section_recounts_who_waits(
    client: Client, ledger: Project, lea: User
) -> None:
    old, new, waiting = create_section(ledger), create_section(ledger), create_section(ledger)
    waiting.depends_on.add(old)
    task, dependant = create_task(section=old), create_task(section=waiting, waits_for=1)
    form = task_form(task, section=new.pk)
    assert as_user(client, lea).post(page("tasks.task", "change", task.pk), form).status_code == 302
    dependant.refresh_from_db()
    assert dependant.waits_for == 0


def test_a_task_and_what_is_about_it_are_found_by_its_name(
    client: Client, ledger: Project, vera: User
) -> None:
    """A name of no task is words, as sha-256 is; and a short name may have capitals."""
    task = create_task(ledger, number=214)
    ours = create_task(create_project("Payments"), number=9)
    Membership.objects.create(user=vera, project=ours.project)
    hashed = create_task(ledger, number=215, title="Hash with SHA-256")
    handed_in = create_submission(task)
    finding = create_finding(create_review(create_submission(hashed)), title="Not by sha-256")
    as_user(client, vera)
    for label, words, wanted in (
        ("tasks.task", "Ledger-214", task), ("tasks.task", "sha-256", hashed),
        ("tasks.submission", "ledger-214", handed_in), ("tasks.finding", "ledger-215", finding),
        ("tasks.finding", "sha-256", finding), ("tasks.event", "ledger-214", None),
        ("tasks.task", "Payments-9", ours), ("tasks.task", " payments-9", ours),
    ):  # fmt: skip
        response = client.get(page(label, "changelist"), {"q": words})
        assert list(response.context["cl"].result_list) == [wanted] * (wanted is not None), (label, words)


def test_an_action_on_many_rows_asks_first_and_says_how_many(
    client: Client, ledger: Project, lea: User
) -> None:
    tasks = [create_task(ledger) for _ in range(base.ASKED_FROM)]
    as_user(client, lea)
    for across, number in (("0", base.ASKED_FROM), ("1", base.ASKED_FROM + 2)):
        create_task(ledger, status="cancelled")
        form = {
            "action": "cancel", "_selected_action": [task.pk for task in tasks], "note": "Too <b>big</b>",
            "index": 0, "select_across": across,
        }  # fmt: skip
        asked = client.post(page("tasks.task", "changelist"), form)
        assert f"“Cancel” will be done to {number} tasks;" in asked.content.decode()
        assert {task.status for task in Task.objects.filter(pk__in=[each.pk for each in tasks])} == {
            "pending"
        }
    sent = dict(re.findall(r'type="hidden" name="(?!csrf)([^"]+)" value="([^"]*)"', asked.content.decode()))
    assert sent["note"] == "Too &lt;b&gt;big&lt;/b&gt;"
    answer = client.post(page("tasks.task", "changelist"), form | {"confirmed": "1"}, follow=True)
    told = [str(message) for message in answer.context["messages"]]
    assert told == [f"{base.ASKED_FROM} cancelled, 2 skipped (already cancelled)."]


def act(client: Client, verb: str, *tasks: Task, note: str = "") -> list[str]:
    form = {"action": verb, "_selected_action": [task.pk for task in tasks], "note": note, "index": 0}
    response = client.post(page("tasks.task", "changelist"), form, follow=True)
    return [str(message) for message in response.context["messages"]]


def test_an_action_calls_the_verb_and_tells_what_became_of_each(
    client: Client, ledger: Project, tom: User
) -> None:
    tasks = [create_task(ledger, status=status) for status in ("pending", "review", "failed")]
    done = create_task(ledger, status="completed", finished_by="hand")
    as_user(client, tom)
    assert act(client, "defer", *tasks, done, note="Later") == ["3 deferred, 1 skipped (already completed)."]
    assert act(client, "defer", *tasks) == ["0 deferred, 3 skipped (already deferred)."]  # from a stale page
    assert {task.status for task in Task.objects.exclude(pk=done.pk)} == {"deferred"}
    events = Event.objects.filter(kind="defer")
    assert {(event.label, event.note) for event in events} == {("Tom Tran", "Later")}
    assert events.count() == 3
    listed = client.get(page("tasks.event", "changelist"), {"kind": "defer"}).content.decode()
    assert listed.count("deferred it") > 3, "the rows and the filter use the words of pages"


def test_a_resumed_task_with_an_open_dispute_is_disputed_again(
    client: Client, ledger: Project, tom: User, lea: User
) -> None:
    plain, disputed = create_task(ledger, status="deferred"), create_task(ledger, status="deferred")
    dispute = Dispute.objects.create(project=ledger, task=disputed, severity="high", question="Which?")
    Conflict.objects.create(
        dispute=dispute, kind="disagreement", origin="disagree", opened_as="coder", severity="high",
        effect="hold", question="Which?", reviewer_position="This.", coder_position="That.",
    )  # fmt: skip
    assert act(as_user(client, tom), "resume", plain, disputed) == ["2 resumed."]
    plain.refresh_from_db()
    disputed.refresh_from_db()
    assert (plain.status, disputed.status) == ("pending", "disputed")
    (told,) = act(as_user(client, lea), "finish", disputed)
    assert told.startswith("0 finished, 1 skipped (")
    assert "409" not in told


def test_a_landed_task_is_not_cancelled(client: Client, ledger: Project, lea: User) -> None:
    landed = create_task(
        ledger, status="completed", finished_by="hand", landed_at=timezone.now(), landed_sha=sha(1)
    )
    assert act(as_user(client, lea), "cancel", landed) == ["0 cancelled, 1 skipped (already landed)."]


def test_only_maintainers_cancel_finish_and_reopen(
    client: Client, ledger: Project, lea: User, tom: User
) -> None:
    task = create_task(ledger)
    as_user(client, tom)
    for verb in ("cancel", "finish", "reopen"):
        act(client, verb, task, note="Because")
    task.refresh_from_db()
    assert task.status == "pending"
    as_user(client, lea)
    assert act(client, "finish", task) == ["1 finished."]
    assert act(client, "reopen", task) == ["Nothing reopened: write why into the field beside the action."]
    assert act(client, "reopen", task, note="The test was wrong") == ["1 reopened."]


def test_a_role_in_one_project_moves_nothing_in_another(client: Client, ledger: Project, tom: User) -> None:
    other = create_project("other", members={tom: "viewer"})
    mine, theirs = create_task(ledger), create_task(other)
    assert act(as_user(client, tom), "defer", mine, theirs) == ["1 deferred, 1 skipped (not yours to move)."]
    theirs.refresh_from_db()
    assert theirs.status == "pending"


def test_a_viewer_is_offered_no_action(client: Client, ledger: Project, vera: User) -> None:
    create_task(ledger)
    response = as_user(client, vera).get(page("tasks.task", "changelist"))
    assert response.context["action_form"] is None


# --- Comments, tokens, hosts, users -------------------------------------------------------------------------


def test_a_triager_remarks_in_her_own_name_and_does_not_touch_others_words(
    client: Client, ledger: Project, tom: User
) -> None:
    task = create_task(ledger)
    as_user(client, tom)
    form = {"task": task.pk, "target": "", "body": "Why not?", "by_label": "Lea"}
    assert client.post(page("tasks.comment", "add"), form).status_code == 302
    own = Comment.objects.get()
    assert (own.by_label, own.by_kind, own.by_user, own.project) == ("Tom Tran", "person", tom, ledger)
    other = Comment.objects.create(project=ledger, task=task, body="Mine", by_label="Lea", by_kind="person")
    form = {"body": "Theirs", "status": "resolved", "resolution": "accepted"}
    assert client.post(page("tasks.comment", "change", other.pk), form).status_code == 302
    other.refresh_from_db()
    assert (other.body, other.status) == ("Mine", "resolved")


def test_a_token_is_shown_once_and_only_its_hash_is_kept(client: Client, vera: User) -> None:
    as_user(client, vera)
    expires = timezone.now() + timedelta(days=30)
    form = {"name": "laptop", "expires_at_0": f"{expires:%Y-%m-%d}", "expires_at_1": "12:00:00"}
    response = client.post(page("agents.token", "add"), form, follow=True)
    secret = re.search(rb"stx_[\w-]{40,}", response.content)
    assert secret is not None
    token = Token.objects.get()
    assert token.hash == token_hash(secret[0].decode())
    assert (token.user, token.expires_at.date()) == (vera, expires.date())
    for url in (page("agents.token", "changelist"), page("agents.token", "change", token.pk)):
        html = client.get(url).content
        assert secret[0] not in html
        assert token.hash.encode() not in html


@pytest.mark.parametrize("label", ["agents.token", "steroidsweb.invitation"])
def test_what_would_be_over_at_once_is_refused_with_the_reason(
    label: str, client: Client, root: User
) -> None:
    as_user(client, root)
    form = {
        "name": "laptop", "whom": "Nora", "expires_at_0": "2020-01-01", "expires_at_1": "12:00:00",
        "roles-TOTAL_FORMS": "0", "roles-INITIAL_FORMS": "0",
    }  # fmt: skip
    html = client.post(page(label, "add"), form).content.decode()
    assert "That time has passed. Choose a later one." in html
    assert 'value="2020-01-01"' in html


def test_everybody_withdraws_own_tokens_and_superusers_all(
    client: Client, lea: User, vera: User, root: User
) -> None:
    hers, other = create_token(lea, "ci")[0], create_token(vera, "laptop")[0]
    as_user(client, vera)
    assert client.post(page("agents.token", "delete", other.pk), {"post": "yes"}).status_code == 302
    client.post(page("agents.token", "delete", hers.pk), {"post": "yes"})
    assert list(Token.objects.all()) == [hers]
    assert client.get(page("agents.token", "changelist")).context["cl"].result_count == 0
    as_user(client, root).post(page("agents.token", "delete", hers.pk), {"post": "yes"})
    assert not Token.objects.exists()


def test_a_run_shows_its_prompt_and_log_and_no_hash_of_its_token(
    client: Client, ledger: Project, vera: User
) -> None:
    run = create_run(create_task(ledger), token_hash="7" * 64, error_class="quota")
    Prompt.objects.create(run=run, text="<b>Do it</b>")
    Output.objects.create(run=run, seq=0, text="all green")
    html = as_user(client, vera).get(page("agents.run", "change", run.pk)).content.decode()
    assert "&lt;b&gt;Do it&lt;/b&gt;" in html
    assert "all green" in html
    assert "quota" in html
    assert "7" * 64 not in html


def test_people_drain_a_host_and_change_nothing_else_about_it(client: Client, root: User) -> None:
    host = create_host("atlas")
    as_user(client, root)
    form = {"is_draining": "on", "slots": 2, "name": "other", "tier": 3}
    assert client.post(page("agents.host", "change", host.pk), form).status_code == 302
    host.refresh_from_db()
    assert (host.is_draining, host.slots, host.name, host.tier) == (True, 2, "atlas", 1)
    assert client.get(page("agents.host", "add")).status_code == 403
    html = client.get(page("agents.host", "change", host.pk)).content.decode()
    assert "still has" in html.lower()
    for action, draining in (("resume", False), ("drain", True)):
        chosen = {"action": action, "_selected_action": [host.pk]}
        assert client.post(page("agents.host", "changelist"), chosen).status_code == 302
        host.refresh_from_db()
        assert host.is_draining is draining
    assert "away" in client.get(page("agents.host", "changelist")).content.decode()


def test_the_page_of_a_host_says_what_runs_find_there(client: Client, root: User) -> None:
    """Its tier and why, what runs may read, its room, and what it works with."""
    seen = {
        "toolchains": ["/opt/<go>/bin", "/opt/rust"], "disk_free": 3 * 1024**3, "version": "7.8.9",
        "tools": "git 2.47, Python 3.11",
    }  # fmt: skip
    host = create_host("atlas", tier=3, **seen)
    as_user(client, root)
    told = (
        "/opt/&lt;go&gt;/bin<br>/opt/rust<br>",
        "3.0\xa0GB",
        "7.8.9",
        "git 2.47, Python 3.11",
        ">sandboxed<",
    )
    html = client.get(page("agents.host", "change", host.pk)).content.decode()
    assert [words for words in told if words not in html] == []
    listed = client.get(page("agents.host", "changelist")).content.decode()
    assert [words for words in ("3.0\xa0GB", "7.8.9", "sandboxed") if words not in listed] == []
    Host.objects.update(tier=1, why_open="bubblewrap is not installed.", toolchains=[], disk_free=None)
    html = client.get(page("agents.host", "change", host.pk)).content.decode()
    assert "not sandboxed" in html
    assert "bubblewrap is not installed." in html
    assert "/opt/" not in html


def test_a_superuser_adds_a_colleague_who_may_enter(client: Client, root: User) -> None:
    shown = as_user(client, root).get(page("auth.user", "add")).context["adminform"].form
    assert "its memberships say" in shown["is_staff"].help_text
    listed = client.get(page("auth.user", "changelist")).content.decode()
    assert "May sign in" in listed
    assert "Staff status" not in listed
    form = {
        "username": "ana", "email": "ana@example.org", "usable_password": "true",
        "password1": "long-enough-9", "password2": "long-enough-9",
    } | ({"is_staff": "on"} if shown["is_staff"].value() else {})  # as the form stands  # fmt: skip
    assert client.post(page("auth.user", "add"), form).status_code == 302
    client.logout()
    signed_in = client.post(
        "/admin/login/?next=/queue/", {"username": "ana", "password": "long-enough-9"}, follow=True
    )
    assert (signed_in.status_code, signed_in.request["PATH_INFO"]) == (200, "/queue/")


def test_runs_of_a_task_are_listed_for_its_project_only(client: Client, ledger: Project, tom: User) -> None:
    run = create_run(create_task(ledger))
    create_run(create_task(create_project("secret")))
    response = as_user(client, tom).get(page("agents.run", "changelist"), {"of": "ledger"})
    assert list(response.context["cl"].result_list) == [run]
    by_trouble = client.get(page("agents.run", "changelist"), {"of": "ledger", "error_class": "quota"})
    assert list(by_trouble.context["cl"].result_list) == []
    assert Run.objects.count() == 2


def test_a_submission_shows_its_diff_as_text(client: Client, ledger: Project, vera: User) -> None:
    submission = create_submission(create_task(ledger), diff="+<script>alert(1)</script>")
    html = as_user(client, vera).get(page("tasks.submission", "change", submission.pk)).content
    assert b"+&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert Submission.objects.count() == 1


def test_no_two_accounts_go_by_one_name(client: Client) -> None:
    """A choice of people and a record of who ruled show nothing but the name."""
    root = create_user("root", is_superuser=True)
    tom = create_user("tom", first_name="Tom", last_name="Berg", is_active=False)
    other = create_user("other")
    address = page("auth.user", "change", other.pk)
    as_user(client, root)
    for typed, field in (
        ({"username": "TOM"}, "username"),
        ({"first_name": "tom "}, "first_name"),
        ({"first_name": "Tom", "last_name": " berg"}, "first_name"),
        ({"username": "Tom.Berg", "first_name": "System"}, "first_name"),
        ({"first_name": "Tom\u202e", "last_name": "Berger"}, ""),
        ({"is_active": ""}, ""),
    ):
        form = inputs_of(client.get(address).content.decode()) | typed
        answer = client.post(address, form)
        errors = answer.context["adminform"].form.errors if answer.status_code == 200 else {}
        assert [*errors] == ([field] if field else []), typed
    other.refresh_from_db()
    assert other.get_full_name() == "Tom Berger"
    form = {"username": "Tom", "password1": "long-enough-7", "password2": "long-enough-7"}
    link = invitations.link(invitations.invite(root, {}), "")
    assert "Somebody has that name" in Client().post(link, form).content.decode()
    answer = Client().post(link, form | {"username": "tb", "first_name": "Tom", "last_name": "Berg"})
    assert "no record would tell you apart" in answer.content.decode()
    User.objects.filter(pk=other.pk).update(first_name="Tom", last_name="Berg")  # from before this rule
    form = inputs_of(client.get(page("auth.user", "change", tom.pk)).content.decode())
    assert (
        client.post(page("auth.user", "change", tom.pk), form | {"email": "t@example.org"}).status_code == 302
    )
