"""Who works, and the loop that gives them work."""
