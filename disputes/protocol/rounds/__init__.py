"""Core: rounds about documents, with gaps, gates, retries and examples.

A proposal is read and validated here, and a whole session of rounds is walked through.
"""
