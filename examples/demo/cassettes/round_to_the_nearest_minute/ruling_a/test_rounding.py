import unittest

from timespan.rounding import round_to_minute


class RoundingTest(unittest.TestCase):
    def test_a_span_goes_to_the_nearest_minute(self) -> None:
        self.assertEqual(round_to_minute(89), 60)
        self.assertEqual(round_to_minute(91), 120)

    def test_half_a_minute_goes_away_from_zero(self) -> None:
        self.assertEqual([round_to_minute(half) for half in (-90, -30, 30, 90)], [-120, -60, 60, 120])

    def test_a_huge_span_is_exact(self) -> None:
        self.assertEqual(round_to_minute(60 * 10**18 + 1), 60 * 10**18)
