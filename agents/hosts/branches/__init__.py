"""Branches of the remote, other than the target branch, that the program pushes to."""
