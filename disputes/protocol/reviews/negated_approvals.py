"""Recognising words that undo an approval: they deny, await, strike out or limit it (VER-3, ARB-2)."""

import re
from collections.abc import Sequence

from tasks.text.regex import regex

# Text that is struck out or in an HTML comment.
STRUCK = regex(r"~~.*?~~|<!--.*?(?:-->|$)", re.DOTALL)
FOREIGN = regex(r"[^\x00-\x7f\W_]")
UNTICKED = regex(r"\[ ?\][^\[]*")
DENYING = frozenset([
    "no", "not", "never", "cannot", "cant", "nobody", "none", "neither", "nor", "without", "refuse",
    "refused", "refuses", "refusing", "decline", "declined", "declines", "unable", "fail", "failed",
    "fails", "failing", "far", "nowhere", "hardly", "un", "non", "dis", "false", "withhold", "withheld",
    "nicht", "nie", "niemals", "kein", "keine", "keinesfalls",
])  # fmt: skip
NEAR = 3  # how many words before an approval may deny it
# "cannot, after all that was said, approve": the verb may come long after the word that denies it.
VERBS = frozenset(["approve", "accept"])
# One or two words right after an approval that deny it.
TAKING_BACK = frozenset(
    ["denied", "withheld", "refused", "rejected", "declined", "false", "impossible", "cannot", "not yet"]
    + ["not really", "not given", "not possible", "not granted", "is not", "is denied", "is withheld"]
    + ["was not", "by nobody", "by none"]
)
AWAITING = frozenset([
    "to", "until", "unless", "before", "pending", "awaiting", "awaits", "once", "if", "when",
])  # fmt: skip
WISHES = frozenset([
    "will", "would", "should", "could", "may", "might", "must",
])  # fmt: skip
BINDING = frozenset([
    "if", "once", "when", "until", "unless", "after", "only", "provided", "providing", "assuming",
    "subject", "pending", "contingent",
])  # fmt: skip


def shown(words: str) -> str:
    """Return the words without what is struck out, commented out or left unticked, such as `~~APPROVED~~`.

    Letters of other alphabets are replaced by z, which occurs in no verdict, so that nothing is read across
    them.
    """
    if not words.isascii():
        words = FOREIGN.sub("z", words)
    if "~~" in words or "<!--" in words:
        words = STRUCK.sub(" ", words)
    return UNTICKED.sub(" ", words) if "[ ]" in words or "[]" in words else words


def is_denied(phrase: str, before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether words around an approval deny it: "cannot approve", "approval withheld" (VER-3)."""
    near = before if phrase in VERBS else before[-NEAR:]
    behind = {*after[:1], " ".join(after[:2])}
    return bool(DENYING & set(near) or TAKING_BACK & behind) or list(after) in (["no"], ["not"])


def is_put_off(before: Sequence[str]) -> bool:
    """Whether the words before an approval only await it: "until approved", "will be approved"."""
    last = before[-1] if before else ""
    return last in AWAITING or (last == "be" and bool({*WISHES, "to"} & set(before[-2:-1])))


def is_conditional(after: Sequence[str]) -> bool:
    """Whether the words after an approval attach a condition: "approve once the tests are green"."""
    return bool(BINDING & set(after[:1]))
