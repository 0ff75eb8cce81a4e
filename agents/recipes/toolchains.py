"""Core: the programs that recipes call, whether this host has them, and how to get them."""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agents.recipes.recipe import needs_pip
from tasks.text.regex import regex

APT = "Debian and Ubuntu: apt install {}"
COMPONENT = "`rustup component add {}` as the user who runs the work"
# Programs that are in the package of Debian and Ubuntu that has their name.
NAMED_ALIKE = (
    "ant autoconf automake autopoint bash bats bison clang cmake composer flex g++ gcc git gfortran "
    "dub luajit luarocks make meson npm opam perl phpunit pkg-config rake rebar3 redis-server ruby rustc "
    "valgrind"
)
# Those in another package; CMAKE_… is what CMake calls a compiler that it does not find.
PACKAGES = {name: name for name in NAMED_ALIKE.split()} | {
    "aclocal": "automake", "autoreconf": "autoconf automake libtool", "bundle": "bundler",
    "busted": "lua-busted", "c++": "g++", "cabal": "cabal-install", "cc": "gcc", "clang++": "clang",
    "CMAKE_C_COMPILER": "gcc", "CMAKE_CXX_COMPILER": "g++", "CMAKE_Fortran_COMPILER": "gfortran",
    "cpanm": "cpanminus", "ctest": "cmake", "dune": "ocaml-dune", "emacs": "emacs-nox", "erl": "erlang",
    "gem": "ruby", "go": "golang-go", "java": "default-jdk", "javac": "default-jdk", "lein": "leiningen",
    "libtoolize": "libtool", "lua": "lua5.4", "makeinfo": "texinfo", "mix": "elixir", "mvn": "maven",
    "nimble": "nim", "ninja": "ninja-build", "nix": "nix-bin", "node": "nodejs", "npx": "npm",
    "nvim": "neovim", "php": "php-cli", "prove": "perl", "R": "r-base-dev", "rspec": "ruby-rspec",
    "raco": "racket", "stack": "haskell-stack", "tclsh": "tcl", "xvfb-run": "xvfb",
}  # fmt: skip
# How to get each program, in words that need no URL. Only programs in this table are looked for.
HINTS = {name: APT.format(package) for name, package in PACKAGES.items()} | {
    "alr": "Alire's own archive",
    "bazel": "Bazel's own installer, or the npm package @bazel/bazelisk",
    "clojure": "Clojure's own installer",
    "cargo": APT.format("cargo")
    + "; newer ones: rustup, then `rustup default stable` as the user who runs the work",
    "cargo-clippy": COMPONENT.format("clippy") + "; " + APT.format("rust-clippy"),
    "cargo-fmt": COMPONENT.format("rustfmt") + "; " + APT.format("rustfmt"),
    "crystal": "Crystal's own packages",
    "dart": "the Dart SDK",
    "deno": "Deno's own installer, or the npm package deno",
    "dotnet": "the .NET SDK of Microsoft's package list",
    "flutter": "the Flutter SDK",
    "fpm": "the PyPI package fpm, or Fortran's own archive",
    "forge": "foundryup",
    "gleam": "Gleam's own archive",
    "gradle": APT.format("gradle") + "; or add Gradle's wrapper to the repository",
    "julia": "juliaup",
    "mill": "Mill's own launcher, or Coursier",
    "just": "Debian 13 and newer: apt install just; or `cargo install just`",
    "pnpm": "the npm package pnpm",
    "pwsh": "the PowerShell package of Microsoft's package list",
    "rustfmt": COMPONENT.format("rustfmt") + "; " + APT.format("rustfmt"),
    "sbt": "sbt's own package list, or Coursier",
    "shards": "Crystal's own packages",
    "swift": "the Swift toolchain of swift.org",
    "task": "Task's own packages, or the npm package @go-task/cli",
    "terraform": "HashiCorp's own package list",
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
