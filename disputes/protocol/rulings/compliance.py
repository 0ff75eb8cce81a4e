"""Whether a ruling was followed (DEC-13). The ruling itself says whether code must change."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

from disputes.protocol.rulings.conflict_states import Followed
from disputes.protocol.text.chapters import chapters
from disputes.protocol.text.diffs import Changes
from disputes.protocol.text.documents import Line, scan
from disputes.protocol.text.locations import Place, paths_in, read_place, same_file, same_section
from tasks.text.regex import regex

# What a ruling quotes as code, if it is long enough not to occur by chance.
_CODE = regex(r"`([^`\n]{4,200})`")
MAX_CODE = 10
# Words before what a ruling forbids, or names as a model: "do not touch", "instead of", "as in".
_BESIDE = regex(
    r"(?:\b(?:not|never|no|avoid|without|instead of|rather than|leave|keep|like|as|see|nicht|statt|wie)"
    r"|n['’]t)\b[^.;:,!?\n]*$",
    re.IGNORECASE,
)
MAX_BESIDE = 60


@dataclass(frozen=True, slots=True)
class Order:
    """What was ruled: whether code must change, where the finding points, and the ruling's words.

    The place is the one in the commit for which the finding was raised.
    """

    expects_change: bool
    location: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What has happened since the ruling.

    `changes` lead from the disputed commit to the reviewed one, None if unknown. `earlier` are the changes,
    step by step, from the commit for which the finding was raised to the disputed one, by which its place is
    found again. `reviewed` says that something handed in after the ruling has been reviewed, `raised_again`
    that this review names the finding. `files` are paths that exist in the reviewed commit, as far as the
    caller knows them. `section_changed` is the result of the function of that name for a finding in a
    document.
    """

    reviewed: bool
    raised_again: bool = False
    changes: Changes | None = None
    earlier: tuple[Changes | None, ...] = ()
    section_changed: bool | None = None


@dataclass(frozen=True, slots=True)
class Compliance:
    """Whether a ruling was followed, and why the program thinks so.

    `reopens` says that a new conflict "not honoured" names the old one.
    """

    state: Followed
    why: str
    reopens: bool = False


def judge(order: Order, seen: Seen) -> Compliance:
    """Return the state of a ruling, given what has happened since (DEC-13, DEC-14)."""
    if not seen.reviewed:
        return Compliance(Followed.WAITING, "Nothing was handed in and reviewed since.")
    if not order.expects_change:
        if seen.raised_again:
            return Compliance(Followed.APPLIED, "Raised again though settled; it was dropped.")
        return Compliance(Followed.APPLIED, "The reviewer did not raise it again.")
    if seen.raised_again:
        return Compliance(Followed.NOT_HONOURED, "The reviewer raises it again.", reopens=True)
    if name := _file_came_in(order, seen.changes):
        return Compliance(
            Followed.APPLIED, f"{name}, which the ruling names, came or changed; not raised again."
        )
    place, is_known = place_after(read_place(order.location), seen.earlier)
    changed = place_changed(place, seen.changes)
    if changed and not is_known:
        changed = None
    if changed is None:
        changed = seen.section_changed
    if changed:
        return Compliance(Followed.APPLIED, "The place changed, and it was not raised again.")
    if changed is None and (code := _code_came_in(order.text, place, seen.changes)):
        return Compliance(
            Followed.APPLIED, f"`{code}`, which the ruling names, came into {place.path}; not raised again."
        )
    if changed is None:
        why = _why_unknown(place, seen.changes if is_known else None)
        return Compliance(Followed.CANNOT_TELL, f"It was not raised again; {why}.")
    return Compliance(Followed.NOT_HONOURED, "The place was not touched.", reopens=True)


def _why_unknown(place: Place, changes: Changes | None) -> str:
    is_elsewhere = place.first and changes is not None and changes.of(place.path)
    return "its file changed only elsewhere" if is_elsewhere else "whether its place changed is not known"


def place_after(place: Place, steps: Iterable[Changes | None]) -> tuple[Place, bool]:
    """Return where a place has moved, by renamed files and shifted lines, and whether that is certain."""
    is_known = True
    for changes in steps:
        change = changes.of(place.path) if changes and place.path else None
        if change is None:
            is_known &= changes is not None and not changes.is_cut
            continue
        place = replace(place, path=change.path)
        if place.first:
            first, last = change.moved(place.first, place.last or place.first)
            place = replace(place, first=first, last=last)
    return place, is_known


def place_changed(place: Place, changes: Changes | None) -> bool | None:
    """Whether exactly this place of the old commit changed; None if that is unknown.

    A line that was added or removed right beside it counts. If the file was changed only elsewhere, nobody
    can tell: what was asked for may have been done there.
    """
    if changes is None or not place.path:
        return None
    change = changes.of(place.path)
    if change is None:
        return None if changes.is_cut else False
    if change.is_new or change.is_deleted or change.is_binary:
        return True
    if all(edit.is_blank for edit in change.edits):
        return None if changes.is_cut else False  # the file was only renamed, or its blanks were changed
    if place.first:
        return change.touched(place.first, place.last or place.first) or None
    return None if place.section else True


def _code_came_in(text: str, place: Place, changes: Changes | None) -> str:
    """Return the first code quoted by the text that was added to the place's file; empty if none was."""
    change = changes.of(place.path) if changes and place.path else None
    if change is None:
        return ""
    lines = [line for hunk in change.hunks for line in hunk.lines]
    came = "\n".join(line.text for line in lines if line.sign == "+")
    went = "\n".join(line.text for line in lines if line.sign == "-")
    named = (
        match[1].strip() for match in islice(_CODE.finditer(text), MAX_CODE) if _is_asked(text, match.start())
    )
    return next((code for code in named if len(code) > 3 and code in came and code not in went), "")


def _file_came_in(order: Order, changes: Changes | None) -> str:
    """Return the file that the ruling asks for, other than the finding's own, which came or changed since."""
    path = read_place(order.location).path
    for name in paths_in(order.text):
        change = changes.of(name) if changes and not same_file(name, path) else None
        if change and not change.is_deleted and _is_asked(order.text, order.text.find(name)):
            return name
    return ""


def _is_asked(text: str, at: int) -> bool:
    """Whether a ruling asks for what it names here; it may forbid it, or take it for a model."""
    return _BESIDE.search(text[max(at - MAX_BESIDE, 0) : at]) is None


def section_changed(before: str, after: str, location: str) -> bool | None:
    """Whether the section that a location names differs in more than blanks; None if neither document has it.

    Raises DocumentError if a document is too large.
    """
    words = read_place(location).section
    old, new = _section(scan(before), words), _section(scan(after), words)
    if old is None and new is None:
        return None
    return old != new


def _section(lines: list[Line], words: frozenset[str]) -> list[str] | None:
    """Return the words below the first heading with this name, up to the next of its level, or None."""
    named = (each for each in chapters(lines) if same_section(read_place(each.title).section, words))
    if (found := next(named, None)) is None:
        return None
    return [word for line in lines[found.start + 1 : found.end] for word in line.text.split()]
