"""Caps on money and tokens: their names, how amounts are written, and what a person's answer adds to them."""

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
    """The keys of the settings that are caps."""

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
        """Whether the cap stops the whole project, so that no single task is to blame."""
        return self in {Cap.DAY_COST, Cap.PROJECT_COST, Cap.DAY_TOKENS}

    @property
    def whose(self) -> str:
        """What the cap is for: run, task, day or project."""
        return self.partition("_")[0]


def money(amount: Decimal) -> str:
    """Return dollars as people read them: with two places, or more for amounts below a cent."""
    if amount and abs(amount) < CENT:
        return f"${amount:.6f}".rstrip("0")
    return f"${amount:,.2f}"


def amount(cap: Cap, value: Decimal) -> str:
    """Return what is spent or allowed, in the unit of the cap."""
    return money(value) if cap.is_money else f"{value:,.0f} tokens"


def amount_of(text: str, cap: Cap) -> Decimal | None:
    """Return the amount at the beginning of a text: 5, $5.50, 200,000, 200k.

    None if there is no amount, or if it is zero or beyond what a cap may be.
    """
    found = AMOUNT.match(text.strip())
    if not found:
        return None
    value = Decimal(found[1].replace(",", "")) * TIMES[found[2].lower()]
    return value if 0 < value <= (DOLLARS_MAX if cap.is_money else TOKENS_MAX) else None


def evidence_line(cap: Cap, spent: Decimal, limit: Decimal) -> str:
    """Return the first fact of a card about a cap, which `cap_of` reads back."""
    return f"{cap.value}: {amount(cap, spent)} of {amount(cap, limit)}"


def cap_of(evidence: Sequence[object]) -> Cap | None:
    """Return the cap that a card is about, judging by its evidence; None if it is about none."""
    key = str(evidence[0]).partition(":")[0] if evidence else ""
    return Cap(key) if key in set(Cap) else None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person chose on a card about a cap."""

    cap: Cap
    option: str
    text: str


def allowed(cap: Cap, base: Decimal, answers: Iterable[Answer]) -> Decimal:
    """Return the cap together with what people added to it on the task's cards.

    Raising it adds the amount. Going on once adds the whole cap again if it is a task's; to the cap of a run
    it adds nothing, because each run begins with its own.
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
