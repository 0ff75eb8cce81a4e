"""Core: suspected silent disagreement, with what fires, how strongly, and on what evidence."""
