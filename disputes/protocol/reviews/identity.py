"""Is this finding an earlier one, raised again (ID-6, ID-2)?"""

from collections.abc import Iterable
from dataclasses import dataclass

from disputes.protocol.text.identifiers import is_canonical
from disputes.protocol.text.keywords import keywords, likeness
from disputes.protocol.text.locations import Place, read_place, same_place

MINIMUM = 0.3  # same_finding_minimum
SURE = 0.5
TEXT_MAX = 4_000  # characters of a finding that are compared


@dataclass(frozen=True, slots=True)
class Raised:
    """One finding, with what decides whether it is the same as another.

    `code` is what the review prints, or for an earlier finding the one this program allotted; `raw_code` what
    the earlier review printed. `text` is what the finding says besides its title.
    """

    title: str
    location: str = ""
    code: str = ""
    raw_code: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """Which of the earlier findings it is. If it is not `sure`, a human must confirm: "possibly the same".

    `score` is how alike the words are, 0 to 1; where the code decides it may be low.
    """

    index: int
    score: float
    sure: bool
    by_code: bool = False


def same_finding(new: Raised, earlier: Iterable[Raised], *, minimum: float = MINIMUM) -> Match | None:
    """The earlier finding that this one repeats, or None (ID-6).

    By its code where the reviewer repeats one, unless that is a code of the reviewer's own and everything
    else is different: such codes are used again with a new meaning (ID-2). Else by the same place and words
    at least `minimum` alike. Only a sure match may make rulings on the earlier finding hold for this one.

    `earlier` holds findings of earlier reviews, or of the same reviewer: two reviewers of one round both
    begin to count at 001.
    """
    subject = _Subject(new)
    best: tuple[int, float, Match] | None = None
    for index, candidate in enumerate(earlier):
        match = subject.match(index, candidate, minimum)
        if match is None:
            continue
        rank = (2 if match.by_code else 0) + match.sure
        if best is None or (rank, match.score) > best[:2]:
            best = rank, match.score, match
    return best[2] if best else None


class _Subject:
    """The new finding, read once for all comparisons."""

    def __init__(self, finding: Raised) -> None:
        self.code = finding.code.upper()
        self.place = read_place(finding.location)
        self.title = keywords(finding.title[:TEXT_MAX])
        self.words = self.title | keywords(finding.text[:TEXT_MAX])

    def match(self, index: int, other: Raised, minimum: float) -> Match | None:
        place = read_place(other.location)
        score = self._score(other)
        same = same_place(self.place, place)
        if self.code and self.code in {other.code.upper(), other.raw_code.upper()}:
            repeated = self.code == other.code.upper() and is_canonical(self.code)
            if repeated or score >= minimum or (same and self._same_file(place)):
                return Match(index, score, sure=True, by_code=True)
            if score > 0 and same is not False:
                return Match(index, score, sure=False, by_code=True)
        if same is False or score < (minimum if same else max(minimum, SURE)):
            return None
        sure = score >= SURE and (bool(same) or self._same_file(place))
        return Match(index, score, sure)

    def _score(self, other: Raised) -> float:
        """How alike the titles are, or all the words, whichever is more."""
        title = keywords(other.title[:TEXT_MAX])
        return max(likeness(self.title, title), likeness(self.words, title | keywords(other.text[:TEXT_MAX])))

    def _same_file(self, place: Place) -> bool:
        """Whether both name a file; `same_place` has found it to be the same."""
        return bool(self.place.path and place.path)
