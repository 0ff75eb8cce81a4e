"""Plant faults, one at a time, and see which test catches each.

    python bench/faults.py [--only WORDS] [--against CHECKOUT] [--json] [--jobs 2]

A fault is a guard dropped, a comparison swapped or a lock taken away: a change of a line or two that somebody
might make by mistake (bench/faults.yaml). Each is planted into a copy of the tree, and the test files that it
names run until a test fails. `--against` does the same in another checkout and shows both side by side.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from xml.etree import ElementTree

import yaml

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".yaml")
APPS = ("tasks", "disputes", "agents", "steroidsweb")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "var", ".*_cache", ".hypothesis")
WANTED = 0.95  # of the faults are caught
TIMEOUT = 900  # seconds that the tests of one fault may take


@dataclass(frozen=True)
class Fault:
    """A fault: `old` occurs once in the program, in any file, and becomes `new`; `tests` names test files.

    Locks do nothing on SQLite, so a fault `on_postgresql` is tried on the server that TEST_POSTGRES_URL
    names.
    """

    what: str
    old: str
    new: str
    tests: str
    on_postgresql: bool = False


def faults_of(words: str) -> list[Fault]:
    """Return the faults of the table whose name contains the words."""
    rooms = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    found = [Fault(**row) for rows in rooms.values() for row in rows]
    return [fault for fault in found if words in fault.what]


@dataclass(frozen=True)
class Caught:
    """What became of one fault: the test that failed first, or why there is none."""

    what: str
    by: str = ""
    problem: str = ""


class Tree:
    """A copy of a checkout, in which one fault at a time is planted."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.root = folder
        shutil.copytree(checkout, folder, ignore=LEFT_OUT)

    def place_of(self, text: str) -> Path | None:
        """Return the one file of the program that contains the text exactly once, or None."""
        found = [
            path
            for app in APPS
            for path in sorted((self.root / app).rglob("*.py"))
            if "migrations" not in path.parts and path.read_text(encoding="utf-8").count(text) == 1
        ]
        return found[0] if len(found) == 1 else None

    def tests(self, names: str) -> list[str]:
        """Return the test files with these names that this tree has."""
        found = (path for name in names.split() for path in sorted((self.root / "tests").rglob(f"{name}.py")))
        return [str(path.relative_to(self.root)) for path in found if "browser" not in path.parts]

    def first_failure(self, files: list[str], report: Path, settings: dict[str, str]) -> str:
        """Return the first test of these files that fails; empty if none does. Raises RuntimeError."""
        report.unlink(missing_ok=True)
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "STEROIDS_TEST_HOME": ""} | settings
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, f"--junit-xml={report}", *files],
            cwd=self.root, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT,
        )  # fmt: skip
        if done.returncode == 0:
            return ""
        if report.exists():
            for case in ElementTree.parse(report).iter("testcase"):
                if case.find("failure") is not None or case.find("error") is not None:
                    return f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        raise RuntimeError((done.stdout + done.stderr)[-800:])


def try_fault(fault: Fault, tree: Tree) -> Caught:
    """Plant the fault, run its tests, and take it out again."""
    path = tree.place_of(fault.old)
    files = tree.tests(fault.tests)
    if path is None or not files:
        return Caught(fault.what, problem="its text or its tests are not there")
    settings = {}
    if fault.on_postgresql:
        url = os.environ.get("TEST_POSTGRES_URL", "")
        if not url:
            return Caught(fault.what, problem="TEST_POSTGRES_URL names no PostgreSQL server")
        settings["DATABASE_URL"] = url
    sound = path.read_text(encoding="utf-8")
    path.write_text(sound.replace(fault.old, fault.new), encoding="utf-8")
    try:
        return Caught(fault.what, by=tree.first_failure(files, tree.root / "report.xml", settings))
    except RuntimeError as error:
        return Caught(fault.what, problem=str(error))
    except subprocess.TimeoutExpired:
        return Caught(fault.what, by=f"a test that hangs ({TIMEOUT} s)")
    finally:
        path.write_text(sound, encoding="utf-8")


def run(checkout: Path, faults: Iterable[Fault], jobs: int) -> list[Caught]:
    """Try all faults in copies of one checkout, `jobs` at a time."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, ThreadPoolExecutor(jobs) as pool:
        trees: Queue[Tree] = Queue()
        for number in range(jobs):
            trees.put(Tree(checkout, Path(folder, str(number))))

        def try_one(fault: Fault) -> Caught:
            tree = trees.get()
            try:
                caught = try_fault(fault, tree)
            finally:
                trees.put(tree)
            print(f"{caught.what}\n    {told(caught)}", file=sys.stderr, flush=True)
            return caught

        return list(pool.map(try_one, faults))


def share(done: list[Caught]) -> float:
    """Return the share of faults caught among those that could be planted."""
    planted = [each for each in done if not each.problem]
    return sum(bool(each.by) for each in planted) / max(len(planted), 1)


def told(done: Caught) -> str:
    return done.by or (f"({done.problem.splitlines()[-1]})" if done.problem else "NOT CAUGHT")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="words that the fault's name holds")
    parser.add_argument("--against", type=Path, help="another checkout, side by side")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    faults = faults_of(options.only)
    checkouts = [ROOT, *([options.against.resolve()] if options.against else [])]
    columns = [run(checkout, faults, options.jobs) for checkout in checkouts]
    if options.json:
        print(
            json.dumps(
                {
                    str(path): [vars(each) for each in column]
                    for path, column in zip(checkouts, columns, strict=True)
                }
            )
        )
    else:
        for rows in zip(*columns, strict=True):
            print(f"{rows[0].what}\n    " + "\n    ".join(map(told, rows)))
        print(f"\nfaults: {len(faults)}, caught: " + ", ".join(f"{share(column):.0%}" for column in columns))
    is_planted = all(not each.problem for each in columns[0])
    return 0 if is_planted and share(columns[0]) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
