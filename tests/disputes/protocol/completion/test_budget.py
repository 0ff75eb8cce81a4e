"""Caps: how an amount is written and read, and what humans' answers add to a cap."""

from decimal import Decimal

from disputes.protocol.completion import budget
from disputes.protocol.completion.budget import Answer, Cap
from disputes.protocol.rulings import options
from disputes.protocol.rulings.options import Kind, Option
from tests.cases import for_each

TEN = Decimal(10)


@for_each(
    ("text", "value"),
    [
        ("5", "5"),
        ("$5.50", "5.5"),
        ("$ 5 and no more", "5"),
        ("  2.25 dollars, it is nearly done", "2.25"),
        ("1,500", "1500"),
        ("5k", "5000"),
    ],
)
def test_an_amount_stands_first_in_the_text(text: str, value: str) -> None:
    assert budget.amount_of(text, Cap.TASK_COST) == Decimal(value)


@for_each(
    "text",
    ["", "more", "as much as 5", "-5", "0", "0.00", "5.5.5", "1,2", "100001", "9" * 40, "NaN", "1e5", "٥"],
)
def test_what_is_no_amount_raises_nothing(text: str) -> None:
    assert budget.amount_of(text, Cap.TASK_COST) is None


def test_tokens_may_be_counted_in_thousands() -> None:
    assert budget.amount_of("200k", Cap.RUN_TOKENS) == 200_000
    assert budget.amount_of("2.5M", Cap.RUN_TOKENS) == 2_500_000


def test_a_card_names_its_cap_in_its_first_fact() -> None:
    line = budget.evidence_line(Cap.TASK_COST, Decimal("10.034"), TEN)

    assert line == "task_cost_max: $10.03 of $10.00"
    assert budget.cap_of([line, "coder-1: $10.03"]) is Cap.TASK_COST
    assert (
        budget.evidence_line(Cap.RUN_TOKENS, Decimal(1200), TEN)
        == "run_tokens_max: 1,200 tokens of 10 tokens"
    )


@for_each("evidence", [[], ["something"], [None], [{"a": 1}]])
def test_a_card_about_something_else_names_none(evidence: list[object]) -> None:
    assert budget.cap_of(evidence) is None


def test_the_smallest_amounts_are_not_shown_as_nothing() -> None:
    assert [budget.money(Decimal(text)) for text in ("0", "0.000002", "0.0049", "0.01", "1234.5")] == [
        "$0.00", "$0.000002", "$0.0049", "$0.01", "$1,234.50",
    ]  # fmt: skip


def test_raising_adds_the_amount_and_going_on_once_the_whole_cap_of_a_task() -> None:
    answers = [
        Answer(Cap.TASK_COST, Option.RAISE, "5"),
        Answer(Cap.TASK_COST, Option.RETRY, ""),
        Answer(Cap.TASK_COST, Option.DEFER, "7"),
        Answer(Cap.RUN_COST, Option.RAISE, "100"),
    ]

    assert budget.allowed(Cap.TASK_COST, TEN, answers) == 25
    assert budget.allowed(Cap.RUN_COST, TEN, answers) == 110


def test_a_run_begins_with_its_own_cap_so_going_on_once_adds_nothing() -> None:
    assert budget.allowed(Cap.RUN_COST, TEN, [Answer(Cap.RUN_COST, Option.RETRY, "")]) == 10


def test_only_a_card_about_a_cap_offers_to_raise_it() -> None:
    on_budget = [choice.option for choice in options.offered(Kind.HELP, "budget")]

    assert on_budget == [Option.RETRY, Option.DEFER, Option.CANCEL, Option.RAISE]
    assert Option.RAISE not in {choice.option for choice in options.offered(Kind.HELP, "blocked")}
    assert [options.letter(option) for option in on_budget] == ["1", "2", "3", "4"]
    assert all(cap.whose in {"run", "task", "day", "project"} for cap in Cap)
