"""The admin of work: projects and tasks are edited here; what machines wrote is read."""

from tasks.admin import project, records, task

__all__ = ["project", "records", "task"]
