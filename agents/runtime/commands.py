"""Which commands build and test a project, and in which environment they run."""

import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.runtime.detect import Commands, detect
from agents.runtime.git import Mirror
from tasks.models import Project

COMMAND_FILE_LIMIT = 256 * 1024


def commands_of(project: Project, mirror: Mirror, sha: str) -> Commands:
    """The project's own commands; else the detected ones, where it wants detection."""
    config = project.config
    if config.build_command or config.test_command or not config.detect_commands:
        return Commands(config.build_command, config.test_command, _kind(mirror.names(sha)))
    return detect(mirror.names(sha), lambda path: mirror.read(sha, path, COMMAND_FILE_LIMIT))


def _kind(names: list[str]) -> str:
    return "python" if {"pyproject.toml", "setup.py"} & set(names) else ""


def commands_hash(commands: Commands) -> str:
    """A verification holds for one commit under one set of commands."""
    return hashlib.sha256(f"{commands.build}\0{commands.test}".encode()).hexdigest()


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
    passed = {name: os.environ[name] for name in settings.PASS_TO_BUILDS if name in os.environ}
    return {
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


def system_path() -> str:
    """The host's PATH without the folder of the server's own environment."""
    own = Path(sys.prefix) / "bin"
    words = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(word for word in words if word and Path(word) != own)


def base_python() -> str:
    """The Python below the server's environment: what a fresh environment is made from."""
    return str(getattr(sys, "_base_executable", None) or shutil.which("python3") or sys.executable)


def environment_steps(
    commands: Commands, run_folder: Path, environment: dict[str, str]
) -> list[dict[str, Any]]:
    """Make the Python environment of this run, with pip and pytest only where the commands call for them."""
    wanted = f"{commands.build}\n{commands.test}"
    if commands.kind != "python":
        return []
    pip = "pip" in wanted or "pytest" in wanted
    argv = [base_python(), "-m", "venv", *([] if pip else ["--without-pip"]), str(run_folder / "env")]
    steps = [step("environment", argv, run_folder, environment)]
    if "pytest" in wanted:
        argv = [str(run_folder / "env" / "bin" / "python"), "-m", "pip", "install", "--quiet", "pytest"]
        steps.append(step("environment: pytest", argv, run_folder, environment))
    return steps


def step(
    name: str, argv: list[str], cwd: Path, environment: dict[str, str], *, timeout: float = 0, stdin: str = ""
) -> dict[str, Any]:
    """One command of a run, as the shim reads it."""
    limit = timeout or settings.DURATIONS["command"]
    return {
        "name": name, "argv": argv, "cwd": str(cwd), "env": environment, "timeout": limit, "stdin": stdin,
    }  # fmt: skip


def verification_steps(
    project: Project, commands: Commands, run_folder: Path, environment: dict[str, str]
) -> list[dict[str, Any]]:
    """Environment, build and tests in a clean checkout. Empty where there is nothing to run."""
    config, clone = project.config, run_folder / "clone"
    scale = settings.TIME_SCALE
    steps = [
        step(name, ["/bin/sh", "-c", command], clone, environment, timeout=seconds * scale)
        for name, command, seconds in (
            ("build", commands.build, config.build_timeout),
            ("tests", commands.test, config.test_timeout),
        )
        if command
    ]
    return [*environment_steps(commands, run_folder, environment), *steps] if steps else []
