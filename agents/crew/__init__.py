"""Chooses who takes the next run, and says why nobody may."""
