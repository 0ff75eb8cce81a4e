"""Which lines begin a finding: for each kind of line an ordered table of rules, the first of which decides.

A rule is a reason in plain words, which `check_round --explain` prints, and when it applies.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from disputes.protocol.reviews.fields import field_of
from disputes.protocol.reviews.first_lines import Shape, Start
from disputes.protocol.reviews.group_labels import MAX_INDENT, Group
from disputes.protocol.reviews.headings import Purpose, Section, bare
from disputes.protocol.reviews.inline_severities import field_severity
from disputes.protocol.reviews.layout import Layout
from disputes.protocol.reviews.statuses import Status, status_below, status_in
from disputes.protocol.reviews.verdicts import verdict_label
from disputes.protocol.text.documents import STATED
from disputes.protocol.text.identifiers import GAP, gaps_in

MAX_AHEAD = 14
RANK = {Shape.HEADING: 3, Shape.BOLD: 2, Shape.ITEM: 1, Shape.PLAIN: 1, Shape.TAG: 1}
LISTING = frozenset([Purpose.ISSUES, Purpose.OBSERVATIONS])
# Sections that only name findings again; they count where a review has no others.
REPEATING = frozenset([Purpose.CLOSING, Purpose.REQUIRED, Purpose.CHECKS, Purpose.GAPS])
SILENT = frozenset([Purpose.PRIOR, Purpose.HISTORY])
WITHOUT_FINDINGS = frozenset([*SILENT, Purpose.PRAISE, Purpose.GAPS])  # but for those with an id
# A heading of these kinds is no title of a finding, unless it is numbered.
STRUCTURAL = frozenset([*SILENT, *REPEATING, Purpose.PRAISE])


@dataclass
class Candidate:
    """A line that may begin a finding, and what stands around it.

    `purpose` is that of the section or group in which it stands, for a heading that of the section above it.
    `open` is the first line of the finding that is not closed yet.
    """

    layout: Layout
    index: int
    start: Start
    section: Section
    purpose: Purpose
    group: Group | None
    open: Start | None
    is_after_prose: bool  # the section holds text before its list
    is_lenient: bool  # sections that only repeat count as well
    named: Counter[str]  # how often the review begins a line with each code

    # --- Where it stands ---

    @property
    def is_repeating(self) -> bool:
        """Whether it is passed over because its section only names findings again."""
        return self.purpose in REPEATING and not self.is_lenient

    @property
    def is_among_issues(self) -> bool:
        """Whether issues are listed here, or what must change."""
        return self.purpose in (Purpose.ISSUES, Purpose.REQUIRED)

    @property
    def is_listing_all(self) -> bool:
        """Whether plain list items are findings here: below a severity, or a heading that says Issues."""
        if self.group is not None:
            return self.group.severity is not None or self.group.demands
        return self.section.severity is not None or self.section.own is Purpose.ISSUES

    @property
    def is_too_deep(self) -> bool:
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
        )

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
    def is_alike(self) -> bool:
        """Whether it is written as the finding with an id above it."""
        first = self.open or self.start
        return first.coded and first.shape is self.start.shape and self.start.indent <= first.indent

    @property
    def is_strong(self) -> bool:
        """Whether a line without an id is strong enough to end the finding above it."""
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
            and (start.bold or not first.bold)
            and (not first.coded or bool(start.words))
        )

    # --- What it says ---

    @property
    def is_status(self) -> bool:
        """Whether it says what became of an earlier finding."""
        return status_in(self.start) is not None

    @property
    def is_settled(self) -> bool:
        """Whether it says that an earlier finding is no longer open."""
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
        """Whether a line with an id of its own and a severity cannot repeat what stands elsewhere."""
        return (
            bool(self.start.words)
            and self.start.shape is not Shape.ITEM
            and all(self.named[code] == 1 for code in self.start.all_codes)
        )

    @property
    def has_words(self) -> bool:
        """Whether its title is more than one word."""
        return len(self.start.title.split()) > 1

    @property
    def is_bare_native(self) -> bool:
        """Whether its id is a native one (H1, CRIT-001) with nothing around it that marks it as an id."""
        start = self.start
        plain = start.shape is Shape.PLAIN or (
            start.shape is Shape.ITEM and not start.bold and not start.bracket
        )
        return plain and bool(start.native) and not start.own

    @property
    def is_sure_native(self) -> bool:
        """Whether a native id without marks is meant as one all the same."""
        start = self.start
        if self.purpose in LISTING:
            return True
        if start.shape is Shape.ITEM:
            return bool(start.words)
        sure = start.native.isupper() or self.has_severity_below
        return len(start.native) > 4 and sure and bool(start.title)

    @cached_property
    def has_severity(self) -> bool:
        """Whether a line without an id is given a severity of its own, beside it or below it."""
        start = self.start
        # **Quality:** good
        label = start.shape is Shape.BOLD and start.closed and bool(start.rest) and not start.numbering
        titled = start.numbered or (start.bold and not label)
        return bool(start.words) or (titled and self.has_severity_below)

    @cached_property
    def has_severity_below(self) -> bool:
        """Whether the next lines, up to the next finding, state a severity."""
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
        """Whether a list item is only the name of what is listed below it, by ids: 1. Storage"""
        lines, starts = self.layout.lines, self.layout.starts
        below = self.index + 1
        while below < len(lines) and not lines[below].text.strip():
            below += 1
        first = starts[below] if below < len(lines) else None
        return first is not None and first.coded and first.indent > self.start.indent

    @property
    def is_category(self) -> bool:
        """Whether a heading below an issues heading only groups findings: a list of them follows at once."""
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


# --- The rules --------------------------------------------------------------------------------------------


class LineRule(NamedTuple):
    """Why a line begins a finding or none, and when that holds."""

    reason: str
    applies: Callable[[Candidate], object]
    begins: bool = False
    repeats: bool = False  # what is passed over would count if the review had no other findings


def none(reason: str, applies: Callable[[Candidate], object]) -> LineRule:
    return LineRule(reason, applies)


def begins(reason: str, applies: Callable[[Candidate], object] = lambda c: True) -> LineRule:
    return LineRule(reason, applies, begins=True)


def repeats(applies: Callable[[Candidate], object]) -> LineRule:
    reason = "the section only names again what is raised elsewhere in the review"
    return LineRule(reason, applies, repeats=True)


def otherwise(reason: str) -> LineRule:
    return LineRule(reason, lambda c: True)


TICKED = none("a ticked line says that something is in order", lambda c: c.start.tick == "x")
NOTHING = none("it says that there is none, or only counts", lambda c: c.start.empty)
SETTLED = none("it says what became of an earlier finding", lambda c: c.is_settled)
IN_SILENT_SECTION = none("the section tells of earlier findings or versions", lambda c: c.purpose in SILENT)
IN_SECTION_WITHOUT_FINDINGS = (
    IN_SILENT_SECTION,
    none("the section praises", lambda c: c.purpose is Purpose.PRAISE),
    none("the section looks at gaps that the coder opened", lambda c: c.purpose is Purpose.GAPS),
)
TOO_DEEP = none("it is indented too far", lambda c: c.is_too_deep)
LOOKS_LIKE_ID = "what looks like an id is none: "

TAGGED = (
    TOO_DEEP,
    none("it says what became of an earlier finding", lambda c: c.is_status),
    NOTHING,
    begins("a tag such as [HIGH] or nit: begins a finding"),
)
CODED = (
    TOO_DEEP,
    none(
        f"{LOOKS_LIKE_ID}the section holds no findings",
        lambda c: c.start.own and c.purpose in WITHOUT_FINDINGS,
    ),
    none(f"{LOOKS_LIKE_ID}no title follows it", lambda c: c.start.own and not c.start.title),
    none(
        f"{LOOKS_LIKE_ID}it goes on with the finding above it",
        lambda c: c.start.own and not (c.is_alike or c.is_strong),
    ),
    none(
        f"{LOOKS_LIKE_ID}it has no severity and stands in no list of issues",
        lambda c: (
            c.start.own
            and not (c.is_among_issues or c.purpose in LISTING or c.start.words or c.has_severity_below)
        ),
    ),
    IN_SILENT_SECTION,
    TICKED,
    none(
        "the id begins a sentence: no colon or dash follows it",
        lambda c: c.start.shape is Shape.PLAIN and not c.start.closed,
    ),
    SETTLED,
    repeats(lambda c: not c.is_new and c.is_repeating),
    none("the id is named inside the finding above it", lambda c: c.is_part_of_coded),
    none(
        "the section praises",
        lambda c: c.start.native and not c.start.own and c.purpose is Purpose.PRAISE,
    ),
    none(
        "a short id without marks counts only in a list of issues, or with a severity",
        lambda c: c.is_bare_native and not c.is_sure_native,
    ),
    begins("a line with an id begins a finding"),
)
ANONYMOUS = (
    none("it is a labelled part of a finding", lambda c: c.start.field),
    none("an item in plain words belongs to the finding above it", lambda c: c.is_plain_item_below),
    TOO_DEEP,
    TICKED,
    *IN_SECTION_WITHOUT_FINDINGS,
    none("the section sums up", lambda c: c.purpose is Purpose.CLOSING),
    none("it goes on with the finding above it", lambda c: not c.is_strong),
    NOTHING,
    none("it says what became of an earlier finding", lambda c: c.start.tick and c.is_status),
    none("it states a verdict", lambda c: c.is_verdict),
    repeats(lambda c: c.purpose is Purpose.REQUIRED and c.is_repeating),
    begins(
        "a list item with a label such as Issue begins a finding",
        lambda c: c.start.labelled and c.start.shape is Shape.ITEM,
    ),
    none("a label such as Issue begins a finding only in a list", lambda c: c.start.labelled),
    begins(
        "a line with a title and a severity begins a finding even outside a list of issues",
        lambda c: (
            c.purpose in (Purpose.OTHER, Purpose.CHECKS)
            and (c.start.numbered or c.start.bold or c.start.trailing)
            and c.has_words
            and c.has_severity
        ),
    ),
    none(
        "without an id or a severity it counts only in a list of issues",
        lambda c: c.purpose in (Purpose.OTHER, Purpose.CHECKS),
    ),
    begins(
        "a bold title with a number or a severity, or alone on its line, begins a finding",
        lambda c: (
            c.start.shape is Shape.BOLD
            and (
                c.start.numbering or (c.start.whole and not c.start.closed and c.has_words) or c.has_severity
            )
        ),
    ),
    none("bold words with text behind them are a label", lambda c: c.start.shape is Shape.BOLD),
    none(
        "it only names what is listed below it by ids",
        lambda c: not (c.start.bold or c.has_severity) and c.is_name_of_list,
    ),
    none(
        "one word before a colon is a label",
        lambda c: (
            (c.start.bold or c.has_severity) and c.start.closed and not c.start.rest and not c.has_words
        ),
    ),
    begins(
        "a list item in bold or with a severity begins a finding in a list of issues",
        lambda c: c.start.bold or c.has_severity,
    ),
    none("the section holds observations: plain items are remarks", lambda c: not c.is_among_issues),
    none("text stands before the list, to which its items belong", lambda c: c.is_after_prose),
    begins(
        "every item below a severity, or below a heading that says Issues, begins a finding",
        lambda c: c.is_listing_all,
    ),
    begins(
        "a numbered item in a list of issues begins a finding",
        lambda c: c.start.numbered and c.has_words,
    ),
    otherwise("neither its heading nor its label says that every item is an issue"),
)

CODED_HEADING = (
    none(
        f"{LOOKS_LIKE_ID}it has no severity and stands below no heading that says Issues",
        lambda c: c.start.own and not (c.start.words or c.purpose is Purpose.ISSUES or c.has_severity_below),
    ),
    IN_SILENT_SECTION,
    TICKED,
    repeats(lambda c: c.is_repeating),
    none(
        "it, or its status below it, says what became of an earlier finding",
        lambda c: c.is_heading_of_settled,
    ),
    begins("a heading with an id begins a finding"),
)
ANONYMOUS_HEADING = (
    none("it is the title of the document", lambda c: c.section.level == 1),
    none("it says what is reviewed", lambda c: bare(c.section.title).startswith("review")),
    none(
        "it names the gap that is reviewed",
        lambda c: c.purpose is not Purpose.ISSUES and GAP.match(c.section.title.lstrip("*[` ")),
    ),
    none("it gives a severity to what stands below it", lambda c: c.section.states_severity),
    NOTHING,
    *IN_SECTION_WITHOUT_FINDINGS,
    TICKED,
    none("one word is no title", lambda c: not c.has_words and not c.start.numbering),
    none(
        "it is little more than the id of a gap", lambda c: len(c.start.title) < 20 and gaps_in(c.start.title)
    ),
    none("the section above it sums up", lambda c: c.purpose is Purpose.CLOSING),
    repeats(lambda c: c.purpose is Purpose.REQUIRED and c.is_repeating),
    begins("a heading with a severity beside its title begins a finding", lambda c: c.start.words),
    none("it names a part of the review", lambda c: c.section.own in STRUCTURAL and not c.start.numbering),
    begins("a heading with a severity below it begins a finding", lambda c: c.has_severity_below),
    begins(
        "a heading below one that says Issues begins a finding",
        lambda c: c.purpose is Purpose.ISSUES and not c.is_category,
    ),
    none("it only groups the findings below it", lambda c: c.purpose is Purpose.ISSUES),
    otherwise("it has no id and no severity, and stands below no heading that says Issues"),
)


def rules_for(start: Start, *, is_heading: bool) -> tuple[LineRule, ...]:
    """The rules by which a line begins a finding or none."""
    if is_heading:
        return CODED_HEADING if start.coded else ANONYMOUS_HEADING
    if start.tag:
        return TAGGED
    return CODED if start.coded else ANONYMOUS


def deciding_rule(candidate: Candidate, *, is_heading: bool) -> LineRule:
    """The first rule that applies to a line."""
    for rule in rules_for(candidate.start, is_heading=is_heading):
        if rule.applies(candidate):
            return rule
    raise AssertionError("The last rule of every table applies.")
