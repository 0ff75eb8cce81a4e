"""Check whether everything is in order, and say what to do about what is not."""

import json
from argparse import ArgumentParser
from collections.abc import Collection
from typing import Any

from django.core.management.base import CommandError

from agents.doctor.table import CHECKS, Found, examine, repair
from tasks.management.program_command import ProgramCommand
from tasks.text.counting import counted


class Command(ProgramCommand):
    help = (
        "Check whether everything holds that must hold of the rows, this machine's processes, folders and "
        "mirrors, and say of each finding what to do. Exit code 0: all is well; 1: there are findings."
    )
    requires_system_checks = ()  # they are one of the doctor's own checks

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="the same for a program")
        parser.add_argument("--repair", action="store_true", help="mend what can be mended, then look again")
        parser.add_argument("--only", nargs="+", default=(), metavar="ID", help="only these checks")
        parser.add_argument("--list", action="store_true", help="the checks, and which of them can mend")

    def handle(self, *args: Any, **options: Any) -> None:
        only = options["only"]
        if unknown := set(only) - {check.id for check in CHECKS}:
            raise CommandError(
                f"There is no check {', '.join(sorted(unknown))}. See `manage.py doctor --list`."
            )
        if options["list"]:
            for check in CHECKS:
                self.stdout.write(f"{check.id:13}{check.sentence}{' (--repair)' if check.repair else ''}")
            return
        found, mended = examine(only), list[str]()
        if options["repair"] and found:
            mended = list(repair(found))
            found = examine(only)
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(found, mended), indent=2))
        else:
            self._tell(found, mended)
        if found:
            raise SystemExit(1)

    def _tell(self, found: Collection[Found], mended: list[str]) -> None:
        for line in mended:
            self.stdout.write(f"Mended: {line}")
        for each in found:
            self.stdout.write(f"{each.check.id}: {each.finding.says}\n    {each.finding.do}")
        self.stdout.write(f"{counted(len(found), 'finding')}." if found else "All is well.")


def _as_json(found: Collection[Found], mended: list[str]) -> dict[str, Any]:
    return {
        "is_well": not found,
        "findings": [
            {
                "check": each.check.id, "must_hold": each.check.sentence, "says": each.finding.says,
                "do": each.finding.do, "can_be_mended": each.check.repair is not None,
            }
            for each in found
        ],
        "mended": mended,
    }  # fmt: skip
