"""The admin of the disputes app: people rule in the queue, and look up here what was ruled on."""

from disputes.admin import disputes, people, rulings, silence
