import unittest

from timespan import total_seconds


class TotalsTest(unittest.TestCase):
    def test_spans_add_up(self) -> None:
        self.assertEqual(total_seconds(["45m", "1h 30m"]), 8100)

    def test_no_spans_are_nothing(self) -> None:
        self.assertEqual(total_seconds([]), 0)
