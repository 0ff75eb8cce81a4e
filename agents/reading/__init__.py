"""Reads what a build-and-test run left behind: which tests failed, and what was not the work's own fault."""
