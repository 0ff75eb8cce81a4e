"""Silent disagreement in the database: detected, shown and settled."""
