"""Core: what one line of a script does, as far as its words tell: install, build, test, or nothing for us."""

import re
import shlex

from tasks.text.regex import regex

LENGTH = 500  # of a line that is looked at


def _rule(*parts: str) -> re.Pattern[str]:
    return regex("|".join(f"(?:{part})" for part in parts))


# What nobody wants to run to see whether tests pass: expressions, secrets, other machines, the system.
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
    r"\b(?:make|ninja)\s+(?:\S+\s+)*install\b|--target\s+install\b|\bcmake\s+--install\b|\bmeson\s+install\b",
    r"\brm\s+-\w*r\w*\s+(?:/|~|\$|\.\.)|>\s*/(?!dev/null)|\beval\b",
    r"(?<![&|])&(?![&>\d])",  # something in the background
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
PLACE = regex(r"(?:cd|mkdir|pushd|export)\b")
EXPORT = regex(r"export\s+[A-Za-z_]\w*=[\w./:-]*")

INSTALL = _rule(
    r"\b(?:pip3?|uv|poetry|pdm|pipenv|pipx|flit)\s+(?:install|sync|pip|lock|tool|add|venv)\b",
    r"\bpython3?\s+-m\s+(?:pip|venv)\b",
    r"\b(?:npm|pnpm|yarn|bun)\s+(?:ci|i|install|bootstrap)\b|^(?:pnpm|yarn)(?:\s+--\S+)*$",
    r"\bbundle\s+(?:install|config|update)\b|\bgem\s+install\b|\bcomposer\s+(?:install|update)\b|\bcpanm?\b",
    r"\bgo\s+(?:mod|get)\b|\bcargo\s+fetch\b|\bmix\s+(?:deps|local)\b|\bdotnet\s+restore\b|\bgit\s+submodule\b",
    r"\b(?:cabal|opam)\s+(?:update|install)\b",
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
TARGETS = r"(?:test[\w:-]*|tests|check|spec|runtests?|unittests?|eunit|verify)"
OPTIONS = r"(?:\s+-\S+(?:\s+[\w./][\w./-]*)??)*"
TEST = _rule(
    r"(?<![\w/.-])(?:pytest|py\.test|tox|nox|unittest|nosetests|stestr|trial|ctest|phpunit|prove|rspec|busted|bats)\b"
    r"(?!\s*[=<>\[])",
    r"\bvendor/bin/(?:phpunit|pest|behat|simple-phpunit)\b|\bcoverage\s+run\b|\bmanage\.py\s+test\b",
    r"\b\w*runtests?\.py\b|\brun[-_]tests?(?:\.\w+)?\b",
    r"\b(?:npm|pnpm|yarn|bun)\s+(?:run\s+|-r\s+|--recursive\s+)?(?:t|tst|test[\w:-]*|unit[\w:-]*|ci:test)(?:\s|$)",
    r"\b(?:npx|pnpm|yarn|bunx)\s+(?:jest|vitest|mocha|ava|tap)\b|\bnode\s+--test\b",
    r"\b(?:make|gmake|just|task|ninja|rake|composer|ant|bazel|deno|swift|dotnet|mix|lein|sbt|stack|cabal|dune|rebar3"
    rf"|crystal|nimble|dart|flutter|meson|cargo|go|zig build|\./Build){OPTIONS}\s+['\"]?{TARGETS}(?:\W|$)",
    rf"\b(?:mvnw?|gradlew?)\b[^|;&]*\s{TARGETS}\b",
    r"(?:^|\s)(?:\./|sh |bash |python3? )?(?:[\w-]+/)*(?:tests?|check|run[-_]tests?|unit[-_]?tests?)"
    r"\.(?:sh|py|rb|pl)\b",
    r"\bhatch\s+(?:run\s+\S*test|test)|\bcmake\s+--build\s[^|;&]*--target\s+(?:test|check)\b|^\./[\w/.-]*tests?(?:\s|$)",
)
# What installs a runner of tests, or has one look at something else.
NO_TEST = _rule(
    r"^(?:python3?\s+-m\s+)?(?:pip3?|pipx|npm|pnpm|yarn|gem|go|poetry|pdm|uv(?:\s+(?:pip|tool))?|composer|cpanm?)"
    r"\s+(?:install|i|ci|add|sync|get|require)\b",
    r"\b(?:tox|nox)\b[^|;&]*\s(?:-e|-s|--session|-m|-f)\s*\S*(?:lint|doc|typ|mypy|pyright|qa|flake|style|format"
    r"|pre-?commit|cov|build|pack|check|release|bench|readme|manifest|black|ruff|isort)",
    r"--(?:collect-only|help|version)\b",
)


def is_test(line: str) -> bool:
    """Whether a line runs tests, and not only something that is called like them."""
    return TEST.search(line) is not None and not NO_TEST.search(line)


def is_install(line: str) -> bool:
    """Whether a line brings dependencies."""
    return INSTALL.search(line) is not None


def is_build(line: str) -> bool:
    """Whether a line configures or compiles."""
    return BUILD.search(line) is not None


def lines_of(script: str, most: int) -> tuple[list[str], int]:
    """The plain commands of a script that tell something, and how much of it had to be left out.

    A script with constructs of the shell is left out whole: its parts mean something else alone.
    """
    text = script[:8000].replace("\\\n", " ")
    all_lines = [" ".join(re.sub(r"(?:^|\s)#.*$", "", line).split()) for line in text.splitlines()[:most]]
    if any(CONSTRUCT.search(line[:LENGTH]) for line in all_lines):
        return [], 3 if any(_tells(line[:LENGTH]) for line in all_lines) else 0
    found, lost = [], 0
    for line in all_lines:
        if not line or IDLE.search(line[:LENGTH]):
            continue
        tells = _tells(line[:LENGTH])
        if not _whole(line) or BANNED.search(line) or UNKNOWN.search(line):
            lost += 2 if is_test(line[:LENGTH]) else int(tells)
        elif tells and (not line.startswith("export") or EXPORT.fullmatch(line)):
            found.append(line)
    return found, lost


def _tells(line: str) -> bool:
    return is_test(line) or is_install(line) or is_build(line) or PLACE.match(line) is not None


def _whole(line: str) -> bool:
    """Whether a line is a command of its own, with its quotes closed."""
    if len(line) > LENGTH or line.endswith(("&&", "||", "|", "&", "\\")):
        return False
    try:
        shlex.split(line)
    except ValueError:
        return False
    return True
