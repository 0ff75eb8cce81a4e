"""Whether anything of substance was done: the finding's section changed, in words of its impact (SIL-4)."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from disputes.protocol.text.chapters import chapters
from disputes.protocol.text.documents import Line, scan
from disputes.protocol.text.identifiers import GAP, gaps_in
from disputes.protocol.text.keywords import keywords, overlap, tokens
from tasks.text.regex import regex

LINES = regex(r"(?:\blines?|\bll?\.?|(?<=[\w)])[:#]L?)\s*(?P<first>\d{1,6})", re.IGNORECASE)
# Words of a location that say what kind of place it is, not which one.
_KINDS = """
section sections line lines the in of and at to see paragraph heading table step under part document proposal
engineer md throughout
"""
KINDS = frozenset(_KINDS.split())
NUMBERED = regex(r"\d+(?:\.\d+)+|[^\W_]+")
PARENTHESES = regex(r"\([^()]*\)")
NUMBER = regex(r"(?:section\s+|§\s?)?(\d+(?:\.\d+)+)\b", re.IGNORECASE)
# What separates the parts of a location: `Keybinding Summary table, Tab key`, `Formula and Definitions`.
PARTS = regex(r"[,;/:]|\s[-–—]\s|\s(?:and|vs\.?|versus)\s", re.IGNORECASE)
QUOTED = regex(r"[\"“`]([^\"“”`\n]{8,200})[\"”`]")
LOCATION_MAX = 400
MAX_QUOTES = 3
MAX_CANDIDATES = 60  # how many sections that share a word with a location are considered
MAX_OF_ONE_HEADING = 20  # how many old sections are compared with the same new one
MAX_WORDS = 12  # how many words of a location are looked up


class Substance(StrEnum):
    """What became of the place of a finding (SIL-4); NO and PARTIAL raise a flag."""

    YES = "yes"
    PARTIAL = "partial"
    NO = "no"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Change:
    """The outcome of SIL-4; `overlap` is the share of the impact's keywords in what changed (SIL-13)."""

    substance: Substance
    section: str = ""
    overlap: float | None = None

    @property
    def flags(self) -> bool:
        return self.substance in {Substance.NO, Substance.PARTIAL}


NOT_APPLICABLE = Change(Substance.NOT_APPLICABLE)


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    gap: str  # the gap that its heading names, or else a heading above it
    words: frozenset[str]
    number: str  # `2.1` in `2.1 Limits`; empty if there is none, or if it has only one level
    start: int  # the index of its heading
    end: int  # the index after its last line, subsections included
    parent: int  # the index of the section above it, or -1


class Outline:
    """The sections of one document, to be found by the words of a location."""

    def __init__(self, document: str) -> None:
        self.lines = scan(document)
        self.sections = list(_sections(self.lines))
        bodies = [" ".join(line.text.split()).lower() for line in self.lines]
        self._text = "\n".join(bodies)
        self._offsets = list(accumulate((len(body) + 1 for body in bodies), initial=0))
        self._starts = [section.start for section in self.sections]
        self._by_word: dict[str, list[int]] = {}
        self._by_title: dict[tuple[str, str], int] = {}
        self._by_gap: dict[str, int] = {}
        for index, section in enumerate(self.sections):
            title = plain_title(section.title)
            self._by_title.setdefault((section.gap, title), index)
            self._by_title.setdefault(("", title), index)
            self._by_gap.setdefault(section.gap, index)
            for word in section.words:
                self._by_word.setdefault(word, []).append(index)

    def find(self, location: str) -> int | None:
        """Return the index of the section that a location names, or None.

        It is found by a heading or its number, a quotation, a line number, or the gap.
        """
        location = location[:LOCATION_MAX]
        gap = next((gap for gap in gaps_in(location) if gap in self._by_gap), "")
        for part in (location, *PARTS.split(QUOTED.sub(" ", location))[:MAX_WORDS]):
            if (found := self._named(part, gap)) is not None:
                return found
        for quote in QUOTED.findall(location)[:MAX_QUOTES]:
            at = self._text.find(" ".join(quote.split()).lower())
            if at >= 0 and (found := self._at(bisect_right(self._offsets, at) - 1)) is not None:
                return found
        match = LINES.search(location)
        if match and (found := self._at(int(match["first"]) - 1)) is not None:
            return found
        return self._by_gap[gap] if gap else None

    def _named(self, part: str, gap: str) -> int | None:
        """Return the index of the section whose heading these words name, or None."""
        words = _words(part)
        if not words:
            return None
        title = self._by_title.get((gap, plain_title(part)))
        if title is not None:
            return title
        best: tuple[int, int, int] | None = None
        for index in self._sharing(words):
            section = self.sections[index]
            if gap and section.gap != gap:
                continue
            numbered = bool(section.number) and section.number in words
            if numbered or section.words <= words or words <= section.words:
                rank = (len(section.words & words) + 9 * numbered, -len(section.words - words), -index)
                best = max(best, rank) if best else rank
        return -best[2] if best else None

    def like(self, section: _Section) -> int | None:
        """Return the index of the section with the same heading, for the same gap if it has one, or None."""
        title = plain_title(section.title)
        if section.gap and any(self._by_gap):
            return self._by_title.get((section.gap, title))
        return self._by_title.get(("", title))

    def body(self, index: int) -> list[str]:
        """Return the lines below the heading, with white space normalised and without the empty ones."""
        section = self.sections[index]
        bodies = (" ".join(line.text.split()) for line in self.lines[section.start + 1 : section.end])
        return [text for text in bodies if text]

    def _sharing(self, words: frozenset[str]) -> set[int]:
        postings = sorted((self._by_word[word] for word in words if word in self._by_word), key=len)
        found: set[int] = set()
        for posting in postings[:MAX_WORDS]:
            if len(found) >= MAX_CANDIDATES:
                break
            found.update(posting[:MAX_CANDIDATES])
        return found

    def _at(self, index: int) -> int | None:
        """Return the index of the innermost section around the line with this index, or None."""
        found = bisect_right(self._starts, index) - 1
        while found >= 0 and self.sections[found].end <= index:
            found = self.sections[found].parent
        return found if found >= 0 else None


def plain_title(title: str) -> str:
    """Return a heading for comparison: in lower case, without marks, gap, leading numbers and parentheses."""
    words = tokens(GAP.sub(" ", PARENTHESES.sub(" ", title[:300])))
    while words and words[0].isdigit():
        words = words[1:]
    return " ".join(words)


def _words(text: str) -> frozenset[str]:
    bare = PARENTHESES.sub(" ", LINES.sub(" ", GAP.sub(" ", text[:300]).lower()))
    return frozenset(word for word in NUMBERED.findall(bare) if word not in KINDS)


def _sections(lines: Sequence[Line]) -> Iterator[_Section]:
    gaps: list[str] = []
    for each in chapters(lines):
        around = gaps[each.parent] if each.parent >= 0 else ""
        gaps.append(next(iter(gaps_in(each.title)), around))
        number = NUMBER.match(each.title)
        yield _Section(
            each.title, gaps[-1], _words(each.title), number[1] if number else "", each.start, each.end,
            each.parent,
        )  # fmt: skip


class Comparison:
    """A comparison of two versions of a document, in which each section is compared only once."""

    def __init__(self, old: str, new: str, *, minimum: float = 0.3) -> None:
        """Take both versions, and the least share of an impact's keywords that a change must contain."""
        self._old, self._new = Outline(old), Outline(new)
        self._minimum = minimum
        self._changed: dict[tuple[int, int], frozenset[str] | None] = {}
        self._compared: dict[int, set[int]] = {}

    def change(self, location: str, impact: str) -> Change:
        """Return what became of the place that a finding points at (SIL-4)."""
        before = self._old.find(location) if location.strip() else None
        if before is None:
            return NOT_APPLICABLE
        title = self._old.sections[before].title
        after = self._new.like(self._old.sections[before])
        if after is None:
            return Change(Substance.UNKNOWN, title)
        if not self._may_compare(before, after):
            return Change(Substance.UNKNOWN, title)
        words = self._between(before, after)
        if words is None:
            return Change(Substance.NO, title, 0.0)
        return judged(keywords(impact), words, title, self._minimum)

    def _may_compare(self, before: int, after: int) -> bool:
        """Whether the new section may be compared with one more old section of the same heading.

        Nothing tells sections of the same heading apart, so only the first few are compared.
        """
        compared = self._compared.setdefault(after, set())
        compared.add(before)
        return len(compared) <= MAX_OF_ONE_HEADING

    def _between(self, before: int, after: int) -> frozenset[str] | None:
        """Return the keywords of the lines that differ between both sections; None if no line does."""
        if (before, after) not in self._changed:
            old, new = Counter(self._old.body(before)), Counter(self._new.body(after))
            lines = [*(new - old), *(old - new)]
            self._changed[before, after] = keywords("\n".join(lines)) if lines else None
        return self._changed[before, after]


def judged(impact: frozenset[str], changed: frozenset[str], section: str, minimum: float = 0.3) -> Change:
    """Return the outcome for the keywords of an impact and of what changed; not applicable if it has none."""
    share = overlap(impact, changed)
    if share is None:
        return Change(Substance.NOT_APPLICABLE, section)
    return Change(Substance.PARTIAL if share < minimum else Substance.YES, section, share)
