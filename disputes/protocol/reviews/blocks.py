"""Where the findings of a review begin and end (FND-1). Whether a line begins one depends on its section."""

import re
from collections import Counter
from dataclasses import dataclass

from disputes.protocol.reviews.fields import field_name, field_of
from disputes.protocol.reviews.first_lines import Shape, Start
from disputes.protocol.reviews.group_labels import MAX_LABEL, MAX_OPENING, Group, opened
from disputes.protocol.reviews.headings import (
    OBSERVING,
    TOP,
    Purpose,
    Section,
    bare,
    purpose_of,
    section_severity,
)
from disputes.protocol.reviews.inline_severities import field_severity
from disputes.protocol.reviews.layout import Layout
from disputes.protocol.reviews.statuses import Status, status_below, status_in
from disputes.protocol.reviews.verdicts import verdict_label
from disputes.protocol.text.documents import RULE, STATED
from disputes.protocol.text.identifiers import GAP, gaps_in

MAX_INDENT = 3
MAX_AHEAD = 14
MAX_WORDS = 3  # of a bold line that stands for a heading
STRONG = (Shape.HEADING, Shape.BOLD)
RANK = {Shape.HEADING: 3, Shape.BOLD: 2, Shape.ITEM: 1, Shape.PLAIN: 1, Shape.TAG: 1}
# Sections that only name findings again; they count where a review has no others.
REPEATING = frozenset([Purpose.CLOSING, Purpose.REQUIRED, Purpose.CHECKS, Purpose.GAPS])
SILENT = frozenset([Purpose.PRIOR, Purpose.HISTORY])
NOT_ANONYMOUS = frozenset([*SILENT, Purpose.PRAISE, Purpose.GAPS])
# A heading of these kinds is no title of a finding, unless it is numbered.
STRUCTURAL = frozenset(
    [*SILENT, Purpose.CLOSING, Purpose.PRAISE, Purpose.REQUIRED, Purpose.GAPS, Purpose.CHECKS]
)


@dataclass(frozen=True, slots=True)
class Block:
    """A finding's lines, from `begin` to before `end`, and where it stands."""

    start: Start
    begin: int
    end: int
    section: Section
    group: Group | None

    @property
    def plain(self) -> bool:
        return not self.start.coded and not self.start.bold and not self.start.words


def find_blocks(layout: Layout, *, lenient: bool = False) -> tuple[list[Block], bool]:
    """The blocks of all findings; with `lenient` also those of sections that else only repeat.

    Besides, whether some were passed over because their sections only repeat.
    """
    walk = _Walk(layout, lenient=lenient)
    blocks = _without_repeats(layout, walk.run())
    return blocks, walk.passed_over


class _Walk:
    """One pass over a review that opens a block where a finding begins and closes it where it ends."""

    def __init__(self, layout: Layout, *, lenient: bool) -> None:
        self.layout, self.lenient = layout, lenient
        self.blocks: list[Block] = []
        self.open: tuple[Start, int, Section, Group | None] | None = None
        self.section: Section = layout.where[0] if layout.where else TOP
        self.group: Group | None = None
        self.prose = False  # whether the section holds text before its list
        self.passed_over = False
        self.named = Counter(
            code for index in layout.named if (start := layout.starts[index]) for code in _codes(start)
        )

    def run(self) -> list[Block]:
        lines, opened = self.layout.lines, self.layout.sections
        for index, (line, start) in enumerate(zip(lines, self.layout.starts, strict=True)):
            if index in opened:
                self._heading(index, opened[index], start)
            elif start is not None:
                self._start(index, start)
            elif line.mode is not STATED:
                self.prose = self.prose or self.open is None
            elif text := line.text.strip():
                self._text(index, text)
        self._close(len(lines))
        return self.blocks

    # --- Opening and closing ---

    def _close(self, end: int) -> None:
        if self.open is None:
            return
        start, begin, section, group = self.open
        while end > begin + 1 and (
            not (last := self.layout.lines[end - 1]).text.strip()
            or (last.mode is STATED and RULE.match(last.text))
        ):
            end -= 1
        self.blocks.append(Block(start, begin, end, section, group))
        self.open = None

    def _begin(self, index: int, start: Start, section: Section) -> None:
        self._close(index)
        self.open = (start, index, section, self.group)

    # --- Lines ---

    def _heading(self, index: int, section: Section, start: Start | None) -> None:
        if self.open and self.open[0].shape is Shape.HEADING and section.level > self.open[0].level:
            deeper = not section.states_severity and section.own not in SILENT
            if deeper and not (start and start.coded and not self.open[0].coded):
                return
        self._close(index)
        self.section, self.group, self.prose = section, None, False
        if start is not None and self._heading_begins(index, section, start):
            self._begin(index, start, section)

    def _text(self, index: int, text: str) -> None:
        if text[0] in "-*_" and RULE.match(text):
            self._close(index)
            self.group = None
            return
        opens = text[-1] == ":" and len(text) <= MAX_OPENING and not self._inside(Shape.HEADING, Shape.BOLD)
        if opens and (group := opened(index, text, is_note=not self.layout.sections)):
            self._close(index)
            self.group, self.prose = group, False
            return
        if self.open is None and text[0] != "|":
            self.prose = True

    def _start(self, index: int, start: Start) -> None:
        alone = not start.rest and (start.bold or (start.closed and start.shape is Shape.ITEM))
        if alone and not start.coded and self._take_group(index, start):
            return
        if not start.field and not self._only_goes_on(start) and self._begins(index, start):
            self._begin(index, start, self.section)
        elif self.open is None and start.shape is not Shape.ITEM:
            self.prose = True

    def _only_goes_on(self, start: Start) -> bool:
        """Whether a line is an item in plain words below a heading or bold words: of the finding there."""
        return (
            self.open is not None
            and (self.open[0].bold or self.open[0].shape is Shape.HEADING)
            and start.shape is Shape.ITEM
            and not (start.bold or start.coded)
        )

    def _inside(self, *shapes: Shape) -> bool:
        return self.open is not None and self.open[0].shape in shapes

    # --- Groups ---

    def _take_group(self, index: int, start: Start) -> bool:
        """Whether a bold line is a label for what stands below it, and not a finding or a part of one."""
        label = self.layout.lines[index].text.strip().lstrip("-*_+ ")
        if len(label) > MAX_LABEL + 30 or start.indent > MAX_INDENT:
            return False
        label = label.rstrip("*_ ")
        colon = label.endswith(":")
        severity, ambiguous = section_severity(label)
        purpose: Purpose | None = purpose_of(label)
        # **Praise** among **Blocking** and **Minor**, and what comes behind it
        after_praise = self.group is not None and self.group.purpose is Purpose.PRAISE
        as_heading = start.whole and not colon and len(label.split()) <= MAX_WORDS and (
            purpose is Purpose.PRAISE or (after_praise and purpose is not Purpose.OTHER)
        )  # fmt: skip
        colon = colon or as_heading
        purpose = purpose if colon else None
        if severity is None and not start.bold:
            return False
        if severity is None and (not colon or start.numbering or start.numbered or purpose is Purpose.OTHER):
            return False
        if (
            severity is None
            and not as_heading
            and field_name(label)
            and (self.open is not None or purpose is not Purpose.CLOSING)
        ):
            return False
        if severity is None and self.open is not None:
            before = self.layout.lines[index - 1].text.strip() if index else ""
            outside = not before and start.indent == 0 and start.shape is Shape.BOLD
            if not (outside and self._inside(Shape.ITEM, Shape.TAG, Shape.PLAIN)):
                return False
        if severity is not None and set(re.findall(r"[a-z]+", label.lower())) & OBSERVING:
            purpose = Purpose.OBSERVATIONS
        if purpose is Purpose.OTHER:
            purpose = None
        self._close(index)
        self.group = Group(index, purpose, severity, label.rstrip(":"), start.indent, ambiguous)
        self.prose = False
        return True

    # --- What begins a finding ---

    def _purpose(self) -> Purpose:
        purpose = self.section.purpose
        if purpose in SILENT or self.group is None:
            return purpose
        listing = self.group.purpose in (Purpose.ISSUES, Purpose.OBSERVATIONS)
        if self.group.purpose and not (listing and purpose in REPEATING and not self.section.states_verdict):
            return self.group.purpose
        return Purpose.ISSUES if self.group.severity and purpose is Purpose.OTHER else purpose

    def _is_new(self, start: Start) -> bool:
        """Whether a line with an id of its own and a severity cannot repeat what stands elsewhere."""
        return (
            bool(start.words) and start.shape is not Shape.ITEM
            and all(self.named[code] == 1 for code in _codes(start))
        )  # fmt: skip

    def _repeats(self, purpose: Purpose) -> bool:
        """Whether a finding is passed over because its section only names findings again."""
        if purpose not in REPEATING or self.lenient:
            return False
        self.passed_over = True
        return True

    def _begins(self, index: int, start: Start) -> bool:
        deepest = MAX_INDENT if not self.group else self.group.indent + MAX_INDENT + 2
        if start.indent > deepest:
            return False
        if start.tag:
            return status_in(start) is None and not start.empty
        if start.coded:
            return self._coded_begins(index, start)
        return self._anonymous_begins(index, start)

    def _coded_begins(self, index: int, start: Start) -> bool:
        purpose = self._purpose()
        if start.own and not self._own_begins(index, start, purpose):
            return False
        if purpose in SILENT or start.tick == "x" or (start.shape is Shape.PLAIN and not start.closed):
            return False
        if status_in(start) not in (None, Status.UNRESOLVED):
            return False
        if not self._is_new(start) and self._repeats(purpose):
            return False
        if self.open is not None and self.open[0].coded:
            first = self.open[0]
            if start.shape in (Shape.ITEM, Shape.PLAIN) and (
                start.indent > first.indent
                or first.shape is Shape.HEADING
                or (first.shape is Shape.BOLD and not start.bold)
            ):
                return False
        if start.native and not start.own:
            listing = purpose in (Purpose.ISSUES, Purpose.OBSERVATIONS)
            if purpose is Purpose.PRAISE:
                return False
            if start.shape is Shape.PLAIN:
                sure = start.native.isupper() or self._severity_below(index, start)
                return listing or (len(start.native) > 4 and sure and bool(start.title))
            if start.shape is Shape.ITEM and not start.bold and not start.bracket:
                return listing or bool(start.words)
        return True

    def _own_begins(self, index: int, start: Start, purpose: Purpose) -> bool:
        """Whether what looks like an id of the reviewer's own is one: where issues are listed, or severe."""
        first = self.open[0] if self.open else start
        alike = first.coded and first.shape is start.shape and start.indent <= first.indent
        if purpose in NOT_ANONYMOUS or not start.title or not (alike or self._stands(start)):
            return False
        listing = purpose in (Purpose.ISSUES, Purpose.OBSERVATIONS, Purpose.REQUIRED)
        return listing or bool(start.words) or self._severity_below(index, start)

    def _stands(self, start: Start) -> bool:
        """Whether a line without an id is strong enough to end the finding that is open."""
        if self.open is None:
            return True
        first = self.open[0]
        if RANK[start.shape] != RANK[first.shape]:
            return RANK[start.shape] > RANK[first.shape] and bool(start.words or start.numbering)
        if start.shape is Shape.BOLD:
            return not first.coded or bool(start.words)
        return (
            start.indent <= first.indent
            and start.numbered is first.numbered
            and (start.bold or not first.bold)
            and (not first.coded or bool(start.words))
        )

    def _anonymous_begins(self, index: int, start: Start) -> bool:
        purpose = self._purpose()
        if (
            start.field
            or start.tick == "x"
            or purpose in NOT_ANONYMOUS
            or purpose is Purpose.CLOSING
            or not self._stands(start)
            or start.empty
        ):
            return False
        if start.tick and status_in(start) is not None:
            return False
        if start.bold and verdict_label(self.layout.lines[index].text):
            return False
        words = len(start.title.split())
        if purpose is Purpose.REQUIRED and self._repeats(purpose):
            return False
        if purpose is Purpose.REQUIRED:
            purpose = Purpose.ISSUES
        # **Quality:** good
        label = start.shape is Shape.BOLD and start.closed and bool(start.rest) and not start.numbering
        titled = start.numbered or (start.bold and not label)
        own = bool(start.words) or (titled and self._severity_below(index, start))
        if start.labelled:
            return start.shape is Shape.ITEM
        if purpose in (Purpose.OTHER, Purpose.CHECKS):
            return own and words > 1 and (start.numbered or start.bold or start.trailing)
        if start.shape is Shape.BOLD:
            return own or bool(start.numbering) or (start.whole and not start.closed and words > 1)
        if not (start.bold or own) and self._only_groups(index, start):
            return False
        if start.bold or own:
            return not (start.closed and not start.rest and words <= 1)
        if purpose is not Purpose.ISSUES or self.prose:
            return False
        return self._listing() or (start.numbered and words > 1)

    def _only_groups(self, index: int, start: Start) -> bool:
        """Whether a list item is only the name of what is listed below it, by ids: 1. Storage"""
        lines, starts = self.layout.lines, self.layout.starts
        below = index + 1
        while below < len(lines) and not lines[below].text.strip():
            below += 1
        first = starts[below] if below < len(lines) else None
        return first is not None and first.coded and first.indent > start.indent

    def _listing(self) -> bool:
        """Whether plain list items are findings here: below a severity, or a heading that says Issues."""
        if self.group is not None:
            return self.group.severity is not None or self.group.demands
        return self.section.severity is not None or self.section.own is Purpose.ISSUES

    def _severity_below(self, index: int, start: Start) -> bool:
        """Whether the next lines give the item a severity of its own."""
        lines, starts = self.layout.lines, self.layout.starts
        for below in range(index + 1, min(index + 1 + MAX_AHEAD, len(lines))):
            line, other = lines[below], starts[below]
            if line.mode is not STATED:
                continue
            if other is not None:
                listed = other.shape is Shape.ITEM and (other.numbered or other.bold) and not other.field
                if other.shape is Shape.HEADING or other.coded or (listed and start.shape is Shape.HEADING):
                    return False
                items = start.shape is Shape.ITEM and other.shape is Shape.ITEM
                if items and other.indent <= start.indent and other.numbered is start.numbered:
                    return False
            if (field := field_of(line.text)) and field_severity(field):
                return True
        return False

    def _heading_begins(self, index: int, section: Section, start: Start) -> bool:
        parent = section.parent or TOP
        if start.own and not (
            start.words or parent.purpose is Purpose.ISSUES or self._severity_below(index, start)
        ):
            return False
        if start.coded:
            if (
                parent.purpose in SILENT
                or start.tick == "x"
                or start.empty
                and not start.codes
                and not start.native
            ):
                return False
            if self._repeats(parent.purpose):
                return False
            status = status_in(start) or status_below(self.layout, index)
            return status in (None, Status.UNRESOLVED)
        words = bare(section.title)
        if (
            section.level == 1
            or words.startswith("review")
            or (parent.purpose is not Purpose.ISSUES and GAP.match(section.title.lstrip("*[` ")))
        ):
            return False
        if section.states_severity or start.empty or parent.purpose in NOT_ANONYMOUS or start.tick == "x":
            return False
        if (len(start.title.split()) < 2 and not start.numbering) or (
            gaps_in(start.title) and len(start.title) < 20
        ):
            return False
        if parent.purpose is Purpose.CLOSING or (
            parent.purpose is Purpose.REQUIRED and self._repeats(parent.purpose)
        ):
            return False
        if start.words:
            return True
        if section.own in STRUCTURAL and not start.numbering:
            return False
        if self._severity_below(index, start):
            return True
        return parent.purpose is Purpose.ISSUES and not self._is_category(index, bool(start.numbering))

    def _is_category(self, index: int, numbered: bool) -> bool:
        """Whether a heading below an issues heading only groups findings: a list of them follows at once."""
        lines, starts = self.layout.lines, self.layout.starts
        for below in range(index + 1, min(index + 1 + MAX_AHEAD, len(lines))):
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
            return not numbered and other.shape is Shape.ITEM and other.bold and not other.field
        return False


# --- Repeats ----------------------------------------------------------------------------------------------


def _without_repeats(layout: Layout, blocks: list[Block]) -> list[Block]:
    """The blocks without lines that only name again, elsewhere, a finding that has a block of its own."""
    full: dict[str, Block] = {}
    for block in blocks:
        for code in _codes(block.start):
            if code not in full and _is_full(layout, block):
                full[code] = block
    kept = []
    for block in blocks:
        codes = _codes(block.start)
        repeats = (
            codes
            and not _is_full(layout, block)
            and all(
                code in full
                and (full[code].section is not block.section or full[code].group is not block.group)
                for code in codes
            )
        )
        if not repeats:
            kept.append(block)
    return kept


def _codes(start: Start) -> tuple[str, ...]:
    return start.codes or ((start.native.upper(),) if start.native else ())


def _is_full(layout: Layout, block: Block) -> bool:
    """Whether a block says more than its first line: it is a heading, or words are indented below it."""
    if block.start.shape in STRONG:
        return True
    below = block.begin + 1
    return below < block.end and layout.lines[below].text[:1] in (" ", "\t")
