"""Core: reading a review: its verdicts, its findings and their severities."""
