"""From an empty installation to work that can begin."""
