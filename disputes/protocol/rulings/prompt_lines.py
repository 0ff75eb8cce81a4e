"""The exact lines of a ruling in the next prompt. The preview on the page shows the same lines."""

from collections.abc import Iterable
from dataclasses import dataclass

from disputes.protocol.rulings.options import Option, letter

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


# What the coder must do after an option that asks it, or that leaves it to the ruling's words.
DEMANDS = {
    Option.RETRY: "Start again with these words in mind.",
    Option.ASK: (
        "Answer it in your response: do it and say how, or write a DISAGREE block, or quote the place that "
        "covers it already."
    ),
    Option.ASK_DISAGREE: "Say whether you disagree: write a DISAGREE block with a rationale, or do it.",
    Option.REDUCE: "Answer each finding anew: withdraw what is mere taste, give evidence for the rest.",
    Option.CLARIFY: "Read the open findings in this light, and answer each of them anew.",
}


def action_for_coder(ruling: Ruling) -> str:
    """What the coder must do now, in one sentence (DEC-1, DEC-2)."""
    if demand := DEMANDS.get(Option(ruling.option)):
        return demand
    if not ruling.expects_change:
        return "Leave the code at this point as it is."
    where = ruling.place or "the code"
    return f"Change {where}. Do not argue it again; trouble that it causes is a new finding."


def _indented(label: str, text: str) -> list[str]:
    lines = text.strip().splitlines() or [""]
    return [f"   {label}{lines[0]}", *(f"   {line}".rstrip() for line in lines[1:])]


def ruling_lines(rulings: Iterable[Ruling]) -> list[str]:
    """The section that the next engineer prompt begins with; empty where nothing was decided (DEC-1)."""
    lines: list[str] = []
    for number, ruling in enumerate(rulings, start=1):
        lines.append(
            f"{number}. {ruling.name} ({ruling.severity.upper()}): {letter(ruling.option)}, {ruling.option}"
        )
        lines += _indented("About: ", " ".join(ruling.title.split()))
        if ruling.text.strip():
            lines += _indented("Ruling: ", ruling.text)
        if ruling.rationale.strip():
            lines += _indented("Why: ", ruling.rationale)
        if ruling.constraints.strip():
            lines += _indented("Constraints: ", ruling.constraints)
        lines += _indented("Do: ", action_for_coder(ruling))
    return [HEADING, "", *lines] if lines else []
