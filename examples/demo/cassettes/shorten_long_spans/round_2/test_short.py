import unittest

from timespan.short import shorten


class ShortTest(unittest.TestCase):
    def test_the_two_largest_parts_are_kept(self) -> None:
        self.assertEqual(shorten(183900), "2d 3h")
        self.assertEqual(shorten(-183900), "-2d 3h")

    def test_more_or_fewer_parts_can_be_kept(self) -> None:
        self.assertEqual(shorten(183900, parts=1), "2d")
        self.assertEqual(shorten(183900, parts=9), "2d 3h 5m")

    def test_at_least_one_part_is_kept(self) -> None:
        for parts in (0, -1):
            with self.subTest(parts), self.assertRaises(ValueError):
                shorten(183900, parts)
