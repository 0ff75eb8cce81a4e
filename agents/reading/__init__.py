"""Readers of what a build-and-test run left behind."""
