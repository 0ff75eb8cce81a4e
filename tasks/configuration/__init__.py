"""A project's settings: what there is to set, read from files, changed by one verb."""
