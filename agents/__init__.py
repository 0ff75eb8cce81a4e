"""The agents that do the work, the hosts that run them, and the loop that gives them work."""
