"""What the program needs of its database beyond the models: locks, its clock, prepared queries, triggers."""
