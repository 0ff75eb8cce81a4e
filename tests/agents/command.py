"""The `steroids` command, as tests start it."""

import io
import os
import py_compile
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

from django.conf import settings

from agents import cli

CLI = Path(__file__).resolve().parents[2] / "agents" / "cli.py"


@cache
def command() -> list[str]:
    """The words that start it, compiled once: to compile it at every start takes half of a call."""
    compiled = py_compile.compile(str(CLI), cfile=str(settings.HOME / "steroids.pyc"), doraise=True)
    return [sys.executable, "-I", "-S", str(compiled)]


def called(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: str = ""
) -> CompletedProcess[str]:
    """What it prints and how it ends, called in this process: to start one takes longer than it works."""
    out, err = io.BytesIO(), io.BytesIO()
    with (
        patch.dict(os.environ, environment, clear=True),
        patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8")),
        chdir(folder),
        redirect_stdout(io.TextIOWrapper(out, "utf-8", write_through=True)),
        redirect_stderr(io.TextIOWrapper(err, "utf-8", write_through=True)),
    ):
        try:
            code = cli.main(words)
        except SystemExit as end:  # of the parser
            code = int(end.code or 0)
        return CompletedProcess(words, code, out.getvalue().decode(), err.getvalue().decode())
