"""Who takes the next run, and why nobody may."""
