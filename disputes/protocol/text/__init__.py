"""Core: the tools that every reader of documents uses, for lines, ids, places, words and quotes."""
