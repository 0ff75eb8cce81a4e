"""Core: suspected silent disagreement, with what fires, how strongly, and on what evidence.

Intent is never inferred: what was found is shown, and a person is asked.
"""
