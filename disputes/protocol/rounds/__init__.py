"""Core: rounds about documents, with gaps, gates, retries and examples."""
