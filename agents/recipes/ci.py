"""Core: what the repository's own continuous integration runs as tests; it is only ever proposed.

Whatever needs secrets, another system, root or a registry to publish to is left out, and so are expressions
of the service, whose values are unknown here.
"""

import re
import shlex
from dataclasses import dataclass, field
from posixpath import basename, normpath

from agents.recipes.node import manager_of
from agents.recipes.python import NEWER_PIP
from agents.recipes.recipe import Candidate, Rank, Recipe, needs_python
from agents.recipes.script_lines import ENTERS, PARTS, PLACE, is_build, is_test, lines_of, tells
from agents.recipes.services import STEPS, Job, Script, jobs
from agents.recipes.tree import Tree, then, words
from tasks.text.regex import regex

KIND = "ci"
LINES = 40  # lines read of one step
TESTS = 4  # steps of one job that test; a job with more does something else than test a change
BEST = 2  # recipes that are proposed
STRANGE = 9  # a job stranger than this is too far from plain tests to say anything
ODD = regex(
    r"lint|docs?\b|release|publish|deploy|nightly|cron|schedule|coverage|windows|macos|bench|fuzz|wasm|\barm|cross"
    r"|sanit|valgrind|qemu|riscv|s390x|ppc64|integration|e2e|browser|style|format|types|mypy|minimal|msrv|oldest|pypy|downstream|stale"
    r"|label|codeql|visualstudio|msvc|\bvs\d|cygwin|mingw|freebsd|emscripten|android|ios\b",
    re.IGNORECASE,
)
# Names of files whose tests are about names and commas.
STYLE = regex(r"(?:^|[-_.])(?:lint\w*|style|format(?:ting)?|spell\w*|typos)(?=[-_.])", re.IGNORECASE)
PLAIN = regex(r"test|\bci\b|build|check|main", re.IGNORECASE)
FOLDER = regex(r"\.?[\w/-][\w./-]{0,100}")  # of a step; any other is a place that nobody here knows
EXPRESSION = regex(r"\$\{\{[^}]*\}\}")
GROUPS = regex(r"\bpip3?\s+install\b[^&|;]*\s--group\b")
PIP_ITSELF = regex(r"\bpip3?\s+install\b[^&|;]*\s(?:-U|--upgrade)\b[^&|;]*\spip\b")
NEEDED = ("tox", "nox", "uv", "poetry", "pdm", "hatch", "pipenv", "maturin")  # what a service has ready


def candidates(tree: Tree) -> list[Candidate]:
    """Return the best of what the repository's own CI files run as tests."""
    rated = []
    for job in jobs(tree):
        about = basename(job.file)
        if STYLE.search(about) and "test" not in about:
            continue
        recipe, lost = _recipe(tree, job)
        strange = _strangeness(job) + lost
        if recipe and strange <= STRANGE:
            rated.append((strange, recipe))
    rated.sort(key=lambda pair: pair[0])
    best = list(dict.fromkeys(recipe for _, recipe in rated))[:BEST]
    return [Candidate(Rank.CI, KIND, recipe) for recipe in best]


def _strangeness(job: Job) -> int:
    """Return how far a job seems from plain tests on a plain system; 0 is the plainest."""
    called = f"{job.file} {job.name}"
    return 5 * len(ODD.findall(called)) + (0 if PLAIN.search(called) else 2)


OF_BASH = regex(r"(?:^|[\s(;])(?:source\s|\[\[\s|set\s+-o\s+pipefail|shopt\s)|<\(|\$'")
GLOBALLY = 'npm --prefix "$VIRTUAL_ENV"'


@dataclass
class _Phases:
    """The commands of a job by phase: prepare, build, test."""

    tree: Tree
    prepare: list[str] = field(default_factory=list)
    build: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    said: str = ""  # the step that tests

    def take(self, step: Script, lines: list[str]) -> None:
        """Add one step, unless it only reports after the tests or only changes folders."""
        is_testing = any(is_test(line) for line in lines)
        if (self.tests and not is_testing) or not any(tells(line) for line in lines):
            return
        if is_testing and not _apart(step, lines):
            lines = self._from_tests_on(lines)
        command = _placed(self.tree, step, lines)
        if is_testing:
            self.tests.append(command)
            self.said = self.said or step.name
        else:
            self._before_tests(lines).append(command)

    def has_folder(self, step: Script, lines: list[str]) -> bool:
        """Whether the folder of the step is there, or something that was taken before may have made it."""
        if step.folder and (".." in step.folder or not FOLDER.fullmatch(step.folder)):
            return False
        entered = next((match[1] for line in lines[:1] if (match := ENTERS.match(line))), ".")
        for name, value in step.variables:
            entered = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", value, entered)
        folder = normpath(f"{step.folder or '.'}/{entered}")
        if folder == "." or self.tree.is_folder(folder):
            return True
        before = [*self.prepare, *self.build, *self.tests]
        return any(
            folder.split("/")[0] in part or is_build(part.strip(" ()"))
            for command in before
            for part in PARTS.split(command)
        )

    def _from_tests_on(self, lines: list[str]) -> list[str]:
        """Put the lines of the step that come before the tests into their phase, and return the rest."""
        first = next(index for index, line in enumerate(lines) if is_test(line))
        self._before_tests(lines[:first]).extend(_here(self.tree, line) for line in lines[:first])
        return lines[first:]

    def _before_tests(self, lines: list[str]) -> list[str]:
        is_building = bool(self.build) or any(is_build(line) for line in lines)
        return self.build if is_building else self.prepare


def _recipe(tree: Tree, job: Job) -> tuple[Recipe | None, int]:
    """Return the recipe that a job amounts to, or None, and how much of the job had to be left out."""
    phases, lost = _Phases(tree), 0
    for step in job.steps[:STEPS]:
        lines, left_out = lines_of(step.text, LINES, dict(step.variables))
        if not phases.has_folder(step, lines):
            lines, left_out = [], 3 * bool(lines)
        lost += left_out
        phases.take(step, lines)
    if not 0 < len(phases.tests) <= TESTS:
        return None, lost
    where = f"{job.file}, step {phases.said}" if phases.said else f"{job.file}, job {job.name}"
    prepare = [
        _pip(phases.prepare), _tools(phases.prepare, [*phases.build, *phases.tests]), *phases.prepare,
    ]  # fmt: skip
    if job.has_python and not needs_python(then(*prepare, *phases.build, *phases.tests)):
        prepare.insert(0, "pip --version")  # what the tests call wants it, though no command says so
    said = " ".join(EXPRESSION.sub("…", where).split())[:120]
    before, build, tests = (_in_its_shell(then(*phase)) for phase in (prepare, phases.build, phases.tests))
    return Recipe(before, build, tests, said), lost


def _in_its_shell(command: str) -> str:
    """Return the command, to be run by bash, as the service does, if it has words that only bash knows."""
    return words("bash", "-c", command) if OF_BASH.search(command) else command


def _placed(tree: Tree, step: Script, lines: list[str]) -> str:
    """Return the lines as one command, run in the step's folder and with its variables."""
    command = then(*(_here(tree, line) for line in lines))
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in step.variables)
    parts = [
        f"cd {words(step.folder)}" if step.folder else "",
        f"export {exports}" if exports else "",
    ]
    return f"({then(*parts, command)})" if any(parts) or _apart(step, lines) else command


def _apart(step: Script, lines: list[str]) -> bool:
    """Whether the lines need a shell of their own, so that they change nothing for what follows."""
    return bool(step.folder or step.variables) or any(
        PLACE.match(line) or re.search(r"\|\||;", line) for line in lines
    )


def _here(tree: Tree, line: str) -> str:
    """Return the line as it runs in our own environment, without the service's ready-made programs."""
    line = re.sub(r"\buv\s+pip\s+install(\s+--system)?\b", "pip install", line)
    line = re.sub(r"\bpipx\s+install\b", "pip install", line)
    line = re.sub(r"\bpipx\s+run\s+(?=\w)", "", line)
    line = re.sub(r"(?<![\w-])(--user|--break-system-packages)(?![\w-])\s*", "", line).strip()
    # All environments at once are for a machine with every Python; services choose one of them by a plugin.
    line = re.sub(r"^((?:python3? -m )?tox)(?=(?: -[rv]+)*$)", r"\1 -e py", line)
    # For everybody on a machine made for one run; here, into the environment, whose programs come first.
    line = re.sub(r"\bnpm(?=\s+(?:i|install|add)\b[^&|;]*\s(?:-\w*g\w*|--global)\b)", GLOBALLY, line)
    if re.match(r"(pnpm|yarn|bun)\b", line) and "package.json" in tree:
        call = manager_of(tree).run.removesuffix(" run")
        name = line.split(" ", 1)[0]
        if name in call or (name == "yarn" and "cli-dist" in call):
            line = call + line[len(name) :]
    return line


def _pip(prepare: list[str]) -> str:
    """Return a command that brings a pip which reads groups of dependencies; empty if none is needed."""
    called = " && ".join(prepare)
    return NEWER_PIP if GROUPS.search(called) and not PIP_ITSELF.search(called) else ""


def _tools(prepare: list[str], rest: list[str]) -> str:
    """Return a command that installs the Python tools that are called but not installed; empty if none."""
    installed = " && ".join(prepare)
    called = " && ".join([*prepare, *rest])
    wanted = [
        name
        for name in NEEDED
        if re.search(rf"(?:^|[\s(]){name}(?:\s|$)", called)
        and not re.search(rf"\bpip3?\s+install\b[^&]*\b{name}\b", installed)
    ]
    return words("pip", "install", *wanted) if wanted else ""
