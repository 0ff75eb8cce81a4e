import unittest

from timespan import format_span, parse_span


class WeeksTest(unittest.TestCase):
    def test_a_week_has_seven_days(self) -> None:
        self.assertEqual(parse_span("1w"), parse_span("7d"))
        self.assertEqual(parse_span("1w 1d"), parse_span("8d"))

    def test_weeks_are_never_written(self) -> None:
        self.assertEqual(format_span(parse_span("2w")), "14d")
