"""Telling answers that say what was done from those that argue, ask or only thank (ANS-7)."""

import re

from disputes.protocol.responses.answer_kinds import COURTESY, AnswerKind, is_open, stated_kind
from tasks.text.regex import regex

# Verbs in the past that tell of no deed: "I looked at it", "it is expected".
_NO_DEEDS = (
    r"(?:looked|checked|considered|reviewed|verified|discussed|wanted|needed|tried|noticed|believed|assumed"
    r"|agreed|decided|confirmed|investigated|expected|intended|designed|overlooked|confused|asked|talked|used"
    r"|covered|handled|required|based|allowed|guaranteed|protected|documented|supposed|called|mentioned|stated"
    r"|indeed|need|exceed|proceed|embed)"
)
# What coders do, in the words of commit messages, as far as these are no nouns, too.
_ACTS = (
    r"(?:add|use|remove|replace|rename|move|make|validate|close|raise|return|limit|cap|wrap|split|extract|drop"
    r"|update|introduce|switch|guard|catch|escape|sort|rewrite|revert|simplify|refactor|convert|restrict"
    r"|enforce|ensure|reject|refuse|delete)"
)
# What was done, whatever else is said: a verb in the past, or of a commit message at the beginning, or "now".
DEED = regex(
    r"(?:^\W*|[.;,:!)–—]\s+|\b(?:and|so|but|then|i|we|have|has|been|it|was|were|is|are|['’]ve)\s+)"
    rf"(?:also |just )?(?!{_NO_DEEDS}\b)[a-z]{{2,20}}ed\b|^\W*{_ACTS}\b"
    r"|^\W*(?!nothing|something|missing|leaving|keeping)[a-z]{2,20}ing\b"
    r"(?![^.;]{0,80}\b(?:would|could|might|requires?|needs?|breaks?|is|are|seems?)\b)"
    r"|(?<!not )(?<!never )(?<!be )\b(?:added|changed|removed|replaced|renamed|moved|updated|rewritten"
    r"|extended|introduced|implemented|corrected|adjusted|tightened|deleted|extracted)\b"
    r"|\b(?:(?<!for )(?<!right )(?<!until )now|instead|any ?more|no longer|made|wrote|rewrote|took|built|gave"
    r"|(?<!better )(?<!best )(?<!be )done|habe|wurden?|ergänzt|geändert|jetzt|nun|ahora|añadid[oa]"
    r"|cambiad[oa]|ajoutée?s?|changée?s?|maintenant|désormais)\b|\bis (?:left|gone)\b"
    r"|\b(?:in|by|with|commit) [`(]?[0-9a-f]{7,40}\b",
    re.IGNORECASE,
)
_LATER = r"(?:follow[- ]?up|separate|another|different|later|future|next|own|dedicated)"
_WORK = (
    r"(?:pr|pull request|mr|task|ticket|issue|release|change|commit|sprint|version|story|refactor\w*|step)"
)
PUT_OFF = regex(
    rf"\b(?:(?:in|for|to|into|with) (?:an? |the |its |my |our )?{_LATER} {_WORK}|as (?:an? )?follow[- ]?up"
    r"|kommt später|plus tard|más (?:tarde|adelante))\b",
    re.IGNORECASE,
)
HEDGED = regex(
    r"\W*(?:(?:i|we|fully|do)\s+){0,3}(?:agreed?|accept(?:ed)?|yes)\b[^.;]{0,120}\b(?:but|however|though|yet)\b",
    re.IGNORECASE,
)
# A request for more words.
ASKING = regex(
    r"\b(?:please|can you|could you) (?:\w+ )?(?:clarify|explain|elaborate|specify)"
    r"|\b(?:unclear|not clear) (?:what|which|why|how|where|to me)\b"
    r"|\bneeds? (?:more |further |some )?(?:info\w*|details?|clarification|context)\b",
    re.IGNORECASE,
)
QUESTION_FIRST = regex(r"[^.!?]{1,300}\?")
MAX_READ = 400  # characters
MAX_QUESTION = 200


def answer_kind(text: str) -> AnswerKind | None:
    """Return what became of a finding, as `stated_kind` does, or that other work is to treat it."""
    kind, text = stated_kind(text), text[:MAX_READ]
    if kind is AnswerKind.ADDRESSED and HEDGED.match(text) and not DEED.search(text):
        return None  # "I agree in principle, but …"
    return kind or (AnswerKind.DEFERRED if PUT_OFF.search(text) and not DEED.search(text) else None)


def tells_of_deed(text: str) -> bool:
    """Whether an answer that names no kind says that something was done.

    If it does not, it may be a refusal in other words (ANS-7): "The caller already holds the lock."
    """
    return DEED.search(text[:MAX_READ]) is not None


def says_nothing(text: str) -> bool:
    """Whether an answer says nothing of what was done: it thanks, asks, or calls the finding open."""
    if len(text) > MAX_QUESTION:
        return False  # it explains something
    text = text.strip(" \t*_`\"'“”()")
    if not text or is_open(text):
        return bool(text)
    if (match := COURTESY.match(f"{text}.")) and match.end() > len(text):
        return True
    asks = text[-1] == "?" or QUESTION_FIRST.match(text) is not None or ASKING.search(text) is not None
    return asks and not DEED.search(text)
