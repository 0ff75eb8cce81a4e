"""bench/house.py: it finds what nothing reaches, and nothing of the product is unreached."""

import ast
import sys
from collections import Counter
from pathlib import Path

from tests.sources import ROOT, tree

sys.path.insert(0, str(ROOT / "bench"))

from house import unreached  # noqa: E402
from structure import measure, modules  # noqa: E402

FOLDER_MAX = 25  # modules

TREE = {
    "pyproject.toml": '[project]\nname = "x"\n',
    "manage.py": "",
    "steroidsweb/settings.py": 'USE_TZ = True\nBELL = "tasks.bell.ring"\nUNREAD = 1\n',
    "agents/__init__.py": "",
    "disputes/__init__.py": "",
    "tasks/__init__.py": "",
    "tasks/bell.py": "def ring(): ...\ndef hush(): ...\n",
    "tasks/urls.py": (
        "from django.conf import settings\nfrom tasks import work\n"
        "urlpatterns = [work.page, work.Shown, settings.BELL]\n"
    ),
    "tasks/work.py": (
        "LIMIT, SPARE = 3, 4\n"
        "def page(hush=LIMIT):\n    return hush\n"  # a name of its own, not tasks.bell.hush
        "def only_itself():\n    return only_itself()\n"
        "def called_by_the_dead():\n    return 1\n"
        "def dead():\n    return called_by_the_dead()\n"
        "class Shown:\n    def in_a_template(self): ...\n    def nowhere(self): ...\n"
        "    def __str__(self): ...\n"
        "class Gone:\n    def method(self): ...\n"
    ),
    "templates/page.html": "{{ shown.in_a_template }} nowhere",
}


def test_what_nothing_leads_to_is_listed_with_its_line(tmp_path: Path) -> None:
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert unreached(tmp_path) == [
        "steroidsweb/settings.py:3 UNREAD",
        "tasks/bell.py:2 hush",
        "tasks/work.py:1 SPARE",
        "tasks/work.py:4 only_itself",
        "tasks/work.py:6 called_by_the_dead",
        "tasks/work.py:8 dead",
        "tasks/work.py:12 Shown.nowhere",
        "tasks/work.py:14 Gone",
    ]


def test_the_house_is_in_order() -> None:
    """In one test, for reading the whole program takes seconds."""
    house = measure()
    assert house.circles == []
    assert house.upward == []
    assert [folder for folder in house.folders if folder[0] > FOLDER_MAX] == []
    assert [name for number, name in house.branches if number > 15] == []
    assert unreached(ROOT) == []


def test_no_folder_of_tests_is_larger_than_one_of_the_program_may_be() -> None:
    """Modules of tests count; helpers beside them do not."""
    folders = Counter(str(path.parent.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    assert [folder for folder in folders.items() if folder[1] > FOLDER_MAX] == []


def test_a_class_name_has_one_meaning_in_an_app() -> None:
    names = Counter(
        (path.relative_to(ROOT).parts[0], node.name)
        for path in modules().values()
        for node in tree(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name != "Command"
    )
    assert [name for name, count in names.items() if count > 1] == []
