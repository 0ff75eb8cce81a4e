"""Core: reads reports in JUnit's format, which most runners can write.

These files come from whoever wrote the tests. So links and pipes are not opened; number, size and depth are
bounded; and a file with a document type is refused, so that there are no entities to expand.
"""

import os
from collections import Counter
from pathlib import Path
from xml.parsers import expat

from agents.hosts.processes import read_small
from agents.reading.results import COUNT_MAX, NAME_MAX, Tests, bounded, numbered, tidy

FILES_MAX = 2_000
ENTRIES_MAX = 20_000
FOLDERS_DEEP = 4
BYTES_MAX = 16 * 1024 * 1024  # of one report
ALL_BYTES_MAX = 64 * 1024 * 1024
DEPTH_MAX = 40
CASES_MAX = 1_000_000
SAID_MAX = 64 * 1024  # characters of what the failures of all reports say
RED = {"failure", "error"}
SAYS_NOTHING = {"", "test", "suite"}  # class names without meaning: node writes one of these for each test

Place = tuple[tuple[str, ...], str]  # the suites around a test, and its name


class UnusableReport(Exception):
    """The file is not a report, or exceeds the limits."""


def read_reports(folder: Path, root: str = "") -> Tests | None:
    """Return the tests of all reports in this folder and below it, or None if there is no usable one.

    `root` is a path that differs in the next run, such as the run's own folder; it is cut out of names. A
    report that cannot be read counts as broken off, since the tests in it are unknown.
    """
    found: list[str] = []
    said: list[str] = []
    total = failed = 0
    used = broken = 0
    left = ALL_BYTES_MAX
    for path in _files(folder):
        data = _read(path, min(BYTES_MAX, left))
        if data is None:
            broken += 1
            continue
        left -= len(data)
        report = JUnitReport(root)
        try:
            report.read(data)
        except UnusableReport:
            broken += 1
            continue
        if not report.is_report:
            continue  # another kind of XML, such as a coverage report
        used += 1
        found += report.failed()
        said.append(report.said[: SAID_MAX - sum(map(len, said))])
        total += report.total
        failed += max(report.failures, report.told)
    if not used:
        return None
    counted = min(failed, COUNT_MAX)
    return Tests(bounded(numbered(found)), total, counted, broke_off=bool(broken), said="\n".join(said))


def _files(folder: Path) -> list[Path]:
    """Return the XML files below the folder, sorted; links are not followed."""
    found: list[Path] = []
    seen = 0
    waiting = [(folder, 0)]
    while waiting:
        place, depth = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    seen += 1
                    if seen > ENTRIES_MAX or len(found) >= FILES_MAX:
                        return sorted(found)
                    if entry.is_dir(follow_symlinks=False) and depth < FOLDERS_DEEP:
                        waiting.append((place / entry.name, depth + 1))
                    elif entry.name.lower().endswith(".xml"):
                        found.append(place / entry.name)
        except OSError:
            continue
    return sorted(found)


def _read(path: Path, limit: int) -> bytes | None:
    """Return the content of a regular file, or None for anything else and for more than `limit` bytes."""
    try:
        return read_small(path, limit)
    except OSError:
        return None


class JUnitReport:
    """One report while it is read: its failed cases, and the failures that its outermost suites add up to."""

    def __init__(self, root: str = "") -> None:
        self.root = root
        self.is_report = False
        self.total = 0
        self.failures = 0
        self.told = 0
        self._said: list[str] = []
        self._left = SAID_MAX
        self._open: list[str] = []
        self._suites: list[str] = []
        self._depth_of_told: int | None = None
        self._name = ""
        self._has_class = self._is_red = self._is_skipped = self._is_not_run = False
        self._red: list[Place] = []
        self._later_green: Counter[Place] = Counter()

    def read(self, data: bytes) -> None:
        """Read one file. Raises UnusableReport."""
        parser = expat.ParserCreate("utf-8")
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        try:
            parser.Parse(data, True)
        except (expat.ExpatError, ValueError) as error:
            raise UnusableReport(str(error)) from error

    @property
    def said(self) -> str:
        """What its failures say, up to a bound."""
        return "".join(self._said)

    def failed(self) -> list[str]:
        """Return the names of the failed cases, in order, except those that passed in a later try.

        The latter still count among the failures, since two tests of one name in one suite look the same.
        """
        return [name for suite, name in self._red if not self._later_green[suite, name]]

    def _refuse(self, *_: object) -> None:
        raise UnusableReport("a document type")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= DEPTH_MAX or self.total > CASES_MAX:
            raise UnusableReport("too deep or too many")
        if tag in {"testsuites", "testsuite"}:
            self.is_report = True
            self._suite(tag, attributes)
        elif tag == "testcase":
            self._case(attributes)
        elif self._open and self._open[-1] == "testcase":
            self._is_red |= tag in RED
            self._note(f"\n{attributes.get('message', '')}\n" if tag in RED else "")
            self._is_skipped |= tag == "skipped"
        self._open.append(tag)

    def _text(self, text: str) -> None:
        if self._open and self._open[-1] in RED:
            self._note(text)

    def _note(self, text: str) -> None:
        kept = text[: self._left]
        self._left -= len(kept)
        self._said += [kept] if kept else []

    def _suite(self, tag: str, attributes: dict[str, str]) -> None:
        told = [_count(attributes[word]) for word in ("failures", "errors") if word in attributes]
        # Only the outermost suite with a count is added: the inner ones are part of its sum.
        if told and self._depth_of_told is None:
            self._depth_of_told = len(self._open)
            self.told += sum(told)
        if tag == "testsuite":
            self._suites.append(attributes.get("name", "")[:NAME_MAX])

    def _case(self, attributes: dict[str, str]) -> None:
        self.total += 1
        group = attributes.get("classname", "")
        name = attributes.get("name", "")
        self._has_class = group not in SAYS_NOTHING
        if not self._has_class:
            self._name = " > ".join([suite for suite in self._suites if suite] + [name])
        else:
            self._name = name if group == name else f"{group} > {name}"
        # For ctest, a test that could not be started is red.
        self._is_not_run = attributes.get("status") == "notrun" and "result" not in attributes
        self._is_red = self._is_skipped = False

    def _end(self, tag: str) -> None:
        self._open.pop()
        if tag == "testsuite" and self._suites:
            self._suites.pop()
        if self._depth_of_told == len(self._open):
            self._depth_of_told = None
        if tag == "testcase":
            self._end_case()

    def _end_case(self) -> None:
        place = (tuple(self._suites), tidy(self._name, self.root) or "a test without a name")
        if self._is_not_run or (self._is_red and not self._is_skipped):
            self.failures += 1
            self._red.append(place)
            self._later_green[place] = 0
        elif self._has_class and not self._is_skipped:
            self._later_green[place] += 1


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 7 else 0
