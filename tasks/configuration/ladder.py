"""Core: ladders, which say by the count of failures which model works next (LAD-1, LAD-2).

A ladder is written as ranges: {"0-1": "small", "2-3": "mid", "4+": "escalate"}.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.text.counting import counted
from tasks.text.regex import regex

ESCALATE = "escalate"
STEPS_MAX = 50
WORD_MAX = 120
_RANGE = regex(r"([0-9]{1,6})(?:-([0-9]{1,6})|(\+))?\Z")


class BadLadder(ValueError):
    """A ladder that leaves a count out, names one twice, or has no open end. `range` is the step at fault."""

    def __init__(self, fault: str, range: str = "") -> None:  # noqa: A002  (it is one)
        super().__init__(fault)
        self.fault, self.range = fault, range


@dataclass(frozen=True, slots=True)
class Step:
    """One range of failures, and the model or tier that works on a task within it."""

    range: str
    first: int
    last: int | None  # None: every count from `first` on
    word: str

    @property
    def escalates(self) -> bool:
        """Whether the task is escalated at this step instead of given to a model of the ladder."""
        return self.word == ESCALATE

    def __str__(self) -> str:
        return f"{self.range}: {self.word}"


def read(steps: Any) -> tuple[Step, ...]:
    """Return the steps in order. Raises BadLadder naming the fault (LAD-1).

    The ranges must start at 0 and have neither gap nor overlap; exactly one, the last, is open.
    """
    if not isinstance(steps, Mapping) or not steps:
        raise BadLadder('maps ranges of failures to models, as in "0-1": small.')
    if len(steps) > STEPS_MAX:
        raise BadLadder(f"has more than {STEPS_MAX} steps.")
    ladder = sorted((_step(failures, word) for failures, word in steps.items()), key=lambda each: each.first)
    due: int | None = 0
    for step in ladder:
        if due is None:
            raise BadLadder("comes after the open end.", step.range)
        if step.first != due:
            left = f"leaves {_span(due, step.first - 1)} out"
            raise BadLadder(f"{'overlaps the step before' if step.first < due else left}.", step.range)
        if step.escalates and step.last is not None:
            raise BadLadder(f"escalates, so it is the last step: {step.first}+.", step.range)
        due = None if step.last is None else step.last + 1
    if due is not None:
        raise BadLadder(f'has no open end; its last step is one such as "{due}+": {ESCALATE}.')
    return tuple(ladder)


def _step(failures: Any, word: Any) -> Step:
    if not isinstance(failures, str):
        raise BadLadder("is no range of failures: 0-1, 2 or 3+.")
    found = _RANGE.match(failures)
    if found is None:
        raise BadLadder("is no range of failures: 0-1, 2 or 3+.", failures)
    first = int(found[1])
    last = None if found[3] else int(found[2] or found[1])
    if last is not None and last < first:
        raise BadLadder("ends before it starts.", failures)
    if not isinstance(word, str) or not word.strip() or len(word) > WORD_MAX:
        raise BadLadder(f"is {shown(word)}; a model or {ESCALATE} is needed.", failures)
    return Step(failures, first, last, word)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def shown(value: Any) -> str:
    """Return a value as it appears in a message, with the middle of a long one left out."""
    try:
        text = repr(value)
    except ValueError:  # a number of more digits than Python prints
        text = "a very long number"
    return text if len(text) <= 80 else f"{text[:60]}...{text[-15:]}"


def step_for(ladder: tuple[Step, ...], failures: int) -> Step:
    """Return the step for so many failures; beyond the last range that is the last step (LAD-2)."""
    return next(step for step in ladder if step.last is None or failures <= step.last)


def place_of(ladder: tuple[Step, ...], failures: int) -> str:
    """Return a task's place on the ladder for people, such as "step 2 of 3, 2-3: mid"."""
    step = step_for(ladder, failures)
    working = [each for each in ladder if not each.escalates]
    if step.escalates:
        return f"past the last of {counted(len(working), 'step')}"
    return f"step {working.index(step) + 1} of {len(working)}, {step}"
