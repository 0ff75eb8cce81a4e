"""Pulled agents, which run on machines without a host and claim their own work."""
