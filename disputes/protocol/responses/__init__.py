"""Core: reading a coder's response, with its answers and its disagreements."""
