"""Finding where the findings of a review begin and end (FND-1), by the rules in `beginnings`."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

from disputes.protocol.reviews.beginnings import deciding_rule
from disputes.protocol.reviews.candidate import LISTING, REPEATING, SILENT, Candidate
from disputes.protocol.reviews.first_lines.prose import ORDINAL
from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.group_labels import MAX_LABEL, GroupLabel, bold_label, label_of_list
from disputes.protocol.reviews.headings import TOP, Purpose, Section, purpose_of
from disputes.protocol.reviews.layout import Layout
from disputes.protocol.text.documents import RULE, STATED, trimmed
from disputes.protocol.text.locations import line_alone

STRONG = (Shape.HEADING, Shape.BOLD)


@dataclass(frozen=True, slots=True)
class Block:
    """The lines of one finding, from `begin` to just before `end`, with its section and its group label.

    `place` is the line of a file that stands alone above it.
    """

    start: Start
    begin: int
    end: int
    section: Section
    group: GroupLabel | None
    place: str = ""


class Blocks(NamedTuple):
    """The blocks of all findings, and the reason why each candidate line begins one or does not.

    If `passed_over`, some were left out because their sections only repeat what is raised elsewhere.
    """

    blocks: list[Block]
    reasons: dict[int, str]
    passed_over: bool


def find_blocks(layout: Layout, *, lenient: bool = False, last_resort: bool = False) -> Blocks:
    """Return the blocks of all findings; if `lenient`, include sections that normally only repeat.

    As a `last_resort`, include all items of lists, for a review that rejects and raises nothing else.
    """
    walk = _Walk(layout, lenient=lenient, last_resort=last_resort)
    blocks = _below_places(layout, _without_repeats(layout, walk.run(), walk.reasons))
    return Blocks(blocks, walk.reasons, walk.passed_over)


class _Walk:
    """One pass over a review, which opens a block where a finding begins and closes it where it ends."""

    def __init__(self, layout: Layout, *, lenient: bool, last_resort: bool) -> None:
        self.layout, self.lenient, self.last_resort = layout, lenient, last_resort
        self.blocks: list[Block] = []
        self.open: Block | None = None
        self.section: Section = layout.where[0] if layout.where else TOP
        self.group: GroupLabel | None = None
        self.after_prose = False  # whether the section has text before its list
        self.depth = self.fold_depth = 0  # of parts that fold: here, and where the label stands
        self.reasons: dict[int, str] = {}
        self.passed_over = False
        self.named = Counter(
            code for index in layout.named if (start := layout.starts[index]) for code in start.all_codes
        )

    def run(self) -> list[Block]:
        lines, opened = self.layout.lines, self.layout.sections
        for index, (line, start) in enumerate(zip(lines, self.layout.starts, strict=True)):
            if line.text[:1] == "<" and line.mode is STATED and "details" in line.text:
                self._fold(index, line.text)
            if index in opened:
                self._heading(index, opened[index], start)
            elif start is not None:
                self._start(index, start)
            elif line.mode is not STATED:
                self.after_prose = self.after_prose or self.open is None
            elif text := line.text.strip():
                self._text(index, text)
        self._close(len(lines))
        return self.blocks

    # --- Opening and closing ---

    def _close(self, end: int) -> None:
        if self.open is None:
            return
        below = self.open.begin + 1
        self.blocks.append(replace(self.open, end=below + len(trimmed(self.layout.lines[below:end]))))
        self.open = None

    def _begin(self, index: int, start: Start) -> None:
        self._close(index)
        self.open = Block(start, index, index + 1, self.section, self.group)

    def _open_group(self, group: GroupLabel, reason: str) -> None:
        self._close(group.index)
        self.reasons[group.index] = reason
        self.group, self.after_prose, self.fold_depth = group, False, self.depth

    def _fold(self, index: int, text: str) -> None:
        """Follow how deep parts that fold are nested; their end ends the finding and the label in them."""
        closed = text.count("</details>")
        self.depth += text.count("<details") - closed
        if closed:
            self._close(index)
            if self.group and self.group.folds and self.depth < self.fold_depth:
                self.group = None

    # --- Lines ---

    def _heading(self, index: int, section: Section, start: Start | None) -> None:
        if self.open and self._is_part(self.open.start, section, start):
            self.reasons[index] = "a deeper heading belongs to the finding above it"
            return
        self._close(index)
        self.section, self.group, self.after_prose = section, None, False
        parent = section.parent or TOP
        if start is not None and self._begins(index, start, parent.purpose, is_heading=True):
            self._begin(index, start)

    @staticmethod
    def _is_part(first: Start, section: Section, start: Start | None) -> bool:
        """Whether a heading only divides the finding above it into parts."""
        return (
            first.shape is Shape.HEADING
            and section.level > first.level
            and not section.states_severity
            and section.own not in SILENT
            and not (start is not None and start.coded and (start.words or not first.coded))
        )

    def _text(self, index: int, text: str) -> None:
        if text[0] in "-*_" and RULE.match(text):
            self._close(index)
            self.group = self.group if self.group and self.group.folds else None
            self.reasons[index] = "a horizontal rule ends the finding and the list above it"
        elif (group := self._label_of_list(index, text)) is not None:
            self._open_group(group, "a label or a request: what stands below it lists issues")
        elif self.open is None and text[0] != "|":
            self.after_prose = True
            self._end_list_of_earlier(index)

    def _end_list_of_earlier(self, index: int) -> None:
        """End the list below a plain label that tells of earlier findings, at text of its own."""
        label = self.group
        if (
            label
            and label.purpose in (Purpose.PRIOR, Purpose.PRAISE)
            and self.layout.lines[index].text[:1] not in " \t"
        ):
            self.group = None

    def _label_of_list(self, index: int, text: str) -> GroupLabel | None:
        if self.open and self.open.start.shape in STRONG:
            return None
        if text[-1] != ":" and not (text[-1] in ".!" and self._counts_below(index)):
            return None
        label = label_of_list(index, text, is_note=not self.layout.sections)
        if label is None and self._is_next_label(index, text):
            purpose = purpose_of(text)
            return GroupLabel(index, None if purpose is Purpose.OTHER else purpose, None, "", 0)
        return label

    def _is_next_label(self, index: int, text: str) -> bool:
        """Whether a plain label stands where one with a severity did, and so ends the list of that one."""
        lines, above = self.layout.lines, self.group
        if above is None or text[-1] != ":" or len(text) > MAX_LABEL:
            return False
        if above.severity is None and above.purpose is not Purpose.PRAISE:
            return False
        is_plain = lines[above.index].text[:1].isalnum() and lines[index].text[:1].isalnum()
        return is_plain and not lines[index - 1].text.strip()

    def _counts_below(self, index: int) -> bool:
        """Whether the next paragraph begins with a number in words: "First, …"."""
        lines = self.layout.lines
        below = next((at for at in range(index + 1, len(lines)) if lines[at].text.strip()), index)
        start = self.layout.starts[below]
        return start is not None and start.loose and ORDINAL.match(lines[below].text) is not None

    def _start(self, index: int, start: Start) -> None:
        first = self.open.start if self.open else None
        if label := bold_label(self.layout, index, first, self.group):
            self._open_group(label, "a label: it says what stands below it")
        elif self._begins(index, start, self._purpose(), is_heading=False):
            self._begin(index, start)
        elif self.open is None and start.shape is not Shape.ITEM:
            self.after_prose = True

    # --- What begins a finding ---

    def _purpose(self) -> Purpose:
        """Return the purpose of the lines here, given by their section or by the label above them."""
        purpose = self.section.purpose
        if purpose in SILENT or self.group is None:
            return purpose
        listing = self.group.purpose in LISTING
        if self.group.purpose and not (listing and purpose in REPEATING and not self.section.states_verdict):
            return self.group.purpose
        return Purpose.ISSUES if self.group.severity and purpose is Purpose.OTHER else purpose

    def _begins(self, index: int, start: Start, purpose: Purpose, *, is_heading: bool) -> bool:
        candidate = Candidate(
            layout=self.layout,
            index=index,
            start=start,
            section=self.section,
            purpose=purpose,
            group=self.group,
            open=self.open.start if self.open else None,
            is_after_prose=self.after_prose,
            is_lenient=self.lenient,
            is_last_resort=self.last_resort,
            named=self.named,
        )
        rule = deciding_rule(candidate, is_heading=is_heading)
        self.reasons[index] = rule.reason
        self.passed_over = self.passed_over or rule.repeats
        return rule.begins


# --- Places -----------------------------------------------------------------------------------------------


def _below_places(layout: Layout, blocks: list[Block]) -> list[Block]:
    """Return the blocks with the places above them, if the first has one: a review sets all alike."""
    if not blocks or _place_above(layout, blocks[0].begin) is None:
        return blocks
    found = [_place_above(layout, block.begin) for block in blocks]
    ends = [each[0] if each else len(layout.lines) for each in found[1:]]
    return [
        replace(
            block,
            place=each[1] if each else "",
            end=block.begin + 1 + len(trimmed(layout.lines[block.begin + 1 : min(block.end, end)])),
        )
        for block, each, end in zip(blocks, found, [*ends, len(layout.lines)], strict=True)
    ]


def _place_above(layout: Layout, begin: int) -> tuple[int, str] | None:
    """Return the line above a finding that only names the line of a file, and what it names."""
    for index in range(begin - 1, -1, -1):
        line = layout.lines[index]
        if line.mode is STATED and line.text.strip():
            named = line_alone(line.text)
            return (index, named) if named else None
    return None


# --- Repeats ----------------------------------------------------------------------------------------------


def _without_repeats(layout: Layout, blocks: list[Block], reasons: dict[int, str]) -> list[Block]:
    """Return the blocks without those that only mention a finding which has a fuller block elsewhere."""
    full: dict[str, Block] = {}
    for block in blocks:
        if _is_full(layout, block):
            for code in block.start.all_codes:
                full.setdefault(code, block)
    kept = []
    for block in blocks:
        if _is_repeat(layout, block, full):
            reasons[block.begin] = "it only names again a finding that is told elsewhere in the review"
        else:
            kept.append(block)
    return kept


def _is_repeat(layout: Layout, block: Block, full: dict[str, Block]) -> bool:
    """Whether every code that a block names has a fuller block in another section or group."""
    codes = block.start.all_codes
    if not codes or _is_full(layout, block):
        return False
    return all(
        code in full and (full[code].section is not block.section or full[code].group is not block.group)
        for code in codes
    )


def _is_full(layout: Layout, block: Block) -> bool:
    """Whether a block says more than its first line: it is a heading or bold, or has indented text below."""
    if block.start.shape in STRONG:
        return True
    below = block.begin + 1
    return below < block.end and layout.lines[below].text[:1] in (" ", "\t")
