"""What a task costs: its time, processor time and git processes, against a script that does the bare work.

    python bench/loop.py [--tasks 10] [--parallel 1 4 8] [--rounds 5] [--against CHECKOUT] [--json]

The work is independent tasks in a repository of forty files, with agents that are small scripts, nothing to
build and no sandbox. The floor is the same clones, commit, fetches and push in one script, with a bare
`python` for each shim and each hand-in; several at a time show what the machine itself gains by that. With
CHECKOUT, another version of the program is measured by turns with this one.
"""

import argparse
import atexit
import ctypes
import json
import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
PR_SET_CHILD_SUBREAPER = 36
FILES = 40
FEW = 2  # tasks of the run whose cost is subtracted
WANTED_FLOORS = 2.0  # one task at a time
CODER = """#!/bin/sh
echo "$STEROIDS_RUN" > "work-$STEROIDS_RUN.txt"
git add -A && git commit -q -m "work of $STEROIDS_RUN" && exec steroids tasks update --status review
"""
REVIEWER = """#!/bin/sh
exec steroids tasks approve --notes Fine.
"""
ROWS = """
from django.contrib.auth.models import User
from agents.models import Agent
from tasks.models import Project, Section, Task
from tests.factories import create_section, create_task
project = Project.objects.create(
    slug="work", name="Work", repo_url={remote!r}, max_parallel={parallel},
    settings=dict(detect_commands=False, undo_seconds=0))
create_section(project, "Work")
for number in range({tasks}):
    create_task(project, title="Task %d" % number, number=number + 1)
for role in ("coder", "reviewer"):
    Agent.objects.create(
        name=role, role=role, slots={parallel}, settings=dict(argv=[{agents!r} + "/" + role, "{{prompt}}"]))
"""
FLOOR = """
set -e
cd "$1"
for task in $(seq "$2"); do
  git -C mirror.git fetch -q "$1/remote.git" +main:refs/t
  for run in coder reviewer; do
    git init -q "$run-$task"
    echo "$1/mirror.git/objects" > "$run-$task/.git/objects/info/alternates"
    git -C "$run-$task" checkout -q --detach "$(git -C mirror.git rev-parse refs/t)"
    "$3" -I -S -c pass
    if test $run = coder; then
      echo "$task" > "$run-$task/work-$task.txt"
      git -C "$run-$task" add -A
      git -C "$run-$task" -c user.name=a -c user.email=a@b commit -q -m work
      git -C mirror.git fetch -q "$1/$run-$task" +HEAD:refs/t
    fi
    "$3" -I -S -c pass
    rm -rf "$run-$task"
  done
  git -C mirror.git push -q "$1/remote.git" refs/t:refs/heads/main
done
"""


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=Dev", "-c", "user.email=dev@example.org", *words], check=True)


def remote_in(folder: Path) -> Path:
    """Make a bare repository with one commit of forty files."""
    seed, remote = folder / "seed", folder / "remote.git"
    git("init", "-q", "-b", "main", str(seed))
    for number in range(FILES):
        (seed / f"file-{number}.txt").write_text(f"{number}\n" * 50)
    git("-C", str(seed), "add", "-A")
    git("-C", str(seed), "commit", "-q", "-m", "As it stands")
    git("clone", "-q", "--bare", str(seed), str(remote))
    return remote


@contextmanager
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="steroids-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def processor() -> float:
    """Return the seconds of processor time of every descendant, once all have ended."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)
        except ChildProcessError:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime


def floor(tasks: int, parallel: int) -> dict[str, float]:
    """Return the cost of the bare work per task, in so many scripts at once, each in its own repository."""
    with folder() as home:
        script, each = home / "floor.sh", -(-tasks // parallel)
        script.write_text(FLOOR)
        places = [home / str(number) for number in range(parallel)]
        for place in places:
            place.mkdir()
            remote_in(place)
            git("clone", "-q", "--bare", str(place / "remote.git"), str(place / "mirror.git"))
        before, begun = processor(), time.perf_counter()
        scripts = [subprocess.Popen(["sh", script, place, str(each), sys.executable]) for place in places]
        for started in scripts:
            assert started.wait() == 0, "the bare work failed"
        seconds = time.perf_counter() - begun
        return {
            "seconds": seconds / (each * parallel),
            "processor": (processor() - before) / (each * parallel),
        }


def _counting_git(home: Path) -> Path:
    """Return a folder for PATH with a git that notes every git process, including its own helpers."""
    real, notes, binaries = shutil.which("git"), home / "git-notes", home / "bin"
    notes.mkdir()
    binaries.mkdir()
    program = binaries / "git"
    program.write_text(f'#!/bin/sh\nGIT_TRACE2_EVENT="{notes}" exec "{real}" "$@"\n')
    program.chmod(0o755)
    return binaries


def _counted(home: Path) -> Counter[str]:
    """Return how often each git command ran, those of the agent and of the remote with that prefix.

    A remote on another machine pays for its own: git starts them there to take a push.
    """
    found: Counter[str] = Counter()
    for file in (home / "git-notes").iterdir():
        lines = [json.loads(line) for line in file.read_text(errors="replace").splitlines()]
        named = next((line for line in lines if line["event"] == "cmd_name"), {"name": "?", "hierarchy": ""})
        name = named["name"]
        if "receive-pack" in named["hierarchy"]:
            name = f"remote's {name}"
        found[f"agent's {name}" if name in {"add", "commit"} else name] += 1
    return found


@cache
def migrated(root: Path) -> Path:
    """Return a data folder of that checkout with empty tables."""
    home = Path(tempfile.mkdtemp(prefix="steroids-bench-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    environment = {"PATH": os.environ["PATH"], "SECRET_KEY": "x" * 50, "STEROIDS_HOME": str(home)}
    migrate = [sys.executable, str(root / "manage.py"), "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=root, env=environment, check=True, capture_output=True)
    return home


def program(root: Path, tasks: int, parallel: int, *, count: bool = False) -> dict[str, float]:
    """Return the cost of that checkout's program per task; with `count`, its git processes instead."""
    with folder() as home:
        shutil.copytree(migrated(root), home / "data")
        remote, agents = remote_in(home), home / "agents"
        agents.mkdir()
        for name, text in (("coder", CODER), ("reviewer", REVIEWER)):
            (agents / name).write_text(text)
            (agents / name).chmod(stat.S_IRWXU)
        path = os.environ["PATH"]
        environment = {
            "PATH": f"{_counting_git(home)}:{path}" if count else path, "HOME": str(home),
            "SECRET_KEY": "x" * 50,
            "STEROIDS_HOME": str(home / "data"), "STEROIDS_SANDBOX": "off", "STEROIDS_IDLE": "1",
            "STEROIDS_RUN_RATE": "100000/min", "STEROIDS_HOST_SLOTS": str(parallel),
            "LOG_LEVEL": "ERROR", "STEROIDS_LOG_LEVEL": "ERROR",
        }  # fmt: skip
        manage = [sys.executable, str(root / "manage.py")]
        rows = ROWS.format(remote=str(remote), agents=str(agents), tasks=tasks, parallel=parallel)
        words = ["shell", "--no-imports", "-c", rows]
        subprocess.run([*manage, *words], cwd=root, env=environment, check=True, capture_output=True)
        before = processor()
        subprocess.run(
            [*manage, "run_orchestrator", "--until-idle", "--no-web", "--quiet"],
            cwd=root, env=environment, check=True, capture_output=True,
        )  # fmt: skip
        used = processor() - before
        with sqlite3.connect(home / "data" / "steroids.sqlite3") as database:
            landed = database.execute("SELECT count(*) FROM tasks_task WHERE landed_sha != ''").fetchone()[0]
            assert landed == tasks, f"{landed} of {tasks} landed"
            seconds = database.execute(
                "SELECT (julianday(max(e.at)) - julianday(min(r.started_at))) * 86400 "
                "FROM tasks_event e, agents_run r WHERE e.kind = 'landed'"
            ).fetchone()[0]
        if count:
            return {name: number / tasks for name, number in _counted(home).most_common()}
        return {"seconds": seconds / tasks, "used": used}


def measured(root: Path, tasks: int, parallel: int) -> dict[str, float]:
    """Return a task's time from the first run's start, and its processor time without that of starting."""
    many, few = program(root, tasks, parallel), program(root, FEW, parallel)
    return {"seconds": many["seconds"], "processor": (many["used"] - few["used"]) / (tasks - FEW)}


def middle(rows: list[dict[str, float]], name: str) -> tuple[float, float, float]:
    values = [row[name] for row in rows]
    return median(values), min(values), max(values)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--parallel", type=int, nargs="*", default=[1, 4, 8])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--git", action="store_true", help="only count git's processes")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    roots = {"ours": ROOT} | ({"theirs": given.against.resolve()} if given.against else {})
    counts = {name: program(root, given.tasks, 1, count=True) for name, root in roots.items()}
    if given.git:
        for name, kinds in counts.items():
            print(f"{name}: {sum(kinds.values()):.1f} git processes a task")
            for kind, number in kinds.items():
                print(f"  {number:6.1f}  {kind}")
        return 0
    at_once = sorted({1, *given.parallel})
    taken: dict[tuple[str, int], list[dict[str, float]]] = {
        (name, n): [] for name in ("floor", *roots) for n in at_once
    }
    for _ in range(given.rounds):
        for (name, parallel), rows in taken.items():
            rows.append(
                floor(given.tasks, parallel)
                if name == "floor"
                else measured(roots[name], given.tasks, parallel)
            )
    middles = {key: middle(rows, "seconds") for key, rows in taken.items()}
    bare = middles["floor", 1][0]
    missed = ["ours"] if middles["ours", 1][0] > WANTED_FLOORS * bare else []
    report = [
        {
            "what": f"{name}, {parallel} at a time", "seconds": seconds,
            "processor": middle(taken[name, parallel], "processor"), "floors": seconds[0] / bare,
            "of one at a time": seconds[0] / middles[name, 1][0],
        } for (name, parallel), seconds in middles.items()
    ]  # fmt: skip
    if given.json:
        print(json.dumps({"rows": report, "git": counts}))
        return len(missed)
    for row in report:
        seconds, used = (
            f"{m:.2f} s ({lo:.2f} to {hi:.2f})" for m, lo, hi in (row["seconds"], row["processor"])
        )
        print(
            f"{row['what']:22} {seconds:26} processor {used:26} {row['floors']:6.1f} floors, "
            f"{row['of one at a time']:.2f} of one at a time"
        )
    for name, kinds in counts.items():
        agents, remotes = (
            sum(n for kind, n in kinds.items() if kind.startswith(whose)) for whose in ("agent's", "remote's")
        )
        ours = sum(kinds.values()) - agents - remotes
        print(
            f"{name}: {ours:.1f} git processes a task, {remotes:.1f} at the remote, {agents:.1f} of the agent"
        )
    return len(missed)


if __name__ == "__main__":
    sys.exit(main())
