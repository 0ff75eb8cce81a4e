"""What a build-and-test run left, read: captured output and reports of real runners, and hostile ones."""

import os
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.hosts import sandbox
from agents.reading.causes import CAUSE_MAX, cause
from agents.reading.comparison import compare, flaky
from agents.reading.faults import environment_fault, is_passing, missing_program
from agents.reading.junit import read_reports
from agents.reading.output import read_output
from agents.reading.results import NAME_MAX, NAMES_MAX, Tests, tidy, together
from agents.reading.runners import RUNNERS
from agents.recipes.toolchains import known_hint
from agents.verification import verdicts
from tests.cases import for_each

DATA = Path(__file__).resolve().parents[2] / "data/test_output"

# What each runner printed of its small project: how many ran and failed, whether it broke off, the names.
PRINTED: dict[str, tuple[int | None, int | None, bool, list[str]]] = {
    "alcotest": (3, 2, False, ["shop sells", "sum rounds"]),
    "automake": (5, 3, False, ["odd.sh", "rounds.sh", "sells.sh"]),
    "ava": (None, 2, False, ["rounds", "sells"]),
    "ava_tap": (3, 2, False, ["rounds", "sells"]),
    "bats": (4, 2, False, ["rounds", "sells"]),
    "bats_pretty": (4, 2, False, ["rounds", "sells"]),
    "busted": (
        4, 3, False,
        ["spec/a_spec.lua: sum breaks", "spec/a_spec.lua: sum rounds", "spec/a_spec.lua: sum shop sells"],
    ),
    "cargo": (
        6, 5, False,
        [
            "src/lib.rs sum › tests::panics", "src/lib.rs sum › tests::rounds", "sum › src/lib.rs - two",
            "tests/shop.rs shop › fake",  # a line that a test printed: one name too many, never one too few
            "tests/shop.rs shop › sells",
        ],
    ),
    "clojure": (4, 3, False, ["shop-test › rounds", "sum-test › rounds", "sum-test › sells"]),
    "crystal": (4, 2, False, ["spec/sum_spec.cr: sum rounds", "spec/sum_spec.cr: sum shop sells"]),
    "ctest": (5, 4, False, ["missing", "rounds", "shop", "slow"]),
    "doctest": (4, 3, False, ["breaks", "rounds", "shop sells"]),
    "dub": (3, 2, False, ["source/shop.d", "source/sum.d"]),
    "go": (
        None, 6, True,
        [
            "example.org/sum › TestEach", "example.org/sum › TestEach/one_case",
            "example.org/sum › TestRounds", "example.org/sum/broken [build failed]",
            "example.org/sum/panics › TestPanics", "example.org/sum/shop › TestRounds",
        ],
    ),
    "googletest": (5, 2, False, ["Some/Shop.sells/1", "Sum.rounds"]),
    # The package that did not compile has no name in its list, so one of the six has none.
    "gotestsum": (
        9, 6, True,
        [". TestEach", ". TestEach/one_case", ". TestRounds", "panics TestPanics", "shop TestRounds"],
    ),
    "jasmine": (3, 2, False, ["sum rounds", "sum shop sells"]),
    "jest_verbose": (
        4, 3, False,
        [
            "./broken.test.js › Test suite failed to run", "./sum.test.js › sum › rounds",
            "./sum.test.js › sum › shop › sells",
        ],
    ),
    "maven": (
        8, 5, False,
        [
            "org.sum.SumTest$Shop.buys", "org.sum.SumTest.each(String)[2]", "org.sum.SumTest.rounds",
            "org.sum.SumTest.sells", "org.sum.SumTest.settles",
        ],
    ),
    "maven_rerun": (
        8, 5, False,
        [
            "org.sum.SumTest$Shop.buys", "org.sum.SumTest.each(String)[2]", "org.sum.SumTest.rounds",
            "org.sum.SumTest.sells", "org.sum.SumTest.settles",
        ],
    ),
    "meson": (6, 4, False, ["sum / odd", "sum / sells things", "sum / slow", "sum:shop / rounds"]),
    "minitest": (4, 2, False, ["TestSum#test_rounds", "TestSum#test_sells"]),
    "mix": (3, 2, False, ["test rounds (SumTest)", "test shop sells (SumTest)"]),
    "mocha": (
        5, 3, False, ['sum hooks "before all" hook for "never"', "sum rounds", "sum shop sells"],
    ),
    "nextest": (5, 3, False, ["sum tests::panics", "sum tests::rounds", "sum::shop sells"]),
    "node_spec": (
        8, 4, False,
        [f"test/sum.test.js: {name}" for name in ("adds", "rounds", "sells", "waits")],
    ),
    "node_tap": (5, 4, False, ["rounds", "shop > adds", "shop > inner > waits", "shop > sells"]),
    "phpunit": (
        7, 4, False,
        [
            'SumTest::testEach with data set "second"', "SumTest::testEach with data set #0",
            "SumTest::testRounds", "SumTest::testSells",
        ],
    ),
    "prove": (5, 3, False, ["t/dies.t", "t/sum.t 2", "t/sum.t 3"]),
    "pytest": (
        5, 4, False,
        [
            "tests/test_sum.py::TestShop::test_buys[a - b]", "tests/test_sum.py::TestShop::test_buys[c[d]]",
            "tests/test_sum.py::test_rounds", "tests/test_sum.py::test_sells",
        ],
    ),
    "pytest_bail": (2, 1, True, ["tests/test_sum.py::test_rounds"]),
    "pytest_collect": (1, 1, True, ["tests/test_broken.py"]),
    "pytest_rerun": (2, 1, False, ["test_flaky.py::test_never"]),
    "pytest_subtests": (
        6, 5, False,
        [
            "(n=0) sub.py::T::test_a", "(n=2) sub.py::T::test_a", "[named] (n=0) sub.py::test_b",
            "[named] (n=1) sub.py::test_b", "sub.py::test_b",
        ],
    ),
    "racket": (
        6, 3, False, ["./shop.rkt › shop > buys check-true", "./sum.rkt › check-equal?", "./sum.rkt › sells"],
    ),
    "rspec": (4, 2, False, ["./spec/sum_spec.rb: sum rounds", "./spec/sum_spec.rb: sum shop sells"]),
    # It counts assertions, and not the test whose function returned 3.
    "shunit2": (4, 3, False, ["testPanics", "testRounds", "testSells"]),
    "tap_spec": (5, 3, False, ["rounds › up", "shop :: sells › no shop", "shop :: sells › throws"]),
    "tape": (4, 2, False, ["rounds > up", "sells > no shop"]),
    "testunit": (3, 2, False, ["test_rounds(TestSum)", "test_sells(TestSum)"]),
    "urchin": (4, 2, False, ["rounds", "sells"]),
    "unittest": (
        5, 4, False,
        [
            "test_each (test_sum.Sum.test_each) (n=0)", "test_each (test_sum.Sum.test_each) (n=2)",
            "test_rounds (test_sum.Sum.test_rounds)", "test_sells (test_sum.Sum.test_sells)",
        ],
    ),
    "uvu": (6, 3, False, ["sum.mjs › alone", "sum.mjs › shop sells > two", "sum.mjs › sum rounds"]),
    "vitest": (
        3, 3, False,
        [
            "broken.test.js [ broken.test.js ]", "sum.test.js > sum > rounds",
            "sum.test.js > sum > shop > sells",
        ],
    ),
}  # fmt: skip
SAME_AS = {"pytest_quiet": "pytest", "pytest_xdist": "pytest"}  # in colour and without headings; in parallel

REPORTED: dict[str, tuple[int, int, list[str]]] = {
    "bats": (4, 2, ["sum.bats > rounds", "sum.bats > sells"]),
    "ctest": (5, 4, ["missing", "rounds", "shop", "slow"]),
    "gotestsum": (
        9, 6,
        [
            "example.org/sum > TestEach", "example.org/sum > TestEach/one_case",
            "example.org/sum > TestRounds", "example.org/sum/panics > TestPanics",
            "example.org/sum/shop > TestRounds",
        ],
    ),
    "maven_rerun": (
        8, 4,
        [
            "org.sum.SumTest > each(String)[2]", "org.sum.SumTest > rounds", "org.sum.SumTest > sells",
            "org.sum.SumTest$Shop > buys",
        ],
    ),
    "meson": (7, 2, ["sum > sum / sells things", "sum > sum:shop / rounds"]),
    "nextest": (5, 3, ["sum > tests::panics", "sum > tests::rounds", "sum::shop > sells"]),
    "node": (8, 4, ["rounds", "shop > adds", "shop > inner > waits", "shop > sells"]),
    "phpunit": (
        7, 4,
        [
            'SumTest > testEach with data set "second"', "SumTest > testEach with data set #0",
            "SumTest > testRounds", "SumTest > testSells",
        ],
    ),
    "pytest": (
        6, 4,
        [
            "tests.test_sum > test_rounds", "tests.test_sum > test_sells",
            "tests.test_sum.TestShop > test_buys[a - b]", "tests.test_sum.TestShop > test_buys[c[d]]",
        ],
    ),
    "pytest_collect": (1, 1, ["pytest > tests.test_broken"]),
    "pytest_rerun": (4, 1, ["test_flaky > test_never"]),
    "vitest": (5, 3, ["broken.test.js", "sum.test.js > sum > rounds", "sum.test.js > sum > shop > sells"]),
}  # fmt: skip


RED_CASE = '<testcase classname="a" name="b"><failure/></testcase>'
GREEN_CASE = '<testcase classname="a" name="b"/>'


def text(name: str) -> str:
    return (DATA / f"{name}.txt").read_text(encoding="utf-8")


def report(folder: Path, content: str | bytes, name: str = "report.xml") -> None:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


# --- What runners print and write -------------------------------------------------------------------------


def test_every_runner_s_output_names_what_failed() -> None:
    assert {path.stem for path in DATA.glob("*.txt")} == PRINTED.keys() | SAME_AS.keys() | {"unittest_import"}
    for name in [*PRINTED, *SAME_AS]:
        total, count, broke_off, names = PRINTED[SAME_AS.get(name, name)]
        assert read_output(text(name)) == Tests(tuple(sorted(names)), total, count, broke_off), name

    assert (
        "test_broken (unittest.loader._FailedTest.test_broken)" in read_output(text("unittest_import")).failed
    )


def test_every_runner_s_report_names_what_failed(tmp_path: Path) -> None:
    assert {path.stem for path in (DATA / "reports").glob("*.xml")} == REPORTED.keys()
    for name, (total, count, names) in REPORTED.items():
        folder = tmp_path / name / "deeper"
        folder.mkdir(parents=True)
        shutil.copy(DATA / "reports" / f"{name}.xml", folder)
        assert read_reports(folder.parent) == Tests(tuple(sorted(names)), total, count), name


def verdict_on(folder: Path, output: str) -> verdicts.Verdict:
    """Of a run in this folder whose tests printed that and were red."""
    folder.mkdir(exist_ok=True)
    (folder / "output.log").write_text(output)
    return verdicts.read(folder, {"steps": [{"name": "tests", "code": 1, "log": [0, len(output.encode())]}]})


IDLE = (
    "Cannot locate the conda executable\n",
    "> sum@1.0.0 test\n> ./check\n\nno tests\n",
    "collected 0 items\n\n===== no tests ran in 0.01s =====\n",
    "3 skipped in 0.10s\n",
    "py: install_deps> pip install x\n  py: OK (0.13 seconds)\n  congratulations :) (1.46 seconds)\n",
    "Ran 0 tests in 0.000s\n\nOK\n",
    "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n",
    "No tests found, exiting with code 0\n",
    "No test files found, exiting with code 0\n",
    "  0 passing (1ms)\n\n",
    "?   \texample.org/sum\t[no test files]\n",
    "Test project /b\nNo tests were found!!!\n",
    "[INFO] No tests to run.\n[INFO] BUILD SUCCESS\n",
    "> Task :test NO-SOURCE\nBUILD SUCCESSFUL in 1s\n",
    "PHPUnit 9.6\nNo tests executed!\n",
    "There are no tests to run\n",
    "make: Nothing to be done for 'test'.\n",
    "check: line 3: bats: command not found\n",
)
BUSY = (
    "all 17 scripts are fine\n",
    "No test failed.\n",
    "py: commands[0]> ./check\n  py: OK (0.13 seconds)\n  congratulations :) (1.46 seconds)\n",
    "no tests were broken by this\n",
    "ok  \texample.org/sum\t0.01s\n?   \texample.org/sum/cmd\t[no test files]\n",
    "No tests found, exiting with code 0\nTests:       3 passed, 3 total\n",
    "> Task :a:test NO-SOURCE\n> Task :b:test\nBUILD SUCCESSFUL in 1s\n",
)


def test_programs_of_tests_that_are_green_say_how_many_ran() -> None:
    for printed, ran, failed in (
        ("[==========] 1 test from 1 test case ran. (0 ms total)\n[  PASSED  ] 1 test.\n", 1, 0),
        ("[==========] 0 tests from 0 test suites ran. (0 ms total)\n[  PASSED  ] 0 tests.\n", 0, 0),
        ("[doctest] test cases: 4 | 4 passed | 0 failed | 0 skipped\n", 4, 0),
        ("All tests passed (5 assertions in 2 test cases)\n", 2, 0),
        ("  ✔ sells\n  ✔ rounds\n  ─\n\n  2 tests passed\n", 2, 0),
        ("  ✔ sells\n  ─\n\n  1 test passed\n  1 test skipped\n", 1, 0),
        ("test cases:  3 | 1 passed |  2 failed\nassertions: 12 | 9 passed | 3 failed\n", 3, 2),
        ("●●\n2 successes / 0 failures / 0 errors / 0 pending : 0.01 seconds\n", 2, 0),
    ):
        found = read_output(printed)
        assert (found.total, found.failed_count) == (ran, failed), printed


def test_a_green_run_that_ran_no_test_counts_none(tmp_path: Path) -> None:
    def total_of(output: str, name: str = "tests") -> int | None:
        (tmp_path / "output.log").write_text(output)
        steps = [{"name": name, "code": 0, "log": [0, len(output.encode())]}]
        verdict = verdicts.read(tmp_path, {"steps": steps})
        assert verdict.green
        return verdict.tests.total

    assert {output: total_of(output) for output in IDLE} == dict.fromkeys(IDLE, 0)
    assert [output for output in BUSY if total_of(output) == 0] == []
    assert total_of(IDLE[0], "build") is None, "no test was to be run"


def test_a_name_does_not_say_in_which_run_it_failed(tmp_path: Path) -> None:
    first, second = (
        verdict_on(folder, f"1..1\nnot ok 1 - {folder}/clone/a.mjs sells\n")
        for folder in (tmp_path / "run-1", tmp_path / "run-2")
    )

    assert first.tests.failed == second.tests.failed == ("a.mjs sells",)
    assert compare(first.tests, 1, second.tests, 1).is_no_worse


def test_files_of_which_no_test_ran_count_among_the_tests_of_prove() -> None:
    files = "".join(
        f"t/{name}.t (Wstat: 512 (exited 2) Tests: 0 Failed: 0)\n  Non-zero exit status: 2\n"
        for name in "abc"
    )
    tests = read_output(f"{files}Files=4, Tests=2,  0 wallclock secs\nResult: FAIL\n")
    assert (tests.failed, tests.failed_count, tests.total) == (("t/a.t", "t/b.t", "t/c.t"), 3, 5)


def test_a_file_of_which_prove_has_only_good_news_did_not_fail() -> None:
    end = "Files=3, Tests=24, 1 wallclock secs\nResult: FAIL\n"
    hoped = "t/hoped.t  (Wstat: 0 Tests: 20 Failed: 0)\n  TODO passed:   16\n"
    torn = "t/torn.t   (Wstat: 0 Tests: 3 Failed: 0)\n  Parse errors: Bad plan.\n"
    red = "t/red.t    (Wstat: 512 (exited 2) Tests: 1 Failed: 0)\n  Non-zero exit status: 2\n"

    found = read_output(f"Test Summary Report\n-------------------\n{hoped}{torn}{red}{end}")
    assert (found.failed, found.failed_count) == (("t/red.t", "t/torn.t"), 2)


def test_a_submodule_that_is_missing_is_told_from_its_beginning_and_the_others_by_their_number(
    tmp_path: Path,
) -> None:
    lines = [
        f"submodule vendor/{name} at ../{name}.git: is not there: git fetch: {'x' * 400}\nfatal: no\n"
        for name in "abc"
    ]
    for count, more in (
        (1, ""),
        (2, " 1 other submodule is not there either."),
        (3, " 2 other submodules are not there either."),
    ):
        said = "".join(lines[:count])
        (tmp_path / "output.log").write_text(f"{said}CMake Error\n")
        steps = [{"name": "build", "code": 1, "log": [len(said.encode()), None]}]
        problem = verdicts.read(tmp_path, {"steps": steps}).problem

        assert problem.startswith(
            "build ended with 1: CMake Error. Submodule vendor/a at ../a.git: is not there: git fetch: xxx"
        )
        assert problem.endswith(f"x….{more}"), problem


def test_what_is_missing_of_the_commit_is_told_of_a_green_run_too(tmp_path: Path) -> None:
    parts = ["ubmodule spec at ../spec.git: is not there", "Git LFS keeps 1 file, such as a"]
    said = "s{}\n{}\n".format(*parts)
    (tmp_path / "output.log").write_text(f"{said}ok\n")
    missing = "S{}. {}.".format(*parts)
    for code in (0, 1):
        steps = [{"name": "tests", "code": code, "log": [len(said.encode()), None]}]
        verdict = verdicts.read(tmp_path, {"steps": steps})
        assert (verdict.problem, verdict.missing) == (
            ("", missing) if code == 0 else (f"tests ended with 1: ok. {missing}", "")
        )


def test_a_red_run_names_what_it_did_not_find(tmp_path: Path) -> None:
    perl = "Can't locate {}.pm in @INC (you may need to install the {} module) (@INC entries: /etc/perl)"
    table = [
        (perl.format("File/Next", "File::Next"), "It did not find the Perl module File::Next."),
        ("ModuleNotFoundError: No module named 'yaml'\nE   ModuleNotFoundError: No module named 'six.moves'",
         "It did not find the Python modules yaml, six.moves."),
        ("\n".join(f"Error: Cannot find module '@a/b{number}'" for number in range(5)),
         "It did not find the packages @a/b0, @a/b1, @a/b2 and 2 more."),
        ("Error: Cannot find module './mine'", ""),
        ("in `require': cannot load such file -- rspec/core (LoadError)",
         "It did not find the Ruby library rspec/core."),
        ("LoadError:\n  cannot load such file -- minitest/autorun\n# ./spec/a.rb:13",
         "Ruby library minitest/autorun."),
        ("a_spec.lua:1: module 'lpeg.re2' not found:\n\tno field package.preload['lpeg.re2']",
         "Lua module lpeg.re2."),
        ("a.rkt:1:31: collection not found\n  for module path: quad/base\n  collection: \"quad\"",
         "Racket module quad/base."),
        ("Error: can't find file 'radix'\n\nIf you're trying to require a shard:", "Crystal shard radix."),
        ("a.d(1,18): Error: unable to read module `core`\na.d(1,18):    Expected 'bolts/core.d' or",
         "D module bolts/core."),
        ("Could not locate honey/sql__init.class, honey/sql.clj or honey/sql.cljc on classpath.",
         "Clojure namespace honey/sql."),
        ("\x1b[31mError: Executable doesn't exist at /a/ms-playwright/chromium-1194/chrome",
         "It did not find the browser of Playwright chromium-1194/chrome."),
    ]  # fmt: skip
    for output, sentence in table:
        (tmp_path / "output.log").write_text(f"1 failed\n{output}\nFAILED a.py::a - Error\n1 failed in 1s\n")
        told = verdicts.read(tmp_path, {"steps": [{"name": "tests", "code": 1, "log": [0, None]}]}).problem
        assert told.endswith(sentence or "failed: a.py::a"), told


def test_tests_that_ask_for_what_a_run_does_not_have_are_told_how_to_get_it(tmp_path: Path) -> None:
    for number, (printed, told) in enumerate((
        ("*** Please tell me who you are.\n", "Git knows no author in a run: let the command begin with"),
        ("OSError: [Errno 6] No such device or address: '/dev/tty'\n", "A run has no terminal: `script -qec"),
        ("termios.error: (25, 'Inappropriate ioctl for device')\n", "A run has no terminal: "),
        ("locale.Error: unsupported locale setting\n", "A locale that is asked for is missing on this host"),
        ("Error: this author is unknown\n", ""),
    )):  # fmt: skip
        problem = verdict_on(tmp_path / str(number), f"{printed}FAILED tests/test_a.py::test_b\n").problem
        assert problem.startswith("tests ended with 1: ")
        assert (told in problem) if told else problem.endswith("is unknown"), problem


def test_what_failed_in_the_lost_part_of_a_long_output_may_be_worse(tmp_path: Path) -> None:
    known = verdict_on(tmp_path, text("bats")).tests
    longer = verdict_on(tmp_path, text("pytest") + "noise\n" * 200_000 + text("bats")).tests

    assert compare(known, 1, known, 1).is_no_worse
    assert longer.failed == known.failed
    assert longer.broke_off
    assert not compare(longer, 1, known, 1).is_no_worse


def test_what_the_output_counts_holds_beside_a_report(tmp_path: Path) -> None:
    shutil.copy(DATA / "reports/meson.xml", tmp_path)  # silent about a test that took too long

    reported = read_reports(tmp_path)
    assert reported is not None
    both = together(reported, read_output(text("meson")))

    assert (len(both.failed), both.failed_count, both.are_all_named) == (2, 4, False)
    assert together(reported, read_output(text("pytest_bail"))).broke_off


def test_a_name_is_the_same_in_two_runs_and_two_names_stay_two() -> None:
    slow = "not ok 3 - sells (12.5ms)\n--- FAIL: TestA (0.01s)\n"
    assert tidy("sells (12.5ms)") == tidy("sells  [3 s]") == tidy("sells\t(0,07 sec)") == "sells"
    assert tidy("<Shop at 0x7f2a563c7050>") == tidy("<Shop at 0x7f00cafe1234>")
    assert tidy("reads /tmp/pytest-of-me/pytest-3/a.txt") == tidy("reads /tmp/xyz")
    assert tidy("/runs/12/clone/t.py::a", "/runs/12") == tidy("/runs/7/clone/t.py::a", "/runs/7")
    assert tidy("waits 5s") != tidy("waits 6s")
    assert tidy("gets[/api/a]") != tidy("gets[/api/b]")
    assert tidy("x" * 400 + "a") != tidy("x" * 400 + "b")
    assert len(tidy("x" * 4000)) <= NAME_MAX
    assert "\x1b" not in tidy("a\x1b[31m\u202eb\nc")
    assert read_output(slow) == Tests()  # no runner that we know prints this alone


def test_two_failures_of_one_name_stay_two(tmp_path: Path) -> None:
    report(
        tmp_path,
        f"<testsuites><testsuite>{RED_CASE}</testsuite><testsuite>{RED_CASE}</testsuite></testsuites>",
    )
    twice = "FAILED a.py::works\n1 failed, 1 passed in 0.1s\n" * 2  # one suite in two environments

    assert read_reports(tmp_path) == Tests(("a > b", "a > b (2)"), 2, 2)
    printed = read_output("short test summary info\n" + twice)
    assert printed == Tests(("a.py::works", "a.py::works (2)"), 4, 2)


def test_a_test_that_passed_when_it_was_tried_again_has_not_failed(tmp_path: Path) -> None:
    for cases, failed, count in (
        # Two tests of one name look the same, so it still counts: the list does not explain the redness.
        (RED_CASE + GREEN_CASE, (), 1),
        (GREEN_CASE + RED_CASE, ("a > b",), 1),
        (RED_CASE + GREEN_CASE + RED_CASE, ("a > b", "a > b (2)"), 2),
        # Without a class of its own it is another test, as in node's reports.
        ((RED_CASE + GREEN_CASE).replace('"a"', '"test"'), ("b",), 1),
    ):
        report(tmp_path, f"<testsuite>{cases}</testsuite>")
        tests = read_reports(tmp_path)
        assert tests is not None
        assert (tests.failed, tests.failed_count) == (failed, count)


# --- Hostile ones -----------------------------------------------------------------------------------------


def test_a_hostile_report_is_not_used(tmp_path: Path) -> None:
    entities = (
        '<!DOCTYPE a [<!ENTITY x "yy">]><testsuite><testcase name="&x;"><failure/></testcase></testsuite>'
    )
    outside = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite>&x;</testsuite>'
    for content in (
        entities,
        outside,
        "<testsuite>" * 60,
        "<a>" * 100_000,
        "<testsuite",
        "",
        b"\xff\xfe\0",
        "{}",
    ):
        report(tmp_path, content)
        assert read_reports(tmp_path) is None, content[:60]

    report(tmp_path, "<coverage/>")
    assert read_reports(tmp_path) is None
    assert read_reports(tmp_path / "nothing") is None


def test_a_link_or_a_pipe_is_not_opened(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    (outside / "folder").mkdir(parents=True)
    inside.mkdir()
    report(outside, '<testsuite><testcase name="secret"><failure/></testcase></testsuite>')
    (inside / "link.xml").symlink_to(outside / "report.xml")
    (inside / "folder").symlink_to(outside)
    os.mkfifo(inside / "pipe.xml")
    (inside / "folder.xml").mkdir()
    assert read_reports(inside) is None

    # Beside a usable one they are tests that nobody knows: the list is not the whole.
    report(inside, '<testsuite><testcase name="a" classname="b"/></testsuite>')
    assert read_reports(inside) == Tests((), 1, 0, broke_off=True)


def test_numbers_that_a_report_claims_are_bounded(tmp_path: Path) -> None:
    cases = "".join(f'<testcase name="{n}{"x" * 900}"><error/></testcase>' for n in range(NAMES_MAX + 50))
    report(tmp_path, f'<testsuite failures="{"9" * 5000}" errors="-3">{cases}</testsuite>')

    tests = read_reports(tmp_path)

    assert tests is not None
    assert (len(tests.failed), tests.failed_count) == (NAMES_MAX, NAMES_MAX + 50)
    assert not tests.are_all_named
    assert max(map(len, tests.failed)) <= NAME_MAX


CONTROLS = re.compile(r"[\x00-\x1f\x7f\u2028\u202e]")
HEAD = "".join(f"{sign}\n" for runner in RUNNERS.values() for sign in runner.signs) + "TAP version 13\n1..3\n"
PIECES = [
    "FAILED ",
    "ERROR ",
    "a::b",
    "[x",
    "] ",
    " - ",
    "FAIL: ",
    " (",
    ")",
    "1 failed, ",
    "2 passed",
    " in 0.1s",
    "Ran 1 test in 1s\n\nFAILED (failures=1)",
    "  1) a\n",
    "       b:\n",
    "not ok 1 - ",
    "ok 2\n",
    "    ",
    "# Subtest: a",
    "--- FAIL: A",
    "FAIL\tp\t1s",
    "test a ... FAILED",
    "test result: FAILED. 1 failed; ",
    "     Running a (b)",
    "  ● a › b",
    " FAIL a > b",
    "t/a.t (Wstat: 1 Tests: 1 Failed: 1)\n",
    "  Failed tests:  1-9999999\n",
    "Files=1, Tests=1, x\nResult: FAIL",
    "\x1b[31m",
    "\x1b]",
    "\r",
    "\0",
    "# TOTAL: 1\n# FAIL: 1\n",
    "Ok: 1\nFail: 2\n",
    "fatal error: a.h: No such file or directory\n",
    "sh: 1: go: not found",
    "/tmp/x",
    "0x7f2a563c7050",
    "9" * 30,
    "ℹ tests 1\nℹ fail 1\n",
    "test at a:1:1\n✖ a (1ms)",
    "<testsuite>",
    "<testcase name='a'>",
    "<failure/>",
    "</testcase>",
]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*PIECES, "\n", "\n"]) | st.text(max_size=8), max_size=60), st.integers(-9, 255)
)
def test_whatever_was_printed_it_is_read_without_an_error_and_bounded(parts: list[str], code: int) -> None:
    for output in ("".join(parts), HEAD + "".join(parts)):
        tests = read_output(output, "/tmp/x")
        assert list(tests.failed) == sorted(set(tests.failed))
        assert len(tests.failed) <= NAMES_MAX
        assert all(
            name.strip() and len(name) <= NAME_MAX and not CONTROLS.search(name) for name in tests.failed
        )
        assert (tests.failed_count is None) or tests.failed_count >= len(tests.failed)
        said = environment_fault(output, code)
        assert len(said) < 300
        assert "\n" not in said
        assert read_output(output, "/tmp/x") == tests
        held = compare(tests, code, tests, code)
        assert set(held.newly_red) <= set(tests.failed)
        assert not compare(tests, code or 1, tests, 0).is_no_worse


@settings(max_examples=100, deadline=None)
@given(parts=st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=40))
def test_whatever_a_report_holds_it_is_read_without_an_error(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("reports")
    report(folder, "<testsuites>" + "".join(parts))
    assert read_reports(folder) is None  # it is never closed

    report(folder, "<testsuite>" + RED_CASE * len(parts) + "</testsuite>")
    tests = read_reports(folder)
    assert tests is not None
    assert len(tests.failed) == len(parts)


def test_the_time_grows_with_the_length_of_the_text() -> None:
    def seconds(unit: str, length: int) -> float:
        output = HEAD + unit * (length // len(unit)) + HEAD
        begin = time.process_time()
        read_output(output)
        environment_fault(output, 1)
        return time.process_time() - begin

    # Beginnings of what the patterns look for, without an end, and whole lines of the dearest ones.
    for unit in (
        "FAILED a[", "FAILED a[] - ", "SUBFAILED[", "  1) a\n       b\n", "1 failed, ", "t/a (Wstat: ",
        "\x1b[1;", "\x1b]", "9", "a > b ", "x Time elapsed: ", "\n\n", "not ok 1 - a\n", "fatal error: a.h",
        "  Failed tests:  1-9999999\n",
    ):  # fmt: skip
        small, large = seconds(unit, 2**15), seconds(unit, 2**18)
        assert large < 8 * 4 * max(small, 0.01), unit  # eight times the text; a square would be 64 times


# --- Against a base that is red ---------------------------------------------------------------------------

KNOWN = Tests(("a", "b"), 100, 2)
UNNAMED = Tests((), 100, 4)
OTHER_STEP = Tests((), 100, 0)
BROKEN = Tests(("a",), 10, 1, broke_off=True)

# now, its exit code, the base, its exit code, whether it is no worse, what the reason says
TRUTH: list[tuple[Tests, int | None, Tests, int | None, bool, str]] = [
    # Green is green, whatever was printed.
    (Tests(), 0, KNOWN, 1, True, "green"),
    (KNOWN, 0, Tests(), None, True, "green"),
    # A green base has nothing to excuse.
    (KNOWN, 1, Tests(("a", "b"), 100, 2), 0, False, "base is green"),
    # The same names, fewer of them, and another code that says the same.
    (KNOWN, 1, KNOWN, 1, True, "Only what is red"),
    (Tests(("a",), 100, 1), 1, KNOWN, 1, True, "1 of the base's"),
    (Tests(("a",), 100, 1), 1, KNOWN, 2, True, "Only what is red"),
    (Tests(("a",), 60, 1), 1, KNOWN, 1, True, "Only what is red"),
    # One more, or another one.
    (Tests(("a", "b", "c"), 100, 3), 1, KNOWN, 1, False, "Newly red: c"),
    (Tests(("c",), 100, 1), 1, KNOWN, 1, False, "Newly red: c"),
    (Tests(("a (2)", "a"), 100, 2), 1, Tests(("a",), 100, 1), 1, False, "Newly red: a (2)"),
    (Tests(("c",), 100, 1), 1, UNNAMED, 1, False, "Newly red: c"),
    # It did not run to its end.
    (KNOWN, None, KNOWN, 1, False, "without an exit code"),
    (KNOWN, -9, KNOWN, 1, False, "-9"),
    (KNOWN, 127, KNOWN, 127, False, "127"),
    (KNOWN, 139, KNOWN, 139, False, "139"),
    (replace(KNOWN, broke_off=True), 2, KNOWN, 1, False, "broke off"),
    (Tests(("a",), 49, 1), 1, KNOWN, 1, False, "Only 49 tests ran"),
    (Tests(("a",), None, 1), 1, KNOWN, 1, False, "not told"),
    # The base broke off as well: only the very same.
    (BROKEN, 2, BROKEN, 2, True, "Only what is red"),
    (BROKEN, 1, BROKEN, 2, False, "another place"),
    (replace(BROKEN, total=9), 2, BROKEN, 2, False, "another place"),
    (replace(BROKEN, failed=(), failed_count=0), 2, BROKEN, 2, False, "another place"),
    (Tests((), 0, 0, broke_off=True), 3, Tests((), 0, 0, broke_off=True), 3, False, "another place"),
    # Nothing counted: no compiler's error is like another one.
    (Tests(), 2, Tests(), 2, False, "Nothing tells"),
    (Tests(), 2, Tests(("a",), None, 1), 2, False, "Nothing tells"),
    (Tests(("a",), 100, None), 1, KNOWN, 1, False, "Nothing tells"),
    (KNOWN, 1, Tests(("a", "b"), 100, None), 1, False, "Nothing tells"),
    # Tests are green now, and a step behind them is red that the base never reached.
    (OTHER_STEP, 1, KNOWN, 1, False, "No test failed, but"),
    (OTHER_STEP, 1, OTHER_STEP, 1, True, "No test failed;"),
    (OTHER_STEP, 2, OTHER_STEP, 1, False, "exit code is 2"),
    (KNOWN, 1, OTHER_STEP, 1, False, "Newly red"),
    # Counts without names.
    (UNNAMED, 1, UNNAMED, 1, True, "no more failed tests"),
    (Tests((), 100, 3), 1, UNNAMED, 1, True, "no more failed tests"),
    (Tests((), 100, 5), 1, UNNAMED, 1, False, "5 tests failed, on the base 4"),
    (UNNAMED, 2, UNNAMED, 1, False, "exit code is 2"),
    (Tests((), 100, 1), 1, KNOWN, 1, False, "without names"),
    # A list that is not the whole: the third may be anything.
    (replace(KNOWN, failed_count=3), 1, KNOWN, 1, False, "3 tests failed, on the base 2"),
    (replace(KNOWN, failed_count=3), 2, replace(KNOWN, failed_count=3), 1, False, "exit code is 2"),
    (replace(KNOWN, failed_count=3), 1, replace(KNOWN, failed_count=3), 1, True, "no more failed tests"),
]


def test_a_red_run_is_held_against_the_known_base() -> None:
    for row, (now, code, known, known_code, is_no_worse, says) in enumerate(TRUTH):
        held = compare(now, code, known, known_code)
        assert (held.is_no_worse, says in held.says) == (is_no_worse, True), (row, held)
        assert {*held.newly_red, *held.known_red} == set(now.failed) or held.is_no_worse
        assert set(held.known_red) == set(now.failed) & set(known.failed)


def test_a_captured_run_is_no_worse_than_itself_and_a_part_of_it_never_is() -> None:
    for name in PRINTED:
        tests = read_output(text(name))
        assert compare(tests, 1, tests, 1).is_no_worse, name
        assert not compare(Tests(), 1, tests, 1).is_no_worse, name
        lines = text(name).splitlines()
        for cut in range(1, len(lines)):
            end = read_output("\n".join(lines[cut:]), is_whole=False)
            assert end.broke_off
            assert tests.broke_off or not compare(end, 1, tests, 1).is_no_worse, (name, cut)
            # Cut before its end, as by a crash: where it says that it named all, it did.
            beginning = read_output("\n".join(lines[:cut]))
            if beginning.are_all_named and beginning.failed and not beginning.broke_off:
                assert beginning.failed == tests.failed, (name, cut)


def test_an_installation_says_what_it_could_not_get() -> None:
    ignored = (
        "ERROR: Ignored the following versions that require a different python version: 6.0 Requires-Python"
        " >=3.12; 6.1 Requires-Python >=3.12\n"
    )
    for version, says in (
        ("6.1", "This host's Python does not fit what is required (>=3.12)."),
        ("6.9", REGISTRY.format("ledger==6.9")),
    ):
        wanted = (
            f"ERROR: Could not find a version that satisfies the requirement ledger=={version} (from"
            f" versions: 5.1, 5.2)\nERROR: No matching distribution found for ledger=={version}\n"
        )
        assert environment_fault(ignored + wanted, 1) == says
    for_an_extra = 'ERROR: No matching distribution found for ledger; extra == "test"\n'
    assert environment_fault(for_an_extra, 1) == REGISTRY.format("ledger")
    access = "fatal: unable to access 'https://git.example/a/': "
    retried = (
        "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'SSLError("
        "SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed'))': /a/"
    )
    for said, host in (
        (f"{access}SSL certificate problem: self-signed certificate", "git.example"),
        (f"{access}server certificate verification failed. CAfile: none CRLfile: none", "git.example"),
        (f"{retried}\nERROR: No matching distribution found for a", ""),
        (
            "npm error request to https://registry.example/a failed, reason: self-signed certificate in"
            " certificate chain",
            "registry.example",
        ),
        (
            'go: a@v1: Get "https://proxy.example/a/@v/v1.mod": tls: failed to verify certificate: x509:'
            " certificate signed by unknown authority",
            "proxy.example",
        ),
        ("PKIX path building failed: unable to find valid certification path to requested target", ""),
        ("error: invalid peer certificate: UnknownIssuer", ""),
        ("curl: (60) SSL certificate problem: unable to get local issuer certificate", ""),
    ):
        fault = environment_fault(f"{said}\n", 1)
        assert fault == f"The certificate of a server is not trusted on this host{host and f' ({host})'}.", (
            said
        )
        assert not is_passing(fault)
    by_git = "fatal: unable to access 'https://git.example/a/b/': CONNECT tunnel failed, response 502\n"
    assert environment_fault(f"error: Failed to download `a`\n{by_git}\nhint: it was included\n", 1) == (
        UNREACHED_AT.format("git.example")
    )
    tried = "".join(
        f"      Trying pkg-config --exists {name}\n"
        f"      Command 'pkg-config --exists {name}' returned non-zero exit status 1.\n"
        for name in ("zzlib", "libzz")
    )
    assert environment_fault(f"{tried}Exception: Can not find valid pkg-config name.\n", 1) == LIBRARY.format(
        "zzlib"
    )


def test_a_flaky_test_failed_once_and_not_again() -> None:
    first = Tests(("a", "b"), 10, 2)

    assert flaky(first, Tests(("a",), 10, 1)) == ("b",)
    assert flaky(first, Tests((), 10, 0)) == ("a", "b")
    assert flaky(first, Tests((), 10, 1)) == ()  # somebody failed without a name
    assert flaky(first, Tests(("a",), 10, 1, broke_off=True)) == ()
    assert flaky(first, Tests()) == ()


# --- The surroundings -------------------------------------------------------------------------------------

MISSING = "The program `gopher` is missing on this host."
UNREACHED = "A package registry or another server could not be reached."
UNREACHED_AT = "A package registry or another server could not be reached ({})."
LIBRARY = "A library of the system is missing on this host: {}."
REGISTRY = "The package registry does not have {}."
MEMORY = "A process ran out of memory, or the host ended it for lack of memory."
FAULTS = {
    "cargo_offline": (101, REGISTRY.format("no-such-crate-of-ours")),
    "cargo_refused": (101, UNREACHED_AT.format("127.0.0.1")),
    "cargo_tunnel": (101, UNREACHED_AT.format("index.registry.example")),
    "cargo_version": (101, "This host's Rust is older than is required (1.999)."),
    "clojure_other": (
        1,
        "The clojure of this host knows no option -P: it is Clojure's library, as Debian packages it, and not"
        " its command line, which Clojure's own installer brings.",
    ),
    "cmake_module": (1, LIBRARY.format("LibArchive")),
    "cmake_package": (1, LIBRARY.format("ZZLIB")),
    "cmake_version": (1, "A tool of this host is older than is required (CMake 3.99)."),
    "disk": (1, "The disk of this host is full."),
    "dub_compiler": (
        2,
        "A tool of this host is older than is required (sumtype frontend requirement: >=2.103.0).",
    ),
    "dub_none": (2, REGISTRY.format("bolts")),
    "env_program": (127, MISSING),
    "env_shebang": (127, MISSING),
    "gcc_link": (1, LIBRARY.format("zzlib")),
    "gcc_own": (1, ""),  # a header in quotes is the repository's own
    "gcc_system": (1, LIBRARY.format("zzlib.h")),
    "gem": (2, UNREACHED),
    "go_gateway": (1, UNREACHED_AT.format("proxy.example.org")),
    "go_off": (1, UNREACHED),
    "go_refused": (1, UNREACHED),
    "go_version": (2, "This host's Go is older than is required (1.99)."),
    "interpreter_bash": (127, ""),
    "interpreter_dash": (127, ""),
    "killed": (1, MEMORY),
    "killed_make": (2, MEMORY),
    "make": (2, MISSING),
    "make_shell": (2, MISSING),
    "maven_java": (1, "This host's Java does not fit what is required (99)."),
    "maven_offline": (1, UNREACHED),
    "meson_dependency": (1, LIBRARY.format("zzlib")),
    "meson_program": (1, MISSING),
    "meson_version": (1, "A tool of this host is older than is required (>=99)."),
    "mix_version": (1, "A tool of this host is older than is required (Elixir ~> 1.17)."),
    "npm_404": (1, REGISTRY.format("no-such-package-of-ours-qq@1")),
    "npm_engine": (
        1,
        'This host\'s Node.js or its package manager does not fit what is required ({"node":">=99"}).',
    ),
    "npm_name": (1, UNREACHED_AT.format("nothing.invalid")),
    "npm_refused": (1, UNREACHED_AT.format("127.0.0.1")),
    "npm_script": (127, MISSING),
    "npm_version": (1, REGISTRY.format("is-odd@99.0.0")),
    "own_script": (127, ""),  # a path is a script that the repository lacks
    "pip_header": (1, LIBRARY.format("zzlib.h")),
    "pip_name": (1, REGISTRY.format("nothing")),
    "pip_none": (1, REGISTRY.format("no-such-package-of-ours-qq")),
    "pip_python": (1, "This host's Python does not fit what is required (3.11.7 not in '>=3.99')."),
    "pip_refused": (1, REGISTRY.format("nothing")),
    "gyp_headers": (1, UNREACHED_AT.format("downloads.example")),
    "pip_tunnel": (1, UNREACHED),
    "pip_version": (1, REGISTRY.format("pytest==999")),
    "pkgconfig": (1, LIBRARY.format("zzlib")),
    "python_program": (1, MISSING),
    "rustup_none": (1, "Rust has no default toolchain on this host."),
    "rustup_part": (
        1,
        "Rust's toolchain stable-x86_64-unknown-linux-gnu lacks what the repository asks of it, and a run"
        " may not add that; where the repository lies, `rustup toolchain install` does, as the user who runs"
        " the work.",
    ),
    "script": (127, MISSING),
    "sh_bash": (127, MISSING),
    "sh_busybox": (127, MISSING),
    "sh_dash": (127, MISSING),
    "yarn_404": (1, REGISTRY.format("no-such-package-2.0.0.tgz")),
    "yarn_tunnel": (1, UNREACHED_AT.format("registry.example")),
}


def test_what_the_surroundings_lack_is_named() -> None:
    assert {path.stem for path in (DATA / "faults").glob("*.txt")} == FAULTS.keys()
    for name, (code, says) in FAULTS.items():
        assert environment_fault(text(f"faults/{name}"), code) == says, name


def test_with_a_missing_program_it_is_said_what_brings_it(tmp_path: Path) -> None:
    for number, (printed, problem) in enumerate((
        ("Error: spawn yarn ENOENT", "`yarn` is missing on this host. What brings it: the npm package yarn."),
        ("  ValueError: Aborting. Could not find cmd (pnpm) in path.",
         "`pnpm` is missing on this host. What brings it: the npm package pnpm."),
        ("/bin/sh: 1: erl: not found\nmake: *** [a.mk:5: b] Error 127",
         "`erl` is missing on this host. What brings it: Debian and Ubuntu: apt install erlang."),
        ("make: gopher: No such file or directory", "The program `gopher` is missing on this host."),
        ("error: clang-format not found; install clang-format\nmake: *** [Makefile:9: format-check] Error 1",
         "The program `clang-format` is missing on this host."),
        ("./check.sh: gopher is not installed. Please install it first.",
         "The program `gopher` is missing on this host."),
        ("error: 'cargo-fmt' is not installed for the toolchain 'stable-x86_64-unknown-linux-gnu'.\n"
         "To install, run `rustup component add rustfmt`",
         "`cargo-fmt` is missing on this host. What brings it: `rustup component add rustfmt` as the user who"
         " runs the work; Debian and Ubuntu: apt install rustfmt."),
        ("error: no such command: `clippy`\n\nhelp: view all installed commands with `cargo --list`",
         "`cargo-clippy` is missing on this host. What brings it: `rustup component add clippy` as the user"
         " who runs the work; Debian and Ubuntu: apt install rust-clippy."),
        ("error: no such command: `nextest`\n\nhelp: a command with a similar name exists: `test`",
         "`cargo-nextest` is missing on this host. What brings it: `cargo install cargo-nextest`."),
    )):  # fmt: skip
        assert verdict_on(tmp_path / str(number), printed).problem.endswith(problem)


def test_a_server_of_their_own_that_tests_ask_in_vain_is_named_by_its_port(tmp_path: Path) -> None:
    for number, (printed, port) in enumerate((
        ("Error: connect ECONNREFUSED 127.0.0.1:5432\n", "5432"),
        ("dial tcp [::1]:6379: connect: connection refused\n", "6379"),
        ('connection to server at "localhost" (127.0.0.1), port 5433 failed: Connection refused\n', "5433"),
        ("redis: Error 111 connecting to localhost:6380. Connection refused.\n", "6380"),
        ("Connection to localhost:3306 refused. Check that it runs.\n", "3306"),
        ("Connected to 127.0.0.1:99.\nAccess refused.\n", ""),
        ("dial tcp 10.0.0.7:5432: connect: connection refused\n", ""),
    )):  # fmt: skip
        problem = verdict_on(tmp_path / str(number), f"{printed}FAILED tests/test_a.py::test_b\n").problem
        said = re.findall(r"Nothing answers at port (\d+):", problem)
        assert said == ([port] if port else []), (printed, problem)


def test_a_server_that_only_a_report_says_was_asked_in_vain_is_named_too(tmp_path: Path) -> None:
    refused = "Connection to localhost:5432 refused."
    for number, (inside, port) in enumerate((
        (f'<failure message="{refused}"/>', "5432"),
        (f"<error>org.Exception: {refused}\n\tat a.B</error>", "5432"),
        (f"<error>{'x' * 70_000} {refused}</error>", ""),
        (f"<failure/><system-out>{refused}</system-out>", ""),
    )):  # fmt: skip
        reports = tmp_path / str(number) / "clone/target/surefire-reports"
        reports.mkdir(parents=True)
        case = f'<testcase classname="A" name="b">{inside}</testcase>'
        (reports / "a.xml").write_text(f'<testsuite name="A">{case}</testsuite>')
        problem = verdict_on(tmp_path / str(number), "Tests run: 1, Failures: 1\n").problem
        assert re.findall(r"Nothing answers at port (\d+):", problem) == ([port] if port else []), problem


def test_a_registry_of_this_machine_that_the_sandbox_closes_is_named(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "is_on", lambda: True)
    monkeypatch.setenv("PIP_INDEX_URL", "http://lea:secret@127.0.0.1:3141/simple")
    refused = "NewConnectionError('Failed to establish a new connection: [Errno 111] Connection refused')\n"
    for number, (passed, hosts, printed, told) in enumerate((
        (["PIP_INDEX_URL"], [], refused, True),
        (["PIP_INDEX_URL"], ["127.0.0.1:3141"], refused, False),
        ([], [], refused, False),
        (["PIP_INDEX_URL"], [], "AssertionError\n", False),
    )):  # fmt: skip
        settings.PASS_TO_BUILDS, settings.SANDBOX_HOSTS = passed, hosts
        problem = verdict_on(tmp_path / str(number), printed).problem
        said = "PIP_INDEX_URL names a server of this machine. allowed_hosts cannot open 127.0.0.1:3141; "
        assert (said in problem) == told, problem
        assert "secret" not in problem


def test_reports_behind_a_link_are_not_read(tmp_path: Path) -> None:
    """Nobody inside sees what lies there, but the host does: the reports of another project's run."""
    secret = tmp_path / "other" / "clone" / "target" / "surefire-reports"
    secret.mkdir(parents=True)
    case = '<testcase classname="A" name="secret"><failure message="hush"/></testcase>'
    (secret / "a.xml").write_text(f'<testsuite name="A">{case}</testsuite>')
    for number, (link, leads) in enumerate((
        ("clone/target/surefire-reports", secret), ("clone/target", secret.parent),
        ("reports/first", secret), ("reports", secret.parents[2]),
        ("clone/target/surefire-reports/x", secret),
        ("clone/target/surefire-reports/a.xml", secret / "a.xml"), ("clone/target", Path("target")),
    )):  # fmt: skip
        place = tmp_path / str(number) / link
        place.parent.mkdir(parents=True)
        place.symlink_to(leads)
        if link == "reports":
            (leads / "first").symlink_to(secret)
        verdict = verdict_on(tmp_path / str(number), "Tests run: 1, Failures: 1\n")
        assert not verdict.tests.failed, link
        assert "hush" not in f"{verdict.problem}{verdict.tests.said}", link


def test_tests_that_met_the_proxy_of_the_sandbox_are_told_how_to_go_without(tmp_path: Path) -> None:
    met = "E  assert {'all://': 'http://127.0.0.1:27081'} == {}\n"
    names = "".join(f"FAILED tests/test_{'x' * 200}.py::test_{number}\n" for number in range(3))
    red = f"=== short test summary info ===\n{names}=== 3 failed in 0.1s ===\n"
    for number, (printed, told) in enumerate((
        (met + red, True), (met.replace("27081", "8080") + red, False), (met, False),
    )):  # fmt: skip
        problem = verdict_on(tmp_path / str(number), printed).problem
        assert ("begin with `unset HTTP_PROXY HTTPS_PROXY " in problem) == told, problem
        if told:
            assert problem.startswith("tests ended with 1: 3 failed: tests/")
            assert problem.endswith("all_proxy;`.")
            assert len(problem) <= 500


def test_a_node_that_is_too_old_for_the_manager_of_packages_is_told() -> None:
    told = "This host's Node.js or its package manager does not fit what is required{}."
    asked = "warn: This version of pnpm requires at least Node.js v22.13\n"
    broke = "Error [ERR_UNKNOWN_BUILTIN_MODULE]: No such built-in module: node:sqlite\n    at require (x:1)\n"
    assert environment_fault(asked + broke, 1) == told.format(" (22.13)")
    assert environment_fault(broke, 1) == told.format("")


def test_what_wants_a_docker_that_does_not_answer_is_told() -> None:
    for said in (
        "docker: Cannot connect to the Docker daemon at unix:///a.sock. Is the docker daemon running?",
        "failed to connect to the docker API at unix:///a.sock; check if the path is correct",
        "java.lang.IllegalStateException: Could not find a valid Docker environment. Please see logs",
        "docker.errors.DockerException: Error while fetching server API version: ('Connection aborted.',)",
    ):
        fault = environment_fault(f"{said}\nmake: *** [Makefile:2: check] Error 125\n", 2)
        assert fault.startswith("Docker does not answer here."), said


def test_a_command_that_finds_nothing_of_its_own_is_not_told_as_red_tests() -> None:
    told = "The command does not fit what is in its folder: there is no {} for it."
    for said, it in (
        ("ninja: error: loading 'build.ninja': No such file or directory", "build.ninja"),
        ("make: *** No targets specified and no makefile found.  Stop.", "makefile"),
        ("make: *** No rule to make target 'check'.  Stop.", "target 'check'"),
        ('npm error Missing script: "test"\nnpm error\nnpm error To see a list', 'script: "test"'),
        ("error: could not find `Cargo.toml` in `/a/b` or any parent directory", "Cargo.toml"),
        ("go: go.mod file not found in current directory or any parent directory", "go.mod"),
        (
            'CMake Error: The source directory "/a" does not appear to contain CMakeLists.txt.',
            "CMakeLists.txt",
        ),
        ("ERROR: file or directory not found: tests/unit\n\nno tests ran in 0.01s", "tests/unit"),
        ("make: *** No rule to make target 'b.h', needed by 'a.o'.  Stop.", ""),
        ("make[1]: *** No rule to make target 'part'.  Stop.\nmake: *** [all] Error 2", ""),
        ("not ok 1 - reads\n# ninja: error: loading 'build.ninja': No such file or directory", ""),
    ):
        assert environment_fault(f"{said}\n", 2) == (told.format(it) if it else ""), said


def test_a_file_of_the_host_that_a_run_may_not_use_is_named() -> None:
    for said, place in (
        ("ERROR: Could not install: [Errno 13] Permission denied: '/srv/a.whl'", "/srv/a.whl"),
        ("npm error Error: EACCES: permission denied, mkdir '/usr/lib/a'", "/usr/lib/a"),
        ("PermissionError: [Errno 13] Permission denied: './run.sh'", ""),
        ("PermissionError: [Errno 13] Permission denied: '/home/a/runs/1/clone/run.sh'", ""),
    ):  # fmt: skip
        told = f"The user of a run may not use {place} on this host." if place else ""
        assert environment_fault(f"{said}\n", 1) == told


def test_a_compiler_that_is_not_found_is_named() -> None:
    for said in (
        "  Could not find compiler set in environment variable CXX:\n\n  clang++.\n\nCall Stack:\n",
        "  The CMAKE_CXX_COMPILER:\n\n    clang++\n\n  is not a full path and was not found in the PATH.\n",
        "a/meson.build:1:0: ERROR: Unknown compiler(s): [['clang++']]\nThe following exception(s) were:\n",
        'error occurred in cc-rs: failed to find tool "clang++": No such file or directory\n',
    ):
        assert environment_fault(said, 1) == "The program `clang++` is missing on this host.", said
    said = "CMake Error at CMakeLists.txt:2 (project):\n  No CMAKE_CXX_COMPILER could be found.\n"
    assert "`CMAKE_CXX_COMPILER`" in environment_fault(said, 1)
    assert known_hint(missing_program(environment_fault(said, 1))) == "Debian and Ubuntu: apt install g++"
    assert "`libtoolize`" in environment_fault(
        'autoreconf: Can\'t exec "libtoolize": No such file or directory\n', 1
    )


def test_what_the_host_itself_saw_counts_whatever_was_printed() -> None:
    red = text("pytest")

    assert environment_fault(red, None, "timeout") == "It took longer than its time limit."
    assert "signal 9" in environment_fault(red, 137)
    assert "signal 9" in environment_fault(red, -9)
    assert (
        environment_fault("", 127)
        == "A program that the commands call is missing on this host (exit code 127)."
    )
    assert environment_fault("", 1, "bytes") == ""


def test_red_tests_are_the_work_s_own_fault() -> None:
    for name in PRINTED:
        assert environment_fault(text(name), 1) == "", name


# What people read first of an output that names no test.
CAUSES = {
    "faults/cargo_offline": "error: no matching package named `no-such-crate-of-ours` found",
    "faults/cmake_package": "CMake Error at CMakeLists.txt:3 (find_package):",
    "faults/gcc_own": "h2.c:1:10: fatal error: mine.h: No such file or directory",
    "faults/maven_java": "[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler",
    "faults/meson_dependency": 'me/meson.build:2:0: ERROR: Dependency "zzlib" not found, tried ',
    "faults/npm_script": "sh: 1: gopher: not found",
    "faults/npm_refused": "npm error FetchError: request to http://127.0.0.1:9/is-odd failed, reason:",
    "faults/python_program": "FileNotFoundError: [Errno 2] No such file or directory: 'gopher'",
    "pytest_collect": "ModuleNotFoundError: No module named 'no_such_module'",
    "urchin": "2 tests failed.",
}


def test_the_line_that_says_why_is_found_in_what_tools_print_after_it() -> None:
    for name, begins in CAUSES.items():
        assert cause(text(name)).startswith(begins), name
    typed = "a.ts(3,5): error TS2304: Cannot find name 'b'."
    assert cause(f"{typed}\nnpm error code 2\nnpm error Lifecycle script failed") == typed
    assert cause("make: *** [all] Error 1\n-----\n\n") == ""
    assert len(cause("\x1b[31m" + "x" * 10_000)) == CAUSE_MAX


@for_each("words", [text("faults/npm_name"), text("faults/disk"), text("faults/make")])
def test_words_of_a_test_are_no_sign(words: str) -> None:
    # Tests that ran and failed by name explain the end; words far above it are nobody's last words.
    assert environment_fault(text("pytest") + words, 1) == ""
    assert environment_fault(words + text("pytest"), 1) == ""
    assert environment_fault(words + "compiling\n" * 200 + "syntax error\n", 1) == ""
    assert environment_fault("compiling\n" * 200 + words, 1) != ""
    assert environment_fault(words, 0) == ""
