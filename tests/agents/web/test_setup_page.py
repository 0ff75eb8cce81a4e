"""The set-up page of a project: what it shows, to whom, what it costs, and its buttons."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import Host, Trial
from agents.verification import trying
from agents.web.setup import mark_of
from disputes import alerts
from disputes.models import Conflict
from disputes.notifications.messages import message_of
from disputes.notifications.subjects import subject_of
from tasks.models import Event, Project, Task, Verification
from tests.agents.world import World, make_world  # noqa: F401
from tests.asking import as_user, client_of
from tests.factories import create_host, create_submission, create_task

pytestmark = pytest.mark.django_db

PAGE = "/projects/ledger/setup/"
ASKS = f'hx-get="{PAGE}now/"'
NAMES = ["tests/test_rates.py::test_half_up", "tests/test_rates.py::test_<b>"]
NOW = timezone.now()


def html(client: Client, path: str = PAGE, expect: int = 200) -> str:
    reply = client.get(path)
    assert reply.status_code == expect
    return reply.content.decode()


def tried(project: Project, ordinal: int = 1, **kwargs: Any) -> Trial:
    kwargs = {
        "why": "search", "sha": "a" * 40, "source": "pyproject.toml", "test": "pytest -q", "status": "ended",
        "outcome": "red", "ended_at": NOW, "steps": [{"name": "tests", "code": 1, "seconds": 34.0}],
        "problem": "tests ended with 1: 2 failed", "failed": NAMES, "tail": "E assert <i>1</i> == 2\n",
    } | kwargs  # fmt: skip
    return Trial.objects.create(project=project, ordinal=ordinal, **kwargs)


@pytest.fixture
def red(ledger: Project) -> Project:
    """Its branch is red, and a card asks what to do."""
    tried(ledger)
    tried(ledger, 2, outcome="broken", problem="cargo is not on this host.", failed=[], tail="", steps=[])
    Project.objects.filter(pk=ledger.pk).update(
        base_state="red", base_sha="a" * 40, base_at=NOW, base_problem="tests ended with 1: 2 failed",
        base_red={"step": "tests", "exit_code": 1, "failed": NAMES, "failed_count": 2, "total": 9},
    )  # fmt: skip
    ledger.refresh_from_db()
    alerts.ask_about_base(
        ledger, "main of Ledger is red", evidence=["Commit aaaa.", "test: pytest -q", f"failed: {NAMES[1]}"],
        detail="E assert <i>1</i> == 2\n",
    )  # fmt: skip
    return ledger


def commands(client: Client, path: str = PAGE, **typed: str) -> dict[str, str]:
    """What the form holds on the page, and what is typed into it."""
    page = client.get(path).context
    held = {name: page["form"][name].value() for name in page["form"].fields}
    for name in page["repository"].fields:
        held[name] = held[f"initial-{name}"] = page["repository"][name].value()
    return {name: "" if value is None else str(value) for name, value in held.items()} | typed


# --- What it shows ----------------------------------------------------------------------------------------


def test_it_says_what_is_red_and_what_was_tried(client: Client, red: Project, vera: User) -> None:
    card = alerts.about_base(red).get()
    shown = html(as_user(client, vera))
    wanted = [
        "main is red: tests ended with 1", "aaaaaaaaaaaa", "test_half_up", "test_rates.py::test_&lt;b&gt;",
        "2 of 9 tests", "pyproject.toml", "cargo is not on this host.", "E assert &lt;i&gt;1&lt;/i&gt;",
        "34 s", f"/queue/{card.dispute.ref}/", "A maintainer edits them.",
    ]  # fmt: skip
    assert [words for words in wanted if words not in shown] == []
    assert ASKS not in shown, "nothing is under way"
    assert "Accept as it is" not in shown, "a viewer reads"


def test_its_card_says_everywhere_that_the_project_waits(client: Client, red: Project, lea: User) -> None:
    card = alerts.about_base(red).get()
    places = {
        "/queue/": "blocks the project",
        "/admin/": "blocks the project",
        f"/queue/{card.dispute.ref}/": "The whole project waits",
        "/admin/disputes/dispute/": "the project",
    }
    as_user(client, lea)
    pages = {path: " ".join(re.sub("<[^>]+>", "", html(client, path)).split()) for path in places}
    assert [path for path, words in places.items() if words not in pages[path]] == []
    opened = Event.objects.get(kind="alert_opened")
    assert ", blocks the project" in "\n".join(message_of(subject_of(opened)).lines)
    assert client_of(lea).get("/api/v1/disputes/").json()["results"][0]["blocks_project"] is True

    Project.objects.filter(pk=red.pk).update(base_state="accepted")
    assert "blocks none" in " ".join(re.sub("<[^>]+>", "", html(client, "/queue/")).split())


def test_its_card_offers_to_accept_only_what_can_be_compared_with(
    client: Client, red: Project, lea: User
) -> None:
    card = alerts.about_base(red).get()
    client.force_login(lea)
    for state, known, is_offered in (
        ("red", {"step": "tests", "exit_code": 1, "failed": NAMES}, True),
        ("red", {"step": "build", "exit_code": 2}, False),
        ("broken", {}, False),
        ("trying", {}, False),
    ):
        Project.objects.filter(pk=red.pk).update(base_state=state, base_red=known)
        shown = client.get(f"/queue/{card.dispute.ref}/").content.decode()
        assert ("2: Accept as it is" in " ".join(re.sub("<[^>]+>", "", shown).split())) is is_offered, state
        assert "Let the coder find the commands" in shown
        assert "The target branch is not fit" in shown


def test_it_asks_again_only_while_something_is_under_way(client: Client, ledger: Project, vera: User) -> None:
    as_user(client, vera)
    told = {}
    for name, state, host, trouble in (
        ("nobody", "unknown", False, ""), ("fetching", "unknown", True, ""), ("trying", "trying", True, ""),
        ("trouble", "unknown", True, "x.git cannot be reached: no such host"), ("green", "green", True, ""),
    ):  # fmt: skip
        create_host()
        Host.objects.update(seen_at=timezone.now() if host else None)
        Trial.objects.all().delete()
        Project.objects.update(base_state=state, trouble=trouble)
        if state == "trying":
            tried(ledger)
            tried(
                ledger, 2, status="running", outcome="", ended_at=None, failed=[], problem="", tail="half\n",
                started_at=timezone.now() - timedelta(seconds=34),
            )  # fmt: skip
        told[name] = html(client)
    assert "every 5s" in told["nobody"]
    assert "manage.py run_orchestrator" in told["nobody"]
    assert "every 1s" in told["fetching"]
    assert "main is being fetched." in told["fetching"]
    assert "Trying 2 of 2" in told["trying"]
    assert "34 s" in told["trying"]
    assert "half\n" in told["trying"]
    assert "cannot be reached: no such host" in told["trouble"]
    assert "git ls-remote" in told["trouble"]
    assert ASKS in told["fetching"]
    assert ASKS not in told["green"]


def test_who_was_signed_out_meanwhile_signs_in_again(client: Client, ledger: Project) -> None:
    reply = client.get(f"{PAGE}now/")
    assert reply.status_code == 403
    assert reply["HX-Redirect"] == "/admin/login/?next=%2Fprojects%2Fledger%2Fsetup%2F"


def test_it_costs_the_same_however_much_was_tried(client: Client, red: Project, lea: User) -> None:
    as_user(client, lea)
    client.get(PAGE)
    with CaptureQueriesContext(connection) as few:
        client.get(PAGE)
    for number in range(12):
        tried(red, number % 6 + 1, tail="x" * 60_000)
    with CaptureQueriesContext(connection) as many:
        shown = client.get(PAGE)
    assert len(many) <= len(few)
    assert len(shown.content) < 300_000


# --- Its buttons ------------------------------------------------------------------------------------------


def test_the_buttons_do_what_the_card_does(client: Client, red: Project, tom: User) -> None:
    as_user(client, tom)
    assert "Look for commands again" not in html(client), "who edits the commands is a maintainer"
    assert client.post(f"{PAGE}again/", {"mark": mark_of(red)}).status_code == 403

    reply = client.post(f"{PAGE}find/", {"mark": mark_of(red)}, follow=True)
    task = Task.objects.get(origin=Task.Origin.SETUP)
    assert f"{task.ref} asks a coder for the commands." in reply.content.decode()

    client.post(f"{PAGE}accept/", {"mark": mark_of(red)})
    red.refresh_from_db()
    assert red.base_state == "accepted"
    assert red.base_known["failed"] == NAMES
    assert not alerts.about_base(red).exists()
    assert Conflict.objects.get().status == "moot"
    assert Event.objects.filter(kind="base_accepted", user=tom).exists()

    late = client.post(f"{PAGE}try/", {"mark": "red 0"})
    assert late.status_code == 409
    assert "was looked at meanwhile: red, accepted as it is" in late.content.decode()
    client.post(f"{PAGE}try/", {"mark": mark_of(red)})
    red.refresh_from_db()
    assert red.base_state == "unknown"


def test_what_was_typed_over_newer_commands_is_kept(client: Client, red: Project, lea: User) -> None:
    User.objects.filter(pk=lea.pk).update(is_superuser=True)
    as_user(client, lea)
    typed = commands(client, test_command="make check", test_timeout="900")
    Project.objects.filter(pk=red.pk).update(settings={"test_command": "make test"})

    late = client.post(PAGE, typed)
    assert late.status_code == 409
    assert "They are now prepare: none; build: none; test: make test." in late.content.decode()
    form = late.context["form"]
    assert form["test_command"].value() == "make check"

    wrong = client.post(PAGE, commands(client, test_command="make check", test_timeout="-3"))
    assert wrong.status_code == 422
    assert wrong.context["form"]["test_command"].value() == "make check"
    red.refresh_from_db()
    assert red.base_state == "red"

    client.post(PAGE, typed | {"mark": form["mark"].value()})
    red.refresh_from_db()
    assert (red.config.test_command, red.config.test_timeout) == ("make check", 900.0)
    assert red.base_state == "unknown"

    Project.objects.filter(pk=red.pk).update(base_state="red")
    client.post(PAGE, commands(client))
    red.refresh_from_db()
    assert red.base_state == "unknown", "the same commands are tried once more"

    Project.objects.filter(pk=red.pk).update(base_state="broken")
    red.refresh_from_db()
    client.post(f"{PAGE}again/", {"mark": mark_of(red)})
    red.refresh_from_db()
    assert (red.config.test_command, red.base_state) == ("", "unknown")


def test_only_superusers_say_what_hosts_run_outside_of_a_sandbox(
    client: Client, red: Project, lea: User, settings: Any
) -> None:
    """A shell command in a form was a way from maintainer to superuser."""
    evil = dict.fromkeys(("prepare_command", "build_command", "test_command"), "cat secret-key > static/x")
    for is_superuser, sandbox in ((False, "wanted"), (True, "wanted"), (False, "required")):
        settings.SANDBOX = sandbox
        may = is_superuser or sandbox == "required"
        Project.objects.filter(pk=red.pk).update(settings={"test_command": "make test"})
        User.objects.filter(pk=lea.pk).update(is_superuser=is_superuser)
        as_user(client, lea)
        assert ("Only a superuser changes the commands" in html(client)) is not may
        assert client.post(PAGE, commands(client, **evil, test_timeout="900")).status_code == 302
        red.refresh_from_db()
        ran = {key: red.config.to_json()[key] for key in evil}
        assert ran == (evil if may else dict.fromkeys(evil, "") | {"test_command": "make test"})
        assert red.config.test_timeout == 900.0


def test_a_wrong_address_is_seen_and_mended_here(client: Client, world: World, lea: User) -> None:
    project, host = world.project, create_host(seen_at=timezone.now())
    right = project.repo_url
    User.objects.filter(pk=lea.pk).update(is_superuser=True)
    Project.objects.filter(pk=project.pk).update(repo_url=f"{right}-not", base_state="unknown")
    as_user(client, User.objects.get(pk=lea.pk))
    path = f"/projects/{project.slug}/setup/"

    trying.advance(host, lambda key, work: work())
    assert f"{right}-not cannot be" in html(client, path)

    assert html(client, path).count('<button class="button button-primary">Save and try</button>') == 1
    client.post(path, commands(client, path, repo_url=right))
    trying.advance(host, lambda key, work: work())
    project.refresh_from_db()
    assert (project.repo_url, project.trouble, project.base_state) == (right, "", "nothing")

    Project.objects.filter(pk=project.pk).update(base_state="red")
    client.force_login(lea)
    User.objects.filter(pk=lea.pk).update(is_superuser=False)
    project.memberships.create(user=lea, role="maintainer")
    reply = client.post(
        path, commands(client, path, repo_url="ext::evil", target_branch="x" * 201, test_timeout="-3")
    )
    assert reply.status_code == 422
    wrong = [name for form in ("form", "repository") for name in reply.context[form].errors]
    assert wrong == ["test_timeout", "target_branch"], "both are told, and nothing is saved"
    reply = client.post(path, commands(client, path, target_branch="my branch"))
    assert reply.context["repository"].errors["target_branch"] == [
        "'my branch' is not the name of a branch such as main or release/2.0."
    ]
    sent = commands(
        client, path, repo_url="ext::evil", target_branch="next", test_command="make", test_timeout="900"
    )
    client.post(path, sent)
    project.refresh_from_db()
    assert (project.repo_url, project.target_branch) == (right, "next")
    assert (project.config.test_command, project.config.test_timeout) == ("", 900.0), "what is locked stays"
    assert project.base_state == "unknown"


def test_commands_that_came_closest_are_filled_in(client: Client, red: Project, lea: User) -> None:
    as_user(client, lea)
    closest = {"prepare_command": "pip install .", "test_command": "pytest -q", "test_timeout": 900.0}
    Project.objects.filter(pk=red.pk).update(base_red=red.base_red | {"settings": closest})
    assert "Of what was tried, these got furthest." in html(client)
    client.post(PAGE, commands(client, target_branch="next"))
    red.refresh_from_db()
    assert (red.target_branch, red.config.test_command) == ("next", ""), "found on another branch"
    Project.objects.filter(pk=red.pk).update(base_red=red.base_red | {"settings": closest}, base_state="red")
    client.post(PAGE, commands(client))
    red.refresh_from_db()
    assert {key: getattr(red.config, key) for key in closest} == closest
    assert "Of what was tried, these got furthest." not in html(client)


def test_what_could_not_be_run_before_the_kept_commands_is_named(
    client: Client, ledger: Project, lea: User, tom: User
) -> None:
    tried(ledger, 1, outcome="broken", problem="A package registry could not be reached.", failed=[])
    tried(ledger, 2)
    kept = tried(ledger, 3, outcome="green", problem="", failed=[], is_kept=True)
    tried(ledger, 4, outcome="broken", failed=[])
    note = "Number 1 came before the one that is kept, but could not be run here."
    assert note in html(as_user(client, lea))
    assert note not in html(as_user(client, tom)), "who may not look for commands again"
    Trial.objects.filter(pk=kept.pk).update(why="configured")
    assert note not in html(as_user(client, lea))


def test_tests_of_one_language_that_are_kept_without_the_others_are_called_a_part(
    client: Client, ledger: Project, lea: User
) -> None:
    both = tried(ledger, 1, test="red=0; (npm test) || red=$?; (python -m pytest) || red=$?; exit $red")
    tried(ledger, 2, test="npm run tests")
    kept = tried(ledger, 3, outcome="green", problem="", failed=[], is_kept=True, test="npm test")
    note = "Number 1 also runs the tests of another language or package, and was red: what is kept verifies"
    assert note in html(as_user(client, lea))
    for changed, values in ((both, {"outcome": "skipped"}), (kept, {"why": "configured"})):
        Trial.objects.filter(pk=changed.pk).update(**values)
        assert note not in html(client)


# --- Where else it is told --------------------------------------------------------------------------------


def test_the_card_names_the_tests_and_shows_the_output(client: Client, red: Project, tom: User) -> None:
    card = alerts.about_base(red).get()
    shown = html(as_user(client, tom), f"/queue/{card.dispute.ref}/")
    wanted = [
        "What build and tests said", "Commit aaaa.", "<code>pytest -q</code>",
        "<li><code>tests/test_rates.py::test_&lt;b&gt;</code></li>", "E assert &lt;i&gt;1&lt;/i&gt; == 2",
        f"{PAGE}#commands", "Edit the commands",
    ]  # fmt: skip
    assert [words for words in wanted if words not in shown] == []
    assert "failed: tests/" not in shown
    assert "coder prompt" not in shown, "no answer is for a coder"


def test_a_task_names_what_is_red_in_it(client: Client, ledger: Project, tom: User) -> None:
    task = create_task(ledger, number=7, status="in_progress", round=1)
    submission = create_submission(task, state="red", problem="tests ended with 1")
    Verification.objects.create(
        project=ledger, sha=submission.sha, commands_hash="x", green=False, step="tests", exit_code=1,
        failed=NAMES, newly_red=NAMES[1:], flaky=["tests/test_clock.py::test_tick"], tail="E <i>boom</i>\n",
        problem="tests newly red",
    )  # fmt: skip
    as_user(client, tom)
    shown = html(client, "/tasks/ledger-7/")
    wanted = [
        "What is red", "1 newly red", "tests/test_rates.py::test_&lt;b&gt;", "test_tick", "1 flaky",
        "E &lt;i&gt;boom&lt;/i&gt;", "All 2 that failed",
    ]  # fmt: skip
    assert [words for words in wanted if words not in shown] == []
