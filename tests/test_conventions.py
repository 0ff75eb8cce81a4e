"""What holds for the whole project: the core without Django, arrows that go down, nothing forgotten."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.questioner import NonInteractiveMigrationQuestioner
from django.db.migrations.state import ProjectState

from tasks.states import MOVES, Status

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
APPS = ("tasks", "disputes", "agents", "steroidsweb")

# Text and values in, values out: no clock, no processes, no files.
PURE = [
    "tasks.states",
    "tasks.policy",
    "tasks.ladder",
    "tasks.settings_schema",
    "tasks.stages",
    "tasks.todo",
    *(
        f"disputes.protocol.{path.stem}"
        for path in sorted((ROOT / "disputes/protocol").glob("*.py"))
        if path.stem != "__init__"
    ),
]
# The core of what holds processes and git: the machine, but not Django.
CORE = [
    *PURE,
    "tasks.settings_file",
    "tasks.meta_yaml",
    "tasks.yaml_files",
    "tasks.settings_export",
    "agents.cli",
    "agents.prices",
    *(
        f"agents.{folder}.{path.stem}"
        for folder in ("providers", "recipes", "reading")
        for path in sorted((ROOT / "agents" / folder).glob("*.py"))
        if path.stem != "__init__"
    ),
    "agents.runtime.shim",
    "agents.runtime.processes",
    "agents.runtime.git",
]
# Runs where the project's packages are not: on an agent's PATH, and as `python -I -S`.
STANDARD_LIBRARY = ["agents.cli", "agents.runtime.shim", "agents.runtime.processes"]
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


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path.relative_to(ROOT)))


def module_path(module: str) -> Path:
    return ROOT / (module.replace(".", "/") + ".py")


def for_types_only(module: ast.Module) -> set[int]:
    """The nodes below `if TYPE_CHECKING:`, which no interpreter sees."""
    return {
        id(below)
        for node in ast.walk(module)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for child in node.body
        for below in ast.walk(child)
    }


def imports(path: Path, *, types: bool = True) -> Iterator[str]:
    """What a module imports, at its top or anywhere inside; `a.b.name` for `from a.b import name`."""
    module = tree(path)
    passed_over = set() if types else for_types_only(module)
    for node in ast.walk(module):
        if id(node) in passed_over:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively, in line {node.lineno}"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --- The core ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", CORE)
def test_the_core_needs_no_django(module: str) -> None:
    code = (
        "import sys\n"
        "for name in ('django', 'rest_framework', 'django_q', 'unfold'): sys.modules[name] = None\n"
        f"import {module}\n"
        f"assert {module!r} in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", CORE)
def test_the_core_imports_only_the_core_of_the_project(module: str) -> None:
    ours = {name for name in imports(module_path(module), types=False) if name.split(".")[0] in APPS}

    assert all(name in CORE or name.rpartition(".")[0] in CORE for name in ours), ours


@pytest.mark.parametrize("module", PURE)
def test_the_pure_core_has_no_clock_no_files_and_no_processes(module: str) -> None:
    roots = {name.split(".")[0] for name in imports(module_path(module))}

    assert roots & IMPURE == set()


@pytest.mark.parametrize("module", PURE)
def test_the_pure_core_needs_only_the_standard_library(module: str) -> None:
    roots = {name.split(".")[0] for name in imports(module_path(module))}

    assert roots <= sys.stdlib_module_names | set(APPS)


@pytest.mark.parametrize("module", STANDARD_LIBRARY)
def test_what_runs_beside_the_agent_needs_only_the_standard_library(module: str) -> None:
    roots = {name.split(".")[0] for name in imports(module_path(module))}

    assert roots <= sys.stdlib_module_names | {"processes"}


@pytest.mark.parametrize("module", CORE)
def test_a_module_of_the_core_has_a_docstring(module: str) -> None:
    assert ast.get_docstring(tree(module_path(module)))


# --- The arrows -------------------------------------------------------------------------------------------

# steroidsweb, which is the site, knows them all; below it agents, disputes, tasks, each only what is lower.
FORBIDDEN = {
    "tasks": {"disputes", "agents", "steroidsweb"},
    "disputes": {"agents", "steroidsweb"},
    "agents": {"steroidsweb"},
}
ALLOWED = {"steroidsweb.__version__"}
MODULES = [path for app in FORBIDDEN for path in sources(app)]


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_arrows_go_down_only(path: Path) -> None:
    above = FORBIDDEN[path.relative_to(ROOT).parts[0]]
    up = {name for name in imports(path) if name.split(".")[0] in above} - ALLOWED

    assert up == set()


@pytest.mark.parametrize("path", [*MODULES, *sources("steroidsweb")], ids=relative)
def test_the_program_imports_nothing_of_its_tests(path: Path) -> None:
    assert {
        name for name in imports(path) if name.split(".")[0] in {"tests", "pytest", "hypothesis"}
    } == set()


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


@pytest.mark.parametrize("status", Status)
def test_the_database_knows_every_status(status: Status) -> None:
    choices = dict(apps.get_model("tasks", "Task")._meta.get_field("status").choices)

    assert status.value in choices
    assert len(choices) == len(Status)


@pytest.mark.parametrize("verb", MOVES)
def test_every_move_is_made_somewhere(verb: str) -> None:
    makers = [path for app in APPS for path in sources(app) if path.name != "states.py"]

    assert any(f'"{verb}"' in path.read_text(encoding="utf-8") for path in makers)


def test_only_the_task_assigns_its_status() -> None:
    # Rows of other tables have a status too; what is looked for is `task.status = ...`.
    found = [
        f"{relative(path)}:{node.lineno}"
        for app in APPS
        for path in sources(app)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Assign)
        for goal in node.targets
        if ast.unparse(goal).endswith("task.status")
    ]

    assert found == []


# --- The tests --------------------------------------------------------------------------------------------

TEST_FILES = sorted(TESTS.rglob("test_*.py"))
HELPERS = sorted(path for path in TESTS.rglob("*.py") if path not in TEST_FILES)
COMMANDS = sorted(
    path.stem for path in ROOT.glob("*/management/commands/*.py") if not path.stem.startswith("_")
)
CHECKING_CALLS = {"raises", "warns", "fail", "expect"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_test(command: str) -> None:
    elsewhere = [path for path in TEST_FILES + HELPERS if path != Path(__file__).resolve()]

    assert any(command in path.read_text(encoding="utf-8") for path in elsewhere)


@pytest.mark.parametrize("folder", sorted({path.parent for path in TEST_FILES}), ids=relative)
def test_a_folder_of_tests_is_a_package(folder: Path) -> None:
    assert (folder / "__init__.py").is_file()


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    """Every function of a file, also the ones in classes and in other functions."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef):
            yield node


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


def checks(function: ast.FunctionDef) -> bool:
    """Whether it holds something against what it expects."""
    names = called(function)
    return (
        any(isinstance(node, ast.Assert) for node in ast.walk(function))
        or bool(names & CHECKING_CALLS)
        or any(name.startswith("assert") for name in names)
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


@pytest.mark.parametrize("path", [path for path in TEST_FILES if is_core(path)], ids=relative)
def test_every_test_of_the_core_checks_something(path: Path) -> None:
    helpers = checking_helpers()
    tests = [function for function in functions(path) if function.name.startswith("test_")]
    idle = [test.name for test in tests if not checks(test) and not called(test) & helpers]

    assert idle == []


@pytest.mark.parametrize("path", TEST_FILES, ids=relative)
def test_no_test_hides_another_one_of_its_name(path: Path) -> None:
    names = [node.name for node in tree(path).body if isinstance(node, ast.FunctionDef)]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("path", TEST_FILES, ids=relative)
def test_a_file_of_tests_says_what_it_is_about(path: Path) -> None:
    assert ast.get_docstring(tree(path))
