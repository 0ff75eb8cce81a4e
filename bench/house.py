"""What the house is made of, measured from its source.

    python bench/house.py [--against CHECKOUT]

Unreached: definitions of the product that no production code leads to. What is reached is followed by names,
without running anything, from where Python, Django and packages enter the product (settings, URLs, apps,
admin, commands, template tags, programs, migrations). Module-level names are matched exactly, through their
imports; methods only by name, so that an unused method passes if its name is used for something else.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import structure
from structure import measure, tree_of

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("steroidsweb", "agents", "disputes", "tasks")

# Settings that Django or a package reads, and the product never does.
SETTINGS_OF_PACKAGES = {
    "ACCOUNT_ADAPTER", "ACCOUNT_EMAIL_VERIFICATION", "ACCOUNT_FORMS", "ACCOUNT_RATE_LIMITS",
    "ACCOUNT_UNIQUE_EMAIL", "ACCOUNT_DEFAULT_HTTP_PROTOCOL",
    "SOCIALACCOUNT_ADAPTER", "SOCIALACCOUNT_EMAIL_VERIFICATION", "SOCIALACCOUNT_LOGIN_ON_GET",
    "SOCIALACCOUNT_OPENID_CONNECT_URL_PREFIX", "SOCIALACCOUNT_PROVIDERS", "MFA_ADAPTER",
    "MFA_ALLOW_UNVERIFIED_EMAIL", "MFA_FORMS", "MFA_TOTP_ISSUER", "MFA_TOTP_TOLERANCE",
    "ROOT_URLCONF", "UNFOLD", "Q_CLUSTER", "REST_FRAMEWORK", "SPECTACULAR_SETTINGS", "WHITENOISE_USE_FINDERS",
}  # fmt: skip
# What Django and gunicorn look for by name, by the end of the module's name.
LOOKED_FOR = {
    "urls": re.compile(r"urlpatterns|app_name|handler\d+"),
    "wsgi": re.compile(r"application"),
    "apps": re.compile(r"\w+Config"),
    "api_server_config": re.compile(r"[a-z]\w*"),
    "sqlite3.base": re.compile(r"DatabaseWrapper"),
    "formats": re.compile(r"[A-Z]+_FORMAT"),
}
# Decorators that register the definition somewhere: Django's, `acting` of the API, `source` of the tallies.
REGISTERING = {"register", "register_lookup", "receiver", "action", "acting", "source"}
# Classes with these bases are found by their package.
FINDS_ITSELF = re.compile(r"\bOpenApi\w+Extension$")
# Methods that a package calls by a name made from a field, a right, an HTTP verb, a database, a kind of node.
CALLED_BY_PATTERN = re.compile(
    r"^(?:(?:get|validate|clean|visit|do|filter)_\w+|as_(?:sqlite|postgresql)|has_\w+_permission"
    r"|get|post|put|patch|delete)$"
)
# What Django asks of any object that is `request.user`.
ASKED_OF_USERS = {"has_perm", "has_perms", "has_module_perms"}
PREFIX = re.compile(r"[a-z]\w*_")
QUOTED = re.compile(r"[A-Za-z_][\w.]*(?:\[.*\])?")  # an annotation within quotes
DUNDER = re.compile(r"^__\w+__$")
WORD = re.compile(r"[A-Za-z_]\w*")
TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
NAMED = Definition | ast.ExceptHandler | ast.MatchAs | ast.MatchStar
Name = tuple[str, str]  # module and name


@dataclass
class Uses:
    """What some code refers to: names by module, attributes of anything, and texts."""

    names: set[Name] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    prefixes: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)


@dataclass
class Entry:
    """One definition: a module-level name, or a method as `Class.method`."""

    module: str
    name: str
    path: Path
    line: int
    uses: Uses
    bases: list[str] = field(default_factory=list)  # of a class, as written
    is_entered: bool = False


@dataclass
class Module:
    name: str
    path: Path
    imports: dict[str, str] = field(default_factory=dict)  # local name -> dotted name
    entries: dict[str, Entry] = field(default_factory=dict)
    uses: Uses = field(default_factory=Uses)  # of what runs at import
    is_program: bool = False


# --- Reading ----------------------------------------------------------------------------------------------


class _Reader(ast.NodeVisitor):
    """Collects what a piece of code uses, without names that are local to a function."""

    def __init__(self, module: Module, known: set[str], uses: Uses) -> None:
        self.module, self.known, self.uses = module, known, uses
        self.scopes: list[tuple[set[str], dict[str, str]]] = []

    def visit_Import(self, node: ast.Import) -> None:
        self.uses.modules.update(alias.name for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.uses.modules.add(node.module or "")
        self.uses.modules.update(f"{node.module}.{alias.name}" for alias in node.names)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test).endswith("TYPE_CHECKING"):
            self.visit(node.test)
        else:
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for outer in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(outer)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        arguments += [one for one in (node.args.vararg, node.args.kwarg) if one]
        for annotation in (*(one.annotation for one in arguments), node.returns):
            self.annotation(annotation)
        self.scopes.append(_scope({one.arg for one in arguments}, node.body))
        for statement in node.body:
            self.visit(statement)
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        self.scopes.append(({one.arg for one in arguments}, {}))
        self.generic_visit(node)
        self.scopes.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.annotation(node.annotation)
        if node.value:
            self.visit(node.value)

    def annotation(self, node: ast.expr | None) -> None:
        for one in ast.walk(node) if node else ():
            if isinstance(one, ast.Constant) and isinstance(one.value, str) and QUOTED.fullmatch(one.value):
                self.visit(ast.parse(one.value, mode="eval").body)
        if node:
            self.visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and (target := self.target(node.id)):
            self.uses.names.add(target)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if dotted := self.dotted(node):
            self.uses.names.add(dotted)
        else:
            self.uses.attributes.add(node.attr)
        self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and len(node.value) < 200:
            self.uses.texts.add(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Collect the prefix of `f"of_{name}"`, which may call anything that begins with it."""
        first = node.values[0] if node.values else None
        if len(node.values) == 2 and isinstance(first, ast.Constant) and PREFIX.fullmatch(str(first.value)):
            self.uses.prefixes.add(str(first.value))
        self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        self.uses.attributes.update(node.kwd_attrs)
        self.generic_visit(node)

    def target(self, name: str) -> Name | None:
        """Return the module-level name that a name means here; None if it is local or foreign."""
        for bound, imports in reversed(self.scopes):
            if name in imports:
                return _split(imports[name], self.known)
            if name in bound:
                return None
        if name in self.module.entries:
            return (self.module.name, name)
        if name in self.module.imports:
            return _split(self.module.imports[name], self.known)
        return None

    def dotted(self, node: ast.Attribute) -> Name | None:
        """Return `module.name` if what is before the last dot is one of the product's modules."""
        parts = [node.attr]
        inner: ast.expr = node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            return None
        whole = next(
            (imports[inner.id] for _, imports in reversed(self.scopes) if inner.id in imports),
            self.module.imports.get(inner.id),
        )
        if whole is None or any(inner.id in bound and inner.id not in own for bound, own in self.scopes):
            return None
        *before, last = [whole, *reversed(parts)]
        return (".".join(before), last) if ".".join(before) in self.known else None


def _split(dotted: str, known: set[str]) -> Name | None:
    before, _, last = dotted.rpartition(".")
    return (before, last) if before in known else None


def _scope(arguments: set[str], body: list[ast.stmt]) -> tuple[set[str], dict[str, str]]:
    """Return the names that a function binds, and those that it imports."""
    bound, imports = set(arguments), {}
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports.update(_imported(node))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.add(node.id)
            elif isinstance(node, NAMED) and node.name:
                bound.add(node.name)
    return bound, imports


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {
        alias.asname or alias.name.partition(".")[0]: alias.name if alias.asname else alias.name.split(".")[0]
        for alias in node.names
    }


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, including those inside `if` and `try`."""
    for node in body:
        if isinstance(node, ast.If) and not ast.unparse(node.test).startswith("__name__"):
            yield ast.copy_location(ast.Expr(node.test), node)
            yield from _statements([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _statements([*node.body, *node.orelse, *node.finalbody])
            yield from _statements([one for handler in node.handlers for one in handler.body])
        else:
            yield node


def _is_registered(node: Definition) -> bool:
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if REGISTERING & set(ast.unparse(called).split(".")):
            return True
    return False


def read(root: Path) -> dict[str, Module]:
    """Return the modules of the product with their definitions, without migrations."""
    modules: dict[str, Module] = {}
    trees: dict[str, ast.Module] = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if "migrations" in path.parts:
                continue
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            modules[name] = Module(name, path)
            trees[name] = tree_of(path)
    known = set(modules)
    for name, module in modules.items():
        body = list(_statements(trees[name].body))
        for node in body:  # first the names, so that every use finds its definition
            if isinstance(node, ast.Import | ast.ImportFrom):
                module.imports |= _imported(node)
            for own in _defined(node):
                module.entries[own] = Entry(name, own, module.path, node.lineno, Uses())
        for node in body:
            _read_statement(module, node, known)
    return modules


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, Definition):
        return [node.name]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Assign):
        return [one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)
                and isinstance(one.ctx, ast.Store)]  # fmt: skip
    return []


def _read_statement(module: Module, node: ast.stmt, known: set[str]) -> None:
    names = _defined(node)
    if not names:
        module.is_program |= isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)
        _Reader(module, known, module.uses).visit(node)
        return
    if not isinstance(node, ast.ClassDef):
        for name in names:
            entry = module.entries[name]
            entry.is_entered = isinstance(node, Definition) and _is_registered(node)
            _Reader(module, known, entry.uses).visit(node)
        return
    own = module.entries[node.name]
    own.bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
    own.is_entered = _is_registered(node) or any(FINDS_ITSELF.search(base) for base in own.bases)
    reader = _Reader(module, known, own.uses)
    for outer in (*node.bases, *node.keywords, *node.decorator_list):
        reader.visit(outer)
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{node.name}.{inner.name}"
            uses = module.entries[name].uses if name in module.entries else Uses()  # a property's setter
            _Reader(module, known, uses).visit(inner)
            module.entries[name] = Entry(module.name, name, module.path, inner.lineno, uses)
            module.entries[name].is_entered = _is_registered(inner)
        else:
            reader.visit(inner)


# --- What packages call -----------------------------------------------------------------------------------


@cache
def _package_file(dotted: str) -> Path | None:
    for folder in sys.path:
        base = Path(folder or ".") / dotted.replace(".", "/")
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path
    return None


@cache
def hooks(module: str, name: str, depth: int = 0) -> frozenset[str]:
    """Return the names that a package's class and its bases have, read from files and not imported."""
    path = _package_file(module)
    if path is None or depth > 20:
        return frozenset()
    imports: dict[str, str] = {}
    for node in _statements(tree_of(path).body):
        if isinstance(node, ast.ImportFrom):
            parts = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
            parts = parts[: len(parts) - node.level + 1] if node.level else []
            source = ".".join([*parts, *([node.module] if node.module else [])])
            if any(alias.name == "*" for alias in node.names) and (found := hooks(source, name, depth + 1)):
                return found
            imports.update({alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names})
        elif isinstance(node, ast.Import):
            imports.update(_imported(node))
        elif isinstance(node, ast.ClassDef) and node.name == name:
            own = {inner.name for inner in node.body if isinstance(inner, Definition)}
            own |= {one for inner in node.body for one in _defined(inner)}
            for base in node.bases:
                own |= _hooks_of(ast.unparse(base).partition("[")[0], module, imports, depth)
            return frozenset(own)
    if name in imports:
        before, _, last = imports[name].rpartition(".")
        return hooks(before, last, depth + 1)
    return frozenset()


def _hooks_of(base: str, module: str, imports: dict[str, str], depth: int = 0) -> frozenset[str]:
    first, _, rest = base.partition(".")
    whole = f"{imports.get(first, f'{module}.{first}')}{'.' if rest else ''}{rest}"
    before, _, last = whole.rpartition(".")
    return hooks(before, last, depth + 1)


# --- Following --------------------------------------------------------------------------------------------


class _House:
    def __init__(self, root: Path) -> None:
        self.root, self.modules = root, read(root)
        self.reached: set[Name] = set()
        self.loaded: set[str] = set()
        self.words = _template_words(root)
        self.attributes: set[str] = set()
        self.prefixes: set[str] = set()
        self.waiting: list[Entry] = []

    def follow(self) -> None:
        """Reach everything that the entrances lead to, until nothing new is found."""
        for name, module in self.modules.items():
            if self.is_entrance(module):
                self.load(name)
        for uses in _migrations(self.root, set(self.modules)):
            self.take(uses)
        for text in _programs(self.root):
            self.text(text)
        is_growing = True
        while is_growing:
            before = len(self.reached), len(self.loaded), len(self.attributes)
            while self.waiting:
                self.take(self.waiting.pop().uses)
            self.methods()
            is_growing = bool(self.waiting) or before != (
                len(self.reached),
                len(self.loaded),
                len(self.attributes),
            )

    def is_entrance(self, module: Module) -> bool:
        path = module.path.relative_to(self.root)
        name = path.parent.name if path.stem == "__init__" else path.stem
        return (
            module.is_program
            or name in ("settings", "formats", "urls", "wsgi", "apps", "models", "admin")
            or "management" in path.parts
            or "templatetags" in path.parts
        )

    def load(self, name: str) -> None:
        """Reach what runs when a module and its parents are imported."""
        if name not in self.modules or name in self.loaded:
            return
        self.loaded.add(name)
        self.load(name.rpartition(".")[0])
        module = self.modules[name]
        wanted = next((names for end, names in LOOKED_FOR.items() if name.endswith(end)), None)
        if "commands" in module.path.parts:
            wanted = re.compile("Command")
        elif "templatetags" in module.path.parts:
            wanted = re.compile("register")
        for entry in module.entries.values():
            is_setting = module.path.name == "settings.py" and entry.name in _django_settings()
            is_wanted = wanted is not None and wanted.fullmatch(entry.name)
            if (entry.is_entered and "." not in entry.name) or is_setting or is_wanted:
                self.reach((name, entry.name))
            if DUNDER.match(entry.name):  # without what it names: `__all__` reaches nothing
                self.reached.add((name, entry.name))
        self.take(module.uses)

    def take(self, uses: Uses) -> None:
        for name in uses.names:
            self.reach(name)
        self.attributes |= uses.attributes | uses.texts
        self.prefixes |= uses.prefixes
        for text in uses.texts:
            self.text(text)
        for module in uses.modules:
            self.load(module)

    def text(self, text: str) -> None:
        """Reach what a text may name: `a.b.name` in settings, URLs and jobs, `app.Model`, or a file."""
        if text.endswith(".py"):
            self.load(next((name for name, one in self.modules.items() if one.path.name == text), ""))
        if not re.fullmatch(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)+", text):
            return
        before, _, last = text.replace(":", ".").rpartition(".")
        if text in self.modules:
            self.load(text)
            self.load(f"{text}.base")  # as Django does with a backend of databases
        elif before in self.modules:
            self.reach((before, last))
        if before in PACKAGES:
            for name, module in self.modules.items():
                if name.startswith(f"{before}.models") and last in module.entries:
                    self.reach((name, last))

    def reach(self, name: Name) -> None:
        if name in self.reached or name[0] not in self.modules:
            return
        self.reached.add(name)
        module = self.modules[name[0]]
        self.load(name[0])
        if name[1] in module.entries:
            self.waiting.append(module.entries[name[1]])
        elif target := _split(module.imports.get(name[1], ""), set(self.modules)):
            self.reach(target)
        elif f"{name[0]}.{name[1]}" in self.modules:
            self.load(f"{name[0]}.{name[1]}")

    def methods(self) -> None:
        """Reach methods of reached classes that are called by name, or by a package through a base class."""
        for module in self.modules.values():
            for entry in module.entries.values():
                owner, _, method = entry.name.rpartition(".")
                if not owner or (module.name, entry.name) in self.reached:
                    continue
                if (module.name, owner) in self.reached and self.is_called(entry, owner, method):
                    self.reach((module.name, entry.name))
        settings = self.modules["steroidsweb.settings"]
        for name in self.attributes & set(settings.entries):
            self.reach((settings.name, name))

    def is_called(self, entry: Entry, owner: str, method: str) -> bool:
        called = (self.attributes, self.words, ASKED_OF_USERS)
        if entry.is_entered or any(method in names for names in called):
            return True
        if method.startswith((*self.prefixes, "__")):
            return True
        outside = self.outside(entry.module, owner) | self.outside_of_heirs((entry.module, owner))
        return method in outside or (bool(outside) and bool(CALLED_BY_PATTERN.match(method)))

    @cache  # noqa: B019 - one house a run
    def outside_of_heirs(self, name: Name) -> frozenset[str]:
        """Return what subclasses of this class get from packages, since it may be a mixin before them."""
        found: set[str] = set()
        for heir in self.heirs.get(name, ()):
            found |= self.outside(*heir) | self.outside_of_heirs(heir)
        return frozenset(found)

    @cached_property
    def heirs(self) -> dict[Name | None, list[Name]]:
        """The classes that are made from each one."""
        found: dict[Name | None, list[Name]] = {}
        for module in self.modules.values():
            for entry in module.entries.values():
                for base in entry.bases:
                    found.setdefault(self.base_of(module, base), []).append((module.name, entry.name))
        return found

    def base_of(self, module: Module, base: str) -> Name | None:
        first, _, rest = base.partition(".")
        dotted = module.imports.get(first, f"{module.name}.{first}") + (rest and f".{rest}")
        return self.home(_split(dotted, set(self.modules)))

    def home(self, name: Name | None) -> Name | None:
        """Return where a name that the product's packages re-export is defined."""
        if name is None or name[1] in self.modules[name[0]].entries:
            return name
        dotted = self.modules[name[0]].imports.get(name[1], "")
        return self.home(_split(dotted, set(self.modules)))

    @cache  # noqa: B019 - one house a run
    def outside(self, module: str, name: str) -> frozenset[str]:
        """Return the names that one of the product's classes gets from bases in packages."""
        if module not in self.modules or name not in self.modules[module].entries:
            if module in self.modules and name in self.modules[module].imports:
                before, _, last = self.modules[module].imports[name].rpartition(".")
                return self.outside(before, last) if before in self.modules else hooks(before, last)
            return frozenset()
        found: set[str] = set()
        for base in self.modules[module].entries[name].bases:
            first, _, rest = base.partition(".")
            dotted = self.modules[module].imports.get(first, f"{module}.{first}") + (rest and f".{rest}")
            before, _, last = dotted.rpartition(".")
            found |= self.outside(before, last) if before in self.modules else hooks(before, last)
        return frozenset(found)


@cache
def _django_settings() -> frozenset[str]:
    path = _package_file("django.conf.global_settings")
    names = (name for node in tree_of(path).body for name in _defined(node)) if path else ()
    return frozenset(names) | SETTINGS_OF_PACKAGES


def _migrations(root: Path, known: set[str]) -> Iterator[Uses]:
    for package in PACKAGES:
        for path in sorted((root / package).rglob("migrations/*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            module = Module(path.stem, path)
            for node in _statements(tree.body):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    module.imports.update(_imported(node))
            for node in tree.body:
                _Reader(module, known, module.uses).visit(node)
            yield module.uses


def _template_words(root: Path) -> set[str]:
    found: set[str] = set()
    for path in sorted((root / "templates").rglob("*")):
        if path.is_file():
            for tag in TAG.findall(path.read_text(encoding="utf-8", errors="replace")):
                found.update(WORD.findall(tag))
    return found


def _programs(root: Path) -> list[str]:
    """Return `module:function` of the programs that an installation adds, and what manage.py names."""
    facts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    manage = ast.parse((root / "manage.py").read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(manage) if isinstance(node, ast.Constant)]
    imports = [node for node in ast.walk(manage) if isinstance(node, ast.ImportFrom)]
    names = [dotted for node in imports for dotted in _imported(node).values()]
    return [*facts["project"].get("scripts", {}).values(), *(t for t in texts if isinstance(t, str)), *names]


def unreached(root: Path = ROOT) -> list[str]:
    """Return the definitions that no production code reaches, each as `file:line name`.

    A class that nothing reaches is listed without its methods.
    """
    house = _House(root)
    house.follow()
    found = []
    for name, module in house.modules.items():
        for entry in module.entries.values():
            owner = entry.name.rpartition(".")[0]
            if (name, entry.name) in house.reached or (owner and (name, owner) not in house.reached):
                continue
            found.append((str(entry.path.relative_to(root)), entry.line, entry.name))
    return [f"{path}:{line} {name}" for path, line, name in sorted(found)]


def figures(root: Path) -> dict[str, int]:
    """Return the same as numbers, with the number of tests, for the program in any checkout."""
    structure.ROOT = root
    house = measure()
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider"]
    collected = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout
    items = re.search(r"^(?:\d+/)?(\d+) tests? collected", collected, re.MULTILINE)
    return {
        "files": house.files,
        "code lines": house.code_lines,
        "modules of the largest folder": house.folders[0][0],
        "circles among modules": len(house.circles),
        "arrows that go up": len(house.upward),
        f"functions over {structure.BRANCHES_MAX} branches": sum(
            branches > structure.BRANCHES_MAX for branches, _ in house.branches
        ),
        "branches of the longest function": house.branches[0][0],
        "unreached definitions": len(unreached(root)),
        "items of the suite": int(items[1]) if items else 0,
    }


def compare(other: Path) -> None:
    """Print the figures of another checkout and of this one side by side, each measured by itself."""
    told = []
    for root in (other, ROOT):
        command = [sys.executable, __file__, "--json", "--root", str(root)]
        told.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    for name in told[1]:
        print(f"{name:34}{told[0][name]:>10,}{told[1][name]:>10,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to measure; else this one")
    parser.add_argument("--json", action="store_true", help="only the numbers")
    parser.add_argument("--against", type=Path, help="another checkout, before this one in a table")
    asked = parser.parse_args()
    if asked.against:
        compare(asked.against.resolve())
        return
    if asked.json:
        print(json.dumps(figures(asked.root.resolve())))
        return
    structure.ROOT = asked.root.resolve()
    structure.show(measure())
    found = unreached(structure.ROOT)
    print(f"unreached definitions: {len(found)}")
    for line in found:
        print(f"  {line}")


if __name__ == "__main__":
    main()
