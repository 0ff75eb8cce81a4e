"""Finding the gap that a finding is about when one review looks at several (FND-5)."""

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence

from disputes.protocol.text.chapters import chapters
from disputes.protocol.text.documents import STATED, Line
from disputes.protocol.text.identifiers import gaps_in
from tasks.text.regex import regex

LABEL = regex(r"^\s*(?:[-*+]\s+)?(?:\*\*)?Gaps?(?: affected| id)?:?(?:\*\*)?:?", re.IGNORECASE)


class Links:
    """The headings of one review, read once for all its findings."""

    def __init__(self, lines: Sequence[Line], proposed: Sequence[str]) -> None:
        """Read the headings; `proposed` are the gaps of the document that was reviewed, in its order."""
        self.proposed = tuple(dict.fromkeys(proposed))
        self._chapters = chapters(lines)
        self._numbers = [lines[each.start].number for each in self._chapters]

    def gap_of(self, block: Sequence[Line], line: int) -> str:
        """Return the gap of a finding at `line` whose block has these lines; empty if nothing tells (FND-5).

        A gap that the block labels as its own counts first, then the only proposed gap that it mentions, the
        gap of the nearest heading around it, the only gap that was proposed, and the only gap that the block
        mentions.
        """
        stated = [each for each in block if each.mode is STATED]
        named = [gap for each in stated if LABEL.match(each.text) for gap in gaps_in(each.text)]
        mentioned = list(dict.fromkeys(gap for each in stated for gap in gaps_in(each.text)))
        return (
            _only(named)
            or _only([gap for gap in mentioned if gap in self.proposed])
            or self._around(line)
            or _only(self.proposed)
            or _only(mentioned)
        )

    def _around(self, line: int) -> str:
        """Return the gap named by the nearest of the headings around a line that names one; else empty."""
        above = bisect_left(self._numbers, line) - 1
        while above >= 0:
            gaps = gaps_in(self._chapters[above].title)
            if one := _only([gap for gap in gaps if not self.proposed or gap in self.proposed]):
                return one
            above = self._chapters[above].parent
        return ""


def _only(gaps: Collection[str]) -> str:
    """Return the only gap mentioned; empty if there are none or several."""
    different = set(gaps)
    return next(iter(different)) if len(different) == 1 else ""
