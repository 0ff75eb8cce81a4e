"""Core: what the repository's own continuous integration runs as tests, only ever proposed.

What needs secrets, another system, root or a registry to publish to is left out; so is whatever holds an
expression of the service, which nobody here can fill in.
"""

import re
import shlex

from agents.recipes.node import manager_of
from agents.recipes.ranks import Candidate, Rank
from agents.recipes.recipe import Recipe
from agents.recipes.script_lines import PLACE, is_build, is_test, lines_of
from agents.recipes.services import STEPS, Job, Step, jobs
from agents.recipes.tree import Tree, then, words

KIND = "ci"
LINES = 40  # of one step
TESTS = 4  # steps that test, in one job; more are another thing than the tests of a change
BEST = 2  # recipes that are proposed
STRANGE = 9  # where a job is too far from plain tests to say anything
ODD = re.compile(
    r"lint|docs?\b|release|publish|deploy|nightly|cron|schedule|coverage|windows|macos|bench|fuzz|wasm|\barm|cross"
    r"|sanit|valgrind|integration|e2e|browser|style|format|types|mypy|minimal|msrv|oldest|pypy|downstream|stale"
    r"|label|codeql|cygwin|mingw|freebsd|emscripten|android|ios\b",
    re.IGNORECASE,
)
PLAIN = re.compile(r"test|\bci\b|build|check|main", re.IGNORECASE)
NEEDED = ("tox", "nox", "uv", "poetry", "pdm", "hatch", "pipenv")  # what a service has ready


def candidates(tree: Tree) -> list[Candidate]:
    """The best of what the repository's own files run as tests."""
    rated = []
    for job in jobs(tree):
        recipe, lost = _recipe(tree, job)
        strange = _strangeness(job) + lost
        if recipe and strange <= STRANGE:
            rated.append((strange, recipe))
    rated.sort(key=lambda pair: pair[0])
    best = list(dict.fromkeys(recipe for _, recipe in rated))[:BEST]
    return [Candidate(Rank.CI, KIND, recipe) for recipe in best]


def _strangeness(job: Job) -> int:
    """How far a job seems from the plain tests on a plain system."""
    called = f"{job.file} {job.name}"
    return 5 * len(ODD.findall(called)) + (0 if PLAIN.search(called) else 2)


def _recipe(tree: Tree, job: Job) -> tuple[Recipe | None, int]:
    """The recipe that a job amounts to, and how much of it had to be left out."""
    prepare: list[str] = []
    build: list[str] = []
    tests: list[str] = []
    said, lost = "", 0
    for step in job.steps[:STEPS]:
        lines, left_out = lines_of(step.text, LINES)
        lost += left_out
        tested = any(is_test(line) for line in lines)
        if tests and not tested:
            continue  # what comes after the tests reports them
        if all(PLACE.match(line) for line in lines):
            continue
        command = _placed(tree, step, lines)
        if tested:
            tests.append(command)
            said = said or step.name
        elif build or any(is_build(line) for line in lines):
            build.append(command)
        else:
            prepare.append(command)
    if not 0 < len(tests) <= TESTS:
        return None, lost
    where = f"{job.file}, step {said}" if said else f"{job.file}, job {job.name}"
    prepare.insert(0, _tools(prepare, [*build, *tests]))
    return Recipe(then(*prepare), then(*build), then(*tests), " ".join(where.split())[:120]), lost


def _placed(tree: Tree, step: Step, lines: list[str]) -> str:
    """The lines as one command, in the step's folder and with its variables."""
    command = then(*(_here(tree, line) for line in lines))
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in step.variables)
    plain = re.fullmatch(r"\.?[\w/-][\w./-]{0,100}", step.folder)
    parts = [
        f"cd {words(step.folder)}" if plain and ".." not in step.folder else "",
        f"export {exports}" if exports else "",
    ]
    apart = any(parts) or any(PLACE.match(line) for line in lines) or re.search(r"\|\||;", command)
    return f"({then(*parts, command)})" if apart else command


def _here(tree: Tree, line: str) -> str:
    """The line as it runs in an environment of our own, without the service's ready-made programs."""
    line = re.sub(r"\buv\s+pip\s+install(\s+--system)?\b", "pip install", line)
    line = re.sub(r"\bpipx\s+install\b", "pip install", line)
    line = re.sub(r"(?<![\w-])(--user|--break-system-packages)(?![\w-])\s*", "", line).strip()
    if re.match(r"(pnpm|yarn|bun)\b", line) and "package.json" in tree:
        call = manager_of(tree).run.removesuffix(" run")
        name = line.split(" ", 1)[0]
        if name in call or (name == "yarn" and "cli-dist" in call):
            line = call + line[len(name) :]
    return line


def _tools(prepare: list[str], rest: list[str]) -> str:
    """Installs the programs of Python's world that are called without being installed."""
    installed = " && ".join(prepare)
    called = " && ".join([*prepare, *rest])
    wanted = [
        name
        for name in NEEDED
        if re.search(rf"(?:^|[\s(]){name}(?:\s|$)", called)
        and not re.search(rf"\bpip3?\s+install\b[^&]*\b{name}\b", installed)
    ]
    return words("pip", "install", *wanted) if wanted else ""
