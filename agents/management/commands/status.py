"""Show on one screen whether the loop runs, what is under way, and what waits for whom."""

import json
from argparse import ArgumentParser
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.utils import timezone

from agents.setup.overview import overview
from tasks.database.clock import estimated_time
from tasks.management.program_command import ProgramCommand
from tasks.projects import counts_line
from tasks.spans import clock, since
from tasks.text.counting import counted


class Command(ProgramCommand):
    help = "Say how the installation stands: loop, projects, runs, cards, pauses, and what tasks wait for."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="the same for a program")

    def handle(self, *args: Any, **options: Any) -> None:
        found = overview()
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=2))
            return
        self.stdout.write(_loop_line(found["loop"]))
        for row in found["loop"]["wrong_hosts"]:
            self.stdout.write(f"{row['what']}: {row['cure']}.")
        self._list(
            "Projects",
            (
                f"{row['slug']}  {row['status']}  {counts_line(row['tasks'])}"
                + (f"\n    waits: {row['waits']}" if row["waits"] else "")
                for row in found["projects"]
            ),
        )
        self._list(
            "Runs",
            (
                f"{row['run']}  {row['task']}  {row['agent'] or row['role']}  {row['state']}{_begun(row)}"
                for row in found["runs"]
            ),
            found["run_count"],
        )
        self._list(
            "Cards that wait for a ruling",
            (
                f"{row['dispute']}  {row['of']}  {row['severity'].upper()}  {row['question'].rstrip('.')}, "
                f"since {_since(row['opened_at'])}"
                for row in found["cards"]
            ),
            found["card_count"],
        )
        self._list(
            "Paused accounts",
            (f"{row['account']}  until {_clock(row['until'])}: {row['reason']}" for row in found["pauses"]),
        )
        self._list(
            "Tasks under way",
            (f"{row['task']}  {row['for']}" for row in found["waiting"]),
            found["waiting_count"],
        )

    def _list(self, title: str, lines: Iterable[str], count: int | None = None) -> None:
        """Print a titled list, or nothing if it is empty. `count` is the length of the full list."""
        shown = list(lines)
        if not shown:
            return
        more = (count or len(shown)) - len(shown)
        self.stdout.write("\n".join(["", f"{title}:", *(f"  {line}" for line in shown)]))
        if more > 0:
            self.stdout.write(f"  and {more} more")


def _loop_line(loop: dict[str, Any]) -> str:
    if loop["is_healthy"]:
        alive = f"{loop['hosts_alive']} of {counted(loop['host_count'], 'host')} alive"
        return f"The loop turns; {alive}. Times are in {timezone.get_current_timezone_name()}."
    last = f": it last did at {_since(loop['last_tick'])}" if loop["last_tick"] else ""
    return f"The loop does not turn{last}. Start it with `manage.py run_orchestrator`."


def _begun(run: dict[str, Any]) -> str:
    return f", since {_since(run['started_at'])}" if run["started_at"] else ""


def _since(moment: str) -> str:
    return since(datetime.fromisoformat(moment), estimated_time())


def _clock(moment: str) -> str:
    return clock(datetime.fromisoformat(moment), estimated_time())
