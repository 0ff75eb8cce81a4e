"""The insights: how a team rules, in figures."""
