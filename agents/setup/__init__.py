"""The set-up: from an empty installation to work that can begin."""
