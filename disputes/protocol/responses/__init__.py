"""Core: reading a coder's response: its answers and its disagreements."""
