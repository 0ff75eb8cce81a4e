import unittest

from timespan import parse_span


class ParseTest(unittest.TestCase):
    def test_the_parts_of_a_span_add_up(self) -> None:
        self.assertEqual(parse_span("1h 30m"), 5400)
        self.assertEqual(parse_span("1d1s"), 86401)

    def test_case_and_space_do_not_matter(self) -> None:
        self.assertEqual(parse_span("  2 H "), 7200)

    def test_text_that_is_no_span_is_refused(self) -> None:
        for text in ("", "soon", "1h 30", "5 parsecs"):
            with self.subTest(text), self.assertRaises(ValueError):
                parse_span(text)
