"""Who signs in, how, from where, and who is invited."""
