"""How a team rules, in figures."""
