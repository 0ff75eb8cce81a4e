"""Pages of a project of documents: its rounds on a timeline, its gaps, and each round's documents."""
