"""Who signs in, how and from where, and who is invited."""
