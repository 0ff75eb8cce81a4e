"""Comments by people and agents beside the work."""
