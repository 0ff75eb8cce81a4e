"""The build tries a few real walks once more, alone, and keeps a ledger of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

STEADY = Path(__file__).resolve().parents[1] / ".ci" / "steady.py"
UNSTEADY = """
@pytest.mark.slow
def test_now_and_then():
    seen = pathlib.Path("seen")
    if not seen.exists():
        seen.touch()
        assert "a loaded machine" == ""
"""
BROKEN = """
@pytest.mark.slow
def test_never():
    assert "a defect" == ""
"""
MANY = """
@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_none_of(number):
    assert number < 0
"""
UNMARKED = UNSTEADY.replace("@pytest.mark.slow", "")
FINE = """
def test_always():
    pass
"""


@pytest.fixture
def suite(tmp_path: Path):
    """Runs a suite of these tests, steadily."""

    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    kept["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # ours take a second to load and have no part in this

    def run(*tests: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "seen").unlink(missing_ok=True)
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    browser\n")
        (tmp_path / "test_it.py").write_text("import pathlib\nimport pytest\n" + "".join(tests))
        return subprocess.run(
            [sys.executable, str(STEADY), sys.executable, "-m", "pytest"], cwd=tmp_path, env=kept,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def test_a_suite_that_passes_runs_once(suite):
    done = suite(FINE)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("test session starts") == 1


def test_what_fails_once_is_named_as_unsteady_with_what_it_said(suite):
    done = suite(FINE, UNSTEADY)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("test session starts") == 2
    end = done.stdout[done.stdout.rindex("\n---") :]
    assert "assert 'a loaded machine' == ''" in end
    said = "1 tests failed under load and passed alone: unsteady, now in .ci/unsteady.txt"
    assert end.strip().endswith(f"{said}\n    test_it.py::test_now_and_then")


def test_a_second_time_it_fails_the_build(suite):
    suite(UNSTEADY)
    done = suite(FINE, UNSTEADY)
    assert done.returncode == 1
    assert done.stdout.count("test session starts") == 1
    assert "not tried again: already in .ci/unsteady.txt: test_it.py::test_now_and_then." in done.stdout


def test_what_starts_no_process_is_not_tried_again(suite):
    done = suite(UNMARKED)
    assert done.returncode == 1
    assert done.stdout.count("test session starts") == 1
    assert "not tried again: not marked slow or browser: test_it.py::test_now_and_then." in done.stdout


def test_what_fails_twice_fails_the_build_and_stands_at_the_end(suite):
    done = suite(FINE, UNSTEADY, BROKEN)
    assert done.returncode == 1, done.stdout
    end = done.stdout[done.stdout.rindex("\n---") :]
    assert "assert 'a defect' == ''" in end
    assert "failed twice" in end
    assert end.strip().endswith("\n    test_it.py::test_never")


def test_many_failures_are_no_accident(suite):
    done = suite(MANY)
    assert done.returncode == 1
    assert done.stdout.count("test session starts") == 1
    assert "4 tests failed; not tried again: more than 3 are no accident." in done.stdout


def test_a_run_that_broke_off_is_not_saved_by_the_few_tests_that_it_reached(suite):
    done = suite(UNSTEADY, "def test_stop():\n    pytest.exit('the machine stops', returncode=2)\n")
    assert done.returncode == 2
    assert done.stdout.count("test session starts") == 1
