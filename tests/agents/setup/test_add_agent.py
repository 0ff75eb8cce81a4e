"""Adding an agent from the command line."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from agents.models import Agent
from tasks.models import Project
from tests.cases import for_each

pytestmark = pytest.mark.django_db


def add(*words: str) -> str:
    out = StringIO()
    call_command("add_agent", *words, stdout=out)
    return out.getvalue()


@pytest.fixture(autouse=True)
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of PATH; it holds claude, sh, and a file that is no program."""
    for name in ("claude", "sh", "notes"):
        (tmp_path / name).touch(mode=0o644 if name == "notes" else 0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_any_command_is_an_agent(ledger: Project) -> None:
    words = ["--project", "ledger", "--pass", "BO_KEY", "--reach", "api.example.org", "--", "sh", "{prompt}"]
    said = add("bo", "--role", "coder", *words)
    assert said == "bo is a coder on ledger: sh {prompt}\n"
    agent = Agent.objects.get()
    settings = {"argv": ["sh", "{prompt}"], "pass": ["BO_KEY"], "hosts": ["api.example.org"]}
    assert (agent.provider, agent.settings) == ("command", settings)


def test_a_known_command_needs_only_its_name(ledger: Project) -> None:
    words = ("--model", "claude-sonnet-4-5", "--key", "TEAM_KEY", "--", "claude")
    said = add("bo", "--role", "reviewer", *words)
    assert said.splitlines() == [
        "bo is a reviewer on every project: claude", "Try it: manage.py check_agent bo",
    ]  # fmt: skip
    agent = Agent.objects.get()
    assert (agent.provider, agent.model) == ("claude", "claude-sonnet-4-5")
    assert agent.settings == {"key": "TEAM_KEY"}


def test_an_agent_whose_program_is_missing_is_refused_with_where_it_was_looked_for(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bin_folder)
    for program, where in {
        "no-such-agent": f"It was looked for in {bin_folder}.",
        "codex": f"It was looked for in {bin_folder}.",
        "./no-such-agent": f"There is no file {bin_folder}/no-such-agent.",
        "./notes": f"{bin_folder}/notes is not executable.",
    }.items():
        with pytest.raises(CommandError) as refusal:
            add("bo", "--role", "coder", "--", program)
        said = str(refusal.value)
        assert f"{program.removeprefix('./')}' is not on this host" in said
        assert said.endswith(f"{where} Where another host starts it, say --elsewhere.")
    assert not Agent.objects.exists()
    assert "bo is a coder" in add("bo", "--role", "coder", "--elsewhere", "--", "codex")
    assert "cy is a coder" in add("cy", "--role", "coder", "--", "{clone}/tools/agent")


def test_a_program_named_from_here_is_kept_by_its_whole_path(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host that starts it need not stand in the same folder."""
    monkeypatch.chdir(bin_folder)
    add("bo", "--role", "coder", "--", "./sh", "{prompt}")
    assert Agent.objects.get().settings == {"argv": [str(bin_folder / "sh"), "{prompt}"]}


@for_each(
    ("words", "reason"),
    [
        (("--key", "sk-not a name", "--", "claude"), "key is the name of the variable"),
        (("--key", "SECRET_KEY", "--", "claude"), "belongs to this program"),
        (("--", "tool", "{secret}"), "unknown placeholder"),
        (("--project", "nowhere", "--", "sh"), "There is no project nowhere. There are: none yet."),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_added(words: tuple[str, ...], reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        add("bo", "--role", "coder", *words)
    assert not Agent.objects.exists()
