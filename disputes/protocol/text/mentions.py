"""Where a text names findings: full ids, short ones, lists and ranges, the reviewer's own (ID-4, ANS-3)."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from disputes.protocol.text.identifiers import (  # fmt: skip
    CODE,
    LIST_WORDS,
    MAX_BETWEEN,
    MAX_RANGE,
    NUMBERED,
    RANGE_WORDS,
    SHORT_CODE,
)
from tasks.text.regex import regex

FULL = regex(rf"(?<![\w-]){SHORT_CODE}", re.IGNORECASE)
CANONICAL = regex(CODE)
# An id of the reviewer's that ordinary words may look like: H1, L4, 3.
WEAK = regex(r"#?[A-Z]?[0-9]{1,3}")
MARKS = " \t*_`[]()\"'"


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a line that names one or more findings; `weak` if it may be an ordinary word."""

    start: int
    end: int
    codes: tuple[str, ...]
    weak: bool = False


class _Named(NamedTuple):
    """One id in a text; for a number that continues a list, `code` is only the number."""

    start: int
    end: int
    code: str
    is_number: bool = False


class Names:
    """The names of findings that a document may use; with `known` also the reviewer's own ids among them."""

    def __init__(self, known: Collection[str] | None = None) -> None:
        self.known = None if known is None else {code.upper() for code in known if code}
        own = [code for code in self.known or () if code.strip() and not CANONICAL.fullmatch(code)]
        self._own = re.compile(rf"(?<![\w#-]){_any_of(own)}(?!\w|-\d)", re.IGNORECASE) if own else None

    def knows(self, code: str) -> bool:
        """Whether this finding is one of the known ones; true where none are given."""
        return self.known is None or code in self.known

    def spans(self, text: str) -> list[Span]:
        """The places in this text that name findings, ranges and lists filled in, in their order."""
        named: list[_Named] = []
        if "-" in text and FULL.search(text):
            named = [self._numbered(match) for match in NUMBERED.finditer(text)]
        if self._own:
            named += [
                _Named(match.start(), match.end(), re.sub(r"\s+", " ", match[0].upper()))
                for match in self._own.finditer(text)
            ]
            named.sort()
        return list(_spans(text, named)) if named else []

    def _numbered(self, match: re.Match[str]) -> _Named:
        if match["tail"]:
            return _Named(match.start(), match.end(), match["tail"], is_number=True)
        version, number = (match["version"] or "").upper(), match["number"]
        written = f"ISSUE-R{match['round']}{version}-{number}"
        if not self.knows(written):
            # The review may print it with all its digits.
            padded = f"ISSUE-R{int(match['round'])}{version}-{number.zfill(3)}"
            written = padded if self.knows(padded) else written
        return _Named(match.start(), match.end(), written)


def _any_of(codes: Iterable[str]) -> str:
    """A pattern for these codes, the longest first, that tries each prefix only once."""
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
    """One span for each list or range of ids that stand together."""
    codes: list[str] = []
    start = end = 0
    for each in named:
        if codes and each.start < end:
            continue  # a part of the one before
        near = bool(codes) and each.start - end < MAX_BETWEEN
        between = text[end : each.start].strip(MARKS).lower() if near else "?"
        if codes and (between in RANGE_WORDS or between in LIST_WORDS):
            code = f"{codes[-1].rpartition('-')[0]}-{each.code}" if each.is_number else each.code
            if each.is_number and not 0 < _distance(codes[-1], code) <= MAX_RANGE:
                continue  # another number: ISSUE-R1-001 - 404 errors
            if between in RANGE_WORDS:
                codes += _between(codes[-1], code)
            codes.append(code)
        elif not each.is_number:
            if codes:
                yield _span(start, end, codes)
            codes, start = [each.code], each.start
        else:
            continue
        end = each.end
    if codes:
        yield _span(start, end, codes)


def _span(start: int, end: int, codes: list[str]) -> Span:
    return Span(start, end, tuple(dict.fromkeys(codes)), all(WEAK.fullmatch(code) for code in codes))


def _distance(first: str, last: str) -> int:
    """How many ids of one series lie from the first to the last; 0 where they are none of one series."""
    head, tail = first.rstrip("0123456789"), last.rstrip("0123456789")
    low, high = first[len(head) :], last[len(tail) :]
    return int(high) - int(low) if head == tail and low and high else 0


def _between(first: str, last: str) -> list[str]:
    """The ids between two of one series, no more than MAX_RANGE of them."""
    distance = _distance(first, last)
    if distance > MAX_RANGE:
        return []
    head = first.rstrip("0123456789")
    low = first[len(head) :]
    return [f"{head}{int(low) + step:0{len(low)}d}" for step in range(1, distance)]
