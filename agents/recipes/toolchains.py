"""Core: the programs that recipes call, whether this host has them, and how to get them."""

import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from posixpath import basename

APT = "Debian and Ubuntu: apt install {}"
# What brings a program, in words that hold without an address. Only programs in this table are looked for.
HINTS = {
    "ant": APT.format("ant"),
    "aclocal": APT.format("automake"),
    "autoconf": APT.format("autoconf"),
    "automake": APT.format("automake"),
    "autopoint": APT.format("autopoint"),
    "autoreconf": APT.format("autoconf automake libtool"),
    "bash": APT.format("bash"),
    "bats": APT.format("bats"),
    "bazel": "Bazel's own installer, or the npm package @bazel/bazelisk",
    "bison": APT.format("bison"),
    "bundle": APT.format("bundler"),
    "busted": APT.format("lua-busted"),
    "c++": APT.format("g++"),
    "cabal": APT.format("cabal-install"),
    "cargo": APT.format("cargo")
    + "; newer ones: rustup, then `rustup default stable` as the user who runs the work",
    "cc": APT.format("gcc"),
    "cmake": APT.format("cmake"),
    "composer": APT.format("composer"),
    "cpanm": APT.format("cpanminus"),
    "crystal": "Crystal's own packages",
    "ctest": APT.format("cmake"),
    "dart": "the Dart SDK",
    "deno": "Deno's own installer, or the npm package deno",
    "dotnet": "the .NET SDK of Microsoft's package list",
    "dune": APT.format("ocaml-dune"),
    "flex": APT.format("flex"),
    "g++": APT.format("g++"),
    "gcc": APT.format("gcc"),
    "gem": APT.format("ruby"),
    "git": APT.format("git"),
    "go": APT.format("golang-go"),
    "gradle": APT.format("gradle") + "; or add Gradle's wrapper to the repository",
    "java": APT.format("default-jdk"),
    "javac": APT.format("default-jdk"),
    "julia": "juliaup",
    "just": "Debian 13 and newer: apt install just; or `cargo install just`",
    "lein": APT.format("leiningen"),
    "libtoolize": APT.format("libtool"),
    "make": APT.format("make"),
    "makeinfo": APT.format("texinfo"),
    "meson": APT.format("meson"),
    "mix": APT.format("elixir"),
    "mvn": APT.format("maven"),
    "nimble": APT.format("nim"),
    "ninja": APT.format("ninja-build"),
    "node": APT.format("nodejs"),
    "npm": APT.format("npm"),
    "npx": APT.format("npm"),
    "perl": APT.format("perl"),
    "php": APT.format("php-cli"),
    "phpunit": APT.format("phpunit"),
    "pkg-config": APT.format("pkg-config"),
    "prove": APT.format("perl"),
    "R": APT.format("r-base-dev"),
    "rake": APT.format("rake"),
    "rebar3": APT.format("rebar3"),
    "rspec": APT.format("ruby-rspec"),
    "ruby": APT.format("ruby"),
    "rustc": APT.format("rustc"),
    "sbt": "sbt's own package list, or Coursier",
    "shards": "Crystal's own packages",
    "stack": APT.format("haskell-stack"),
    "swift": "the Swift toolchain of swift.org",
    "task": "Task's own packages, or the npm package @go-task/cli",
    "zig": "the PyPI package ziglang, or Zig's own archive",
}
BRINGS = {"cmake": ("cc",), "meson": ("ninja", "cc")}  # what a program calls without being told to
COMMAND = re.compile(
    r"(?:^|&&|\|\||[;|(\n]|\b(?:exec|env|xargs(?:\s-\S+)*|sh|bash)\s)\s*"  # where a command begins
    r"(?:export\s+[^&;|\n]*&&\s*)?(?:[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|[^\s;&|]*)\s+)*"  # variables
    r"([\w./+@-]+)"
)


@dataclass(frozen=True, slots=True)
class Missing:
    """A program that this host lacks, and how to get it."""

    tool: str
    hint: str


def programs(*commands: str) -> tuple[str, ...]:
    """The programs of the host that these commands call, as far as the table of hints knows them."""
    found: list[str] = []
    for command in commands:
        for name in COMMAND.findall(command):
            if name in HINTS:
                found += [name, *BRINGS.get(name, ())]
    return tuple(dict.fromkeys(found))


def missing(tools: Iterable[str], which: Callable[[str], str | None] = shutil.which) -> list[Missing]:
    """Those of the programs that are not on the path, each with how to get it."""
    return [Missing(tool, hint_for(tool)) for tool in dict.fromkeys(tools) if not which(tool)]


def hint_for(tool: str) -> str:
    """How to get a program, in a few words."""
    return HINTS.get(tool, "install the package of your system that brings this program")


# --- What the output of a command says --------------------------------------------------------------------

NAME = r"[`'\"‘“]?(?P<name>[\w./+@-]{1,100}?)[`'\"’”]?"
# Sure whatever the exit code was: these lines are the reason why the command ended.
SURE = (
    rf"(?m)^(?:g?make|gmake)(?:\[\d+\])?: {NAME}: (?:No such file or directory|Command not found)\s*$",
    rf"(?m)^(?:/usr/bin/)?env: {NAME}: No such file or directory",
    r"(?m)^error: rustup could not choose a version of (?P<name>cargo|rustc)\b",
    r"(?m)^(?P<name>autoreconf|aclocal|automake|autopoint|libtoolize): (?:command )?not found",
    r"Can't exec \"(?P<name>[\w./+-]{1,60})\": No such file or directory",
    r"exec: \"(?P<name>[\w./+-]{1,60})\": executable file not found in \$PATH",
    r"error: linker `(?P<name>[\w.+-]{1,60})` not found",
    r"No CMAKE_(?P<c>C|CXX)_COMPILER could be found",
    r"Unknown compiler\(s\): \[\['(?P<name>[\w.+-]{1,60})'",
    r"configure: error: no acceptable (?P<cc>C) compiler found in \$PATH",
    r"CMake was unable to find a build program corresponding to \"(?:Unix Makefiles|(?P<name>Ninja))\"",
)
# A shell's own words; a script may go on after them, so the exit code has to agree.
SHELLS = (
    rf"(?m)^(?:\S*/)?(?:ba|da|z|k|a)?sh: (?:line )?(?:\d+: )?(?:exec: )?{NAME}: (?:command )?not found\s*$",
    rf"(?m)^[^\s:]+: (?:line )?\d+: (?:exec: )?{NAME}: (?:command )?not found\s*$",
    r"(?m)^(?:zsh:\d*:? ?)?command not found: (?P<name>[\w./+@-]{1,100})\s*$",
)
PASSED_ON = re.compile(
    r"\bError 127\b|\b(?:code|status)[: ]+127\b|exit(?:ed)?(?: with)? 127\b|code ENOENT", re.I
)
TAIL = 20_000


def tool_not_found(output: str, exit_code: int | None) -> str:
    """The program that a shell, make or env could not find in this output, else nothing.

    A command that ended well lacked nothing. What a shell merely mentions counts only where the exit code,
    or a tool that passes it on, says the same.
    """
    if exit_code == 0:
        return ""
    tail = output[-TAIL:]
    rules = [*SURE, *SHELLS] if exit_code == 127 or PASSED_ON.search(tail) else [*SURE]
    found = [match for rule in rules for match in re.finditer(rule, tail)]
    if not found:
        return ""
    last = max(found, key=lambda match: match.start()).groupdict()
    if last.get("c") or last.get("cc"):
        return "c++" if last.get("c") == "CXX" else "cc"
    name = basename(last.get("name") or "make")
    return {"Ninja": "ninja"}.get(name, name) if re.fullmatch(r"[\w.+@-]{1,64}", name) else ""
