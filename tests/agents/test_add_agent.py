"""Adding an agent from the command line."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from agents.models import Agent
from tasks.models import Project

pytestmark = pytest.mark.django_db


def add(*words: str) -> str:
    out = StringIO()
    call_command("add_agent", *words, stdout=out)
    return out.getvalue()


def test_any_command_is_an_agent(ledger: Project) -> None:
    said = add("bo", "--role", "coder", "--project", "ledger", "--pass", "BO_KEY", "--", "sh", "{prompt}")
    assert said == "bo is a coder on ledger: sh {prompt}\n"
    agent = Agent.objects.get()
    assert (agent.provider, agent.settings) == ("command", {"argv": ["sh", "{prompt}"], "pass": ["BO_KEY"]})


def test_a_known_command_needs_only_its_name(ledger: Project) -> None:
    words = ("--model", "claude-sonnet-4-5", "--key", "TEAM_KEY", "--", "claude")
    said = add("bo", "--role", "reviewer", *words)
    assert said.splitlines() == [
        "bo is a reviewer on every project: claude", "Try it: manage.py check_agent bo",
    ]  # fmt: skip
    agent = Agent.objects.get()
    assert (agent.provider, agent.model) == ("claude", "claude-sonnet-4-5")
    assert agent.settings == {"key": "TEAM_KEY"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--key", "sk-not a name", "--", "claude"), "key is the name of the variable"),
        (("--key", "SECRET_KEY", "--", "claude"), "belongs to this program"),
        (("--", "tool", "{secret}"), "unknown placeholder"),
        (("--project", "nowhere", "--", "sh"), "There is no project nowhere"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_added(words: tuple[str, ...], reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        add("bo", "--role", "coder", *words)
    assert not Agent.objects.exists()
