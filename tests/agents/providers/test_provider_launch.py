"""How the four CLIs are started: no secret in a word, nothing of ours in a variable, little in their home."""

import json
import stat
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.hosts.agent_command import write_files
from agents.providers.base import Launch, NotSignedIn, ProviderError
from agents.providers.registry import PROVIDERS
from tests.cases import for_each

CLIS = ("claude", "codex", "gemini", "opencode")
MODELS = {
    "claude": "claude-sonnet-4-5", "codex": "gpt-5.5", "gemini": "gemini-2.5-pro",
    "opencode": "anthropic/sonnet",
}  # fmt: skip
USUAL = {
    "claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY",
    "opencode": "ANTHROPIC_API_KEY",
}  # fmt: skip
SECRET = "sk-secret-of-the-team"
URL = "http://127.0.0.1:9/v1"
NAMES_OF_OURS = {
    "SECRET_KEY": "ours",
    "DATABASE_URL": "ours",
    "STEROIDS_HOME": "ours",
    "AWS_SECRET": "theirs",
}


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in (*CLIS, "node", "other"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    given = {"MY_KEY": SECRET, **NAMES_OF_OURS}
    return Launch(
        prompt=tmp_path / "prompt.md", clone=tmp_path / "clone", model="", path=str(programs),
        home=tmp_path / "home", given=given,
    )  # fmt: skip


def of(launch: Launch, name: str, **changes: Any) -> Launch:
    values = {field: getattr(launch, field) for field in Launch.__slots__}
    return Launch(**(values | {"model": MODELS[name]} | changes))


@for_each("name", CLIS)
@for_each("more", [{}, {"base_url": URL}])
def test_the_key_reaches_it_by_a_variable_or_a_file_and_never_by_a_word(
    name: str, more: dict[str, str], launch: Launch
) -> None:
    settings, run = {"key": "MY_KEY", **more}, of(launch, name)
    provider = PROVIDERS[name]
    words = " ".join(provider.argv(settings, run))
    assert SECRET not in words
    assert str(run.prompt) not in words
    told = " ".join([*provider.environment(settings, run).values(), *provider.files(settings, run).values()])
    assert SECRET in told
    assert ("127.0.0.1" in told) == bool(more)


@pytest.mark.parametrize("name", CLIS)
def test_no_variable_of_ours_and_no_other_of_the_operators_reaches_it(name: str, launch: Launch) -> None:
    environment = PROVIDERS[name].environment({"key": "MY_KEY"}, of(launch, name))
    assert "q7-private" not in " ".join(environment.values())
    assert not environment.keys() & (NAMES_OF_OURS.keys() | {"MY_KEY"})


@pytest.mark.parametrize("name", CLIS)
def test_the_vendors_key_goes_to_no_other_server_by_itself(name: str, launch: Launch) -> None:
    run = of(launch, name, given={USUAL[name]: SECRET})
    settings = {"base_url": URL}
    provider = PROVIDERS[name]
    environment, files = provider.environment(settings, run), provider.files(settings, run)
    assert SECRET not in " ".join([*environment.values(), *files.values()])


@pytest.mark.parametrize("name", CLIS)
def test_by_default_the_key_stands_in_the_vendors_own_variable(name: str, launch: Launch) -> None:
    environment = PROVIDERS[name].environment({}, of(launch, name, given={USUAL[name]: SECRET}))
    assert SECRET in " ".join(environment.values())


@for_each("name", CLIS)
@for_each("settings", [{}, {"key": "NOT_SET"}, {"key": "NOT_SET", "base_url": URL}])
def test_a_key_that_is_not_set_is_named(name: str, settings: dict[str, str], launch: Launch) -> None:
    wanted = settings.get("key", USUAL[name])
    with pytest.raises(NotSignedIn, match=f"the variable {wanted} is not set where the orchestrator runs"):
        PROVIDERS[name].environment(settings, of(launch, name))


@pytest.mark.parametrize("name", CLIS)
def test_another_sign_in_needs_no_key(name: str, launch: Launch) -> None:
    environment = PROVIDERS[name].environment({"pass": ["MY_OAUTH_TOKEN"]}, of(launch, name))
    assert USUAL[name] not in environment


@pytest.mark.parametrize("name", CLIS)
def test_the_home_holds_only_what_it_needs_and_for_its_owner_alone(
    name: str, launch: Launch, tmp_path: Path
) -> None:
    sign_in = tmp_path / "auth.json"
    sign_in.write_text('{"token": "t"}')
    settings = {"sign_in_file": str(sign_in)}
    files = PROVIDERS[name].files(settings, of(launch, name))
    launch.home.mkdir(mode=0o700)
    write_files(launch.home, files)
    found = {
        str(path.relative_to(launch.home)): stat.S_IMODE(path.stat().st_mode)
        for path in launch.home.rglob("*")
        if path.is_file()
    }
    own = {
        "claude": {".claude/.credentials.json"},
        "codex": {".codex/auth.json", ".codex/config.toml"},
        "gemini": {".gemini/oauth_creds.json", ".gemini/settings.json"},
        "opencode": {".local/share/opencode/auth.json"},
    }
    assert found == dict.fromkeys(own[name], 0o600)
    folders = [path for path in launch.home.rglob("*") if path.is_dir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


@pytest.mark.parametrize("name", CLIS)
def test_a_sign_in_file_that_is_gone_is_named(name: str, launch: Launch) -> None:
    with pytest.raises(NotSignedIn, match="/nowhere/auth.json, cannot be read"):
        PROVIDERS[name].files({"sign_in_file": "/nowhere/auth.json"}, of(launch, name))


@for_each("name", CLIS)
@for_each(
    ("settings", "said"),
    [
        ([], "mapping"),
        ({"colour": "red"}, "has no setting 'colour'"),
        ({"key": SECRET}, "key is the name of the variable"),
        ({"key": "SECRET_KEY"}, "belongs to this program"),
        ({"key": "DATABASE_URL"}, "belongs to this program"),
        ({"pass": ["STEROIDS_HOME"]}, "belongs to this program"),
        ({"pass": "MY_KEY"}, "a list of names"),
        ({"base_url": "nowhere"}, "is an address"),
        ({"base_url": "ftp://h"}, "is an address"),
        ({"base_url": "http://user:word@h"}, "is an address"),
        ({"base_url": "http://h\nx"}, "one line"),
        ({"base_url": ""}, "one line"),
        ({"program": 7}, "one line"),
        ({"program": "a\0b"}, "one line"),
        ({"sign_in_file": "auth.json"}, "absolute path"),
        ({"account": "x" * 501}, "one line"),
    ],
)
def test_what_is_malformed_is_refused_by_name(name: str, settings: Any, said: str) -> None:
    with pytest.raises(ProviderError, match=said):
        PROVIDERS[name].check(settings)


@for_each("name", CLIS)
@for_each("model", ["--yolo", "a b", "x\ny", "x" * 200, '"x"', "$(x)"])
def test_a_model_is_no_option_and_no_command(name: str, model: str) -> None:
    with pytest.raises(ProviderError, match="no name of a model"):
        PROVIDERS[name].check({}, model)


def test_a_script_goes_through_node(launch: Launch, tmp_path: Path) -> None:
    program = tmp_path / "gemini.js"
    program.write_text("//")
    program.chmod(0o755)
    words = PROVIDERS["gemini"].argv({"program": str(program)}, of(launch, "gemini"))
    assert [Path(word).name for word in words[:2]] == ["node", "gemini.js"]


@pytest.mark.parametrize("name", CLIS)
def test_a_program_that_is_not_there_is_named(name: str, launch: Launch) -> None:
    with pytest.raises(ProviderError, match="'no-such' is not on this host"):
        PROVIDERS[name].argv({"program": "no-such"}, of(launch, name))


# --- Each of them -------------------------------------------------------------------------------------------


def test_claude_asks_nobody_and_takes_nothing_from_the_repository(launch: Launch) -> None:
    run = of(launch, "claude", is_root=True)
    words = PROVIDERS["claude"].argv({}, run)[1:]
    assert words[:4] == ["-p", "--output-format", "stream-json", "--verbose"]
    assert {"--dangerously-skip-permissions", "--strict-mcp-config"} <= set(words)
    assert words[words.index("--setting-sources") + 1] == "user"
    assert words[words.index("--model") + 1] == "claude-sonnet-4-5"
    environment = PROVIDERS["claude"].environment({"key": "MY_KEY"}, run)
    assert environment["IS_SANDBOX"] == "1"
    assert {"DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "CLAUDE_CODE_MAX_RETRIES"} <= environment.keys()
    assert "IS_SANDBOX" not in PROVIDERS["claude"].environment({"key": "MY_KEY"}, of(launch, "claude"))


def test_codex_has_all_it_needs_in_one_file(launch: Launch) -> None:
    run = of(launch, "codex")
    settings = {"key": "MY_KEY", "base_url": URL}
    config = tomllib.loads(PROVIDERS["codex"].files(settings, run)[".codex/config.toml"])
    provider = config["model_providers"][config["model_provider"]]
    assert (config["model"], provider["base_url"], provider["env_key"]) == ("gpt-5.5", URL, "OPENAI_API_KEY")
    assert config["allow_login_shell"] is False
    judging = PROVIDERS["codex"].files(settings, replace(run, judges=True))[".codex/config.toml"]
    assert (config.get("project_doc_max_bytes"), tomllib.loads(judging)["project_doc_max_bytes"]) == (None, 0)
    assert config["check_for_update_on_startup"] is False
    assert config["analytics"]["enabled"] is False
    assert provider["request_max_retries"] < 5
    words = PROVIDERS["codex"].argv(settings, run)
    assert words[-1] == "-"
    assert words[words.index("-C") + 1] == str(run.clone)


def test_gemini_trusts_no_repository_and_tries_little(launch: Launch) -> None:
    run = of(launch, "gemini")
    config = json.loads(PROVIDERS["gemini"].files({"key": "MY_KEY"}, run)[".gemini/settings.json"])
    assert config["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert config["security"]["folderTrust"]["enabled"] is True
    assert config["general"]["maxAttempts"] <= 3
    assert config["telemetry"]["enabled"] is False
    assert "GEMINI_CLI_TRUST_WORKSPACE" not in PROVIDERS["gemini"].environment({"key": "MY_KEY"}, run)
    assert "--skip-trust" in PROVIDERS["gemini"].argv({}, run)


def test_opencode_describes_a_server_of_ones_own(launch: Launch) -> None:
    run = of(launch, "opencode", model="local/qwen")
    settings = {"base_url": URL, "cost": {"input": 1, "output": 2}, "limit": {"context": 1000, "output": 10}}
    config = json.loads(PROVIDERS["opencode"].environment(settings, run)["OPENCODE_CONFIG_CONTENT"])
    assert config["enabled_providers"] == ["local"]
    assert config["provider"]["local"]["options"] == {"baseURL": URL, "apiKey": "none"}
    assert config["provider"]["local"]["models"]["qwen"]["cost"] == {"input": 1, "output": 2}
    assert config["permission"] == "allow"


@for_each("settings", [{"cost": 3}, {"cost": {"input": -1}}, {"limit": {"colour": 1}}])
def test_opencode_refuses_a_price_that_is_none(settings: Any) -> None:
    with pytest.raises(ProviderError, match="is a mapping of numbers"):
        PROVIDERS["opencode"].check(settings)


def test_opencode_needs_a_model_with_its_provider(launch: Launch) -> None:
    with pytest.raises(ProviderError, match="PROVIDER/MODEL"):
        PROVIDERS["opencode"].check({}, "sonnet")
    with pytest.raises(ProviderError, match="needs a model"):
        PROVIDERS["opencode"].argv({}, of(launch, "opencode", model=""))
