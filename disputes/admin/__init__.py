"""The admin of the disputes app, where people look up what was ruled on in the queue."""

from disputes.admin import disputes, people, rulings, silence

__all__ = ["disputes", "people", "rulings", "silence"]
