"""docs/settings.md: its tables of a project's keys are the schema's, and what they claim is true."""

import ast
import re
from collections.abc import Iterator

from django.conf import settings

from tasks.configuration.policy import DEFAULTS, SETTINGS
from tasks.configuration.reading import AGENT_KEYS
from tasks.configuration.writing import write_reference
from tests.sources import ROOT, nodes, variables

DOCS = ROOT / "docs" / "settings.md"
PROTOCOL = ROOT / "docs" / "protocol.md"
WORDS_FOR_NUMBERS = {"half": "0.5", "second": "2", "three": "3"}


def test_the_tables_are_those_of_the_schema() -> None:
    text = DOCS.read_text(encoding="utf-8")
    tables = text.partition("a test holds them to it. -->\n\n")[2].partition("<!-- End of the tables. -->")[0]

    assert tables == write_reference()  # python manage.py export_config --reference


def test_every_key_has_one_row() -> None:
    rows = [line for line in write_reference().splitlines() if line.startswith("| `")]

    assert sorted(row.split("`")[1] for row in rows) == sorted(SETTINGS)
    assert all(row.count(" | ") == 3 for row in rows)


def test_the_numbers_in_the_rules_are_the_defaults_of_the_settings_beside_them() -> None:
    rules = " ".join(PROTOCOL.read_text(encoding="utf-8").split())
    number = rf"[\d.]*\d(?: %)?|\b(?:{'|'.join(WORDS_FOR_NUMBERS)})\b"
    stated = dict[str, float]()
    for said, key in re.findall(r"([^()]*)\(`(\w+)`\)", rules):
        if isinstance(getattr(DEFAULTS, key, None), int | float):
            last = re.findall(number, said)[-1]
            stated[key] = float(WORDS_FOR_NUMBERS.get(last, last.removesuffix(" %")))
            stated[key] /= 100 if last.endswith("%") else 1

    assert len(stated) > 12
    assert stated == {key: getattr(DEFAULTS, key) for key in stated}


def test_every_key_of_an_agent_is_named() -> None:
    paragraph = DOCS.read_text(encoding="utf-8").partition("`agents` is a list.")[2].partition("\n\n")[0]

    assert [key for key in AGENT_KEYS if f"`{key}`" not in paragraph] == []


def test_the_variables_of_the_environment_are_those_that_are_read() -> None:
    """Both ways, the durations with their defaults."""
    text = DOCS.read_text(encoding="utf-8").partition("| Variable |")[2].partition("\n\nGit reaches")[0]
    table, _, durations = text.partition("\n\nDurations, in seconds: `STEROIDS_` with")
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    told = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(told) == len(set(told))
    given = dict(re.findall(r"`([A-Z_]+)` (\d+)", durations))
    read = variables()
    scaled = {f"STEROIDS_{name.upper()}" for name in settings.DURATIONS}

    assert {f"STEROIDS_{name}": float(seconds) for name, seconds in given.items()} == {
        name: float(read[name]) for name in scaled
    }
    assert {*told, "STEROIDS_TIME_SCALE"} == set(read) - scaled
    assert "`STEROIDS_TIME_SCALE`" in durations


# --- What has an effect ------------------------------------------------------------------------------------


def nodes_in(place: str) -> Iterator[ast.AST]:
    """Whatever stands in a module, or in the modules of a folder."""
    for path in sorted((ROOT / place).rglob("*.py")) or [ROOT / place]:
        yield from nodes(path)


# Methods of the settings, and the keys that they read.
BY_METHODS = {"effect": {"policy"}, "is_mandatory": {"mandatory", "mandatory_opinions"}}


def read_keys() -> set[str]:
    """The keys that the program asks of a project: config.KEY or settings.KEY, and config.METHOD()."""
    keys: set[str] = set()
    readers = ("agents", "disputes", "tasks/models", "tasks/configuration/stages.py")
    for node in (node for place in readers for node in nodes_in(place)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith(("config", "settings")):
            keys |= BY_METHODS.get(node.attr, {node.attr})
    return keys & set(SETTINGS)


def test_every_key_has_an_effect() -> None:
    assert read_keys() == set(SETTINGS)
