"""The commands that prepare, build and test a project, and the environment in which they run."""

import hashlib
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.hosts.git.mirror import Mirror
from agents.recipes import own_file
from agents.recipes.recipe import Recipe, needs_pip, needs_pytest, needs_python
from agents.verification import caches
from tasks.models import Project, Task

COMMAND_FILE_LIMIT = 256 * 1024
OF_THE_PROJECT = PREPARE, BUILD, TESTS = "prepare", "build", "tests"
ENVIRONMENT = "environment"
# Folders of version managers in the home of the host's user, and the caches of package managers.
TOOLCHAINS = {
    "RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "RBENV_ROOT": ".rbenv", "NVM_DIR": ".nvm",
    "SDKMAN_DIR": ".sdkman", "ASDF_DATA_DIR": ".asdf", "VOLTA_HOME": ".volta",
}  # fmt: skip
CACHES = {
    "CARGO_HOME": "cargo", "GOPATH": "go", "GOCACHE": "go-build", "GRADLE_USER_HOME": "gradle",
    "COMPOSER_HOME": "composer", "BUNDLE_USER_HOME": "bundle", "COREPACK_HOME": "corepack",
    "YARN_CACHE_FOLDER": "yarn", "npm_config_store_dir": "pnpm",
}  # fmt: skip
# npm would wait for more than a minute before it says that its registry is away.
PATIENCE = {"npm_config_fetch_retry_mintimeout": "1000", "npm_config_fetch_retry_maxtimeout": "5000"}
AGAIN = "tests again"  # the shim's name for the second try
FIRST, SECOND = "1", "2"


def commands_of(project: Project, mirror: Mirror, sha: str, task: Task | None = None) -> Recipe:
    """Return the project's own commands.

    A task that is to find the commands is verified with those that its commit names in steroids.yaml.
    """
    if task is not None and task.origin == Task.Origin.SETUP:
        return own_file.read(mirror.read(sha, own_file.NAME, COMMAND_FILE_LIMIT)) or Recipe()
    return configured(project)


def configured(project: Project) -> Recipe:
    """Return the commands in the project's settings."""
    config = project.config
    return Recipe(config.prepare_command, config.build_command, config.test_command)


def commands_hash(recipe: Recipe) -> str:
    """Return the hash of the commands; a verification holds for one commit under one set of commands."""
    return hashlib.sha256("\0".join(recipe.commands).encode()).hexdigest()


def own_environment(project: Project | None, run_folder: Path, role: str) -> dict[str, str]:
    """Return an environment from nothing, with a home and caches of this run alone, which are made here.

    No variable of the server is passed except those the operator named in PASS_TO_BUILDS.
    """
    home = run_folder / "home"
    temporary = run_folder / "tmp"
    for path in (home, temporary):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    cache = caches.prepare(project.pk if project else 0, run_folder, role)
    passed = {name: os.environ[name] for name in settings.PASS_TO_BUILDS if name in os.environ}
    return {
        **toolchain_folders(),
        **{name: str(cache / folder) for name, folder in CACHES.items()},
        **PATIENCE,
        **passed,
        "PATH": f"{run_folder / 'env' / 'bin'}:{system_path()}",
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "XDG_CACHE_HOME": str(cache),
        "PIP_CACHE_DIR": str(cache / "pip"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "npm_config_cache": str(cache / "npm"),
        "VIRTUAL_ENV": str(run_folder / "env"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "STEROIDS_TIME_SCALE": str(settings.TIME_SCALE),
    }


def toolchain_folders() -> dict[str, str]:
    """Return the variables that say where this user's version managers keep their toolchains.

    The home of a run is empty, so without them `cargo` would find no toolchain and `python3` no version.
    """
    home = Path.home()
    places = {name: Path(os.environ.get(name) or home / folder) for name, folder in TOOLCHAINS.items()}
    return {name: str(place) for name, place in places.items() if os.path.isdir(place)}


def system_path() -> str:
    """Return the host's PATH without the folder of the server's own environment."""
    own = Path(sys.prefix) / "bin"
    words = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(word for word in words if word and Path(word) != own)


def base_python() -> str:
    """Return the Python below the server's environment, from which fresh environments are made."""
    return str(getattr(sys, "_base_executable", None) or shutil.which("python3") or sys.executable)


def environment_steps(recipe: Recipe, run_folder: Path, environment: dict[str, str]) -> list[dict[str, Any]]:
    """Return the steps that make the run's Python environment; none if the commands need no Python.

    Pip and pytest are installed only if the commands call for them.
    """
    wanted = "\n".join(recipe.commands)
    if not needs_python(wanted):
        return []
    pip = [] if needs_pip(wanted) else ["--without-pip"]
    argv = [base_python(), "-m", "venv", *pip, str(run_folder / "env")]
    steps = [step(ENVIRONMENT, argv, run_folder, environment)]
    if needs_pytest(wanted):
        argv = [str(run_folder / "env" / "bin" / "python"), "-m", "pip", "install", "--quiet", "pytest"]
        steps.append(step(f"{ENVIRONMENT}: pytest", argv, run_folder, environment))
    return steps


def step(
    name: str, argv: list[str], cwd: Path, environment: dict[str, str], *, timeout: float = 0, stdin: str = ""
) -> dict[str, Any]:
    """Return one command of a run, as the shim reads it."""
    limit = timeout or settings.DURATIONS["command"]
    return {
        "name": name, "argv": argv, "cwd": str(cwd), "env": environment, "timeout": limit, "stdin": stdin,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """How many seconds each command may take."""

    prepare: float
    build: float
    test: float

    @classmethod
    def of(cls, project: Project) -> "Limits":
        config, scale = project.config, settings.TIME_SCALE
        return cls(config.prepare_timeout * scale, config.build_timeout * scale, config.test_timeout * scale)

    @classmethod
    def of_a_trial(cls) -> "Limits":
        """Return generous limits, since a trial is to find out how long the commands take."""
        longest = settings.DURATIONS["trial"]
        return cls(longest, longest, longest)


def verification_steps(
    recipe: Recipe, run_folder: Path, environment: dict[str, str], limits: Limits
) -> list[dict[str, Any]]:
    """Return the steps: environment, build and tests in a clean checkout; empty if there is nothing to run.

    Tests that fail are tried once more, to find those that fail only now and then.
    """
    clone = run_folder / "clone"
    # Otherwise pytest takes settings from a folder further up. The sandbox shows neither those nor this file:
    # there pytest begins at the top of a repository without settings, as it does for its own people.
    (run_folder / "pytest.ini").touch()
    steps = [
        step(name, ["/bin/sh", "-c", command], clone, environment, timeout=seconds)
        for name, command, seconds in (
            (PREPARE, recipe.prepare, limits.prepare),
            (BUILD, recipe.build, limits.build),
            (TESTS, recipe.test, limits.test),
        )
        if command
    ]
    for each in steps:
        if each["name"] == TESTS:
            each["env"] = environment | _asking_for_reports(run_folder, FIRST)
            each["again"] = _asking_for_reports(run_folder, SECOND)
    return [*environment_steps(recipe, run_folder, environment), *steps] if steps else []


def reports_folder(run_folder: Path, which: str) -> Path:
    """Return the folder where one try of the tests may leave its results as JUnit XML."""
    return run_folder / "reports" / which


def _asking_for_reports(run_folder: Path, which: str) -> dict[str, str]:
    """Return variables that make test runners write JUnit XML if they know how; the others ignore them."""
    folder = reports_folder(run_folder, which)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return {
        "STEROIDS_REPORTS": str(folder),
        "PYTEST_ADDOPTS": f"--junitxml={shlex.quote(str(folder / 'pytest.xml'))}",
        "GOTESTSUM_JUNITFILE": str(folder / "gotestsum.xml"),
    }
