"""The REST API for disputes, used with a person's token."""
