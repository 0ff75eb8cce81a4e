"""Agents elsewhere, which claim their own work."""
