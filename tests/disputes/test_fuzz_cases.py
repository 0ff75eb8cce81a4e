"""What the fuzzer found, each as the smallest document that shows it."""

from disputes.protocol.documents import scan, tables


def test_a_bar_alone_is_no_row_of_a_table() -> None:
    (table,) = tables(scan("| Gap | Verdict |\n|---|---|\n| a | b |\n|"))

    assert [row.cells for row in table.rows] == [("a", "b")]
