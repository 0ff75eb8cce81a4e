"""Core: the readers of test results, under one name for those who use them."""

from agents.reading.comparison import Comparison, compare, flaky
from agents.reading.output import read_output
from agents.reading.reports import read_reports
from agents.reading.results import Tests

__all__ = ["Comparison", "Tests", "compare", "flaky", "read_output", "read_reports"]
