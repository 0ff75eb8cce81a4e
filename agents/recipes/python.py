"""Core: how a Python project could be installed and tested."""

import re
from collections.abc import Iterator
from dataclasses import replace
from posixpath import basename, dirname

from agents.recipes.dependencies import Set, Use, label, normal, runtime, sets, spelled
from agents.recipes.recipe import Candidate, Rank, Recipe, candidate
from agents.recipes.tree import Tree, at, name_of, once, strings, table, then, words
from tasks.text.regex import regex

KIND = "python"
MANIFESTS = (
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "Pipfile",
    "tox.ini",
    "noxfile.py",
)
TEST_FILES = r"(.*/)?(test_[^/]*|[^/]*_test)\.py"  # those that pytest finds by itself
OTHER_TEST_FILES = r"(.*/)?(tests?|[^/]*[Tt]ests?)\.py"
FAMILIES = ("group", "extra", "file", "listed")
NEWER_PIP = words("pip", "install", "--upgrade", "pip>=25.1")  # the first that reads dependency groups

# Options and settings of pytest, and the plugin that each needs.
BY_SETTING = {
    r"--(no-)?cov\b": "pytest-cov",
    r"(^|\s)(-n|--numprocesses|--dist)[\s=]*\S": "pytest-xdist",
    r"--timeout\b|(?m:^\s*timeout\s*=)": "pytest-timeout",
    r"asyncio_mode|asyncio_default_fixture": "pytest-asyncio",
    r"anyio_mode": "anyio",
    r"--benchmark": "pytest-benchmark",
    r"DJANGO_SETTINGS_MODULE|--ds\b|--reuse-db": "pytest-django",
    r"--reruns": "pytest-rerunfailures",
    r"--(disable|allow)-socket|--allow-hosts": "pytest-socket",
    r"--mypy": "pytest-mypy",
    r"--flake8": "pytest-flake8",
    r"--black": "pytest-black",
    r"--ruff": "pytest-ruff",
    r"--isort": "pytest-isort",
    r"--html": "pytest-html",
    r"--random-order": "pytest-random-order",
    r"--randomly|-p no:randomly": "pytest-randomly",
    r"--doctest-plus|doctest_plus": "pytest-doctestplus",
    r"--remote-data|remote_data_strict": "pytest-remotedata",
    r"mock_use_standalone_module": "pytest-mock",
    r"qt_api": "PySide6",
    r"(?m:^\s*env\s*=)": "pytest-env",
    r"--snapshot": "syrupy",
    r"--import-mode|--strict": "",
}
# Modules that tests import, and their packages: only well-known ones, so that no package name is guessed.
BY_IMPORT = {
    "aiohttp": "aiohttp", "anyio": "anyio", "approvaltests": "approvaltests", "attr": "attrs",
    "attrs": "attrs", "bs4": "beautifulsoup4", "build": "build", "click": "click",
    "commonmark": "commonmark", "coverage": "coverage", "cryptography": "cryptography",
    "dateutil": "python-dateutil", "ddt": "ddt", "dirty_equals": "dirty-equals", "django": "Django",
    "docopt": "docopt", "docutils": "docutils", "factory": "factory-boy", "faker": "Faker",
    "flask": "Flask", "freezegun": "freezegun", "html5lib": "html5lib", "httpx": "httpx",
    "hypothesis": "hypothesis", "inline_snapshot": "inline-snapshot", "jinja2": "Jinja2",
    "jsonschema": "jsonschema", "lxml": "lxml", "markdown": "Markdown", "mock": "mock", "nose": "nose",
    "numpy": "numpy", "packaging": "packaging", "pandas": "pandas", "parameterized": "parameterized",
    "pexpect": "pexpect", "PIL": "Pillow", "pkg_resources": "setuptools<81", "pretend": "pretend",
    "psutil": "psutil", "pydantic": "pydantic", "pygments": "Pygments", "pytest_asyncio": "pytest-asyncio",
    "pytest_cases": "pytest-cases", "pytest_httpbin": "pytest-httpbin",
    "pytest_lazyfixture": "pytest-lazy-fixture", "pytest_mock": "pytest-mock",
    "pytest_subtests": "pytest-subtests", "pytz": "pytz", "regex": "regex", "requests": "requests",
    "requests_mock": "requests-mock", "responses": "responses", "respx": "respx", "scipy": "scipy",
    "setuptools": "setuptools", "simplejson": "simplejson", "six": "six", "sqlalchemy": "SQLAlchemy",
    "sure": "sure", "sybil": "sybil", "sympy": "sympy", "syrupy": "syrupy", "testfixtures": "testfixtures",
    "testtools": "testtools", "time_machine": "time-machine", "toml": "toml", "tomli": "tomli",
    "tornado": "tornado", "tox": "tox", "tqdm": "tqdm", "trio": "trio",
    "typing_extensions": "typing-extensions", "ujson": "ujson", "uvloop": "uvloop",
    "virtualenv": "virtualenv", "wcwidth": "wcwidth", "webtest": "WebTest", "werkzeug": "Werkzeug",
    "xmlschema": "xmlschema", "yaml": "PyYAML",
}  # fmt: skip
BY_FIXTURE = {
    "benchmark": "pytest-benchmark", "data_regression": "pytest-regressions", "freezer": "pytest-freezer",
    "file_regression": "pytest-regressions", "fs": "pyfakefs", "httpbin": "pytest-httpbin",
    "httpserver": "pytest-httpserver", "mocker": "pytest-mock", "requests_mock": "requests-mock",
    "subtests": "pytest-subtests",
}  # fmt: skip
BY_MARK = {
    "asyncio": "pytest-asyncio", "datafiles": "pytest-datafiles", "flaky": "pytest-rerunfailures",
    "forked": "pytest-forked", "timeout": "pytest-timeout",
}  # fmt: skip
READ_TESTS = 40
TESTMOD, EXAMPLE = regex(r"\bdoctest\.test(?:mod|file)\("), regex(r"(?m)^\s*>>> ")
# Folders whose tests measure or search without end; nobody runs them for each change.
ASIDE = regex(r"(^|/)(extras?|bench\w*|perf\w*|fuzz\w*|contrib)/")
MANAGED = "python manage.py test"
THIS_PYTHON = """+py="$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')\""""
NOX = ("nox", "--force-python", "python3", "-s")


def candidates(tree: Tree) -> Iterator[Candidate]:
    """Yield what could install and test the Python project at the top of this tree."""
    tests = tree.matching(TEST_FILES, own=True)
    others = [] if tests else tree.matching(OTHER_TEST_FILES, own=True)
    if "python_files" in _settings(tree):
        tests, others = tests or others, []
    described = any(name in tree for name in MANIFESTS)
    if tests or others:
        found = sets(tree)
        tools = list(_tools(tree, found))
        yield from (one for one in tools if one.rank == Rank.DIRECT)
        yield from _tested(tree, tests, others, found, described=described)
        yield from (one for one in tools if one.rank > Rank.DIRECT)
        return
    if examples := _examples(tree):
        test = words("python", "-m", "pytest", "--doctest-modules", *examples)
        yield Candidate(Rank.GUESS, KIND, _recipe(tree, _narrow(sets(tree)), [], test, "doctest"))
    sessions = list(_built_by_sessions(tree))
    loaded = list(_without_tests(tree)) if described else []
    yield from [*loaded, *sessions] if installable(tree) else [*sessions, *loaded]


def _tested(
    tree: Tree, tests: list[str], others: list[str], found: list[Set], *, described: bool
) -> Iterator[Candidate]:
    """Yield each runner with the best-fitting sets, and the first one also with more sets and with none."""
    narrow, wide = _with_runtime(tree, _narrow(found), found), _wide(found)
    observed = _observed(tree, tests or others)
    for index, (rank, test, source) in enumerate(_runners(tree, tests, others)):
        recipe = _recipe(tree, narrow, observed, test, source)
        if test == MANAGED and (collect := _collects(tree)):
            yield Candidate(
                rank, KIND, replace(recipe, build=collect, source=f"{recipe.source}, static files")
            )
            rank = Rank.WIDER
        yield Candidate(rank if described else Rank.GUESS, KIND, recipe)
        if not index and wide and set(wide) != set(narrow):
            yield Candidate(Rank.WIDER, KIND, _recipe(tree, wide, observed, test, source))
        if not index and narrow:
            # The declared requirements may be too old or too new to be installed together.
            yield Candidate(Rank.WIDER, KIND, _recipe(tree, [], observed, test, source))


# --- What is installed ------------------------------------------------------------------------------------


def _narrow(found: list[Set]) -> list[Set]:
    """Return the sets that say they are for tests, of one family, or else the next best one."""
    tests = [one for one in found if one.use == Use.TESTS]
    if tests:
        families = sorted(
            {one.kind for one in tests},
            key=lambda kind: (
                not any("pytest" in one.distributions for one in tests if one.kind == kind),
                FAMILIES.index(kind),
            ),
        )
        return [one for one in tests if one.kind == families[0]]
    rest = sorted(
        (one for one in found if one.use in (Use.HAS_PYTEST, Use.DEVELOPMENT)),
        key=lambda one: (one.use, FAMILIES.index(one.kind)),
    )
    return rest[:1] or [one for one in found if one.use == Use.RUNTIME]


def _with_runtime(tree: Tree, chosen: list[Set], found: list[Set]) -> list[Set]:
    """Add what the code itself needs, which a package that pip installs brings along, and a site does not."""
    if installable(tree):
        return chosen
    there = {name for one in chosen for name in one.distributions}
    return chosen + [one for one in found if one.use == Use.RUNTIME and not one.distributions <= there]


def _wide(found: list[Set]) -> list[Set]:
    """Return everything that developers and tests may want, of all families."""
    return [one for one in found if one.use != Use.OTHER][:12]


def installable(tree: Tree) -> bool:
    """Whether pip can install the project at the top of the tree."""
    project = tree.toml("pyproject.toml")
    if (
        at(project, "tool", "poetry", "package-mode") is False
        or at(project, "tool", "uv", "package") is False
    ):
        return False
    named = "project" in project or "build-system" in project or at(project, "tool", "poetry", "name")
    return "setup.py" in tree or bool(named)


def _recipe(tree: Tree, chosen: list[Set], observed: list[str], test: str, source: str) -> Recipe:
    extras = [one.name for one in chosen if one.kind == "extra"]
    arguments = _itself(tree, extras) if installable(tree) else []
    arguments += _arguments(tree, chosen, observed)
    newer = NEWER_PIP if any(one.kind == "group" for one in chosen) else ""
    where = _manifest(tree)
    labels = [label(one).removeprefix(f"{where}, ") for one in chosen]
    said = ", ".join(once([where, *labels, source] if where else [source]))
    prepare = then(newer, words("pip", "install", *arguments)) if arguments else ""
    return Recipe(prepare, "", test, said)


def _arguments(tree: Tree, chosen: list[Set], observed: list[str]) -> list[str]:
    """Return what pip installs besides the project: files, groups, and what is listed or was observed."""
    flags = {"file": "-r", "group": "--group"}
    options = [[flags[kind], one.name] for kind in flags for one in chosen if one.kind == kind]
    declared = {name for one in chosen for name in one.distributions}
    declared |= {normal(requirement) for requirement in runtime(tree)}
    listed = [name for one in chosen if one.kind == "listed" for name in spelled(one.requirements)]
    listed += [name for name in observed if normal(name) not in declared]
    return [part for option in options for part in option] + once(listed)


def _itself(tree: Tree, extras: list[str]) -> list[str]:
    goal = f".[{','.join(extras)}]" if extras else "."
    backend = at(tree.toml("pyproject.toml"), "build-system", "build-backend")
    # This backend's editable installs compile again at each import, with tools that are gone by then.
    return [goal] if backend == "mesonpy" else ["-e", goal]


def _manifest(tree: Tree) -> str:
    return tree.first("pyproject.toml", "setup.cfg", "setup.py", "Pipfile", "requirements.txt")


def _observed(tree: Tree, tests: list[str]) -> list[str]:
    """Return plugins and helpers that the tests use, whether or not they are declared."""
    settings = _settings(tree)
    found = [name for rule, name in BY_SETTING.items() if name and re.search(rule, settings)]
    conftests = tree.matching(r"(.*/)?conftest\.py", own=True)
    text = "\n".join(tree.text(path) for path in [*conftests[:5], *tests[:READ_TESTS]])
    imported = set(re.findall(r"(?m)^(?:import|from)\s+([A-Za-z_]\w*)", text))
    own = {name.split("/")[-1] for name in packages(tree)} | {name_of(path) for path in tree.names}
    found += [name for module, name in BY_IMPORT.items() if module in imported - own]
    asked = set(re.findall(r"\w+", " ".join(re.findall(r"def test\w*\(([^)]{0,300})", text))))
    # A fixture that the tests define themselves needs no plugin, and would clash with it.
    made = set(re.findall(r"(?m)^\s*(?:async )?def (\w+)\(", text))
    found += [name for fixture, name in BY_FIXTURE.items() if fixture in asked - made]
    marks = set(re.findall(r"pytest\.mark\.(\w+)", text))
    found += [name for mark, name in BY_MARK.items() if mark in marks]
    return once(found)


def _settings(tree: Tree) -> str:
    """Return what pytest reads as its own settings, as text."""
    options = table(at(tree.toml("pyproject.toml"), "tool", "pytest", "ini_options"))
    found = [f"{key} = {' '.join(strings(value)) or value}" for key, value in options.items()]
    for path, section in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        found += [f"{key} = {value}" for key, value in tree.ini(path).get(section, {}).items()]
    return "\n".join(line[:2000] for line in found)


# --- How it is tested -------------------------------------------------------------------------------------


def _runners(tree: Tree, tests: list[str], others: list[str]) -> Iterator[tuple[Rank, str, str]]:
    settings = _settings(tree)
    if "manage.py" in tree and not settings:
        yield Rank.DIRECT, MANAGED, "manage.py"
        yield Rank.WIDER, "python -m pytest", "pytest"
        return
    script = tree.first("runtests.py", "run_tests.py", "tests/runtests.py", "tests/run_tests.py", "test.py")
    files = others if len(others) <= 8 else []
    if tests or files:
        rank = Rank.DIRECT if tests else Rank.GUESS
        yield (
            rank,
            words("python", "-m", "pytest", *(_beside_others(settings, tests) if tests else files)),
            "pytest",
        )
    if script:
        folder = dirname(script)
        command = words("python", basename(script))
        yield Rank.GUESS, f"cd {words(folder)} && {command}" if folder else command, script
        return
    texts = [tree.text(path) for path in tests[:READ_TESTS]]
    # unittest would skip tests that are functions, and be green for the others or for none.
    if texts and all("TestCase)" in text and "pytest" not in text for text in texts):
        yield Rank.GUESS, _unittest(tree, tests), "unittest"


def _beside_others(settings: str, tests: list[str]) -> list[str]:
    """The one folder of the tests where there are others that pytest would find and that are set aside."""
    folders = {path.split("/")[0] for path in tests if not ASIDE.search(path) and "/" in path}
    is_mixed = any(ASIDE.search(path) for path in tests) and "testpaths" not in settings
    return sorted(folders) if is_mixed and folders <= {"tests", "test"} else []


def _collects(tree: Tree) -> str:
    """What makes the list of static files without which Django shows no page, where its settings want one."""
    modules = tree.matching(r"(.*/)?settings(/[^/]+)?\.py|(.*/)?settings_[^/]+\.py", own=True)[:8]
    listed = any("ManifestStaticFilesStorage" in tree.text(path) for path in modules)
    return "python manage.py collectstatic --noinput" if listed else ""


def _unittest(tree: Tree, tests: list[str]) -> str:
    folders = {path.split("/")[0] if "/" in path else "" for path in tests}
    folder = folders.pop() if len(folders) == 1 else ""
    if not folder:
        return "python -m unittest discover"
    top = [] if f"{folder}/__init__.py" not in tree else ["-t", "."]
    return words("python", "-m", "unittest", "discover", "-s", folder, *top)


def _tools(tree: Tree, found: list[Set]) -> Iterator[Candidate]:
    """Propose the project's own runner of tests, in environments that it makes itself.

    Only uv installs all members of its workspace, so no other way runs their tests.
    """
    project = tree.toml("pyproject.toml")
    has_members = "uv.lock" in tree and at(project, "tool", "uv", "workspace") is not None
    lists = ["--all-packages"] if has_members else []
    for kind in ("group", "extra"):
        chosen = [one.name for one in found if one.kind == kind and one.use != Use.OTHER]
        lists += [part for name in chosen for part in (f"--{kind}", name)]
    rows = [
        (
            "tox.ini" in tree or "tox:tox" in tree.ini("setup.cfg") or at(project, "tool", "tox") is not None,
            "pip install tox", "tox -e py", "tox",
        ),
        (
            "noxfile.py" in tree and bool(_sessions(tree)),
            "pip install nox",
            words(*NOX, *_sessions(tree)[:1]), "noxfile.py",
        ),
        (
            "uv.lock" in tree,
            f"pip install uv && {words('uv', 'sync', *lists)}", "uv run --no-sync pytest", "uv.lock",
        ),
        (
            at(project, "tool", "poetry") is not None,
            "pip install poetry && poetry install --no-interaction --all-extras",
            "poetry run python -m pytest", "poetry",
        ),
        (
            "pdm.lock" in tree, "pip install pdm && pdm install", "pdm run pytest", "pdm.lock",
        ),
        (
            at(project, "tool", "hatch", "envs") is not None or "hatch.toml" in tree,
            "pip install hatch", _hatch_test(tree), "hatch",
        ),
        (
            "Pipfile" in tree, "pip install pipenv && pipenv install --dev", "pipenv run pytest", "Pipfile",
        ),
    ]  # fmt: skip
    for there, prepare, test, source in rows:
        if there:
            rank = Rank.DIRECT if has_members and source == "uv.lock" else Rank.WIDER
            yield candidate(KIND, prepare, "", test, source, rank)


def _built_by_sessions(tree: Tree) -> Iterator[Candidate]:
    """Yield the session of nox that builds, as documents have one."""
    for name in _sessions(tree, r"build|docs?|html")[:1]:
        yield candidate(KIND, "pip install nox", words(*NOX, name), "", f"noxfile.py, session {name}")


def _sessions(tree: Tree, kind: str = r"(unit_?)?(tests?|pytest|unit)(_?(unit|core|py))?") -> list[str]:
    """Return the sessions of nox of one kind; if none is named, those that are about tests."""
    text = tree.text("noxfile.py")
    found = re.findall(r"@(?:nox\.)?session\b(?:[^\n]*\n){1,12}?def (\w+)\(", text[:60_000])
    return [name for name in found if re.fullmatch(kind, name)]


def _hatch_test(tree: Tree) -> str:
    environments = table(at(tree.toml("pyproject.toml"), "tool", "hatch", "envs")) or table(
        tree.toml("hatch.toml").get("envs")
    )
    for name, content in environments.items():
        scripts = table(at(content, "scripts"))
        script = next((one for one in ("test", "tests", "run", "pytest") if one in scripts), "")
        if script and (script != "run" or "test" in name):
            call = words(script if name == "default" else f"{name}:{script}")
            return f"hatch run {THIS_PYTHON} {call}" if _has_pythons(content) else f"hatch run {call}"
    return "hatch test"


def _has_pythons(environment: object) -> bool:
    """Whether an environment of hatch is one for each of several Pythons, most of which no host has."""
    matrix = at(environment, "matrix")
    return any({"python", "py"} & set(table(one)) for one in (matrix if isinstance(matrix, list) else []))


# --- Without tests ----------------------------------------------------------------------------------------


def packages(tree: Tree) -> list[str]:
    """Return the importable packages and modules as paths without a suffix, the project's own name first."""
    title = str(
        at(tree.toml("pyproject.toml"), "project", "name") or at(tree.ini("setup.cfg"), "metadata", "name")
    )
    wanted = re.sub(r"[-.]+", "_", title).lower()
    found = [dirname(path) for path in tree.matching(r"((src|lib)/)?[A-Za-z_]\w*/__init__\.py")]
    if not found:
        found = [path.removesuffix(".py") for path in tree.matching(r"(src/)?[A-Za-z_]\w*\.py")]
    passed_over = re.compile(
        r"(tests?|testing|docs?|examples?|setup|conftest|noxfile|tasks|fabfile|bench\w*)"
    )
    own = [name for name in found if not passed_over.fullmatch(basename(name))]
    return sorted(own, key=lambda name: (basename(name).lower() != wanted, name.count("/"), name))


def _examples(tree: Tree) -> list[str]:
    """Return the modules that hold examples, if the project runs these as its tests."""
    modules = tree.matching(r".*\.py", own=True)[:READ_TESTS]
    is_run = "--doctest" in _settings(tree) or any(TESTMOD.search(tree.text(path)) for path in modules)
    return [path for path in modules if is_run and EXAMPLE.search(tree.text(path))]


def _without_tests(tree: Tree) -> Iterator[Candidate]:
    own = packages(tree)
    if installable(tree):
        test = words("python", "-I", "-c", f"import {basename(own[0])}") if own else ""
        source = f"{_manifest(tree)}, no tests found"
        yield candidate(KIND, "", "pip install .", test, source, Rank.BUILD)
    elif own:
        files = tree.first("requirements.txt")
        install = words("pip", "install", "-r", files) if files else ""
        yield candidate(KIND, install, "python -m compileall -q .", "", "Python files, no tests found")
