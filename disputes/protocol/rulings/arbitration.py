"""Reading a judge's answer, and what a project's policy may do with a dispute (ARB-5 to ARB-7, ARB-10).

The structured hand-in is the answer of record. Without one, the judge's final text is read strictly: it
states a verdict only if its first line is one. Whatever would need interpreting is ESCALATE, so that no
wording settles a conflict by accident.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from disputes.protocol.rulings.figures import wilson
from disputes.protocol.rulings.options import Kind, Option
from disputes.protocol.rulings.recommendations import JudgeVerdict
from disputes.protocol.text.documents import Mode, scan
from tasks.states import Severity
from tasks.text.regex import regex

READ_MAX = 64 * 1024  # how many characters of a final text are read
NEWEST = 100  # how many rulings of one kind count, so that a judge that gets worse loses the right
AUDIT_EVERY = 5  # one dispute in so many waits for people although the judge might rule

_WORD = regex(r"\b(?:enforce|dismiss|escalate)\b", re.IGNORECASE)
# What may come before the word in an answer with a label.
_LABEL = regex(
    r"(?:(?:my|the|final)\s+){0,2}(?:verdict|decision|ruling|answer)[\s*_`]*(?::|=|\bis\b:?)[\s*_`]*",
    re.IGNORECASE,
)
# The word itself, alone or followed by a mark and an explanation. "ENFORCE is wrong" is a sentence.
_ANSWER = regex(
    r"(?P<word>enforce|dismiss|escalate)[*_`]*(?:\s*[:;,.!(\u2013\u2014]|\s+-|$)(?P<rest>.*)", re.IGNORECASE
)
# An explanation with one of these beginnings takes the word back.
_TAKEN_BACK = regex(r"[\W_]*(?:no|not|never|nope|don.?t|do not|cannot|can.?t|neither|wrong)\b", re.IGNORECASE)
_ITEM = regex(r"^(?:[-*+\u2022]|\d{1,3}[.)]|#{1,6})\s+")


def read_verdict(text: str) -> JudgeVerdict:
    """Return what a judge's final text says if there was no hand-in (ARB-6).

    Its first line that is not blank counts, without list, heading and emphasis marks. The result is ESCALATE
    if that line has no verdict word or two different ones, if it is a quote, a fence or a sentence about the
    word, or if another verdict follows further down.
    """
    lines = [line for line in scan(text[:READ_MAX]) if line.text.strip()]
    if not lines or lines[0].mode is not Mode.STATED:
        return JudgeVerdict.ESCALATE
    said = _of_line(lines[0].text)
    if said is None or len({word.lower() for word in _WORD.findall(lines[0].text)}) != 1:
        return JudgeVerdict.ESCALATE
    later = {_of_line(line.text) for line in lines[1:] if line.mode is Mode.STATED} - {None}
    return said if later <= {said} else JudgeVerdict.ESCALATE


def _of_line(line: str) -> JudgeVerdict | None:
    """Return the verdict that this line states, or None."""
    bare = _ITEM.sub("", line.strip(), count=1).lstrip("*_` \t")
    label = _LABEL.match(bare)
    found = _ANSWER.fullmatch(bare[label.end() if label else 0 :].rstrip())
    if found is None or _TAKEN_BACK.match(found["rest"]):
        return None
    return JudgeVerdict(found["word"].lower())


def option_of(verdict: str) -> Option | None:
    """Return the option that the verdict speaks for; None if a person has to decide (ARB-7)."""
    return {
        JudgeVerdict.ENFORCE: Option.UPHOLD_REVIEWER,
        JudgeVerdict.DISMISS: Option.UPHOLD_CODER,
    }.get(JudgeVerdict(verdict))  # fmt: skip


# --- The project's policy ---------------------------------------------------------------------------------


class FirstStep(StrEnum):
    """What the program does with a new dispute before anybody has looked at it."""

    WAIT = "wait"
    ASK = "ask"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class DisputeFacts:
    """What the policy looks at; `is_heard` says that both sides have stated something."""

    kind: str
    severity: str
    opened_as: str
    reason: str
    is_heard: bool


def first_step(on_dispute: str, *, prompt_user: bool, subject: DisputeFacts) -> FirstStep:
    """Return what follows from the project's choice if people are not asked first (ARB-5).

    A dispute that a person opened waits for people.
    """
    if prompt_user or subject.kind != Kind.DISAGREEMENT or subject.opened_as == "human":
        return FirstStep.WAIT
    if on_dispute == "judge":
        return FirstStep.ASK
    return FirstStep.DISCARD if on_dispute == "discard" and may_be_discarded(subject) else FirstStep.WAIT


def may_be_ruled(subject: DisputeFacts) -> bool:
    """Whether the program may rule by policy at all: never if it is critical or a side was not heard."""
    return subject.kind == Kind.DISAGREEMENT and subject.severity != Severity.CRITICAL and subject.is_heard


def may_be_discarded(subject: DisputeFacts) -> bool:
    """Whether the finding may be dropped unread: only if a coder declined it, and never about security.

    What a reviewer or the program opened is there because somebody should look at it.
    """
    is_declined = subject.opened_as == "coder" and subject.reason != "security_concern"
    return is_declined and may_be_ruled(subject)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often a judge and people agreed on one kind of finding."""

    agreed: int
    judged: int

    @property
    def at_least(self) -> float:
        """The lower limit of the agreement (Wilson's, so that a few rulings alone prove little)."""
        return wilson(self.agreed, self.judged)[0]

    def reaches(self, bound: float) -> bool:
        """Whether the judge may rule alone if so much agreement is required; 0 means never (ARB-10)."""
        return 0 < bound <= self.at_least

    def __str__(self) -> str:
        return f"{self.agreed} of {self.judged}, so at least {self.at_least:.0%}"


def is_sampled(number: int, secret: str) -> bool:
    """Whether the dispute with this number waits for people, so that the agreement goes on being measured.

    One in AUDIT_EVERY does, always the same ones. Nobody can tell beforehand which without the secret.
    """
    drawn = blake2b(f"{secret}:{number}".encode(), digest_size=8).digest()
    return int.from_bytes(drawn, "big") % AUDIT_EVERY == 0
