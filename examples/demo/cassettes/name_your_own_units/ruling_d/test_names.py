import unittest

from timespan.names import SHARED, Names


class NamesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.names = Names()
        self.names.define("sprint", "10d")

    def test_a_name_stands_for_its_span(self) -> None:
        self.assertEqual(self.names.parse("sprint"), 864000)

    def test_other_text_is_read_as_a_span(self) -> None:
        self.assertEqual(self.names.parse("1h 30m"), 5400)

    def test_a_name_is_given_once(self) -> None:
        with self.assertRaises(ValueError):
            self.names.define("sprint", "15d")

    def test_the_shared_names_start_empty(self) -> None:
        with self.assertRaises(ValueError):
            SHARED.parse("sprint")
