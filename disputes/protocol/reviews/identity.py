"""Deciding whether a finding is an earlier one that is raised again (ID-6, ID-2)."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from disputes.protocol.text.identifiers import is_canonical
from disputes.protocol.text.keywords import keywords, likeness
from disputes.protocol.text.locations import read_place, same_place

MINIMUM = 0.3  # the default of the setting same_finding_minimum
SURE = 0.5
TEXT_MAX = 4_000  # how many characters of a finding are compared


@dataclass(frozen=True, slots=True)
class Raised:
    """One finding, with everything that decides whether it is the same as another.

    `code` is what the review prints or, for an earlier finding, the code that this program allotted;
    `raw_code` is what the earlier review printed. `text` is what the finding says besides its title.
    """

    title: str
    location: str = ""
    code: str = ""
    raw_code: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """The earlier finding that a finding repeats, by its index.

    If it is not `sure`, it is shown as "possibly the same" and a person must confirm it. `score` is how alike
    the words are, 0 to 1; it may be low if the code decides.
    """

    index: int
    score: float
    sure: bool
    by_code: bool = False


def same_finding(new: Raised, earlier: Iterable[Raised], *, minimum: float = MINIMUM) -> Match | None:
    """Return the earlier finding that this one repeats, or None (ID-6).

    An id of the reviewer's own making is never enough by itself (ID-2).
    """
    return EarlierFindings(earlier, minimum=minimum).same_as(new)


class EarlierFindings:
    """Earlier findings, each read only once however many new ones are compared with them.

    They come from earlier reviews or from the same reviewer: two reviewers of one round both count from 001.
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
        """Return the earlier finding that this one repeats, or None (ID-6).

        A repeated code decides, unless it is one of the reviewer's own and everything else is different,
        because such codes are used again with a new meaning (ID-2). Otherwise the place must be the same and
        the words at least `minimum` alike. Only a sure match may make rulings on the earlier finding hold for
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
        """Return the indexes of the findings that can match: not of another file, or with the same code."""
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
        self.file = self.place.path.rpartition("/")[2]  # different paths of one file end alike
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
        """Return how alike the titles or all the words are, whichever is more."""
        return max(likeness(self.title, other.title), likeness(self.words, other.words))

    def _same_file(self, other: "_Subject") -> bool:
        """Whether both name a file, which `same_place` has then found to be the same."""
        return bool(self.place.path and other.place.path)
