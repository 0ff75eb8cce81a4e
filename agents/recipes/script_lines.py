"""Core: what one line of a script does, judging by its words: install, build, test, or nothing of use."""

import re
import shlex
from collections.abc import Callable, Mapping

from tasks.text.regex import regex

LENGTH = 500  # of a line that is looked at


def _rule(*parts: str) -> re.Pattern[str]:
    return regex("|".join(f"(?:{part})" for part in parts))


# Never to be run just to see whether tests pass: expressions, secrets, other machines, the system.
BANNED = _rule(
    r"\$\{\{|\$\[\[|<<\s*(?:pipeline|parameters)",
    r"(?i:\b(?:secrets?|token|publish|deploy|release|upload)\b)",
    r"\b(?:docker|podman|buildah|kubectl|helm|terraform|vagrant|aws|gcloud|gsutil|az|gh|hub|twine)\b",
    r"\b(?:codecov|coveralls|sonar\S*|semantic-release)\b",
    r"\b(?:ssh|scp|sftp|rsync|gpg|curl|wget|nc|telnet)\b",
    r"\b(?:sudo|su|doas|apt|apt-get|aptitude|yum|dnf|apk|pacman|zypper|snap|brew|port|choco)\b",
    r"\b(?:systemctl|service|mount|umount|chown|sysctl|modprobe|mkfs\S*|dd|shutdown|reboot)\b",
    r"\b(?:crontab|kill|pkill|killall)\b",
    r"\b(?:nvm|rvm|asdf|conda|mamba|micromamba|rustup)\b|\bcargo\s+(?:b?install|binstall)\b",
    r"\bgit\s+(?:push|tag|commit|config|remote|clone|fetch|pull|checkout|reset|clean|lfs)\b",
    r"\b(?:make|ninja)\s+(?:\S+\s+)*install(?![\w-])|--target\s+install\b|\bcmake\s+--install\b|\bmeson\s+install\b",
    r"\brm\s+-\w*r\w*\s+(?:/|~|\$|\.\.)|>\s*/(?!dev/null)|\beval\b",
    r"(?<![&|])&(?![&>\d])",  # something in the background
)
# A command that changes something on another machine, wherever it stands in a line.
OUTWARD = regex(
    r"(?:^|[;&|(@]|\b(?:npx|exec|sudo)\s)\s*(?:"
    r"[\w./-]+\s+(?:-\S+\s+|run\s+|image\s+)*(?:gh-)?(?:deploy|publish|upload|push)(?![\w.-])"
    r"|(?:(?:ba|da|z)?sh\s+|python3?\s+|node\s+)?\S*\b(?:deploy|publish)[\w-]*\.(?:sh|py|rb|[cm]?js)\b"
    r"|(?:ssh|scp|sftp|aws|gcloud|gsutil|az|gh|twine|ansible-playbook|heroku|flyctl)\s"
    r"|rsync\s[^\n;&|]*\w:"
    r"|(?:terraform|tofu|kubectl|helm)\s[^\n;&|]*\b(?:apply|destroy|create|delete|patch|install|upgrade|rollout)\b)"
)
# Only these variables have a value that is known here.
UNKNOWN = _rule(r"\$(?!\(nproc\)|\(pwd\)|\{?(?:PWD|HOME)\b)", "`")
# The shell's own constructs, which cannot be taken apart line by line.
CONSTRUCT = _rule(
    r"^\s*(?:if|for|while|until|case|function|select)\b", r"<<-?\s*['\"\\]?\w", r"\(\)\s*\{", r"^\s*[{(]"
)
IDLE = _rule(
    r"^(?:set|echo|printf|which|type|true|:|date|pwd|ls|env|cat|head|test|\[+)(?:\s|$)", r"--version$"
)
# Corepack brings managers of packages, which are called otherwise here, into the folder of node itself.
COREPACK = regex(r"(?:^|&&\s*)(?:npm\s+(?:i|install)\s[^&|;]*\bcorepack\b|corepack\s)[^&|;]*(?=&&|$)")
# What a service puts before a command to try it again or to wait longer for it.
PATIENT = regex(r"^travis_(?:retry|wait(?:\s+\d+)?)\s+")
# A failure that a service forgives is one here; else the tests would be green whatever they say.
FORGIVEN = regex(r"\s*\|\|\s*(?:true|:|exit\s+0|echo\b[^&|;]*)$")
PLACE = regex(r"(?:cd|mkdir|pushd|export)\b")
# Programs of an environment that the script makes: here there is one already, first in PATH.
VENV = regex(r"(?<![\w/.-])\.?v?env/bin/(?=\w)")
MOVES = regex(r"(?:cd|pushd)\b")
ENTERS = regex(r"(?:cd|pushd)\s+(?:--\s+)?['\"]?([^\s'\";&|]+)")
LEAVES = regex(r"(?:cd|pushd)\s+['\"]?[/~]")  # for a place that is not the repository's
EXPORT = regex(r"export\s+[A-Za-z_]\w*=[\w./:-]*")

# What may stand before a program: variables, and programs that call another one.
BEFORE = (
    r"^(?:(?:[A-Za-z_]\w*=\S*|time|env|xvfb-run|(?:uv|poetry|pdm|pipenv)\s+run|bundle\s+exec|-\S+)\s+)*"
    r"(?:(?:sh|bash|python[\d.]*|ruby|perl|node|lua[\d.]*|luajit|php|Rscript)\s+(?:-\S+\s+)*)?(?:\./)?"
)
INSTALL = _rule(
    rf"{BEFORE}(?:scripts?|bin|\.?ci|tools|tests?)/(?:bootstrap|setup|install)(?:[-_]\w+)?(?:\.\w+)?(?:\s|$)",
    r"\b(?:pip3?|uv|poetry|pdm|pipenv|pipx|flit)\s+(?:install|sync|pip|lock|tool|add|venv)\b",
    r"\bpython3?\s+-m\s+(?:pip|venv)\b",
    r"\b(?:npm|pnpm|yarn|bun)\s+(?:ci|i|install|bootstrap)\b|^(?:pnpm|yarn)(?:\s+--\S+)*$",
    r"\bbundle\s+(?:install|config|update)\b|\bgem\s+install\b|\bcomposer\s+(?:install|update)\b|\bcpanm?\b",
    r"\bgo\s+(?:mod|get)\b|\bcargo\s+fetch\b|\bmix\s+(?:deps|local)\b|\bdotnet\s+restore\b|\bgit\s+submodule\b",
    r"\b(?:cabal|opam)\s+(?:update|install)\b|\bmaturin\s+develop\b",
)
BUILD = _rule(
    r"^\s*(?:cmake|meson|make|gmake|ninja|qmake|scons|ant|mvnw?|gradlew?|just|task)\b",
    r"(?:^|\s)\./(?:mvnw|gradlew)\b",
    r"\b(?:npm|pnpm|yarn|bun)\s+(?:run\s+[\w:-]*(?:build|compile|generate|prepare)[\w:-]*|build)\b",
    r"\bpython3?\s+(?:-m\s+build|setup\.py)\b|\bmix\s+compile\b",
    r"\bgo\s+(?:build|generate)\b|\bcargo\s+(?:build|check)\b",
    r"(?:^|\s)(?:sh |bash )?\.{1,2}/(?:configure|autogen|bootstrap|buildconf|build)(?:\.sh)?\b",
    r"\bautoreconf\b",
    r"\b(?:dotnet|swift|zig|dune|stack|cabal)\s+(?:build|package|setup)\b",
    r"\bperl\s+(?:Makefile|Build)\.PL|^\./Build$",
)
NO_BUILD = _rule(r"\s(?:run\s+)?(?:lint|format|fmt|style|typecheck|docs?)(?:[\s:]|$)")
TARGETS = r"(?:test[\w:-]*|tests|check|spec|runtests?|unittests?|eunit|verify|ci(?![\w:-]))"
OPTIONS = r"(?:\s+-\S+(?:\s+(?:[\w./][\w./-]*|'[^']*'|\"[^\"]*\"))??)*"
TEST = _rule(
    r"(?<![\w/.-])(?:pytest|py\.test|tox|nox|unittest|nosetests|stestr|trial|ctest|phpunit|prove|rspec|busted|bats)\b"
    r"(?!\s*[=<>\[])",
    r"\bvendor/bin/(?:phpunit|pest|behat|simple-phpunit)\b|\bcoverage\s+run\b|\bmanage\.py\s+test\b",
    r"\b\w*runtests?\.py\b|\brun[-_]tests?(?:\.\w+)?\b",
    r"\b(?:npm|pnpm|yarn|bun)\s+(?:run\s+|-r\s+|--recursive\s+)?(?:t|tst|test[\w:-]*|unit[\w:-]*|ci:test)(?:\s|$)",
    r"\b(?:npx|pnpm|yarn|bunx)\s+(?:jest|vitest|mocha|ava|tap)\b|\bnode\s+--test\b",
    r"\b(?:make|gmake|just|task|ninja|rake|composer|ant|bazel|deno|swift|dotnet|mix|lein|sbt|stack|cabal|dune|rebar3"
    rf"|rails|crystal|nimble|dart|flutter|meson|cargo|dub|fpm|raco|go|zig build|\./Build){OPTIONS}"
    rf"\s+['\"]?{TARGETS}(?:\W|$)",
    rf"\b(?:mvnw?\b[^|;&]*\s(?:package|install|{TARGETS})|gradlew?\b[^|;&]*\s(?:build|{TARGETS}))(?![\w:-])",
    rf"{BEFORE}(?:[\w.-]+/)*(?:[\w.-]*(?<!la)tests?|check)\.(?:sh|py|rb|pl|lua|php|R|[cm]?js)\b",
    rf"{BEFORE}(?:[\w.-]+/)+tests?(?:\s|$)|{BEFORE}(?:[\w.-]+/)*tests?/(?:run|all)(?:[-_](?:all|tests?))?(?:\.\w+)?(?:\s|$)|^\./[\w/.-]*tests?(?:\s|$)",
    rf"{BEFORE}(?:[\w.-]+/)*bin/(?:bats|busted|prove|pytest|rspec)(?:\s|$)",
    rf"{BEFORE}(?:[\w.-]+/)*tests?[-_]?runner(?:\.\w+)?(?:\s|$)",
    rf"{BEFORE}(?:bin/)?rake(?:\s+-\S+)*$",  # what it does untold is to test, nearly everywhere
    r"\bmill\s[^|;&]*\.test\b|\belm-test\b|\bhatch\s+(?:run\s+\S*test|test)|\bcmake\s+--build\s[^|;&]*--target\s+(?:test|check)\b",
)
# What installs a runner of tests, has one look at something else, or has it run none.
NO_TEST = _rule(
    r"^(?:python3?\s+-m\s+)?(?:pip3?|pipx|npm|pnpm|yarn|gem|go|poetry|pdm|uv(?:\s+(?:pip|tool))?|composer|cpanm?)"
    r"\s+(?:install|i|ci|add|sync|get|require)\b",
    r"\b(?:tox|nox)\b[^|;&]*\s(?:-e|-s|--session|-m|-f)\s*\S*(?:lint|doc|typ|mypy|pyright|qa|flake|style|format"
    r"|fmt|pre-?commit|cov|build|pack|check|release|bench|readme|badge|manifest|black|ruff|isort)",
    rf"\b(?:cargo|cabal|deno){OPTIONS}\s+check\b",
    r"--(?:collect-only|help|version|no-run|dry-run|listTests)\b|-DskipTests|-Dmaven\.test\.skip",
    r"\bgradlew?\b[^|;&]*\s(?:-x|--exclude-task)\s+(?:test|check)\b",
)
# Is red where what ran before it wrote other files than the repository has.
LOOK_BACK = regex(r"git diff(?:\s+[\w./-]+)*\s--(?:exit-code|quiet)(?:\s+[\w./-]+)*")
PARTS = regex(r"&&|\|\||;")


def goes_outward(line: str) -> bool:
    """Whether a line changes something on another machine, as a deployment does."""
    return OUTWARD.search(line[:LENGTH]) is not None


CALLED = regex(r"((?:[\w.-]{1,60}/){0,6}[\w.-]{1,60}\.(?:ba)?sh)(?![\w.-])")


def leads_outward(line: str, read: Callable[[str], str]) -> bool:
    """Whether a line does that itself or calls a script of the repository that does; `read` gives its text.

    This is for builds: the scripts that test a program about git push to remotes that they have made.
    """
    scripts = [read(path) for path in CALLED.findall(line[:LENGTH])]
    return goes_outward(line) or any(goes_outward(each) for text in scripts for each in text.splitlines())


def is_test(line: str) -> bool:
    """Whether a part of a line runs tests, rather than something with a similar name."""
    parts = [part.strip() for part in PARTS.split(line)]
    return any(TEST.search(part) and not NO_TEST.search(part) for part in parts)


def is_install(line: str) -> bool:
    """Whether a line installs dependencies."""
    return INSTALL.search(line) is not None


def is_build(line: str) -> bool:
    """Whether a line configures or compiles, and not only looks at style."""
    return BUILD.search(line) is not None and not NO_BUILD.search(line)


def lines_of(script: str, most: int, known: Mapping[str, str]) -> tuple[list[str], int]:
    """Return the plain commands of a script that are of use, and how much had to be left out.

    A script with constructs of the shell is left out entirely, since its parts mean something else on their
    own. So is everything after a change to an unknown folder. `known` has the values of its variables.
    """
    text = script[:8000].replace("\\\n", " ")
    all_lines = [_plain(line) for line in text.splitlines()[:most]]
    if any(CONSTRUCT.search(line[:LENGTH]) for line in all_lines):
        return [], 3 if any(tells(line[:LENGTH]) for line in all_lines) else 0
    found: list[str] = []
    lost = 0
    for line in all_lines:
        if IDLE.search(line[:LENGTH]):
            continue
        said = VARIABLE.sub(lambda match: known.get(match[1], match[0]), line[:LENGTH])
        if LEAVES.match(said):
            return found, lost + 3
        if _is_ours(line, said):
            found += [line] if _does(said) or (found and LOOK_BACK.fullmatch(said)) else []
        elif MOVES.match(line):
            return found, lost + 3
        else:
            lost += 2 if is_test(said) else int(_does(said))
    return found, lost


def _is_ours(line: str, said: str) -> bool:
    """Whether a line can be run here; `said` is the same with the values of what is known."""
    return _whole(line) and not BANNED.search(said) and not UNKNOWN.search(said)


def _does(line: str) -> bool:
    return tells(line) or (PLACE.match(line) if line[:6] != "export" else EXPORT.fullmatch(line)) is not None


VARIABLE = regex(r"\$\{?([A-Za-z_]\w*)\b\}?")


def _plain(line: str) -> str:
    """The line without remarks, and without what a service wants around its commands."""
    line = " ".join(re.sub(r"(?:^|\s)#.*$", "", line).split())
    line = COREPACK.sub("", PATIENT.sub("", line)).removeprefix("&&").strip()
    line = VENV.sub("", line)
    strict = FORGIVEN.sub("", line)
    return strict if is_test(strict[:LENGTH]) else line


def tells(line: str) -> bool:
    """Whether a line tests, installs or builds."""
    return is_test(line) or is_install(line) or is_build(line)


def _whole(line: str) -> bool:
    """Whether a line is a command of its own, with its quotes closed."""
    if len(line) > LENGTH or line.endswith(("&&", "||", "|", "&", "\\")):
        return False
    try:
        shlex.split(line)
    except ValueError:
        return False
    return True
