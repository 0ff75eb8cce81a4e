import unittest

from timespan.names import define, forget_all, parse_named


class NamesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(forget_all)

    def test_a_name_stands_for_its_span(self) -> None:
        define("sprint", "10d")
        self.assertEqual(parse_named("sprint"), 864000)

    def test_other_text_is_read_as_a_span(self) -> None:
        self.assertEqual(parse_named("1h 30m"), 5400)

    def test_a_name_is_given_once(self) -> None:
        define("sprint", "10d")
        with self.assertRaises(ValueError):
            define("sprint", "15d")
