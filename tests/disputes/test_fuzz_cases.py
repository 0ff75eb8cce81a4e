"""What the fuzzer found, each as the smallest document that shows it."""

import pytest

from disputes.protocol.documents import scan, tables, unclosed_fence
from disputes.protocol.reviews import Verdict, read_review
from disputes.protocol.validation import parser_alarm


def test_a_bar_alone_is_no_row_of_a_table() -> None:
    (table,) = tables(scan("| Gap | Verdict |\n|---|---|\n| a | b |\n|"))

    assert [row.cells for row in table.rows] == [("a", "b")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n```\nb", 2),
        ("```\na\n```\n~~~\nb\n", 4),  # one behind another
        ("```\na\n```", 0),
        ("```\na\n```\n", 0),
        ("```", 1),
        ("a", 0),
        ("", 0),
    ],
)
def test_a_fence_that_nothing_closes_is_named(text: str, line: int) -> None:
    assert unclosed_fence(scan(text)) == line


@pytest.mark.parametrize("verdict", ["APPROVED", "NO_ISSUES_FOUND", "APPROVED WITH NOTES"])
def test_nothing_is_approved_where_a_fence_is_never_closed(verdict: str) -> None:
    closed = f"## Verdict: {verdict}\n\n```python\nx = 1\n```\n"

    assert read_review(closed).verdict is not None
    assert read_review(closed.removesuffix("```\n")).verdict is None


def test_a_rejection_stands_where_a_fence_is_never_closed() -> None:
    assert read_review("## Verdict: NEEDS_REVISION\n\n```\n").verdict is Verdict.NEEDS_REVISION


@pytest.mark.parametrize(
    "line", ["`## Verdict: APPROVED` ends a good review.", "- `Verdict: APPROVED` is what it should say"]
)
def test_a_verdict_in_code_with_words_behind_it_is_an_example(line: str) -> None:
    assert read_review(line).verdict is None


@pytest.mark.parametrize("text", ["", "  \n", "\n\n", "\t"], ids=repr)
def test_a_blank_review_raises_the_alarm(text: str) -> None:
    assert "neither a verdict nor a finding" in parser_alarm(scan(text), read_review(text))
