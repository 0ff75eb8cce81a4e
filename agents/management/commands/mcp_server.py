"""Serve the tools of the Model Context Protocol."""

import os
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from agents import cli
from tasks.management.program_command import ProgramCommand


class Command(ProgramCommand):
    help = (
        "Serve the verbs of the REST API as tools of the Model Context Protocol: over stdio with the token "
        "of STEROIDS_CONTEXT, STEROIDS_TOKEN_FILE or the login; with --http PORT for clients that each bring "
        "their own."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        from agents import mcp_server

        mcp_server.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        from agents import mcp_server

        url = options["url"] or os.environ.get("STEROIDS_URL", "") or settings.API_URL
        try:
            mcp_server.serve(http=options["http"], host=options["host"], url=str(url), names=options["name"])
        except cli.Stop as stop:
            raise CommandError(" ".join(stop.lines)) from stop
        except KeyboardInterrupt:
            return
