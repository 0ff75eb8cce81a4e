"""Whether a finding is treated without its id (a mere sign, SIL-8), and whether it repeats one (SIL-9)."""

import re
from dataclasses import dataclass

from disputes.protocol.rounds.subjects import stated_text
from disputes.protocol.text.identifiers import is_canonical
from disputes.protocol.text.keywords import keywords, overlap
from tasks.text.regex import regex

# Text that a finding quotes and that is long enough to be searched for.
QUOTED = regex(r"[\"“]([^\"“”\n]{12,200})[\"”]")
MAX_QUOTES = 5
MIN_LOCATION = 6  # a location with at least so many letters does not match by chance


@dataclass(frozen=True, slots=True)
class SoftMatch:
    """Why a text may treat a finding that it does not name."""

    reason: str
    overlap: float | None = None


class Haystack:
    """The statements of a document, read once for all findings that are looked for in it.

    Lines of the `previous` document are left out: what was there before a finding was raised does not treat
    it.
    """

    def __init__(self, document: str, previous: str = "") -> None:
        text = stated_text(document)
        if previous:
            known = {line.strip() for line in previous.splitlines()}
            text = "\n".join(line for line in text.splitlines() if line.strip() not in known)
        self._plain = _plain(text)
        self._words = keywords(text)

    def match(self, title: str, text: str, location: str, *, minimum: float = 0.5) -> SoftMatch | None:
        """Return why the document may treat this finding, or None.

        It may if it contains the words of the title, a phrase that the finding quotes, or its place (SIL-8).
        """
        share = overlap(keywords(title), self._words)
        if share is not None and share >= minimum:
            return SoftMatch(f"{share:.0%} of its words are there", share)
        for quote in QUOTED.findall(f"{title}\n{text[:4000]}")[:MAX_QUOTES]:
            if (phrase := _plain(quote)) and phrase in self._plain:
                return SoftMatch(f'"{quote.strip()}" is quoted', share)
        place = _plain(location[:200])
        if len(place) >= MIN_LOCATION and place in self._plain:
            return SoftMatch(f"{location.strip()[:200]} is named", share)
        return None


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[*_`]+", "", text).lower().split())


@dataclass(frozen=True, slots=True)
class Concern:
    """A finding that may repeat an earlier concern."""

    code: str
    title: str
    gap: str = ""


def same_concern(new: Concern, earlier: Concern, *, minimum: float = 0.5) -> bool:
    """Whether a finding raises an earlier concern again (SIL-9).

    It does if it carries over the full id, or if the titles are alike and the gap is the same. The same id
    of the reviewer's own proves nothing, since these are used again (ID-2).
    """
    if new.code and new.code == earlier.code and is_canonical(new.code):
        return True
    share = overlap(keywords(new.title), keywords(earlier.title))
    return new.gap == earlier.gap and share is not None and share >= minimum
