"""Core: which tests failed in a run, from all that it left."""

from dataclasses import replace

from agents.reading.comparison import Comparison, compare, flaky
from agents.reading.output import read_output
from agents.reading.reports import read_reports
from agents.reading.results import Tests

__all__ = ["Comparison", "Tests", "compare", "flaky", "read_output", "read_reports", "together"]


def together(reported: Tests, printed: Tests) -> Tests:
    """The tests of a run by its reports and by its output: names of the reports, of two counts the larger.

    Reports have the better names and leave things out: meson's count a test that took too long as passed,
    pytest's do not say that it stopped at the first failure. So what the output counts holds as well.
    """
    return replace(
        reported,
        failed_count=max(reported.failed_count or 0, printed.failed_count or 0),
        broke_off=reported.broke_off or printed.broke_off,
    )
