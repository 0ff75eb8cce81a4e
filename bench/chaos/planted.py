"""Planted bugs: does the checker notice that something is lost, doubled or stuck?"""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.chaos.schedule import say
from bench.faults import Tree
from tests.end_to_end.installation import ROOT

TABLE = Path(__file__).with_suffix(".yaml")
SEEDS = (7, 8, 9)  # a fault strikes at another moment with each, and some bugs show only at the right one
PATIENCE = 25  # seconds until work counts as stuck here
TIMEOUT = 300


@dataclass(frozen=True)
class Bug:
    """A row of planted.yaml."""

    what: str
    old: str
    new: str
    fault: str
    database: str = "sqlite"


def run(only: list[str], empty: str | None) -> int:
    """Plant each bug in turn; return 1 if one was not caught, otherwise 0."""
    bugs = [Bug(**row) for row in yaml.safe_load(TABLE.read_text(encoding="utf-8"))]
    bugs = [bug for bug in bugs if not only or any(words in bug.what for words in only)]
    caught = 0
    say("| Planted bug | Fault | Tries | Seconds | First finding of each kind |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="chaos-planted-") as folder:
        tree = Tree(ROOT, Path(folder) / "tree")
        for bug in bugs:
            began = time.monotonic()
            found: list[str] = []
            for tries, seed in enumerate(SEEDS, start=1):  # noqa: B007 (the last one is told)
                if found := findings_with(bug, tree, seed, empty):
                    break
            caught += bool(found)
            said = "; ".join(each.replace("|", "/").replace("\n", " ")[:160] for each in of_each_kind(found))
            said = said or "NOT CAUGHT"
            say(f"| {bug.what} | {bug.fault} | {tries} | {time.monotonic() - began:.0f} | {said} |")
    say(f"\n{caught} of {len(bugs)} planted bugs were caught.")
    return 0 if caught == len(bugs) else 1


def findings_with(bug: Bug, tree: Tree, seed: int, empty: str | None) -> list[str]:
    """Return what chaos with that seed finds in the tree while the bug is planted there.

    Raises LookupError if it cannot be planted.
    """
    path = tree.place_of(bug.old)
    if path is None:
        raise LookupError(f"The text of the bug '{bug.what}' does not stand once in the program.")
    sound = path.read_text(encoding="utf-8")
    path.write_text(sound.replace(bug.old, bug.new), encoding="utf-8")
    report = tree.root / "report.json"
    report.unlink(missing_ok=True)
    words = ["--seed", str(seed), "--patience", str(PATIENCE), "--tasks", "2", "--undisturbed", "0"]
    words += ["--on", bug.database, "--json", str(report), "--only", bug.fault]
    words += ["--empty", empty] if empty else []
    try:
        with (tree.root / "chaos.log").open("w") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "bench.chaos", *words], cwd=tree.root, stdout=log, stderr=log
            )
            try:
                child.wait(TIMEOUT)
            finally:
                child.terminate()  # it ends what it began
                child.wait()
        rows = json.loads(report.read_text())
    except (subprocess.TimeoutExpired, FileNotFoundError):
        say((tree.root / "chaos.log").read_text()[-1000:])  # it did not end, which proves nothing
        return []
    finally:
        path.write_text(sound, encoding="utf-8")
    found = [finding for row in rows for finding in row["findings"]]
    return sorted(found, key=lambda finding: finding.startswith("stuck"))  # those that say more come first


def of_each_kind(findings: list[str]) -> list[str]:
    """Return the first of all findings that begin with the same word."""
    first: dict[str, str] = {}
    for finding in findings:
        first.setdefault(finding.split(":")[0], finding)
    return list(first.values())
