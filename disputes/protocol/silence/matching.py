"""Is a finding treated without its id (only a sign, SIL-8)? Is it an earlier concern (SIL-9)?"""

import re
from dataclasses import dataclass

from disputes.protocol.rounds.subjects import stated_text
from disputes.protocol.text.identifiers import is_canonical
from disputes.protocol.text.keywords import keywords, overlap
from tasks.text.regex import regex

# What a finding quotes, if it is long enough to be searched for.
QUOTED = regex(r"[\"“]([^\"“”\n]{12,200})[\"”]")
MAX_QUOTES = 5
MIN_LOCATION = 6  # letters of a location that cannot match by chance


@dataclass(frozen=True, slots=True)
class SoftMatch:
    """Why a text may treat a finding that it does not name; its confidence is never more than medium."""

    reason: str
    overlap: float | None = None
    confidence: str = "medium"


class Haystack:
    """What a document states, read once for all findings that are looked for in it.

    Lines of the `previous` document are left out: what stood there before a finding does not treat it.
    """

    def __init__(self, document: str, previous: str = "") -> None:
        text = stated_text(document)
        if previous:
            known = {line.strip() for line in previous.splitlines()}
            text = "\n".join(line for line in text.splitlines() if line.strip() not in known)
        self._plain = _plain(text)
        self._words = keywords(text)

    def match(self, title: str, text: str, location: str, *, minimum: float = 0.5) -> SoftMatch | None:
        """Why the document may treat this finding: its words, a phrase it quotes, or its place (SIL-8)."""
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
    """A finding that may raise an earlier concern again; its review may link it to other codes."""

    code: str
    title: str
    gap: str = ""
    linked: tuple[str, ...] = ()


def same_concern(new: Concern, earlier: Concern, *, minimum: float = 0.5) -> bool:
    """Whether a finding raises an earlier concern again (SIL-9).

    By the same id carried over, a link by the reviewer, or summaries alike on the same gap. An id of the
    reviewer's own counts only where the words are alike too: such ids are used again (ID-2).
    """
    if new.code and new.code == earlier.code and is_canonical(new.code):
        return True
    if earlier.code and earlier.code in new.linked:
        return True
    share = overlap(keywords(new.title), keywords(earlier.title))
    return new.gap == earlier.gap and share is not None and share >= minimum
