"""Finding where a text names findings: full and short ids, reviewers' own, lists and ranges (ID-4, ANS-3)."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from disputes.protocol.text import identifiers
from tasks.text.regex import regex

FULL = regex(rf"(?<![\w-]){identifiers.SHORT_CODE}", re.IGNORECASE)
CANONICAL = regex(identifiers.CODE)
# An id of the reviewer's own that may be mistaken for an ordinary word: H1, L4, 3.
WEAK = regex(r"#?[A-Z]?[0-9]{1,3}")
# A finding that a line begins with and only counts: "Finding 3: fixed", "#3 - fixed".
COUNTED = regex(
    r"[\s>#*|+-]{0,12}(?:\d{1,3}[.)]\s+)?(?:\[[ xX]\]\s+)?[*_`(\[]{0,4}"
    r"(?P<name>(?:finding|issue|point|item|concern|comment)\s+(?:no\.?\s*|number\s+|#)?(?P<number>\d{1,3})"
    r"|#(?P<sign>\d{1,3}))(?![\w-]|[.:]\d)",
    re.IGNORECASE,
)
MARKS = " \t*_`[]()\"'"


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a line that names one or more findings; `weak` if it may be an ordinary word instead."""

    start: int
    end: int
    codes: tuple[str, ...]
    weak: bool = False


class _Named(NamedTuple):
    """One id in a text; if `is_number`, it continues a list and `code` is only its number.

    If it `is_counted`, it is named by that number alone, which only leads what is said of it.
    """

    start: int
    end: int
    code: str
    is_number: bool = False
    is_counted: bool = False


class Names:
    """The names of findings that a document may use; `known` adds the reviewer's own ids among them."""

    def __init__(self, known: Collection[str] | None = None) -> None:
        self.known = None if known is None else {code.upper() for code in known if code}
        own = [code for code in self.known or () if code.strip() and not CANONICAL.fullmatch(code)]
        numbered = [(int(code.rpartition("-")[2]), code) for code in self.known or () if FULL.fullmatch(code)]
        counts = Counter(number for number, _ in numbered)
        self._of_number = {number: code for number, code in numbered if counts[number] == 1}
        self._own = re.compile(rf"(?<![\w#-]){_any_of(own)}(?!\w|-\d)", re.IGNORECASE) if own else None

    def knows(self, code: str) -> bool:
        """Whether the code is one of the known ones; always true if none were given."""
        return self.known is None or code in self.known

    def spans(self, text: str) -> list[Span]:
        """Return the places in this text that name findings, in order, with lists and ranges filled in."""
        named: list[_Named] = []
        if "-" in text and FULL.search(text):
            named = [self._numbered(match) for match in identifiers.NUMBERED.finditer(text)]
        if self._own:
            named += [
                _Named(match.start(), match.end(), re.sub(r"\s+", " ", match[0].upper()))
                for match in self._own.finditer(text)
            ]
        if self._of_number and (match := COUNTED.match(text)):
            number = int(match["number"] or match["sign"])
            if code := self._of_number.get(number):
                named.append(_Named(match.start("name"), match.end(), code, is_counted=bool(match["sign"])))
        return list(_spans(text, sorted(named))) if named else []

    def _numbered(self, match: re.Match[str]) -> _Named:
        if match["tail"]:
            return _Named(match.start(), match.end(), match["tail"], is_number=True)
        version, number = (match["version"] or "").upper(), match["number"]
        written = f"ISSUE-R{match['round']}{version}-{number}"
        if not self.knows(written):
            # The review may print the code with all its digits.
            padded = f"ISSUE-R{int(match['round'])}{version}-{number.zfill(3)}"
            written = padded if self.knows(padded) else written
        return _Named(match.start(), match.end(), written)


def codes_in(text: str) -> list[str]:
    """Return the canonical codes in a text, with short ones in full and ranges filled in (ID-4)."""
    return [code for span in Names().spans(text) for code in span.codes]


def _any_of(codes: Iterable[str]) -> str:
    """Return a pattern that matches any of these codes, longest first, and tries each prefix only once."""
    root: dict[str, Any] = {}
    for code in sorted(codes):
        node = root
        for letter in " ".join(code.split()):
            node = node.setdefault(letter, {})
        node[""] = {}
    return _branches(root)


def _branches(node: dict[str, Any]) -> str:
    found = [
        (r"\s+" if letter == " " else re.escape(letter)) + _branches(below)
        for letter, below in node.items()
        if letter
    ]
    return f"(?:{'|'.join(found)}){'?' if '' in node else ''}" if found else ""


def _spans(text: str, named: Iterable[_Named]) -> Iterator[Span]:
    """Yield one span for each run of ids that form a list or a range."""
    codes: list[str] = []
    start = end = 0
    is_weak = False
    for each in named:
        if codes and each.start < end:
            continue  # part of the previous id
        near = bool(codes) and each.start - end < identifiers.MAX_BETWEEN
        between = text[end : each.start].strip(MARKS).lower() if near else "?"
        if codes and (between in identifiers.RANGE_WORDS or between in identifiers.LIST_WORDS):
            code = f"{codes[-1].rpartition('-')[0]}-{each.code}" if each.is_number else each.code
            if each.is_number and not 0 < _distance(codes[-1], code) <= identifiers.MAX_RANGE:
                continue  # a number that is no id: ISSUE-R1-001 - 404 errors
            if between in identifiers.RANGE_WORDS:
                codes += _between(codes[-1], code)
            codes.append(code)
        elif not each.is_number:
            if codes:
                yield _span(start, end, codes, is_weak)
            codes, start, is_weak = [each.code], each.start, each.is_counted
        else:
            continue
        end = each.end
    if codes:
        yield _span(start, end, codes, is_weak)


def _span(start: int, end: int, codes: list[str], is_weak: bool) -> Span:
    is_weak = is_weak or all(WEAK.fullmatch(code) for code in codes)
    return Span(start, end, tuple(dict.fromkeys(codes)), is_weak)


def _distance(first: str, last: str) -> int:
    """Return how far the last id is from the first by number; 0 if they do not belong to one series."""
    head, tail = first.rstrip("0123456789"), last.rstrip("0123456789")
    low, high = first[len(head) :], last[len(tail) :]
    return int(high) - int(low) if head == tail and low and high else 0


def _between(first: str, last: str) -> list[str]:
    """Return the ids between two ids of one series; none if they are more than MAX_RANGE apart."""
    distance = _distance(first, last)
    if distance > identifiers.MAX_RANGE:
        return []
    head = first.rstrip("0123456789")
    low = first[len(head) :]
    return [f"{head}{int(low) + step:0{len(low)}d}" for step in range(1, distance)]
