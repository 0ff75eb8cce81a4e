import unittest

from timespan.timesheet import sum_column

SHEET = ["task,time", "design,1h 30m", "lunch,", "code,45m"]


class TimesheetTest(unittest.TestCase):
    def test_the_spans_of_a_column_add_up(self) -> None:
        self.assertEqual(sum_column(SHEET, "time"), 8100)

    def test_a_column_that_is_not_there_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "line 1: there is no column 'cost'"):
            sum_column(SHEET, "cost")

    def test_an_error_names_the_line(self) -> None:
        with self.assertRaisesRegex(ValueError, "line 5: "):
            sum_column([*SHEET, "tea,soon"], "time")
