"""What tokens cost: the program's list, an operator's over it, and every fault with its line."""

import os
from decimal import Decimal
from pathlib import Path

import pytest

from agents.money import prices
from agents.money.prices import BadPrices, PriceList, Tokens
from tests.cases import for_each

MILLION = 1_000_000


def listed(*texts: str) -> PriceList:
    return PriceList(tuple(prices.read(text) for text in texts))


def faults(text: str) -> list[tuple[int, str]]:
    with pytest.raises(BadPrices) as caught:
        prices.read(text)
    return [(fault.line, fault.message) for fault in caught.value.faults]


# --- Reckoning --------------------------------------------------------------------------------------------


def test_each_sort_of_token_has_its_price() -> None:
    known = listed("models:\n  big-1: {input: 3, cached: 0.3, output: 15}\n")

    assert known.cost("big-1", Tokens(MILLION, 0, 0)) == 3
    assert known.cost("big-1", Tokens(0, MILLION, 0)) == Decimal("0.3")
    assert known.cost("big-1", Tokens(0, 0, MILLION)) == 15
    assert known.cost("big-1", Tokens(1000, 2000, 500)) == Decimal("0.0111")


def test_cached_tokens_without_a_price_cost_like_others() -> None:
    known = listed("models:\n  big-1: {input: 3, output: 15}\n")

    assert known.cost("big-1", Tokens(0, MILLION, 0)) == 3


def test_a_millionth_of_a_dollar_is_rounded_not_lost() -> None:
    known = listed("models:\n  tiny: {input: 0.05, output: 0.4}\n")

    assert known.cost("tiny", Tokens(30, 0, 0)) == Decimal("0.000002")


def test_a_model_on_no_list_has_no_price_rather_than_none_to_pay() -> None:
    assert listed("models:\n  big-1: {input: 3, output: 15}\n").cost("other", Tokens(5, 5, 5)) is None


def test_without_a_counted_token_nobody_knows_the_cost() -> None:
    assert listed("models:\n  big-1: {input: 3, output: 15}\n").cost("big-1", Tokens()) is None


def test_a_cost_beyond_all_measure_fits_the_row() -> None:
    known = listed("models:\n  big-1: {input: 100000, output: 100000}\n")

    assert known.cost("big-1", Tokens(10**15, 0, 0)) == prices.COST_MAX


# --- Which line counts ------------------------------------------------------------------------------------


def test_the_longest_name_that_fits_counts_and_an_exact_one_before_all() -> None:
    known = listed(
        "models:\n  b*: {input: 1, output: 1}\n  big-1*: {input: 2, output: 2}\n"
        "  big-1: {input: 3, output: 3}\n"
    )

    assert [known.find(name).pattern for name in ("bag", "big-1-mini", "big-1")] == ["b*", "big-1*", "big-1"]  # type: ignore[union-attr]


def test_case_and_the_vendor_before_a_slash_do_not_matter() -> None:
    known = listed("models:\n  Big-1: {input: 3, output: 15}\n")

    assert known.find("BIG-1") == known.find("acme/big-1") == known.find("router/acme/big-1") is not None


def test_a_name_with_its_vendor_may_have_a_price_of_its_own() -> None:
    known = listed("models:\n  big-1: {input: 3, output: 15}\n  acme/big-1: {input: 9, output: 9}\n")

    assert [known.find(name).input for name in ("acme/big-1", "other/big-1")] == [9, 3]  # type: ignore[union-attr]


def test_the_operators_list_is_asked_first_even_where_it_is_less_exact() -> None:
    known = listed("models:\n  big*: {input: 7, output: 7}\n", "models:\n  big-1: {input: 3, output: 15}\n")

    assert known.find("big-1").input == 7  # type: ignore[union-attr]


# --- Files ------------------------------------------------------------------------------------------------


def test_the_programs_own_list_is_well_formed_and_says_no_price_of_nothing() -> None:
    own = prices.load(None).lists[0]

    assert len(own) > 10
    assert all(0 < price.cached <= price.input < price.output for price in own)


def test_a_file_that_changed_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text("models:\n  big-1: {input: 3, output: 15}\n")
    before = prices.load(path).find("big-1")
    path.write_text("models:\n  big-1: {input: 4, output: 15}\n")
    os.utime(path, ns=(1, 1))

    assert (before.input, prices.load(path).find("big-1").input) == (3, 4)  # type: ignore[union-attr]


def test_a_file_that_is_not_there_leaves_the_programs_list(tmp_path: Path) -> None:
    assert prices.load(tmp_path / "none.yaml") == prices.load(None)


def test_faults_of_a_file_name_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("models:\n  big-1: {input: x, output: 1}\n")

    with pytest.raises(BadPrices, match=r"mine\.yaml:2: big-1: input is a number"):
        prices.load(path)


# --- Faults -----------------------------------------------------------------------------------------------


@for_each(
    ("text", "line", "words"),
    [
        ("models:\n  a: {input: 1}\n", 2, "input and output are needed"),
        ("models:\n  a:\n    input: 1\n    output: -2\n", 4, "output is a number from 0"),
        ("models:\n  a: {input: .nan, output: 1}\n", 2, "input is a number"),
        ("models:\n  a: {input: Infinity, output: 1}\n", 2, "input is a number"),
        ("models:\n  a: {input: '3', output: 1}\n", 2, "input is a number"),
        ("models:\n  a: {input: [1], output: 1}\n", 2, "input is a number"),
        ("models:\n  a: {input: 1, output: 1, ouptut: 2}\n", 2, "'ouptut' is none of input"),
        ("models:\n  a: {input: 1, output: 1}\n  a: {input: 2, output: 2}\n", 3, "twice"),
        ("models:\n  a: 7\n", 2, "a is a mapping"),
        ("modles:\n  a: {input: 1, output: 1}\n", 1, "no key of a price list"),
        ("- a\n", 1, "the file is a mapping"),
        ("models:\n  a: {input: 1\n  b: 2\n", 3, "no YAML"),
        ("models:\n  a\x00: 1\n", 2, "character"),
        ("models:\n  ? [a]\n  : {input: 1, output: 1}\n", 2, "plain word"),
        ("models: " + "[" * 5000 + "\n", 1, ""),
        ("x" * (prices.SIZE_MAX + 1), 1, "are the most"),
    ],
)
def test_a_fault_names_its_line(text: str, line: int, words: str) -> None:
    found = faults(text)

    assert [number for number, _ in found] == [line] or line == 1
    assert words in found[0][1]


def test_all_faults_are_said_at_once() -> None:
    assert [line for line, _ in faults("models:\n  a: {input: 1}\n  b: {output: x}\nmore: 1\n")] == [2, 3, 4]


@for_each("text", ["", "# nothing\n", "models:\n", "models: {}\n"])
def test_an_empty_list_is_one(text: str) -> None:
    assert prices.read(text) == ()


def test_aliases_cannot_blow_it_up() -> None:
    bomb = "models:\n  a: &a {input: 1, output: 1}\n" + "".join(f"  b{n}: *a\n" for n in range(100))

    assert len(prices.read(bomb)) == 101
