"""The structure of the product: lines, folders, import circles, imports that go up, branches.

`bench/house.py` prints it.
"""

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("tasks", "disputes", "agents", "steroidsweb")  # from the lowest to the highest
QUIET = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension)
BRANCHES_MAX = 15


@dataclass(frozen=True)
class Structure:
    """What was measured. Migrations are left out everywhere."""

    files: int
    folders: list[tuple[int, str]]
    circles: list[list[str]]
    upward: list[str]
    branches: list[tuple[int, str]]

    @property
    def code_lines(self) -> int:
        return sum(code_lines(path) for path in modules().values())


@cache
def measure() -> Structure:
    """Measure the whole product, from its files."""
    graph = {name: imports(path) for name, path in modules().items()}
    folders = Counter(str(path.parent.relative_to(ROOT)) for path in modules().values())
    return Structure(
        files=len(modules()),
        folders=sorted(((n, name) for name, n in folders.items()), reverse=True),
        circles=circles(graph),
        upward=[
            f"{name} -> {other}"
            for name, others in graph.items()
            for other in sorted(others)
            if ROOMS.index(other.split(".")[0]) > ROOMS.index(name.split(".")[0])
        ],
        branches=sorted(_branches(), reverse=True),
    )


@cache
def modules() -> dict[str, Path]:
    """Return the product's modules by their dotted names."""
    found = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if "migrations" not in path.parts:
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                found[name.removesuffix(".__init__")] = path
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the parsed file, which is parsed only once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def code_lines(path: Path) -> int:
    """Return the number of lines with code: neither empty nor only a comment or a docstring."""
    docstrings: set[int] = set()
    for node in ast.walk(tree_of(path)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            docstrings |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type not in QUIET:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def imports(path: Path) -> set[str]:
    """Return the product's modules that a module imports, at its top or later, but not for type checking."""
    found: set[str] = set()
    for node in _that_run(tree_of(path)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            while name and name not in modules():
                name = name.rpartition(".")[0]
            if name and modules()[name] != path:
                found.add(name)
    return found


def _that_run(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements below, without those for type checking."""
    for part in ("body", "handlers", "cases", "orelse", "finalbody"):
        for each in getattr(node, part, ()):
            if not (isinstance(each, ast.If) and ast.unparse(each.test).endswith("TYPE_CHECKING")):
                yield each
                yield from _that_run(each)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that all lead to each other (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in graph[name]:
            if other not in number:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], number[other])
        if lowest[name] == number[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in graph:
        if name not in number:
            visit(name)
    return found


def _branches() -> Iterator[tuple[int, str]]:
    """Yield the number of branches of each function, without those of functions inside it."""
    for path in modules().values():
        found: dict[ast.FunctionDef | ast.AsyncFunctionDef, int] = {}
        waiting: list[tuple[ast.AST, ast.AST | None]] = [(tree_of(path), None)]
        while waiting:
            node, function = waiting.pop()
            for child in ast.iter_child_nodes(node):
                inside = function
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    inside, found[child] = child, 0
                elif isinstance(child, ast.ClassDef | ast.Lambda):
                    inside = None
                elif function in found:
                    found[function] += _divides(child)
                waiting.append((child, inside))
        for each, number in found.items():
            yield number, f"{path.relative_to(ROOT)}:{each.lineno} {each.name}"


def _divides(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.Match):
        return len(node.cases)
    return int(isinstance(node, BRANCHES))


def show(structure: Structure) -> None:
    """Print the structure, the largest first."""
    print(f"files {structure.files}, code lines {structure.code_lines}")
    print("modules per folder: " + ", ".join(f"{name} {n}" for n, name in structure.folders[:8]))
    print(f"circles among modules: {len(structure.circles)}")
    for circle in structure.circles:
        print("  " + ", ".join(circle))
    print(f"arrows that go up: {len(structure.upward)}")
    for arrow in structure.upward:
        print(f"  {arrow}")
    large = [(n, name) for n, name in structure.branches if n > BRANCHES_MAX]
    print(f"functions over {BRANCHES_MAX} branches: {len(large)}")
    for n, name in large:
        print(f"  {n} {name}")


if __name__ == "__main__":
    show(measure())
