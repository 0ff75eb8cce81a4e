"""Core: how a JavaScript or TypeScript project could be installed and tested."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agents.recipes.recipe import Candidate, Rank, Recipe, candidate
from agents.recipes.script_lines import goes_outward, leads_outward
from agents.recipes.tree import Tree, at, strings, table, words
from tasks.text.counting import counted
from tasks.text.regex import regex

KIND = "node"
TEST_FILES = (
    r"(.*/)?([^/]*[._-](test|tests|spec)|test|tests|test[-_][^/]*)\.[cm]?[jt]sx?"
    r"|(.*/)?(tests?|specs?|__tests__)/.*\.[cm]?[jt]sx?"
)
TEST_SCRIPTS = ("test", "tests", "test:unit", "unit", "test:ci", "test:node", "test:all", "check")
BUILD_SCRIPTS = ("build", "compile", "build:all")
# The parts of a script that run tests; the others check style, types or sizes.
RUNNERS = regex(
    r"(npx\s+)?(c8|nyc|jest|mocha|_mocha|ava|vitest|tap|tape|uvu|jasmine|qunit|lab|borp|bnt|tsx|vows|nodeunit"
    r"|node\s+--test|node\s+--import|node\s+(\S*/)?tests?\b|node\s+\S*test\S*\.[cm]?js)\b.*"
)
NO_TEST = regex(r"no tests? (specified|yet|defined|available)|^\s*(true|:|exit 0|echo\b[^&|;]*)\s*$", re.I)
WATCHES = regex(r"react-scripts\s+test|\bng\s+test\b|(^|\s)vitest(\s*$|\s+(?!run)\w)|--watch\b")
BUILT = regex(r"(dist|build|lib|out|cjs|esm)/")
# Runners that a project may declare without a script that calls them.
DECLARED = {
    "vitest": "npx vitest run", "jest": "npx jest", "mocha": "npx mocha", "ava": "npx ava", "tap": "npx tap",
    "tape": "npx tape 'test/**/*.js'", "uvu": "npx uvu", "jasmine": "npx jasmine",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manager:
    """How a package manager is called: for an install as locked, for any install, and for a script."""

    exact: str
    loose: str
    run: str
    source: str = ""


def candidates(tree: Tree) -> Iterator[Candidate]:
    """Yield what could install and test the package at the top of this tree."""
    if "package.json" not in tree:
        if tree.first("deno.json", "deno.jsonc"):
            yield candidate(KIND, "", "", "deno test -A", "deno.json")
        return
    package = tree.json("package.json")
    named = {name: text for name, text in table(package.get("scripts")).items() if isinstance(text, str)}
    scripts = {name: text for name, text in named.items() if not any(map(goes_outward, _parts(named, name)))}
    manager = manager_of(tree)
    builds = (name for name in BUILD_SCRIPTS if _tells(scripts.get(name, "")))
    safe = (name for name in builds if not leads_outward(scripts[name], tree.text))
    build = next((f"{manager.run} {name}" for name in safe), "")
    has_tests = bool(tree.matching(TEST_FILES, own=True))
    tests = list(_tests(tree, package, scripts, manager, has_tests))
    if not tests:
        yield from _without_tests(tree, package, manager, build)
        return
    source = f"package.json{manager.source}"
    for rank, test, said in tests:
        yield candidate(KIND, manager.exact, build, test, f"{source}, {said}", rank)
    rank, test, said = tests[0]
    if build:
        yield candidate(KIND, manager.exact, "", test, f"{source}, {said}, nothing built", Rank.WIDER)
    # Install scripts of packages fetch browsers and binaries, which tests often do not need.
    loose, source = f"{manager.loose} --ignore-scripts", f"{source}, {said}, no lock file or scripts"
    yield candidate(KIND, loose, build, test, source, Rank.WIDER)


# --- The package manager ----------------------------------------------------------------------------------


def manager_of(tree: Tree) -> Manager:
    """Return the package manager that the project names, or whose lock file it has; npm otherwise."""
    named = str(tree.json("package.json").get("packageManager") or "")
    said = re.match(r"(npm|pnpm|yarn|bun)@(\d+(?:\.\d+){0,2})", named)
    lock = tree.first("pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb", "package-lock.json")
    lock = lock or tree.first("npm-shrinkwrap.json")
    name = said[1] if said else {"p": "npm", "n": "npm", "y": "yarn", "b": "bun"}.get(lock[:1], "npm")
    if not said and lock == "pnpm-lock.yaml":
        name = "pnpm"
    version = said[2] if said else ""
    source = f", {lock}" if lock else ""
    if name == "pnpm":
        call = f"npx --yes pnpm@{version or _pnpm(tree.text('pnpm-lock.yaml')[:200])}"
        frozen = " --frozen-lockfile" if lock == "pnpm-lock.yaml" else " --no-frozen-lockfile"
        return Manager(
            f"{call} install{frozen}", f"{call} install --no-frozen-lockfile", f"{call} run", source
        )
    if name == "yarn":
        return _yarn(tree, version, source)
    if name == "bun":
        call = f"npx --yes bun{'@' + version if version else ''}"
        return Manager(f"{call} install", f"{call} install", f"{call} run", source)
    quiet = "--no-audit --no-fund"
    exact = (
        f"npm ci {quiet}" if lock in ("package-lock.json", "npm-shrinkwrap.json") else f"npm install {quiet}"
    )
    return Manager(exact, f"npm install {quiet} --no-package-lock --legacy-peer-deps", "npm run", source)


def _pnpm(lock: str) -> str:
    found = re.search(r"lockfileVersion:\s*'?(\d+)\.(\d+)", lock)
    major = int(found[1]) if found else 9
    return {5: "7", 6: "8"}.get(major, "10")


def _yarn(tree: Tree, version: str, source: str) -> Manager:
    newer = ".yarnrc.yml" in tree or bool(version) and not version.startswith("1")
    release = next(iter(tree.matching(r"\.yarn/releases/yarn-[\w.-]+\.c?js")), "")
    if release:
        call = words("node", release)
    elif newer:
        call = f"npx --yes @yarnpkg/cli-dist@{version or '4'}"
    else:
        call = f"npx --yes yarn@{version or '1.22.22'}"
    if newer:
        return Manager(f"{call} install --immutable", f"{call} install", f"{call} run", source)
    frozen = " --frozen-lockfile" if "yarn.lock" in tree else ""
    return Manager(f"{call} install{frozen}", f"{call} install --no-lockfile", f"{call} run", source)


# --- Tests ------------------------------------------------------------------------------------------------


def _tests(
    tree: Tree, package: dict[str, object], scripts: dict[str, str], manager: Manager, has_tests: bool
) -> Iterator[tuple[Rank, str, str]]:
    name = next((name for name in TEST_SCRIPTS if _tells(scripts.get(name, ""))), "")
    if name and (has_tests or not RUNNERS.search(scripts[name])):
        text = scripts[name]
        watch = "CI=true " if WATCHES.search(text) else ""
        run = "npm test" if manager.run == "npm run" and name == "test" else f"{manager.run} {words(name)}"
        yield Rank.DIRECT, f"{watch}{run}", f"script {name}"
        yield from _narrower(scripts, name)
        return
    if workspaces := _workspaces(tree, package):
        yield Rank.DIRECT, _everywhere(manager), f"scripts of {counted(workspaces, 'workspace')}"
        return
    if not has_tests:
        return
    declared = {**table(package.get("dependencies")), **table(package.get("devDependencies"))}
    for runner, command in DECLARED.items():
        if runner in declared:
            yield Rank.GUESS, command, runner
            return
    files = tree.matching(TEST_FILES, own=True)[:20]
    if any("node:test" in tree.text(path) for path in files):
        yield Rank.GUESS, "node --test", "node's own test runner"


def _tells(script: str) -> bool:
    return bool(script.strip()) and not NO_TEST.search(script)


def _narrower(scripts: dict[str, str], name: str) -> Iterator[tuple[Rank, str, str]]:
    """Yield the parts of a script and its hooks that run tests, if others check style or types."""
    parts = _parts(scripts, name)
    runners = [part for part in parts if RUNNERS.fullmatch(part)]
    if 0 < len(runners) < len(parts):
        # npx has the package's own programs on its path, as a script has.
        chosen = [part if part.startswith(("npx ", "node ")) else f"npx {part}" for part in runners]
        yield Rank.WIDER, " && ".join(chosen), f"script {name}, its tests alone"


def _parts(scripts: dict[str, str], name: str) -> list[str]:
    """Return what a script and its hooks do, one command after the other."""
    texts = [scripts[each] for each in (f"pre{name}", name, f"post{name}") if each in scripts]
    return [below for text in texts for part in text.split("&&") for below in _opened(part.strip(), scripts)]


def _opened(part: str, scripts: dict[str, str]) -> list[str]:
    """Return what a part does if it only calls other scripts: one by name, or all with the same beginning."""
    called = re.fullmatch(
        r"(?:(?:npm|pnpm|yarn)(?:\s+run)?|run-[sp]|npm-run-all2?)(?:\s+-\S+)*\s+['\"]?(/\^)?([\w:-]+)([*/]*)['\"]?",
        part,
    )
    if not called:
        return [part]
    if called[1] or called[3]:
        return [text.strip() for name, text in scripts.items() if name.startswith(called[2])]
    return [scripts.get(called[2], part).strip()]


def _workspaces(tree: Tree, package: dict[str, object]) -> int:
    """Return how many packages below the top have tests of their own."""
    declared = package.get("workspaces")
    there = (
        strings(declared)
        or strings(at(declared, "packages"))
        or tree.first("pnpm-workspace.yaml", "lerna.json")
    )
    if not there:
        return 0
    below = tree.matching(r"([^/]+/){1,3}package\.json", own=True)[:30]
    return sum(_tells(str(at(tree.json(path), "scripts", "test") or "")) for path in below)


def _everywhere(manager: Manager) -> str:
    if "pnpm" in manager.run:
        return f"{manager.run.removesuffix(' run')} --recursive run test"
    if "cli-dist" in manager.run or ".yarn/" in manager.run:
        return f"{manager.run.removesuffix(' run')} workspaces foreach --all run test"
    if "yarn" in manager.run:
        return f"{manager.run.removesuffix(' run')} workspaces run test"
    return "npm test --workspaces --if-present"


# --- Without tests ----------------------------------------------------------------------------------------


def _without_tests(
    tree: Tree, package: dict[str, object], manager: Manager, build: str
) -> Iterator[Candidate]:
    """Yield a build if there is one, and loading the package's entry with what it needs at run time."""
    source = f"package.json{manager.source}, no tests found"
    entry = _entry(tree, package)
    found = [Recipe(manager.exact, build, "", source)] if build else []
    if entry:
        needed = table(package.get("dependencies")) or table(package.get("peerDependencies"))
        prepare = "npm install --no-audit --no-fund --omit=dev --ignore-scripts" if needed else ""
        check = words("node", "--check", entry)
        loaded = Recipe(prepare, check, words("node", "-e", f'import("./{entry}")'), source)
        # An entry in the folder of built files is committed already built.
        found.insert(0 if BUILT.match(entry) else len(found), loaded)
        found.append(Recipe("", check, "", source))
    for recipe in found:
        yield Candidate(Rank.BUILD, KIND, recipe)


def _entry(tree: Tree, package: dict[str, object]) -> str:
    exports = package.get("exports")
    top = at(exports, ".") or exports
    for value in (
        package.get("main"), at(top, "default"), at(top, "import"), at(top, "import", "default"), top,
        package.get("module"), "index.js", "index.mjs", "index.cjs",
    ):  # fmt: skip
        path = value.removeprefix("./") if isinstance(value, str) else ""
        for name in (path, f"{path}.js", f"{path}/index.js".lstrip("/")):
            if name in tree and re.fullmatch(r"[\w./@+-]+\.[cm]?js", name):
                return name
    return ""
