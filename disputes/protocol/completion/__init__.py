"""Core: whether the work comes to an end, as what, and what is taken back."""
