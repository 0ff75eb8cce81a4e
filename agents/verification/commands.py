"""Which commands prepare, build and test a project, and in which environment they run."""

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
from agents.recipes.recipe import Recipe, needs_python
from tasks.models import Project, Task
from tasks.text.regex import regex

COMMAND_FILE_LIMIT = 256 * 1024
PREPARE, BUILD, TESTS = "prepare", "build", "tests"
PYTEST = regex(r"(?<![\w./-])py\.?test(?![\w.-])")
ENVIRONMENT = "environment"
# Folders of version managers in the home of whoever runs this host, and what each package manager keeps.
TOOLCHAINS = {
    "RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "RBENV_ROOT": ".rbenv", "NVM_DIR": ".nvm",
    "SDKMAN_DIR": ".sdkman", "ASDF_DATA_DIR": ".asdf", "VOLTA_HOME": ".volta",
}  # fmt: skip
CACHES = {
    "CARGO_HOME": "cargo", "GOPATH": "go", "GOCACHE": "go-build", "GRADLE_USER_HOME": "gradle",
    "COMPOSER_HOME": "composer", "BUNDLE_USER_HOME": "bundle", "COREPACK_HOME": "corepack",
    "YARN_CACHE_FOLDER": "yarn", "npm_config_store_dir": "pnpm",
}  # fmt: skip
AGAIN = "tests again"  # as the shim names the second try
FIRST, SECOND = "1", "2"
PYTHON_ITSELF = regex(r"\bpython[\d.]*")  # which asks for no pip by itself


def commands_of(project: Project, mirror: Mirror, sha: str, task: Task | None = None) -> Recipe:
    """The project's own commands. A task that is to find them is verified with what its commit names."""
    if task is not None and task.origin == Task.Origin.SETUP:
        return own_file.read(mirror.read(sha, own_file.NAME, COMMAND_FILE_LIMIT)) or Recipe()
    return configured(project)


def configured(project: Project) -> Recipe:
    """The commands in the project's settings."""
    config = project.config
    return Recipe(config.prepare_command, config.build_command, config.test_command)


def commands_hash(recipe: Recipe) -> str:
    """A verification holds for one commit under one set of commands."""
    return hashlib.sha256("\0".join(recipe.commands).encode()).hexdigest()


def own_environment(project: Project | None, run_folder: Path, role: str) -> dict[str, str]:
    """An environment from nothing, with a home and a cache that belong to this run or this project and role.

    Never the server's: no variable of ours passes but those the operator named in PASS_TO_BUILDS. Coders and
    verifications share no cache, so that an agent cannot plant anything in what a verification trusts.
    """
    home = run_folder / "home"
    temporary = run_folder / "tmp"
    cache = Path(settings.HOME) / "env" / (str(project.pk) if project else "none") / role / "cache"
    for path in (home, temporary, cache):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.utime(cache.parent)  # outside of what runs may write to: when the cache was used last
    passed = {name: os.environ[name] for name in settings.PASS_TO_BUILDS if name in os.environ}
    return {
        **toolchain_folders(),
        **{name: str(cache / folder) for name, folder in CACHES.items()},
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


def caches_of(steps: list[dict[str, Any]]) -> list[Path]:
    """The caches of projects and roles that these steps write to.

    XDG_CACHE_HOME does not tell it: the commands of most agents have theirs in the run's own home.
    """
    places = {Path(one["env"]["PIP_CACHE_DIR"]).parent for one in steps if "PIP_CACHE_DIR" in one["env"]}
    return sorted(place for place in places if place.is_relative_to(Path(settings.HOME) / "env"))


def toolchain_folders() -> dict[str, str]:
    """Where version managers of this host's user keep their toolchains; their programs ask by variable.

    The home of a run is empty, so that without these `cargo` finds no toolchain and `python3` no version.
    """
    home = Path.home()
    places = {name: Path(os.environ.get(name) or home / folder) for name, folder in TOOLCHAINS.items()}
    return {name: str(place) for name, place in places.items() if os.path.isdir(place)}


def system_path() -> str:
    """The host's PATH without the folder of the server's own environment."""
    own = Path(sys.prefix) / "bin"
    words = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(word for word in words if word and Path(word) != own)


def base_python() -> str:
    """The Python below the server's environment: what a fresh environment is made from."""
    return str(getattr(sys, "_base_executable", None) or shutil.which("python3") or sys.executable)


def environment_steps(recipe: Recipe, run_folder: Path, environment: dict[str, str]) -> list[dict[str, Any]]:
    """Make the Python environment of this run, with pip and pytest only where the commands call for them."""
    wanted = "\n".join(recipe.commands)
    if not needs_python(wanted):
        return []
    pip = needs_python(PYTHON_ITSELF.sub("", wanted))
    argv = [base_python(), "-m", "venv", *([] if pip else ["--without-pip"]), str(run_folder / "env")]
    steps = [step(ENVIRONMENT, argv, run_folder, environment)]
    if PYTEST.search(wanted):
        argv = [str(run_folder / "env" / "bin" / "python"), "-m", "pip", "install", "--quiet", "pytest"]
        steps.append(step(f"{ENVIRONMENT}: pytest", argv, run_folder, environment))
    return steps


def step(
    name: str, argv: list[str], cwd: Path, environment: dict[str, str], *, timeout: float = 0, stdin: str = ""
) -> dict[str, Any]:
    """One command of a run, as the shim reads it."""
    limit = timeout or settings.DURATIONS["command"]
    return {
        "name": name, "argv": argv, "cwd": str(cwd), "env": environment, "timeout": limit, "stdin": stdin,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that each command may take."""

    prepare: float
    build: float
    test: float

    @classmethod
    def of(cls, project: Project) -> "Limits":
        config, scale = project.config, settings.TIME_SCALE
        return cls(config.prepare_timeout * scale, config.build_timeout * scale, config.test_timeout * scale)

    @classmethod
    def of_a_trial(cls) -> "Limits":
        """Generous: how long the commands take is what a trial finds out."""
        longest = settings.DURATIONS["trial"]
        return cls(longest, longest, longest)


def verification_steps(
    recipe: Recipe, run_folder: Path, environment: dict[str, str], limits: Limits
) -> list[dict[str, Any]]:
    """Environment, build and tests in a clean checkout. Empty where there is nothing to run.

    Tests that fail are tried once more, to tell the ones that fail now and then.
    """
    clone = run_folder / "clone"
    # Or pytest takes the settings of whatever lies further up. The sandbox shows nothing that does, nor this
    # file: there the top of a repository without settings is where pytest begins, as it is for its people.
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
    """Where one try of the tests may leave its results as JUnit XML."""
    return run_folder / "reports" / which


def _asking_for_reports(run_folder: Path, which: str) -> dict[str, str]:
    """Variables by which test runners that know how write JUnit XML; the others take no notice."""
    folder = reports_folder(run_folder, which)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return {
        "STEROIDS_REPORTS": str(folder),
        "PYTEST_ADDOPTS": f"--junitxml={shlex.quote(str(folder / 'pytest.xml'))}",
        "GOTESTSUM_JUNITFILE": str(folder / "gotestsum.xml"),
    }
