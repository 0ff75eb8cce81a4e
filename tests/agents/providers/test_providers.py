"""The providers: an agent's settings in, the argument list of its process out."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.base import Launch, ProviderError, find_program
from agents.providers.command import PLACEHOLDERS, CommandProvider
from agents.providers.registry import PROVIDERS, provider_for
from agents.providers.replay import PLAYER, ReplayProvider
from tests.cases import for_each


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of the PATH with one program in it, and with one file that is none."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "my-agent").write_text("#!/bin/sh\n")
    (folder / "my-agent").chmod(0o755)
    (folder / "notes").write_text("no program\n")
    return folder


@pytest.fixture
def launch(tmp_path: Path, programs: Path) -> Launch:
    return Launch(
        prompt=tmp_path / "prompt.md", clone=tmp_path / "a clone", model="large", path=str(programs)
    )


def refusal(provider: Any, settings: Any) -> str:
    """Why these settings are refused."""
    with pytest.raises(ProviderError) as error:
        provider.check(settings)
    return str(error.value)


# --- Any command ------------------------------------------------------------------------------------------

NEEDS_ARGV = 'The provider "command" needs argv: a list of words, the program first.'


@for_each(
    "argv",
    [
        ["my-agent"],  # the program alone: it reads the prompt on standard input
        ["my-agent", "--prompt", "{prompt}"],
        ["my-agent", "--model={model}", "-C", "{clone}", "{prompt}"],  # inside a word
        ["my-agent", "{prompt}{clone}{model}"],
        ["my-agent", "{{literally}}"],  # braces doubled stand for themselves
        ["/opt/agent/run"],
        ["{clone}/agent.sh"],  # the program itself lies in the clone
        ["my-agent", "a b", "$HOME", "*", "; rm"],  # there is no shell: a word is a word
        ["my-agent", "--größe"],
    ],
    ids=str,
)
def test_a_list_of_words_is_a_command(argv: list[str]) -> None:
    settings = {"argv": argv, "anything": "else"}
    CommandProvider().check(settings)

    assert settings == {"argv": argv, "anything": "else"}


@for_each(
    "settings",
    [
        {},
        {"argv": None},
        {"argv": []},  # no program
        {"argv": "my-agent --prompt {prompt}"},  # a line of a shell is no list
        {"argv": ("my-agent",)},  # JSON has lists
        {"argv": {"my-agent": 1}},
        {"argv": [""]},  # an empty word
        {"argv": ["my-agent", ""]},
        {"argv": ["my-agent", 1]},  # a number
        {"argv": ["my-agent", None]},
        {"argv": [["my-agent"]]},
        {"Argv": ["my-agent"]},
    ],
    ids=str,
)
def test_anything_else_is_none(settings: dict[str, Any]) -> None:
    assert refusal(CommandProvider(), settings) == NEEDS_ARGV


@for_each(
    "word",
    [
        "{task}",  # no such placeholder
        "{Prompt}",
        "{ prompt }",
        "{}",  # no name
        "{0}",
        "{",  # a brace alone
        "}",
        "{prompt",
        "a{b}c",
        "{prompt}{oops}",  # one of two
        "{model:d}",  # a form that a word does not have
        "{model!z}",
        "{prompt[0]}",
    ],
)
def test_an_unknown_placeholder_is_refused_by_name(word: str) -> None:
    assert refusal(CommandProvider(), {"argv": ["my-agent", word]}) == (
        f"{word!r} has an unknown placeholder; known are {{prompt}}, {{clone}}, {{model}}."
    )


@for_each(
    "word",
    [
        "{prompt.foo}",  # AttributeError
        "{prompt[x]}",  # TypeError
        "{prompt.__class__}",  # passes, and the agent gets "<class 'str'>"
        "{prompt.__class__.__mro__}",
    ],
)
def test_a_placeholder_is_a_name_and_nothing_more(word: str) -> None:
    assert "unknown placeholder" in refusal(CommandProvider(), {"argv": ["my-agent", word]})


@for_each("provider", [CommandProvider(), ReplayProvider()], ids=["command", "replay"])
@for_each("settings", [[], "argv", 1], ids=repr)
def test_settings_that_are_no_object_are_refused(provider: Any, settings: Any) -> None:
    assert refusal(provider, settings)


@for_each(
    ("words", "expected"),
    [
        ([], []),
        (["--prompt", "{prompt}"], ["--prompt", "PROMPT"]),
        (["{clone}"], ["CLONE"]),  # with a blank in it: still one word
        (["--model={model}"], ["--model=large"]),
        (["{prompt}:{clone}"], ["PROMPT:CLONE"]),
        (["{{prompt}}"], ["{prompt}"]),
        (["{model}", "{model}"], ["large", "large"]),
        (["$HOME", "`id`", "a b", "*"], ["$HOME", "`id`", "a b", "*"]),  # nothing is expanded
    ],
    ids=str,
)
def test_the_placeholders_are_filled_in(
    words: list[str], expected: list[str], launch: Launch, programs: Path
) -> None:
    filled = [
        word.replace("PROMPT", str(launch.prompt)).replace("CLONE", str(launch.clone)) for word in expected
    ]

    assert CommandProvider().argv({"argv": ["my-agent", *words]}, launch) == [
        str(programs / "my-agent"), *filled,
    ]  # fmt: skip


def test_a_value_with_braces_is_not_filled_in_again(launch: Launch) -> None:
    braced = Launch(launch.prompt, launch.clone, "{clone} {oops}", launch.path)

    assert CommandProvider().argv({"argv": ["my-agent", "{model}"]}, braced)[1] == "{clone} {oops}"


def test_a_model_that_is_not_set_is_an_empty_word(launch: Launch) -> None:
    nameless = Launch(launch.prompt, launch.clone, "", launch.path)

    assert CommandProvider().argv({"argv": ["my-agent", "{model}"]}, nameless)[1] == ""


def test_the_prompt_is_never_an_argument_itself(launch: Launch) -> None:
    launch.prompt.write_text("# Task ledger-1: Do it")
    argv = CommandProvider().argv({"argv": ["my-agent", "{prompt}"]}, launch)

    assert not any("Do it" in word for word in argv)


def test_a_command_is_checked_again_when_it_is_started(launch: Launch) -> None:
    with pytest.raises(ProviderError, match="needs argv"):
        CommandProvider().argv({}, launch)


def test_the_program_may_lie_in_the_clone(launch: Launch) -> None:
    launch.clone.mkdir()
    (launch.clone / "agent.sh").write_text("#!/bin/sh\n")
    (launch.clone / "agent.sh").chmod(0o755)

    assert CommandProvider().argv({"argv": ["{clone}/agent.sh"]}, launch) == [str(launch.clone / "agent.sh")]


@given(st.lists(st.text(min_size=1).map(lambda word: word.replace("{", "{{").replace("}", "}}")), min_size=1))
def test_words_without_placeholders_pass_as_they_are(words: list[str]) -> None:
    provider = CommandProvider()
    launch = Launch(Path("/p"), Path("/c"), "m", os.path.dirname(sys.executable))
    argv = provider.argv({"argv": [os.path.basename(sys.executable), *words]}, launch)

    assert argv[1:] == [word.replace("{{", "{").replace("}}", "}") for word in words]


def test_there_are_three_placeholders() -> None:
    assert PLACEHOLDERS == ("prompt", "clone", "model")


# --- The variables that it may see ------------------------------------------------------------------------


@for_each(
    ("settings", "names"),
    [
        ({}, []),  # none: an agent sees nothing of the host's environment
        ({"pass": []}, []),
        ({"pass": ["MY_AGENT_API_KEY"]}, ["MY_AGENT_API_KEY"]),  # its own sign-in
        ({"pass": ["A", "b_2", "_C"]}, ["A", "b_2", "_C"]),  # in their order
    ],
    ids=str,
)
def test_a_command_may_see_the_variables_that_are_named(settings: dict[str, Any], names: list[str]) -> None:
    provider = CommandProvider()
    provider.check({"argv": ["my-agent"], **settings})

    assert provider.passes(settings) == names


@for_each("names", ["MY_KEY", None, {"MY_KEY": 1}, 1, True], ids=repr)
def test_names_of_variables_are_a_list(names: Any) -> None:
    assert refusal(CommandProvider(), {"argv": ["my-agent"], "pass": names}) == (
        'pass is a list of names of variables: ["MY_AGENT_API_KEY"].'
    )


@for_each(
    "name",
    ["", " ", "MY-KEY", "1KEY", "MY KEY", "KEY=value", "KEY\n", "$KEY", "SCHLÜSSEL", "*", None, 1, ["KEY"]],
    ids=repr,
)
def test_what_is_no_name_of_a_variable_is_refused(name: Any) -> None:
    assert refusal(CommandProvider(), {"argv": ["my-agent"], "pass": ["FINE", name]}) == (
        f"pass holds {name!r}, which is no name of a variable."
    )


@for_each(
    "name",
    [
        "SECRET_KEY",  # signs every session
        "SECRET_KEY_FILE",  # says where it lies
        "DATABASE_URL",  # every row, every ruling
        "DATABASE_URL_FILE",
        "REDIS_URL",
        "STEROIDS_HOME",
        "STEROIDS_TOKEN",  # the run has one of its own
        "DJANGO_SETTINGS_MODULE",
    ],
)
def test_no_agent_sees_what_belongs_to_this_program(name: str) -> None:
    assert refusal(CommandProvider(), {"argv": ["my-agent"], "pass": [name]}) == (
        f"{name} belongs to this program; no agent may see it."
    )


@for_each("name", ["MY_SECRET_KEY", "AGENT_DATABASE_URL", "NOT_STEROIDS_HOME"])
def test_a_name_that_only_ends_like_ours_is_not_ours(name: str) -> None:
    settings = {"argv": ["my-agent"], "pass": [name]}
    CommandProvider().check(settings)

    assert CommandProvider().passes(settings) == [name]


def test_a_cassette_sees_nothing_of_the_host() -> None:
    assert ReplayProvider().passes({"cassettes": "a", "pass": ["HOME"]}) == []


# --- The program ------------------------------------------------------------------------------------------


def test_a_program_is_found_in_the_path_that_the_agent_will_see(programs: Path) -> None:
    assert find_program("my-agent", str(programs)) == str(programs / "my-agent")


def test_our_own_path_does_not_count(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(programs))

    with pytest.raises(ProviderError):
        find_program("my-agent", "/nowhere")


def test_the_first_folder_of_the_path_counts(programs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "my-agent").write_text("#!/bin/sh\n")
    (other / "my-agent").chmod(0o755)

    assert find_program("my-agent", f"{other}{os.pathsep}{programs}") == str(other / "my-agent")


def test_a_program_may_be_named_by_its_path(programs: Path) -> None:
    assert find_program(str(programs / "my-agent"), "/nowhere") == str(programs / "my-agent")


def test_a_program_found_has_an_absolute_path(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(programs.parent)

    assert find_program("my-agent", "bin") == str(programs / "my-agent")


@for_each(
    "name",
    [
        "no-such-agent",
        "notes",  # there, but no program
        "my-agent --prompt",  # a line is no name
        "../bin",  # a folder
        "",
    ],
)
def test_a_program_that_is_not_there_is_named(name: str, programs: Path) -> None:
    with pytest.raises(ProviderError) as error:
        find_program(name, str(programs))

    assert str(error.value) == (
        f"The program {name!r} is not on this host. Install it, or correct the agent's settings."
    )


# --- Replay -----------------------------------------------------------------------------------------------


def test_a_cassette_is_played_by_our_own_python(launch: Launch, tmp_path: Path) -> None:
    cassettes = tmp_path / "cassettes"
    cassettes.mkdir()

    assert ReplayProvider().argv({"cassettes": str(cassettes)}, launch) == [
        sys.executable, "-I", str(PLAYER), "--cassettes", str(cassettes), "--prompt", str(launch.prompt),
    ]  # fmt: skip


def test_the_player_lies_beside_the_provider() -> None:
    assert PLAYER.name == "replay_player.py"
    assert PLAYER.is_file()


@for_each(
    "settings",
    [
        {},
        {"cassettes": None},
        {"cassettes": 1},
        {"cassettes": ["a"]},
        {"Cassettes": "a"},
        {"cassettes": ""},  # it would mean the folder of the process
    ],
    ids=str,
)
def test_cassettes_need_a_folder(settings: dict[str, Any]) -> None:
    assert refusal(ReplayProvider(), settings) == (
        'The provider "replay" needs cassettes: the path of a folder.'
    )


def test_the_folder_is_looked_for_only_when_it_is_played() -> None:
    ReplayProvider().check({"cassettes": "/no/such/folder"})

    with pytest.raises(ProviderError, match=r"^There is no folder of cassettes at /no/such/folder\.$"):
        ReplayProvider().argv({"cassettes": "/no/such/folder"}, Launch(Path("p"), Path("c"), "", ""))


def test_a_file_is_no_folder_of_cassettes(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "cassettes").write_text("")

    with pytest.raises(ProviderError, match="no folder of cassettes"):
        ReplayProvider().argv({"cassettes": str(tmp_path / "cassettes")}, launch)


# --- The registry -----------------------------------------------------------------------------------------


def agent(provider: str) -> Any:
    return SimpleNamespace(provider=provider)


def test_the_providers_of_this_version_are_named() -> None:
    assert set(PROVIDERS) == {"claude", "codex", "gemini", "opencode", "command", "pull", "replay"}


@for_each(("name", "kind"), [("command", CommandProvider), ("replay", ReplayProvider)])
def test_an_agent_has_the_provider_that_it_names(name: str, kind: type) -> None:
    assert type(provider_for(agent(name))) is kind


@for_each("name", ["", "Command", "Pull", "http"])
def test_a_provider_of_another_version_is_refused_by_name(name: str) -> None:
    with pytest.raises(ProviderError, match=f"^{name!r} is no provider of this version.$"):
        provider_for(agent(name))


@for_each("name", PROVIDERS)
def test_a_provider_can_check_and_build(name: str) -> None:
    assert callable(PROVIDERS[name].check)
    assert callable(PROVIDERS[name].argv)


def test_a_launch_is_one_value(launch: Launch) -> None:
    with pytest.raises(AttributeError):
        launch.model = "small"  # type: ignore[misc]
