"""Core: reading a review, with its verdicts, its findings and their severities."""
