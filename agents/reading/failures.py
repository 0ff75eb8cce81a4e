"""Core: which tests failed in a run, from all that it left."""

from dataclasses import replace
from pathlib import Path

from agents.reading.comparison import Comparison, compare, flaky
from agents.reading.output import TEXT_MAX, read_output
from agents.reading.reports import read_reports
from agents.reading.results import Tests

__all__ = ["Comparison", "Tests", "compare", "flaky", "read_output", "read_reports", "read_run"]


def read_run(folder: Path, text: str, root: str = "", *, is_whole: bool = True) -> Tests:
    """The tests of a run: names by its reports, else by its output; of two counts the larger one.

    Reports have the better names and leave things out: meson's count a test that took too long as passed,
    pytest's do not say that it stopped at the first failure. So what the output counts holds as well.
    `root` and `is_whole`: as in `read_output()`; where there are reports, a lost beginning does not matter.
    """
    reported = read_reports(folder, root)
    if reported is None:
        return read_output(text, root, is_whole=is_whole)
    printed = read_output(text[-TEXT_MAX:], root)
    return replace(
        reported,
        failed_count=max(reported.failed_count or 0, printed.failed_count or 0),
        broke_off=reported.broke_off or printed.broke_off,
    )
