"""The admin of the work: people edit projects and tasks here, and read what machines wrote."""

from tasks.admin import project, records, task
