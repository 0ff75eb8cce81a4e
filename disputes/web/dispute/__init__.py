"""The page of one dispute."""
