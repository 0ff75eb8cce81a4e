"""Core: the programs that recipes call, whether this host has them, and how to get them."""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agents.recipes.recipe import needs_pip
from tasks.text.regex import regex

APT = "Debian and Ubuntu: apt install {}"
COMPONENT = "`rustup component add {}` as the user who runs the work"
# How to get each program, in words that need no URL. Only programs in this table are looked for.
HINTS = {
    "ant": APT.format("ant"),
    "aclocal": APT.format("automake"),
    "alr": "Alire's own archive",
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
    "cargo-clippy": COMPONENT.format("clippy") + "; " + APT.format("rust-clippy"),
    "cargo-fmt": COMPONENT.format("rustfmt") + "; " + APT.format("rustfmt"),
    "cc": APT.format("gcc"),
    "clang": APT.format("clang"),
    "clang++": APT.format("clang"),
    "cmake": APT.format("cmake"),
    "CMAKE_C_COMPILER": APT.format("gcc"),  # as CMake calls a compiler that it does not find
    "CMAKE_CXX_COMPILER": APT.format("g++"),
    "CMAKE_Fortran_COMPILER": APT.format("gfortran"),
    "composer": APT.format("composer"),
    "cpanm": APT.format("cpanminus"),
    "crystal": "Crystal's own packages",
    "ctest": APT.format("cmake"),
    "dart": "the Dart SDK",
    "deno": "Deno's own installer, or the npm package deno",
    "dotnet": "the .NET SDK of Microsoft's package list",
    "dune": APT.format("ocaml-dune"),
    "emacs": APT.format("emacs-nox"),
    "erl": APT.format("erlang"),
    "flex": APT.format("flex"),
    "g++": APT.format("g++"),
    "gcc": APT.format("gcc"),
    "flutter": "the Flutter SDK",
    "forge": "foundryup",
    "gem": APT.format("ruby"),
    "git": APT.format("git"),
    "gfortran": APT.format("gfortran"),
    "gleam": "Gleam's own archive",
    "go": APT.format("golang-go"),
    "gradle": APT.format("gradle") + "; or add Gradle's wrapper to the repository",
    "java": APT.format("default-jdk"),
    "javac": APT.format("default-jdk"),
    "julia": "juliaup",
    "just": "Debian 13 and newer: apt install just; or `cargo install just`",
    "lein": APT.format("leiningen"),
    "libtoolize": APT.format("libtool"),
    "lua": APT.format("lua5.4"),
    "luajit": APT.format("luajit"),
    "luarocks": APT.format("luarocks"),
    "make": APT.format("make"),
    "makeinfo": APT.format("texinfo"),
    "meson": APT.format("meson"),
    "mix": APT.format("elixir"),
    "mvn": APT.format("maven"),
    "nimble": APT.format("nim"),
    "ninja": APT.format("ninja-build"),
    "nix": APT.format("nix-bin"),
    "node": APT.format("nodejs"),
    "npm": APT.format("npm"),
    "npx": APT.format("npm"),
    "nvim": APT.format("neovim"),
    "opam": APT.format("opam"),
    "perl": APT.format("perl"),
    "php": APT.format("php-cli"),
    "phpunit": APT.format("phpunit"),
    "pkg-config": APT.format("pkg-config"),
    "pnpm": "the npm package pnpm",
    "prove": APT.format("perl"),
    "pwsh": "the PowerShell package of Microsoft's package list",
    "R": APT.format("r-base-dev"),
    "rake": APT.format("rake"),
    "rebar3": APT.format("rebar3"),
    "redis-server": APT.format("redis-server"),
    "rspec": APT.format("ruby-rspec"),
    "ruby": APT.format("ruby"),
    "rustc": APT.format("rustc"),
    "rustfmt": COMPONENT.format("rustfmt") + "; " + APT.format("rustfmt"),
    "sbt": "sbt's own package list, or Coursier",
    "shards": "Crystal's own packages",
    "stack": APT.format("haskell-stack"),
    "swift": "the Swift toolchain of swift.org",
    "task": "Task's own packages, or the npm package @go-task/cli",
    "tclsh": APT.format("tcl"),
    "terraform": "HashiCorp's own package list",
    "valgrind": APT.format("valgrind"),
    "xvfb-run": APT.format("xvfb"),
    "yarn": "the npm package yarn",
    "zig": "the PyPI package ziglang, or Zig's own archive",
}
# What a program calls without being told to; scripts of a repository are listed by their usual names.
BRINGS = {
    "cmake": ("cc",),
    "meson": ("ninja", "cc"),
    "./configure": ("cc",),
    "./autogen.sh": ("autoreconf",),
    "./bootstrap": ("autoreconf",),
    "./mvnw": ("java",),
    "./gradlew": ("java",),
}
COMMAND = regex(
    # The beginning of a command, its exports, and the variables before it.
    r"(?:^|&&|\|\||[;|(\n]|(?<!bundle )\b(?:exec|env|xargs(?:\s-\S+)*|sh|bash)\s)\s*"
    r"(?:export\s+[^&;|\n]*&&\s*)?"
    r"(?:[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|[^\s;&|]*)\s+)*"
    r"(?=([\w./+@-]+))"
)


INSTALLS = regex(
    # What managers of packages put first in PATH, after them.
    r"\b(?:pip3?|npm(?:\s+--prefix\s+\S+)?|gem|luarocks)\s+(?:install|i|add)\b([^&|;\n]*)"
)
FROM_A_FILE = regex(r"\s(?:-r|-c|--requirement|--constraint)[\s=]\S+")
INSTALLED = regex(r"(?:^|\s)['\"]?([A-Za-z][\w.+-]*)")


@dataclass(frozen=True, slots=True)
class Missing:
    """A program that this host lacks, and how to get it."""

    tool: str
    hint: str


def programs(*commands: str) -> tuple[str, ...]:
    """Return the programs of the host that these commands call, if the table of hints knows them.

    What the commands themselves install before they call it is none of the host's.
    """
    found: list[str] = []
    whole = "\n".join(commands)
    installs = [(match.end(), _installed(match[1])) for match in INSTALLS.finditer(whole)]
    for match in COMMAND.finditer(whole):
        brought = {name for end, names in installs if end <= match.start(1) for name in names}
        needed = [*([match[1]] if match[1] in HINTS else []), *BRINGS.get(match[1], ())]
        found += [name for name in needed if name not in brought]
    return tuple(dict.fromkeys(found))


def _installed(words: str) -> list[str]:
    return INSTALLED.findall(FROM_A_FILE.sub(" ", words))


def fetchers(prepare: str, build: str, test: str) -> set[str]:
    """Return the programs that bring what a recipe begins with; pip, if it has to install anything."""
    pip = {"pip"} if needs_pip("\n".join((prepare, build, test))) else set()
    return {*programs(prepare), *pip}


def missing(tools: Iterable[str], which: Callable[[str], str | None] = shutil.which) -> list[Missing]:
    """Return those programs that are not on the PATH, each with how to get it."""
    return [Missing(tool, hint_for(tool)) for tool in dict.fromkeys(tools) if not which(tool)]


def hint_for(tool: str) -> str:
    """Return how to get a program, in a few words."""
    return known_hint(tool) or "install the package of your system that brings this program"


def known_hint(tool: str) -> str:
    """Return how to get a program if that is known; empty if it is not."""
    return HINTS.get(tool) or (f"`cargo install {tool}`" if tool.startswith("cargo-") else "")
