"""Why a task does not finish: the classes of reasons, and when a person must look (STK-1 to STK-7)."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.responses.answer_kinds import AnswerKind
from disputes.protocol.text.diffs import Changes
from disputes.protocol.text.keywords import keywords, likeness
from disputes.protocol.text.locations import read_place
from tasks.states import Severity
from tasks.text.regex import regex

SILENT = "silent"  # stands in for an answer if the coder gave none
TEXT_MAX = 4_000
BESIDE = 3  # how many context lines belong to a change, as in a diff


class Stuck(StrEnum):
    """The reason why one finding keeps a task going (STK-1 to STK-5)."""

    TRUE_DISPUTE = "true_dispute"
    SILENCE = "silent_non_compliance"
    OSCILLATION = "oscillation"
    CANNOT_DO = "cannot_do"


class Step(StrEnum):
    """What is done about it."""

    CONFLICT = "conflict"  # options A to D
    ASK = "ask"  # one more prompt, which demands an answer for each finding
    HELP = "help"  # no options A to D


class Whose(StrEnum):
    """Whose turn it is next."""

    CODER = "The coder's turn."
    HUMAN = "A human's turn: rule."
    HELP = "A human's turn: lend a hand."


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The class that was found: what to do, since which round, and why, as a clause without a full stop.

    `rounds` are the rounds to show; for an oscillation, the rounds A, B and A.
    """

    kind: Stuck
    step: Step
    since: int
    why: str
    rounds: tuple[int, ...] = ()

    @property
    def whose(self) -> Whose:
        return {Step.CONFLICT: Whose.HUMAN, Step.ASK: Whose.CODER, Step.HELP: Whose.HELP}[self.step]

    def line(self, name: str) -> str:
        """Return the one line that people see: why, since when, and whose turn it is (STK-7)."""
        return f"{name}: {self.why}, since round {self.since}. {self.whose}"


@dataclass(frozen=True, slots=True)
class Turn:
    """One round of a finding: how the reviewer raised it, and what the coder answered.

    `answer` is a kind of answer, "silent", or empty while none is due. `content` is any hash of the place in
    the reviewed commit, empty if it is not known. `touched` says whether the commit of the answer changed the
    place, None if that is unknown. `request` is what the reviewer asks for.
    """

    round: int
    mandatory: bool
    answer: str = ""
    answer_text: str = ""
    content: str = ""
    touched: bool | None = None
    request: str = ""


def diagnose(turns: Sequence[Turn], *, asked: bool = False) -> Diagnosis | None:
    """Return the class of one finding, or None; its turns are given oldest first (STK-1 to STK-3, STK-5).

    `asked` says that the coder has already been prompted again for an answer. The first class that fits
    counts, beginning with what the coder cannot do, since that is no dispute.
    """
    if not turns:
        return None
    found = _cannot_do(turns[-1]) or _true_dispute(turns) or _oscillation(turns)
    return found or _silence(turns, asked)


def _cannot_do(last: Turn) -> Diagnosis | None:
    if last.answer in {AnswerKind.DECLINED, AnswerKind.ADDRESSED} or not cannot_do(last.answer_text):
        return None
    why = "the coder agrees, but lacks what it takes"
    return Diagnosis(Stuck.CANNOT_DO, Step.HELP, last.round, why, (last.round,))


def _true_dispute(turns: Sequence[Turn]) -> Diagnosis | None:
    last = turns[-1]
    if last.mandatory and last.answer == AnswerKind.DECLINED:
        why = "the coder declined it"
        return Diagnosis(Stuck.TRUE_DISPUTE, Step.CONFLICT, last.round, why, (last.round,))
    before = [turn for turn in turns[:-1] if turn.answer][-1:]
    if last.mandatory and any(one.answer == AnswerKind.DECLINED and not one.mandatory for one in before):
        why = "it was declined while it was optional, and came back as mandatory"
        return Diagnosis(Stuck.TRUE_DISPUTE, Step.CONFLICT, last.round, why, (before[-1].round, last.round))
    return None


def _oscillation(turns: Sequence[Turn]) -> Diagnosis | None:
    last = turns[-1]
    seen = [turn for turn in turns if turn.content]
    if last.content and (rounds := returns_to([(turn.round, turn.content) for turn in seen])):
        why = f"the place is back at what it was in round {rounds[0]}"
        return Diagnosis(Stuck.OSCILLATION, Step.CONFLICT, rounds[1], why, rounds)
    for earlier in reversed(turns[:-1]):
        if earlier.touched and undoes(last.request, earlier.request):
            why = f"the reviewer asks to undo what it asked for in round {earlier.round}"
            return Diagnosis(Stuck.OSCILLATION, Step.CONFLICT, last.round, why, (earlier.round, last.round))
    return None


def _silence(turns: Sequence[Turn], asked: bool) -> Diagnosis | None:
    if len(turns) < 2:
        return None
    before, last = turns[-2], turns[-1]
    if before.answer != SILENT or before.touched is not False:
        return None
    step = Step.CONFLICT if asked else Step.ASK
    why = "raised again, without an answer, and the place is untouched"
    return Diagnosis(Stuck.SILENCE, step, before.round, why, (before.round, last.round))


# --- Oscillation ------------------------------------------------------------------------------------------


def returns_to(contents: Sequence[tuple[int, str]]) -> tuple[int, int, int] | None:
    """Return the rounds A, B and A if the last content was there before another one (STK-3), or None.

    `contents` are rounds with a hash of the place, oldest first.
    """
    if not contents:
        return None
    last_round, last = contents[-1]
    between: int | None = None
    for number, content in reversed(contents[:-1]):
        if content != last:
            between = number
        elif between is not None:
            return number, between, last_round
        else:
            return None  # it has not changed since then
    return None


_UNDO = regex(
    r"\b(?:revert(?:s|ed|ing)?|undo(?:es|ne|ing)?|restor(?:e|es|ed|ing)|reinstat(?:e|es|ed|ing)"
    r"|roll(?:s|ed|ing)? (?:it |this |that )?back|put(?:s|ting)? (?:it |this |that )?back"
    r"|back to (?:the |its )?(?:original|previous|old|earlier|former)|as it was)\b",
    re.IGNORECASE,
)
# A request with a verb of one side takes back an earlier one with a verb of the other side of the same row.
_OPPOSITES = (
    ("add introduce insert create use keep", "remove drop delete avoid omit"),
    ("enable allow permit", "disable forbid reject refuse"),
    ("increase raise lengthen widen", "decrease reduce lower shorten narrow"),
    ("extract split separate", "inline merge join combine"),
    ("require tighten", "relax loosen"),
)
_SIDES = {
    stem: (row, side)
    for row, sides in enumerate(_OPPOSITES)
    for side, words in enumerate(sides)
    for stem in keywords(words)
}
UNDO_LIKENESS = 0.3
OPPOSITE_LIKENESS = 0.5


def undoes(request: str, earlier: str) -> bool:
    """Whether a request takes back an earlier one on the same subject.

    It does so with a word such as "revert", or with the opposite verb: add and remove. The subjects must be
    alike, so that "roll back the transaction" undoes nothing by itself.
    """
    new, old = keywords(request[:TEXT_MAX]), keywords(earlier[:TEXT_MAX])
    alike = likeness(new - _SIDES.keys(), old - _SIDES.keys())
    if alike >= UNDO_LIKENESS and _UNDO.search(request[:TEXT_MAX]) and not _UNDO.search(earlier[:TEXT_MAX]):
        return True
    asks, asked = _sides(new), _sides(old)
    turned = any((row, 1 - side) in asked for row, side in asks - asked) and not asked <= asks
    return alike >= OPPOSITE_LIKENESS and turned


def _sides(words: frozenset[str]) -> frozenset[tuple[int, int]]:
    return frozenset(_SIDES[word] for word in words if word in _SIDES)


# --- Goalposts --------------------------------------------------------------------------------------------

_SECURITY = regex(
    r"\b(?:secur|insecur|vulnerab|exploit|inject|xss|csrf|ssrf|rce\b|cve-|secret|credential|password|passphrase"
    r"|privilege|authenti|authori[sz]|unauthori|untrusted|(?:un)?saniti[sz]|(?:path|directory)[ -]traversal"
    r"|deseriali[sz]|encrypt|decrypt|api[ _-]keys?\b|access[ _-]control)",
    re.IGNORECASE,
)


def is_security(text: str) -> bool:
    """Whether a finding is about security; in doubt, it is."""
    return _SECURITY.search(text) is not None


def is_follow_up(
    *, is_new: bool, severity: str | None, text: str, location: str, since_last_review: Changes | None
) -> bool:
    """Whether a finding is new on lines that the last review saw in the same form (STK-4).

    It then becomes a follow-up and does not block. It never is one if it is critical or about security, was
    raised before, or if its place or the changes are unknown. `since_last_review` is None in the first
    review.
    """
    place = read_place(location)
    if not is_new or since_last_review is None or severity == Severity.CRITICAL or is_security(text):
        return False
    if not place.path:
        return False
    change = since_last_review.of(place.path)
    if change is None:
        return not since_last_review.is_cut
    if change.is_new or change.is_deleted or change.is_binary or since_last_review.is_cut:
        return False
    if not change.edits:
        return True
    return bool(place.first) and not change.touches(place.first or 0, place.last or 0, BESIDE)


# --- Cannot do -------------------------------------------------------------------------------------------

_LACKING = (
    r"(?:access|permissions?|credentials?|(?:api )?keys?|tokens?|licen[cs]es?|tools?|network|internet"
    r"|information|specification|documentation|clarification|decision|hardware|account|environment|input)"
)
_CANNOT = regex(
    r"BLOCKED_NEEDS_INPUT"
    r"|\b(?:i|we)(?: \w{1,12}){0,3} (?:cannot|can't|can not|could not|couldn't|unable|lack|have no|had no"
    rf"|do not have|don't have|need|missing)\b(?: [^\s.;]{{1,30}}){{0,8}} {_LACKING}\b"
    rf"|\b(?:i|we) (?:need|lack) {_LACKING}\b|^(?:there is )?no {_LACKING}\b",
    re.IGNORECASE,
)


def cannot_do(text: str) -> bool:
    """Whether a coder says that it lacks access, a tool or information (STK-5)."""
    plain = " ".join(text[:TEXT_MAX].replace("’", "'").split())
    return _CANNOT.search(plain) is not None


# --- Rounds that repeat -----------------------------------------------------------------------------------


def repeating_rounds(rounds: Sequence[Collection[int]]) -> int:
    """Return how many rejections in a row repeat findings: 1 for the last alone, 2 if that repeats one, …

    `rounds` has the findings of each rejection, oldest first, as the numbers under which they were first
    raised.
    """
    seen: set[int] = set()
    repeats = []
    for findings in rounds:
        repeats.append(not seen.isdisjoint(findings))
        seen |= set(findings)
    count = 1 if rounds else 0
    for repeated in reversed(repeats):
        if not repeated:
            break
        count += 1
    return count


def needs_human(rounds: Sequence[Collection[int]], rounds_to_human: int) -> bool:
    """Whether a rejected task goes to a person because its findings repeat (STK-6)."""
    return repeating_rounds(rounds) >= max(rounds_to_human, 2)
