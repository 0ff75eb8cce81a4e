"""Silent disagreement in rows: looked for, shown, settled."""
