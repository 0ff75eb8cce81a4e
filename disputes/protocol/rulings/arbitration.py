"""Reading a judge's answer, and what a project's policy may do with a dispute (ARB-5 to ARB-7).

The answer of record is the structured hand-in. Where none came, the judge's final text is read, and strictly:
it names a verdict only where its first line is one. Whatever would need interpreting is ESCALATE, so that no
wording settles a conflict by accident.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from disputes.protocol.rulings.options import Kind, Option
from disputes.protocol.rulings.recommendations import JudgeVerdict
from disputes.protocol.text.documents import Mode, scan
from tasks.states import Severity
from tasks.text.regex import regex

READ_MAX = 64 * 1024  # characters of a final text that are looked at

_WORD = regex(r"\b(?:enforce|dismiss|escalate)\b", re.IGNORECASE)
# What may stand before the word, where an answer is labelled.
_LABEL = regex(
    r"(?:(?:my|the|final)\s+){0,2}(?:verdict|decision|ruling|answer)[\s*_`]*(?::|=|\bis\b:?)[\s*_`]*",
    re.IGNORECASE,
)
# The word itself: alone, or with a mark and what explains it behind it. "ENFORCE is wrong" is a sentence.
_ANSWER = regex(
    r"(?P<word>enforce|dismiss|escalate)[*_`]*(?:\s*[:;,.!(\u2013\u2014]|\s+-|$)(?P<rest>.*)", re.IGNORECASE
)
# An explanation that begins like this takes the word back.
_TAKEN_BACK = regex(r"[\W_]*(?:no|not|never|nope|don.?t|do not|cannot|can.?t|neither|wrong)\b", re.IGNORECASE)
_ITEM = regex(r"^(?:[-*+\u2022]|\d{1,3}[.)]|#{1,6})\s+")


def read_verdict(text: str) -> JudgeVerdict:
    """What a final text says where no hand-in came (ARB-6).

    Its first line that is not empty, without list, heading and emphasis marks. No word, two different ones, a
    quote, a fence, a sentence about the word, or another verdict further down: ESCALATE.
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
    """The verdict that this line states; None if it is something else."""
    bare = _ITEM.sub("", line.strip(), count=1).lstrip("*_` \t")
    label = _LABEL.match(bare)
    found = _ANSWER.fullmatch(bare[label.end() if label else 0 :].rstrip())
    if found is None or _TAKEN_BACK.match(found["rest"]):
        return None
    return JudgeVerdict(found["word"].lower())


def option_of(verdict: str) -> Option | None:
    """The option that the verdict speaks for; None where a human has to say (ARB-7)."""
    return {
        JudgeVerdict.ENFORCE: Option.UPHOLD_REVIEWER,
        JudgeVerdict.DISMISS: Option.UPHOLD_CODER,
    }.get(JudgeVerdict(verdict))  # fmt: skip


# --- The project's policy ---------------------------------------------------------------------------------


class FirstStep(StrEnum):
    """What the program does with a new dispute before any human has looked."""

    WAIT = "wait"
    ASK = "ask"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class DisputeFacts:
    """What the policy looks at. `is_heard`: both sides have said something."""

    kind: str
    severity: str
    opened_as: str
    reason: str
    is_heard: bool


def first_step(on_dispute: str, *, prompt_user: bool, subject: DisputeFacts) -> FirstStep:
    """What follows from the project's choice where people are not asked first (ARB-5).

    What a person opened again waits for people.
    """
    if prompt_user or subject.kind != Kind.DISAGREEMENT or subject.opened_as == "human":
        return FirstStep.WAIT
    if on_dispute == "judge":
        return FirstStep.ASK
    return FirstStep.DISCARD if on_dispute == "discard" and may_be_discarded(subject) else FirstStep.WAIT


def may_be_ruled(subject: DisputeFacts) -> bool:
    """Whether the program may rule by policy at all: never where it is critical, or a side is unheard."""
    return subject.kind == Kind.DISAGREEMENT and subject.severity != Severity.CRITICAL and subject.is_heard


def may_be_discarded(subject: DisputeFacts) -> bool:
    """Whether the finding may be dropped unread: only what a coder declined, and nothing of security.

    What a reviewer or the program opened is there because somebody is to look.
    """
    is_declined = subject.opened_as == "coder" and subject.reason != "security_concern"
    return is_declined and may_be_ruled(subject)
