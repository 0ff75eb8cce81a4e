"""The loop: what is next, for whom, and what the end of a run means."""
