"""Which build and test commands a repository has, by what lies at its top."""

import json
from collections.abc import Callable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.runtime.detect import Commands, detect

NODE = Commands("npm run build", "npm test", "node")
NODE_PLAIN = Commands("npm install", "npm test", "node")
RUST = Commands("cargo build", "cargo test", "rust")
GO = Commands("go build ./...", "go test ./...", "go")
PYTHON = Commands("pip install -e .", "pytest", "python")
MAKE = Commands("make", "make test", "make")
NOTHING = Commands("", "", "")
WITH_BUILD = '{"scripts": {"build": "vite build", "test": "vitest"}}'

TABLE = [
    # what lies at the top, package.json, the commands
    (["package.json", "src"], WITH_BUILD, NODE),  # Node.js with a build
    (["package.json", "src"], '{"scripts": {"test": "vitest"}}', NODE_PLAIN),  # Node.js without one
    (["package.json"], '{"scripts": {"build": ""}}', NODE),  # it is there, whatever it does
    (["package.json"], '{"scripts": {"prebuild": "x", "build:dev": "x"}}', NODE_PLAIN),  # no part of a name
    (["Cargo.toml", "src"], None, RUST),
    (["go.mod", "main.go"], None, GO),
    (["pyproject.toml", "src"], None, PYTHON),
    (["setup.py"], None, PYTHON),  # the older way
    (["setup.py", "pyproject.toml"], None, PYTHON),
    (["Makefile", "main.c"], None, MAKE),
    (["README.md", "docs"], None, NOTHING),  # a project of documents
    (["TODO.md"], None, NOTHING),
    ([], None, NOTHING),  # an empty repository
]


def reader(package: str | None) -> Callable[[str], str | None]:
    """A repository in which only package.json can be read."""
    return {"package.json": package}.get


def unread(name: str) -> str | None:
    raise AssertionError(f"{name} needs not be read")


@pytest.mark.parametrize(("names", "package", "commands"), TABLE, ids=str)
def test_the_commands_follow_from_what_lies_at_the_top(
    names: list[str], package: str | None, commands: Commands
) -> None:
    assert detect(names, reader(package)) == commands


# --- Several at once --------------------------------------------------------------------------------------

# The first one of a repository that holds several counts.
PRECEDENCE = [
    ("package.json", NODE_PLAIN),
    ("Cargo.toml", RUST),
    ("go.mod", GO),
    ("pyproject.toml", PYTHON),
    ("setup.py", PYTHON),
    ("Makefile", MAKE),
]


@pytest.mark.parametrize(("first", "second"), list(combinations(PRECEDENCE, 2)), ids=str)
def test_of_two_kinds_the_first_one_counts(first: tuple[str, Commands], second: tuple[str, Commands]) -> None:
    assert detect([second[0], first[0]], reader("{}")) == first[1]


def test_of_all_kinds_the_first_one_counts() -> None:
    assert detect([name for name, _ in reversed(PRECEDENCE)], reader(WITH_BUILD)) == NODE


def test_the_order_of_the_names_does_not_matter() -> None:
    assert detect(["Makefile", "go.mod"], unread) == detect(["go.mod", "Makefile"], unread) == GO


@pytest.mark.parametrize("name", ["README.md", "LICENSE", ".gitignore", "src", "docs", "node_modules"])
@pytest.mark.parametrize(("kind", "commands"), PRECEDENCE, ids=str)
def test_what_else_lies_there_does_not_matter(name: str, kind: str, commands: Commands) -> None:
    assert detect([name, kind], reader("{}")) == commands


@pytest.mark.parametrize(
    "name",
    [
        "makefile",  # names are names
        "Makefile.am",
        "GNUmakefile",
        "package-lock.json",
        "package.json.bak",
        "cargo.toml",
        "Cargo.lock",
        "go.sum",
        "setup.cfg",
        "requirements.txt",
        "sub/package.json",  # only the top counts
        "sub/pyproject.toml",
        " Makefile",
    ],
)
def test_a_name_that_is_only_alike_is_another_one(name: str) -> None:
    assert detect([name], unread) == NOTHING


@pytest.mark.parametrize(("kind", "commands"), PRECEDENCE[1:], ids=str)
def test_only_package_json_is_read(kind: str, commands: Commands) -> None:
    assert detect([kind], unread) == commands


# --- A broken package.json --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "package",
    [
        None,  # it can't be read
        "",  # it is empty
        "{",  # it is cut off
        "not JSON",
        "{'scripts': {'build': 1}}",  # JavaScript, not JSON
        '{"scripts": {"build": "x"},}',
        "null",
        "1",
        '"scripts"',
        '["scripts", "build"]',  # a list with the right words
        "{}",
        '{"scripts": null}',
        '{"scripts": "build"}',  # a word with the right letters
        '{"scripts": ["build"]}',
        '{"scripts": 1}',
        '{"build": "x"}',  # at the wrong place
        '{"Scripts": {"build": "x"}}',
        '\ufeff{"scripts": {"build": "x"}}',  # a byte order mark
        "\x00",
        "NaN",
    ],
    ids=repr,
)
def test_a_broken_package_json_is_a_package_without_a_build(package: str | None) -> None:
    assert detect(["package.json"], reader(package)) == NODE_PLAIN


@pytest.mark.parametrize("package", ["[" * 100_000, '{"a":' * 100_000], ids=["lists", "objects"])
def test_a_package_json_nested_without_end_is_a_broken_one(package: str) -> None:
    assert detect(["package.json"], reader(package)) == NODE_PLAIN


@given(st.text())
def test_any_package_json_gives_the_commands_of_node(package: str) -> None:
    assert detect(["package.json"], reader(package)) in {NODE, NODE_PLAIN}


@given(st.dictionaries(st.text() | st.just("build"), st.text()))
def test_a_script_named_build_builds(scripts: dict[str, str]) -> None:
    found = detect(["package.json"], reader(json.dumps({"scripts": scripts})))

    assert found == (NODE if "build" in scripts else NODE_PLAIN)


@given(st.lists(st.text()))
def test_any_names_have_some_commands_or_none(names: list[str]) -> None:
    found = detect(names, reader(None))

    assert bool(found.build) == bool(found.test) == bool(found.kind)


# --- What they need ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("commands", "needs"),
    [(NODE, False), (RUST, False), (GO, False), (PYTHON, True), (MAKE, False), (NOTHING, False)],
    ids=lambda value: getattr(value, "kind", None),
)
def test_only_python_needs_an_environment_with_pip(commands: Commands, needs: bool) -> None:
    assert commands.needs_python is needs


def test_commands_are_one_value() -> None:
    with pytest.raises(AttributeError):
        Commands().build = "make"  # type: ignore[misc]
