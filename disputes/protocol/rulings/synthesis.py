"""Option C: a middle ground that the words of both sides suggest (OPT-2), or that is handed in (OPT-3)."""

import re
from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.text.quotes import one_line
from tasks.text.regex import regex

SUGGESTION_MAX = 1_000
# Whole words in all their forms, but never as part of another word or name: complexity_limit, unlimited.
COMPLEXITY = regex(
    r"\b(?:complexity|complexities|(?:too|more|overly|so|needlessly|unnecessarily) complex)\b", re.IGNORECASE
)
THRESHOLD = regex(r"\b(?:thresholds?|limit(?:s|ed|ing)?)\b", re.IGNORECASE)
OUT_OF_SCOPE = regex(r"\bout[ -]of[ -](?:the )?(?:\w{1,20} )?scope\b", re.IGNORECASE)


class Source(StrEnum):
    """Whose idea a synthesis is, which the page shows."""

    RULE = "rule"
    JUDGE = "judge"
    MEDIATOR = "mediator"
    HUMAN = "human"


@dataclass(frozen=True, slots=True)
class Views:
    """What a synthesis looks at: the finding's title and suggestion, and the coder's words."""

    title: str
    suggestion: str = ""
    position: str = ""
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Synthesis:
    """Option C: what to build, what each side gives up, and whether it meets both concerns.

    `rule` is the name of the rule that found it, empty if it was handed in.
    """

    proposal: str
    trade_off: str
    covers_both: bool
    source: Source = Source.RULE
    rule: str = ""


def synthesise(views: Views) -> Synthesis | None:
    """Return the synthesis of the first rule that fits, or None if no middle ground is obvious (OPT-2)."""
    said = f"{views.position}\n{views.rationale}"
    wanted = one_line(views.suggestion or views.title, SUGGESTION_MAX).rstrip(".")
    if COMPLEXITY.search(said):
        return Synthesis(
            f"Implement this as optional or configurable, with a simple default: {wanted}.",
            "Reviewer: it is not on by default. Coder: part of the complexity comes in after all.",
            covers_both=True,
            rule="complexity",
        )
    if THRESHOLD.search(views.title):
        return Synthesis(
            f"Make the value configurable; the default is the reviewer's: {wanted}.",
            "Reviewer: others may set another value. Coder: one more setting to carry.",
            covers_both=True,
            rule="limits",
        )
    if OUT_OF_SCOPE.search(said):
        return Synthesis(
            f"Defer this to the next version and leave an explicit placeholder for it: {wanted}.",
            "Reviewer: the concern stays open until then. Coder: a placeholder now, the work later.",
            covers_both=False,
            rule="scope",
        )
    return None


def handed_in(
    proposal: str, *, source: Source, trade_off: str = "", covers_both: bool = False
) -> Synthesis | None:
    """Return a synthesis that somebody wrote, marked with whose it is; None if it is empty (OPT-3)."""
    text = proposal.strip()
    given_up = trade_off.strip() or "Each side gives up a part; whoever proposed it did not say which."
    return Synthesis(text, given_up, covers_both, source) if text else None
