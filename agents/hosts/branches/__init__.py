"""Branches of the remote beside the target branch, which the program pushes to."""
