"""The database backend for SQLite: Django's own, but for how it waits."""
