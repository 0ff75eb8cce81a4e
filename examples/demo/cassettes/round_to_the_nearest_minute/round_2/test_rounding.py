import unittest

from timespan.rounding import round_to_minute


class RoundingTest(unittest.TestCase):
    def test_a_span_goes_to_the_nearest_minute(self) -> None:
        self.assertEqual(round_to_minute(89), 60)
        self.assertEqual(round_to_minute(91), 120)

    def test_half_a_minute_goes_to_the_even_minute(self) -> None:
        self.assertEqual([round_to_minute(half) for half in (-90, -30, 30, 90)], [-120, 0, 0, 120])

    def test_many_half_minutes_do_not_drift(self) -> None:
        spans = [30, 90, 150, 210]
        self.assertEqual(sum(round_to_minute(span) for span in spans), sum(spans))

    def test_a_huge_span_is_exact(self) -> None:
        self.assertEqual(round_to_minute(60 * 10**18 + 1), 60 * 10**18)
