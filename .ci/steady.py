"""Run a suite once, and then alone the few slow tests that failed in it: `steady.py COMMAND...`, pytest's.

A loaded machine now and then fails an honest test that starts processes or a browser and waits for them. If
at most three tests fail, and all are marked `slow` or `browser`, they are tried once more with the machine to
themselves. Those that pass then are written into the ledger `.ci/unsteady.txt`, to be committed: a test that
is in the ledger already fails the build until it is mended and its line is removed. Nothing is tried again if
tests were skipped that must not be, or if the run itself broke off (a status other than 1).
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

LIMIT = 3  # more failures than this are no accident
MARKED = "slow or browser"
SLOWEST = 25
SHOWN = 60  # lines of each failure, the last ones
FAILED = 1  # pytest's status for "some tests failed", and for nothing else
CACHE = Path(".pytest_cache/v/cache/lastfailed")
LEDGER = Path(".ci/unsteady.txt")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def run(command: list[str], report: Path) -> int:
    return subprocess.run([*command, f"--junit-xml={report}"], check=False).returncode


def failures(report: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each test that failed by pytest's report, with the end of its message."""
    if not report.exists():
        return
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (written by our own pytest)
        for kind in ("failure", "error"):
            for failure in case.iter(kind):
                lines = (failure.text or failure.get("message") or "").rstrip().splitlines()
                yield f"{case.get('classname')}::{case.get('name')}", "\n".join(lines[-SHOWN:])


def tell(report: Path) -> None:
    """Print each failure of a report."""
    for name, text in failures(report):
        say(f"\n--- {name}\n{text}")


def last_failed() -> list[str]:
    """Return the tests that pytest itself remembers as failed."""
    return sorted(json.loads(CACHE.read_text(encoding="utf-8"))) if CACHE.exists() else []


def marked(tests: list[str]) -> set[str]:
    """Return those of the tests that start processes or a browser."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", MARKED]
    done = subprocess.run([*command, *tests], capture_output=True, text=True, check=False)
    return set(tests) & set(done.stdout.splitlines())


def in_ledger() -> set[str]:
    """Return the tests that needed a second try before."""
    lines = LEDGER.read_text(encoding="utf-8").splitlines() if LEDGER.exists() else []
    return {line.split(" ", 1)[1] for line in lines if line and not line.startswith("#")}


def why_not_again(status: int, failed: list[str]) -> str:
    """Return why these failures are final; empty if they are to be tried again."""
    if status != FAILED or not failed:
        return f"pytest ended with {status}"
    if len(failed) > LIMIT:
        return f"more than {LIMIT} are no accident"
    if unmarked := sorted(set(failed) - marked(failed)):
        return f"not marked {MARKED}: {', '.join(unmarked)}"
    if again := sorted(set(failed) & in_ledger()):
        return f"already in {LEDGER}: {', '.join(again)}"
    return ""


def note(tests: list[str]) -> None:
    """Write the unsteady tests into the ledger."""
    LEDGER.parent.mkdir(exist_ok=True)
    today = datetime.now(UTC).date().isoformat()
    with LEDGER.open("a", encoding="utf-8") as ledger:
        ledger.writelines(f"{today} {test}\n" for test in tests)


def main(command: list[str]) -> int:
    CACHE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="steady-") as folder:
        first, second = Path(folder, "first.xml"), Path(folder, "second.xml")
        status = run([*command, f"--durations={SLOWEST}", "--durations-min=1"], first)
        if status == 0:
            return 0
        failed = last_failed()
        if reason := why_not_again(status, failed):
            tell(first)
            say(f"\n{len(failed)} tests failed; not tried again: {reason}.")
            say("\n".join(f"    {name}" for name in failed))
            return status
        say(f"\n== {len(failed)} tests failed; once more, alone")
        again = run([sys.executable, "-m", "pytest", *failed], second)
        if again == 0:
            tell(first)
            note(failed)
            say(f"\n{len(failed)} tests failed under load and passed alone: unsteady, now in {LEDGER}")
        else:
            tell(second)
            failed = last_failed()
            say(f"\n{len(failed)} tests failed twice, the second time alone (pytest ended with {again})")
        say("\n".join(f"    {name}" for name in failed))
        return again


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
