"""How long a command of manage.py takes to begin, and `make run` on a data folder that exists already.

    python bench/startup.py [--times 7] [--json]

The floor of a command is `python -c "import django"`. Wanted: half a second for a command, and four seconds
until the first page is answered.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.installation import Installation, installation  # noqa: E402
from bench.loop import ROOT  # noqa: E402

WANTED = {"command": 0.5, "first page": 4.0}


def until_the_first_page(site: Installation) -> float:
    """Return the seconds from the start until the sign-in page is answered, without the time to stop."""
    begun = time.perf_counter()
    with site.running("--demo"):
        address = site.data / "host" / "web.url"
        while not address.exists():
            time.sleep(0.02)
        with urllib.request.urlopen(f"{address.read_text().strip()}/admin/login/") as page:
            assert page.status == 200
        return time.perf_counter() - begun


def taken(work: Callable[[], object], times: int) -> list[float]:
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with installation() as site:
        site.manage("migrate", "--verbosity", "0")

        def bare() -> None:
            subprocess.run([sys.executable, "-c", "import django"], cwd=ROOT, env=os.environ, check=True)

        until_the_first_page(site)  # the demo is made
        found = {
            "floor": taken(bare, given.times),
            "command": taken(lambda: site.manage("host", "list"), given.times),
            "first page": [until_the_first_page(site) for _ in range(max(given.times // 2, 3))],
        }
    if given.json:
        print(json.dumps({name: median(values) for name, values in found.items()}))
    else:
        for name, values in found.items():
            print(f"{name:11} {median(values):.2f} s ({min(values):.2f} to {max(values):.2f})")
    return int(any(median(found[name]) > most for name, most in WANTED.items()))


if __name__ == "__main__":
    sys.exit(main())
