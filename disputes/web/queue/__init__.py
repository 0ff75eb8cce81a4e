"""The queue of what waits for a person."""
