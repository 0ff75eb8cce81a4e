"""What the sandbox adds to a run: the time from the start of its shim to its end, with and without, by turns.

    python bench/sandbox.py [--runs 15] [--json]

A run has one step that does nothing, in a clone of a small repository, held by a real shim. Wanted: at most
0.15 seconds more for a run.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.installation import django_here  # noqa: E402

WANTED = 0.15  # seconds


def one_run(number: int, setting: str) -> float:
    """Return the seconds that one run takes, including its preparation by the host."""
    from django.conf import settings

    from agents.hosts import sandbox, starting
    from agents.hosts.shims.nursery import NURSERY
    from agents.verification import commands

    settings.SANDBOX = setting
    folder = Path(settings.HOME) / "runs" / str(number)
    folder.mkdir(parents=True, mode=0o700)
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / "clone")], check=True)
    environment = commands.own_environment(None, folder, "coder")
    steps = [commands.step("nothing", ["/bin/true"], folder / "clone", environment)]
    begun = time.perf_counter()
    starting.write_job(folder, str(number), steps, sandbox.Room(folder, 1, "coder", (), sandbox.Reach()))
    starting.renew_lease(folder)
    NURSERY.start_shim(folder)
    while (left := starting.exit_of(folder)) is None:
        time.sleep(0.001)
    assert left["steps"][0]["code"] == 0, (folder / "output.log").read_text()
    return time.perf_counter() - begun


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--runs", type=int, default=15)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    with django_here():
        taken: dict[str, list[float]] = {"off": [], "required": []}
        for turn in range(given.runs + 1):
            for place, setting in enumerate(taken):
                seconds = one_run(2 * turn + place + 1, setting)
                if turn:  # the first of each warms up
                    taken[setting].append(seconds)
    rows = {name: [min(times), median(times), max(times)] for name, times in taken.items()}
    added = rows["required"][1] - rows["off"][1]
    if given.json:
        print(json.dumps({"seconds": rows, "added": added}))
    else:
        for name, (least, middle, most) in rows.items():
            print(f"{name:10} {middle:.3f} s (from {least:.3f} to {most:.3f})")
        print(f"added      {added:.3f} s, wanted at most {WANTED}")
    return int(added > WANTED)


if __name__ == "__main__":
    sys.exit(main())
