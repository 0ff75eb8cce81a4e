"""The form of an agent: fields for what its provider knows, and nothing lost of what stood there."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django_q.models import OrmQ

from agents.models import Agent
from agents.models.agent import provider_choices
from agents.setup import checking
from agents.web.agent_form import AgentForm
from tests.factories import create_project

pytestmark = pytest.mark.django_db

ADD = "/admin/agents/agent/add/"
KINDS: list[dict[str, Any]] = [
    {"provider": "claude"},
    {
        "provider": "claude", "model": "claude-sonnet-4-5", "tier": "large", "kind": "dev-agent",
        "instructions": "Be brief.\nTest first.\n", "domains": ["backend", "user interface"],
        "watches": ["dev", "needs-senior-dev"], "focus": "races", "priority": -3, "slots": 4,
        "settings": {
            "key": "TEAM_KEY", "pass": ["CLAUDE_CODE_OAUTH_TOKEN", "HTTPS_PROXY"], "account": "team",
            "base_url": "https://gateway.example/v1", "program": "/opt/claude", "sign_in_file": "/srv/auth",
        },
    },
    {"provider": "codex", "settings": {"pass": [], "key": "K"}, "is_active": False},
    {"provider": "gemini", "settings": {"sign_in_file": "/root/oauth_creds.json"}, "vendor": "google"},
    {"provider": "opencode", "model": "own/m", "settings": {
        "base_url": "http://127.0.0.1:9/v1", "cost": {"input": 3, "output": 0.5, "cache_read": 0},
        "limit": {"context": 200000, "output": 8000},
    }},
    {"provider": "opencode", "settings": {"cost": {}}},
    {"provider": "command", "settings": {"argv": ["sh", "-c", "read a; echo \"it's\"\nexit 0", "{prompt}"]}},
    {"provider": "command", "settings": {
        "argv": ["a b", "ü", "--in={clone}", "{{}}"], "pass": ["K"], "account": "x", "key": "K",
    }},
    {"provider": "replay", "settings": {"cassettes": "/srv/cassettes"}},
    {"provider": "pull"},
    {"provider": "pull", "settings": {"note": {"deep": [1]}}},
]  # fmt: skip


@pytest.fixture
def root(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


def inputs(agent: Agent | None = None, **typed: Any) -> dict[str, Any]:
    """What a browser sends: every field as the page shows it, line ends as browsers send them."""
    form = AgentForm(instance=agent)
    sent = {bound.name: bound.value() for bound in form}
    sent = {name: value for name, value in sent.items() if value is not None and value is not False}
    if agent is not None:
        sent["projects"] = [project.pk for project in agent.projects.all()]
    sent |= typed
    return {
        name: value.replace("\n", "\r\n") if isinstance(value, str) else value for name, value in sent.items()
    }


def row(agent: Agent) -> dict[str, Any]:
    kept = Agent.objects.filter(pk=agent.pk).values().get()
    return kept | {"projects": [project.pk for project in agent.projects.all()]}


def faults(answer: Any) -> dict[str, list[str]]:
    return dict(answer.context["adminform"].form.errors)


def test_a_name_that_is_refused_says_which_letters_are_possible(root: Client) -> None:
    answer = root.post(ADD, inputs(name="my coder!", role="coder"))
    [said] = faults(answer)["name"]
    assert said.startswith("Only the letters A to Z")
    assert "Nothing was saved." in answer.content.decode()


def test_every_kind_of_agent_comes_through_its_form_unchanged(root: Client) -> None:
    projects = [create_project(slug="ledger"), create_project(slug="site")]
    for number, kind in enumerate(KINDS):
        agent = Agent(name=f"a{number}", role="coder", **kind)
        agent.full_clean()
        agent.save()
        agent.projects.set(projects[: number % 3])
        before, path = row(agent), f"/admin/agents/agent/{agent.pk}/change/"
        shown = root.get(path)
        assert shown.status_code == 200
        answer = root.post(path, inputs(agent))
        assert answer.status_code == 302, (kind, faults(answer))
        assert row(agent) == before
        other = {"model": "own/other", "priority": 9}
        assert root.post(path, inputs(agent, **other)).status_code == 302
        assert row(agent) == before | other


def test_a_plain_command_is_typed_as_in_a_shell(root: Client) -> None:
    site = create_project(slug="site")
    typed = {
        "name": "mine", "role": "coder", "provider": "command", "passes": "MY_KEY HTTPS_PROXY",
        "command_line": "sh -c 'cat {prompt}' \"two words\"", "domains": "backend, api", "watches": "dev",
        "projects": [site.pk],
    }  # fmt: skip
    assert root.post(ADD, inputs(**typed)).status_code == 302
    made = Agent.objects.get(name="mine")
    assert made.settings == {
        "argv": ["sh", "-c", "cat {prompt}", "two words"],
        "pass": ["MY_KEY", "HTTPS_PROXY"],
    }
    assert (made.domains, made.watches, list(made.projects.all())) == (["backend", "api"], ["dev"], [site])
    page = root.get(f"/admin/agents/agent/{made.pk}/change/").content.decode()
    assert re.search(r'class="agent-word">needs-senior-dev<', page)
    assert re.search(r'class="agent-word">backend<', page)
    path = f"/admin/agents/agent/{made.pk}/change/"
    changed = {"provider": "claude", "command_line": "", "passes": "", "key": "TEAM_KEY"}
    assert root.post(path, inputs(made, **changed)).status_code == 302
    made.refresh_from_db()
    assert (made.provider, made.settings) == ("claude", {"key": "TEAM_KEY"})


def test_faults_stand_at_their_fields_in_plain_words_and_keep_what_was_typed(root: Client) -> None:
    tries: list[tuple[dict[str, Any], str, str]] = [
        ({"provider": "command"}, "command_line", "Give the command, the program first"),
        ({"provider": "command", "command_line": "sh 'open"}, "command_line", "never closed"),
        ({"provider": "command", "command_line": "a {nobody}"}, "command_line", "unknown placeholder"),
        ({"provider": "command", "command_line": "a", "passes": "SECRET_KEY"}, "passes", "belongs to this"),
        ({"provider": "claude", "command_line": "sh"}, "command_line", "does not fit Claude Code"),
        ({"provider": "claude", "base_url": "nowhere"}, "base_url", "is an address"),
        ({"provider": "codex", "sign_in_file": "auth.json"}, "sign_in_file", "absolute path"),
        ({"provider": "codex", "model": "no model"}, "model", "is no name of a model"),
        ({"provider": "opencode", "model": "sonnet"}, "model", "PROVIDER/MODEL"),
        ({"provider": "replay"}, "cassettes", "the path of a folder"),
        ({"provider": "pull", "passes": "MY_KEY"}, "passes", "does not fit Claims its own work"),
    ]
    for typed, field, says in tries:
        answer = root.post(ADD, inputs(name="mine", role="coder", **typed))
        assert answer.status_code == 200, typed
        assert list(faults(answer)) == [field], (typed, faults(answer))
        assert says in " ".join(faults(answer)[field])
        form = answer.context["adminform"].form
        assert {name: form[name].value() for name in typed} == typed
    assert not Agent.objects.exists()


def test_a_key_pasted_for_its_name_is_not_shown_again(root: Client) -> None:
    for field, typed, kept in (("key", "sk-very-secret", ""), ("passes", "A_KEY sk-very-secret", "A_KEY")):
        answer = root.post(ADD, inputs(name="mine", role="coder", provider="claude", **{field: typed}))
        assert "variable" in " ".join(faults(answer)[field])
        assert b"very-secret" not in answer.content
        assert answer.context["adminform"].form[field].value() == kept


def test_save_and_check_queues_the_check_and_its_result_comes_to_the_page(
    root: Client, django_capture_on_commit_callbacks: Any
) -> None:
    typed = {"name": "mine", "role": "coder", "provider": "command", "command_line": "no-such-agent"}
    with django_capture_on_commit_callbacks(execute=True):
        answer = root.post(ADD, inputs(**typed, _check=""), follow=True)
    agent = Agent.objects.get(name="mine")
    state = f"/admin/agents/agent/{agent.pk}/check/"
    assert answer.redirect_chain == [(f"/admin/agents/agent/{agent.pk}/change/", 302)]
    page = answer.content.decode()
    assert "Being checked since" in page
    assert f'data-waits="{state}"' in page
    assert "no-such-agent&#x27; is not on this host" in page
    assert "Saved all the same: another host may have it." in page
    assert OrmQ.objects.count() == 1
    assert root.get(state).json()["is_asked"]
    checking.check(agent)
    told = root.get(state).json()
    assert not told["is_asked"]
    assert "is not on this host" in told["says"]
    with django_capture_on_commit_callbacks(execute=True):
        assert root.post(answer.redirect_chain[0][0], inputs(agent, _save="")).status_code == 302
    assert OrmQ.objects.count() == 1


def test_no_json_stands_on_the_form_and_its_main_button_checks(root: Client) -> None:
    page = root.get(ADD).content.decode()
    assert not re.search(r'name="settings"|\[&quot;|{&quot;', page)
    assert page.index("Save and check") < page.index('name="_save"')
    for _, label in provider_choices():
        assert f"<strong>{label}</strong>" in page
