"""The queue of everything that waits for a person."""
