import unittest

from timespan.report import report


class ReportTest(unittest.TestCase):
    def test_the_spans_stand_below_each_other(self) -> None:
        self.assertEqual(
            report([("Design", 5410), ("Code", 3599)]).splitlines(),
            ["Design  1h 30m", "Code    1h", "Total   2h 30m"],
        )

    def test_the_total_is_rounded_once(self) -> None:
        self.assertIn("Total  2m", report([("a", 40), ("b", 40), ("c", 40)]))

    def test_an_empty_report_has_a_total(self) -> None:
        self.assertEqual(report([]), "Total  0s")
