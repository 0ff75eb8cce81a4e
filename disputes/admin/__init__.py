"""The admin of the disputes app, which looks up what people ruled on in the queue."""

from disputes.admin import disputes, people, rulings, silence

__all__ = ["disputes", "people", "rulings", "silence"]
