"""Core: which build and test commands a repository has, by what lies at its top."""

import json
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Commands:
    """Build and test as shell commands; empty where there is none."""

    build: str = ""
    test: str = ""
    kind: str = ""

    @property
    def needs_python(self) -> bool:
        """Whether they want an environment with pip in it."""
        return self.kind == "python"


def detect(names: list[str], read: Callable[[str], str | None]) -> Commands:
    """The commands for a repository with these paths at its top; `read` gives a file's text.

    Nothing fits a project of documents: both commands are empty then.
    """
    present = set(names)
    if "package.json" in present:
        scripts = _scripts(read("package.json"))
        return Commands("npm run build" if "build" in scripts else "npm install", "npm test", "node")
    if "Cargo.toml" in present:
        return Commands("cargo build", "cargo test", "rust")
    if "go.mod" in present:
        return Commands("go build ./...", "go test ./...", "go")
    if present & {"pyproject.toml", "setup.py"}:
        return Commands("pip install -e .", "pytest", "python")
    if "Makefile" in present:
        return Commands("make", "make test", "make")
    return Commands()


def _scripts(text: str | None) -> dict[str, object]:
    try:
        data = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    scripts = data.get("scripts") if isinstance(data, dict) else None
    return scripts if isinstance(scripts, dict) else {}
