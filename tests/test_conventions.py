"""What holds for the whole project: the core without Django, arrows that go down, nothing forgotten."""

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import yaml
from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import CreateModel
from django.db.migrations.questioner import NonInteractiveMigrationQuestioner
from django.db.migrations.state import ProjectState
from django.db.models import Model

from disputes.protocol.rulings.conflict_states import MARKS
from disputes.protocol.rulings.conflict_states import MOVES as OF_CONFLICTS
from tasks.states import MOVES, Status
from tests.sources import ROOT, nodes, tree

TESTS = ROOT / "tests"
APPS = ("tasks", "disputes", "agents", "steroidsweb")

# Text and values in, values out: no clock, no processes, no files.
PURE = [
    "tasks.states",
    "tasks.configuration.policy",
    "tasks.configuration.ladder",
    "tasks.text.branches",
    "tasks.text.counting",
    "tasks.text.fences",
    "tasks.text.places",
    "tasks.text.regex",
    "tasks.text.repository_urls",
    "tasks.text.storable",
    "tasks.text.toml",
    "tasks.text.unseen",
    "tasks.configuration.schema",
    "tasks.configuration.stages",
    "tasks.todo.asciidoc",
    "tasks.todo.format",
    "tasks.todo.lenient",
    "tasks.todo.lists",
    "tasks.todo.drafts",
    "tasks.todo.entries",
    "tasks.todo.meaning",
    "tasks.todo.order",
    "tasks.todo.org",
    "tasks.todo.wording",
    *(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted((ROOT / "disputes/protocol").rglob("*.py"))
        if path.stem != "__init__"
    ),
]
# The core of what holds processes and git: the machine, but not Django.
CORE = [
    *PURE,
    "tasks.configuration.reading",
    "tasks.remarks.meta_yaml",
    "tasks.configuration.yaml_files",
    "tasks.configuration.writing",
    "tasks.todo.notations",
    "agents.cli",
    "agents.money.prices",
    *(
        f"agents.{folder.replace('/', '.')}.{path.stem}"
        for folder in ("providers", "recipes", "reading", "hosts/git")
        for path in sorted((ROOT / "agents" / folder).glob("*.py"))
        if path.stem != "__init__"
    ),
    "agents.hosts.shims.shim",
    "agents.hosts.shims.weight",
    "agents.hosts.shims.forking",
    "agents.hosts.processes",
    "agents.inside.gate",
    "agents.inside.first_process",
    "disputes.notifications.courier",
    "agents.hosts.lfs",
    "agents.hosts.mending",
    "agents.hosts.submodules",
    "tasks.events",
]
# Runs where the project's packages are not: on an agent's PATH, and as `python -I -S`.
STANDARD_LIBRARY = [
    "agents.cli", "agents.hosts.shims.forking", "agents.hosts.shims.shim", "agents.hosts.shims.weight",
    "agents.hosts.processes", "agents.inside.gate", "agents.inside.first_process",
]  # fmt: skip
IMPURE = {
    "time", "datetime", "random", "secrets", "uuid", "os", "pathlib", "io", "tempfile", "shutil", "glob",
    "subprocess", "socket", "signal", "threading", "asyncio", "multiprocessing", "urllib", "http",
    "sqlite3", "logging",
}  # fmt: skip


# --- Reading the source -----------------------------------------------------------------------------------


def sources(folder: str) -> list[Path]:
    """The modules below a folder, migrations left out."""
    found = sorted((ROOT / folder).rglob("*.py"))
    return [path for path in found if "migrations" not in path.parts]


def module_path(module: str) -> Path:
    return ROOT / (module.replace(".", "/") + ".py")


def for_types_only(path: Path) -> set[int]:
    """The nodes below `if TYPE_CHECKING:`, which no interpreter sees."""
    return {
        id(below)
        for node in nodes(path)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for child in node.body
        for below in ast.walk(child)
    }


@cache
def imports(path: Path, *, types: bool = True) -> list[str]:
    """What a module imports, at its top or anywhere inside; `a.b.name` for `from a.b import name`."""
    passed_over = set() if types else for_types_only(path)
    names: list[str] = []
    for node in nodes(path):
        if id(node) in passed_over:
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively, in line {node.lineno}"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --- The core ---------------------------------------------------------------------------------------------


# Each module is imported as the first of the project, so that none needs another one to come before it.
IMPORTED_ALONE = """
import importlib, json, sys, traceback

apps, modules = json.load(sys.stdin)
for name in ("django", "rest_framework", "django_q", "unfold"):
    sys.modules[name] = None
failed = {}
for module in modules:
    for name in [name for name in sys.modules if name.partition(".")[0] in apps]:
        del sys.modules[name]
    try:
        importlib.import_module(module)
    except BaseException:
        failed[module] = traceback.format_exc()
json.dump(failed, sys.stdout)
"""


def test_the_core_needs_no_django() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED_ALONE], cwd=ROOT, input=json.dumps([APPS, CORE]),
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    failed = json.loads(done.stdout)

    assert not failed, "\n".join(f"{module}:\n{trace}" for module, trace in failed.items())


def test_the_core_imports_only_the_core_of_the_project() -> None:
    others = [
        f"{module}: {name}"
        for module in CORE
        for name in imports(module_path(module), types=False)
        if name.split(".")[0] in APPS and name not in CORE and name.rpartition(".")[0] not in CORE
    ]

    assert others == []


def roots(modules: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each of these modules with each package of which it imports anything."""
    for module in modules:
        for name in sorted({name.split(".")[0] for name in imports(module_path(module))}):
            yield module, name


def test_the_pure_core_has_no_clock_no_files_and_no_processes() -> None:
    assert [(module, root) for module, root in roots(PURE) if root in IMPURE] == []


def test_the_pure_core_needs_only_the_standard_library() -> None:
    known = sys.stdlib_module_names | set(APPS)

    assert [(module, root) for module, root in roots(PURE) if root not in known] == []


def test_what_runs_beside_the_agent_needs_only_the_standard_library() -> None:
    known = sys.stdlib_module_names
    ours = {*STANDARD_LIBRARY, "disputes.notifications.courier"}  # that imports what it needs when it sends
    others = [
        (module, name)
        for module in STANDARD_LIBRARY
        for name in imports(module_path(module))
        if name.split(".")[0] not in known and ours.isdisjoint({name, name.rpartition(".")[0]})
    ]
    assert others == []
    player = roots(["agents.providers.replay_player"])
    assert [root for _, root in player if root not in known | {"yaml"}] == []


def test_a_module_of_the_core_has_a_docstring() -> None:
    assert [module for module in CORE if not ast.get_docstring(tree(module_path(module)))] == []


# --- The arrows -------------------------------------------------------------------------------------------

# steroidsweb, which is the site, knows them all; below it agents, disputes, tasks, each only what is lower.
FORBIDDEN = {
    "tasks": {"disputes", "agents", "steroidsweb"},
    "disputes": {"agents", "steroidsweb"},
    "agents": {"steroidsweb"},
}


def test_arrows_go_down_only() -> None:
    up = [
        f"{relative(path)}: {name}"
        for app, above in FORBIDDEN.items()
        for path in sources(app)
        for name in imports(path)
        if name.split(".")[0] in above
    ]

    assert up == []


def test_the_program_imports_nothing_of_its_tests() -> None:
    of_tests = [
        f"{relative(path)}: {name}"
        for app in APPS
        for path in sources(app)
        for name in imports(path)
        if name.split(".")[0] in {"tests", "pytest", "hypothesis"}
    ]

    assert of_tests == []


# --- The database -----------------------------------------------------------------------------------------


def test_no_migration_is_missing() -> None:
    loader = MigrationLoader(None)
    changes = MigrationAutodetector(
        loader.project_state(),
        ProjectState.from_apps(apps),
        NonInteractiveMigrationQuestioner(specified_apps=set(APPS), dry_run=True),
    ).changes(graph=loader.graph)

    missing = {
        app: [str(operation.describe()) for migration in migrations for operation in migration.operations]
        for app, migrations in changes.items()
        if app in APPS
    }
    assert missing == {}


def test_no_two_migrations_stand_side_by_side() -> None:
    assert MigrationLoader(None).detect_conflicts() == {}


def test_no_table_in_a_migration_stands_on_a_class_of_the_program() -> None:
    made = [
        operation
        for (app, _), migration in MigrationLoader(None).disk_migrations.items()
        for operation in migration.operations
        if app in APPS and isinstance(operation, CreateModel)
    ]

    assert made
    assert [each.name for each in made if not all(isinstance(b, str) or b is Model for b in each.bases)] == []


def test_what_goes_into_rows_or_is_compared_with_them_goes_by_the_databases_clock() -> None:
    """A backup, the schedules of django-q2 and what a program without rows measures go by the machine's."""
    own = {"agents/backups/making.py", "agents/backups/restoring.py", "agents/loop/schedules.py"}
    own |= {"tasks/database/clock.py", "tasks/models/moments.py"}
    found = {
        str(relative(path))
        for app in APPS
        for path in sources(app)
        if re.search(r"timezone\.now\b|auto_now", path.read_text())
    }
    assert found == own


def test_no_migration_imports_the_program() -> None:
    """What it needs would change under it."""
    paths = [path for app in APPS for path in (ROOT / app / "migrations").glob("*.py")]
    named = {
        f"{path.parent.parent.name}/{path.name}: {name}"
        for path in paths
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
        if name.split(".")[0] in APPS
    }
    assert paths
    assert named == set()


def test_the_database_knows_every_status() -> None:
    choices = dict(apps.get_model("tasks", "Task")._meta.get_field("status").choices)

    assert sorted(choices) == sorted(status.value for status in Status)


def test_every_move_is_made_somewhere() -> None:
    makers = [path for app in APPS for path in sources(app) if path.name != "states.py"]
    texts = [path.read_text(encoding="utf-8") for path in makers]

    assert [verb for verb in MOVES if not any(f'"{verb}"' in text for text in texts)] == []


def test_only_the_task_assigns_its_status() -> None:
    # Rows of other tables have a status too; what is looked for is `task.status = ...`.
    found = [
        f"{relative(path)}:{node.lineno}"
        for app in APPS
        for path in sources(app)
        for node in nodes(path)
        if isinstance(node, ast.Assign)
        for goal in node.targets
        if ast.unparse(goal).endswith("task.status")
    ]

    assert found == []


WRITING_CALLS = (".update", ".create", "get_or_create", "update_or_create", "Conflict")


def writes_of(path: Path) -> Iterator[tuple[int, str, str]]:
    """Whatever a module assigns to an attribute or hands over by name: its line, the name, the value."""
    for node in nodes(path):
        if isinstance(node, ast.Assign):
            for goal in node.targets:
                names = goal.elts if isinstance(goal, ast.Tuple) else [goal]
                for name in names:
                    if isinstance(name, ast.Attribute):
                        yield node.lineno, name.attr, ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(WRITING_CALLS):
            for word in node.keywords:
                yield node.lineno, word.arg or "", ast.unparse(node)


def test_only_the_conflict_writes_its_state() -> None:
    # `followed` is a column of conflicts alone; a status is one of theirs where the line speaks of them.
    found = [
        f"{relative(path)}:{line}"
        for app in APPS
        for path in sources(app)
        if relative(path) != "disputes/models/conflict.py"
        for line, name, text in writes_of(path)
        if name == "followed" or (name == "status" and re.search(r"\bconflicts?\b", text, re.IGNORECASE))
    ]

    assert found == []


def test_every_move_of_a_conflict_is_made_by_a_method_of_it() -> None:
    model = (ROOT / "disputes/models/conflict.py").read_text(encoding="utf-8")

    assert [verb for verb in OF_CONFLICTS if f'"{verb}"' not in model and verb not in MARKS.values()] == []


def test_rows_are_locked_in_one_way() -> None:
    """A bare `select_for_update()` locks the key as well, and what is joined: that is how circles begin."""
    found = [
        f"{relative(path)}:{node.lineno}"
        for app in APPS
        for path in sources(app)
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr == "select_for_update"
    ]

    assert [place.partition(":")[0] for place in found] == ["tasks/database/locking.py"], found


def test_every_refusal_says_what_to_do_next() -> None:
    found = [
        f"{relative(path)}:{node.lineno}"
        for app in APPS
        for path in sources(app)
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Refused", "Invalid"}
        if any(isinstance(said, ast.Constant) and said.value == "" for said in node.args)
    ]

    assert found == []


def test_no_exception_is_kept_and_raised_again() -> None:
    """It keeps what it was raised through, each time more, with everything that these frames hold."""
    found = [
        f"{relative(path)}:{node.lineno}"
        for app in APPS
        for path in sources(app)
        for node in nodes(path)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name) and node.exc.id.isupper()
    ]

    assert found == []


# --- The tests --------------------------------------------------------------------------------------------

TEST_FILES = sorted(TESTS.rglob("test_*.py"))
HELPERS = sorted(path for path in TESTS.rglob("*.py") if path not in TEST_FILES)
COMMANDS = sorted(
    path.stem for path in ROOT.glob("*/management/commands/*.py") if not path.stem.startswith("_")
)
CHECKING_CALLS = {"raises", "warns", "fail", "expect"}


def test_every_command_has_a_test() -> None:
    elsewhere = [path for path in TEST_FILES + HELPERS if path != Path(__file__).resolve()]
    texts = [path.read_text(encoding="utf-8") for path in elsewhere]

    assert [command for command in COMMANDS if not any(command in text for text in texts)] == []


def test_a_folder_of_tests_is_a_package() -> None:
    folders = sorted({path.parent for path in TEST_FILES})

    assert [relative(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


@cache
def functions(path: Path) -> list[ast.FunctionDef]:
    """Every function of a file, also the ones in classes and in other functions."""
    return [node for node in nodes(path) if isinstance(node, ast.FunctionDef)]


@cache
def called(function: ast.FunctionDef) -> set[str]:
    """The last names of all that it calls: `raises` for `pytest.raises(...)`."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = node.func
            names.add(name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", ""))
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)  # a property may check something as well
    return names


@cache
def checks(function: ast.FunctionDef) -> bool:
    """Whether it holds something against what it expects."""
    return (
        any(isinstance(node, ast.Assert) for node in ast.walk(function))
        or bool(called(function) & CHECKING_CALLS)
        or any(name.startswith("assert") for name in called(function))
    )


@cache
def checking_helpers() -> set[str]:
    """Helpers of the tests that check something themselves, or through another one."""
    helpers = [
        function for path in TEST_FILES + HELPERS for function in functions(path)
        if not function.name.startswith("test_")
    ]  # fmt: skip
    found = {function.name for function in helpers if checks(function)}
    while new := {f.name for f in helpers if f.name not in found and called(f) & found}:
        found |= new
    return found


def is_core(path: Path) -> bool:
    """Whether a file tests without rows; a test of rows may leave the checking to their constraints."""
    return not any(name.startswith(("django.", "tests.factories")) for name in imports(path))


def test_every_test_of_the_core_checks_something() -> None:
    helpers = checking_helpers()
    idle = [
        f"{relative(path)}: {function.name}"
        for path in TEST_FILES
        if is_core(path)
        for function in functions(path)
        if function.name.startswith("test_") and not checks(function) and not called(function) & helpers
    ]

    assert idle == []


def test_no_test_hides_another_one_of_its_name() -> None:
    names = [
        f"{relative(path)}: {node.name}"
        for path in TEST_FILES
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef)
    ]

    assert [name for name, times in Counter(names).items() if times > 1] == []


def test_a_file_of_tests_says_what_it_is_about() -> None:
    assert [relative(path) for path in TEST_FILES if not ast.get_docstring(tree(path))] == []


# --- The benchmarks' faults ---------------------------------------------------------------------------------


def test_every_fault_that_is_planted_stands_once_in_the_program() -> None:
    """Code moves on, and what plants a fault nowhere proves nothing."""
    of_rooms = yaml.safe_load((ROOT / "bench/faults.yaml").read_text(encoding="utf-8"))
    of_chaos = yaml.safe_load((ROOT / "bench/chaos/planted.yaml").read_text(encoding="utf-8"))
    program = [path.read_text(encoding="utf-8") for app in APPS for path in sources(app)]
    rows = [*of_chaos, *(row for room in of_rooms.values() for row in room)]
    assert len(rows) > 60
    assert [row["what"] for row in rows if sum(text.count(row["old"]) for text in program) != 1] == []
