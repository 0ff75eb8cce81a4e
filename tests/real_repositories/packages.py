"""Which published packages are tried, and what of each is taken.

They are many kinds of repository, not a benchmark: each brings a way to be built and tested that people
use. All are in the registries that pip, npm and apt-get reach on this machine; nothing of another registry
is needed but where `lacks` says so.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Package:
    """One package that becomes a repository."""

    ecosystem: str
    registry: str  # pypi, npm or debian: who is asked for it
    name: str
    versions: tuple[str, ...] = ()  # oldest first, each a commit and a tag; empty: the one there is
    packaging: bool = False  # Debian's own changes become a second commit
    has: str = "tests"  # what must have been run before it may land: tests, build (no tests there), nothing
    lacks: str = ""  # what is not there, as a pattern that the set-up card must fit

    @property
    def slug(self) -> str:
        """Its name as a project; names of two registries are told apart."""
        return f"{self.registry}-{self.name}".lower().replace("_", "-").replace(".", "-")


def _python(name: str, *versions: str) -> Package:
    return Package("Python", "pypi", name, versions)


def _node(name: str, *versions: str) -> Package:
    return Package("Node", "npm", name, versions)


def _debian(ecosystem: str, name: str, **more: Any) -> Package:
    return Package(ecosystem, "debian", name, **more)


PACKAGES = (
    _python("click", "8.1.6", "8.1.7"),  # setuptools, src layout, tox.ini
    _python("humanize", "4.8.0", "4.9.0"),  # hatchling, version by tags, an extra with what the tests need
    _python("more-itertools", "10.6.0", "10.7.0"),  # flit, a Makefile as well, unittest
    _python("webcolors", "24.11.1"),  # pdm, nox
    _python("idna", "3.6", "3.7"),  # flit, unittest
    _python("packaging", "23.2", "24.0"),  # flit; what the tests need is nowhere but in the tests
    _python("pluggy", "1.4.0", "1.5.0"),  # setuptools_scm: the version comes from tags
    _python("h11", "0.14.0"),  # setuptools, the tests in the package
    _python("tabulate", "0.9.0"),  # setuptools_scm, tox
    _python("zipp", "3.23.0"),  # an extra called test, others for checks
    _python("wcwidth", "0.2.13"),  # requirements files for tests, setup.py
    _python("tomlkit", "0.12.5"),  # poetry
    _node("xtend", "4.0.1", "4.0.2"),  # node test.js, tape
    _node("reusify", "1.0.4", "1.1.0"),  # tape
    _node("object-path", "0.11.7", "0.11.8"),  # mocha
    _node("process-warning", "5.0.0"),  # node --test, jest and types
    _node("fastq", "1.17.1"),  # lint, tape under nyc
    _debian("Node", "node-which"),  # a lock file, tap
    _debian("Autotools", "hello", packaging=True),  # a configure script in the archive
    _debian("Autotools", "jansson"),  # none there: autoreconf, or CMake
    _debian("Autotools", "popt"),
    _debian("Autotools", "lzip"),  # a configure script of its own
    _debian("CMake", "cjson"),  # a Makefile as well
    _debian("CMake", "muparser"),
    _debian("CMake", "pugixml"),  # a Makefile as well
    _debian("CMake", "libyaml"),  # autotools as well
    _debian(
        "Meson", "tinyxml2", lacks="(?i)xmltest"
    ),  # its tests read a file that Debian took out; CMake as well
    _debian("Meson", "dav1d"),
    _debian("Make", "http-parser"),
    _debian("Make", "figlet", packaging=True),  # the target is called check
    _debian("Make", "uthash"),  # a Makefile in tests, a package.json without scripts
    _debian("Make", "sl", has="build"),
    _debian("Go", "golang-github-spf13-pflag"),
    _debian("Go", "golang-github-gorilla-mux"),
    _debian("Go", "golang-github-google-uuid"),
    _debian(
        "Go", "golang-github-pkg-errors", lacks="TestFormat"
    ),  # no go.mod; red since newer Go's stack traces
    _debian("Go", "golang-github-mattn-go-runewidth", lacks="(?i)uniseg|proxy|go module"),
    _debian("Rust", "rust-fnv"),
    _debian("Rust", "rust-hex", lacks="(?i)crates|registry|index"),
    _debian("Ruby", "ruby-colored"),  # no gem but the language's own
    _debian("Ruby", "ruby-builder", lacks="test_late_included"),  # one test is red since Ruby 3
    _debian("PHP", "php-parsedown"),
    _debian("PHP", "php-pimple", lacks="(?i)packagist|composer"),
    _debian("Perl", "libtry-tiny-perl"),
    _debian("Perl", "libjson-perl", packaging=True),
    _debian("Documents", "gnu-standards", has="nothing"),
)
