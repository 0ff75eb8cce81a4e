"""Core: reading a review, with its verdicts, its findings and their severities.

What the reader is not sure of is listed as doubts, about which the reviewer is asked back.
"""
