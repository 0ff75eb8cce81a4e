"""Core: suspected silent disagreement: what fires, how strongly, and on what evidence."""
