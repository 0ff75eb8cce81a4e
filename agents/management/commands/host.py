"""List the hosts of this installation, drain or resume one, or remove it for good."""

import time
from argparse import ArgumentParser
from typing import Any

from django.template.defaultfilters import filesizeformat

from agents.models import Host
from agents.setup import hosts
from tasks.database.clock import estimated_time
from tasks.management.program_command import ProgramCommand, as_command_error
from tasks.spans import since
from tasks.text.counting import counted

POLL = 1.0  # seconds


class Command(ProgramCommand):
    help = (
        "List the hosts, or drain, resume or remove one: host list | drain NAME | resume NAME | remove NAME."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="every host, and what it is at")
        drain = verbs.add_parser("drain", help="it takes no new runs; what it has goes on to its end")
        drain.add_argument("--wait", action="store_true", help="come back when it is empty")
        resume = verbs.add_parser("resume", help="it takes runs again")
        remove = verbs.add_parser("remove", help="it is gone for good; what only it had is done again")
        for each in (drain, resume, remove):
            each.add_argument("name")

    @as_command_error()
    def handle(self, *args: Any, **options: Any) -> None:
        verb = options["verb"]
        if verb == "list":
            self._list()
            return
        host = hosts.named(options["name"])
        if verb == "remove":
            gone = hosts.remove(host)
            kept = "" if gone else " Its runs keep its name."
            self.stdout.write(f"{host.name} is removed; what only it had is done again.{kept}")
        elif verb == "resume":
            hosts.set_draining(host, False)
            self.stdout.write(f"{host.name} takes new runs again.")
        else:
            self._drain(host, wait=options["wait"])

    def _drain(self, host: Host, *, wait: bool) -> None:
        hosts.set_draining(host, True)
        left = hosts.left_on(host)
        said = f"It still has {left}." if left else "It is empty and can be stopped."
        self.stdout.write(f"{host.name} takes no new runs. {said}")
        while wait and left:
            time.sleep(POLL)
            left = hosts.left_on(host)
            if not left:
                self.stdout.write(f"{host.name} is empty and can be stopped.")

    def _list(self) -> None:
        rows = list(Host.objects.filter(is_removed=False))
        if not rows:
            self.stdout.write("No host has reported yet. Start one: manage.py run_orchestrator")
        now, alive = estimated_time(), set(Host.objects.alive().values_list("pk", flat=True))
        for host in rows:
            seen = f"seen {since(host.seen_at, now)}" if host.seen_at else "never seen"
            state = host.state(is_alive=host.pk in alive)
            disk = f"{filesizeformat(host.disk_free)} free" if host.disk_free is not None else ""
            words = [
                f"{state}, {seen}", counted(host.slots, "slot"), host.get_tier_display(),
                disk, ", ".join(host.labels), f"version {host.version}" if host.version else "", host.place,
            ]  # fmt: skip
            self.stdout.write("  ".join([host.name, *filter(None, words)]))
            if left := hosts.left_on(host):
                self.stdout.write(f"    {left}")
