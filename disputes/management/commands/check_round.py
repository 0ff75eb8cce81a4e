import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from disputes.protocol.reviews.explanation import explain_lines
from disputes.protocol.rounds.check import as_json, check_round, explain
from disputes.protocol.text.documents import MAX_BYTES, DocumentError
from disputes.protocol.text.quotes import one_line
from tasks.management.program_command import ProgramCommand
from tasks.text.counting import counted

MAX_EXPLAINED = 2_000  # how many lines of one review are explained
MAX_SHOWN = 100  # how many characters of a line are shown


class Command(ProgramCommand):
    help = (
        "Explain one round from its documents: verdicts, findings, answers, disagreements, suspected "
        "silence. It reads files only and needs no database."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--review", metavar="FILE", help="the reviewer's document")
        what.add_argument(
            "--explain",
            metavar="FILE",
            nargs="+",
            help="reviews of which to print each line with the rule by which it begins a finding or not",
        )
        parser.add_argument("--response", metavar="FILE", help="the engineer's next document")
        parser.add_argument(
            "--before",
            metavar="FILE",
            help="the engineer's document that the review is about",
        )
        parser.add_argument("--json", action="store_true", help="print the round as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["explain"]:
            if options["response"] or options["before"] or options["json"]:
                raise CommandError("--explain reads reviews only: leave out --response, --before and --json.")
            for name in options["explain"]:
                self.stdout.writelines(f"{line}\n" for line in explained(name))
            return
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


def explained(name: str) -> Iterator[str]:
    """Yield each line of a review, followed by what it was taken for. Raises CommandError."""
    try:
        lines = list(explain_lines(read_document(name)))
    except DocumentError as error:
        raise CommandError(f"{name} cannot be read: {error}.") from error
    yield name
    for line in lines[:MAX_EXPLAINED]:
        yield f"{line.number:>6}  {one_line(line.text, MAX_SHOWN)}"
        yield f"            {one_line(line.taken_for)}"
    if len(lines) > MAX_EXPLAINED:
        yield f"        ... and {counted(len(lines) - MAX_EXPLAINED, 'more line')}"
    yield ""


def read_document(name: str) -> str:
    """Return the text of a file, with invalid UTF-8 replaced. Raises CommandError if it cannot be read."""
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
