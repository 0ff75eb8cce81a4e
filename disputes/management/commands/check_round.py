import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from disputes.protocol.rounds.check import as_json, check_round, explain
from disputes.protocol.text.documents import MAX_BYTES, DocumentError


class Command(BaseCommand):
    help = (
        "Explains one round from its documents: verdicts, findings, answers, disagreements, suspected "
        "silence. It reads files only and needs no database."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--review", metavar="FILE", required=True, help="The reviewer's document.")
        parser.add_argument("--response", metavar="FILE", help="The engineer's next document.")
        parser.add_argument(
            "--before",
            metavar="FILE",
            help="The engineer's document that the review is about.",
        )
        parser.add_argument("--json", action="store_true", help="Print the round as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        review = read_document(options["review"])
        response = read_document(options["response"]) if options["response"] else None
        before = read_document(options["before"]) if options["before"] else ""
        try:
            checked = check_round(review, response, before)
        except DocumentError as error:
            raise CommandError(f"The round cannot be read: {error}.") from error
        if options["json"]:
            self.stdout.write(json.dumps(as_json(checked), indent=2, ensure_ascii=False))
        else:
            self.stdout.write("\n".join(explain(checked)).rstrip())


def read_document(name: str) -> str:
    """The text of a file; bytes that are no UTF-8 are replaced. Raises CommandError."""
    path = Path(name)
    if not path.exists():
        raise CommandError(f"There is no file {name}.")
    if not path.is_file():
        raise CommandError(f"{name} is no file.")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}.") from error
    if len(data) > MAX_BYTES:
        raise CommandError(f"{name} is too large: {MAX_BYTES} bytes are the limit.")
    return data.decode("utf-8", "replace").removeprefix("\ufeff")
