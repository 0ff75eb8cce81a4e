"""How soon a coder's process starts after a reviewer has sent its work back.

    python bench/latency.py [--tasks 20] [--json]
    DATABASE_URL=postgres://user@host/empty REDIS_URL=redis://host/0 python bench/latency.py

The time is from the moment at which the server has the review to the first thing that the coder's process
does, one task at a time, with the web server and the background jobs running too. The floor is the bare work
in between: the checkout of a clone, a bare `python` for the shim, and the shell of the agent. Wanted: a
median of at most 60 ms and a 95th percentile of at most 150 ms on SQLite, 25 and 60 ms on PostgreSQL with
Redis.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.installation import installation  # noqa: E402
from bench.loop import ROWS  # noqa: E402

WANTED_MS = {"sqlite": (60.0, 150.0), "postgresql": (25.0, 60.0)}
TASK = """task=$(sed -n 's/.*"task": "\\([^"]*\\)".*/\\1/p' "$STEROIDS_CONTEXT")
"""
CODER = (
    """date +%s.%N > "$0.$STEROIDS_RUN"
echo "$STEROIDS_RUN" > "work-$STEROIDS_RUN.txt"
git add -A && git commit -q -m "work of $STEROIDS_RUN"
"""
    + TASK
    + """
test -e "$0.$task" || { touch "$0.$task"; exec steroids tasks update --status review; }
cat > ../response.md <<END
Said twice.

| ISSUE-R1-001 | addressed | done |
END
exec steroids tasks update --status review --response ../response.md
"""
)
REVIEWER = (
    TASK
    + """
test -e "$0.$task" && exec steroids tasks approve --notes Fine.
touch "$0.$task"
cat > ../review.md <<END
### High Priority

- **ISSUE-R1-001**: Say it twice
  - **Impact:** Once is not enough.

## Verdict: NEEDS_REVISION
END
exec steroids tasks reject --file ../review.md
"""
)
FLOOR = """
set -e
git init -q "$2"
echo "$1/objects" > "$2/.git/objects/info/alternates"
git -C "$2" checkout -q --detach "$(git -C "$1" rev-parse HEAD)"
"$3" -I -S -c pass
sh -c :
"""
STARTS = """
SELECT v.at, (SELECT min(r.id) FROM agents_run r WHERE r.task_id = s.task_id AND r.role = 'coder'
AND r.queued_at > v.at) FROM tasks_review v JOIN tasks_submission s ON s.id = v.submission_id
WHERE v.verdict = 'NEEDS_REVISION' ORDER BY v.id
"""


def floor(remote: Path, times: int) -> float:
    """Return the median milliseconds of the bare work between the two."""
    taken = []
    for number in range(times):
        begun = time.perf_counter()
        subprocess.run(["sh", "-c", FLOOR, "sh", str(remote), f"{remote}-{number}", sys.executable],
                       check=True)  # fmt: skip
        taken.append((time.perf_counter() - begun) * 1000)
    return median(taken)


def seconds_of(at: object) -> float:
    """Return a time as seconds since 1970; SQLite gives it as text without a zone."""
    moment = datetime.fromisoformat(str(at))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with installation() as site:
        coder, remote = site.script("coder", CODER), site.home / "remote.git"
        site.script("reviewer", REVIEWER)
        site.fill(ROWS.format(remote=str(remote), agents=str(coder.parent), tasks=given.tasks, parallel=1))
        with site.running():
            site.wait_for(
                "SELECT count(*) FROM tasks_task WHERE landed_sha != ''", given.tasks, 20 + 6 * given.tasks
            )
        taken = []
        for at, run in site.ask(STARTS):
            taken.append((float(Path(f"{coder}.{run}").read_text()) - seconds_of(at)) * 1000)
        bare = floor(remote, len(taken))
    half, most = median(taken), quantiles(taken, n=20, method="inclusive")[-1]
    found = {"median": half, "p95": most, "least": min(taken), "floor": bare, "floors": half / bare}
    if given.json:
        print(json.dumps(found))
    else:
        print(f"{len(taken)} starts: median {half:.0f} ms, 95th percentile {most:.0f} ms, least "
              f"{min(taken):.0f} ms; floor {bare:.0f} ms, {half / bare:.1f} floors")  # fmt: skip
    wanted = WANTED_MS["postgresql" if "DATABASE_URL" in os.environ else "sqlite"]
    return int(half > wanted[0] or most > wanted[1])


if __name__ == "__main__":
    sys.exit(main())
