"""A project's settings: what can be set, how it is read from files, and how it is changed."""
