"""Regular expressions that are compiled when they are first used."""

import ast
import importlib
import re

import pytest

from tasks.text import regex as module
from tasks.text.regex import compile_all, regex
from tests.sources import ROOT, nodes

ROOMS = ("tasks", "disputes", "agents", "steroidsweb")
# Run by a bare Python, without the project on its path.
ALONE = {
    "agents/cli.py", "agents/hosts/processes.py", "agents/hosts/shims/shim.py", "agents/inside/gate.py",
    "agents/providers/replay_player.py",
}  # fmt: skip


def test_it_is_compiled_when_it_is_first_used_and_does_what_the_compiled_one_does() -> None:
    word = regex(r"(?P<first>a+)b", re.IGNORECASE)

    assert "search" not in vars(word)
    found = word.search("xAAb")
    assert found is not None
    assert found["first"] == "AA"
    assert "search" in vars(word)
    assert word.sub("-", "ab aab") == "- -"
    assert (word.pattern, word.groups, bool(word.flags & re.IGNORECASE)) == ("(?P<first>a+)b", 1, True)
    assert regex(rb"\d+").findall(b"1 22") == [b"1", b"22"]


def test_what_is_wrong_with_it_is_said_when_it_is_used() -> None:
    broken = regex("(")
    module._waiting.pop()

    with pytest.raises(re.error):
        broken.search("x")


def test_every_one_of_the_program_can_be_compiled() -> None:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if "tasks.text.regex" in path.read_text():
                importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))

    compile_all()

    assert module._waiting == []


def test_no_module_compiles_one_while_it_is_loaded() -> None:
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if "re.compile" not in path.read_text() or name in ALONE:
                continue
            in_functions = {
                id(below)
                for node in nodes(path)
                if isinstance(node, ast.FunctionDef)
                for below in ast.walk(node)
            }
            found += [
                f"{name}:{node.lineno}"
                for node in nodes(path)
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
                and id(node) not in in_functions
            ]  # fmt: skip

    assert found == []
