"""docs/settings.md: its tables of a project's keys are the schema's."""

import ast
from pathlib import Path

from tasks.policy import SETTINGS
from tasks.settings_export import write_reference
from tasks.settings_file import AGENT_KEYS

DOCS = Path(__file__).parents[1] / "docs" / "settings.md"


def test_the_tables_are_those_of_the_schema() -> None:
    text = DOCS.read_text(encoding="utf-8")
    tables = text.partition("a test holds them to it. -->\n\n")[2].partition("<!-- End of the tables. -->")[0]

    assert tables == write_reference()  # python manage.py export_config --reference


def test_every_key_has_one_row() -> None:
    rows = [line for line in write_reference().splitlines() if line.startswith("| `")]

    assert sorted(row.split("`")[1] for row in rows) == sorted(SETTINGS)
    assert all(row.count(" | ") == 3 for row in rows)


def test_every_key_of_an_agent_is_named() -> None:
    paragraph = DOCS.read_text(encoding="utf-8").partition("`agents` is a list.")[2].partition("\n\n")[0]

    assert [key for key in AGENT_KEYS if f"`{key}`" not in paragraph] == []


def test_a_key_that_claims_an_effect_is_read() -> None:
    # The policy is asked through effect(). Reading in the core counts too: a core rule nobody calls is dead code.
    root = DOCS.parents[1]
    paths = [path for app in ("agents", "disputes", "tasks/models") for path in (root / app).rglob("*.py")]
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}

    assert [
        key for key, entry in SETTINGS.items() if not entry.kept_for and key not in read | {"policy"}
    ] == []
    assert "effect" in read
