"""The rules for which lines begin a finding: an ordered table per kind of line, whose first match decides.

A rule consists of a reason in plain words, which `check_round --explain` prints, and a condition.
"""

from collections.abc import Callable
from typing import NamedTuple

from disputes.protocol.reviews.candidate import LISTING, STRUCTURAL, WITHOUT_FINDINGS, Candidate
from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.group_labels import FILE_COUNT
from disputes.protocol.reviews.headings import Purpose, bare
from disputes.protocol.text.identifiers import GAP, gaps_in

Applies = Callable[[Candidate], object]


class LineRule(NamedTuple):
    """A reason why a line begins a finding or does not, and the condition under which it holds."""

    reason: str
    applies: Applies
    begins: bool = False
    repeats: bool = False  # if the review has no other findings, such a line counts after all


def finding(reason: str, applies: Applies = lambda c: True) -> LineRule:
    return LineRule(reason, applies, begins=True)


def no_finding(reason: str, applies: Applies = lambda c: True) -> LineRule:
    return LineRule(reason, applies)


def repetition(applies: Applies) -> LineRule:
    reason = "the section only names again what is raised elsewhere in the review"
    return LineRule(reason, applies, repeats=True)


TICKED = no_finding("a ticked line says that something is in order", lambda c: c.start.tick == "x")
NOTHING = no_finding("it says that there is none, or only counts", lambda c: c.start.empty)
SETTLED = no_finding("it says what became of an earlier finding", lambda c: c.is_settled)
IN_SILENT_SECTION = no_finding(
    "the section tells of earlier findings or versions", lambda c: c.is_among_earlier
)
IN_SECTION_WITHOUT_FINDINGS = (
    IN_SILENT_SECTION,
    no_finding("the section praises", lambda c: c.purpose is Purpose.PRAISE),
    no_finding("the section looks at gaps that the coder opened", lambda c: c.purpose is Purpose.GAPS),
)
TOO_DEEP = no_finding("it is indented too far", lambda c: c.is_too_deep)
LOOKS_LIKE_ID = "what looks like an id is none: "

TAGGED = (
    TOO_DEEP,
    no_finding("it says what became of an earlier finding", lambda c: c.is_status),
    NOTHING,
    finding("a tag such as [HIGH] or nit: begins a finding"),
)
CODED = (
    TOO_DEEP,
    no_finding(
        f"{LOOKS_LIKE_ID}the section holds no findings",
        lambda c: c.start.own and c.purpose in WITHOUT_FINDINGS,
    ),
    no_finding(f"{LOOKS_LIKE_ID}no title follows it", lambda c: c.start.own and not c.start.title),
    no_finding(
        f"{LOOKS_LIKE_ID}it goes on with the finding above it",
        lambda c: c.start.own and not (c.is_alike or c.is_strong),
    ),
    no_finding(
        f"{LOOKS_LIKE_ID}it has no severity and stands in no list of issues",
        lambda c: (
            c.start.own
            and not (c.is_among_issues or c.purpose in LISTING or c.start.words or c.has_severity_below)
        ),
    ),
    IN_SILENT_SECTION,
    TICKED,
    no_finding(
        "the id begins a sentence: no colon or dash follows it",
        lambda c: c.start.shape is Shape.PLAIN and not c.start.closed,
    ),
    SETTLED,
    repetition(lambda c: not c.is_new and c.is_repeating),
    no_finding("the id is named inside the finding above it", lambda c: c.is_part_of_coded),
    no_finding(
        "the section praises",
        lambda c: c.start.native and not c.start.own and c.purpose is Purpose.PRAISE,
    ),
    no_finding(
        "a short id without marks counts only in a list of issues, or with a severity",
        lambda c: c.is_bare_native and not c.is_sure_native,
    ),
    finding("a line with an id begins a finding"),
)
ANONYMOUS = (
    no_finding("it is a labelled part of a finding", lambda c: c.start.field),
    no_finding("an item in plain words belongs to the finding above it", lambda c: c.is_plain_item_below),
    TOO_DEEP,
    TICKED,
    *IN_SECTION_WITHOUT_FINDINGS,
    no_finding(
        "the section sums up",
        lambda c: (
            c.purpose is Purpose.CLOSING
            and not (c.is_last_resort and c.section.states_verdict and c.has_severity)
        ),
    ),
    no_finding("it goes on with the finding above it", lambda c: not c.is_strong),
    NOTHING,
    no_finding("it says what became of an earlier finding", lambda c: c.start.tick and c.is_status),
    no_finding("it states a verdict", lambda c: c.is_verdict),
    repetition(lambda c: c.purpose is Purpose.REQUIRED and c.is_repeating),
    finding(
        "a list item with a label such as Issue begins a finding",
        lambda c: c.start.labelled and c.start.shape is Shape.ITEM,
    ),
    no_finding("a label such as Issue begins a finding only in a list", lambda c: c.start.labelled),
    finding(
        "a line with a title and a severity begins a finding even outside a list of issues",
        lambda c: (
            c.purpose in (Purpose.OTHER, Purpose.CHECKS)
            and (c.start.numbered or c.start.bold or c.start.trailing or c.start.leading)
            and (c.has_words or (c.start.numbered and c.start.words))
            and c.has_severity
        ),
    ),
    finding(
        "in a rejection that raises nothing else, an item of any list begins a finding",
        lambda c: c.is_last_resort and c.start.shape is Shape.ITEM and c.has_words,
    ),
    no_finding(
        "without an id or a severity it counts only in a list of issues",
        lambda c: c.purpose in (Purpose.OTHER, Purpose.CHECKS),
    ),
    no_finding(
        "it names a file and how many comments on it follow", lambda c: FILE_COUNT.fullmatch(c.start.title)
    ),
    finding(
        "a bold title with a number or a severity, or alone on its line, begins a finding",
        lambda c: (
            c.start.shape is Shape.BOLD
            and (
                c.start.numbering or (c.start.whole and not c.start.closed and c.has_words) or c.has_severity
            )
        ),
    ),
    no_finding("bold words with text behind them are a label", lambda c: c.start.shape is Shape.BOLD),
    no_finding(
        "it only names what is listed below it",
        lambda c: not (c.start.bold or c.has_severity) and c.is_name_of_list,
    ),
    no_finding(
        "one word before a colon is a label",
        lambda c: (
            (c.start.bold or c.has_severity) and c.start.closed and not c.start.rest and not c.has_words
        ),
    ),
    finding(
        "a list item in bold or with a severity begins a finding in a list of issues",
        lambda c: c.start.bold or c.has_severity,
    ),
    no_finding("the section holds observations: plain items are remarks", lambda c: not c.is_among_issues),
    no_finding("text stands before the list, to which its items belong", lambda c: c.is_after_prose),
    finding(
        "every item below a severity, or below a heading that says Issues, begins a finding",
        lambda c: c.is_listing_all,
    ),
    finding(
        "a numbered item in a list of issues begins a finding",
        lambda c: c.start.numbered and c.has_words,
    ),
    no_finding("neither its heading nor its label says that every item is an issue"),
)
RECORD = (
    no_finding("the lines belong to the finding above them", lambda c: c.is_below_title),
    *IN_SECTION_WITHOUT_FINDINGS,
    NOTHING,
    no_finding(
        "a place or a number inside of sentences counts only below a request",
        lambda c: c.start.loose and not (c.group is not None and c.group.demands),
    ),
    repetition(lambda c: c.start.prose and c.is_repeating),
    finding(
        "a paragraph that begins with a place, with a number below a request, or with a sentence before its "
        "severity, begins a finding",
        lambda c: c.start.prose,
    ),
    finding("labelled lines of which one states a severity, or a badge that does, begin a finding"),
)

CODED_HEADING = (
    no_finding(
        f"{LOOKS_LIKE_ID}it has no severity and stands below no heading that says Issues or Suggestions",
        lambda c: c.start.own and not (c.start.words or c.purpose in LISTING or c.has_severity_below),
    ),
    IN_SILENT_SECTION,
    TICKED,
    repetition(lambda c: c.is_repeating),
    no_finding(
        "it, or its status below it, says what became of an earlier finding",
        lambda c: c.is_heading_of_settled,
    ),
    finding("a heading with an id begins a finding"),
)
ANONYMOUS_HEADING = (
    no_finding(
        "it is the title of the document",
        lambda c: c.section.level == 1 and not (c.layout.titles > 1 and c.has_severity_below),
    ),
    no_finding("it says what is reviewed", lambda c: bare(c.section.title).startswith("review")),
    no_finding(
        "it names the gap that is reviewed",
        lambda c: c.purpose is not Purpose.ISSUES and GAP.match(c.section.title.lstrip("*[` ")),
    ),
    no_finding("it gives a severity to what stands below it", lambda c: c.section.states_severity),
    NOTHING,
    *IN_SECTION_WITHOUT_FINDINGS,
    TICKED,
    no_finding("one word is no title", lambda c: not (c.has_words or c.start.numbering or c.start.words)),
    no_finding(
        "it is little more than the id of a gap", lambda c: len(c.start.title) < 20 and gaps_in(c.start.title)
    ),
    no_finding("the section above it sums up", lambda c: c.purpose is Purpose.CLOSING),
    repetition(lambda c: c.purpose is Purpose.REQUIRED and c.is_repeating),
    no_finding(
        "it names a list of suggestions",
        lambda c: c.section.own is Purpose.OBSERVATIONS and not c.start.numbering,
    ),
    finding("a heading with a severity beside its title begins a finding", lambda c: c.start.words),
    no_finding(
        "it names a part of the review", lambda c: c.section.own in STRUCTURAL and not c.start.numbering
    ),
    no_finding("findings without titles of their own stand below it", lambda c: c.is_over_records),
    finding("a heading with a severity below it begins a finding", lambda c: c.has_severity_below),
    no_finding("a table stands below it, and it names that", lambda c: c.is_over_table),
    no_finding("another heading below the title says that it lists the issues", lambda c: c.is_beside_list),
    finding(
        "a heading below one that says Issues begins a finding",
        lambda c: c.purpose is Purpose.ISSUES and not c.is_category,
    ),
    finding(
        "a numbered heading below one that says Suggestions begins a finding",
        lambda c: c.purpose is Purpose.OBSERVATIONS and c.start.numbering and not c.is_category,
    ),
    no_finding("it only groups the findings below it", lambda c: c.purpose in LISTING),
    no_finding("it has no id and no severity, and stands below no heading that says Issues"),
)


def rules_for(start: Start, *, is_heading: bool) -> tuple[LineRule, ...]:
    """Return the rules that decide whether a line begins a finding."""
    if is_heading:
        return CODED_HEADING if start.coded else ANONYMOUS_HEADING
    if start.shape is Shape.RECORD:
        return RECORD
    if start.tag:
        return TAGGED
    return CODED if start.coded else ANONYMOUS


def deciding_rule(candidate: Candidate, *, is_heading: bool) -> LineRule:
    """Return the first rule that applies to a line."""
    for rule in rules_for(candidate.start, is_heading=is_heading):
        if rule.applies(candidate):
            return rule
    raise AssertionError("The last rule of every table applies.")
