"""Core: whether the work may end and how, and what a rollback takes back."""
