"""Conversion between TODO.md and rows of the database."""
