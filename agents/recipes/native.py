"""Core: how make and its relatives could build a project of C, C++ or several languages."""

import re
from collections.abc import Callable, Iterator
from posixpath import basename, dirname

from agents.recipes.recipe import Candidate, Rank, candidate
from agents.recipes.script_lines import goes_outward, leads_outward
from agents.recipes.tree import Tree, then, words
from tasks.text.regex import regex

KIND = "native"
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")  # as make itself looks for them
TEST_TARGETS = (
    "check", "test", "tests", "unittest", "unittests", "unit-test", "unit-tests", "unit_test", "unit_tests",
    "test-unit", "runtest", "runtests", "run-tests", "run_tests", "run-test", "testsuite", "test-suite",
    "check-all", "test-all", "test_all", "testall", "alltests", "all-tests",
)  # fmt: skip
TEST_FOLDERS = ("tests", "test", "t", "testsuite", "unittests")
# All files of a checkout have the same age, so make would run the tools that generate these files again.
AGES = (
    r"find . -name aclocal.m4 -exec touch {} + && find . \( -name configure -o -name 'config*.h.in'"
    r" -o -name 'config.hin' -o -name Makefile.in -o -name '*.info' -o -name '*.[1-8]' \) -exec touch {} +"
)
AUTOMAKE_TESTS = r"(?m)^\s*(TESTS|check_\w+|TESTSUITE)\s*\+?=[ \t]*\S|^check(-local)?\s*:(?! check-)"
CALLS_ALL = (
    'red=0; for program in $(find {} -type f -executable -iname "*test*" ! -name "*.*"); do "$program"'
    " || red=$?; done; exit $red"
)
PARALLEL = '"$(nproc)"'


def candidates(tree: Tree) -> Iterator[Candidate]:
    """Yield what could build and test the project at the top of this tree, the best description first."""
    yield from _meson(tree)
    yield from _cmake(tree)
    yield from _autotools(tree)
    yield from _make(tree)
    yield from _runners(tree)


def _native(build: str, test: str, source: str, rank: Rank = Rank.DIRECT) -> Candidate:
    """Return a candidate for which nothing has to be fetched before."""
    return candidate(KIND, "", build, test, source, rank)


# --- Meson and CMake --------------------------------------------------------------------------------------


def _meson(tree: Tree) -> Iterator[Candidate]:
    if "meson.build" not in tree:
        return
    folder = _build_folder(tree)
    setup = f"meson setup {folder} && meson compile -C {folder}"
    tested = any(
        re.search(r"(?m)^\s*(?:\w+\s*=\s*)?test\s*\(", tree.text(path))
        for path in tree.matching(r"(.*/)?meson\.build", own=True)[:25]
    )
    test = f"meson test -C {folder} --print-errorlogs" if tested else ""
    yield _native(setup, test, "meson.build")


def _cmake(tree: Tree) -> Iterator[Candidate]:
    if "CMakeLists.txt" not in tree:
        return
    folder = _build_folder(tree)
    lists = tree.matching(r"(.*/)?CMakeLists\.txt", own=True)[:25]
    texts = [tree.text(path) for path in lists]
    shared = tree.matching(r"(cmake/)?[^/]+\.cmake")[:10]
    options = _test_options([*texts[:6], *(tree.text(path) for path in shared)])
    tested = any(re.search(r"(?i)\b(add_test|enable_testing|include\s*\(\s*ctest|\w*discover_tests)\b", text)
                 for text in texts)  # fmt: skip
    build = f"cmake --build {folder} --parallel {PARALLEL}"
    flags = words(*(f"-D{name}=ON" for name in options))
    if not tested:
        # Programs of tests that nothing tells CTest of.
        is_guess = any(re.search(r"(?i)\badd_executable\s*\(\s*\w{0,60}test", text) for text in texts)
        configure = " ".join(filter(None, [f"cmake -S . -B {folder}", flags if is_guess else ""]))
        test = CALLS_ALL.format(folder) if is_guess else ""
        yield _native(f"{configure} && {build}", test, "CMakeLists.txt", Rank.GUESS)
        return
    test = f"ctest --test-dir {folder} --output-on-failure --no-tests=error"
    configure = f"cmake -S . -B {folder}"
    if options:
        yield _native(f"{configure} {flags} && {build}", test, "CMakeLists.txt, options for tests")
    yield _native(f"{configure} && {build}", test, "CMakeLists.txt", Rank.WIDER if options else Rank.DIRECT)
    if packaged := _packaged(tree, r"-D[A-Za-z]\w{0,60}=[\w.+-]{1,40}"):
        build = f"{configure} {packaged} && {build}"
        yield _native(build, test, "CMakeLists.txt, debian/rules", Rank.WIDER)


def _packaged(tree: Tree, option: str) -> str:
    """Return the options with which Debian configures its package of the project; empty if it has none."""
    rules = tree.text("debian/rules")[:40_000].replace("\\\n", " ")
    found = re.findall(r"(?m)\bdh_auto_configure\b[^\n]{0,200}?\s--\s([^\n]*)", rules)
    options = [word for line in found[:1] for word in line.split() if re.fullmatch(option, word)]
    return words(*options[:30])


# Words in an option's name that mean tests, and words that mean something which tests do not need.
TEST_WORDS = {"TEST", "TESTS", "TESTING", "UNITTEST", "UNITTESTS"}
OTHER_WORDS = {
    "BENCHMARK", "BENCHMARKS", "COVERAGE", "CUDA", "DISABLE", "EXAMPLES", "EXCLUDE", "EXTERNAL", "FETCH",
    "FUZZ", "FUZZER", "FUZZERS", "FUZZING", "INSTALL", "MEMCHECK", "NETWORK", "NO", "ONLINE", "PERF",
    "PERFORMANCE", "PYTHON", "REMOTE", "SANITIZER", "SKIP", "STATIC", "STRICT", "SYSTEM", "TIDY", "VALGRIND",
    "WERROR", "WITHOUT",
}  # fmt: skip


def _test_options(texts: list[str]) -> list[str]:
    """Return the options for building tests that are off by default."""
    found = []
    for text in texts:
        for name, rest in re.findall(
            r"(?im)^\s*(?:cmake_dependent_)?option\s*\(\s*(\w{1,60})([^)]{0,300})", text
        ):
            parts = set(name.upper().split("_"))
            off = not re.search(r"(?i)\sON\s*$", rest.strip() and f" {rest.strip()}")
            if off and parts & TEST_WORDS and not parts & OTHER_WORDS:
                found.append(name)
    return list(dict.fromkeys(found))[:6]


def _build_folder(tree: Tree) -> str:
    taken = {name.split("/")[0].lower() for name in tree.names}
    return next(
        name for name in ("build", "_build", "build-out", ".build-out") if name not in taken or name[0] == "."
    )


# --- Autotools --------------------------------------------------------------------------------------------


def _included(tree: Tree, path: str) -> str:
    """Return the text of the files that a Makefile includes from its folder."""
    folder = path.removesuffix(basename(path))
    names = re.findall(r"(?m)^-?include\s+([\w./-]+)\s*$", tree.text(path))[:5]
    return "\n".join(["", *(tree.text(f"{folder}{name}") for name in names)])


def _autotools(tree: Tree) -> Iterator[Candidate]:
    source = tree.first("configure.ac", "configure.in")
    template = tree.text("Makefile.in") or tree.text("Makefile.am")
    test = _autotools_test(tree, template)
    make = "make" if re.search(r"(?m)^\.NOTPARALLEL", template) else f"make -j{PARALLEL}"
    if "configure" in tree:
        yield from _configured(tree, AGES if source else "", make, test)
    if source:
        yield from _generated(tree, source, make, test)


def _autotools_test(tree: Tree, template: str) -> str:
    """Return the call that tests; empty if nothing says that there are tests."""
    if "Makefile.am" not in tree and "generated by automake" not in tree.text("Makefile.in")[:400]:
        return _call(targets_of(template))
    # Every Makefile of automake has a target `check`, but it does something only if it has these words.
    parts = [
        tree.text(path) + _included(tree, path)
        for path in tree.matching(r"(.*/)?Makefile\.am", own=True)[:25]
    ]
    return "make check" if any(re.search(AUTOMAKE_TESTS, text) for text in parts or [template]) else ""


def _configured(tree: Tree, ages: str, make: str, test: str) -> Iterator[Candidate]:
    """Propose the `configure` script that the repository contains."""
    yield _native(then(ages, "sh ./configure", make), test, "configure")
    options = r"--(enable|disable|with|without)-[\w-]{1,60}(=[\w.+-]{1,40})?"
    if test and (packaged := _packaged(tree, options)):
        build = then(ages, f"sh ./configure {packaged}", make)
        yield _native(build, test, "configure, debian/rules", Rank.WIDER)


def _generated(tree: Tree, source: str, make: str, test: str) -> Iterator[Candidate]:
    """Propose a `configure` made from its source, by a script of the project's own or by autoreconf."""
    by_itself = then("autoreconf -fi", "sh ./configure", make)
    made = tree.first("autogen.sh", "bootstrap", "bootstrap.sh", "buildconf", "autogen")
    said = f"{source}{', ' + made if made else ''}"
    if "configure" in tree or not made:
        yield _native(by_itself, test, said, Rank.WIDER if "configure" in tree else Rank.DIRECT)
        return
    shell = "bash" if "bash" in tree.text(made)[:40] else "sh"
    by_script = then(f"NOCONFIGURE=1 {shell} ./{made}", "sh ./configure", make)
    yield _native(by_script, test, said)
    yield _native(by_itself, test, source, Rank.WIDER)


# --- Make -------------------------------------------------------------------------------------------------


def targets_of(makefile: str) -> list[str]:
    """Return the targets that a Makefile itself names, in its order."""
    found: list[str] = []
    for line in makefile.splitlines()[:5000]:
        match = re.match(r"([A-Za-z0-9_.][\w./ -]{0,200}?)\s*::?(?!=)", line)
        if match and not match[1].startswith(".") or match and match[1].startswith(".PHONY"):
            tail = line[match.end() :].split("#")[0] if match[1].startswith(".PHONY") else match[1]
            found += [word for word in tail.split() if re.fullmatch(r"[\w./-]{1,60}", word)]
    return list(dict.fromkeys(found))[:500]


def _call(targets: list[str]) -> str:
    name = next((name for name in TEST_TARGETS if name in targets), "")
    return f"make {name}" if name else ""


RULE = regex(r"([\w.$(][\w./ $(){}%-]{0,200}?)\s*::?(?!=)([^=;#]*)(?:;(.*)|#.*)?")
DEFAULT_GOAL = regex(r"(?m)^\.DEFAULT_GOAL\s*:?=\s*([\w.-]{1,60})\s*$")
AWAY = regex(r"(?:[\w.]+[-_])*(?:deploy|publish|upload)(?:[-_][\w.]+)*")
IDLE = regex(r"(?:[\w.]+[-_])*(?:help|usage|\w*lint|style|format)(?:[-_][\w.]+)*")


def _build(tree: Tree) -> str:
    """Return the call of make that builds: of its first goal, or another if that prints help or checks style.

    It is empty if there is none, or if it changes something on another machine.
    """

    def does(line: str) -> bool:
        return leads_outward(line, tree.text)

    for goal in ("", "all", "build"):
        goals = _goals(_text(tree), goal)
        if not all(map(IDLE.fullmatch, goals)) or (not goals and not goal):
            return "" if _leaves(goals, does) else f"make {goal}".strip()
    return ""


def _leaves(goals: dict[str, list[str]], does: Callable[[str], bool] = goes_outward) -> bool:
    """Whether one of these goals changes something on another machine."""
    return any(AWAY.fullmatch(name) or any(map(does, lines)) for name, lines in goals.items())


def _goals(makefile: str, goal: str = "") -> dict[str, list[str]]:
    """Return a goal, by default the one that `make` alone takes, and what it needs, each with its lines.

    Only the targets that the file itself names are followed.
    """
    needs: dict[str, list[str]] = {}
    lines: dict[str, list[str]] = {}
    names: list[str] = []
    for line in makefile.replace("\\\n", " ").splitlines()[:5000]:
        if line.startswith("\t"):
            for name in names:
                lines[name].append(line.strip("\t @+-"))
        elif match := RULE.fullmatch(line):
            names = [name for name in match[1].split() if name[0] != "." and "%" not in name]
            for name in names:
                needs.setdefault(name, []).extend(match[2].split())
                lines.setdefault(name, []).append((match[3] or "").strip(" @+-"))
    named = DEFAULT_GOAL.search(makefile)
    seen: dict[str, list[str]] = {}
    queue = [goal or (named[1] if named else next(iter(needs), ""))]
    while queue:
        name = queue.pop()
        if name in needs and name not in seen:
            seen[name] = lines[name]
            queue += needs[name]
    return seen


def _text(tree: Tree, folder: str = "") -> str:
    """Return a folder's Makefile with the files that it includes by name."""
    path = tree.first(*(f"{folder}{name}" for name in MAKEFILES))
    return tree.text(path) + _included(tree, path) if path else ""


def _make(tree: Tree) -> Iterator[Candidate]:
    top = tree.first(*MAKEFILES)
    described = bool(tree.first("configure", "configure.ac", "configure.in", "CMakeLists.txt", "meson.build"))
    rank = Rank.WIDER if described else Rank.DIRECT
    build = _build(tree) if top else ""
    if top:
        yield from _top_makefile(tree, top, build, rank)
    for folder in TEST_FOLDERS:
        if not tree.first(*(f"{folder}/{name}" for name in MAKEFILES)):
            continue
        call = _call(targets_of(_text(tree, f"{folder}/"))).removeprefix("make ")
        test = f"make -C {folder} {call}".strip()
        yield _native(build, test, f"{folder}/Makefile", Rank.WIDER if top else rank)
    if build and not described:
        yield _native(build, "", f"{top}, no tests found")
    elif not top and not described:
        yield from _makefile_below(tree)


def _top_makefile(tree: Tree, top: str, build: str, rank: Rank) -> Iterator[Candidate]:
    """Propose the Makefile's target that tests, or else a program it builds whose name suggests tests."""
    targets = targets_of(_text(tree))
    if test := _call(targets):
        target = test.removeprefix("make ")
        if _leaves(_goals(_text(tree), target)):
            return
        if build:
            yield _native(build, test, f"{top}, target {target}", rank)
        yield _native("", test, f"{top}, nothing built before", Rank.WIDER if build else rank)
        return
    programs = (name for name in targets if re.fullmatch(r"[\w-]+[-_]tests?|tests?[-_][\w-]+", name))
    if program := next(programs, ""):
        name = words(program)
        yield _native(f"make {name}", f"./{name}", f"{top}, target {program}", Rank.GUESS)


def _makefile_below(tree: Tree) -> Iterator[Candidate]:
    """Propose a Makefile in a folder of sources, if there is none at the top."""
    for path in tree.matching(r"(src|source|lib|build)/(GNUm|m|M)akefile")[:1]:
        folder = dirname(path)
        test = _call(targets_of(_text(tree, f"{folder}/")))
        make = f"make -C {folder}"
        yield _native(make, test.replace("make", make, 1), path)


# --- Runners of tasks -------------------------------------------------------------------------------------


def _runners(tree: Tree) -> Iterator[Candidate]:
    """Propose the targets of just and task, which have the same names as those of make."""
    just = tree.first("justfile", "Justfile", ".justfile")
    task = tree.first("Taskfile.yml", "Taskfile.yaml")
    rows = (
        (just, "just", r"(?m)^@?([\w-]+)(?:\s[^:=\n]*)?:(?!=)"),
        (task, "task", r"(?m)^  ([\w:-]+):\s*$"),
    )
    for path, program, rule in rows:
        names = re.findall(rule, tree.text(path)) if path else []
        test = next((name for name in TEST_TARGETS if name in names), "")
        if test:
            build = f"{program} build" if "build" in names else ""
            yield _native(build, f"{program} {test}", f"{basename(path)}, {test}", Rank.GUESS)
