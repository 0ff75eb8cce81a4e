"""What runs against the arrows is a slot, is filled in one place, and stands in this list."""

import importlib
import inspect
import re
import string
from pathlib import Path
from typing import Any

from django.utils.module_loading import import_string

from steroidsweb import wiring
from tasks.hooks import Slot

ROOT = Path(__file__).resolve().parents[1]
APPS = ("tasks", "disputes", "agents", "steroidsweb")

DECLARED = re.compile(r'(\w+): "Slot\[\[(.*)\], (.+)\]" = Slot\("(\w+)"\)$')
# Django's own ways: triggers and schedules after each migration, and the sidebar's badges in the top room.
SIGNALS = {
    "tasks/database/clock.py",
    "tasks/apps.py",
    "agents/apps.py",
    "disputes/apps.py",
    "steroidsweb/audit.py",
} | {"steroidsweb/accounts/second_factor.py"}


def modules() -> list[Path]:
    return [path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts]


def bare(annotation: Any) -> str:
    """As it is written, without the modules in which its names are."""
    said = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"[\w.]+\.(?=\w)", "", said)


def test_every_slot_is_filled_by_a_function_that_takes_and_gives_what_the_slot_says() -> None:
    functions = {slot: import_string(name) for slot, name in wiring.FILLED}
    found = []
    for path in modules():
        for line in path.read_text().splitlines():
            assert "= Slot(" not in line or DECLARED.match(line), line
            if declared := DECLARED.match(line):
                key, taken, given, name = declared.groups()
                module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
                slot = getattr(module, key)
                function = inspect.signature(functions[slot])
                assert slot.name == name == key
                assert ", ".join(bare(each.annotation) for each in function.parameters.values()) == taken, key
                assert bare(function.return_annotation) == bare(given), key
                found.append(slot)
    assert set(found) == functions.keys()


def test_a_slot_loads_its_function_when_it_is_first_called() -> None:
    slot: Slot[[str], str] = Slot("shout")
    slot.fill(wiring.LoadedWhenCalled(slot, "string.capwords"))

    assert slot("a word") == "A Word"
    assert slot.function is string.capwords


def test_nothing_is_filled_or_patched_elsewhere() -> None:
    faults = []
    for path in modules():
        name, text = str(path.relative_to(ROOT)), path.read_text()
        if ".fill(" in text and "hooks" in text and name != "steroidsweb/wiring.py":
            faults.append(f"{name} fills a slot")
        if re.search(r"import_string", text) and not name.startswith("steroidsweb/"):
            faults.append(f"{name} imports by a string")
        if re.search(r"\b(?:pre|post)_\w+\.connect\(|@receiver\(", text) and name not in SIGNALS:
            faults.append(f"{name} listens to a signal")
    assert faults == []
