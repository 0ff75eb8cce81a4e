"""Run the whole suite once, and alone what failed in it: `steady.py COMMAND...`, the command being pytest's.

A loaded machine makes a few honest tests fail that start processes and wait for them. What fails a second
time, with the machine to itself, fails the build; what passes then is named as unsteady, with what it said at
first. Nothing is tried again where tests were skipped that may not be, where the run itself broke off (a
status other than 1), or where so many failed that it is no accident.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

LIMIT = 15  # more failures than these are tried no second time
SLOWEST = 25
SHOWN = 60  # lines of each failure, the last ones
FAILED = 1  # pytest's status for "some tests failed", and for nothing else
CACHE = Path(".pytest_cache/v/cache/lastfailed")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def run(command: list[str], report: Path) -> int:
    return subprocess.run([*command, f"--junit-xml={report}"], check=False).returncode


def failures(report: Path) -> Iterator[tuple[str, str]]:
    """Names of the tests that failed by pytest's report, with the end of what each said."""
    if not report.exists():
        return
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (written by our own pytest)
        for kind in ("failure", "error"):
            for failure in case.iter(kind):
                lines = (failure.text or failure.get("message") or "").rstrip().splitlines()
                yield f"{case.get('classname')}::{case.get('name')}", "\n".join(lines[-SHOWN:])


def tell(report: Path) -> list[str]:
    """Print each failure of a report. Their names."""
    found = list(failures(report))
    for name, text in found:
        say(f"\n--- {name}\n{text}")
    return [name for name, _ in found]


def last_failed() -> list[str]:
    """What pytest itself remembers as failed."""
    return sorted(json.loads(CACHE.read_text(encoding="utf-8"))) if CACHE.exists() else []


def main(command: list[str]) -> int:
    CACHE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="steady-") as folder:
        first, second = Path(folder, "first.xml"), Path(folder, "second.xml")
        status = run([*command, f"--durations={SLOWEST}", "--durations-min=1"], first)
        if status == 0:
            return 0
        failed = last_failed()
        if status != FAILED or not failed or len(failed) > LIMIT:
            names = tell(first)
            say(f"\n{len(names)} tests failed (pytest ended with {status}); not tried again.")
            return status
        say(f"\n== {len(failed)} tests failed; once more, alone")
        alone = ["--last-failed", "--last-failed-no-failures=none"]
        again = run([sys.executable, "-m", "pytest", *alone], second)
        if again == 0:
            tell(first)
            say(f"\n{len(failed)} tests failed under load and passed alone: unsteady")
        else:
            tell(second)
            failed = last_failed()
            say(f"\n{len(failed)} tests failed twice, the second time alone (pytest ended with {again})")
        say("\n".join(f"    {name}" for name in failed))
        return again


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
