"""The `steroids` command, as tests start it."""

import py_compile
import sys
from functools import cache
from pathlib import Path

from django.conf import settings

CLI = Path(__file__).resolve().parents[2] / "agents" / "cli.py"


@cache
def command() -> list[str]:
    """The words that start it, compiled once: to compile it at every start takes half of a call."""
    compiled = py_compile.compile(str(CLI), cfile=str(settings.HOME / "steroids.pyc"), doraise=True)
    return [sys.executable, "-I", "-S", str(compiled)]
