import unittest

from timespan.rounding import round_lines, round_to_minute


class RoundingTest(unittest.TestCase):
    def test_a_span_goes_to_the_nearest_minute(self) -> None:
        self.assertEqual(round_to_minute(89), 60)
        self.assertEqual(round_to_minute(91), 120)

    def test_half_a_minute_goes_away_from_zero(self) -> None:
        self.assertEqual([round_to_minute(half) for half in (-90, -30, 30, 90)], [-120, -60, 60, 120])

    def test_a_line_hands_on_what_it_left_out(self) -> None:
        self.assertEqual(round_lines([30, 30, 30, 30]), [60, 0, 60, 0])

    def test_the_lines_stay_close_to_the_exact_total(self) -> None:
        spans = [47, 30, 91, 13, 30] * 100
        self.assertLessEqual(abs(sum(round_lines(spans)) - sum(spans)), 30)
