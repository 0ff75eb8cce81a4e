"""Disputes over REST, with a person's token."""
