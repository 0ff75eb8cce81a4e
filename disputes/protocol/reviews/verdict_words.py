"""The words of verdicts: what each means, what denies it, and what only looks like one (VER-2, ARB-2)."""

import re
from collections.abc import Iterable
from enum import StrEnum

from disputes.protocol.reviews.negated_approvals import is_conditional, is_denied, is_put_off, shown
from tasks.text.regex import regex


class Verdict(StrEnum):
    """The verdicts from best to worst; one that cannot be read is None, and never an approval."""

    APPROVED = "APPROVED"
    NO_ISSUES_FOUND = "NO_ISSUES_FOUND"
    APPROVED_WITH_CONDITIONS = "APPROVED_WITH_CONDITIONS"
    NEEDS_REVISION = "NEEDS_REVISION"

    @property
    def rank(self) -> int:
        """How bad it is, from 0 on."""
        return list(Verdict).index(self)


def worst(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    """Return the worst of the verdicts that could be read, or None (VER-4)."""
    return max(filter(None, verdicts), key=lambda each: each.rank, default=None)


_APPROVING = ("approved", "approve", "approval", "accept", "accepted")
_RESERVED = (
    "notes", "conditions", "modifications", "modification", "changes", "minor", "minor issues",
    "minor changes", "minor modifications", "minor revisions", "minor fixes", "revisions", "comments",
    "caveats", "reservations", "suggestions", "recommendations", "required changes", "nits", "nitpicks",
)  # fmt: skip
_CONDITIONAL = (
    "conditional approval", "conditionally approved", "conditional approve", "conditional accept",
    "conditionally accepted", "conditional acceptance", "approved conditionally", "conditional",
)  # fmt: skip
_REFUSING = (
    "needs revision", "needs revisions", "need revision", "needs work", "needs changes", "needs fixes",
    "needs rework", "needs major revision", "needs minor revision", "needs significant revision",
    "reject", "rejected", "changes requested", "change requested", "request changes", "requesting changes",
    "requires changes", "requires revision", "revision required", "revision needed", "revisions required",
    "revise and resubmit", "major revision", "major revisions",
)  # fmt: skip
# Words that state a verdict only alone and in the place of one; in prose they may mean anything.
_APPROVING_ALONE = ("approval", "lgtm", "patch is correct", "the patch is correct")
_REFUSING_ALONE = (
    "blocked", "block", "not ready", "rejection", "changes required", "changes needed", "do not merge",
    "do not merge yet", "patch is incorrect", "patch is not correct", "the patch is incorrect",
    "the patch is not correct", "revise", "nack", "nak", "no go", "do not ship", "hold", "incomplete",
    "major issues", "not lgtm", "not approved", "not yet approved", "not accepted", "not acceptable", "fail",
    "failed",
)  # fmt: skip
ONLY_ALONE = frozenset([*_APPROVING_ALONE, *_REFUSING_ALONE, "conditional"])
# VER-2. The longest phrase that fits wins, so that "APPROVED WITH NOTES" is not read as "APPROVED".
VERDICT_WORDS: dict[str, Verdict] = {
    **dict.fromkeys([*_APPROVING, "approves", *_APPROVING_ALONE], Verdict.APPROVED),
    **dict.fromkeys([f"approved with minor observation{end}" for end in ("", "s")], Verdict.APPROVED),
    "no issues found": Verdict.NO_ISSUES_FOUND,
    **dict.fromkeys(
        [f"{word} with {what}" for word in _APPROVING for what in _RESERVED], Verdict.APPROVED_WITH_CONDITIONS
    ),
    **dict.fromkeys(_CONDITIONAL, Verdict.APPROVED_WITH_CONDITIONS),
    **dict.fromkeys([*_REFUSING, *_REFUSING_ALONE], Verdict.NEEDS_REVISION),
}
NO_ISSUES = "no issues found"
COUNTED = regex(r"\bno[\W_]{0,40}[0-9]")  # "no 3 issues found" does not mean anything
_ALL = sorted(VERDICT_WORDS, key=len, reverse=True)
# The longest phrase comes first, because the first one that fits is taken.
PHRASE = regex(rf"\b(?:{'|'.join(phrase for phrase in _ALL if phrase not in ONLY_ALONE)})\b")
# For the beginning of a statement, with nothing but a mark or a comment after it.
ALONE = regex(rf"(?P<phrase>{'|'.join(_ALL)})(?![a-z])")
NO_LETTERS = regex(r"[^a-z]+")
NO_OFFER = regex(r"[^a-z|/,]+")
SHORT_NOT = regex(r"n['’]t\b")
_WITH = r"\b(?:approved?|accept(?:ed)?)(?: ?\(with\b(?! minor observation)"
WITH, WITH_OR_FOOTNOTE = regex(rf"{_WITH})"), regex(rf"{_WITH}|\*+)")
BEFORE, AFTER = 160, 60  # how many characters before and after an approval may take it back
SENTENCE_END = regex(r"([.!?])[*_`)]*(?:\s|$)")
DENIALS = {"no", "not", "never", "cannot"}
_EITHER, _OR = (
    "|".join(phrase for phrase in _ALL if (VERDICT_WORDS[phrase] is Verdict.NEEDS_REVISION) is refusing)
    for refusing in (False, True)
)
_AND_OR = r"\b ?(?:[|/,]|\bor\b) ?\b"
# A choice between an approval and a refusal: a form that nobody filled in.
OFFER = regex(rf"\b(?:(?:{_EITHER}){_AND_OR}(?:{_OR})|(?:{_OR}){_AND_OR}(?:{_EITHER}))\b")


def read_verdict(words: str) -> Verdict | None:
    """Return the verdict that these words state, or None. The last verdict word counts (VER-2, ARB-2).

    A denied approval is none and takes back the approval before it. An approval that is only awaited and a
    denied rejection are passed over. A question states nothing, nor does a choice between approval and
    refusal.
    """
    words = shown(words)
    if OFFER.search(NO_OFFER.sub(" ", words.lower())):
        return None
    found: Verdict | None = None
    for sentence in sentences(words):
        found = _in_sentence(sentence, found)
    return found


def sentences(words: str) -> list[str]:
    """Return the sentences that are not questions."""
    parts = [*SENTENCE_END.split(words), ""]
    return [sentence for sentence, end in zip(parts[::2], parts[1::2], strict=True) if end != "?"]


def _in_sentence(sentence: str, found: Verdict | None) -> Verdict | None:
    """Return the last verdict of a sentence, or `found`, the one before it, if it states none."""
    counted = COUNTED.sub("z", _with_conditions(sentence.lower()))
    plain = NO_LETTERS.sub(" ", SHORT_NOT.sub(" not", counted))
    # The "no" of "no issues found" does not deny what follows it.
    denying = plain.replace(NO_ISSUES, "ok issues found")
    for match in PHRASE.finditer(plain):
        verdict, end = VERDICT_WORDS[match[0]], match.end()
        before = denying[max(match.start() - BEFORE, 0) : match.start()].split()
        after = plain[end : end + AFTER].split()
        if verdict is Verdict.NEEDS_REVISION:
            found = found if DENIALS & set(before[-1:]) else verdict
        elif is_denied(match[0], before, after):
            found = found if found is Verdict.NEEDS_REVISION else None
        elif is_put_off(before):
            continue
        elif is_conditional(after):
            found = found or Verdict.APPROVED_WITH_CONDITIONS
        else:
            found = verdict
    return found


def _with_conditions(words: str) -> str:
    """Spell out the conditions of `APPROVED (with …)`, and of `APPROVED*` with a footnote mark (VER-2)."""
    pattern = WITH_OR_FOOTNOTE if words.count("*") % 2 else WITH
    return pattern.sub("approved with conditions ", words)


def verdict_alone(words: str) -> Verdict | None:
    """Return the verdict that begins words which are no sentence: ACCEPT, but not "Accept the flag"."""
    head = shown(words).strip()[:120]
    plain = re.sub(r"[^a-z*()]+", " ", _with_conditions(head.lower()).replace("**", "")).strip(" *")
    match = ALONE.match(plain)
    if match is None:
        return None
    start = re.search(r"[A-Za-z]", head)
    letters = head[start.start() if start else 0 :]
    spelled = re.match(r"[A-Za-z]+(?:[ _-]+[A-Za-z]+)*", letters)
    written = letters[: len(match["phrase"])] if spelled else ""
    behind = letters[len(written) :].lstrip("*_` ✓✔✅")
    if not behind or not behind[0].isalpha() or written.isupper() or plain[match.end() :].startswith(" with"):
        found = read_verdict(words)
        if found is None and match["phrase"] in ONLY_ALONE:
            after = plain[match.end() :].split()
            return None if is_denied(match["phrase"], (), after) else VERDICT_WORDS[match["phrase"]]
        return found
    return None
