"""The database backend for SQLite: Django's own, except for how it waits."""
