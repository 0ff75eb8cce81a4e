"""Deciding whether a project comes to an end, and taking rounds back."""
