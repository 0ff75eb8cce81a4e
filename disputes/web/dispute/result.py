"""What build and tests reported, from a card about them: facts, commands, failed tests, output. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

COMMANDS = ("prepare", "build", "test")


@dataclass(slots=True)
class EvidenceResult:
    """The lines of a card's evidence, sorted by what they say, and the end of the output."""

    output: str = ""
    facts: list[str] = field(default_factory=list)
    commands: list[tuple[str, str]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    more: str = ""
    others: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, lines: Iterable[object], output: str) -> "EvidenceResult":
        card = cls(output)
        for line in map(str, lines):
            card._add(line)
        return card

    def _add(self, line: str) -> None:
        name, _, rest = line.partition(": ")
        if name in COMMANDS and rest:
            self.commands.append((name, rest))
        elif name == "failed" and rest:
            self.failed.append(rest)
        elif name == "Also tried" and rest:
            self.others.append(rest)
        elif line.startswith("and ") and line.endswith(" more"):
            self.more = line
        elif line.strip():
            self.facts.append(line)
