"""Core: which tests failed, from what their runner printed.

One row of RUNNERS for each runner: the lines that name a failed test, and the line that says how many there
were. A list of names counts as whole only where the runner's own count confirms it, section by section (a run
of tox or make has several). What a test prints may look like such a line; it adds a name, it takes none away.

The text is hostile: every pattern begins at a line's start, repeats only what cannot match in two ways, and
long lines are cut, so the time grows with the length of the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from agents.reading.results import COUNT_MAX, Tests, bounded, numbered, tidy

TEXT_MAX = 1024 * 1024  # characters from the end
LINE_MAX = 2_000
LONG_LINE = re.compile(rf"([^\n]{{{LINE_MAX}}})[^\n]+")
OVERWRITE = re.compile(r"\r\n?|\x1b\[1?G")  # back to the line's start
CONTROL = re.compile(
    r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[()][A-Z0-9]|[\x1b\0]"
)
NUMBER_FIRST = re.compile(r"\b(\d{1,7}) ([a-z]+)")
WORD_FIRST = re.compile(r"\b([a-z]+(?: [a-z]+)?)(?:: *|=| +)(\d{1,7})\b")
RANGE = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?")
RANGE_MAX = 600
MS = r"\(?\d[\d.,]{0,20} ?m?s\)?"


def _line(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Runner:
    """How one runner prints its result.

    `signs`: one of them is in the text, or nothing in it is this runner's.
    `failed`: a failed test; its groups make the name. `own`: names that the runner's count leaves out.
    `told`: how many, as groups `bad` and `ran`, or as words with numbers, of which `red` and `ran` count.
    `scope`: a file or package that the names below it belong to (those above it, as a group of `told`).
    `heads`: headings of lists; names below one without the group `red` did not fail.
    `done`: what stands behind the last count of a red run that came to its end. `broke`: it did not.
    """

    signs: tuple[str, ...]
    failed: re.Pattern[str]
    told: re.Pattern[str]
    red: frozenset[str] = frozenset()
    ran: frozenset[str] = frozenset()
    words_come_first: bool = False
    names_follow: bool = False  # the list stands below the count
    own: re.Pattern[str] | None = None
    scope: re.Pattern[str] | None = None
    heads: re.Pattern[str] | None = None
    done: re.Pattern[str] | None = None
    broke: re.Pattern[str] | None = None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.replace("_", " ") for text in text.split())


RUNNERS: dict[str, Runner] = {
    "pytest": Runner(
        signs=("test session starts", "short test summary info", "INTERNALERROR>", " in "),
        failed=_line(
            r"^(?:FAILED|ERROR|SUBFAIL(?:ED)?((?:\[[^\]\n]*\])?(?: ?\([^()\n]*\))?))"
            r" ((?=\S*[:/.])[^\s\[][^\[\n]*?(?:\[.*?\])?)(?: - .*)?$"
        ),
        told=_line(
            r"^(?:=+ )?(?=\d{1,7} (?:failed|passed|skipped|deselected|xfailed|xpassed|warning|error|rerun)"
            r"|no tests ran).* in \d+(?:\.\d+)?s(?: \([\d:]+\))?(?: =+)?$"
        ),
        red=_words("failed error errors"),
        ran=_words("failed passed error errors xfailed xpassed"),
        broke=_line(
            r"^!+ (?:Interrupted|stopping after|xdist\.dsession\.Interrupted|KeyboardInterrupt|.*Exit).* !+$"
            r"|^INTERNALERROR> "
        ),
    ),
    "unittest": Runner(
        signs=("\nRan ",),
        failed=_line(r"^(?:FAIL|ERROR|UNEXPECTED SUCCESS): (\S+ \(.*\).*)$"),
        told=_line(r"^Ran \d{1,7} tests? in .*\n\n(?:FAILED|OK|NO TESTS RAN).*"),
        red=_words("failures errors unexpected_successes"),
        ran=_words("ran"),
        words_come_first=True,
    ),
    "node": Runner(
        signs=("\nℹ tests ",),
        # node --test itself writes that mark behind a test that is allowed to fail
        failed=_line(rf"^test at (.+?):\d+:\d+\n✖ ((?!.*# TODO$).+?)(?: {MS})?$"),
        told=_line(r"^ℹ tests \d+\n(?:ℹ [a-z_]+ [\d.]+\n){1,12}"),
        red=_words("fail cancelled"),
        ran=_words("tests"),
        words_come_first=True,
        names_follow=True,
    ),
    "mocha": Runner(
        signs=(" passing (", " failing\n"),
        failed=_line(r"^ {2}\d{1,7}\) (.+(?:\n {7,60}\S.*){0,12}?):\n"),
        told=_line(r"^ {2}\d{1,7} passing \(.*\n(?: {2}\d{1,7} [a-z]+\n){0,3}"),
        red=_words("failing"),
        ran=_words("passing failing"),
        names_follow=True,
        broke=_line(r"^ +Error: Bail$"),
    ),
    "jest": Runner(
        signs=("\nTests:  ",),
        failed=_line(r"^ {2}● (?!Console$)(?!.*Test suite failed to run$)(.+)$"),
        own=_line(r"^ {2}● (.*Test suite failed to run)$"),
        told=_line(r"^Tests: +(?:\d{1,7} [a-z]+, ){0,5}\d{1,7} total$"),
        red=_words("failed"),
        ran=_words("total"),
        scope=_line(rf"^ ?(?:FAIL|PASS) +(.+?)(?: {MS})?$"),
        broke=_line(r"^Test run was interrupted|^ *Jest: .*bail"),
    ),
    "vitest": Runner(
        signs=("Test Files  ",),
        failed=_line(r"^ FAIL +(.+ > .+)$"),
        own=_line(r"^ FAIL +((?!.* > ).+)$"),
        told=_line(r"^ *(?:Tests|Errors) +(?:no tests|\d{1,7} [a-z]+)\b.*$"),
        red=_words("failed error errors"),
        ran=_words("failed passed"),
    ),
    "ava": Runner(
        signs=("✘ [fail]: ", " tests passed", " test passed", " tests failed", " test failed"),
        failed=_line(r"^ {2}✘ \[fail\]: (.+?)(?: Error thrown in test| Rejected promise returned by test)?$"),
        told=_line(r"^ {2}(?P<bad>\d{1,7}) (?:tests? failed|uncaught exceptions?)"),
    ),
    "jasmine": Runner(
        signs=(" specs, ", " spec, "),
        failed=_line(r"^\d{1,7}\) (.+)$"),
        told=_line(r"^\d{1,7} specs?, .*$"),
        red=_words("failure failures"),
        ran=_words("spec specs"),
        heads=_line(r"^(?:(?P<red>Failures)|Pending):$"),
        broke=_line(r"^Incomplete: "),
    ),
    "go test": Runner(
        signs=("\nok  \t", "\nFAIL\t", "\n?   \t"),
        failed=_line(r"^ *--- FAIL: (\S+)"),
        own=_line(r"^FAIL\t(\S+ \[(?:build|setup) failed\])$"),
        # A package has no count: one that failed has at least one failure.
        told=_line(r"^(?:exit status \d+\n)?(?:(?P<some>FAIL)|ok  )\t(?P<scope>\S+)\t.*$"),
        done=_line(r"^FAIL$|^exit status \d+$"),
        broke=_line(r"^(?:panic: |fatal error: |\*\*\* Test killed|signal: )"),
    ),
    "gotestsum": Runner(
        signs=("\nDONE ",),
        failed=_line(r"^=== FAIL: (.+?)(?: \(\d+\.\d+s\))?$"),
        told=_line(r"^DONE (?:\d+ runs, )?\d{1,7} tests?.* in .*$"),
        red=_words("failure failures error errors"),
        ran=_words("test tests"),
        broke=_line(r"^(?:panic: |fatal error: )"),
    ),
    "cargo test": Runner(
        signs=("\ntest result: ", "\nrunning "),
        failed=_line(r"^test (.+?)(?: - should panic)?(?: \(line \d+\))?(?: - [a-z ]+)? \.\.\. FAILED$"),
        told=_line(r"^test result: .*$"),
        red=_words("failed"),
        ran=_words("passed failed"),
        scope=_line(
            r"^ +(?:Running (?:unittests )?(\S+) \((?:.*/)?(.+?)(?:-[0-9a-f]{16})?\)|Doc-tests (\S+))$"
        ),
        done=_line(r"^error: \d+ targets? failed:$"),  # without --no-fail-fast it stops at the first binary
        broke=_line(r"^ +process didn't exit successfully: .*\(signal: "),
    ),
    "cargo nextest": Runner(
        signs=("\n     Summary [",),
        failed=_line(r"^ +(?:(?:TRY \d+ )?(?:FAIL|SIG[A-Z0-9]+|ABORT|TIMEOUT|XFAIL)(?: \+ LEAK)?) "
                     r"\[[^\]\n]*\] (?:\([ \d]+/ *\d+\) +)?(\S.*)$"),
        told=_line(r"^ +Summary \[[^\]\n]*\] .*$"),
        red=_words("failed timed"),
        ran=_words("passed failed timed"),
        names_follow=True,
        broke=_line(r"^ +Cancel(?:l)?ing due to |^ +Summary \[[^\]\n]*\] +\d+/\d+ tests run"),
    ),
    "ctest": Runner(
        signs=("% tests passed, ",),
        failed=_line(r"^\s{1,8}\d{1,7} - (\S.*?) \([A-Za-z][^()\n]*\)(?: .*)?$"),
        told=_line(r"^\d+% tests passed, (?P<bad>\d{1,7}) tests? failed out of (?P<ran>\d{1,7})$"),
        names_follow=True,
        heads=_line(r"^The following tests (?:(?P<red>FAILED)|.*):$"),
    ),
    "meson": Runner(
        signs=("\nOk: ",),
        failed=_line(r"^ *\d+/\d+ (.+?) +(?:FAIL|ERROR|TIMEOUT|INTERRUPT|UNEXPECTEDPASS) +\d.*$"),
        told=_line(r"^Ok: +\d{1,7} *\n(?:[A-Z][A-Za-z ]{1,30}: +\d{1,7} *\n){1,8}"),
        red=_words("fail unexpected_pass timeout"),
        ran=_words("ok expected_fail fail unexpected_pass timeout"),
        words_come_first=True,
    ),
    "automake": Runner(
        signs=("\n# TOTAL: ",),
        failed=_line(r"^(?:FAIL|ERROR|XPASS): (\S.*)$"),
        told=_line(r"^# TOTAL: +\d{1,7}\n(?:# [A-Z]+: +\d{1,7}\n){1,6}"),
        red=_words("fail xpass error"),
        ran=_words("total"),
        words_come_first=True,
    ),
    "rspec": Runner(
        signs=(" examples, ", " example, "),
        failed=_line(r"^rspec '?(\S+?)(?::\d+|\[[\d:]+\])?'? # (.+)$"),
        told=_line(r"^\d{1,7} examples?, .*$"),
        red=_words("failure failures error errors"),
        ran=_words("example examples"),
        names_follow=True,
    ),
    "minitest": Runner(
        signs=(" assertions, ",),
        failed=_line(r"^(?: *\d{1,7}\) )?(?:Failure|Error):\n(\S+?)(?: \[.*\])?:$"),
        told=_line(r"^\d{1,7} runs, .*$"),
        red=_words("failures errors"),
        ran=_words("runs"),
    ),
    "test-unit": Runner(
        signs=(" assertions, ",),
        failed=_line(r"^(?:Failure|Error): (\S.*?\(.+?\))(?::.*)?$"),
        told=_line(r"^\d{1,7} tests, .*$"),
        red=_words("failures errors"),
        ran=_words("tests"),
    ),
    "phpunit": Runner(
        signs=("\nPHPUnit ", "\nTests: ", "\nOK ("),
        failed=_line(r"^\d{1,7}\) ([\w\\]+::.*?)(?: \(.*\))?$"),
        told=_line(r"^(?:Tests: \d{1,7}, Assertions: .*|OK \((?P<ran>\d{1,7}) tests?, .*)$"),
        red=_words("errors failures"),
        ran=_words("tests"),
        words_come_first=True,
        heads=_line(r"^There (?:was|were) \d{1,7} (?:(?P<red>errors?|failures?)|.*):$"),
    ),
    "maven": Runner(
        signs=("Tests run: ",),
        failed=_line(
            r"^(?:\[ERROR\] +)?((?!Tests run:)\S.*?)(?: --)? +Time elapsed: .* <<< (?:FAILURE|ERROR)!$"
        ),
        told=_line(
            r"^(?:\[[A-Z]+\] )?Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+(?:, Flakes: \d+)?$"
        ),
        red=_words("failures errors"),
        ran=_words("tests_run"),
        words_come_first=True,
        broke=_line(r"^(?:\[ERROR\] )?(?:.*The forked VM terminated|Crashed tests:)"),
    ),
    "gradle": Runner(
        signs=(" tests completed, ", " test completed, "),
        failed=_line(r"^(\S.*? > .+) FAILED$"),
        told=_line(r"^(?P<ran>\d{1,7}) tests? completed(?:, (?P<bad>\d{1,7}) failed)?.*$"),
    ),
    "mix": Runner(
        signs=("Randomized with seed", "ExUnit with seed"),
        failed=_line(r"^ {1,8}\d{1,7}\) ((?:test|doctest|property) .+)$"),
        told=_line(r"^(?:\d{1,7} (?:doctests?|properties|property|features?), ){0,4}\d{1,7} tests?, .*$"),
        red=_words("failure failures invalid"),
        ran=_words("test tests doctest doctests property properties"),
        broke=_line(r"^--max-failures reached"),
    ),
    "alcotest": Runner(
        signs=("This run has ID `",),
        failed=_line(r"^[> ] \[FAIL\] +(\S.*?) {2,}\d+ +(\S.*?)\.?$"),
        told=_line(r"^(?:\d{1,7} failures?!|Test Successful) in .*$"),
        red=_words("failure failures"),
        ran=_words("test tests"),
    ),
    "dotnet": Runner(
        signs=(" - Failed: ",),
        failed=_line(r"^ {1,4}Failed (\S.*?) \[[^\]\n]*\]$"),
        told=_line(r"^(?:Failed|Passed)! +- Failed: .*$"),
        red=_words("failed"),
        ran=_words("passed failed"),
        words_come_first=True,
        broke=_line(r"^The active test run was aborted"),
    ),
    "bats": Runner(
        signs=("\n ✗ ", "\n ✓ "),
        failed=_line(rf"^ ✗ (.+?)(?: \[?{MS}\]?)?$"),
        told=_line(r"^\d{1,7} tests?, .*$"),
        red=_words("failure failures"),
        ran=_words("test tests"),
    ),
}  # fmt: skip


def read_output(text: str, root: str = "", *, is_whole: bool = True) -> Tests:
    """The tests that failed, by their runners' printed lines; nothing but defaults where none is known.

    `text`: at most its last TEXT_MAX characters are read. `root`: a path that is another one in the next run,
    such as the run's own folder; it is cut out of names. `is_whole`: False where the text is the end of a
    longer one. What is lost may have named more failures, so it counts as broken off.
    """
    is_cut = not is_whole or len(text) > TEXT_MAX
    text = plain(text)
    sections = [section for runner in RUNNERS.values() for section in _read(runner, text)]
    sections += _prove(text) or _tap(text)
    failed: list[str] = []
    unnamed = 0
    for section in sections:
        names = list(dict.fromkeys(name for name in (tidy(name, root) for name in section.names) if name))
        failed += names
        unnamed += max(0, (section.bad or 0) - len(names))
    found = numbered(failed)
    return Tests(
        bounded(found),
        _ran(sections),
        min(len(found) + unnamed, COUNT_MAX) if _is_told(sections) else None,
        broke_off=is_cut or any(section.broke_off for section in sections),
    )


def _ran(sections: list["CountedNames"]) -> int | None:
    """How many tests ran; None where no runner says it."""
    ran = [section.ran for section in sections if section.ran is not None]
    return min(sum(ran), COUNT_MAX) if ran else None


def _is_told(sections: list["CountedNames"]) -> bool:
    """Whether every runner says how many tests failed, and at least one of them ran to its end."""
    return any(not each.broke_off for each in sections) and all(each.bad is not None for each in sections)


def plain(text: str) -> str:
    """The end of the text as lines: no colours; what was written over is a line of its own."""
    text = OVERWRITE.sub("\n", text[-TEXT_MAX:])
    return LONG_LINE.sub(r"\1", "\n" + CONTROL.sub("", text) + "\n")


@dataclass(slots=True)
class CountedNames:
    """The names up to one count of a runner; `bad` and `ran` are None where it does not say."""

    names: list[str]
    bad: int | None = None
    ran: int | None = None
    broke_off: bool = False


def _read(runner: Runner, text: str) -> list[CountedNames]:
    """What one runner says; nothing where nothing in the text is its own."""
    if not any(sign in text for sign in runner.signs):
        return []
    events = _events(runner, text)
    sections = list(_sections(runner, events))
    broke_off = runner.broke is not None and runner.broke.search(text) is not None
    if runner.done and any(section.names or section.bad for section in sections):
        last = max((match.start() for kind, match in events if kind == "told"), default=0)
        broke_off |= runner.done.search(text, last) is None
    if broke_off:
        sections.append(CountedNames([], bad=0, broke_off=True))
    return sections


def _sections(runner: Runner, events: list[tuple[str, re.Match[str]]]) -> Iterator[CountedNames]:
    """One section for each of its counts, and one for names without a count."""
    own: dict[str, None] = {}
    named = list(_named(runner, events, own))
    yield from _after_counts(runner, named) if runner.names_follow else _before_counts(runner, named)
    if own:
        yield CountedNames(list(own), bad=len(own))


def _named(
    runner: Runner, events: list[tuple[str, re.Match[str]]], own: dict[str, None]
) -> Iterator[re.Match[str] | str]:
    """The counts, and the names of what failed in between; names counted by themselves go into `own`.

    Where names follow their count, those before the first count do not belong to any.
    """
    scope, is_listed, is_open = "", True, not runner.names_follow
    for kind, match in events:
        if kind == "scope":
            scope = " ".join(group for group in match.groups() if group)
        elif kind == "heads":
            is_listed = match["red"] is not None
        elif kind == "told":
            is_open = True
            yield match
        elif is_listed and is_open:
            name = _scoped(scope, _name(match, runner))
            if kind == "own":
                own[name] = None
            else:
                yield name


def _after_counts(runner: Runner, named: list[re.Match[str] | str]) -> Iterator[CountedNames]:
    """Each count with the names that follow it."""
    section: CountedNames | None = None
    for each in named:
        if isinstance(each, str):
            if section is not None:
                section.names.append(each)
            continue
        if section is not None:
            yield section
        section = CountedNames([])
        _count(runner, each, section)
    if section is not None:
        yield section


def _before_counts(runner: Runner, named: list[re.Match[str] | str]) -> Iterator[CountedNames]:
    """Each count with the names that stand before it; names after the last one have none."""
    section = CountedNames([])
    for each in named:
        if isinstance(each, str):
            section.names.append(each)
            continue
        _count(runner, each, section)
        yield section
        section = CountedNames([])
    if section.names:
        yield section


def _events(runner: Runner, text: str) -> list[tuple[str, re.Match[str]]]:
    """All that its patterns find, in the order of the text."""
    patterns = {
        "heads": runner.heads, "scope": runner.scope, "failed": runner.failed, "own": runner.own,
        "told": runner.told,
    }  # fmt: skip
    found = [
        (kind, match) for kind, pattern in patterns.items() if pattern for match in pattern.finditer(text)
    ]
    return sorted(found, key=lambda each: each[1].start())


def _name(match: re.Match[str], runner: Runner) -> str:
    groups = [" ".join(group.split()) for group in match.groups() if group]
    return (": " if runner.names_follow else " ").join(groups)


def _scoped(scope: str, name: str) -> str:
    return f"{scope} › {name}" if scope else name


def _count(runner: Runner, match: re.Match[str], section: CountedNames) -> None:
    """What a runner's count says, into the section that it closes."""
    groups = match.groupdict()
    if groups.get("scope"):
        section.names[:] = [_scoped(groups["scope"], name) for name in section.names]
    if "some" in groups:
        section.bad = 1 if groups["some"] else 0
        return
    said: dict[str, int] = {}
    text = match[0].lower()
    if runner.words_come_first:
        for word, number in WORD_FIRST.findall(text):
            said[word] = said.get(word, 0) + int(number)
    else:
        for number, word in NUMBER_FIRST.findall(text):
            said[word] = said.get(word, 0) + int(number)
    section.bad = sum(said.get(word, 0) for word in runner.red)
    if runner.ran:
        section.ran = sum(said.get(word, 0) for word in runner.ran)
    if groups.get("bad"):
        section.bad = int(groups["bad"])
    if groups.get("ran"):
        section.ran = int(groups["ran"])


# --- Perl's prove, and the Test Anything Protocol ---------------------------------------------------------

PROVE_TOLD = _line(r"^Files=\d{1,7}, Tests=(\d{1,7}),.*\n(?:Result: (\w+))?")
PROVE_FILE = _line(
    r"^(\S.*?) +\(Wstat: .*Tests: \d{1,7} Failed: (\d{1,7})\)\n((?: {2}\S.*\n(?: {4,}[\d, -]+\n)*)*)"
)
PROVE_FAILED = _line(r"^ {2}Failed tests?: +((?:[\d, -]|\n {4,})*)")
TAP_LINE = re.compile(
    r"^(?P<indent> {0,60})(?:(?P<not>not )?ok\b(?: (?P<number>\d{1,7}))?(?: (?:- )?(?P<name>.*))?"
    r"|# Subtest: (?P<subtest>.+)|# (?P<title>\S.*)|1\.\.(?P<plan>\d{1,7})(?: .*)?|(?P<bail>Bail out!).*)$"
)
TAP_NOTE = re.compile(r"\s# (?P<word>TODO|SKIP|time=)", re.IGNORECASE)
TAP_FAIL = re.compile(r"fail +(\d{1,7})")


def _prove(text: str) -> list[CountedNames]:
    """What prove says: `t/sum.t 2` for the second test of a file, the file alone where it ended badly."""
    sections = []
    start = 0
    for told in PROVE_TOLD.finditer(text):
        section = CountedNames([], bad=0, ran=int(told[1]))
        for file in PROVE_FILE.finditer(text, start, told.start()):
            failed = PROVE_FAILED.search(file[3])
            numbers = list(_numbers(failed[1])) if failed else []
            section.names += [f"{file[1]} {number}" for number in numbers] or [file[1]]
            section.bad = (section.bad or 0) + max(int(file[2]), len(numbers), 1)
        if told[2] == "FAIL" and not section.names:
            section.bad = 1
        sections.append(section)
        start = told.end()
    return sections


def _numbers(text: str) -> Iterator[int]:
    """Each number of `1-3, 7`, no more than RANGE_MAX of them."""
    given = 0
    for first, last in RANGE.findall(text):
        for number in range(int(first), int(last or first) + 1):
            given += 1
            if given > RANGE_MAX:
                return
            yield number


def _tap(text: str) -> list[CountedNames]:
    """What a stream of the Test Anything Protocol says: names with the subtests and titles around them."""
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
    """What the lines so far say."""

    has_titles: bool
    names: list[str] = field(default_factory=list)
    seen: int = 0
    planned: int = 0
    told: int | None = None  # failures, as the stream sums them up itself
    broke_off: bool = False
    title: str = ""
    around: list[tuple[int, str]] = field(default_factory=list)  # the open subtests: their indent, their name
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
