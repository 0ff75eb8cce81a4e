"""Explaining for each line of a review whether it begins a finding, belongs to one, or counts for nothing."""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from disputes.protocol.reviews.findings import Found
from disputes.protocol.reviews.headings import Purpose, Section
from disputes.protocol.reviews.layout import lay_out
from disputes.protocol.reviews.markups import lines_of
from disputes.protocol.reviews.review import ReadReview, find_findings, read_review
from disputes.protocol.text.documents import STATED

OF_DATA = ("data", "structure")
SECTIONS = {
    Purpose.OTHER: "of no special kind",
    Purpose.ISSUES: "that lists issues",
    Purpose.OBSERVATIONS: "that lists observations",
    Purpose.REQUIRED: "that says what must change",
    Purpose.PRIOR: "about earlier findings",
    Purpose.CLOSING: "that sums up",
    Purpose.CHECKS: "that goes through criteria",
    Purpose.GAPS: "about gaps that the coder opened",
    Purpose.PRAISE: "of praise",
    Purpose.HISTORY: "about earlier versions",
}


class ExplainedLine(NamedTuple):
    """One line of a review, and in words what it was taken for."""

    number: int
    text: str
    taken_for: str


def explain_lines(text: str) -> Iterator[ExplainedLine]:
    """Explain each line of a review that is not blank. Raises DocumentError if it cannot be read."""
    lines = lines_of(text)
    layout = lay_out(lines)
    blocks, findings = find_findings(layout)
    review = read_review(text)
    entries = _by_line([found for found in review.findings if found.format in OF_DATA])
    said = _said(review)
    beginning = _by_line(findings)
    owner = {index: block.begin for block in blocks.blocks for index in range(block.begin, block.end)}
    for index, line in enumerate(lines):
        if not line.text.strip():
            continue
        reason = blocks.reasons.get(index, "")
        if line.number in entries:
            words = f"begins {_names(entries[line.number])}: an entry of the data"
        elif line.number in beginning:
            words = f"begins {_names(beginning[line.number])}: {reason or 'a row of a table of issues'}"
        elif index in owner:
            name = _names(beginning[layout.lines[owner[index]].number])
            words = _joined(f"part of {name}", reason)
        elif line.mode is not STATED:
            words = "code, a quote or a comment counts for nothing"
        elif index in layout.sections:
            words = _joined(_section(layout.sections[index]), reason)
        else:
            words = reason or "text outside of the findings"
        yield ExplainedLine(line.number, line.text, "; ".join([words, *said.get(line.number, ())]))


def _by_line(findings: list[Found]) -> dict[int, list[Found]]:
    return {line: list(found) for line, found in groupby(findings, key=lambda found: found.line)}


def _said(review: ReadReview) -> dict[int, list[str]]:
    """Return what lines say besides findings: verdicts, and what became of earlier findings."""
    said: dict[int, list[str]] = {}
    for verdict in review.verdicts:
        said.setdefault(verdict.line, []).append(f"states the verdict {verdict.verdict}")
    for prior in review.prior:
        said.setdefault(prior.line, []).append(f"says that {prior.code} is {prior.status.lower()}")
    return said


def _names(findings: list[Found]) -> str:
    names = ", ".join(found.code or f"#{found.ordinal}" for found in findings)
    return f"{names} ({findings[0].severity or 'no severity'})"


def _section(section: Section) -> str:
    severity = f", {section.severity}" if section.severity else ""
    return f"heading of a section {SECTIONS[section.purpose]}{severity}"


def _joined(words: str, reason: str) -> str:
    return f"{words}: {reason}" if reason else words
