"""Core: a table of how each test runner prints its result.

It has one row for each runner: the lines that name a failed test, and the line that says how many there were.
The text is hostile: every pattern begins at the start of a line and repeats only what cannot match in two
ways.
"""

import re
from dataclasses import dataclass

from tasks.text.regex import regex

MS = r"\(?\d[\d.,]{0,20} ?m?s\)?"


def _line(pattern: str) -> re.Pattern[str]:
    return regex(pattern, re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Runner:
    """How one runner prints its result.

    `signs`: unless one of them is in the text, nothing in it is from this runner.
    `failed`: a failed test; its groups make the name. `own`: names that the runner's count leaves out.
    `told`: the counts, as groups `bad` and `ran`, or as words with numbers, of which `red` and `ran` count.
    `green`: the words for passed tests if there are none for `red`; the others of `ran` have failed.
    `scope`: a file or package that the names below it belong to (as a group of `told`: the names above it).
    `heads`: headings of lists; names below one without the group `red` did not fail.
    `done`: what follows the last count of a red run that came to its end. `broke`: says that it broke off.
    """

    signs: tuple[str, ...]
    failed: re.Pattern[str]
    told: re.Pattern[str]
    red: frozenset[str] = frozenset()
    ran: frozenset[str] = frozenset()
    green: frozenset[str] = frozenset()
    words_come_first: bool = False
    names_follow: bool = False  # the list of names follows the count
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
        # node --test itself puts "# TODO" after a test that is allowed to fail
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
        told=_line(
            r"^ {2}(?:(?P<bad>\d{1,7}) (?:tests? failed|uncaught exceptions?)|(?P<ran>\d{1,7}) tests? passed)"
        ),
    ),
    "tap-spec": Runner(
        signs=("\n  total: ",),
        failed=_line(r"^ {6}✖ (.+)$"),
        told=_line(r"^ {2}total: +\d{1,7}\n {2}passing: +\d{1,7}\n(?: {2}failing: +\d{1,7}\n)?"),
        red=_words("failing"),
        ran=_words("total"),
        words_come_first=True,
        scope=_line(r"^ {4}(?![✔✖ -])(\S.*)$"),
    ),
    "uvu": Runner(
        signs=("\n  Total: ",),
        failed=_line(r'^ {2,3}FAIL  (?:(\S.{0,200}?)  )?"(.+)"$'),
        told=_line(r"^ {2}Total: +\d{1,7}\n {2}Passed: +\d{1,7}$"),
        green=_words("passed"),
        ran=_words("total"),
        words_come_first=True,
        scope=_line(r"^([\w@./-]{1,200}\.[cm]?[jt]sx?)$"),
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
        # There is no count for a package, so a failed package counts as one failure.
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
    "googletest": Runner(
        signs=("\n[==========] ",),
        failed=_line(r"^\[  FAILED  \] (\S.*?)(?:, where (?:Get|Type)Param.*)? \(\d+ ms\)$"),
        told=_line(
            r"^\[={10}\] (?P<ran>\d{1,7}) tests? from .* ran\..*\n\[  PASSED  \] .*\n"
            r"(?:\[  SKIPPED \] .*\n)*(?:\[  FAILED  \] (?P<bad>\d{1,7}) tests?, listed below:)?"
        ),
    ),
    # Catch2 counts in the same words; what it prints of a failure has no beginning of its own.
    "doctest": Runner(
        signs=("test cases: ", "\nAll tests passed ("),
        failed=_line(r"^(?:TEST SUITE: (\S.*)\n)?TEST CASE: +(\S.*)$"),
        told=_line(
            r"^(?:\[doctest\] )?test cases: +\d{1,7} \|.*$|^All tests passed \(\d+ assertions? in .*\)$"
        ),
        red=_words("failed"),
        ran=_words("passed failed test"),
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
    "busted": Runner(
        signs=(" successes / ", " success / "),
        failed=_line(r"^(?:Failure|Error) (?:->|→) (\S.*?) @ \d+\n(\S.*)$"),
        told=_line(r"^\d{1,7} success(?:es)? / \d{1,7} failures? / \d{1,7} errors? / \d{1,7} pending : .*$"),
        red=_words("failure failures error errors"),
        ran=_words("success successes failure failures error errors"),
        names_follow=True,
    ),
    "rspec": Runner(
        signs=(" examples, ", " example, "),
        failed=_line(r"^(?:rspec|crystal spec) '?(\S+?)(?::\d+|\[[\d:]+\])?'? # (.+)$"),
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
    "shunit2": Runner(
        signs=("\nASSERT:", "\nshunit2:", " tests.\n\nOK", " test.\n\nOK"),
        # A test's name, what it printed, and why it failed; or the word of the runner itself.
        failed=_line(
            r"^(test\w{0,100})\n(?:(?!test\w{0,100}$).{0,400}\n){0,20}?ASSERT:"
            r"|^shunit2:ERROR (\w{1,100})\(\) returned non-zero"
        ),
        # It counts failed assertions, so that it only tells whether there were some.
        told=_line(r"^Ran (?P<ran>\d{1,7}) tests?\.\n\n(?:OK|(?P<some>FAILED)).*"),
    ),
    "urchin": Runner(
        signs=("\nDone, took ",),
        failed=_line(r"^ {2,40}✗ (.+)$"),
        told=_line(r"^\d{1,7} tests? passed\.\n(?P<bad>\d{1,7}) tests? failed\.$"),
        ran=_words("test tests"),  # those of both lines
    ),
    "bats": Runner(
        signs=("\n ✗ ", "\n ✓ "),
        failed=_line(rf"^ ✗ (.+?)(?: \[?{MS}\]?)?$"),
        told=_line(r"^\d{1,7} tests?, .*$"),
        red=_words("failure failures"),
        ran=_words("test tests"),
    ),
    "clojure": Runner(
        signs=("\nRan ",),
        failed=_line(r"^(?:FAIL|ERROR) in \(([^()\n]{1,300})\) \([^()\n]{1,300}:\d+\)$"),
        # It counts failed assertions, so that it only tells whether there were some.
        told=_line(
            r"^Ran (?P<ran>\d{1,7}) tests? containing \d{1,7} assertions?\.\n"
            r"(?:0 failures, 0 errors|(?P<some>\d{1,7} failures, \d{1,7} errors))\.$"
        ),
        scope=_line(r"^(?:Testing|lein test) ([\w.*+!?<>='/-]{1,200})$"),
    ),
    "dub": Runner(
        signs=(" modules passed unittests\n", " modules FAILED unittests\n"),
        failed=_line(r"^[\w.]{1,200}@(\S{1,300}?)\(\d+\): "),  # a module's tests end with the first
        told=_line(r"^(?:(?P<bad>\d{1,7})/)?(?P<ran>\d{1,7}) modules (?:FAILED|passed) unittests$"),
    ),
    "racket": Runner(
        signs=("\nraco test: ",),
        failed=_line(r"^-{20}\n(?:((?!-{20})\S.*)\n)?(?:FAILURE|ERROR)\n(?:name: +(\S+)\n)?"),
        told=_line(r"^(?:(?P<bad>\d{1,7})/)?(?P<ran>\d{1,7}) tests? (?:failures?|passed)$"),
        scope=_line(r'^raco test: (?:\(submod )?"(.+?)".*$'),
    ),
}  # fmt: skip
# What else tools print after the cause: that a step above them failed, and where more is written.
ECHOES = {
    "rulers": r"^\W*$|^[=!_-]{3,}.{0,200}[=!_-]{3,}$",
    "make": r"^g?make(?:\[\d+\])?: ",
    "cmake": r"^-- |^See also ",
    "ninja": r"^ninja: (?:build stopped|subcommand failed)",
    "npm": (
        r"^npm (?:ERR!|error)(?:$| (?:code \d|errno|path|command|signal|Lifecycle|A complete)\b)"
        r"|^npm (?:ERR!|error) (?:workspace|location) "
    ),
    "pnpm, yarn": r"ELIFECYCLE|^(?:error )?Command failed\b|^info Visit ",
    "cargo, just, pip": (
        r"^error: (?:could not compile|test failed|Recipe |subprocess-exited-|metadata-generation-)"
        r"|^(?:note|hint): |^╰─>|^\[end of output\]"
    ),
    "gradle": r"^FAILURE: |^BUILD FAILED|^\* (?:Try|What went wrong|Get more help)|^> (?:Run|Get more help) ",
    "maven": r"^\[ERROR\](?:$| (?:-> |To see |Re-run |For more |\[Help|After correcting))",
    "tox": r"^(?:\S{1,40}: )?(?:FAIL|evaluation failed)\b.{0,20}(?:code \d|:\(|seconds)",
    "an exit code": r"^(?:\S{1,40}: )?exit(?:ed)?(?: with)?(?: status| code)? \d{1,3}\b",
}
