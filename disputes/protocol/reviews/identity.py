"""Is this finding an earlier one, raised again (ID-6, ID-2)?"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from disputes.protocol.text.identifiers import is_canonical
from disputes.protocol.text.keywords import keywords, likeness
from disputes.protocol.text.locations import read_place, same_place

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
    """The earlier finding that this one repeats, or None (ID-6)."""
    return EarlierFindings(earlier, minimum=minimum).same_as(new)


class EarlierFindings:
    """Earlier findings, each read once, however many new ones are compared with them.

    They are of earlier reviews, or of the same reviewer: two reviewers of one round both begin to count at
    001.
    """

    def __init__(self, findings: Iterable[Raised], *, minimum: float = MINIMUM) -> None:
        self._subjects = [_Subject(finding) for finding in findings]
        self._minimum = minimum
        self._of_file: dict[str, list[int]] = defaultdict(list)
        self._of_code: dict[str, set[int]] = defaultdict(set)
        for index, subject in enumerate(self._subjects):
            self._of_file[subject.file].append(index)
            for code in subject.codes:
                self._of_code[code].add(index)

    def same_as(self, new: Raised) -> Match | None:
        """The one that this finding repeats, or None (ID-6).

        By its code where the reviewer repeats one, unless that is a code of the reviewer's own and everything
        else is different: such codes are used again with a new meaning (ID-2). Else by the same place and
        words at least `minimum` alike. Only a sure match may make rulings on the earlier finding hold for
        this one.
        """
        subject = _Subject(new)
        best: tuple[int, float, Match] | None = None
        for index in self._comparable(subject):
            match = subject.match(index, self._subjects[index], self._minimum)
            if match is None:
                continue
            rank = (2 if match.by_code else 0) + match.sure
            if best is None or (rank, match.score) > best[:2]:
                best = rank, match.score, match
        return best[2] if best else None

    def _comparable(self, new: "_Subject") -> Iterable[int]:
        """All but those that are about another file and have another code: they cannot match."""
        if not new.file:
            return range(len(self._subjects))
        same_code = self._of_code.get(new.code, set()) if new.code else set()
        return sorted({*self._of_file.get(new.file, ()), *self._of_file.get("", ()), *same_code})


class _Subject:
    """One finding, read for comparisons."""

    def __init__(self, finding: Raised) -> None:
        self.code = finding.code.upper()
        self.codes = {self.code, finding.raw_code.upper()}
        self.place = read_place(finding.location)
        self.file = self.place.path.rpartition("/")[2]  # paths of one file end alike
        self.title = keywords(finding.title[:TEXT_MAX])
        self.words = self.title | keywords(finding.text[:TEXT_MAX])

    def match(self, index: int, other: "_Subject", minimum: float) -> Match | None:
        same = same_place(self.place, other.place)
        if self.code and self.code in other.codes:
            score = self._score(other)
            repeated = self.code == other.code and is_canonical(self.code)
            if repeated or score >= minimum or (same and self._same_file(other)):
                return Match(index, score, sure=True, by_code=True)
            if score > 0 and same is not False:
                return Match(index, score, sure=False, by_code=True)
        if same is False:
            return None
        score = self._score(other)
        if score < (minimum if same else max(minimum, SURE)):
            return None
        return Match(index, score, sure=score >= SURE and (bool(same) or self._same_file(other)))

    def _score(self, other: "_Subject") -> float:
        """How alike the titles are, or all the words, whichever is more."""
        return max(likeness(self.title, other.title), likeness(self.words, other.words))

    def _same_file(self, other: "_Subject") -> bool:
        """Whether both name a file; `same_place` has found it to be the same."""
        return bool(self.place.path and other.place.path)
