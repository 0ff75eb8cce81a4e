import unittest

from timespan.rounding import round_to_minute


class RoundingTest(unittest.TestCase):
    def test_a_span_goes_to_the_nearest_minute(self) -> None:
        for half in ("up", "even"):
            with self.subTest(half):
                self.assertEqual(round_to_minute(89, half), 60)
                self.assertEqual(round_to_minute(-91, half), -120)

    def test_half_a_minute_goes_away_from_zero_unless_asked_otherwise(self) -> None:
        self.assertEqual([round_to_minute(half) for half in (-90, -30, 30, 90)], [-120, -60, 60, 120])

    def test_half_a_minute_can_go_to_the_even_minute(self) -> None:
        self.assertEqual([round_to_minute(half, "even") for half in (-90, -30, 30, 90)], [-120, 0, 0, 120])

    def test_another_rule_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            round_to_minute(30, "down")
