"""Core: reading text, for every room."""
