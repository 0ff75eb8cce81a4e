"""Core: reads what Perl's prove prints, and streams of the Test Anything Protocol; the text is hostile."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from agents.reading.results import CountedNames, numbered
from tasks.text.regex import regex

RANGE = regex(r"(\d{1,7})(?:-(\d{1,7}))?")
RANGE_MAX = 600
PROVE_TOLD = regex(r"^Files=\d{1,7}, Tests=(\d{1,7}),.*\n(?:Result: (\w+))?", re.MULTILINE)
PROVE_FILE = regex(
    r"^(\S.*?) +\(Wstat: (?P<status>\d{1,7})\b.*Tests: \d{1,7} Failed: (?P<failed>\d{1,7})\)\n"
    r"(?P<told>(?: {2}\S.*\n(?: {4,}[\d, -]+\n)*)*)",
    re.MULTILINE,
)
PROVE_FAILED = regex(r"^ {2}Failed tests?: +((?:[\d, -]|\n {4,})*)", re.MULTILINE)
TAP_LINE = regex(
    r"^(?P<indent> {0,60})(?:(?P<not>not )?ok\b(?: (?P<number>\d{1,7}))?(?: (?:- )?(?P<name>.*))?"
    r"|# Subtest: (?P<subtest>.+)|# (?P<title>\S.*)|1\.\.(?P<plan>\d{1,7})(?: .*)?|(?P<bail>Bail out!).*)$"
)
TAP_NOTE = regex(r"\s# (?P<word>TODO|SKIP|time=)", re.IGNORECASE)
TAP_FAIL = regex(r"fail +(\d{1,7})")


def read_prove(text: str) -> list[CountedNames]:
    """Return what prove says: `t/sum.t 2` for the second test of a file, only the file if it ended badly.

    prove does not count such a file among the tests; here it is one, so that no more fail than ran.
    """
    sections = []
    start = 0
    for told in PROVE_TOLD.finditer(text):
        ran = int(told[1])
        section = CountedNames([], bad=0)
        for file in PROVE_FILE.finditer(text, start, told.start()):
            if _is_good(file):
                continue
            failed = PROVE_FAILED.search(file["told"])
            numbers = list(_numbers(failed[1])) if failed else []
            section.names += [f"{file[1]} {number}" for number in numbers] or [file[1]]
            bad = max(int(file["failed"]), len(numbers))
            section.bad = (section.bad or 0) + max(bad, 1)
            ran += not bad
        section.ran = ran
        if told[2] == "FAIL" and not section.names:
            section.bad = 1
        sections.append(section)
        start = told.end()
    return sections


def _is_good(file: re.Match[str]) -> bool:
    """Whether it is told of only because tests passed that were not expected to."""
    bad = int(file["status"]) or int(file["failed"])
    return not bad and "TODO passed:" in file["told"] and "Parse errors:" not in file["told"]


def _numbers(text: str) -> Iterator[int]:
    """Yield each number of a text such as `1-3, 7`, at most RANGE_MAX of them."""
    given = 0
    for first, last in RANGE.findall(text):
        for number in range(int(first), int(last or first) + 1):
            given += 1
            if given > RANGE_MAX:
                return
            yield number


def read_tap(text: str) -> list[CountedNames]:
    """Return what a TAP stream says; each name contains the subtests and titles around the test."""
    if "\n1.." not in text and "\nTAP version " not in text:
        return []
    has_titles = "\nTAP version " in text and "# Subtest: " not in text
    stream = _TapStream(has_titles)
    for line in text.split("\n"):
        if match := TAP_LINE.match(line):
            stream.take(match)
    return [stream.section()] if stream.seen else []


@dataclass
class _TapStream:
    """What the lines read so far say."""

    has_titles: bool
    names: list[str] = field(default_factory=list)
    seen: int = 0
    planned: int = 0
    told: int | None = None  # the number of failures as the stream itself sums them up
    broke_off: bool = False
    title: str = ""
    around: list[tuple[int, str]] = field(default_factory=list)  # (indent, name) of the open subtests
    last_failed: tuple[str, ...] = ()

    def take(self, line: re.Match[str]) -> None:
        indent = len(line["indent"])
        if line["subtest"]:
            self.around = [each for each in self.around if each[0] < indent] + [(indent, line["subtest"])]
        elif line["bail"]:
            self.broke_off = True
        elif line["plan"]:
            self.planned += int(line["plan"]) if not indent else 0
        elif line["title"]:
            self.title = line["title"]
            if not indent and (told := TAP_FAIL.match(self.title)):
                self.told = (self.told or 0) + int(told[1])
        else:
            self.seen += not indent
            self._result(line, indent)

    def _result(self, line: re.Match[str], indent: int) -> None:
        note = TAP_NOTE.search(line["name"] or "")
        is_excused = note is not None and note["word"].upper() in {"TODO", "SKIP"}
        if not line["not"] or is_excused:
            return
        outer, name = tuple(name for depth, name in self.around if depth < indent), _tap_name(line)
        path = (*outer, name)
        if len(self.last_failed) > len(path) and self.last_failed[: len(path)] == path:
            return  # a parent fails with its children, whose names say more
        self.last_failed = path
        titled = (*outer, self.title, name) if self.has_titles and self.title else path
        self.names.append(" > ".join(titled))

    def section(self) -> CountedNames:
        names = list(numbered(self.names))
        bad = len(names) if self.told is None and self.planned else self.told
        broke_off = self.broke_off or self.seen < self.planned or not self.planned
        return CountedNames(names, bad=bad, ran=self.planned or None, broke_off=broke_off)


def _tap_name(match: re.Match[str]) -> str:
    name = match["name"] or f"test {match['number'] or ''}".strip()
    note = TAP_NOTE.search(name)
    return (name[: note.start()] if note else name).strip()
