"""A review laid out: its lines, the section that each stands in, what each may begin, its tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from disputes.protocol.reviews.first_lines import Start, read_start
from disputes.protocol.reviews.headings import TOP, Section, sections
from disputes.protocol.text.documents import STATED, Line, Table, tables


@dataclass(frozen=True, slots=True)
class Layout:
    """All lists go by the line's place from 0; `sections` holds the headings only.

    `named` are the places of the starts with an id or a tick, which may tell of an earlier finding.
    """

    lines: Sequence[Line]
    sections: dict[int, Section]
    where: Sequence[Section]
    starts: Sequence[Start | None]
    named: Sequence[int]
    tables: tuple[Table, ...]


def lay_out(lines: Sequence[Line]) -> Layout:
    """The layout of a scanned document."""
    opened = sections(lines)
    where: list[Section] = []
    current = TOP
    for index, section in opened.items():
        where += [current] * (index - len(where))
        current = section
    where += [current] * (len(lines) - len(where))
    starts = [read_start(line) if line.text and line.mode is STATED else None for line in lines]
    named = [index for index, start in enumerate(starts) if start and (start.coded or start.tick)]
    return Layout(lines, opened, where, starts, named, tuple(tables(lines)))
