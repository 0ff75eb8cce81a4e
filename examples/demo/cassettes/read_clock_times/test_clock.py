import unittest

from timespan.clock import parse_clock


class ClockTest(unittest.TestCase):
    def test_two_fields_are_hours_and_minutes(self) -> None:
        self.assertEqual(parse_clock("1:30"), 5400)

    def test_three_fields_end_with_seconds(self) -> None:
        self.assertEqual(parse_clock("1:30:05"), 5405)

    def test_only_the_first_field_may_be_larger_than_59(self) -> None:
        self.assertEqual(parse_clock("100:00"), 360000)
        with self.assertRaises(ValueError):
            parse_clock("1:60")

    def test_text_that_is_no_clock_time_is_refused(self) -> None:
        for text in ("", "90", "1:", "1:2:3:4", "-1:30"):
            with self.subTest(text), self.assertRaises(ValueError):
                parse_clock(text)
