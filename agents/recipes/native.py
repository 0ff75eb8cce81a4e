"""Core: how a project of C, C++ or of many languages could be built by make and its relatives."""

import re
from collections.abc import Iterator
from posixpath import basename, dirname

from agents.recipes.ranks import Candidate, Rank
from agents.recipes.recipe import Recipe
from agents.recipes.tree import Tree, then, words

KIND = "native"
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")  # as make itself looks for them
TEST_TARGETS = (
    "check", "test", "tests", "unittest", "unittests", "unit-test", "unit-tests", "unit_test", "unit_tests",
    "test-unit", "runtest", "runtests", "run-tests", "run_tests", "run-test", "testsuite", "test-suite",
    "check-all", "test-all", "test_all", "testall", "alltests", "all-tests",
)  # fmt: skip
TEST_FOLDERS = ("tests", "test", "t", "testsuite", "unittests")
# What git checks out is all of one age; make would run the tools again that made these from their sources.
AGES = (
    r"find . -name aclocal.m4 -exec touch {} + && find . \( -name configure -o -name 'config*.h.in'"
    r" -o -name 'config.hin' -o -name Makefile.in -o -name '*.info' -o -name '*.[1-8]' \) -exec touch {} +"
)
AUTOMAKE_TESTS = r"(?m)^\s*(TESTS|check_\w+|TESTSUITE)\s*\+?=[ \t]*\S|^check(-local)?\s*:(?! check-)"
PARALLEL = '"$(nproc)"'


def candidates(tree: Tree) -> Iterator[Candidate]:
    """What could build and test the project at the top of this tree, most telling description first."""
    yield from _meson(tree)
    yield from _cmake(tree)
    yield from _autotools(tree)
    yield from _make(tree)
    yield from _runners(tree)


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
    yield Candidate(Rank.DIRECT if tested else Rank.BUILD, KIND, Recipe("", setup, test, "meson.build"))


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
    if not tested:
        yield Candidate(
            Rank.BUILD, KIND, Recipe("", f"cmake -S . -B {folder} && {build}", "", "CMakeLists.txt")
        )
        return
    test = f"ctest --test-dir {folder} --output-on-failure --no-tests=error"
    plain = Recipe("", f"cmake -S . -B {folder} && {build}", test, "CMakeLists.txt")
    if options:
        flags = words(*(f"-D{name}=ON" for name in options))
        yield Candidate(
            Rank.DIRECT,
            KIND,
            Recipe(
                "", f"cmake -S . -B {folder} {flags} && {build}", test, "CMakeLists.txt, options for tests"
            ),
        )
    yield Candidate(Rank.WIDER if options else Rank.DIRECT, KIND, plain)
    if packaged := _packaged(tree, r"-D[A-Za-z]\w{0,60}=[\w.+-]{1,40}"):
        recipe = Recipe(
            "", f"cmake -S . -B {folder} {packaged} && {build}", test, "CMakeLists.txt, debian/rules"
        )
        yield Candidate(Rank.WIDER, KIND, recipe)


def _packaged(tree: Tree, option: str) -> str:
    """The options with which Debian configures its package of the project."""
    rules = tree.text("debian/rules")[:40_000].replace("\\\n", " ")
    found = re.findall(r"(?m)\bdh_auto_configure\b[^\n]{0,200}?\s--\s([^\n]*)", rules)
    options = [word for line in found[:1] for word in line.split() if re.fullmatch(option, word)]
    return words(*options[:30])


# Words of an option's name that tell of tests, and those that tell of something which tests do without.
TEST_WORDS = {"TEST", "TESTS", "TESTING", "UNITTEST", "UNITTESTS"}
OTHER_WORDS = {
    "BENCHMARK", "BENCHMARKS", "COVERAGE", "CUDA", "DISABLE", "EXAMPLES", "EXCLUDE", "EXTERNAL", "FETCH",
    "FUZZ", "FUZZER", "FUZZERS", "FUZZING", "INSTALL", "MEMCHECK", "NETWORK", "NO", "ONLINE", "PERF",
    "PERFORMANCE", "PYTHON", "REMOTE", "SANITIZER", "SKIP", "STATIC", "STRICT", "SYSTEM", "TIDY", "VALGRIND",
    "WERROR", "WITHOUT",
}  # fmt: skip


def _test_options(texts: list[str]) -> list[str]:
    """The switches for building tests that are off as they stand."""
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
    """What a Makefile takes in from files beside it."""
    folder = path.removesuffix(basename(path))
    names = re.findall(r"(?m)^-?include\s+([\w./-]+)\s*$", tree.text(path))[:5]
    return "\n".join(["", *(tree.text(f"{folder}{name}") for name in names)])


def _autotools(tree: Tree) -> Iterator[Candidate]:
    source = tree.first("configure.ac", "configure.in")
    parts = [
        tree.text(path) + _included(tree, path)
        for path in tree.matching(r"(.*/)?Makefile\.am", own=True)[:25]
    ]
    automake = "Makefile.am" in tree or "generated by automake" in tree.text("Makefile.in")[:400]
    template = tree.text("Makefile.in") or tree.text("Makefile.am")
    targets = targets_of(template)
    # Every Makefile of automake has a target `check`; only these words put something behind it.
    checks = any(re.search(AUTOMAKE_TESTS, text) for text in parts or [template])
    test = ("make check" if checks else "") if automake else _call(targets)
    flags = "" if re.search(r"(?m)^\.NOTPARALLEL", template) else f" -j{PARALLEL}"
    rank = Rank.DIRECT if test else Rank.BUILD
    if "configure" in tree:
        ages = AGES if source else ""
        plain = Recipe("", then(ages, "sh ./configure", f"make{flags}"), test, "configure")
        yield Candidate(rank, KIND, plain)
        if test and (
            packaged := _packaged(tree, r"--(enable|disable|with|without)-[\w-]{1,60}(=[\w.+-]{1,40})?")
        ):
            build = then(ages, f"sh ./configure {packaged}", f"make{flags}")
            yield Candidate(Rank.WIDER, KIND, Recipe("", build, test, "configure, debian/rules"))
    if source:
        made = tree.first("autogen.sh", "bootstrap", "bootstrap.sh", "buildconf", "autogen")
        first = "autoreconf -fi" if not made or "configure" in tree else f"NOCONFIGURE=1 sh ./{made}"
        if made and "bash" in tree.text(made)[:40]:
            first = first.replace(" sh ", " bash ")
        build = then(first, "sh ./configure", f"make{flags}")
        again = Rank.WIDER if "configure" in tree and test else rank
        yield Candidate(again, KIND, Recipe("", build, test, f"{source}{', ' + made if made else ''}"))
        if made and "configure" not in tree:
            build = then("autoreconf -fi", "sh ./configure", f"make{flags}")
            yield Candidate(max(rank, Rank.WIDER), KIND, Recipe("", build, test, source))


# --- Make -------------------------------------------------------------------------------------------------


def targets_of(makefile: str) -> list[str]:
    """The targets that a Makefile names itself, in its order."""
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


def _text(tree: Tree, folder: str = "") -> str:
    """A folder's Makefile with the files that it includes by name."""
    path = tree.first(*(f"{folder}{name}" for name in MAKEFILES))
    return tree.text(path) + _included(tree, path) if path else ""


def _make(tree: Tree) -> Iterator[Candidate]:
    top = tree.first(*MAKEFILES)
    described = bool(tree.first("configure", "configure.ac", "configure.in", "CMakeLists.txt", "meson.build"))
    rank = Rank.WIDER if described else Rank.DIRECT
    build = "make" if top else ""
    if top:
        targets = targets_of(_text(tree))
        if test := _call(targets):
            yield Candidate(
                rank, KIND, Recipe("", "make", test, f"{top}, target {test.removeprefix('make ')}")
            )
            yield Candidate(Rank.WIDER, KIND, Recipe("", "", test, f"{top}, nothing built before"))
        program = next(
            (name for name in targets if re.fullmatch(r"[\w-]+[-_]tests?|tests?[-_][\w-]+", name)), ""
        )
        if program and not test:
            folder = words(program)
            yield Candidate(
                Rank.GUESS, KIND, Recipe("", f"make {folder}", f"./{folder}", f"{top}, target {program}")
            )
    for folder in TEST_FOLDERS:
        if not tree.first(*(f"{folder}/{name}" for name in MAKEFILES)):
            continue
        call = _call(targets_of(_text(tree, f"{folder}/"))).removeprefix("make ")
        command = f"make -C {folder} {call}".strip()
        yield Candidate(Rank.WIDER if top else rank, KIND, Recipe("", build, command, f"{folder}/Makefile"))
    if top and not described:
        yield Candidate(Rank.BUILD, KIND, Recipe("", "make", "", f"{top}, no tests found"))
    elif not top and not described:
        for path in tree.matching(r"(src|source|lib|build)/(GNUm|m|M)akefile")[:1]:
            folder = dirname(path)
            test = _call(targets_of(_text(tree, f"{folder}/")))
            yield Candidate(
                Rank.DIRECT if test else Rank.BUILD,
                KIND,
                Recipe("", f"make -C {folder}", test.replace("make", f"make -C {folder}", 1), path),
            )


# --- Runners of tasks -------------------------------------------------------------------------------------


def _runners(tree: Tree) -> Iterator[Candidate]:
    """Targets of just and of task, which have the same names as those of make."""
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
            yield Candidate(
                Rank.GUESS, KIND, Recipe("", build, f"{program} {test}", f"{basename(path)}, {test}")
            )
