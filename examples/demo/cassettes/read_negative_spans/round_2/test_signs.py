import unittest

from timespan import format_span, parse_span


class SignsTest(unittest.TestCase):
    def test_a_minus_sign_makes_a_span_negative(self) -> None:
        self.assertEqual(parse_span("-2h"), -7200)

    def test_the_sign_counts_for_the_whole_span(self) -> None:
        self.assertEqual(parse_span("-1h 30m"), -5400)

    def test_what_is_written_is_read_back(self) -> None:
        for seconds in (-90061, -5400, -1, 0, 1, 5400):
            with self.subTest(seconds):
                self.assertEqual(parse_span(format_span(seconds)), seconds)

    def test_an_error_quotes_the_text_as_it_was_written(self) -> None:
        for text in ("-", "- Soon", "--1h"):
            with self.subTest(text), self.assertRaises(ValueError) as caught:
                parse_span(text)
            self.assertIn(repr(text), str(caught.exception))
