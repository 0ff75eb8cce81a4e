"""Reading from headings what the sections of a review are for, and the severity that they give (FND-3)."""

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from disputes.protocol.reviews.severity import folded, on_scale, read_severity, severity_of
from disputes.protocol.text.documents import Line
from disputes.protocol.text.identifiers import GAP, gaps_in, native_code
from tasks.states import Severity, severity_rank
from tasks.text.regex import regex


class Purpose(StrEnum):
    """What a section of a review does with the findings in it."""

    OTHER = "other"
    ISSUES = "issues"  # it lists them
    OBSERVATIONS = "observations"  # it lists remarks that block nothing
    REQUIRED = "required"  # it repeats what must change, or is the only list of it
    PRIOR = "prior"  # it says what became of earlier findings (FND-4)
    CLOSING = "closing"  # it sums up
    CHECKS = "checks"  # it goes through criteria
    GAPS = "gaps"  # it looks at gaps that the coder opened
    PRAISE = "praise"
    HISTORY = "history"  # it tells of earlier versions


# Words beside a severity that do not change its meaning: HIGH Priority, Minor Issues Found, Must Fix.
_GLUE = """
issue issues priority priorities severity level concern concerns problem problems finding findings item items
gap gaps point points comment comments defect defects error errors fix fixes address addressed change changes
new remaining outstanding found identified raised blocking for of the to be a an and or in clarification
clarifications suggestion suggestions improvement improvements risk risks resolve resolved
before approval implementation list open ambiguities inconsistencies weaknesses
prioritat prioritaten probleme punkte befunde fehler priorite priorites problemes
prioridad prioridades problemas
"""
GLUE = frozenset(_GLUE.split())
FIRST_SIGN = "\u2190"  # arrows, ticks and pictographs come from here on
BLOCKING = frozenset(
    ["blocker", "blockers", "blocking", "blockierend", "bloquant", "bloquante", "bloqueante"]
)
BLOCKS = regex(r"block|bloqu")
# What is a severity if it stands alone in a heading, as between what is critical and suggestions.
ALONE = {
    **dict.fromkeys(["warning", "warnings"], Severity.MEDIUM),
    **dict.fromkeys(["info", "informational"], Severity.LOW),
}
OBSERVING = frozenset(["observation", "observations", "notes", "note", "remarks", "remark"])
BESIDE_SEVERITY = GLUE | OBSERVING | BLOCKING
HARDLY = regex(r"nice[ -]to[ -]have|\bnot (?:so|that|too|very) (?:important|urgent|severe|serious)\b")
NOT_SEVERE = regex(r"\b(?:high|low|mid)[- ]level\b|\bnon[- ](?!blocking)\w+|\bno\b|\bnot\b(?! blocking)")
NUMBERING = regex(r"(?:\(?(?:\d{1,2}(?:\.\d{1,2})*|[A-Z]|[IVX]{1,4})[.):]|\d{1,2}(?:\.\d{1,2})+)\s+")
SETTLED = regex(r"\((?:all |both |now )*(?:resolved|addressed|fixed|closed)\b[^()]*\)", re.IGNORECASE)
TRACKED = regex(r"\bissue #\d+")  # in a tracker, which the review is about
WORD = regex(r"[a-z]+")
SCALED = regex(r"(?:p|priority|s|sev|severity)[ -]?[0-4]\b|[a-z]+")

_NOUNS = (
    r"(?:issues?|concerns?|problems?|findings?|defects?|weakness(?:es)?|ambiguit(?:y|ies)|inconsistenc(?:y|ies)"
    r"|contradictions?|flaws?|omissions?|objections?|blockers?|nits?|nitpicks?|errors)"
)
_TOLD = rf"(?:{_NOUNS}|feedback|comments|review|fix(?:es)?)"
_EARLIER = r"(?:previous(?:ly)?|prior|earlier|past|last round|round \d+|r\d+|v\d+)"
_DONE = r"(?:resolved|addressed|fixed|closed|completed|applied)"
_STATUS = rf"(?:status|resolutions?|verification|assessment|follow|disposition|check|update|{_DONE})"
_CHANGES = r"(?:changes?|revisions?|fixes|actions?|modifications?|updates?)"


def _means(purpose: Purpose, *patterns: str) -> tuple[Purpose, re.Pattern[str]]:
    return purpose, regex("|".join(patterns))


# The first purpose that fits counts. A severity in a heading outranks all but the status of earlier findings.
PURPOSES = (
    _means(
        Purpose.HISTORY,
        r"\b(?:revision|version|review|document|change) (?:history|log)\b",
        r"^revisions?$",
        r"changelog|^release notes|^what (?:has )?changed",
    ),
    # Below "Why No Issues" stands what was looked at.
    _means(
        Purpose.CHECKS,
        r"\b(?:no|zero)[- ](?:\w+ ){0,3}(?:issues?|concerns?|problems?|findings?|blockers?)"
        r"(?: (?:at|found|identified|in|justification|raised|rationale|remain\w*)\b|$)",
    ),
    # "Remaining", "New" and "Unresolved" say that the issues are open.
    _means(
        Purpose.ISSUES,
        r"\b(?:new|remaining|unresolved|unaddressed|outstanding|open|additional|other)\b"
        rf".*\b{_NOUNS}\b(?!.*\b(?:{_DONE}|status|summary|verification|assessment)\b)",
    ),
    _means(
        Purpose.PRIOR,
        rf"\b{_EARLIER}\b.*\b{_TOLD}\b.*\b{_STATUS}",
        rf"\b(?:previous|prior|earlier)\b.*\b(?:{_TOLD}|round)\b",
        rf"\blast (?:round|review)(?:'s)?\b.*\b(?:{_TOLD}|points|items)\b",
        r"\b(?:verification|status|follow[- ]?up|disposition) (?:of|on) round \d",
        rf"\b(?:{_NOUNS}|fix(?:es)?|feedback)\b.*\b(?:status|resolution|verification|disposition|{_DONE})\b",
        rf"\b(?:{_DONE}|status|verification|resolution|disposition)\b.*\b(?:{_NOUNS}|fix(?:es)?|feedback)\b",
        r"^(?:resolution|fix|response) (?:status|assessment|verification|check|review)",
        rf"\bfollow[- ]?up (?:on|to|of)\b|^{_DONE}(?: (?:during|in|since|by|this|before|after)\b|$)",
        r"\bresolution (?:assessment|verification)\b",
    ),
    _means(
        Purpose.PRAISE,
        r"\b(?:strengths?|positives?|praise|pros|highlights|commend\w*|kudos)\b|^approved\b",
        r"\bwhat (?:works|is good|went well)|\b(?:works|done|went) well\b",
        r"\bgood (?:points|practices|parts|aspects)\b",
    ),
    _means(
        Purpose.REQUIRED,
        rf"\b(?:required|requested|mandatory|necessary) {_CHANGES}",
        rf"\b{_CHANGES} (?:required|requested|needed)\b|\bmust (?:address|fix|resolve|change)",
        r"\bconditions? (?:for|of|to)\b|^conditions$|\brequired (?:before|for)\b",
        r"\bblocking (?:issues|items) to\b",
    ),
    _means(
        Purpose.CLOSING,
        r"\b(?:summary|summaries|overview|recommend\w*|verdicts?|conclusions?)\b",
        r"\bnext (?:steps?|rounds?)\b",
        r"\b(?:actions?|decisions?|sign[- ]?off|appendix|rationale|path forward|approval|overall)\b",
        r"\b(?:final (?:assessment|thoughts|remarks)|priority order|prioriti[sz]\w+|metrics)\b",
        r"\b(?:statistics|totals?|counts?|tl;?dr|outcome|ready|readiness|net progress)\b",
    ),
    _means(
        Purpose.GAPS,
        r"\bnew gaps?\b|\bsub-?gaps\b",
        r"\bgaps? (?:introduced|created|opened|spawned|validation|assessment)\b",
    ),
    _means(
        Purpose.CHECKS,
        r"\b(?:check ?lists?|checks?|consistency|alignment|coverage|validat\w+|verif\w+)\b",
        r"\b(?:completeness|integration|complian\w+|compatib\w+|conformance|reachability|soundness|criteria)\b",
        r"\bquestions?\b",
    ),
    _means(
        Purpose.OBSERVATIONS,
        r"\b(?:minor|remaining|additional|other|further|non[- ]?blocking)\b.*"
        r"\b(?:observation|note|remark)s?\b",
        r"\b(?:observation|note|remark)s?\b.*\bnon[- ]?blocking\b|\bcompression\b",
        r"^(?:(?:optional|minor|further|other|additional|new|non[- ]?blocking) )?"
        r"(?:suggestions|improvements)(?: for improvement)?$",
    ),
    _means(
        Purpose.ISSUES,
        rf"\b{_NOUNS}\b|\bgaps (?:identified|found|remaining|in)\b|^gaps\b|\bclarifications?\b",
        r"\b(?:remaining|identified|specification|spec|critical|missing|unresolved) gaps\b",
        r"\bedge cases? (?:not|missing|gaps)|\b(?:missing|uncovered|unhandled|unaddressed) \w+",
        r"\bcritique\b|^cons\b|\bareas (?:for|of) improvement\b|\bblocking\b",
    ),
)


class Section(NamedTuple):
    """A heading and what is below it; `begin` is the index of its line, -1 for the whole document."""

    begin: int
    level: int
    title: str
    purpose: Purpose
    own: Purpose
    severity: Severity | None = None
    states_severity: bool = False
    ambiguous: bool = False
    gap: str = ""
    parent: "Section | None" = None

    @property
    def states_verdict(self) -> bool:
        """Whether the heading gives a verdict, below which a reviewer may well list what is wrong."""
        return self.own is Purpose.CLOSING and VERDICT_FIRST.search(self.title.lower()) is not None

    def overrules(self, purpose: Purpose) -> bool:
        """Whether a heading of that purpose below this one does not change the purpose."""
        return purpose in OVERRULES.get(self.purpose, ()) and not self.states_verdict


TOP = Section(-1, 0, "", Purpose.OTHER, Purpose.OTHER)
# Below a section of the first purpose, a heading of one of the others does not change the purpose.
OVERRULES = {
    Purpose.PRIOR: frozenset(Purpose) - {Purpose.PRAISE, Purpose.CLOSING, Purpose.HISTORY, Purpose.REQUIRED},
    Purpose.HISTORY: frozenset(Purpose),
    Purpose.CHECKS: frozenset([Purpose.ISSUES, Purpose.OBSERVATIONS, Purpose.REQUIRED, Purpose.GAPS]),
    Purpose.CLOSING: frozenset([Purpose.ISSUES, Purpose.OBSERVATIONS]),
    Purpose.PRAISE: frozenset([Purpose.ISSUES, Purpose.OBSERVATIONS]),
}
VERDICT_FIRST = regex(r"\b(?:verdict|assessment|review|decision)\b")


@lru_cache(maxsize=1024)
def bare(title: str) -> str:
    """Return a heading's words in lower case, without marks, signs, numbering, gap ids and parentheses."""
    title = title.replace("*", "").replace("`", "").strip()
    while title[:1] >= FIRST_SIGN and not title[0].isalpha():
        title = title[1:].lstrip()
    plain = NUMBERING.sub("", title, count=1)
    return GAP.sub("", plain).partition("(")[0].lower().strip(" :-–—")


def severities_of(words: str, *, blocking: bool = False) -> list[Severity]:
    """Return the severities in words that say nothing else; empty if they do (FND-3).

    If `blocking`, words that only say whether something blocks count too: as high, or as low if it does not.
    """
    plain = folded(words.lower())
    if "nice" in plain or "not " in plain:
        plain = HARDLY.sub("nit", plain)
    found = []
    for word in SCALED.findall(plain.replace("non-blocking", "").replace("not blocking", "")):
        if severity := severity_of(word) or on_scale(word):
            found.append(severity)
        elif word not in BESIDE_SEVERITY:
            return []
    blocking = blocking and BLOCKS.search(plain) is not None
    if not (found or blocking) or NOT_SEVERE.search(plain):
        return []
    if found or not blocking:
        return found
    if "non-blocking" in plain or "not blocking" in plain:
        return [Severity.LOW]
    return [Severity.HIGH] if BLOCKING & set(WORD.findall(plain)) else []


@lru_cache(maxsize=1024)
def section_severity(title: str) -> tuple[Severity | None, bool]:
    """Return the severity that a heading gives, the lower of two, and whether it names two (SEV-12)."""
    words = bare(title).strip("[]").removeprefix("severity:").strip()
    severity = ALONE.get(words) or read_severity(words)
    named = [severity] if severity else severities_of(words, blocking=True)
    if not named:
        return None, False
    return min(named, key=severity_rank), len(set(named)) > 1


@lru_cache(maxsize=1024)
def purpose_of(title: str) -> Purpose:
    """Return what a heading says its section is for."""
    words = TRACKED.sub("", bare(title))
    if not words:
        return Purpose.OTHER
    if SETTLED.search(title):
        return Purpose.PRIOR
    return next((purpose for purpose, pattern in PURPOSES if pattern.search(words)), Purpose.OTHER)


def names_finding(title: str) -> bool:
    """Whether a heading begins with the id of a finding, so that its words are about that finding."""
    plain = NUMBERING.sub("", title.lstrip("*`[ "), count=1).lstrip("*`[ ")
    return plain.startswith("ISSUE-R") or bool(native_code(plain))


def sections(lines: Sequence[Line]) -> dict[int, Section]:
    """Return the section that each heading opens, by the index of its line."""
    found: dict[int, Section] = {}
    current = TOP
    for index, line in enumerate(lines):
        if "#" not in line.text or not (heading := line.heading):
            continue
        level, title = heading
        parent = current
        while parent.parent is not None and parent.level >= level:
            parent = parent.parent
        current = found[index] = _section(index, level, title[:200], parent)
    return found


def _section(index: int, level: int, title: str, parent: Section) -> Section:
    named = gaps_in(title)
    gap = (named[0] if len(named) == 1 else "") if named else parent.gap
    if names_finding(title):
        return Section(
            index, level, title, parent.purpose, Purpose.OTHER, parent.severity, gap=gap, parent=parent
        )
    severity, ambiguous = section_severity(title)
    own = purpose_of(title)
    words = bare(title)
    if severity is not None and own is not Purpose.PRIOR:
        own = Purpose.OBSERVATIONS if set(WORD.findall(words)) & OBSERVING else Purpose.ISSUES
    elif words.startswith("review"):
        own = Purpose.OTHER  # "Review: GAP-AB-001 (Gap Lifecycle)" names its subject
    purpose = own
    if own is Purpose.OTHER or (
        (severity is None or parent.purpose in (Purpose.PRIOR, Purpose.HISTORY)) and parent.overrules(own)
    ):
        purpose = parent.purpose
    inherits = own is Purpose.OTHER or (own is Purpose.ISSUES and severity is None)
    return Section(
        index, level, title, purpose, own,
        severity or (parent.severity if inherits else None), severity is not None, ambiguous, gap, parent,
    )  # fmt: skip
