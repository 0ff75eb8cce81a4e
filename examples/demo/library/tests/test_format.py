import unittest

from timespan import format_span


class FormatTest(unittest.TestCase):
    def test_parts_that_are_zero_are_left_out(self) -> None:
        self.assertEqual(format_span(5400), "1h 30m")
        self.assertEqual(format_span(86401), "1d 1s")

    def test_nothing_is_zero_seconds(self) -> None:
        self.assertEqual(format_span(0), "0s")

    def test_a_negative_span_starts_with_its_sign(self) -> None:
        self.assertEqual(format_span(-5400), "-1h 30m")
