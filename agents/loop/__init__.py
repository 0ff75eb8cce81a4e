"""The loop: it decides what is next and for whom, and what the end of a run means."""
