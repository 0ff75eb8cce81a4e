"""The settings on a project's page: each key in its own field, refused there, recorded when changed."""

from html import escape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tasks.configuration.policy import SETTINGS, default_of
from tasks.models import Event, Project
from tests.browser.pages import our_pages
from tests.browser.scene import create_scene
from tests.cases import for_each
from tests.factories import create_project, create_user
from tests.steroidsweb.setting_inputs import setting_inputs
from tests.steroidsweb.silence import silent

pytestmark = pytest.mark.django_db


def url(project: Project) -> str:
    return f"/admin/tasks/project/{project.pk}/change/"


def inputs(project: Project, **changes: Any) -> dict[str, Any]:
    """The page as it stands, with these inputs changed."""
    return {
        "name": project.name, "status": project.status, "target_branch": "main", "max_parallel": 2,
        "memberships-TOTAL_FORMS": 0, "memberships-INITIAL_FORMS": 0, **setting_inputs(project),
        "slug": project.slug, "repo_url": project.repo_url, "kind": project.kind,
    } | changes  # fmt: skip


def save(client: Client, user: User, project: Project, **changes: Any) -> Any:
    client.force_login(user)
    return client.post(url(project), inputs(project, **changes))


def stored(project: Project) -> dict[str, Any]:
    project.refresh_from_db()
    return project.settings


def set_up(project: Project, **settings: Any) -> None:
    project.settings = settings
    project.save()


# --- Looking ------------------------------------------------------------------------------------------------


@pytest.fixture
def shown(client: Client, ledger: Project, lea: User) -> str:
    client.force_login(lea)
    return client.get(url(ledger)).content.decode()


@for_each("key", SETTINGS)
def test_every_key_has_a_field_with_its_help_and_its_default(shown: str, key: str) -> None:
    entry = SETTINGS[key]

    assert f'name="{key}"' in shown or f'name="{key}_0"' in shown
    assert escape(entry.help) in shown
    assert f"Default: {escape(default_of(key))}." in shown
    assert f"<code>{entry.path or key}</code>" in shown


def test_the_choices_of_a_key_are_shown(shown: str) -> None:
    for choice in ("interactive", "auto_retry", "strict", "webhook", "discard"):
        assert f'<option value="{choice}"' in shown


def test_who_may_not_change_the_project_reads_a_table(client: Client, ledger: Project, vera: User) -> None:
    set_up(ledger, rejections_max=3, build_command="<make>")
    client.force_login(vera)
    page = client.get(url(ledger)).content.decode()

    assert "<code>rejections_max</code></th><td>3 <b>changed</b>" in page
    assert "&lt;make&gt;" in page
    assert 'name="rejections_max"' not in page


def test_only_superusers_say_what_hosts_run(client: Client, ledger: Project, lea: User) -> None:
    evil = dict.fromkeys(("prepare_command", "build_command", "test_command"), "cat secret-key > static/x")
    for is_superuser in (False, True):
        set_up(ledger, test_command="make test")
        User.objects.filter(pk=lea.pk).update(is_superuser=is_superuser)
        lea.refresh_from_db()
        assert save(client, lea, ledger, **evil, test_timeout=900).status_code == 302
        assert stored(ledger) == {"test_timeout": 900.0} | (
            evil if is_superuser else {"test_command": "make test"}
        )
        shown = client.get(url(ledger)).content.decode()
        assert ("Only a superuser changes it" in shown) is not is_superuser


def test_who_may_not_change_the_project_cannot(client: Client, ledger: Project, tom: User) -> None:
    assert save(client, tom, ledger, rejections_max="3").status_code == 403
    assert stored(ledger) == {}


# --- Changing -----------------------------------------------------------------------------------------------


def test_each_key_is_changed_in_its_field(client: Client, ledger: Project, lea: User) -> None:
    typed: dict[str, Any] = {
        "rejections_max": "3",
        "undo_seconds": "0.5",
        "max_rounds": "12",
        "on_failed": "project",
        "rollback_mode": "auto_retry",
        "review_after_rebase": "on",
        "mandatory": ["critical"],
        "policy_0": "ship",  # a forged input: critical is always hold
        "policy_1": "log",
        "severity_weights_0": "8",
        "model_ladder": "dev-agent:\r\n  0-1: small\r\n  2+: escalate\r\n",
    }
    assert save(client, lea, ledger, **typed).status_code == 302
    assert stored(ledger) == {
        "rejections_max": 3,
        "undo_seconds": 0.5,
        "max_rounds": 12,
        "on_failed": "project",
        "rollback_mode": "auto_retry",
        "review_after_rebase": True,
        "mandatory": ["critical"],
        "policy": {"critical": "hold", "high": "log", "medium": "ship", "low": "log"},
        "severity_weights": {"critical": 8, "high": 4, "medium": 2, "low": 1},
        "model_ladder": {"dev-agent": {"0-1": "small", "2+": "escalate"}},
    }
    set_up(ledger)
    User.objects.filter(pk=lea.pk).update(is_superuser=True)
    commands = {"build_command": " make\r\nmake docs", "test_command": "prüfe <alles>"}
    assert save(client, lea, ledger, **commands).status_code == 302
    assert stored(ledger) == {"build_command": " make\nmake docs", "test_command": "prüfe <alles>"}


def test_a_box_without_its_tick_is_false(client: Client, ledger: Project, lea: User) -> None:
    form = inputs(ledger)
    del form["detect_commands"]
    client.force_login(lea)

    assert client.post(url(ledger), form).status_code == 302
    assert stored(ledger) == {"detect_commands": False}


def test_a_field_left_empty_has_its_default(client: Client, ledger: Project, lea: User) -> None:
    set_up(
        ledger, rejections_max=3, undo_seconds=2, on_failed="project", max_rounds=9,
        severity_weights={"critical": 99, "high": 4, "medium": 2, "low": 1}, model_ladder={"a": {"0+": "b"}},
    )  # fmt: skip
    for emptied, left in (
        (
            ("rejections_max", "on_failed", "severity_weights_0"),
            {"undo_seconds", "max_rounds", "model_ladder"},
        ),
        (("undo_seconds", "max_rounds", "model_ladder"), set()),
    ):
        assert save(client, lea, ledger, **dict.fromkeys(emptied, "")).status_code == 302
        assert set(stored(ledger)) == left, emptied


def test_a_change_is_recorded_with_who_from_and_to(client: Client, ledger: Project, lea: User) -> None:
    save(client, lea, ledger, rejections_max="3", detect_commands="", status="paused")
    event, tried, edited = Event.objects.order_by("pk")

    assert (event.kind, event.label) == ("project_configured", "Lea Lindt")
    assert event.note == "rejections_max: 15 → 3; detect_commands: true → false"
    assert event.data == {"settings": {"rejections_max": ["15", "3"], "detect_commands": ["true", "false"]}}
    assert (tried.kind, tried.note) == ("base_to_try", "The commands were changed.")
    assert (edited.kind, edited.note) == ("project_edited", "status")


def test_what_somebody_else_saved_meanwhile_stays(client: Client, ledger: Project, lea: User) -> None:
    opened = inputs(ledger, rejections_max="3")
    policy = ledger.config.to_json()["policy"] | {"medium": "log"}
    set_up(ledger, undo_seconds=1, mandatory=["high"], policy=policy)
    client.force_login(lea)

    assert client.post(url(ledger), opened).status_code == 302
    theirs = {"undo_seconds": 1.0, "mandatory": ["high"], "policy": policy}
    assert stored(ledger) == {**theirs, "rejections_max": 3}
    answer = client.post(url(ledger), opened | {"policy_2": "hold", "undo_seconds": "12"}).content.decode()
    assert "medium: log" in answer
    assert "It now says: “1.0”" in answer
    assert stored(ledger) == {**theirs, "rejections_max": 3}


def test_a_new_project_takes_four_fields_and_the_defaults(client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    page = client.get("/admin/tasks/project/add/").context["adminform"]
    assert list(page.form.fields) == ["name", "slug", "repo_url", "target_branch", "kind"]
    form = {"name": "Till", "slug": "till", "repo_url": "/till.git", "target_branch": "", "kind": "code"}

    assert client.post("/admin/tasks/project/add/", form).status_code == 302
    till = Project.objects.get(slug="till")
    assert (till.settings, till.target_branch, till.branch) == ({}, "", "The default branch")


# --- Faults -------------------------------------------------------------------------------------------------


@for_each(
    "wrong",
    [
        {
            "rejections_max": ("0", "rejections_max is 0; it is between 1 and 10000."),
            "undo_seconds": ("nan", "Enter a number."),
            "build_timeout": ("90000", "build_timeout is 90000.0; it is between 1 and 86400 seconds."),
            "on_failed": ("stop", "Select a valid choice. stop is not one of the available choices."),
            "mandatory": (["urgent"], "Select a valid choice. urgent is not one of the available choices."),
            "policy_1": ("stop", "Select a valid choice. stop is not one of the available choices."),
            "build_command": ("x" * 10_001, "build_command has 10001 characters; 10000 are the most."),
            "model_ladder": (
                "dev:\n  0: a\n  2+: b",
                "Line 3: model_ladder.dev.2+ leaves 1 out.",
            ),
        },
        {
            "rejections_max": ("many", "Enter a whole number."),
            "severity_weights_3": ("-1", "severity_weights.low is -1; it is between 0 and 1000."),
            "model_ladder": ("dev: [", "Line 1: no YAML"),
        },
        {"model_ladder": ("small", "Line 1: model_ladder maps types of agent to their ladders.")},
        {"max_rounds": ("60", "max_rounds is at most hard_limit, 50.")},
        {"severity_weights_3": ("5", "severity_weights gives a graver severity no less weight.")},
    ],
)
def test_wrong_values_are_refused_each_at_its_field_and_stay_as_typed(
    client: Client, ledger: Project, lea: User, wrong: dict[str, tuple[Any, str]]
) -> None:
    lea.is_superuser = "build_command" in wrong
    lea.save()
    typed = {name: value for name, (value, _) in wrong.items()}
    with silent():
        form = save(client, lea, ledger, **typed, extend_by="7").context_data["adminform"].form
    keys = {name: name if name in SETTINGS else name.rpartition("_")[0] for name in wrong}

    assert set(form.errors) == set(keys.values())
    assert form["extend_by"].value() == "7"
    for name, (written, fault) in wrong.items():
        assert [said.startswith(fault) for said in form.errors[keys[name]]] == [True], name
        value = form[keys[name]].value()
        assert (value[int(name[-1])] if name != keys[name] else value) == written, name
    assert stored(ledger) == {}


def test_faults_in_two_fields_are_told_together(client: Client, ledger: Project, lea: User) -> None:
    response = save(client, lea, ledger, rejections_max="0", extend_by="0", name="")

    assert set(response.context["adminform"].form.errors) == {"rejections_max", "extend_by", "name"}


def test_a_row_broken_past_the_form_can_be_mended(client: Client, ledger: Project, lea: User) -> None:
    set_up(ledger, rejections_max=0, colour="red", undo_seconds=4)
    client.force_login(lea)
    page = client.get(url(ledger)).content.decode()

    assert "Not used: rejections_max is 0; it is between 1 and 10000." in page
    assert "Not used: unknown setting: colour." in page
    assert save(client, lea, ledger, extend_by="7").status_code == 302
    assert stored(ledger) == {"undo_seconds": 4.0, "extend_by": 7}


def test_a_row_broken_past_the_form_breaks_no_page_and_saving_its_own_drops_the_rest(
    client: Client,
) -> None:
    lea = create_user("lea", is_superuser=True)
    scene = create_scene(lea)
    broken = {"rejections_max": 0, "stages": 5, "host_label": ["x"], "day_cost_max": "much", "colour": "red"}
    Project.objects.update(settings=broken | {"undo_seconds": 4})
    client.force_login(lea)
    of_task = f"/admin/tasks/task/{scene.task.pk}/change/"
    for path in (*our_pages(scene), url(scene.ledger), of_task, "/admin/", "/admin/tasks/project/"):
        assert client.get(path).status_code == 200, path

    assert save(client, lea, scene.ledger).status_code == 302
    assert stored(scene.ledger) == {"undo_seconds": 4.0}


def test_another_project_keeps_its_settings(client: Client, ledger: Project, lea: User) -> None:
    other = create_project("other")
    save(client, lea, ledger, rejections_max="3")

    assert stored(other) == {}
