"""Reading an engineer's document of a spec round: its sections by gap, and what else it says (VAL-12)."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from disputes.protocol.text.documents import FENCED, STATED, Line, joined, scan
from disputes.protocol.text.identifiers import gaps_in
from tasks.states import Severity
from tasks.text.regex import regex

# VAL-3: `## Gap Resolution:` in the forms that people and models really write.
RESOLUTION = regex(
    r"(?:(?:gap|engineer|issue)\s+)?(?:resolutions?|revisions?|revised|proposals?|(?:proposed )?solution)\b",
    re.IGNORECASE,
)
# Headings that name a gap without settling it.
BESIDE = regex(
    r"(?:new gaps?|changes|respon[sd]\w*|addressing|remaining|related|references?|dependenc\w+|severity"
    r"|disagree)\b",
    re.IGNORECASE,
)
NUMBERING = regex(r"^[\s*_`\[(]*(?:\d{1,3}(?:\.\d{1,3}){0,3}[.):]?\s+)?[*_`\[]*")
LABEL = regex(
    r"^\s*(?:[-*+]\s+|\|\s*)?(?:\*\*|__)?(?P<label>[A-Za-z][A-Za-z /-]{1,40}?)"
    r"(?:\*\*|__)?\s*(?::|\|)\s*(?:\*\*|__)?(?P<text>.*)$"
)
NEW_GAPS = regex(r"new gaps?\b", re.IGNORECASE)
TRADE_OFFS = regex(r"trade[- ]?offs?\b", re.IGNORECASE)
EXAMPLE = regex(r"\bexamples?\b|\bscenario\b", re.IGNORECASE)
BOLD_LEAD = regex(r"^\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\*\*|__)(?P<text>[^*_]{1,120})")
STATED_SEVERITY = regex(r"[(\[|]?\s?\b(?:CRITICAL|HIGH|MEDIUM|LOW)\b\s?[)\]|]?", re.IGNORECASE)
DEEPEST = 4  # headings below this level are details
GAPS_IN_HEADING = 20  # how many gaps of one heading are read, since each gets a section of its own
SECTION_LEVEL = 2  # the section of a gap ends at the next heading of this level


@dataclass(frozen=True, slots=True)
class GapSection:
    """What the document says about one gap, from its heading to the next section."""

    gap: str
    heading: str
    line: int
    lines: tuple[Line, ...]  # the lines below the heading

    @property
    def text(self) -> str:
        """The text of the section below its heading."""
        return joined(list(self.lines))

    @property
    def examples(self) -> int:
        """The number of examples: those with a label, or the fenced blocks if there are more of these."""
        return max(sum(_is_example(line) for line in self.lines), _fenced_blocks(self.lines))


@dataclass(frozen=True, slots=True)
class ReadProposal:
    """An engineer's document as read."""

    lines: tuple[Line, ...]
    sections: tuple[GapSection, ...]
    has_resolution: bool
    has_trade_offs: bool
    has_new_gaps: bool
    confidence: str | None  # as written; None if no line states it
    announced: frozenset[str]  # the gaps that the document itself introduces (VAL-1)
    mentioned: dict[str, int]  # each gap id that is stated, with the first line that does so

    def unknown(self, known: Collection[str]) -> dict[str, int]:
        """Return the gaps that it mentions and that neither exist nor are introduced by it (VAL-1)."""
        return unknown_gaps(self.mentioned, known, self.announced)

    @property
    def addressed(self) -> tuple[str, ...]:
        """The gaps that have a section, in the order of the document."""
        return tuple(section.gap for section in self.sections)


def read_proposal(text: str) -> ReadProposal:
    """Read a proposal from Markdown, tolerantly (VAL-3). Raises DocumentError only if it is too large."""
    lines = scan(text)
    headings = [(index, *heading) for index, line in enumerate(lines) if (heading := line.heading)]
    announced, has_new_gaps = announced_gaps(lines)
    return ReadProposal(
        lines=tuple(lines),
        sections=tuple(_sections(lines, headings)),
        has_resolution=any(_resolves(words) for _, level, words in headings if level <= DEEPEST),
        has_trade_offs=any(TRADE_OFFS.match(lead) for lead in _leads(lines)),
        has_new_gaps=has_new_gaps,
        confidence=_confidence(lines),
        announced=announced,
        mentioned=mentioned_gaps(lines),
    )


def bare(words: str) -> str:
    """Return a heading without its leading number and marks."""
    return NUMBERING.sub("", words, count=1)


def mentioned_gaps(lines: Iterable[Line]) -> dict[str, int]:
    """Return the gap ids that are not only quoted, each with its first line (ID-3)."""
    found: dict[str, int] = {}
    for line in lines:
        if line.mode is STATED and "GAP-" in line.text:
            for gap in gaps_in(line.text):
                found.setdefault(gap, line.number)
    return found


def unknown_gaps(
    mentioned: Mapping[str, int], known: Collection[str], announced: Collection[str]
) -> dict[str, int]:
    """Return the gaps that are neither known nor introduced, each with its line (VAL-1)."""
    return {gap: line for gap, line in mentioned.items() if gap not in known and gap not in announced}


def announced_gaps(lines: Sequence[Line]) -> tuple[frozenset[str], bool]:
    """Return the ids below a heading or label "New Gaps", and whether there is one (VAL-1)."""
    found: set[str] = set()
    present, level = False, 0  # level 0 is outside of such a section, 7 is below a label
    for line in lines:
        heading = line.heading
        if heading and (not level or heading[0] <= level):
            level = heading[0] if NEW_GAPS.match(bare(heading[1])) else 0
        elif line.mode is STATED and (lead := BOLD_LEAD.match(line.text)):
            if NEW_GAPS.match(lead["text"]):
                level = level or 7
            elif level == 7 and not gaps_in(lead["text"]):
                level = 0
        if level:
            present = True
            if line.mode is STATED:
                found.update(gaps_in(line.text))
    return frozenset(found), present


@dataclass(frozen=True, slots=True)
class NewGap:
    """A gap that a document introduces: its words, its severity if it states one, and where it came up."""

    code: str
    title: str
    severity: Severity | None
    parent: str  # the gap whose section introduces it, or the document's only gap; else empty
    line: int


def new_gaps(proposal: ReadProposal) -> tuple[NewGap, ...]:
    """Return the gaps that a document introduces, each by the first line that names it (VAL-1)."""
    found: dict[str, NewGap] = {}
    owners = {line.number: section.gap for section in proposal.sections for line in section.lines}
    alone = proposal.addressed[0] if len(proposal.addressed) == 1 else ""
    for line in proposal.lines:
        for code in gaps_in(line.text) if line.mode is STATED else ():
            if code in proposal.announced and code not in found and code not in proposal.addressed:
                words = line.text.partition(code)[2]
                found[code] = NewGap(
                    code, _words_of_gap(words), _severity_of_gap(words), owners.get(line.number, alone),
                    line.number,
                )  # fmt: skip
    return tuple(found.values())


def _words_of_gap(words: str) -> str:
    plain = STATED_SEVERITY.sub(" ", words).replace("|", " ")
    return " ".join(plain.strip(" *_`:()[]-–—").split())[:200]


def _severity_of_gap(words: str) -> Severity | None:
    said = STATED_SEVERITY.search(words)
    return Severity(said[0].strip(" ()[]|*:,").lower()) if said else None


def label_of(line: Line) -> tuple[str, str] | None:
    """Return label and text of a line like `**Confidence:** HIGH` or `| Confidence | HIGH |`, or None."""
    match = LABEL.match(line.text[:400]) if line.mode is STATED else None
    return (match["label"].strip().lower(), match["text"].strip(" *_|")) if match else None


def _resolves(words: str) -> bool:
    """Whether a heading opens the resolution of a gap."""
    plain = bare(words)
    return bool(RESOLUTION.match(plain)) or (bool(gaps_in(plain)) and not BESIDE.match(plain))


def _sections(lines: Sequence[Line], headings: Sequence[tuple[int, int, str]]) -> Iterator[GapSection]:
    """Yield one section for each gap: below a heading that resolves it or, without any, one that names it."""
    opening = [
        (index, level, words) for index, level, words in headings if level <= DEEPEST and gaps_in(words)
    ]
    said = [entry for entry in opening if RESOLUTION.match(bare(entry[2]))]
    chosen = said or [entry for entry in opening if not BESIDE.match(bare(entry[2]))]
    starts = {index for index, _, _ in chosen}
    ends = [index for index, level, _ in headings if level <= SECTION_LEVEL] + [len(lines)]
    tops = [index for index, level, _ in headings if level == 1 or index in starts] + [len(lines)]
    seen: set[str] = set()
    for index, level, words in chosen:
        # Below a title that names its gap, the sections of level 2 are parts of the resolution.
        end = _next(tops, index) if level < SECTION_LEVEL else min(_next(ends, index), _next(tops, index))
        below = tuple(lines[index + 1 : end])
        for gap in gaps_in(words)[:GAPS_IN_HEADING]:
            if gap not in seen:
                seen.add(gap)
                yield GapSection(gap, words, lines[index].number, below)


def _next(places: list[int], index: int) -> int:
    """Return the first of these places after a line; the last of them is the end of the document."""
    return places[bisect_right(places, index)]


def _leads(lines: Iterable[Line]) -> Iterator[str]:
    """Yield the words at the beginning of headings and bold labels."""
    for line in lines:
        if heading := line.heading:
            yield bare(heading[1])
        elif line.mode is STATED and (lead := BOLD_LEAD.match(line.text)):
            yield lead["text"]


def _confidence(lines: Iterable[Line]) -> str | None:
    for line in lines:
        heading = line.heading
        told = label_of(Line(line.number, heading[1], line.mode)) if heading else label_of(line)
        if told and told[0] == "confidence":
            return told[1]
        if heading and bare(heading[1]).lower().startswith("confidence"):
            return bare(heading[1])[len("confidence") :].strip(" :")
    return None


def _is_example(line: Line) -> bool:
    if heading := line.heading:
        return _names_one_example(heading[1])
    lead = BOLD_LEAD.match(line.text) if line.mode is STATED else None
    return bool(lead and _names_one_example(lead["text"]))


def _names_one_example(words: str) -> bool:
    """Whether the words name one example; a heading over all of them does not."""
    return bool(EXAMPLE.search(words)) and not words.lower().strip(" *:").endswith("examples")


def _fenced_blocks(lines: Sequence[Line]) -> int:
    """Return how many fenced blocks there are; one begins wherever the mode changes to fenced."""
    before = STATED
    blocks = 0
    for line in lines:
        blocks += line.mode is FENCED and before is not FENCED
        before = line.mode
    return blocks
