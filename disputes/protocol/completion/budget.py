"""Caps on money and tokens: their names, how amounts are written, and what a human's answer adds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from disputes.protocol.rulings.options import Option
from tasks.text.regex import regex

AMOUNT = regex(r"\$?\s*([0-9]{1,12}(?:,[0-9]{3})*(?:\.[0-9]{1,6})?)\s*([kKmM]?)(?![\w.,]*[0-9])")
TIMES = {"": 1, "k": 1_000, "m": 1_000_000}
DOLLARS_MAX, TOKENS_MAX = Decimal(100_000), Decimal(10**12)
CENT = Decimal("0.01")


class Cap(StrEnum):
    """The keys of the settings that cap something."""

    RUN_COST = "run_cost_max"
    TASK_COST = "task_cost_max"
    DAY_COST = "day_cost_max"
    PROJECT_COST = "project_cost_max"
    RUN_TOKENS = "run_tokens_max"
    TASK_TOKENS = "task_tokens_max"
    DAY_TOKENS = "day_tokens_max"

    @property
    def is_money(self) -> bool:
        return self.endswith("_cost_max")

    @property
    def is_of_project(self) -> bool:
        """Whether it closes the whole project, and no task is to blame."""
        return self in {Cap.DAY_COST, Cap.PROJECT_COST, Cap.DAY_TOKENS}

    @property
    def whose(self) -> str:
        """run, task, day or project."""
        return self.partition("_")[0]


def money(amount: Decimal) -> str:
    """Dollars for people: two places, and more where the amount is smaller than a cent."""
    if amount and abs(amount) < CENT:
        return f"${amount:.6f}".rstrip("0")
    return f"${amount:,.2f}"


def amount(cap: Cap, value: Decimal) -> str:
    """What is spent or allowed, in the unit of the cap."""
    return money(value) if cap.is_money else f"{value:,.0f} tokens"


def amount_of(text: str, cap: Cap) -> Decimal | None:
    """The amount at the beginning of a text: 5, $5.50, 200,000, 200k; None if there is none."""
    found = AMOUNT.match(text.strip())
    if not found:
        return None
    value = Decimal(found[1].replace(",", "")) * TIMES[found[2].lower()]
    return value if 0 < value <= (DOLLARS_MAX if cap.is_money else TOKENS_MAX) else None


def evidence_line(cap: Cap, spent: Decimal, limit: Decimal) -> str:
    """The first fact of a card about a cap; `cap_of` reads it back."""
    return f"{cap.value}: {amount(cap, spent)} of {amount(cap, limit)}"


def cap_of(evidence: Sequence[object]) -> Cap | None:
    """The cap that a card is about."""
    key = str(evidence[0]).partition(":")[0] if evidence else ""
    return Cap(key) if key in set(Cap) else None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a human chose on a card about a cap."""

    cap: Cap
    option: str
    text: str


def allowed(cap: Cap, base: Decimal, answers: Iterable[Answer]) -> Decimal:
    """The cap with what humans added to it on the task's cards.

    Raised, it grows by the amount; going on once, that of a task grows by the whole cap. Each run begins
    with its own cap, so going on once adds nothing to that.
    """
    limit = base
    for answer in answers:
        if answer.cap != cap:
            continue
        if answer.option == Option.RAISE:
            limit += amount_of(answer.text, cap) or 0
        elif answer.option == Option.RETRY and cap.whose == "task":
            limit += base
    return limit
