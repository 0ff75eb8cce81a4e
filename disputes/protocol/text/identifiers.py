"""Reading ids as agents write them: canonical, short, in ranges, and native ones of a reviewer's own (ID-4).

An id holds only within its task and document (ID-2): later rounds use native ids again with another
meaning, so nothing may be merged by its id alone.
"""

import re

from tasks.text.regex import regex

# ID-1: an id that may be stored as it is.
# Only the digits 0 to 9 count: those of other scripts look like them, or like no digit at all.
CANONICAL = regex(r"ISSUE-R[0-9]{1,2}-(?!000)[0-9]{3}")
CODE = r"ISSUE-R[0-9]{1,3}(?:-V[0-9]{1,2})?-[0-9]{1,3}(?!\d)"
SHORT_CODE = r"(?:ISSUE-)?R[0-9]{1,3}(?:-V[0-9]{1,2})?-[0-9]{1,3}(?!\d)"
# Further codes after the first, each of which may be short: ISSUE-R1-001 through R1-003, R1-007.
JOINED_BY = r"(?:\s*,\s*(?:and\s+)?|\s*[–—]\s*|\s+(?:and|through|thru|to|-|&)\s+)"
MORE_CODES = rf"(?:[*`\]]*{JOINED_BY}[*`\[]*{SHORT_CODE})*"
GAP = regex(r"(?<![\w-])GAP-[A-Z]{2,10}-[0-9]{3}[a-z]?(?!\w)")
MAX_RANGE = 50

# Words that reviewers number their findings with: CONCERN #1, GAP-1, EDGE-CASE-2, Issue 3.
NATIVE_WORDS = (
    "ISSUE", "CONCERN", "PROBLEM", "FINDING", "GAP", "AMBIGUITY", "EDGE-CASE", "INCONSISTENCY",
    "CONTRADICTION", "OMISSION", "MISSING", "RISK", "BUG", "DEFECT", "WEAKNESS", "OBSERVATION", "COMPRESS",
    "DIVERGE", "CRITICAL", "CRIT", "BLOCKER", "MAJOR", "HIGH", "MEDIUM", "MED", "MODERATE", "MINOR", "LOW",
    "NIT", "WARNING", "SUGGESTION",
)  # fmt: skip
_WORDS = "|".join(sorted(NATIVE_WORDS, key=len, reverse=True))
NATIVE = regex(
    # XCUT-NAV-001, OBSERVATION-R7-V2-001
    r"(?:XCUT-(?:NAV|DATA|PAT|KEY)|OBSERVATION-R[0-9]{1,3}(?:-V[0-9]{1,2})?)-[0-9]{1,3}(?!\d)"
    # CRIT-001, CONCERN #1, GAP-1, EDGE-CASE-2
    rf"|(?:{_WORDS})(?:-|[ ]?#|[ ])[0-9]{{1,3}}(?![\w-])"
    # H1, M2, L-001, C3
    r"|[CHML]-?[0-9]{1,3}(?![\w-])"
)
# The same words written like a title: "Issue 3", "Concern #1".
NATIVE_TITLE = regex(
    rf"(?:{'|'.join(word.capitalize() for word in NATIVE_WORDS if '-' not in word)})"
    r" ?(?:#?[0-9]{1,3}|(?<= )[A-Z])(?![\w-])"
)
# Ids that a reviewer made up: SEC-01, F1, R1-F1. Standards and versions look the same (RFC-822, V2).
OWN = regex(
    r"(?!(?:RFC|ISO|UTF|SHA|GAP|ADR|HTTP|V|P|Q)-?[0-9]|GAP-[A-Z]|SEV-?[0-4](?![0-9]))"
    r"[A-Z][A-Z0-9]{0,7}(?:-[A-Z]{1,6})?(?:-[0-9]{1,3}|(?<=[A-Z])[0-9]{1,2})(?![\w-]|\.[0-9])"
)
# What every id begins with; few sentences do.
LIKE_AN_ID = regex(r"[A-Za-z-]{1,14}+(?:[ ]?#?[0-9]| [A-Z]\b)|ISSUE-")
NUMBERED = regex(
    r"(?<![\w-])(?:(?:ISSUE-)?R(?P<round>[0-9]{1,3})(?P<version>-V[0-9]{1,2})?-(?P<number>[0-9]{1,3})(?![\dA-Za-z])"
    r"|(?P<tail>[0-9]{3})(?![\w.-]))",
    re.IGNORECASE,
)
RANGE_WORDS = frozenset({"through", "thru", "to", "-", "–", "—", "..", "...", "…"})
LIST_WORDS = frozenset({",", "and", ", and", "&", "/", "+"})
# The most characters that may lie between two ids of one list.
MAX_BETWEEN = 16


def is_canonical(code: str) -> bool:
    """Whether a code may be stored as it is (ID-1)."""
    return CANONICAL.fullmatch(code) is not None


def native_code(text: str) -> str:
    """Return the native id at the beginning of a text, as printed; empty if there is none (ID-4)."""
    match = NATIVE.match(text) or NATIVE_TITLE.match(text)
    return match[0] if match else ""


def own_code(text: str) -> str:
    """Return the id that a reviewer made up at the beginning of a text; empty if there is none (ID-4)."""
    match = OWN.match(text)
    return match[0] if match else ""


def gaps_in(text: str) -> list[str]:
    """Return the gap ids in a text, each once, in order."""
    return list(dict.fromkeys(GAP.findall(text))) if "GAP-" in text else []
