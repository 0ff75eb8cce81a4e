"""The admin of disputes: what people rule on in the queue is looked up here."""

from disputes.admin import disputes, people, rulings, silence

__all__ = ["disputes", "people", "rulings", "silence"]
