import unittest

from timespan import parse_span


class SignsTest(unittest.TestCase):
    def test_a_minus_sign_makes_a_span_negative(self) -> None:
        self.assertEqual(parse_span("-2h"), -7200)

    def test_a_lone_minus_sign_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            parse_span("-")
