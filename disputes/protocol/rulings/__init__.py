"""Core: what may be ruled, in which words a ruling is told, and whether it was followed."""
