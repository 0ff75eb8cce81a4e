"""A line that may begin a finding, and the questions about it that the rules in `beginnings` ask."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from disputes.protocol.reviews.fields import field_of
from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.group_labels import MAX_INDENT, GroupLabel
from disputes.protocol.reviews.headings import Purpose, Section
from disputes.protocol.reviews.inline_severities import field_severity
from disputes.protocol.reviews.layout import Layout
from disputes.protocol.reviews.severity import read_severity
from disputes.protocol.reviews.statuses import Status, status_below, status_in
from disputes.protocol.reviews.verdicts import verdict_label
from disputes.protocol.text.documents import STATED
from disputes.protocol.text.locations import LINE_OF_FILE

MAX_AHEAD = 14
RISKS = frozenset(["risk", "risks", "bug", "bugs"])
MAX_NAME = 3  # words of an item that only names a list
RANK = {Shape.HEADING: 3, Shape.BOLD: 2, Shape.ITEM: 1, Shape.PLAIN: 1, Shape.TAG: 1, Shape.RECORD: 1}
LISTING = frozenset([Purpose.ISSUES, Purpose.OBSERVATIONS])
# Sections that only repeat findings; theirs count if a review has no others.
REPEATING = frozenset([Purpose.CLOSING, Purpose.REQUIRED, Purpose.CHECKS, Purpose.GAPS])
SILENT = frozenset([Purpose.PRIOR, Purpose.HISTORY])
WITHOUT_FINDINGS = frozenset([*SILENT, Purpose.PRAISE, Purpose.GAPS])  # except those with an id
# A heading of these kinds is not the title of a finding, unless it is numbered.
STRUCTURAL = frozenset([*SILENT, *REPEATING, Purpose.PRAISE])


@dataclass
class Candidate:
    """A line that may begin a finding, together with what surrounds it.

    `purpose` is that of the section or list that the line is in; for a heading, that of the section above it.
    `open` is the first line of a finding above it that has not ended yet.
    """

    layout: Layout
    index: int
    start: Start
    section: Section
    purpose: Purpose
    group: GroupLabel | None
    open: Start | None
    is_after_prose: bool  # the section has text before its list
    is_lenient: bool  # findings also count in sections that only repeat
    is_last_resort: bool  # the review rejects, and nothing else in it is a finding
    named: Counter[str]  # how many lines of the review begin with each code

    # --- Where the line is ---

    @property
    def is_repeating(self) -> bool:
        """Whether the line is passed over because its section only names findings again."""
        return self.purpose in REPEATING and not self.is_lenient

    @property
    def is_among_earlier(self) -> bool:
        """Whether the line is among earlier findings or versions.

        Below a mere label, a line with a severity may well be a finding of its own.
        """
        below_label = self.group is not None and self.group.purpose is Purpose.PRIOR
        return self.purpose in SILENT and not (below_label and self.start.words)

    @property
    def is_among_issues(self) -> bool:
        """Whether the line is in a list of issues, or of what must change."""
        return self.purpose in (Purpose.ISSUES, Purpose.REQUIRED)

    @property
    def is_listing_all(self) -> bool:
        """Whether plain list items are findings here: below a severity, or a heading that says Issues."""
        if self.group is not None:
            return self.group.severity is not None or self.group.demands
        return self.section.severity is not None or self.section.own is Purpose.ISSUES

    @property
    def is_too_deep(self) -> bool:
        beside = self.open is None or self.start.indent <= self.open.indent
        if beside and self.start.shape is Shape.ITEM and self.has_severity:
            return False  # a finding in a list of files: "- Backend", "  - `cache.py`"
        deepest = self.group.indent + MAX_INDENT + 2 if self.group else MAX_INDENT
        return self.start.indent > deepest

    @property
    def is_plain_item_below(self) -> bool:
        """Whether it is an item in plain words below a heading or bold words that begin a finding."""
        return (
            self.open is not None
            and (self.open.bold or self.open.shape is Shape.HEADING)
            and self.start.shape is Shape.ITEM
            and not self.start.bold
            and not self._is_beside_item
        )

    @property
    def _is_beside_item(self) -> bool:
        """Whether it is an item with a severity of its own, indented as the item that began the finding."""
        start, first = self.start, self.open
        return bool(first and first.shape is Shape.ITEM and start.leading and start.indent == first.indent)

    @property
    def is_part_of_coded(self) -> bool:
        """Whether a line with an id belongs to the finding with an id above it."""
        start, first = self.start, self.open
        if first is None or not first.coded or start.shape not in (Shape.ITEM, Shape.PLAIN):
            return False
        return (
            start.indent > first.indent
            or first.shape is Shape.HEADING
            or (first.shape is Shape.BOLD and not start.bold)
        )

    @property
    def is_below_title(self) -> bool:
        """Whether the line belongs to a finding above it that has a title line and has not ended yet.

        A paragraph in sentences with a place or a severity of its own ends one that is a line or an item.
        """
        if self.open is None or self.open.shape is Shape.RECORD:
            return False
        return not self.start.prose or self.start.loose or self.open.shape in (Shape.HEADING, Shape.BOLD)

    @property
    def is_alike(self) -> bool:
        """Whether it is written in the same way as the finding with an id above it."""
        first = self.open or self.start
        return first.coded and first.shape is self.start.shape and self.start.indent <= first.indent

    @property
    def is_strong(self) -> bool:
        """Whether a line without an id is prominent enough to end the finding above it."""
        start, first = self.start, self.open
        if first is None:
            return True
        if RANK[start.shape] != RANK[first.shape]:
            return RANK[start.shape] > RANK[first.shape] and bool(start.words or start.numbering)
        if start.shape is Shape.BOLD:
            return not first.coded or bool(start.words)
        return (
            start.indent <= first.indent
            and start.numbered is first.numbered
            and (start.bold or not first.bold or self._is_beside_item)
            and (not first.coded or bool(start.words))
        )

    # --- What the line says ---

    @property
    def is_status(self) -> bool:
        """Whether the line says what became of an earlier finding."""
        return status_in(self.start) is not None

    @property
    def is_settled(self) -> bool:
        """Whether the line says that an earlier finding is no longer open."""
        return status_in(self.start) not in (None, Status.UNRESOLVED)

    @property
    def is_heading_of_settled(self) -> bool:
        status = status_in(self.start) or status_below(self.layout, self.index)
        return status not in (None, Status.UNRESOLVED)

    @property
    def is_verdict(self) -> bool:
        return self.start.bold and verdict_label(self.layout.lines[self.index].text) is not None

    @property
    def is_new(self) -> bool:
        """Whether a line with a severity cannot be a repetition, as no other line begins with its codes."""
        return (
            bool(self.start.words)
            and self.start.shape is not Shape.ITEM
            and all(self.named[code] == 1 for code in self.start.all_codes)
        )

    @property
    def has_words(self) -> bool:
        """Whether the title has more than one word, or is the place of a finding."""
        return len(self.start.title.split()) > 1 or LINE_OF_FILE.search(self.start.title) is not None

    @property
    def is_bare_native(self) -> bool:
        """Whether the id is a native one (H1, CRIT-001) that nothing around it marks as an id."""
        start = self.start
        plain = start.shape is Shape.PLAIN or (
            start.shape is Shape.ITEM and not start.bold and not start.bracket
        )
        return plain and bool(start.native) and not start.own

    @property
    def is_sure_native(self) -> bool:
        """Whether a native id without marks is meant as an id all the same."""
        start = self.start
        if self.purpose in LISTING or start.words:
            return True
        if start.shape is Shape.ITEM or start.trailing:
            return False
        sure = start.native.isupper() or self.has_severity_below or read_severity(start.native) is not None
        return len(start.native) > 4 and sure and bool(start.title)

    @cached_property
    def has_severity(self) -> bool:
        """Whether a line without an id has a severity of its own, beside it or below it."""
        start = self.start
        # A label for a judgement, and no title: **Quality:** good
        label = start.shape is Shape.BOLD and start.closed and bool(start.rest) and not start.numbering
        titled = start.numbered or (start.bold and not label)
        return bool(start.words) or (titled and self.has_severity_below)

    @cached_property
    def has_severity_below(self) -> bool:
        """Whether one of the next lines states a severity before another finding begins."""
        lines, starts = self.layout.lines, self.layout.starts
        for below in range(self.index + 1, min(self.index + 1 + MAX_AHEAD, len(lines))):
            line, other = lines[below], starts[below]
            if line.mode is not STATED:
                continue
            if other is not None and _follows(self.start, other):
                return False
            if (field := field_of(line.text)) and field_severity(field):
                return True
        return False

    @property
    def is_name_of_list(self) -> bool:
        """Whether a list item only names the findings that are listed below it, as in `1. Storage`."""
        lines, starts = self.layout.lines, self.layout.starts
        below = self.index + 1
        while below < len(lines) and not lines[below].text.strip():
            below += 1
        first = starts[below] if below < len(lines) else None
        if first is None or first.indent <= self.start.indent:
            return False
        return first.coded or (bool(first.words) and len(self.start.title.split()) <= MAX_NAME)

    @property
    def is_over_table(self) -> bool:
        """Whether a heading without a number comes right before a table."""
        below = (line.text.strip() for line in self.layout.lines[self.index + 1 :][:MAX_AHEAD])
        first = next((text for text in below if text), "")
        return first.startswith("|") and not self.start.numbering

    @property
    def is_over_records(self) -> bool:
        """Whether the section of a heading holds two findings or more that begin without a title."""
        starts = self.layout.starts
        found = 0
        for below in range(self.index + 1, len(starts)):
            other = starts[below]
            if below in self.layout.sections or found > 1:
                break
            found += other is not None and other.shape is Shape.RECORD
        return found > 1

    @property
    def is_beside_list(self) -> bool:
        """Whether a heading right below the title stands beside one that says it lists the issues."""
        parent = self.section.parent
        if not self.layout.has_list or parent is None or parent.level != 1 or self.start.numbering:
            return False
        return not RISKS & {*self.start.title.lower().split()}

    @property
    def is_category(self) -> bool:
        """Whether a heading below an issues heading only groups findings that are listed right below it."""
        lines, starts = self.layout.lines, self.layout.starts
        for below in range(self.index + 1, min(self.index + 1 + MAX_AHEAD, len(lines))):
            if not lines[below].text.strip():
                continue
            other = starts[below]
            if other is None:
                return False
            if other.shape is Shape.HEADING:
                return other.coded or bool(other.words)
            if other.field:
                return False
            if other.coded or other.words or other.tag:
                return True
            return not self.start.numbering and other.shape is Shape.ITEM and other.bold
        return False


def _follows(start: Start, other: Start) -> bool:
    """Whether a line below the first line of a finding is the first line of another one."""
    listed = other.shape is Shape.ITEM and (other.numbered or other.bold) and not other.field
    if other.shape is Shape.HEADING or other.coded or (listed and start.shape is Shape.HEADING):
        return True
    return (
        start.shape is Shape.ITEM
        and other.shape is Shape.ITEM
        and other.indent <= start.indent
        and other.numbered is start.numbered
    )
