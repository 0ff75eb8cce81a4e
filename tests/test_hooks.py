"""What runs against the arrows is a slot, is filled in one place, and stands in this list."""

import importlib
import re
from pathlib import Path

from tasks.hooks import Slot
from tests import bell

ROOT = Path(__file__).resolve().parents[1]
APPS = ("tasks", "disputes", "agents", "steroidsweb")

FILLED = {
    "tasks.hooks.ring_loop": bell.silent,  # agents.loop.bell.ring, which the tests silence
    "tasks.hooks.is_told": "disputes.notifications.notices.is_told",
    "tasks.hooks.ring_notices": bell.silent,  # disputes.notifications.bell.ring
    "tasks.hooks.wake_for": "disputes.triage.wake_for",
    "tasks.hooks.waiting_line": "agents.web.standing",
    "tasks.hooks.spent_line": "agents.web.costs",
    "tasks.hooks.is_held": "disputes.rulings.blocking",
    "tasks.hooks.is_undecided": "disputes.rulings.blocking",
    "tasks.hooks.recount_dependants": "tasks.dependencies",
    "disputes.hooks.reach_of": "agents.judging",
    "disputes.hooks.sources_above": "steroidsweb.wiring",
}
# Django's own ways: triggers and schedules after each migration, and the sidebar's badges in the top room.
SIGNALS = {"tasks/apps.py", "agents/apps.py", "disputes/apps.py", "steroidsweb/audit.py"} | {
    "steroidsweb/accounts/second_factor.py"
}


def modules() -> list[Path]:
    return [path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts]


def test_every_slot_is_listed_here_and_filled_by_a_room_above() -> None:
    found = {}
    for path in modules():
        if re.search(r"\bSlot\(", path.read_text()):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for key, value in vars(importlib.import_module(name)).items():
                if isinstance(value, Slot):
                    assert value.name == key
                    found[f"{name}.{key}"] = value.function
    assert found.keys() == FILLED.keys()
    for name, function in found.items():
        assert function is not None, name
        wanted = FILLED[name]
        if isinstance(wanted, str):
            assert f"{function.__module__}.{function.__qualname__}".startswith(wanted), name
        else:
            assert function is wanted, name


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
