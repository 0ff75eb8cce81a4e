"""The exact lines of a ruling in the next prompt, which the preview on the page shows too."""

from collections.abc import Iterable
from dataclasses import dataclass

from disputes.protocol.rulings.options import CHANGE, LEAVE, ROWS, Option, letter

HEADING = "## Decided since your last run. Honour it."


@dataclass(frozen=True, slots=True)
class Ruling:
    """One standing decision, as the prompt needs it."""

    name: str  # the finding's code, or "Task ledger-214"
    severity: str
    title: str
    option: str
    text: str
    rationale: str = ""
    constraints: str = ""
    place: str = ""
    expects_change: bool = True
    letter: str = ""  # the letter on its card; empty if it is the usual one
    citation: str = ""  # the precedent that it follows: "As ruled on D-12."


def action_for_coder(ruling: Ruling) -> str:
    """Return in one sentence what the coder must do (DEC-1, DEC-2)."""
    words = ROWS[Option(ruling.option)].in_prompt
    if words == CHANGE and not ruling.expects_change:
        words = LEAVE
    return words.format(place=ruling.place or "the code")


def _indented(label: str, text: str) -> list[str]:
    lines = text.strip().splitlines() or [""]
    return [f"   {label}{lines[0]}", *(f"   {line}".rstrip() for line in lines[1:])]


def ruling_lines(rulings: Iterable[Ruling]) -> list[str]:
    """Return the section that the coder's next prompt begins with; empty if nothing was decided (DEC-1)."""
    lines: list[str] = []
    for number, ruling in enumerate(rulings, start=1):
        key = ruling.letter or letter(ruling.option)
        lines.append(f"{number}. {ruling.name} ({ruling.severity.upper()}): {key}, {ruling.option}")
        lines += _indented("About: ", " ".join(ruling.title.split()))
        for label, said in (
            ("Ruling: ", ruling.text), ("Why: ", ruling.rationale), ("Constraints: ", ruling.constraints),
            ("Precedent: ", ruling.citation),
        ):  # fmt: skip
            lines += _indented(label, said) if said.strip() else []
        lines += _indented("Do: ", action_for_coder(ruling))
    return [HEADING, "", *lines] if lines else []
