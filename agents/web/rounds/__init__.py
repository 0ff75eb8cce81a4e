"""Pages of a project of documents: its rounds on a time line, its gaps, and each round's documents."""
