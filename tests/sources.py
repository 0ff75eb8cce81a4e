"""The program's own source, for the tests that read it."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@cache
def tree(path: Path) -> ast.Module:
    """A file of the program, parsed once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path.relative_to(ROOT)))
