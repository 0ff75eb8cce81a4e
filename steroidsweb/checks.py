"""System checks: what can be wrong at start, each with an id."""
