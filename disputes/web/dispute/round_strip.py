"""A strip that shows what became of one finding over the rounds. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

STEPS_MAX = 5

ANSWERS = {
    "declined": ("B", "declined"),
    "silent": ("?", "silent"),
    "addressed": ("✓", "addressed"),
    "partly": ("½", "partly"),
    "deferred": ("→", "deferred"),
    "discarded": ("×", "discarded"),
}


@dataclass(frozen=True, slots=True)
class StripStep:
    round: int
    mark: str
    word: str


def strip(last_round: int, raised: Iterable[int], answers: dict[int, str]) -> list[StripStep]:
    """Return the newest steps up to the last review: for each round the coder's answer, then the review."""
    raised, steps = set(raised), []
    first = min(raised, default=0)
    for number in range(1, last_round + 1):
        if number in answers:
            steps.append(StripStep(number, *ANSWERS.get(answers[number], ("?", answers[number]))))
        if number in raised:
            steps.append(StripStep(number, "A", "raised" if number == first else "again"))
        elif number not in answers:
            steps.append(StripStep(number, "–", "not seen" if number < first else "not raised"))
    return steps[-STEPS_MAX:]
