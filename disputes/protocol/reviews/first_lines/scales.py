"""Severities that look like ids of the reviewer's own: "S1 `sync.py:10` deletes the folder" (SEV-9)."""

from collections import Counter
from collections.abc import Sequence

from disputes.protocol.reviews.first_lines.start import Start
from disputes.protocol.reviews.severity import on_scale
from disputes.protocol.text.documents import STATED, Line
from tasks.text.regex import regex

# "S1 = worst"
LEGEND = regex(r"\bS[0-4]\s?=|\bS[1-4] ?(?:-|–|to|bis) ?S[1-4]\b")


def with_scales(lines: Sequence[Line], starts: Sequence[Start | None]) -> Sequence[Start | None]:
    """Return the first lines of findings, those with a severity of a scale for an id as lines with a tag.

    An id stands before one finding; a severity stands before several, or the review explains it.
    """
    scaled = [start for start in starts if start and start.own and on_scale(start.native)]
    if not scaled:
        return starts
    if max(Counter(start.native for start in scaled).values()) > 1 or any(
        line.mode is STATED and LEGEND.search(line.text) for line in lines
    ):
        for start in scaled:
            start.tag, start.words = start.native, (f"{on_scale(start.native)}",)
            start.coded, start.own, start.native = False, False, ""
    return starts
