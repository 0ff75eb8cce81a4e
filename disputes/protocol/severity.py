"""How severe a finding is: the words for it, what it weighs, and who may change it (§3)."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tasks.states import Severity, severity_rank, worst

# SEV-9: foreign words for severities.
SEVERITY_WORDS: dict[str, Severity] = {
    **{severity.value: severity for severity in Severity},
    "major": Severity.HIGH,
    "must": Severity.HIGH,
    "important": Severity.HIGH,
    "moderate": Severity.MEDIUM,
    "should": Severity.MEDIUM,
    "minor": Severity.LOW,
    "nit": Severity.LOW,
    "nits": Severity.LOW,
    "trivial": Severity.LOW,
    "cosmetic": Severity.LOW,
    "could": Severity.LOW,
    "nice to have": Severity.LOW,
    # Reviews in German, or in both.
    "kritisch": Severity.CRITICAL,
    "hoch": Severity.HIGH,
    "mittel": Severity.MEDIUM,
    "niedrig": Severity.LOW,
    "gering": Severity.LOW,
}
# §3. A project may set others (severity_weights).
WEIGHTS: dict[str, int] = {
    Severity.CRITICAL: 16,
    Severity.HIGH: 4,
    Severity.MEDIUM: 2,
    Severity.LOW: 1,
}
GRAVE = frozenset({Severity.CRITICAL, Severity.HIGH})
# Words around a severity in the heading of a section: High Priority Issues.
SECTION_WORDS = re.compile(r"\b(?:issues?|priority|severity|findings?)\b")
USER_DECIDES_FROM = 2  # SEV-6: levels between two assessments from which on a person decides


def read_severity(words: str) -> Severity | None:
    """The severity that these words state, or None (SEV-9). Of a range such as LOW-MEDIUM the higher one."""
    plain = re.sub(r"[^a-z-]+", " ", words.lower()).strip(" -").removesuffix(" risk")
    parts = [" ".join(part.split()) for part in plain.split("-")]
    named = [SEVERITY_WORDS[part] for part in parts if part in SEVERITY_WORDS]
    return max(named, key=severity_rank) if len(named) == len(parts) else None


# --- Weights ----------------------------------------------------------------------------------------------


def counts_as(severity: str | None) -> Severity:
    """The severity that weighs; one that nobody stated counts as medium (SEV-9)."""
    return worst([severity] if severity else [])


def weight(severity: str | None, weights: Mapping[str, int] = WEIGHTS) -> int:
    """What one gap or finding of this severity weighs (§3)."""
    return weights[counts_as(severity)]


def total_weight(severities: Iterable[str | None], weights: Mapping[str, int] = WEIGHTS) -> int:
    """The sum of the weights."""
    return sum(weight(severity, weights) for severity in severities)


def is_grave(severity: str | None) -> bool:
    """Whether it is critical or high. A severity that nobody stated never blocks (SEV-9)."""
    return severity in GRAVE


# --- Words that disagree ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stated:
    """What one finding or heading says about severity; None where it says nothing."""

    severity: Severity | None
    conflict: bool = False  # its places disagree (SEV-10), or its heading names several


def combine(stated: Iterable[Severity | None]) -> Stated:
    """The places of one finding together: the higher one counts, a conflict is shown (SEV-10)."""
    named = {severity for severity in stated if severity}
    return Stated(max(named, key=severity_rank, default=None), conflict=len(named) > 1)


def section_severity(heading: str) -> Stated:
    """The severity that a heading gives to what stands below it.

    Of a merged heading such as `Medium/Low Priority` the lower one, marked as ambiguous (§19.2, vector 43).
    """
    words = SECTION_WORDS.sub(" ", heading.partition("(")[0].lower())
    named = [read_severity(part) for part in words.split("/")]
    known = {severity for severity in named if severity}
    if None in named:
        return Stated(None)
    return Stated(min(known, key=severity_rank), conflict=len(known) > 1)


# --- The rubric -------------------------------------------------------------------------------------------


class Trouble(StrEnum):
    """A question of the rubric that was answered with yes (§3)."""

    MAIN_USE_CASE_FAILS = "main_use_case_fails"
    CONTRADICTION = "contradiction"
    UNDEFINED_CONCEPT = "undefined_concept"
    COMMON_CASES_FAIL = "common_cases_fail"
    UNDEFINED_FAILURE_MODE = "undefined_failure_mode"
    CONFLICTS_WITH_APPROVED = "conflicts_with_approved"
    RARE_CASES_FAIL = "rare_cases_fail"
    SLOW_ON_LARGE_INPUT = "slow_on_large_input"
    FRICTION = "friction"


# SEV-1: from the top; the first yes wins. No yes at all is low.
RUBRIC: dict[Severity, frozenset[Trouble]] = {
    Severity.CRITICAL: frozenset(
        {Trouble.MAIN_USE_CASE_FAILS, Trouble.CONTRADICTION, Trouble.UNDEFINED_CONCEPT}
    ),
    Severity.HIGH: frozenset(
        {Trouble.COMMON_CASES_FAIL, Trouble.UNDEFINED_FAILURE_MODE, Trouble.CONFLICTS_WITH_APPROVED}
    ),
    Severity.MEDIUM: frozenset({Trouble.RARE_CASES_FAIL, Trouble.SLOW_ON_LARGE_INPUT, Trouble.FRICTION}),
}


def by_rubric(yes: Collection[Trouble]) -> Severity:
    """The severity of something with these troubles (SEV-1)."""
    return next((severity for severity, troubles in RUBRIC.items() if troubles & set(yes)), Severity.LOW)


def cases_that_fail(failing: int, documented: int) -> Trouble | None:
    """Common above a tenth of the documented use cases, else rare; None where none fails (SEV-2).

    Raises ValueError where more fail than are documented: then there is nothing to take a share of.
    """
    if not 0 <= failing <= documented:
        raise ValueError(f"{failing} of {documented} use cases cannot fail.")
    if not failing:
        return None
    return Trouble.COMMON_CASES_FAIL if 10 * failing > documented else Trouble.RARE_CASES_FAIL


class Question(StrEnum):
    """What an open question is about."""

    ARCHITECTURE = "architecture"
    IMPLEMENTATION = "implementation"
    DOCS = "docs"


# SEV-8: open questions have a severity too.
QUESTION_SEVERITY: dict[Question, Severity] = {
    Question.ARCHITECTURE: Severity.HIGH,
    Question.IMPLEMENTATION: Severity.MEDIUM,
    Question.DOCS: Severity.LOW,
}


# --- Who says so ------------------------------------------------------------------------------------------


class Assessor(StrEnum):
    AUTHOR = "author"
    REVIEWER = "reviewer"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Right:
    """What one assessor may do to a severity."""

    first: bool  # may give the first one
    raises: bool
    lowers: bool


# SEV-3, SEV-7.
RIGHTS: dict[Assessor, Right] = {
    Assessor.AUTHOR: Right(first=True, raises=False, lowers=False),
    Assessor.REVIEWER: Right(first=True, raises=True, lowers=False),
    Assessor.USER: Right(first=True, raises=True, lowers=True),
}


@dataclass(frozen=True, slots=True)
class Assessment:
    """One statement of somebody about how severe a thing is."""

    severity: Severity
    by: Assessor


@dataclass(frozen=True, slots=True)
class Assessed:
    """What the statements about one thing come to."""

    severity: Severity
    ask_user: bool = False  # SEV-6: two levels or more apart
    proposed: Severity | None = None  # SEV-4: a lower one that only a user can bring into effect
    final: bool = False  # SEV-7: a user has spoken


def may_change(by: Assessor, before: Severity | None, after: Severity, *, final: bool = False) -> bool:
    """Whether that person or agent may set `after` where `before` stands; None is none yet (SEV-3).

    After a user's word (`final`) only a user changes it again (SEV-7).
    """
    right = RIGHTS[by]
    if before is None:
        return right.first
    if final and by is not Assessor.USER:
        return False
    step = severity_rank(after) - severity_rank(before)
    return step == 0 or (right.raises if step > 0 else right.lowers)


def assess(statements: Sequence[Assessment]) -> Assessed:
    """Which of several statements, oldest first, counts. Raises ValueError for none.

    The last word of a user is final (SEV-7). Else the highest counts, for nobody but a user lowers (SEV-5).
    """
    if not statements:
        raise ValueError("Nobody has stated a severity.")
    if users := [each.severity for each in statements if each.by is Assessor.USER]:
        return Assessed(users[-1], final=True)
    highest = max((each.severity for each in statements), key=severity_rank)
    last = {each.by: each.severity for each in statements}.values()
    lowest = min(last, key=severity_rank)
    apart = severity_rank(highest) - severity_rank(lowest)
    return Assessed(highest, ask_user=apart >= USER_DECIDES_FROM, proposed=lowest if apart else None)
