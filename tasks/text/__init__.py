"""Core: reading and writing text, for every room."""
