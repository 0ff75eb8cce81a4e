"""Core: rounds about documents: gaps, gates, retries and examples."""
