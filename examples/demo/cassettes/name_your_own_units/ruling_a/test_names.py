import unittest

from timespan.names import Names


class NamesTest(unittest.TestCase):
    def test_a_name_stands_for_its_span(self) -> None:
        self.assertEqual(Names({"sprint": "10d"}).parse("sprint"), 864000)

    def test_other_text_is_read_as_a_span(self) -> None:
        self.assertEqual(Names({}).parse("1h 30m"), 5400)

    def test_two_teams_do_not_know_of_each_other(self) -> None:
        Names({"sprint": "10d"})
        with self.assertRaises(ValueError):
            Names({"shift": "8h"}).parse("sprint")
