"""What an installation costs while there is nothing to do, and what each agent at work adds.

    python bench/idle.py [--seconds 40] [--agents 20] [--json]

It measures the processor time and memory (PSS) of the loop, the web server and the background jobs together,
without a sandbox, then the same with agents that sleep, and the difference for each agent. Wanted: at most 1
% of a core and 250 MB; for each agent at most 0.2 % and 5 MB.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.installation import Installation, installation, memory_of, processor_of  # noqa: E402

SETTLED = 25.0  # seconds after which everything that starts has started
RUNNING = "SELECT count(*) FROM agents_run WHERE status = 'running'"
MOST = {"percent": 1.0, "megabytes": 250.0, "percent_each": 0.2, "megabytes_each": 5.0}
ROWS = """
from agents.models import Agent
from tasks.models import Project
from tests.factories import create_section, create_task
project = Project.objects.create(
    slug="work", name="Work", repo_url={remote!r}, max_parallel={agents},
    settings=dict(detect_commands=False))
create_section(project, "Work")
for number in range({agents}):
    create_task(project, title="Task %d" % number, number=number + 1)
Agent.objects.create(name="coder", role="coder", slots={agents}, settings=dict(argv=[{sleeper!r}]))
"""


def measured(site: Installation, seconds: float) -> dict[str, float]:
    """Return the percentage of a core and the megabytes of all the site's processes, over so many seconds."""
    before, begun = processor_of(site.processes()), time.monotonic()
    time.sleep(seconds)
    used = processor_of(site.processes()) - before
    return {
        "percent": 100 * used / (time.monotonic() - begun), "megabytes": memory_of(site.processes()),
        "processes": len(site.processes()),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with installation(STEROIDS_HOST_SLOTS=str(given.agents)) as site:
        site.manage("migrate", "--verbosity", "0")
        with site.running():
            time.sleep(SETTLED)
            idle = measured(site, given.seconds)
            sleeper = site.script("coder", "exec sleep 3600")
            rows = ROWS.format(
                remote=str(site.home / "remote.git"), agents=given.agents, sleeper=str(sleeper)
            )
            site.manage("shell", "--no-imports", "-c", rows)
            site.wait_for(RUNNING, given.agents, 120)
            time.sleep(SETTLED)
            busy = measured(site, given.seconds)
            site.manage("shell", "--no-imports", "-c", STOP)
            site.wait_for(RUNNING, 0, 60)
    each = {name: (busy[name] - idle[name]) / given.agents for name in ("percent", "megabytes")}
    found = {**idle, "percent_each": each["percent"], "megabytes_each": each["megabytes"]}
    if given.json:
        print(json.dumps(found))
    else:
        print(f"idle: {idle['percent']:.2f} % of a core, {idle['megabytes']:.0f} MB, "
              f"{idle['processes']} processes")  # fmt: skip
        print(f"each agent: {each['percent']:.2f} %, {each['megabytes']:.1f} MB")
    return int(any(found[name] > most for name, most in MOST.items()))


STOP = """
from agents.models import Run
from tasks.models import Project
Project.objects.update(status="paused")
Run.objects.exclude(status="ended").update(stop_requested=True)
"""

if __name__ == "__main__":
    sys.exit(main())
