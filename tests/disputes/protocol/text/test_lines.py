"""What a line is: list items, bold words, rows and tables; fences behind a list marker (ID-3)."""

from disputes.protocol.text.documents import bold_lead, cells, list_item, scan, tables
from tests.cases import for_each


@for_each(
    ("text", "expected"),
    [
        ("- a", (0, "-", "a")),
        ("* a", (0, "*", "a")),
        ("+ a", (0, "+", "a")),
        ("1. a", (0, "1.", "a")),
        ("12) a", (0, "12)", "a")),
        ("  - a", (2, "-", "a")),
        ("\t- a", (4, "-", "a")),  # a tab counts as four blanks
        ("-  a", (0, "-", "a")),
        ("- **a**: b", (0, "-", "**a**: b")),
        ("-a", None),
        ("**a**", None),  # bold words
        ("1.a", None),
        ("1234. a", None),
        ("a - b", None),
        ("", None),
    ],
)
def test_a_list_item_has_indent_marker_and_text(text: str, expected: tuple[int, str, str] | None) -> None:
    assert list_item(text) == expected


@for_each(
    ("text", "expected"),
    [
        ("**a** b", ("a", " b")),
        ("**a**", ("a", "")),
        ("__a__ b", ("a", " b")),
        ("**a:** b", ("a:", " b")),
        ("**a", None),  # never closed
        ("****", None),  # nothing in it
        ("*a*", None),  # not bold
        ("a **b**", None),  # not at the beginning
        ("", None),
    ],
)
def test_the_bold_words_at_the_beginning_are_told_from_the_rest(
    text: str, expected: tuple[str, str] | None
) -> None:
    assert bold_lead(text) == expected


@for_each(
    ("text", "expected"),
    [
        ("| a | b |", ("a", "b")),
        ("|a|b|", ("a", "b")),
        ("| a | b", ("a", "b")),  # the last bar may be left out
        ("  | a |  ", ("a",)),
        ("| a \\| b | c |", ("a | b", "c")),  # an escaped bar is a letter
        ("| a |  |", ("a", "")),
        ("a | b", ()),  # no row begins so
        ("", ()),
    ],
)
def test_a_row_has_cells(text: str, expected: tuple[str, ...]) -> None:
    assert cells(text) == expected


def test_a_table_has_a_header_a_line_of_dashes_and_rows() -> None:
    (table,) = tables(scan("text\n| a | b |\n|:--|--:|\n| 1 | 2 |\n| 3 | 4 |\ntext"))

    assert table.header == ("a", "b")
    assert [(row.line, row.cells) for row in table.rows] == [(4, ("1", "2")), (5, ("3", "4"))]
    assert (table.start, table.end) == (1, 5)


@for_each(
    "text",
    [
        "| a | b |\n| 1 | 2 |",  # no line of dashes
        "| a | b |",
        "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```",  # an example
        "> | a | b |\n> |---|---|",
        "a\n---\nb",
    ],
)
def test_other_bars_are_no_table(text: str) -> None:
    assert list(tables(scan(text))) == []


@for_each(
    ("text", "modes"),
    [
        ("- ```\n  a\n  ```\nb", "fffs"),  # opened on the line of a list marker
        ("1. ```python\n   a\n   ```\nb", "fffs"),
        ("- 1. ```\n     a\n     ```\nb", "fffs"),  # of two of them
        ("- ```\na\n```\nb", "fffs"),  # closed carelessly
        ("- ```a``` b\nc", "ss"),  # code in a line
        ("- a ```\nb", "ss"),
        ("```\n- ```\na\n```\nb", "ffffs"),  # inside a fence a marker neither opens nor closes
    ],
)
def test_a_fence_may_open_behind_a_list_marker(text: str, modes: str) -> None:
    assert "".join(line.mode.value[0] for line in scan(text)) == modes
