"""The program's own source, for the tests that read it."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "steroidsweb"


@cache
def tree(path: Path) -> ast.Module:
    """A file of the program, parsed once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path.relative_to(ROOT)))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All that stands in a file of the program, found once for all tests."""
    return tuple(ast.walk(tree(path)))


@cache
def variables() -> dict[str, str]:
    """The variables of the environment that the settings read, each with its default as it is written."""
    found: dict[str, str] = {}
    for node in (each for name in ("settings", "env") for each in nodes(SITE / f"{name}.py")):
        if isinstance(node, ast.DictComp):
            found |= _of_table(node)
        elif _reads(node) and isinstance(node.args[0], ast.Constant):
            found[node.args[0].value] = ast.unparse(node.args[1]) if node.args[1:] else ""
    return found


def _reads(node: ast.AST) -> TypeGuard[ast.Call]:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id.startswith("env_")


def _of_table(each: ast.DictComp) -> Iterator[tuple[str, str]]:
    """What is read for every name of a table, as env_number(f"STEROIDS_{name.upper()}", default)."""
    for read in filter(_reads, ast.walk(each.value)):
        name, table = read.args[0], each.generators[0].iter.func.value  # type: ignore[attr-defined]
        for key, default in zip(table.keys, table.values, strict=True):
            words = [
                part.value if isinstance(part, ast.Constant) else key.value.upper() for part in name.values
            ]
            yield "".join(words), ast.unparse(default)
