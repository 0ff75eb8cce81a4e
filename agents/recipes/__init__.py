"""Proposes commands that could prepare, build and test a repository, judging by its files."""
