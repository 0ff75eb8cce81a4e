"""Reading what a reviewer says about findings of earlier rounds (FND-4), which raises no new findings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.reviews.first_lines.signs import CROSSES, TICKS
from disputes.protocol.reviews.first_lines.start import Shape, Start
from disputes.protocol.reviews.headings import FIRST_SIGN, Purpose, Section
from disputes.protocol.reviews.layout import Layout
from disputes.protocol.text.documents import STATED, Table, list_item
from disputes.protocol.text.identifiers import native_code, own_code
from disputes.protocol.text.mentions import codes_in
from tasks.text.regex import regex


class Status(StrEnum):
    """What became of an earlier finding, according to the reviewer."""

    RESOLVED = "RESOLVED"
    PARTIAL = "PARTIAL"
    UNRESOLVED = "UNRESOLVED"
    DEFERRED = "DEFERRED"
    WITHDRAWN = "WITHDRAWN"


@dataclass(frozen=True, slots=True)
class PriorStatus:
    """One earlier finding, and what the reviewer says became of it."""

    code: str
    status: Status
    line: int
    text: str = ""


_VERBS = r"resolved|fixed|addressed|closed|implemented|incorporated|corrected|completed?"
_ADVERBS = r"(?:fully|completely|now|all|properly|adequately|satisfactorily|well|already)[ _]"
# The first pattern that fits the beginning of the words decides.
_STATUSES = {
    Status.PARTIAL: (
        rf"(?:partial(?:ly)?|partly|mostly)(?:[ _](?:{_VERBS}|done|met))?"
        rf"|not[ _](?:fully|completely|entirely)(?:[ _](?:{_VERBS}|done|met))?|in[ _]progress"
    ),
    Status.UNRESOLVED: (
        rf"not[ _](?:yet[ _])?(?:{_VERBS}|done|met)|un(?:resolved|addressed|fixed)|outstanding|open"
        r"|remains?|still[ _](?:open|present|unresolved|not|missing|an issue)|failed|ignored|rejected"
    ),
    Status.DEFERRED: r"deferred|postponed",
    Status.WITHDRAWN: r"withdrawn|retracted|dropped|moot",
    Status.RESOLVED: (
        rf"(?:(?:verified|confirmed)[ _](?:as[ _])?)?(?:{_ADVERBS})?"
        rf"(?:{_VERBS}|verified|confirmed|done|accepted|addresses|resolves|fixes)"
    ),
}
STATUS = regex(
    "|".join(rf"(?P<{status}>(?:{pattern})\b(?![-.]\w))" for status, pattern in _STATUSES.items()),
    re.IGNORECASE,
)
YES_NO = {"yes": Status.RESOLVED, "y": Status.RESOLVED, "no": Status.UNRESOLVED, "n": Status.UNRESOLVED,
          "pass": Status.RESOLVED, "fail": Status.UNRESOLVED, "partial": Status.PARTIAL}  # fmt: skip
SIGNED = TICKS + CROSSES
# What may follow a status. "Fixed timeout is too short" is a title and not a status.
AFTER_STATUS = regex(  # no arrow: "ACCEPTED -> RESOLVED" is a transition
    rf"[\s*_`]*(?:$|[.,;:!(\[–—{SIGNED}]|-(?!>)|\b(?:in|by|via|as|per|with|through|at|since|and|but|to|until|for|because)\b|(?=(?:ISSUE-)?R\d))"
)
AT_END = regex(
    r"(?:^|[-–—:(\[] *)\**(?P<status>(?:(?:NOT|FULLY|PARTIALLY|PARTIAL|STILL|ALL)[ _])*"
    rf"(?:{_VERBS.upper()}|UNRESOLVED|PARTIAL|OPEN|UNADDRESSED|DEFERRED|WITHDRAWN|MOOT)"
    r"(?: (?:in|as of) (?:this round|round \d{1,3}|v\d))?)[\s*.)\]]*$"
)
# A status in lower case that ends a clause: "verified, all of them".
ENDED = regex(
    rf"(?:(?:verified|confirmed) (?:as )?)?(?:(?:not |un)?(?:{_VERBS})|partial(?:ly)?|verified|confirmed)"
    rf"(?:[,.;:]|$|\*\*|[ \t]*[{SIGNED}]"
    r"| (?:in|by|with|as of) (?:(?:commit|change|round|v) ?)?(?:[0-9a-f]{7,40}\b|\d+\b|this round\b|`))",
    re.IGNORECASE,
)
_COLUMNS = """
status resolved resolved? addressed addressed? fixed fixed? resolution assessment verdict result state
verification outcome disposition closed? reviewer
"""
STATUS_COLUMNS = frozenset(_COLUMNS.split())
LABELLED = regex(
    r"\s*(?:[-*+]\s+)?\**(?:status|verdict|resolution|result|assessment|outcome)\b[:*\s]+(?P<status>.*)$",
    re.IGNORECASE,
)
MAX_AHEAD = 60
SIGNS = {"✅": Status.RESOLVED, "✓": Status.RESOLVED, "✔": Status.RESOLVED, "❌": Status.UNRESOLVED,
         "✗": Status.UNRESOLVED, "⚠": Status.PARTIAL}  # fmt: skip


def status_of(words: str) -> Status | None:
    """Return the status at the beginning of these words, or None."""
    plain = words.lstrip(" \t*_`:-–—([\"'")
    if plain[:1] in SIGNS:
        return status_of(plain[1:].lstrip("\ufe0f ")) or SIGNS[plain[:1]]
    if plain[:1] >= FIRST_SIGN:  # ⏳ Deferred
        plain = plain[1:].lstrip("\ufe0f *_")
    match = STATUS.match(plain)
    return Status(match.lastgroup or "") if match and AFTER_STATUS.match(plain, match.end()) else None


def status_in(start: Start) -> Status | None:
    """Return the status that a line gives to an earlier finding, or None if it raises a finding."""
    for words in (start.title, start.rest, start.note):
        if not words:
            continue
        if match := AT_END.search(words[-80:]):
            found = status_of(match["status"])
        else:
            said = words[:1].isupper() or words[:1] in SIGNS or words is start.rest or ENDED.match(words)
            found = status_of(words[:80]) if said else None
        if found is not None and not (found is Status.UNRESOLVED and words[-6:].rstrip("*.)] ") == "OPEN"):
            return found
    return None


def status_below(layout: Layout, index: int) -> Status | None:
    """Return the status in a **Status:** or **Verdict:** between this heading or bold line and the next."""
    own = layout.starts[index]
    level = own.level if own and own.level else 6
    below = slice(index + 1, index + 1 + MAX_AHEAD)
    for line, start in zip(layout.lines[below], layout.starts[below], strict=True):
        if start is not None and (
            0 < start.level <= level or (start.coded and start.shape in (Shape.HEADING, Shape.BOLD))
        ):
            return None
        if ":" in line.text and line.mode is STATED and (match := LABELLED.match(line.text)):
            found = status_of(match["status"])
            if found is not None and not (
                found is Status.UNRESOLVED and match["status"].strip("*_ ").upper() == "OPEN"
            ):
                return found
    return None


def prior_statuses(layout: Layout, raised: frozenset[str]) -> Iterator[PriorStatus]:
    """Yield what the review says about earlier findings, each code once. `raised` are its own codes.

    The codes that it raises itself are not reported as unresolved by its tables (FND-4).
    """
    seen: set[str] = set()
    for status in sorted([*_in_tables(layout, raised), *_in_lines(layout)], key=lambda s: s.line):
        if status.code not in seen:
            seen.add(status.code)
            yield status


def codes_of(cell: str) -> list[str]:
    """Return the canonical or native ids of findings at the beginning of a cell or a line."""
    plain = cell.lstrip(" *`[_~")
    if plain[:6].upper() == "ISSUE-" or plain[:1] == "R":
        return codes_in(plain.partition("(")[0])
    native = native_code(plain)
    behind = plain[len(native) :].lstrip("*`]")
    if not native and own_code(plain) and not plain[len(own_code(plain)) :].strip(" *_`]~"):
        return [own_code(plain)]
    return [native.upper()] if native and (not behind or behind[:1] in ":.() -–—|") else []


def _in_tables(layout: Layout, raised: frozenset[str]) -> Iterator[PriorStatus]:
    for table in layout.tables:
        section = layout.where[table.start]
        if section.purpose in (Purpose.HISTORY, Purpose.REQUIRED):
            continue
        column = next((i for i, name in enumerate(table.names) if i and name in STATUS_COLUMNS), None)
        for row in table.rows:
            codes = codes_of(row.cells[0]) or (codes_of(row.cells[1]) if len(row.cells) > 2 else [])
            status = _row_status(table, row.cells, column, section)
            if status is None:
                continue
            for code in codes:
                if code not in raised or status is not Status.UNRESOLVED:
                    yield PriorStatus(code, status, row.line, " | ".join(row.cells)[:500])


def _row_status(table: Table, row: tuple[str, ...], column: int | None, section: Section) -> Status | None:
    prior = section.purpose is Purpose.PRIOR
    if column is not None and column < len(row):
        cell = row[column].strip("* ")
        found = YES_NO.get(cell.split(" ")[0].strip(".,:;-–—*").lower()) or status_of(cell)
        if found:
            return found
        # The column says how, and the heading that it was done: "Additional Issues Addressed".
        if prior and re.search(r"\b(?:addressed|resolved|fixed|closed)\b", section.title.lower()):
            return Status.RESOLVED
    elif prior:
        return next((found for cell in row[1:] if (found := status_of(cell))), None)
    return None


def _in_lines(layout: Layout) -> Iterator[PriorStatus]:
    for index in layout.named:
        start, line = layout.starts[index], layout.lines[index]
        if start is None or layout.where[index].purpose is Purpose.HISTORY:
            continue
        if start.coded:
            status, codes, text = _status_of_coded(layout, index, start), start.all_codes, line.text
        elif start.tick and start.bold and (item := list_item(line.text)):
            # - [x] **ADDRESSES ISSUE-R1-008**: … and - [ ] **PARTIAL**: ISSUE-R1-028 …
            status, text = status_of(start.title), item.text
            codes = tuple(codes_in(start.title) or codes_in(start.rest[:80]))
        else:
            continue
        if status is not None:
            for code in codes:
                yield PriorStatus(code, status, line.number, text.strip()[:500])


def _status_of_coded(layout: Layout, index: int, start: Start) -> Status | None:
    """Return the status that a line with an id states, or None.

    For a heading or a line among earlier findings, a status below it counts too, and then its tick.
    """
    status = status_in(start)
    is_prior = layout.where[index].purpose is Purpose.PRIOR
    if status is not None or not (is_prior or start.shape is Shape.HEADING):
        return status
    if start.shape is not Shape.ITEM and (below := status_below(layout, index)) is not None:
        return below
    if start.tick:
        return Status.RESOLVED if start.tick == "x" else Status.UNRESOLVED
    return None
