"""The layout of a review: its lines, the section each is in, its first lines of findings, and its tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from disputes.protocol.reviews.first_lines.ids import without_false_ids
from disputes.protocol.reviews.first_lines.kinds_of_lines import read_start
from disputes.protocol.reviews.first_lines.prose import with_prose
from disputes.protocol.reviews.first_lines.records import with_records
from disputes.protocol.reviews.first_lines.start import Start
from disputes.protocol.reviews.headings import TOP, Purpose, Section, sections
from disputes.protocol.text.documents import STATED, Line, Table, joined, tables


@dataclass(frozen=True, slots=True)
class Layout:
    """A review, arranged by lines; all lists are indexed by line from 0, `sections` contains only headings.

    `named` are the lines with an id or a tick, which may report on an earlier finding.
    """

    lines: Sequence[Line]
    sections: dict[int, Section]
    where: Sequence[Section]
    starts: Sequence[Start | None]
    named: Sequence[int]
    tables: tuple[Table, ...]
    titles: int  # how many headings of the first level there are
    has_list: bool  # whether a heading below the only title says that it lists issues
    raw: Sequence[str] = ()  # the lines of the document as written, which may be in other marks (FND-10)

    def written(self, begin: int, end: int) -> str:
        """Return the text of these lines as written, or as read where a written line has several of them."""
        first, last = self.lines[begin].number - 1, self.lines[end - 1].number
        if last - first != end - begin or last > len(self.raw):
            return joined(self.lines[begin:end])
        return "\n".join(self.raw[first:last]).strip("\n")


def lay_out(lines: Sequence[Line], text: str = "") -> Layout:
    """Arrange the lines of a scanned document; `text` is what is written."""
    opened = sections(lines)
    where: list[Section] = []
    current = TOP
    for index, section in opened.items():
        where += [current] * (index - len(where))
        current = section
    where += [current] * (len(lines) - len(where))
    read = _first_lines(lines)
    starts = with_prose(lines, with_records(lines, without_false_ids(lines, read, where), where))
    named = [index for index, start in enumerate(starts) if start and (start.coded or start.tick)]
    titles = sum(section.level == 1 for section in opened.values())
    has_list = titles == 1 and any(
        section.own is Purpose.ISSUES and section.parent is not None and section.parent.level == 1
        for section in opened.values()
    )
    raw = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return Layout(lines, opened, where, starts, named, tuple(tables(lines)), titles, has_list, raw)


def _first_lines(lines: Sequence[Line]) -> list[Start | None]:
    """Return how each line begins a finding; a note of one line that calls itself a remark begins none."""
    told = [line for line in lines if line.text.strip()]
    starts = [read_start(line) if line.text and line.mode is STATED else None for line in lines]
    if len(told) == 1 and any(start and start.tag in ("Low", "Minor") for start in starts):
        return [None] * len(lines)  # "Minor: prefer a timeout."
    return starts
